package cli_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/selfcage/selfcage/internal/sandtest"
)

// The tests of toolchains compare what a tool says outside and inside, as it says it: a version, a prefix, the path of a
// module. With status 0 alone each of them would pass while another interpreter, compiler or checkout is used.

// same runs a command outside and inside, where flags of run come before "--" as in run, and returns what it printed,
// which must be the same in both.
func (s *site) same(words ...string) string {
	s.t.Helper()
	i := slices.Index(words, "--")
	out := s.command(append([]string{"/usr/bin/env"}, words[i+1:]...)...)
	in := s.run(words...)
	if out.status != in.status || out.out != in.out {
		s.t.Fatalf("%q:\noutside: status %d, printed\n%s%s\ninside: status %d, printed\n%s%s", words, out.status, out.out, out.err, in.status, in.out, in.err)
	}
	if out.status != 0 {
		s.t.Fatalf("%q: status %d:\n%s%s", words, out.status, out.out, out.err)
	}
	return in.out
}

// readOnly makes sure that nothing can be written into directories that a run sees.
func (s *site) readOnly(dirs ...string) {
	s.t.Helper()
	r := s.run(append([]string{"--", "sh", "-c", `for d; do echo lost >"$d/new-file"; done`, "sh"}, dirs...)...)
	for _, d := range dirs {
		if r.says(d + "/new-file: Read-only file system"); exists(d + "/new-file") {
			s.t.Errorf("%s can be written", d)
		}
	}
}

// secretFiles hold credentials, or what is nobody's business, in the places where people have them.
var secretFiles = []string{
	".ssh/id_test", ".netrc", ".npmrc", ".git-credentials", ".cargo/credentials.toml", ".local/share/keyrings/login.keyring",
	".config/gh/hosts.yml", ".config/pip/pip.conf", ".bash_history", ".docker/config.json", "letters/a.txt", "Documents/b.txt",
}

// plant puts secrets into the home, so that a grant that is too wide is seen.
func (s *site) plant() *site {
	s.t.Helper()
	for _, name := range secretFiles {
		s.write(filepath.Join(s.home, name), "[secret]\n_authToken = \""+homeSecret+"\"\n", 0o600)
	}
	return s
}

// noSecrets looks through all that is visible below the site and below HOME for what plant put there.
func (s *site) noSecrets(words ...string) {
	s.t.Helper()
	words = append(words, "--", "sh", "-c", `grep -rsF "the key of" "$1" "$2" ~; for f in "$@"; do cat "$f"; done; echo looked`, "sh", s.home, s.root)
	for _, name := range secretFiles {
		words = append(words, filepath.Join(s.home, name))
	}
	s.run(words...).hasNot(homeSecret).has("looked\n")
}

// need skips the test where a program that it needs is not installed.
func (s *site) need(program string) string {
	s.t.Helper()
	sandtest.Need(s.t, sandtest.Tool(program))
	p, err := sandtest.Program(program)
	must(s.t, err)
	return p
}

func (s *site) link(text, p string) string {
	s.t.Helper()
	must(s.t, os.MkdirAll(filepath.Dir(p), 0o755))
	must(s.t, os.Symlink(text, p))
	return p
}

// path0 is the site with directories first in PATH.
func (s *site) path0(dirs ...string) *site {
	return s.setenv("PATH=" + strings.Join(dirs, ":") + ":" + s.bin + ":" + cleanPath)
}

// python is a Python that lies elsewhere, made of the system's: its own executable, and its library by a link.
type python struct{ version, dir string } // "3.11"

// systemPython is the system's interpreter, its version and the file that it is.
func (s *site) systemPython() (version, file string) {
	s.t.Helper()
	sandtest.Need(s.t, sandtest.Python)
	r := s.command("/usr/bin/python3", "-c", `import sys, os; print("%d.%d" % sys.version_info[:2]); print(os.path.realpath(sys.executable))`).ok()
	words := strings.Fields(r.out)
	if len(words) != 2 || !exists("/usr/lib/python"+words[0]+"/os.py") {
		s.t.Skipf("needs a python3 with its library in /usr/lib: %q", r.out)
	}
	return words[0], words[1]
}

func (s *site) python(dir string) python {
	s.t.Helper()
	version, file := s.systemPython()
	must(s.t, os.MkdirAll(dir+"/bin", 0o755))
	copyFile(s.t, file, dir+"/bin/python"+version, 0o755)
	s.link("python"+version, dir+"/bin/python3")
	s.link("python3", dir+"/bin/python")
	must(s.t, os.MkdirAll(dir+"/lib", 0o755))
	s.link("/usr/lib/python"+version, dir+"/lib/python"+version)
	return python{version, dir}
}

