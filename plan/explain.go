package plan

import (
	"strconv"
	"strings"

	"github.com/selfcage/selfcage/binds"
	"github.com/selfcage/selfcage/internal/refusal"
)

// Explain is the document by which a plan is reviewed: everything that is visible, in the order in which it is made,
// one line each with its reason. It prints no value of any variable.
func (p *Plan) Explain() string {
	var b strings.Builder
	line := func(words ...string) { b.WriteString(strings.Join(words, "") + "\n") }
	line("cage of ", Quote(p.Name), ", engine bwrap", own(p.Mode != "", ", mode "+refusal.Printable(p.Mode)))
	for _, f := range p.Policies {
		line("  policy     ", Quote(f))
	}
	line("  runs       ", Quote(p.Command))
	if p.Executes != "" {
		line("  executes   ", Quote(p.Executes))
	}
	line("  in         ", Quote(p.Dir))
	line("  network    ", word(p.Namespaces.ShareNet))
	line("  own        user, mount, pid, ipc and uts namespaces", own(!p.Namespaces.ShareCgroup, ", cgroup namespace"), "; no capabilities")
	if p.Filter != nil {
		line("  seccomp    ", p.profile(), " profile, ", strconv.Itoa(len(p.Filter)/sockFilterSize), " instructions: no input into the caller's terminal, no kernel keyring, no foreign system calls")
	}
	line("\nfiles, in the order in which they are mounted")
	rows := make([][3]string, 0, len(p.Mounts))
	for _, m := range p.Mounts {
		rows = append(rows, [3]string{m.Kind.String(), p.mountText(m), reasonText(m.Reason)})
	}
	table(&b, rows)
	if len(p.Create) > 0 {
		line("\nmade on the host first, for the caller alone")
		rows = rows[:0]
		for _, m := range p.Create {
			rows = append(rows, [3]string{m.kind(), Quote(m.Path), reasonText(m.Reason)})
		}
		table(&b, rows)
	}
	if len(p.Remove) > 0 {
		line("\non the host while the run lasts, and then removed")
		rows = rows[:0]
		for _, m := range p.Remove {
			rows = append(rows, [3]string{m.kind(), Quote(m.Path), reasonText(m.Reason)})
		}
		table(&b, rows)
	}
	line("\nenvironment", own(p.Clean, ", from nothing"))
	rows = rows[:0]
	for _, v := range p.Env {
		rows = append(rows, [3]string{"keep", Quote(v.Name), reasonText(v.Reason)})
	}
	for _, v := range p.Dropped {
		rows = append(rows, [3]string{"drop", Quote(v.Name), v.Rule})
	}
	table(&b, rows)
	if len(p.FDs) > 0 {
		line("\ndescriptors besides 0, 1 and 2")
		rows = rows[:0]
		for _, f := range p.FDs {
			rows = append(rows, [3]string{"keep", strconv.Itoa(f.N), reasonText(f.Reason)})
		}
		table(&b, rows)
	}
	if len(p.Attempts) > 0 {
		line("\ntried inside, and must fail")
		rows = rows[:0]
		for _, a := range p.Attempts {
			rows = append(rows, [3]string{a.Op, Quote(a.Object), a.Why})
		}
		table(&b, rows)
	}
	if len(p.Notes) > 0 {
		line("\nnotes")
		for _, n := range p.Notes {
			line("  ", refusal.Printable(n))
		}
	}
	if len(p.Omitted) > 0 {
		line("\nleft out")
		for _, o := range byReason(p.Omitted) {
			line("  ", o.Why, ": ", o.What)
		}
	}
	return b.String()
}

// byReason puts together what was left out for the same reason.
func byReason(os []Omission) (groups []Omission) {
next:
	for _, o := range os {
		for i := range groups {
			if groups[i].Why == o.Why {
				groups[i].What += ", " + Quote(o.What)
				continue next
			}
		}
		groups = append(groups, Omission{Quote(o.What), o.Why})
	}
	return groups
}

func word(shared bool) string {
	if shared {
		return "shared with the host"
	}
	return "none but a loopback of its own"
}

func own(yes bool, s string) string {
	if yes {
		return s
	}
	return ""
}

func (p *Plan) mountText(m binds.Mount) string {
	s := Quote(m.Target)
	switch {
	case m.Kind == binds.Symlink:
		s += " -> " + Quote(m.Source)
	case m.Kind.Bind() && m.Source != m.Target:
		s += " from " + Quote(m.Source)
	}
	if m.Kind == binds.Tmpfs && !p.remounted(m.Target) {
		if m.Size == 0 {
			return s + " (half of the memory)"
		}
		return s + " (" + strconv.FormatInt(m.Size, 10) + " bytes)"
	}
	if m.Kind == binds.File {
		return s + " (" + strconv.Itoa(len(m.Data)) + " bytes)"
	}
	return s
}

// remounted says whether the mount at target is made read-only in the end.
func (p *Plan) remounted(target string) bool {
	for _, m := range p.Mounts {
		if m.Kind == binds.RemountRO && m.Target == target {
			return true
		}
	}
	return false
}

func reasonText(r binds.Reason) string {
	if r.By == "" {
		return r.Why
	}
	return r.By + ": " + r.Why
}

// table writes three columns, the second padded to the widest one that is not out of proportion.
func table(b *strings.Builder, rows [][3]string) {
	w0, w1 := 0, 0
	for i := range rows {
		rows[i][2] = refusal.Printable(rows[i][2])
	}
	for _, r := range rows {
		w0 = max(w0, len(r[0]))
		if len(r[1]) <= 44 {
			w1 = max(w1, len(r[1]))
		}
	}
	for _, r := range rows {
		b.WriteString("  " + pad(r[0], w0) + "  " + pad(r[1], w1) + "  " + r[2] + "\n")
	}
}

func pad(s string, n int) string { return s + strings.Repeat(" ", max(0, n-len(s))) }
