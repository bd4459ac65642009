package toolchain

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/selfcage/selfcage/internal/hostfs"
)

// counting counts what would be system calls on a host: a directory or a file of some length costs three or four.
type counting struct {
	fsys fs.FS
	n    map[string]int
}

func (c counting) Open(name string) (fs.File, error) { c.n["open"] += 3; return c.fsys.Open(name) }
func (c counting) Lstat(name string) (fs.FileInfo, error) {
	c.n["lstat"]++
	return fs.Lstat(c.fsys, name)
}
func (c counting) ReadLink(name string) (string, error) {
	c.n["readlink"]++
	return fs.ReadLink(c.fsys, name)
}
func (c counting) ReadDir(name string) ([]fs.DirEntry, error) {
	c.n["readdir"] += 4
	return fs.ReadDir(c.fsys, name)
}
func (c counting) ReadFile(name string) ([]byte, error) {
	c.n["readfile"] += 4
	return fs.ReadFile(c.fsys, name)
}

// developer is a host with a uv environment in a Go workspace, a PATH of 40 entries, that many links in .local/bin to pipx and
// uv tools, nvm, rustup, pyenv and a JDK. root is put before every path, for one on the disk.
func developer(root string, tools int) (files map[string]string, links map[string]string, env []string, dir string) {
	home := root + "/home/u"
	uv := home + "/.local/share/uv/python"
	files = map[string]string{
		uv + "/cpython-3.12.3/bin/python3.12":                   "\x7fELF",
		home + "/w/.git/HEAD":                                   "x",
		home + "/w/p/.venv/pyvenv.cfg":                          "home = " + uv + "/cpython-3.12/bin\nuv = 1\n",
		home + "/w/p/.venv/lib/python3.12/site-packages/_e.pth": home + "/src/e\n",
		home + "/src/e/pyproject.toml":                          "x",
		home + "/w/go.work":                                     "go 1.25\nuse (\n./p\n./q\n../lib\n)\n",
		home + "/w/p/go.mod":                                    "module p\nreplace x => ../../fork\n",
		home + "/w/q/go.mod":                                    "module q\n",
		home + "/lib/go.mod":                                    "module lib\n",
		home + "/fork/go.mod":                                   "module fork\n",
		home + "/go/pkg/mod/cache/x":                            "x",
		home + "/.config/go/env":                                "GOFLAGS=-mod=mod\n",
		home + "/.cache/go-build/x":                             "x",
		home + "/.cargo/bin/rustup":                             "\x7fELF",
		home + "/.cargo/registry/x":                             "x",
		home + "/.rustup/toolchains/stable/bin/rustc":           "x",
		home + "/.pyenv/shims/python":                           "#!/bin/sh\n",
		home + "/.pyenv/versions/3.11/bin/python":               "x",
		home + "/.nvm/versions/node/v20/bin/node":               "\x7fELF",
		home + "/.nvm/versions/node/v20/lib/node_modules/npm/x": "x",
		home + "/.gitconfig":                                    "[user]\nname = u\n",
		home + "/.npmrc":                                        "//x/:_authToken=t\n",
		home + "/.local/bin/uv":                                 "\x7fELF",
		root + "/opt/jdk/bin/java":                              "x",
		root + "/opt/jdk/lib/security/cacerts":                  "x",
		root + "/opt/go/bin/go":                                 "\x7fELF",
		root + "/opt/go/src/x":                                  "x",
	}
	links = map[string]string{
		uv + "/cpython-3.12":                        "cpython-3.12.3",
		home + "/w/p/.venv/bin/python":              uv + "/cpython-3.12/bin/python3.12",
		home + "/w/p/.venv/bin/python3":             "python",
		home + "/.cargo/bin/cargo":                  "rustup",
		home + "/.cargo/bin/rustc":                  "rustup",
		home + "/.nvm/versions/node/v20/bin/npm":    "../lib/node_modules/npm/x",
		home + "/.local/bin/python3.12":             uv + "/cpython-3.12/bin/python3.12",
		home + "/.local/share/uv/tools/t0/lib/link": "../..",
	}
	for i := range tools {
		n := strconv.Itoa(i)
		tool := home + "/.local/share/uv/tools/t" + n
		if i > 9 {
			tool = home + "/.local/share/pipx/venvs/t" + strconv.Itoa(i%10)
		}
		files[tool+"/bin/run"+n] = "#!" + tool + "/bin/python\n"
		files[tool+"/pyvenv.cfg"] = "home = " + uv + "/cpython-3.12/bin\n"
		files[tool+"/lib/python3.12/site-packages/x/__init__.py"] = ""
		links[tool+"/bin/python"] = uv + "/cpython-3.12/bin/python3.12"
		links[home+"/.local/bin/run"+n] = tool + "/bin/run" + n
	}
	path := []string{home + "/w/p/.venv/bin", home + "/.local/bin", home + "/go/bin", home + "/.cargo/bin", home + "/.pyenv/shims",
		home + "/.pyenv/bin", home + "/.nvm/versions/node/v20/bin", root + "/opt/go/bin", root + "/opt/jdk/bin"}
	for i := len(path); i < 37; i++ {
		p := root + "/opt/pkg" + strconv.Itoa(i) + "/bin"
		files[p+"/tool"] = "x"
		files[hostfs.Parent(p)+"/lib/x"] = "x"
		path = append(path, p)
	}
	path = append(path, "/usr/local/bin", "/usr/bin", "/bin")
	return files, links, []string{"HOME=" + home, "PATH=" + strings.Join(path, ":"), "VIRTUAL_ENV=" + home + "/w/p/.venv"}, home + "/w/p"
}

