package report

import (
	"slices"

	"github.com/selfcage/selfcage/plan"
	"github.com/selfcage/selfcage/policy"
)

// open is what stays open when no engine confines, whatever was declared.
var open = [...]Loss{
	{"files", "all that the user may use can be read, written and removed"},
	{"network", "the run has the network of its caller"},
	{"devices", "all that the user may use can be used"},
	{"processes", "the user's others can be seen and signalled"},
	{"system calls", "none is filtered"},
	{environment, "every variable passes, secrets too"},
}

// Unenforced lists what nothing enforces in a run that was asked for by s and that no engine confines: each part of a
// cage, then each setting that promises something.
func Unenforced(s policy.Settings) (what []string) {
	level := LevelOf(policy.Mode(s.Mode.Value))
	for _, o := range open {
		if o.What != environment || level == Untouched {
			what = append(what, o.What)
		}
	}
	s.Each(func(name string, _ bool, entries []policy.Entry) {
		for _, e := range entries {
			if promises(name, e.Value, level) {
				what = append(what, name+" "+plan.Quote(e.Value))
			}
		}
	})
	return what
}

// promises says whether the value of a setting limits what a run can do, or is one of the few things that it could do.
func promises(name, value string, level Level) bool {
	switch name {
	case "network":
		return value != "shared"
	case "readable", "writable", "hosts", "gpu", "npu", "device", "cache", "limit", "hide", "protect", "tmp_size", "recipe":
		return true
	case "env", "secret":
		return level == Untouched
	}
	return false
}

// NotEnforced lists what was declared or planned and is enforced by nothing. Of a run that was refused, nothing was to
// be enforced but what was seen to differ.
func (r *Report) NotEnforced() (ls []Loss) {
	for _, c := range r.Controls {
		if c.State == Differs {
			ls = append(ls, Loss{c.Name, "observed: " + c.Observed + "; planned: " + c.Planned})
		}
	}
	if r.Phase == Refused {
		return ls
	}
	ls = append(ls, r.Lost...)
	if r.Engine.confines() {
		return ls
	}
	for _, what := range Unenforced(r.Declared.Settings) {
		if !slices.ContainsFunc(ls, func(l Loss) bool { return l.What == what }) {
			ls = append(ls, Loss{what, r.cause()})
		}
	}
	for i, l := range ls {
		for _, o := range open {
			if o.What == l.What {
				ls[i].Why = o.Why + ": " + l.Why
			}
		}
	}
	return ls
}

// cause says why no engine confines.
func (r *Report) cause() string {
	switch {
	case r.Cause != "":
		return r.Cause
	case r.Engine == Runtime:
		return "isolation is the container runtime's, which was not looked at"
	}
	return "mode " + string(r.Mode)
}