// venv is an environment as uv lays it out.
func (s *site) venv(dir, base, version, cfg string) string {
	s.t.Helper()
	must(s.t, os.MkdirAll(dir+"/bin", 0o755))
	must(s.t, os.MkdirAll(dir+"/lib/python"+version+"/site-packages", 0o755))
	s.link(base+"/bin/python"+version, dir+"/bin/python")
	s.link("python", dir+"/bin/python3")
	s.write(dir+"/pyvenv.cfg", cfg, 0o644)
	return dir
}

const whichPython = `import sys, os; print(sys.version, sys.prefix, sys.base_prefix, sys.executable, os.__file__, sep="\n")`

// H17, H28, toolchains.md B1: Debian's python3 -m venv. Its python leads to /usr by three links.
func TestToolchainVenv(t *testing.T) {
	s := newSite(t, nil).plant()
	s.systemPython()
	v := s.root + "/venvs/v1"
	s.command("/usr/bin/python3", "-m", "venv", "--without-pip", v).ok()
	out := s.same("--", v+"/bin/python", "-c", whichPython)
	if f := strings.Split(out, "\n"); f[1] != v || f[2] != "/usr" || f[3] != v+"/bin/python" {
		t.Errorf("%q", out)
	}
	e := s.path0(v + "/bin").setenv("VIRTUAL_ENV=" + v)
	if e.same("--", "python", "-c", whichPython) != out {
		t.Error("by name it is another one")
	}
	// By a path with "..", which is where links must not be followed: beside them lies pyvenv.cfg.
	s.mkdir("sub")
	rel, err := filepath.Rel(s.path("sub"), v)
	must(t, err)
	if out := s.at(s.path("sub")).same("--", rel+"/bin/python3", "-c", whichPython); strings.Split(out, "\n")[1] == "/usr" {
		t.Errorf("%q", out)
	}
	// A script of the environment, and one by env(1).
	script := s.write(v+"/bin/tool", "#!"+v+"/bin/python3\n"+whichPython+"\n", 0o755)
	s.same("--", script)
	s.write("envtool", "#!/usr/bin/env python3\n"+whichPython+"\n", 0o755)
	if f := strings.Split(e.same("--", "./envtool"), "\n"); f[1] != v {
		t.Errorf("%q", f)
	}
	e.readOnly(v, v+"/bin", v+"/lib")
	e.noSecrets()
}

// Case 32, H28, H29, toolchains.md B3: the environment's python goes through an alias of a directory. All spellings of the
// links and of pyvenv.cfg lead to the same prefix and the same library.
func TestToolchainUV(t *testing.T) {
	s := newSite(t, nil).plant()
	store := s.home + "/.local/share/uv/python"
	py := s.python(store + "/cpython-3.99.2-linux")
	s.python(store + "/cpython-3.99.1-linux")
	s.link("cpython-3.99.2-linux", store+"/relative")
	s.link(py.dir, store+"/absolute")
	s.link("relative", store+"/twice")
	s.link("../share/uv/python/twice", s.home+"/.local/lib/elsewhere")
	for _, tt := range []struct{ name, base, home string }{
		{"relative", store + "/relative", "home = %s/bin\nversion_info = 3.99.2\n"},
		{"absolute", store + "/absolute", "home = %s/bin\nuv = 0.5\n"},
		{"two-level", store + "/twice", "home = %s/bin\n"},
		{"elsewhere", s.home + "/.local/lib/elsewhere", "home = %s/bin\n"},
		{"exact", py.dir, "home = %s/bin\n"},
		{"slash", store + "/relative", "home = %s/bin/\n"},
		{"spaces", store + "/relative", "  home   =   %s/bin  \n"},
		{"crlf", store + "/relative", "uv = 0.5\r\nhome = %s/bin\r\nversion_info = 3.99.2\r\n"},
		{"close", store + "/absolute", "home=%s/bin\ninclude-system-site-packages = false"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := *s
			s.t = t
			v := s.venv(s.path("v-"+tt.name), tt.base, py.version, strings.ReplaceAll(tt.home, "%s", tt.base))
			out := s.setenv("VIRTUAL_ENV="+v).same("--", v+"/bin/python", "-c", whichPython)
			if f := strings.Split(out, "\n"); f[1] != v || f[2] == "/usr" || !strings.HasPrefix(f[2], s.home) || strings.HasPrefix(f[4], "/usr") {
				t.Errorf("%q", out)
			}
			for _, e := range []*site{&s, s.path0(v + "/bin"), s.at(s.root)} { // without VIRTUAL_ENV, and from elsewhere
				if e.same("--", v+"/bin/python3", "-c", whichPython) != strings.Replace(out, "/bin/python\n", "/bin/python3\n", 1) {
					t.Errorf("another one without VIRTUAL_ENV in %s", e.dir)
				}
			}
			if e := s.path0(v + "/bin"); e.same("--", "python", "-c", whichPython) != out {
				t.Error("by name it is another one")
			}
			e := s.setenv("VIRTUAL_ENV=" + v)
			r := e.run("--", "sh", "-c", `readlink "$1/bin/python"; ls -d "$2/bin"`, "sh", v, tt.base).ok()
			if want := read(t, v+"/pyvenv.cfg"); !strings.HasPrefix(r.out, tt.base+"/bin/python"+py.version+"\n") || want == "" {
				t.Errorf("links: %s", r.out)
			}
			e.readOnly(v, py.dir, py.dir+"/bin", tt.base+"/bin")
			if r := e.run("--", "sh", "-c", `echo x >"$1/f"`, "sh", store+"/cpython-3.99.1-linux"); r.status == 0 || exists(store+"/cpython-3.99.1-linux/f") {
				t.Errorf("the other version can be written: %d", r.status)
			}
			e.noSecrets()
		})
	}
	// The environment of the working directory is used without having been asked for: by uv run, by make.
	s.venv(s.path(".venv"), store+"/relative", py.version, "home = "+store+"/relative/bin\n")
	s.mkdir("sub/dir")
	for _, e := range []*site{s, s.at(s.path("sub/dir"))} {
		s.write(".git/HEAD", "ref: refs/heads/main\n", 0o644)
		out := e.same("--", "sh", "-c", `exec "$0/.venv/bin/python" -c "$1"`, s.dir, whichPython)
		if f := strings.Split(out, "\n"); f[1] != s.path(".venv") || !strings.HasPrefix(f[2], s.home) {
			t.Errorf("%q", out)
		}
		e.noSecrets()
	}
}