// Planning for a uv environment, a Go workspace and a PATH of 40 entries stays cheap, and the mounts are few.
func TestBudget(t *testing.T) {
	files, links, env, dir := developer("", 80)
	m := fstest.MapFS{"usr/bin/x": {}, "usr/local/bin/y": {}, "bin": {Data: []byte("usr/bin"), Mode: fs.ModeSymlink}}
	for p, data := range files {
		m[p[1:]] = &fstest.MapFile{Data: []byte(data), Mode: 0o755}
	}
	for p, text := range links {
		m[p[1:]] = &fstest.MapFile{Data: []byte(text), Mode: fs.ModeSymlink}
	}
	c := newCage(m, dir)
	calls := counting{m, map[string]int{}}
	h := hostOf(calls, env, dir, c)
	found := Find(h, "python")
	total, roots := 0, 0
	for _, n := range calls.n {
		total += n
	}
	for _, n := range found.Needs {
		if n.Root != "" {
			roots++
		}
	}
	c.apply(t, found)
	for p := range links {
		if strings.Contains(p, "/bin/") && !c.sees(p) {
			t.Errorf("%s is not visible", p)
		}
	}
	t.Logf("%d calls %v, %d needs, %d roots", total, calls.n, len(found.Needs), roots)
	if total > 2000 {
		t.Errorf("%d file-system calls, want at most 2000", total)
	}
	if roots > 60-10 {
		t.Errorf("%d roots leave too little of 60 mounts", roots)
		for _, n := range found.Needs {
			t.Log(n.By, n.Path, n.Root)
		}
	}
}

func BenchmarkFind(b *testing.B) {
	root := b.TempDir()
	files, links, env, dir := developer(root, 20)
	for p, data := range files {
		os.MkdirAll(filepath.Dir(p), 0o755)
		os.WriteFile(p, []byte(data), 0o755)
	}
	for p, text := range links {
		os.MkdirAll(filepath.Dir(p), 0o755)
		os.Symlink(text, p)
	}
	c := newCage(hostfs.OS{}, dir)
	b.ReportAllocs()
	for b.Loop() {
		h := hostOf(hostfs.OS{}, env, dir, c)
		h.Homes = []string{root + "/home/u"}
		Find(h, "python")
	}
}
