//go:build !linux

package report

import "github.com/selfcage/selfcage/plan"

// Try attempts nothing here: nothing is known of any.
func Try(as []plan.Attempt) []Tried {
	ts := make([]Tried, len(as))
	for i, a := range as {
		ts[i] = Tried{Attempt: a}
	}
	return ts
}