// toolchains.md B4: virtualenv, with its seeds copied and as links into its application data.
func TestToolchainVirtualenv(t *testing.T) {
	s := newSite(t, nil).plant()
	s.systemPython()
	prog := s.need("virtualenv")
	for i, flags := range [][]string{{"--without-pip", "--no-setuptools", "--no-wheel"}, {"--symlink-app-data"}} {
		v := s.home + "/envs/e" + string(rune('0'+i))
		flags = slices.Replace(flags, 0, 1, map[bool]string{true: "--no-pip", false: flags[0]}[i == 0])
		if r := s.command(append(append([]string{prog, "-q", "-p", "/usr/bin/python3", "--no-download", "--no-periodic-update"}, flags...), v)...); r.status != 0 {
			t.Skipf("needs a virtualenv that works offline: %s%s", r.out, r.err)
		}
		out := s.path0(v+"/bin").setenv("VIRTUAL_ENV="+v).same("--", "python", "-c", whichPython)
		if f := strings.Split(out, "\n"); f[1] != v || f[2] != "/usr" {
			t.Errorf("%q", out)
		}
		if i > 0 {
			s.same("--", v+"/bin/python", "-c", "import setuptools, pip, os; print(pip.__file__, pip.__version__, setuptools.__file__, os.path.realpath(pip.__file__))")
			s.same("--", v+"/bin/pip", "--version")
		}
		e := s.setenv("VIRTUAL_ENV=" + v)
		e.readOnly(v, v+"/lib")
		e.noSecrets()
	}
}

