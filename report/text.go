package report

import (
	"strings"

	"github.com/selfcage/selfcage/internal/refusal"
	"github.com/selfcage/selfcage/plan"
)

// Text is the report for people: one line that says what this is, then what is not enforced, then what was looked at,
// the worst first.
func (r *Report) Text() string {
	var b strings.Builder
	b.WriteString(r.headline() + "\n")
	for _, l := range r.NotEnforced() {
		b.WriteString("  not enforced: " + refusal.Printable(l.What+": "+l.Why) + "\n")
	}
	wide := 36
	for _, c := range r.Controls {
		wide = min(max(wide, len(c.Name)), 60)
	}
	for _, want := range []State{Differs, NotObserved, AsPlanned} {
		for _, c := range r.Controls {
			if c.State == want {
				b.WriteString("  " + refusal.Printable(pad(c.Name, wide)+"  "+pad(c.Observed, 10)+"  "+string(c.State)) + "\n")
			}
		}
	}
	return b.String()
}

// headline never says that something confines where nothing of ours does.
func (r *Report) headline() string {
	var words []string
	p := r.planned()
	switch {
	case p != nil && r.Inside:
		words = append(words, "inside the cage of "+plan.Quote(p.Name)+", engine "+string(r.Engine), "network "+network(p))
	case p != nil && r.Phase == Refused:
		words = append(words, "refused: nothing was run", "engine "+string(r.Engine))
	case p != nil:
		words = append(words, "a cage, engine "+string(r.Engine), "network "+network(p))
	case r.Engine == Runtime:
		words = append(words, "no cage: the kernel confines nothing on behalf of selfcage; isolation is the container runtime's own")
	case r.Engine == None:
		words = append(words, "no cage: the kernel confines nothing")
	case r.Phase == Refused:
		words = append(words, "refused: nothing was run")
	default:
		words = append(words, "no cage yet")
	}
	if r.Mode != "" {
		words = append(words, "mode "+string(r.Mode))
	}
	if len(r.Declared.Files) > 0 {
		var quoted []string
		for _, f := range r.Declared.Files {
			quoted = append(quoted, plan.Quote(f))
		}
		words = append(words, "policy "+strings.Join(quoted, " "))
	}
	return strings.Join(words, ", ")
}

func network(p *plan.Plan) string {
	if p.Namespaces.ShareNet {
		return "shared"
	}
	return "own"
}

func pad(s string, n int) string { return s + strings.Repeat(" ", max(0, n-len(s))) }
