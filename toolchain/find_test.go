package toolchain

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/selfcage/selfcage/internal/fakehost"
	"github.com/selfcage/selfcage/internal/hostfs"
	"github.com/selfcage/selfcage/policy"
	"github.com/selfcage/selfcage/toolchain/internal/elftest"
)

// secrets are planted in every host; no run may see one.
var secrets = []string{"home/u/secret.txt", "home/u/.ssh/id_rsa", "home/u/.local/secret", "home/u/.local/share/secret",
	"home/u/.local/share/keyrings/login", "home/u/.config/secret", "home/u/.config/gh/hosts.yml", "home/u/.cache/secret",
	"home/u/.cargo/credentials.toml", "home/u/.cargo/credentials", "home/u/.netrc", "home/u/.npmrc", "home/u/.git-credentials",
	"home/v/secret", "etc/shadow", "home/u/.pypirc"}

// fixture is a fake host with what is expected of it: see the files in testdata. A file that begins with "ELF " is made one;
// files in bin directories and scripts are executable.
type fixture struct {
	fsys fstest.MapFS
	want []string
}

func load(t *testing.T, file string) fixture {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	a := txtar.Parse(data)
	var fx fixture
	rest := &txtar.Archive{Comment: a.Comment}
	for _, f := range a.Files {
		if f.Name == "@want" {
			fx.want = lines(string(f.Data))
			continue
		}
		f.Data = bytes.ReplaceAll(f.Data, []byte("  CRLF\n"), []byte("  \r\n"))
		rest.Files = append(rest.Files, f)
	}
	if fx.fsys, err = fakehost.Parse(txtar.Format(rest)); err != nil {
		t.Fatal(err)
	}
	for name, f := range fx.fsys {
		if words := strings.Fields(string(f.Data)); len(words) > 0 && words[0] == "ELF" {
			f.Data = elf(words[1:])
			f.Mode = 0o755
		}
		if f.Mode.IsRegular() && (strings.Contains(name, "bin/") || strings.HasPrefix(string(f.Data), "#!")) {
			f.Mode = 0o755
		}
	}
	for _, l := range []string{"bin", "sbin", "lib", "lib64"} {
		fx.fsys[l] = &fstest.MapFile{Data: []byte("usr/" + l), Mode: fs.ModeSymlink | 0o777}
	}
	for _, s := range secrets {
		if fx.fsys[s] == nil {
			fx.fsys[s] = &fstest.MapFile{Data: []byte("secret"), Mode: 0o600}
		}
	}
	return fx
}

func elf(words []string) []byte {
	var interp, runpath, rpath string
	var needed []string
	for _, w := range words {
		switch k, v, _ := strings.Cut(w, "="); k {
		case "interp":
			interp = v
		case "needed":
			needed = strings.Split(v, ",")
		case "runpath":
			runpath = v
		case "rpath":
			rpath = v
		}
	}
	return elftest.Build(true, interp, needed, runpath, rpath)
}

// cage is what a plan makes of a host: binds and links, as bubblewrap would.
type cage struct {
	view  *hostfs.View
	binds []string
	links map[string]bool
	hide  []string
}

func newCage(fsys fs.FS, dir string) *cage {
	c := &cage{view: hostfs.New(fsys), links: map[string]bool{}}
	for _, p := range []string{"/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc/alternatives", "/etc/ld.so.conf", "/etc/ld.so.conf.d",
		"/etc/ld-musl-x86_64.path", "/etc/ssl/certs", "/nix/store"} {
		c.show(p, "")
	}
	root, _ := Checkout(c.view, dir)
	c.show(root, "")
	return c
}

func (c *cage) show(p, root string) {
	r, err := c.view.Walk(p)
	if err != nil {
		return
	}
	for _, l := range r.Links {
		c.links[l.Path] = true
	}
	if root == "" {
		root = r.Path
	}
	c.binds = append(c.binds, root)
}

func (c *cage) within(p string) bool {
	return slices.ContainsFunc(c.binds, func(b string) bool { return hostfs.Within(p, b) })
}

func (c *cage) sees(p string) bool {
	r, err := c.view.Walk(p)
	if err != nil || !c.within(r.Path) || slices.Contains(c.hide, r.Path) {
		return false
	}
	for _, l := range r.Links {
		if !c.links[l.Path] && !c.within(l.Path) {
			return false
		}
	}
	return true
}

// apply is what the plan does with what was found. Links lie where no bind is, or come along with it.
func (c *cage) apply(t *testing.T, found Found) {
	t.Helper()
	for _, n := range found.Needs {
		r, err := c.view.Walk(n.Path)
		if err != nil {
			t.Errorf("need %+v: %v", n, err)
			continue
		}
		for _, l := range r.Links {
			c.links[l.Path] = true
		}
		if n.Root == "" {
			continue
		}
		if root, err := c.view.Walk(n.Root); err != nil || len(root.Links) > 0 || root.Path != n.Root {
			t.Errorf("root of %+v: not a path without links", n)
		}
		if n.By == "" || n.Why == "" {
			t.Errorf("need %+v without a reason", n)
		}
		c.binds = append(c.binds, n.Root)
		c.hide = append(c.hide, n.Hide...)
	}
}

