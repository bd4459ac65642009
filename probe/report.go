package probe

import (
	"strings"

	"github.com/selfcage/selfcage/internal/hostfs"
	"github.com/selfcage/selfcage/internal/jsonw"
	"github.com/selfcage/selfcage/internal/refusal"
	"github.com/selfcage/selfcage/plan"
	"github.com/selfcage/selfcage/policy"
)

// State is what a row found.
type State string

// The states. Warning is for what a run survives and a user should know.
const (
	OK      State = "ok"
	Refused State = "refused"
	Warning State = "warning"
	Unknown State = "unknown" // not tried, or the host does not say
	NotYet  State = "not-in-this-version"
)

// Row is one thing that was asked of the host. The IDs are stable.
type Row struct {
	ID       string // "bwrap", "options", "ns.user" …, "proc", "dev", "seccomp", "resolv.conf", "kernel", "mode.bwrap" …
	Name     string // for people
	State    State
	Required bool   // a run in mode bwrap without further wishes needs it
	Detail   string // what was found
	Hint     string // what would help, the narrowest remedy first
	Passing  bool   // it was refused for want of something that others may have used up: it says nothing of the host
}

// Report is what this host can enforce. One row for each mode says whether a run in it can start.
type Report struct {
	Rows []Row
}

// Row returns the row with an ID.
func (r Report) Row(id string) (Row, bool) {
	for _, row := range r.Rows {
		if row.ID == id {
			return row, true
		}
	}
	return Row{}, false
}

// CanRun says whether a run in mode can start on this host. What is not known for certain is no.
func (r Report) CanRun(mode policy.Mode) bool {
	row, ok := r.Row("mode." + string(mode))
	return ok && (row.State == OK || row.State == Warning)
}

// CanHold says whether this host can make the cage of plan p, as far as the host alone decides: its files and programs
// do not count. What is not known for certain is yes here, so that a doubt is no reason to run with less; so is what was
// refused for want of processes, memory or descriptors, which any process of the same user can use up.
func (r Report) CanHold(p *plan.Plan) bool {
	for _, row := range r.Rows {
		needed := row.Required || row.ID == "ns.net" && !p.Namespaces.ShareNet || row.ID == "ns.cgroup" && !p.Namespaces.ShareCgroup
		if needed && row.State == Refused && !row.Passing && !strings.HasPrefix(row.ID, "mode.") {
			return false
		}
	}
	return true
}