// H30, toolchains.md B5: the tree that is imported outside is imported inside, though the environment holds another copy of
// the same name: PYTHONPATH, .pth, .egg-link and the finders of editable installs.
func TestToolchainSourceTree(t *testing.T) {
	s := newSite(t, nil).plant()
	version, _ := s.systemPython()
	v := s.root + "/venv"
	s.command("/usr/bin/python3", "-m", "venv", "--without-pip", v).ok()
	site := v + "/lib/python" + version + "/site-packages"
	for _, m := range []string{"viapath", "viapth", "viafinder", "viaegg", "vialink"} {
		s.write(site+"/"+m+"/__init__.py", "", 0o644)
	}
	tree := func(m, src string) string {
		s.write(s.root+"/src/"+m+"/pyproject.toml", "[project]\n", 0o644)
		s.write(s.root+"/src/"+m+"/"+src+"/"+m+"/__init__.py", "", 0o644)
		s.write(s.root+"/src/"+m+"/"+src+"/"+m+"/sub.py", "", 0o644)
		return filepath.Join(s.root, "src", m, src)
	}
	path, pth, finder, egg := tree("viapath", "."), tree("viapth", "src"), tree("viafinder", "lib/py"), tree("viaegg", ".")
	s.write(site+"/a.pth", "# comment\nimport sys; sys.path.insert(0, '"+pth+"')\n"+pth+"\n", 0o644)
	s.write(site+"/__editable__.viafinder.pth", "import __editable___viafinder_finder; __editable___viafinder_finder.install()\n", 0o644)
	s.write(site+"/__editable___viafinder_finder.py", "MAPPING = {'viafinder': '"+finder+"/viafinder'}\nimport sys, os\ndef install():\n    sys.path.insert(0, os.path.dirname(MAPPING['viafinder']))\n", 0o644)
	s.write(site+"/easy-install.pth", "import sys; sys.path[0:0] = ['"+egg+"']\n"+egg+"\n", 0o644)
	s.write(site+"/viaegg.egg-link", egg+"\n.\n", 0o644)
	must(t, os.RemoveAll(site+"/vialink"))
	s.link(tree("vialink", ".")+"/vialink", site+"/vialink")
	e := s.setenv("PYTHONPATH=" + path + "::relative:" + s.root + "/absent")
	out := e.same("--", v+"/bin/python", "-c", `
import importlib
for m in "viapath", "viapth", "viafinder", "viaegg", "vialink":
    print(importlib.import_module(m).__file__, importlib.import_module(m + ".sub").__file__)`)
	for _, d := range []string{path, pth, finder, egg} {
		if !strings.Contains(out, d+"/via") {
			t.Errorf("not from %s:\n%s", d, out)
		}
	}
	e = e.setenv("VIRTUAL_ENV=" + v)
	e.readOnly(path, pth, finder, egg)
	e.noSecrets()

	// A program that lies in a checkout imports what lies beside it.
	s.write(s.root+"/repo/.git/HEAD", "ref: refs/heads/main\n", 0o644)
	s.write(s.root+"/repo/lib/beside.py", "", 0o644)
	s.write(s.root+"/repo/tools/main.py", "#!/usr/bin/python3\nimport sys, os\nsys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + '/lib')\nimport beside\nprint(beside.__file__)\n", 0o755)
	s.same("--", s.root+"/repo/tools/main.py")
	s.same("--", "/usr/bin/python3", "-c", "print(1)")
}

// toolchains.md B5: pipx and Poetry put a link into ~/.local/bin; the script's own first line leads on to the environment, its
// python to an alias, and that to the interpreter.
func TestToolchainConsoleScript(t *testing.T) {
	s := newSite(t, nil).plant()
	store := s.home + "/.local/share/uv/python"
	py := s.python(store + "/cpython-3.99.2-linux")
	s.link("cpython-3.99.2-linux", store+"/alias")
	for _, venv := range []string{".local/share/pipx/venvs/app", ".local/share/pypoetry/venv"} {
		v := s.venv(filepath.Join(s.home, venv), store+"/alias", py.version, "home = "+store+"/alias/bin\n")
		name := filepath.Base(filepath.Dir(v))
		s.write(v+"/lib/python"+py.version+"/site-packages/"+name+"_pkg.py", "def main():\n    import sys, os\n    print(__file__, sys.argv, sys.prefix, sys.base_prefix, os.__file__)\n", 0o644)
		s.write(v+"/bin/"+name, "#!"+v+"/bin/python\nimport sys\nfrom "+name+"_pkg import main\nsys.exit(main())\n", 0o755)
		s.link(v+"/bin/"+name, s.home+"/.local/bin/"+name)
		e := s.path0(s.home + "/.local/bin")
		out := e.same("--", name, "a", "b c")
		if !strings.Contains(out, v+"/lib/") || !strings.Contains(out, store) {
			t.Errorf("%q", out)
		}
		s.same("--", s.home+"/.local/bin/"+name) // not in PATH
		e.readOnly(v, s.home+"/.local/bin")
		e.noSecrets()
	}
}

// toolchains.md B5: Poetry keeps an environment for each project in a cache below HOME, and makes another one where there is none.
func TestToolchainPoetry(t *testing.T) {
	s := newSite(t, nil).plant()
	py := s.python(s.root + "/py/3.99")
	v := s.venv(s.home+"/.cache/pypoetry/virtualenvs/proj-Ab1-py3.99", py.dir, py.version, "home = "+py.dir+"/bin\n")
	s.write(s.home+"/.local/bin/poetry", "#!/bin/sh\nshift\nexec \"${POETRY_VIRTUALENVS_PATH:-$HOME/.cache/pypoetry/virtualenvs}/proj-Ab1-py3.99/bin/$@\"\n", 0o755)
	e := s.path0(s.home + "/.local/bin")
	if out := e.same("--", "poetry", "run", "python", "-c", whichPython); !strings.Contains(out, "\n"+v+"\n"+py.dir+"\n") {
		t.Errorf("%q", out)
	}
	e.readOnly(v, py.dir)
	e.noSecrets()
}

