package toolchain

import (
	"io/fs"
	"strings"

	"github.com/selfcage/selfcage/internal/hostfs"
)

// Host is what Find may know.
type Host struct {
	View  *hostfs.View
	FS    fs.FS    // the file system of View; it should have ReadDir
	Env   []string // the caller's
	Dir   string   // working directory without links; "" when it is gone
	Homes []string // the caller's home by every name that it has

	// Visible says whether path means inside what it means on the host: it is there, and so is every link on the way.
	Visible func(path string) bool
	// Secret says whether path must not be shown without having been asked for: it is, holds or lies in a credential
	// root, or holds more than a run can need. Where it says no, it would for everything below. It is asked some twenty
	// times and should remember where the credential roots are.
	Secret func(path string) (why string, yes bool)
}

// Need is something that must exist inside for a path to mean there what it means outside.
type Need struct {
	Path string   // as something names it; every link on the way to it is needed with its own text
	Root string   // to be bound read-only, without links, a directory or a file; empty where the links are all that is missing
	Hide []string // files in Root that hold credentials, to be covered by empty ones
	// Home is a place below the cage's HOME, such as ".local/share/direnv/allow", where Root is needed as well, for
	// tools that look in HOME and know no variable. Mostly empty.
	Home    string
	Tree    bool   // a source tree that a file of another one names, which its user need not know
	By, Why string // "toolchain/uv", and what breaks or is silently different without it
}

// Pin is a variable to be set inside, since HOME is another one there and the tool would not find its data. It never has
// another value than the caller's own, where the caller has set it.
type Pin struct{ Name, Value, By, Why string }

// File is a small file to be made below the cage's HOME.
type File struct {
	Name    string // below HOME
	Data    []byte
	By, Why string
}

// Found is all that a run needs besides itself, in an order that depends on the host and the environment only.
type Found struct {
	Needs []Need
	Pins  []Pin
	Files []File
	Notes []string // what will be different inside although nothing fails
	Cold  []Cache  // caches that a command would use and finds empty inside
	Runs  []string // programs that commands start: themselves and their interpreters
}

// Find returns what commands need, each a path or a name to be looked up in PATH: the program and what it is there to
// execute. Nothing of it is writable, and no root is or holds a home, a directory above one, or what Secret names.
//
// # Limitations
//
// Paths that a script or a program has in its code are not found, but for the exec lines of a short wrapper. Nor is what a
// program opens with dlopen by a path of its own, or what PATH has in it only after the program changed it.
func Find(h Host, commands ...string) Found {
	f := newFinder(h)
	for _, c := range commands {
		f.commands[base(c)] = true
	}
	for _, s := range sources {
		f.by = "toolchain/" + s.name
		s.find(f)
	}
	f.by, f.starting = "toolchain/command", true
	for _, c := range commands {
		f.runs(c)
		f.cold(c)
	}
	f.packages()
	f.finish()
	return f.out
}

// sources are the recognisers. Those that others build on come first: what is found in PATH tells which tools are used.
var sources = [...]struct {
	name string
	find func(*finder)
}{
	{"cache", (*finder).granted},
	{"path", (*finder).searchPath},
	{"environment", (*finder).pathLists},
	{"loader", (*finder).loader},
	{"python", (*finder).python},
	{"pyenv", (*finder).pyenv},
	{"uv", (*finder).uv},
	{"environments", (*finder).managers},
	{"conda", (*finder).conda},
	{"go", (*finder).golang},
	{"rust", (*finder).rust},
	{"node", (*finder).node},
	{"npm", (*finder).npmConfig},
	{"mise", (*finder).mise},
	{"asdf", (*finder).asdf},
	{"java", (*finder).java},
	{"ccache", (*finder).ccache},
	{"sccache", (*finder).sccache},
	{"distcc", (*finder).distcc},
	{"gpu", (*finder).gpu},
	{"modules", (*finder).modules},
	{"direnv", (*finder).direnv},
	{"git", (*finder).git},
	{"cargo-path", (*finder).cargoPaths},
	{"node_modules", (*finder).nodeModules},
	{"git-config", (*finder).gitConfig},
	{"launcher", (*finder).launcher},
}

// finder collects what is found. A recogniser says what is used; the finder decides how much of it may be shown.
type finder struct {
	Host
	by   string // the recogniser that is at work
	home string // as HOME spells it, "" without one
	out  Found

	path      []pathDir
	env       map[string]string
	roots     []string          // of Needs so far
	hops      map[string]bool   // links that Needs so far bring along
	done      map[string]bool   // paths that were given to add
	inspected map[string]bool   // installation roots that were looked into
	run       map[string]bool   // programs that were looked into
	judged    map[string]string // Secret's answers, "" for no
	texts     map[string]string // content of small files
	sites     []site            // of environments, to be looked into at the end
	commands  map[string]bool   // names of what is run
	starting  bool              // what is found now belongs to a command
	links     int               // how many links in directories may still be followed
	heads     int               // how many scripts may still be looked into
}

