//go:build !linux

package probe

import (
	"errors"
	"runtime"

	"github.com/selfcage/selfcage/internal/refusal"
	"github.com/selfcage/selfcage/plan"
	"github.com/selfcage/selfcage/policy"
)

var errNotDir = errors.New("not a directory")

func notLinux() *refusal.Error {
	return refused("mode bwrap", "needs Linux, this is "+runtime.GOOS+unconfined, "run it on Linux, or without a sandbox mode")
}

// Bwrap fails: bubblewrap exists on Linux only.
func Bwrap(policy.Entry) (string, error) { return "", notLinux() }

// Diagnose says that this is not Linux.
func Diagnose(string, *plan.Plan, Failure) *refusal.Error { return notLinux() }

// Examine reports that nothing can be enforced here.
func Examine(policy.Entry) Report {
	e := notLinux()
	return Report{Rows: withModes([]Row{{ID: "bwrap", Name: "bubblewrap", State: Refused, Detail: e.Cause, Hint: e.Hint, Required: true}})}
}

// Container is empty: nobody looks.
func Container() string { return "" }
