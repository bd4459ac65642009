package report

import (
	"github.com/selfcage/selfcage/plan"
	"github.com/selfcage/selfcage/policy"
)

// self is the process that asks, in /proc.
const self = "self"

// Inside is the report of a process in the cage of p, which looks at itself and attempts what must fail. document is
// the plan's JSON form, of which p may be a part.
func Inside(p *plan.Plan, document []byte) *Report {
	o := observe(self, p.Outside)
	o.Tried = Try(p.Attempts)
	r := &Report{
		Phase: Started, Inside: true, Mode: policy.Mode(p.Mode), Engine: Bwrap, Plan: p, PlanJSON: document,
		Controls: Compare(p, o), Host: LookAtHost(),
	}
	r.Declared.Files = p.Policies
	return r
}
