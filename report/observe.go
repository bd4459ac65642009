package report

import (
	"strings"

	"github.com/selfcage/selfcage/binds"
	"github.com/selfcage/selfcage/internal/hostfs"
	"github.com/selfcage/selfcage/internal/jsonw"
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

// Observed is what the kernel says of a process in a cage. A nil map or an empty string was not to be had.
type Observed struct {
	Namespaces map[string]string // by plan name: "own" or "shared"
	Status     map[string]string // fields of /proc/PID/status
	Mounts     []MountInfo
}

// MountInfo is one line of /proc/PID/mountinfo.
type MountInfo struct {
	Target   string
	ReadOnly bool
	Type     string
}

// ParseMountInfo reads /proc/PID/mountinfo (proc_pid_mountinfo(5)). Lines that are not of its form are left out.
func ParseMountInfo(data string) (ms []MountInfo) {
	for _, line := range strings.Split(data, "\n") {
		f := strings.Fields(line)
		if len(f) < 10 {
			continue
		}
		m := MountInfo{Target: hostfs.Unescape(f[4]), ReadOnly: hostfs.HasOption(f[5], "ro")}
		for i, w := range f {
			if w == "-" && i+1 < len(f) {
				m.Type = f[i+1]
			}
		}
		ms = append(ms, m)
	}
	return ms
}

// ParseStatus reads the fields of /proc/PID/status.
func ParseStatus(data string) map[string]string {
	fields := make(map[string]string)
	for _, line := range strings.Split(data, "\n") {
		if k, v, ok := strings.Cut(line, ":"); ok {
			fields[k] = strings.TrimSpace(v)
		}
	}
	return fields
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
	for _, m := range p.Mounts {
		if !m.Kind.Mounts() || m.Kind == binds.RemountRO {
			continue
		}
		add("mount "+plan.Quote(m.Target), access(p, m), observedAccess(o.Mounts, m.Target))
	}
	add("mount /", "read-only", observedAccess(o.Mounts, "/"))
	return cs
}

func capabilities(mask string) string {
	if mask == "" || strings.Trim(mask, "0") != "" {
		return mask
	}
	return "none"
}

// access is what a mount should look like to mountinfo.
func access(p *plan.Plan, m binds.Mount) string {
	for _, r := range p.Mounts {
		if r.Kind == binds.RemountRO && r.Target == m.Target {
			return "read-only"
		}
	}
	if m.Kind == binds.ReadOnly || m.Kind == binds.Sealed {
		return "read-only"
	}
	return "writable"
}

// observedAccess is that of the last mount at target, which is the one that counts.
func observedAccess(ms []MountInfo, target string) (s string) {
	if ms == nil {
		return ""
	}
	s = "not mounted"
	for _, m := range ms {
		if m.Target == target {
			s = "writable"
			if m.ReadOnly {
				s = "read-only"
			}
		}
	}
	return s
}

func writeControls(w *jsonw.Writer, cs []Control) {
	w.Open('[')
	for _, c := range cs {
		w.Line()
		w.Open('{')
		w.Pair("control", c.Name)
		w.Pair("planned", c.Planned)
		w.Pair("observed", c.Observed)
		w.Pair("state", string(c.State))
		w.Close('}')
	}
	w.Close(']')
}

// Text prints controls as a table, what is not as planned first.
func Text(cs []Control) string {
	var b strings.Builder
	for _, want := range []State{Differs, NotObserved, AsPlanned} {
		for _, c := range cs {
			if c.State == want {
				b.WriteString("  " + pad(c.Name, 36) + "  " + pad(c.Observed, 10) + "  " + string(c.State) + "\n")
			}
		}
	}
	return b.String()
}

func pad(s string, n int) string { return s + strings.Repeat(" ", max(0, n-len(s))) }

// JSON is the array of controls as in a report.
func JSON(cs []Control) []byte {
	var w jsonw.Writer
	writeControls(&w, cs)
	return append(w.Bytes(), '\n')
}

// Self observes this process, which is in the cage of p.
func Self(p *plan.Plan) Observed { return observe("self", p.Outside) }
