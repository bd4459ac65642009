// Package report tells three things apart: what was declared (asked for), what was planned (made of it), and what is
// enforced (observed in the running cage). What could not be observed is said to be not observed, never to be enforced,
// and what was declared and is enforced by nothing has a list of its own.
//
// There is one shape for every mode and engine, that of [Report]: Run writes it where --report asks for it, Inside
// makes it of the cage around this process. docs/report.md explains it and docs/report.schema.json is its JSON Schema.
package report

import (
	"github.com/selfcage/selfcage/env"
	"github.com/selfcage/selfcage/internal/refusal"
	"github.com/selfcage/selfcage/plan"
	"github.com/selfcage/selfcage/policy"
)

// Version is that of the JSON form. It changes when a reader of the old one would be misled.
const Version = 2

// Phase says how far a run came.
type Phase string

// The phases of a run.
const (
	Started    Phase = "started" // it is not known how it ended: it runs, or was killed together with us
	Refused    Phase = "refused" // the program was not begun
	Ended      Phase = "ended"
	HandedOver Phase = "handed over" // nobody stays outside to see the end
	Examined   Phase = "examined"    // there is no run: the host was asked what it can do
)

// Engine is what enforces a plan. The empty Engine is not decided yet.
type Engine string

// The engines.
const (
	Bwrap   Engine = "bwrap"
	None    Engine = "none"              // nothing confines
	Runtime Engine = "container runtime" // somebody else's: nothing of ours confines, and nothing was looked at
)

// confines says whether the engine asks the kernel to confine on our behalf.
func (e Engine) confines() bool { return e != None && e != Runtime }

// Level is how much of the environment is let through.
type Level string

// The levels of package env, and none.
const (
	Untouched Level = "untouched" // every variable passes, secrets too
	Scrubbed  Level = "scrubbed"
	Clean     Level = "clean"
)

// LevelOf is the level that belongs to a mode.
func LevelOf(m policy.Mode) Level {
	switch m {
	case policy.Bwrap, policy.Landlock:
		return Scrubbed
	case policy.Auto, policy.Enforced, policy.ScrubbedOnly:
		return Clean
	}
	return Untouched
}

// Environment says which variables the run got. It holds no value of any.
type Environment struct {
	Level   Level
	Kept    []Variable
	Dropped []Variable
}

// Variable is the name of a variable and the rule that kept or dropped it. An entry of the environment that is no
// NAME=VALUE has no name.
type Variable struct{ Name, Rule string }

// Loss is something that was declared, or planned, and that nothing enforces.
type Loss struct{ What, Why string }

// Report is all that is known of one run. It never claims more than was seen.
type Report struct {
	Phase       Phase
	Inside      bool // made by a process in the cage, which knows its plan and not what was declared
	Mode        policy.Mode
	Engine      Engine
	Declared    policy.Effective
	Plan        *plan.Plan // nil where there is none
	PlanJSON    []byte     // the plan's JSON form where Plan is only a part of it
	Controls    []Control
	Lost        []Loss // what an engine that was not to be had would have enforced
	Cause       string // why no engine confines
	Environment Environment
	Host        Host
	Closed      []int  // descriptors that the caller left open and the program does not get
	Manifest    []byte // a JSON object
	Checks      []byte // of an examined host, a JSON array: probe.Report.JSON
	Refusal     *refusal.Error
	Status      int
	Signal      int
}

// planned is the plan, where something is made of it.
func (r *Report) planned() *plan.Plan {
	if r.Engine.confines() {
		return r.Plan
	}
	return nil
}

// environment is what the plan says of variables, else what was handed over.
func (r *Report) environment() Environment {
	if p := r.planned(); p != nil {
		return ofPlan(p)
	}
	return r.Environment
}

func ofPlan(p *plan.Plan) Environment {
	e := Environment{Level: Scrubbed}
	if p.Clean {
		e.Level = Clean
	}
	for _, v := range p.Env {
		e.Kept = append(e.Kept, Variable{v.Name, v.Reason.Why})
	}
	for _, d := range p.Dropped {
		e.Dropped = append(e.Dropped, Variable{d.Name, d.Rule})
	}
	return e
}

// EnvironmentOf is the environment that a run without a plan got.
func EnvironmentOf(level Level, kept []env.Kept, dropped []env.Dropped) Environment {
	e := Environment{Level: level}
	for _, k := range kept {
		e.Kept = append(e.Kept, Variable{k.Name, k.Rule})
	}
	for _, d := range dropped {
		e.Dropped = append(e.Dropped, Variable{d.Name, d.Rule})
	}
	return e
}