// withModes adds the verdicts to the rows that they follow from.
func withModes(rows []Row) []Row {
	var blocked, open, without []string
	for _, r := range rows {
		switch {
		case r.Required && r.State == Refused:
			blocked = append(blocked, r.Name)
		case r.Required && r.State != OK:
			open = append(open, r.Name)
		case r.State == Refused:
			without = append(without, r.Name)
		}
	}
	if len(blocked) == 0 {
		blocked = open // usually the consequence of what is refused; alone it is no promise either
	}
	for _, m := range policy.Modes() {
		row := Row{ID: "mode." + m, Name: "mode " + m, State: NotYet}
		switch policy.Mode(m) {
		case policy.Off:
			row.State, row.Detail = OK, "no cage"
		case policy.Disabled:
			row.State, row.Detail = OK, "no cage, and the report says so"
		case policy.ScrubbedOnly:
			row.State, row.Detail = OK, "no cage, only the environment is cleaned"
		case policy.Auto:
			row.State, row.Detail = OK, "can run, by bubblewrap"
			if len(blocked) > 0 {
				row.State, row.Detail = Warning, "no cage, only the environment would be cleaned: "+strings.Join(blocked, ", ")
			}
		case policy.Bwrap, policy.Enforced:
			row.State, row.Detail = OK, "can run"
			if len(without) > 0 {
				row.Detail += "; a run that asks for " + strings.Join(without, ", ") + " is refused"
			}
			if len(blocked) > 0 {
				row.State, row.Detail = Refused, "cannot run: "+strings.Join(blocked, ", ")
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// Text is the report for people: a line for each row, with what would help below it.
func (r Report) Text() string {
	wState, wName := 0, 0
	for _, row := range r.Rows {
		wState, wName = max(wState, len(row.State)), max(wName, len(row.Name))
	}
	var b strings.Builder
	for _, row := range r.Rows {
		line := pad(string(row.State), wState) + "  " + pad(row.Name, wName) + "  " + row.Detail
		b.WriteString(strings.TrimRight(line, " ") + "\n")
		if row.Hint != "" {
			b.WriteString(strings.Repeat(" ", wState+2) + "hint: " + row.Hint + "\n")
		}
	}
	return b.String()
}

func pad(s string, w int) string { return s + strings.Repeat(" ", w-len(s)) }

// JSON is the rows for programs, an array of {"id", "name", "state", "required", "detail", "hint"}, the last two only where
// there is something to say. A detail or hint that is not UTF-8 is {"bytes": "<base64>"}.
func (r Report) JSON() []byte {
	var w jsonw.Writer
	w.Open('[')
	for _, row := range r.Rows {
		w.Line()
		w.Open('{')
		w.Pair("id", row.ID)
		w.Pair("name", row.Name)
		w.Pair("state", string(row.State))
		w.Key("required")
		w.Bool(row.Required)
		w.Pair("detail", row.Detail)
		w.Pair("hint", row.Hint)
		w.Close('}')
	}
	w.Close(']')
	return append(w.Bytes(), '\n')
}

// question is one row that bubblewrap answers.
type question struct {
	step     step
	id       string
	optional bool
	needs    step // not asked where that one failed
	args     []string
	data     [][]byte
}

// questions are all of them, in the order of the report.
func questions(h host) []question {
	qs := []question{{step: stepUser, id: "ns.user", needs: stepOptions}}
	for _, n := range namespaces[1:] {
		// A plan shares the network unless told not to, and the cgroup namespace where the host's tree is visible.
		optional := n == "net" || n == "cgroup" && h.sharedCgroups
		qs = append(qs, question{step: step(n), id: "ns." + n, optional: optional, needs: stepUser, args: []string{"--unshare-" + n}})
	}
	return append(qs,
		question{step: stepProc, id: "proc", needs: stepPID, args: []string{"--unshare-pid", "--proc", "/proc"}},
		question{step: stepDev, id: "dev", needs: stepUser, args: []string{"--dev", "/dev"}},
		question{step: stepSeccomp, id: "seccomp", needs: stepUser, args: []string{"--seccomp", "3"}, data: [][]byte{allowAll()}})
}

// examine asks the trusted bubblewrap for everything that a run may need.
func examine(run runner, bwrap string, h host) []Row {
	o := observations{bwrap: bwrap, host: h}
	o.ask(run, neededBy(everyOption()))
	first := o.row(stepVersion, "bwrap")
	if o.finding.step != stepVersion {
		first.State = OK
		first.Detail = plan.Quote(bwrap) + ", version " + o.version
		if o.version == "" {
			first.Detail = plan.Quote(bwrap) + ", which does not say its version"
		}
	}
	rows := []Row{first, o.row(stepOptions, "options")}
	bad := make(map[step]step, 4) // a step that cannot be asked, and the one that is to blame
	if o.finding.step != "" {
		bad[stepOptions] = o.finding.step
	}
	for _, q := range questions(h) {
		blame, out := bad[q.needs]
		if !out {
			args := append([]string{"--die-with-parent", "--unshare-user"}, q.args...)
			o.finding, out = failed(q.step, run(append(args, nowhere), q.data), nowhere)
			blame = q.step
		}
		if o.finding.step = blame; out {
			bad[q.step] = blame
		} else {
			o.finding = finding{}
		}
		row := o.row(q.step, q.id)
		row.Required = !q.optional
		rows = append(rows, row)
	}
	return rows
}

// row says what the finding means for step s. A finding of another step leaves s untried.
func (o *observations) row(s step, id string) Row {
	r := Row{ID: id, Name: s.title(), State: OK, Required: true}
	switch o.finding.step {
	case "":
	case s:
		e := diagnose(*o)
		r.State, r.Detail, r.Hint, r.Passing = Refused, strings.TrimSuffix(e.Cause, unconfined), e.Hint, o.passing()
	default:
		r.State, r.Detail = Unknown, "not tried, since this failed: "+o.finding.step.title()
	}
	return r
}

// untried are the rows of examine where there is no bubblewrap to ask, for the reason e.
func untried(e *refusal.Error, h host) []Row {
	rows := []Row{
		{ID: "bwrap", Name: stepVersion.title(), State: Refused, Required: true, Detail: e.Object + ": " + strings.TrimSuffix(e.Cause, unconfined), Hint: e.Hint},
		{ID: "options", Name: stepOptions.title(), State: Unknown, Required: true},
	}
	for _, q := range questions(h) {
		rows = append(rows, Row{ID: q.id, Name: q.step.title(), State: Unknown, Required: !q.optional})
	}
	for i := range rows[1:] {
		rows[1+i].Detail = "not tried: there is no trusted bubblewrap"
	}
	return rows
}

// resolvRow says whether host names can be resolved. A link that leads nowhere is the host's own trouble: a run starts
// and has what the host has.
func resolvRow(v *hostfs.View) Row {
	const p = "/etc/resolv.conf"
	row := Row{ID: "resolv.conf", Name: p, State: OK}
	r, err := v.Walk(p)
	switch {
	case err == nil && r.Path != p:
		row.Detail = "leads to " + plan.Quote(r.Path)
	case err == nil:
	case len(r.Links) > 0:
		row.State, row.Detail = Warning, "a link that leads nowhere: "+plan.Quote(r.Path)+" cannot be looked at, so host names are not resolved, in a cage or without"
		row.Hint = "start the service that writes it (systemd-resolved, NetworkManager, resolvconf), or replace the link by a file"
	default:
		row.State, row.Detail = Warning, "not there: only /etc/hosts and a server on this host can resolve names"
	}
	return row
}

// kernelRow names the kernel, for reports of faults.
func kernelRow(h host) Row {
	row := Row{ID: "kernel", Name: "kernel", State: OK, Detail: h.kernel}
	if h.kernel == "" {
		row.State, row.Detail = Unknown, "/proc/sys/kernel/osrelease cannot be read"
	}
	if h.container != "" {
		row.Detail += ", in a container (" + h.container + ")"
	}
	return row
}