// toolchains.md A1, B2: a Python of pyenv finds its library by RUNPATH; the shims choose a version by a file above the working
// directory, by the environment and by a file of pyenv's own. Each of them is silent about what it does not find.
func TestToolchainPyenv(t *testing.T) {
	s := newSite(t, nil).plant()
	sandtest.Need(t, sandtest.CC)
	root := s.home + "/.pyenv"
	fallback := s.root + "/usr-like/lib"
	for _, v := range []string{"3.11.7", "3.12.1", "fallback"} {
		dir := root + "/versions/" + v + "/lib"
		if v == "fallback" {
			dir = fallback
		}
		must(t, os.MkdirAll(dir, 0o755))
		src := s.write("lib.c", `const char *version(void) { return "`+v+`"; }`, 0o644)
		s.command("/usr/bin/cc", "-shared", "-fPIC", "-Wl,-soname,libpyver.so.1", "-o", dir+"/libpyver.so.1", src).ok()
		s.link("libpyver.so.1", dir+"/libpyver.so")
	}
	src := s.write("main.c", "#include <stdio.h>\nconst char *version(void);\nint main(int c, char **v) { return printf(\"%s %s\\n\", version(), v[0]) < 0; }\n", 0o644)
	for _, v := range []string{"3.11.7", "3.12.1"} {
		dir := root + "/versions/" + v
		must(t, os.MkdirAll(dir+"/bin", 0o755))
		s.command("/usr/bin/cc", "-o", dir+"/bin/python3", src, "-L"+dir+"/lib", "-lpyver", "-Wl,-rpath,"+dir+"/lib:"+fallback, "-Wl,--enable-new-dtags").ok()
		s.link("python3", dir+"/bin/python")
	}
	v := s.path("venv")
	must(t, os.MkdirAll(v+"/bin", 0o755))
	s.link(root+"/versions/3.11.7/bin/python3", v+"/bin/python3")
	s.link("python3", v+"/bin/python")
	s.write(v+"/pyvenv.cfg", "home = "+root+"/versions/3.11.7/bin\n", 0o644)
	if out := s.same("--", v+"/bin/python"); out != "3.11.7 "+v+"/bin/python\n" {
		t.Errorf("%q", out)
	}
	s.setenv("VIRTUAL_ENV="+v).readOnly(root+"/versions/3.11.7", root+"/versions/3.11.7/lib")

	// The shims, shortened: as pyenv's own, they give their name to pyenv exec.
	s.write(root+"/shims/python", "#!/usr/bin/env bash\nset -e\nprogram=\"${0##*/}\"\nexport PYENV_ROOT=\""+root+"\"\nexec \""+root+"/libexec/pyenv\" exec \"$program\" \"$@\"\n", 0o755)
	s.write(root+"/libexec/pyenv", `#!/usr/bin/env bash
find_version() {
	[ -z "$PYENV_VERSION" ] || { echo "$PYENV_VERSION"; return; }
	local d=$PWD
	while :; do
		[ ! -f "$d/.python-version" ] || { cat "$d/.python-version"; return; }
		[ -n "$d" ] || break
		d=${d%/*}
	done
	cat "$PYENV_ROOT/version" 2>/dev/null || echo system
}
v=$(find_version)
echo "chose $v"
shift
[ "$v" != system ] || exec "/usr/bin/$1"
exec "$PYENV_ROOT/versions/$v/bin/$1"
`, 0o755)
	s.write(root+"/version", "3.11.7\n", 0o644)
	s.mkdir("a/b")
	deep := s.at(s.path("a/b")).path0(root+"/plugins/pyenv-virtualenv/shims", root+"/shims", root+"/bin")
	check := func(e *site, want string) {
		t.Helper()
		if out := e.same("--", "python"); !strings.HasPrefix(out, "chose "+want+"\n"+want+" ") {
			t.Errorf("%q, want %s", out, want)
		}
	}
	check(deep, "3.11.7")
	check(deep.setenv("PYENV_VERSION=3.12.1"), "3.12.1")
	s.write("a/.python-version", "3.12.1\n", 0o644)
	check(deep, "3.12.1")
	check(deep.setenv("PYENV_ROOT="+root), "3.12.1")
	deep.readOnly(root, root+"/shims", root+"/versions")
	deep.noSecrets()
}
