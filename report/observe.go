package report

import (
	"strings"

	"github.com/selfcage/selfcage/binds"
	"github.com/selfcage/selfcage/internal/hostfs"
	"github.com/selfcage/selfcage/internal/launch"
	"github.com/selfcage/selfcage/plan"
)

// State says what an observation found.
type State string

// The states of a control.
const (
	AsPlanned   State = "as planned"
	Differs     State = "differs"
	NotObserved State = "not observed" // it could not be looked at; nothing is claimed
)

// Control is one thing that the plan promises, with what was seen.
type Control struct {
	Name     string
	Planned  string
	Observed string
	State    State
}

// Observed is what the kernel says of a process in a cage. A nil map, a nil slice or an empty string was not to be had.
type Observed struct {
	Namespaces map[string]string // by plan name: "own" or "shared"
	Status     map[string]string // fields of /proc/PID/status
	Mounts     []MountInfo
	Names      []string // of the variables that the program began with
	Late       bool     // Names are not to be had, since the process is not the program that began
	Tried      []Tried
}

// MountInfo is one line of /proc/PID/mountinfo.
type MountInfo struct {
	Target   string
	ReadOnly bool
	Type     string
}

// ParseMountInfo reads /proc/PID/mountinfo (proc_pid_mountinfo(5)). Lines that are not of its form are left out.
func ParseMountInfo(data string) (ms []MountInfo) {
	for line := range strings.Lines(data) {
		before, after, ok := strings.Cut(line, " - ")
		f := strings.Fields(before)
		kind := strings.Fields(after)
		if !ok || len(f) < 6 || len(kind) < 1 {
			continue
		}
		ms = append(ms, MountInfo{Target: hostfs.Unescape(f[4]), ReadOnly: hostfs.HasOption(f[5], "ro"), Type: kind[0]})
	}
	return ms
}

// ParseStatus reads the fields of /proc/PID/status.
func ParseStatus(data string) map[string]string {
	fields := make(map[string]string, 64)
	for line := range strings.Lines(data) {
		if k, v, ok := strings.Cut(line, ":"); ok {
			fields[k] = strings.TrimSpace(v)
		}
	}
	return fields
}

// parseNames reads the names of /proc/PID/environ, which is empty for a process that is gone. An entry that is no
// NAME=VALUE is there as a whole.
func parseNames(data string) (names []string) {
	if data == "" {
		return nil
	}
	for entry := range strings.SplitSeq(strings.TrimSuffix(data, "\x00"), "\x00") {
		name, _, _ := strings.Cut(entry, "=")
		names = append(names, name)
	}
	return names
}

// Compare holds what was observed against the plan. It names every promise, kept or not.
func Compare(p *plan.Plan, o Observed) (cs []Control) {
	add := func(name, planned, observed string) {
		c := Control{name, planned, observed, AsPlanned}
		switch {
		case observed == "":
			c.Observed, c.State = "unknown", NotObserved
		case observed != planned:
			c.State = Differs
		}
		cs = append(cs, c)
	}
	for _, n := range p.Namespaces.List() {
		add(n.Name+" namespace", n.Word, o.Namespaces[n.Name])
	}
	add("capabilities (CapEff)", "none", capabilities(o.Status["CapEff"]))
	add("no new privileges", "1", o.Status["NoNewPrivs"])
	if len(p.Filter) > 0 {
		add("seccomp filter", "2", o.Status["Seccomp"])
	}
	if !o.Late {
		add(environment, onlyKept, observedNames(p.Env, o.Names))
	}
	later := remounted(p.Mounts)
	seen := accesses(o.Mounts)
	for _, m := range p.Mounts {
		if m.Kind.Mounts() && m.Kind != binds.RemountRO {
			add("mount "+plan.Quote(m.Target), access(m, later), seen.at(m.Target))
		}
	}
	add("mount /", readOnly, seen.at("/"))
	for i, a := range p.Attempts {
		t := Tried{Attempt: a}
		if i < len(o.Tried) && o.Tried[i].Attempt == a {
			t = o.Tried[i]
		}
		cs = append(cs, t.control())
	}
	return cs
}

func capabilities(mask string) string {
	if mask == "" || strings.Trim(mask, "0") != "" {
		return mask
	}
	return "none"
}

// The words of the control over variables.
const (
	environment = "environment"
	onlyKept    = "only what is kept"
)

// observedNames says whether a program began with nothing but vars, "" when that is not known. The variable by which
// the inner stage finds the supervisor is gone before the program sees any.
func observedNames(vars []plan.Var, names []string) string {
	if names == nil {
		return ""
	}
	kept := make(map[string]bool, len(vars)+1)
	kept[launch.StartVar] = true
	for _, v := range vars {
		kept[v.Name] = true
	}
	var more []string
	for _, n := range names {
		if !kept[n] {
			more = append(more, plan.Quote(n))
		}
	}
	if len(more) > 0 {
		return "also " + strings.Join(more, ", ")
	}
	return onlyKept
}

// The words for a mount's access.
const (
	readOnly = "read-only"
	writable = "writable"
)

// remounted are the targets of mounts that are made read-only afterwards.
func remounted(ms []binds.Mount) map[string]bool {
	targets := make(map[string]bool, 8)
	for _, m := range ms {
		if m.Kind == binds.RemountRO {
			targets[m.Target] = true
		}
	}
	return targets
}

// access is what a mount should look like to mountinfo.
func access(m binds.Mount, later map[string]bool) string {
	if later[m.Target] || m.Kind == binds.ReadOnly || m.Kind == binds.Sealed {
		return readOnly
	}
	return writable
}

// mounted is the access of the last mount at each target, which is the one that counts. A nil mounted knows nothing.
type mounted map[string]string

func accesses(ms []MountInfo) mounted {
	if ms == nil {
		return nil
	}
	seen := make(mounted, len(ms))
	for _, m := range ms {
		seen[m.Target] = writable
		if m.ReadOnly {
			seen[m.Target] = readOnly
		}
	}
	return seen
}

func (m mounted) at(target string) string {
	if m == nil {
		return ""
	}
	if s, ok := m[target]; ok {
		return s
	}
	return "not mounted"
}