func hostOf(fsys fs.FS, env []string, dir string, c *cage) Host {
	homes := []string{"/home/u"}
	view := hostfs.New(fsys)
	roots := sync.OnceValue(func() *policy.Roots {
		return policy.NewRoots(homes, func(string) string { return "" }, func(p string) (string, bool) {
			r, err := view.Walk(p)
			return r.Path, err == nil
		})
	})
	return Host{View: view, FS: fsys, Env: env, Dir: dir, Homes: homes, Visible: c.sees,
		Secret: func(p string) (string, bool) { return roots().TooBroad(p) }}
}

func TestFind(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) < 30 {
		t.Fatal(err, len(files))
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			fx := load(t, file)
			dir, env, run := "/home/u/empty", []string{"HOME=/home/u"}, []string(nil)
			fx.fsys["home/u/empty"] = &fstest.MapFile{Mode: fs.ModeDir | 0o755}
			words := func(l string) []string {
				w := strings.Fields(l)[1:]
				for i := range w {
					w[i] = strings.ReplaceAll(w[i], "%20", " ")
				}
				return w
			}
			for _, l := range fx.want {
				switch strings.Fields(l)[0] {
				case "env":
					env = append(env, words(l)...)
				case "dir":
					dir = words(l)[0]
				case "run":
					run = words(l)
				}
			}
			c := newCage(fx.fsys, dir)
			found := Find(hostOf(fx.fsys, env, dir, c), run...)
			if again := Find(hostOf(fx.fsys, env, dir, c), run...); !slices.EqualFunc(found.Needs, again.Needs, func(a, b Need) bool {
				return a.Path == b.Path && a.Root == b.Root && a.Why == b.Why
			}) {
				t.Error("not the same twice")
			}
			c.apply(t, found)
			for _, l := range fx.want {
				check(t, c, found, l, words)
			}
			for _, s := range secrets {
				if c.sees("/" + s) {
					t.Errorf("/%s is visible", s)
				}
			}
			if t.Failed() || os.Getenv("SHOW") != "" {
				for _, n := range found.Needs {
					t.Logf("%-14s %s -> %s %v %s", n.By, n.Path, n.Root, n.Hide, n.Home)
				}
				t.Log(found.Pins, found.Notes)
			}
		})
	}
}

func check(t *testing.T, c *cage, found Found, l string, words func(string) []string) {
	t.Helper()
	pin := func(name string) (string, bool) {
		for _, p := range found.Pins {
			if p.Name == name {
				return p.Value, true
			}
		}
		return "", false
	}
	has := func(root string) bool {
		return slices.ContainsFunc(found.Needs, func(n Need) bool { return n.Root == root })
	}
	switch verb, arg, _ := strings.Cut(l, " "); verb {
	case "env", "dir", "run":
	case "sees":
		for _, p := range words(l) {
			if !c.sees(p) {
				t.Errorf("%s is not visible", p)
			}
		}
	case "hidden":
		for _, p := range words(l) {
			if _, err := c.view.Walk(p); err != nil {
				t.Errorf("%s is not on this host", p)
			}
			if c.sees(p) {
				t.Errorf("%s is visible", p)
			}
		}
	case "covered":
		for _, p := range words(l) {
			if !slices.Contains(c.hide, p) {
				t.Errorf("%s is not covered", p)
			}
		}
	case "root":
		for _, p := range words(l) {
			if !has(p) {
				t.Errorf("%s is not a root", p)
			}
		}
	case "roots":
		n := 0
		for _, need := range found.Needs {
			if need.Root != "" {
				n++
			}
		}
		if arg != string(rune('0'+n)) {
			t.Errorf("%d roots, want %s", n, arg)
		}
	case "none":
		if len(found.Needs) > 0 {
			t.Errorf("needs %+v", found.Needs)
		}
	case "pin":
		for _, w := range words(l) {
			name, want, _ := strings.Cut(w, "=")
			if got, ok := pin(name); !ok || got != want {
				t.Errorf("%s is pinned to %q, want %q", name, got, want)
			}
		}
	case "nopin":
		for _, name := range words(l) {
			if v, ok := pin(name); ok {
				t.Errorf("%s is pinned to %q", name, v)
			}
		}
	case "note":
		if !slices.ContainsFunc(found.Notes, func(n string) bool { return strings.Contains(n, arg) }) {
			t.Errorf("no note %q", arg)
		}
	case "cold":
		if !slices.ContainsFunc(found.Cold, func(c Cache) bool { return c.Name == arg }) {
			t.Errorf("nothing says that %s starts empty", arg)
		}
	case "home":
		if !slices.ContainsFunc(found.Needs, func(n Need) bool { return n.Home == arg }) {
			t.Errorf("nothing at HOME/%s", arg)
		}
	case "file":
		name, want, _ := strings.Cut(arg, " ")
		want = strings.ReplaceAll(want, "|", "\n")
		for _, f := range found.Files {
			if f.Name == name && string(f.Data) == want {
				return
			}
		}
		t.Errorf("files %q, want %s with %q", found.Files, name, want)
	default:
		t.Errorf("unknown line %q", l)
	}
}
