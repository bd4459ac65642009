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
	w.Pair("mode", p.Mode)
	w.Pair("environment", p.level())
	w.Key("policies")
	w.Open('[')
	for _, f := range p.Policies {
		w.Text(f)
	}
	w.Close(']')
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
	w.Pair("seccomp_profile", p.profile())
	w.Key("seccomp_instructions")
	w.Int(int64(len(p.Filter) / sockFilterSize))
	rows(w, "mounts", p.Mounts, jsonMount)
	rows(w, "create", p.Create, jsonMissing)
	rows(w, "remove", p.Remove, jsonMissing)
	rows(w, "attempts", p.Attempts, func(w *jsonw.Writer, a Attempt) {
		w.Pair("op", a.Op)
		w.Pair("object", a.Object)
		w.Pair("why", a.Why)
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

func jsonMissing(w *jsonw.Writer, m Missing) {
	w.Pair("kind", m.kind())
	w.Pair("path", m.Path)
	w.Pair("by", m.Reason.By)
	w.Pair("why", m.Reason.Why)
}

// level is how much of the environment gets in.
func (p *Plan) level() string {
	if p.Clean {
		return "clean"
	}
	return "scrubbed"
}

// profile is the name of the seccomp program, "" where there is none.
func (p *Plan) profile() string {
	if p.Filter == nil {
		return ""
	}
	return "keep"
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
	Mode     string
	Clean    bool // the environment began with nothing
	ShareNet bool
	Tmp      int64         // size of the private /tmp in bytes, 0 where nothing limits it
	Policies []string      // the policy files in force
	Mounts   []binds.Mount // Kind and Target only
}

// grants is the plan's Grants as words ended by NUL, the last of which is "end": a program that is linked without a JSON
// reader reads it.
func (p *Plan) grants() []byte {
	var b []byte
	word := func(key, value string) { b = append(append(append(append(b, key...), ' '), value...), 0) }
	network := "own"
	if p.Namespaces.ShareNet {
		network = "shared"
	}
	word("network", network)
	word("environment", p.level())
	word("mode", p.Mode)
	word("tmp", strconv.FormatInt(p.tmpSize(), 10))
	for _, f := range p.Policies {
		word("policy", f)
	}
	for _, m := range p.Mounts {
		word(m.Kind.String(), m.Target)
	}
	return append(b, "end\x00"...)
}

// tmpSize is the size of the private /tmp in bytes, 0 where nothing limits it.
func (p *Plan) tmpSize() int64 {
	for _, m := range p.Mounts {
		if m.Kind == binds.Tmpfs && m.Target == Tmp {
			return m.Size
		}
	}
	return 0
}

// ParseGrants reads the file GrantsFile. ok is false when it is not one, or not all of it.
func ParseGrants(data []byte) (g Grants, ok bool) {
	text, ok := strings.CutSuffix(string(data), "\x00end\x00")
	if !ok {
		return g, false
	}
	words := strings.Split(text, "\x00")
	values, ok := inOrder(words, "network", "environment", "mode", "tmp")
	if !ok {
		return g, false
	}
	g = Grants{ShareNet: values[0] == "shared", Clean: values[1] == "clean", Mode: values[2]}
	size, err := strconv.ParseInt(values[3], 10, 64)
	if err != nil || size < 0 || strconv.FormatInt(size, 10) != values[3] ||
		!g.ShareNet && values[0] != "own" || !g.Clean && values[1] != "scrubbed" {
		return Grants{}, false
	}
	g.Tmp = size
	for _, w := range words[len(values):] {
		name, path, _ := strings.Cut(w, " ")
		kind, known := binds.ParseKind(name)
		switch {
		case !strings.HasPrefix(path, "/"):
			return Grants{}, false
		case known:
			g.Mounts = append(g.Mounts, binds.Mount{Kind: kind, Target: path})
		case name == "policy" && g.Mounts == nil:
			g.Policies = append(g.Policies, path)
		default:
			return Grants{}, false
		}
	}
	return g, true
}

// inOrder returns the values of words that begin with keys, one word for each.
func inOrder(words []string, keys ...string) (values []string, ok bool) {
	if len(words) < len(keys) {
		return nil, false
	}
	for i, k := range keys {
		v, ok := strings.CutPrefix(words[i], k+" ")
		if !ok {
			return nil, false
		}
		values = append(values, v)
	}
	return values, true
}
