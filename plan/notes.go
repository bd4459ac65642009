package plan

import (
	"strconv"
	"strings"

	"github.com/selfcage/selfcage/binds"
	"github.com/selfcage/selfcage/internal/hostfs"
)

// More would scroll the reason for the first one away; more arguments than that are a list that some program made.
const (
	maxNotes    = 8
	maxOperands = 2000
)

func (b *builder) note(s string) {
	if !holds(b.plan.Notes, s) {
		b.plan.Notes = append(b.plan.Notes, s)
	}
}

// notes tells of each argument that means something else inside: a file that is not visible there, or a place whose
// content ends with the cage. Such a run often ends with status 0 and a wrong or lost result.
func (b *builder) notes() {
	b.pathNote()
	more := 0
	for i, a := range b.Args {
		if i < b.Operands || i == 0 {
			continue
		}
		if i > maxOperands {
			break
		}
		text := b.argumentNote(a)
		switch {
		case text == "":
		case len(b.plan.Notes) < maxNotes:
			b.note("argument " + strconv.Itoa(b.numbered(i)) + " " + text)
		default:
			more++
		}
	}
	if more > 0 {
		b.note("and " + strconv.Itoa(more) + " more arguments like these")
	}
}

// pathNote names the directories of PATH that exist and are not visible: what is found there outside is another
// program inside, or none.
func (b *builder) pathNote() {
	var hidden []string
	for _, dir := range strings.Split(b.getenv("PATH"), ":") {
		if !strings.HasPrefix(dir, "/") || holds(hidden, Quote(dir)) {
			continue
		}
		if r, err := b.host.Walk(dir); err == nil && r.Info.IsDir() && !b.visible(dir) {
			hidden = append(hidden, Quote(dir))
		}
	}
	if len(hidden) > 0 {
		read, _ := b.remedy()
		b.note("not visible inside, though in PATH: " + strings.Join(hidden, ", ") + "; " + read + " would grant it")
	}
}

func holds(list []string, s string) bool {
	for _, l := range list {
		if l == s {
			return true
		}
	}
	return false
}

// numbered is the number of the i-th word in the eyes of who wrote it: of the command's own where run has one.
func (b *builder) numbered(i int) int {
	if b.req.Runs != "" && i > b.Operands {
		return i - b.Operands
	}
	return i
}

// remedy names what grants a path: flags for run, variables for a host program.
func (b *builder) remedy() (read, write string) {
	return b.setting("--read", "READABLE"), b.setting("--write", "WRITABLE")
}

// setting is what says something in this start: a flag for run, a variable for a host program.
func (b *builder) setting(flag, suffix string) string {
	if b.req.Runs != "" || b.req.Prefix == "" {
		return flag
	}
	return b.req.Prefix + suffix
}

// ends says whether what is written at p ends with the cage.
func (b *builder) ends(p string) bool {
	m, ok := binds.Cover(b.plan.Mounts, p)
	return ok && (m.Kind == binds.Tmpfs || m.Target == "/var/tmp" && m.Kind == binds.Symlink)
}

// invisible is the note for a path that leads to something on the host and to nothing inside.
func (b *builder) invisible(a, p string, r hostfs.Resolved) string {
	what := "a file"
	if r.Info.IsDir() {
		what = "a directory"
	}
	note := Quote(a) + " names " + what + " that is not visible inside"
	if b.ends(r.Path) {
		note += ", and what is written there ends with the cage"
	}
	for _, spelled := range []string{clean(p), r.Path} {
		if why, fatal := b.credentials().Forbidden(spelled); fatal {
			return note + "; it cannot be granted: " + why
		}
	}
	read, write := b.remedy()
	switch {
	case hostfs.Within(r.Path, "/proc"):
		return note // another process of the host's
	case isChar(r.Info):
		return note + "; " + strings.NewReplacer("--write", "--device", "WRITABLE", "DEVICE").Replace(write) + " would grant it"
	}
	return note + "; " + read + " or " + write + " would grant it"
}

func (b *builder) argumentNote(a string) string {
	p := a
	if strings.HasPrefix(p, "-") { // --out=/tmp/x
		var ok bool
		if _, p, ok = strings.Cut(p, "="); !ok {
			return ""
		}
	}
	if p == "" || len(p) > 4096 || b.Dir == "" || strings.ContainsAny(p, "\n\x00") {
		return ""
	}
	if !strings.Contains(p, "/") {
		return "" // in the working directory, which is visible or has a note of its own
	}
	if strings.HasPrefix(p, "/dev/fd/") || strings.HasPrefix(p, "/proc/self/") {
		return "" // its own descriptors, which come along, and itself
	}
	p = hostfs.Abs(p, b.Dir)
	r, err := b.host.Walk(p)
	if err == nil {
		if b.visible(p) || r.Path == "/" {
			return ""
		}
		return b.invisible(a, p, r)
	}
	// Not there yet: a result, perhaps. Where would it be written?
	parent := hostfs.Parent(r.Path)
	if r.Path != clean(p) && !strings.HasPrefix(clean(p), parent) {
		return ""
	}
	if b.ends(r.Path) {
		_, write := b.remedy()
		return Quote(a) + " lies in a place that ends with the cage; " + write + " of its directory would keep it"
	}
	return ""
}