type pathDir struct{ spelled, real string }

// A host with a thousand links in one directory must not make every start slow. What is left out then are links that
// lead out of a directory which is visible itself.
const (
	maxDirLinks = 500
	maxHeads    = 60
	maxSites    = 8
)

func newFinder(h Host) *finder {
	f := &finder{
		Host: h, links: maxDirLinks, heads: maxHeads,
		env: make(map[string]string, len(h.Env)), hops: make(map[string]bool, 32), done: make(map[string]bool, 64),
		inspected: make(map[string]bool, 16), run: make(map[string]bool, 8), commands: make(map[string]bool, 4), judged: make(map[string]string, 32),
		texts: make(map[string]string, 32),
	}
	for _, kv := range h.Env {
		name, value, ok := strings.Cut(kv, "=")
		if _, dup := f.env[name]; ok && !dup {
			f.env[name] = value
		}
	}
	f.home = f.env["HOME"]
	if !strings.HasPrefix(f.home, "/") || len(f.home) < 2 {
		f.home = ""
		if len(h.Homes) > 0 {
			f.home = h.Homes[0]
		}
	}
	f.home = strings.TrimRight(f.home, "/")
	return f
}

// inHome is a path below the caller's home, "" without one.
func (f *finder) inHome(rel string) string {
	if f.home == "" {
		return ""
	}
	return f.home + "/" + rel
}

// xdg is a path in one of the XDG directories, whose default is a path below the home.
func (f *finder) xdg(variable, def, rel string) string {
	if v := f.env[variable]; strings.HasPrefix(v, "/") {
		return strings.TrimRight(v, "/") + "/" + rel
	}
	return f.inHome(def + "/" + rel)
}

func (f *finder) config(rel string) string { return f.xdg("XDG_CONFIG_HOME", ".config", rel) }
func (f *finder) data(rel string) string   { return f.xdg("XDG_DATA_HOME", ".local/share", rel) }
func (f *finder) cache(rel string) string  { return f.xdg("XDG_CACHE_HOME", ".cache", rel) }
func (f *finder) state(rel string) string  { return f.xdg("XDG_STATE_HOME", ".local/state", rel) }

func (f *finder) note(s string) {
	for _, n := range f.out.Notes {
		if n == s {
			return
		}
	}
	f.out.Notes = append(f.out.Notes, s)
}

// pin sets a variable that the caller has not set.
func (f *finder) pin(name, value, why string) {
	if f.env[name] != "" || value == "" {
		return // empty is unset to all of them
	}
	for _, p := range f.out.Pins {
		if p.Name == name {
			return
		}
	}
	f.out.Pins = append(f.out.Pins, Pin{name, value, f.by, why})
}

// dataDir shows the directory in which a tool keeps its data, by the tool's own variable or by the default, and pins the
// variable, since the default follows HOME.
func (f *finder) dataDir(variable, def, why string) (dir string, ok bool) {
	dir = def
	if v, set := f.env[variable]; set {
		dir = v
	}
	if _, ok = f.add(dir, holding, why); ok {
		f.pin(variable, dir, why)
	}
	return dir, ok
}

// sourceTree is tree for what a file of the source tree, or of an environment in it, names.
func (f *finder) sourceTree(p, why string) (hostfs.Resolved, bool) {
	before := len(f.out.Needs)
	r, ok := f.tree(p, why)
	for i := before; i < len(f.out.Needs); i++ {
		f.out.Needs[i].Tree = true
	}
	return r, ok
}

// How much of the surroundings of a path is needed.
type extent int

const (
	itself       extent = iota // what the path leads to
	holding                    // the same, where a tool may have put credentials into it
	installation               // what it was installed with: the parent of bin
)

// tree shows what p leads to and nothing around it.
func (f *finder) tree(p, why string) (hostfs.Resolved, bool) { return f.add(p, itself, why) }

// installed shows what p leads to with all that was installed with it.
func (f *finder) installed(p, why string) (hostfs.Resolved, bool) { return f.add(p, installation, why) }

