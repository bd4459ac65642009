package plan

import (
	"strconv"
	"strings"

	"github.com/selfcage/selfcage/binds"
	"github.com/selfcage/selfcage/internal/jsonw"
)

// JSON is the published form of the plan, the same bytes for the same plan. It holds no value of any variable, no
// argument and no content of a file.
func (p *Plan) JSON() []byte {
	var w jsonw.Writer
	p.WriteJSON(&w)
	return append(w.Bytes(), '\n')
}

// WriteJSON writes the plan as one value of a larger document.
func (p *Plan) WriteJSON(w *jsonw.Writer) {
	w.Open('{')
	w.Key("version")
	w.Int(1)
	w.Pair("program", p.Name)
	w.Pair("engine", "bwrap")
	w.Pair("command", p.Command)
	w.Pair("executes", p.Executes)
	w.Pair("dir", p.Dir)
	w.Key("namespaces")
	w.Open('{')
	for _, n := range p.Namespaces.List() {
		w.Pair(n.Name, n.Word)
	}
	w.Close('}')
	w.Key("outside_namespaces")
	w.Open('{')
	for _, n := range p.Outside {
		w.Pair(n.Name, n.Word)
	}
	w.Close('}')
	w.Key("seccomp_instructions")
	w.Int(int64(len(p.Filter) / sockFilterSize))
	rows(w, "mounts", p.Mounts, jsonMount)
	rows(w, "create", p.Create, func(w *jsonw.Writer, m Missing) {
		w.Pair("kind", m.kind())
		w.Pair("path", m.Path)
		w.Pair("by", m.Reason.By)
		w.Pair("why", m.Reason.Why)
	})
	rows(w, "env", p.Env, func(w *jsonw.Writer, v Var) { named(w, v.Name, v.Reason) })
	rows(w, "descriptors", p.FDs, func(w *jsonw.Writer, f FD) { named(w, strconv.Itoa(f.N), f.Reason) })
	w.Key("env_dropped")
	w.Open('[')
	for _, d := range p.Dropped {
		row(w, func() { named(w, d.Name, binds.Reason{Why: d.Rule}) })
	}
	w.Close(']')
	rows(w, "omitted", p.Omitted, func(w *jsonw.Writer, o Omission) { named(w, o.What, binds.Reason{Why: o.Why}) })
	rows(w, "notes", p.Notes, func(w *jsonw.Writer, n string) { w.Pair("text", n) })
	w.Close('}')
}

// rows writes an array of objects, one a line.
func rows[T any](w *jsonw.Writer, key string, list []T, write func(*jsonw.Writer, T)) {
	w.Key(key)
	w.Open('[')
	for _, x := range list {
		row(w, func() { write(w, x) })
	}
	w.Close(']')
}

func row(w *jsonw.Writer, write func()) {
	w.Line()
	w.Open('{')
	write()
	w.Close('}')
}

func named(w *jsonw.Writer, name string, r binds.Reason) {
	w.Key("name")
	w.Text(name)
	w.Pair("by", r.By)
	w.Pair("why", r.Why)
}

func jsonMount(w *jsonw.Writer, m binds.Mount) {
	w.Pair("kind", m.Kind.String())
	w.Pair("target", m.Target)
	w.Pair("source", m.Source)
	if m.Perm != 0 {
		w.Pair("perm", "0"+strconv.FormatUint(uint64(m.Perm), 8))
	}
	if size := m.Size + int64(len(m.Data)); size != 0 {
		w.Key("size")
		w.Int(size)
	}
	w.Pair("by", m.Reason.By)
	w.Pair("why", m.Reason.Why)
}

// sockFilterSize is the size of struct sock_filter of linux/filter.h in bytes.
const sockFilterSize = 8

// Namespace is one of a cage's namespaces; Word is "own" or "shared".
type Namespace struct{ Name, Word string }

// NamespaceFiles names each namespace's file in /proc/PID/ns.
var NamespaceFiles = []Namespace{
	{"user", "user"}, {"mount", "mnt"}, {"pid", "pid"}, {"ipc", "ipc"}, {"uts", "uts"}, {"network", "net"}, {"cgroup", "cgroup"},
}

// List names each namespace.
func (n Namespaces) List() []Namespace {
	word := func(shared bool) string {
		if shared {
			return "shared"
		}
		return "own"
	}
	return []Namespace{
		{"user", "own"}, {"mount", "own"}, {"pid", "own"}, {"ipc", "own"}, {"uts", "own"},
		{"network", word(n.ShareNet)}, {"cgroup", word(n.ShareCgroup)},
	}
}

// Grants is what a program inside compares its own request with.
type Grants struct {
	ShareNet bool
	Mounts   []binds.Mount // Kind and Target only
}

// grants is the plan's Grants as words ended by NUL: a program that is linked without a JSON reader reads it.
func (p *Plan) grants() []byte {
	b := []byte("network own\x00")
	if p.Namespaces.ShareNet {
		b = []byte("network shared\x00")
	}
	for _, m := range p.Mounts {
		b = append(append(append(append(b, m.Kind.String()...), ' '), m.Target...), 0)
	}
	return b
}

// ParseGrants reads the file GrantsFile. ok is false when it is not one.
func ParseGrants(data []byte) (g Grants, ok bool) {
	words := strings.Split(string(data), "\x00")
	if words[len(words)-1] != "" || len(words) < 2 {
		return g, false // cut off
	}
	switch words[0] {
	case "network own":
	case "network shared":
		g.ShareNet = true
	default:
		return g, false
	}
	for _, w := range words[1 : len(words)-1] {
		name, target, _ := strings.Cut(w, " ")
		kind, known := binds.ParseKind(name)
		if !known || !strings.HasPrefix(target, "/") {
			return Grants{}, false
		}
		g.Mounts = append(g.Mounts, binds.Mount{Kind: kind, Target: target})
	}
	return g, true
}