// add makes p mean inside what it means outside. It is false for what is not there or may not be shown.
func (f *finder) add(p string, how extent, why string) (r hostfs.Resolved, ok bool) {
	if strings.HasPrefix(p, "/") {
		p = f.resolve(p, "/") // /opt/x/bin/../lib works where /opt/x is shown
	}
	if !usable(p) {
		return r, false
	}
	r, err := f.walk(p)
	if err != nil || !r.Info.IsDir() && !r.Info.Mode().IsRegular() {
		return r, false
	}
	key := string("=~+"[how]) + p
	if done, again := f.done[key]; again {
		return r, done
	}
	root, full := f.rootOf(r, how)
	f.done[key] = root != ""
	if root == "" {
		reason, _ := f.secret(r.Path)
		if f.by != "toolchain/path" { // which the plan tells of
			f.note(p + " is not visible inside: " + reason)
		}
		return r, false
	}
	f.emit(p, r, root, how, why)
	if how == installation {
		f.beside(r, why)
		switch {
		case full != root && r.Info.IsDir():
			f.scan(root, root) // alone: what its links lead to has roots of its own
		case full == root:
			f.inspect(root)
		}
		f.farm(r)
	}
	return r, true
}

// usable says whether p can be followed at all: the meaning of ".." after a name depends on a directory that is only
// passed, which must then be there too.
func usable(p string) bool {
	if len(p) < 2 || len(p) > 4095 || p[0] != '/' || strings.ContainsAny(p, "\x00\n") {
		return false
	}
	return !strings.Contains(p, "/../") && !strings.HasSuffix(p, "/..")
}

// emit adds a Need for p, unless all of it is there already.
func (f *finder) emit(p string, r hostfs.Resolved, root string, how extent, why string) {
	have := f.shown(root)
	if have {
		root = ""
		if f.Visible(p) {
			return
		}
		missing := false
		for _, l := range r.Links {
			missing = missing || !f.hops[l.Path] && !f.within(l.Path)
		}
		if !missing {
			return
		}
	}
	f.out.Needs = append(f.out.Needs, Need{Path: p, Root: root, By: f.by, Why: why})
	for _, l := range r.Links {
		f.hops[l.Path] = true
	}
	if root != "" {
		f.roots = append(f.roots, root)
		if how != itself {
			f.out.Needs[len(f.out.Needs)-1].Hide = f.hide(root)
		}
	}
}

// within says whether p lies in a root that is needed anyway.
func (f *finder) within(p string) bool {
	for _, r := range f.roots {
		if hostfs.Within(p, r) {
			return true
		}
	}
	return false
}

// shown says whether p, which is without links, is there already.
func (f *finder) shown(p string) bool { return f.within(p) || f.Visible(p) }

// there says whether p is there already, with the links on the way.
func (f *finder) there(p string) bool {
	if f.Visible(p) {
		return true
	}
	r, err := f.walk(p)
	if err != nil || !f.shown(r.Path) {
		return false
	}
	for _, l := range r.Links {
		if !f.hops[l.Path] && !f.within(l.Path) && !f.Visible(l.Path) {
			return false
		}
	}
	return true
}

// finish drops what another root brings along, and joins neighbours.
func (f *finder) finish() {
	f.joinStores()
	all := f.out.Needs
	f.out.Needs = make([]Need, 0, len(all))
	along := make([]bool, len(all))
	for i, n := range all {
		if j := widest(all, i); n.Root != "" && n.Home == "" && j != i {
			along[i] = true
			all[j].Hide = union(all[j].Hide, n.Hide)
		}
	}
	for i, n := range all {
		if along[i] {
			if f.pathIn(n.Path) {
				continue
			}
			n.Root, n.Hide = "", nil
		}
		f.out.Needs = append(f.out.Needs, n)
	}
}

// widest returns the need whose root brings along that of need i: i itself, if there is none.
func widest(ns []Need, i int) int {
	best := i
	for j, n := range ns {
		if n.Root == "" || n.Home != "" || !hostfs.Within(ns[best].Root, n.Root) {
			continue
		}
		if len(n.Root) < len(ns[best].Root) || j < best {
			best = j
		}
	}
	return best
}

// pathIn says whether every link on the way to p and p itself lie in a root.
func (f *finder) pathIn(p string) bool {
	r, err := f.walk(p)
	if err != nil {
		return true
	}
	for _, l := range r.Links {
		if !f.within(l.Path) {
			return false
		}
	}
	return f.within(r.Path)
}

func union(a, b []string) []string {
	for _, s := range b {
		if !contains(a, s) {
			a = append(a, s)
		}
	}
	return a
}

func contains(list []string, s string) bool {
	for _, l := range list {
		if l == s {
			return true
		}
	}
	return false
}
