package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/selfcage/selfcage/internal/sandtest"
)

// tool is a script that says which one it is.
func (s *site) tool(p, says string) string {
	s.t.Helper()
	return s.write(p, "#!/bin/sh\necho "+says+" \"${0##*/}\" \"$@\"\n", 0o755)
}

// Case 33 (TNG/oh-my-agentic-coder#302), toolchains.md A1, B7: PATH goes through links that are called current or latest. What is
// useless in PATH is left out without a word, and grants nothing.
func TestToolchainPath(t *testing.T) {
	s := newSite(t, nil).plant()
	nvm := s.home + "/.nvm"
	s.tool(nvm+"/versions/v20/bin/tool", "v20")
	s.tool(nvm+"/versions/v18/bin/tool", "v18")
	s.link("versions/v20", nvm+"/current")
	s.link(nvm+"/current", s.home+"/twice")
	s.tool(s.root+"/later/bin/tool", "later")
	later := s.root + "/later/bin"
	for _, dir := range []string{nvm + "/current/bin", s.home + "/twice/bin", s.home + "/twice/bin/", s.home + "//twice/./bin", nvm + "/versions/../current/bin"} {
		e := s.path0(dir, later)
		if out := e.same("--", "tool", "a"); out != "v20 tool a\n" {
			t.Errorf("%s: %q", dir, out)
		}
		e.same("--", "sh", "-c", "command -v tool; tool b; readlink \"$0\"", nvm+"/current")
		e.noSecrets()
	}
	file := s.write(s.home+"/afile", "x\n", 0o644)
	locked := s.home + "/locked"
	s.tool(locked+"/tool", "locked")
	must(t, os.Chmod(locked, 0))
	t.Cleanup(func() { os.Chmod(locked, 0o755) })
	if os.Getuid() == 0 { // who may go everywhere
		locked = s.root + "/absent"
	}
	s.tool("rel/tool", "relative")
	s.tool(s.home+"/work/bin/tool2", "work")
	s.write(s.home+"/work/private.txt", homeSecret, 0o644)
	odd := s.path0(file, s.root+"/missing", "", ".", "none", locked, s.home, "/", s.home+"/.ssh", s.home+"/work/bin", nvm+"/current/bin", later)
	if out := odd.same("--", "tool"); out != "v20 tool\n" {
		t.Errorf("%q", out)
	}
	odd.same("--", "tool2")
	odd.run("--", "sh", "-c", `cat "$1/afile" "$1/work/private.txt"; ls -A "$1"`, "sh", s.home).hasNot("private.txt\n", "letters")
	odd.noSecrets()
	odd.readOnly(s.home+"/work/bin", nvm+"/versions/v20/bin", later)
	// A relative entry keeps its meaning where the working directory is, and nothing is granted for it elsewhere.
	s.path0("rel").same("--", "tool", "x")
	s.at(s.path("rel")).path0(".").same("--", "tool", "x")
	// What is not shown is told of.
	r := odd.selfcage("run", "--", "true").ok().says("not visible inside, though in PATH: ", s.home)
	r.hasNot(file, s.root+"/missing")
}

// toolchains.md B10, B11, B19: names that lead through /etc/alternatives, and #! lines by env(1).
func TestToolchainAlternatives(t *testing.T) {
	s := newSite(t, nil).plant()
	s.same("--", "awk", `BEGIN { print 6*7; "readlink -f /usr/bin/awk" | getline x; print x }`)
	for _, name := range []string{"awk", "cc", "java", "editor", "which", "pager", "nc"} {
		if exists("/usr/bin/" + name) {
			s.same("--", "sh", "-c", `command -v "$1"; readlink "/usr/bin/$1"; readlink -e "/usr/bin/$1"`, "sh", name)
		}
	}
	s.write("script", "#!/usr/bin/env -S awk -f\nBEGIN { print \"by env\" }\n", 0o755)
	s.same("--", "./script")
	own := s.root + "/opt/interp"
	s.write(own+"/bin/interp", "#!/bin/sh\necho \"interp of its own\"; cat \"$(dirname \"$0\")/../lib/data\" \"$1\"\n", 0o755)
	s.write(own+"/lib/data", "data beside bin\n", 0o644)
	s.write("run.x", "#!/usr/bin/env interp\nthe script\n", 0o755)
	s.write("run.abs", "#! "+own+"/bin/interp\nthe script\n", 0o755)
	out := s.path0(own+"/bin").same("--", "./run.x")
	if !strings.HasPrefix(out, "interp of its own\ndata beside bin\n") {
		t.Errorf("%q", out)
	}
	s.same("--", "./run.abs") // not in PATH
	s.write(s.root+"/wrap/bin/wrapped", "#!/bin/sh\nexec "+own+"/bin/interp \"$0\"\n", 0o755)
	s.path0(s.root+"/wrap/bin").same("--", "wrapped")
	s.noSecrets()
}

// toolchains.md B10, B11: the JDK reads what Debian keeps in /etc, and would fail or trust nobody without it.
func TestToolchainJava(t *testing.T) {
	s := newSite(t, nil).plant()
	s.need("javac")
	s.write("S.java", `import javax.net.ssl.*;
public class S {
	public static void main(String[] a) throws Exception {
		System.out.println(System.getProperty("java.version") + " " + System.getProperty("java.home"));
		TrustManagerFactory f = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
		f.init((java.security.KeyStore) null);
		System.out.println(((X509TrustManager) f.getTrustManagers()[0]).getAcceptedIssuers().length > 0);
		System.out.println(java.security.Security.getProviders().length);
	}
}
`, 0o644)
	s.command(s.need("javac"), "-d", s.dir, "S.java").ok()
	out := s.same("--", "java", "-Xshare:auto", "-cp", ".", "S")
	jvm, err := filepath.EvalSymlinks(s.need("java"))
	must(t, err)
	home := filepath.Dir(filepath.Dir(jvm))
	link := s.link(home, s.home+"/.sdkman/candidates/java/current")
	e := s.path0(link + "/bin").setenv("JAVA_HOME=" + link)
	if e.same("--", "java", "-cp", ".", "S") != out || e.same("--", "sh", "-c", `"$JAVA_HOME/bin/java" -cp . S`) != out {
		t.Error("by JAVA_HOME it is another one")
	}
	e.readOnly(home, link)
	e.noSecrets()
}

// toolchains.md B15: a farm of stow, folded and not, in a prefix of its own and in ~/.local.
func TestToolchainStow(t *testing.T) {
	s := newSite(t, nil).plant()
	stow := s.need("stow")
	for _, prefix := range []string{s.root + "/usrlocal", s.home + "/.local"} {
		s.write(prefix+"/stow/tool-1.0/bin/stowed", "#!/bin/sh\necho stowed; cat \""+prefix+"/share/stowed/data\"\n", 0o755)
		s.write(prefix+"/stow/tool-1.0/share/stowed/data", "its data\n", 0o644)
		s.write(prefix+"/stow/other-2/bin/other", "#!/bin/sh\necho other\n", 0o755)
		s.command(stow, "-d", prefix+"/stow", "-t", prefix, "tool-1.0").ok()
		if prefix != s.home+"/.local" { // which is not shown as a whole
			s.write(prefix+"/var/stowed/state", "of the prefix\n", 0o644)
			s.path0(prefix+"/bin").same("--", "cat", prefix+"/var/stowed/state")
		}
		if out := s.path0(prefix+"/bin").same("--", "stowed"); out != "stowed\nits data\n" {
			t.Errorf("%q", out)
		}
		s.command(stow, "-d", prefix+"/stow", "-t", prefix, "other-2").ok() // unfolds bin
		e := s.path0(prefix + "/bin")
		e.same("--", "stowed")
		e.same("--", "other")
		e.readOnly(prefix+"/bin", prefix+"/stow/tool-1.0/bin")
		e.noSecrets()
	}
}

// library compiles a shared library that says which one it is.
func (s *site) library(dir, says string) {
	s.t.Helper()
	sandtest.Need(s.t, sandtest.CC)
	src := s.write("says.c", `const char *says(void) { return "`+says+`"; }`, 0o644)
	must(s.t, os.MkdirAll(dir, 0o755))
	s.command("/usr/bin/cc", "-shared", "-fPIC", "-Wl,-soname,libsays.so.1", "-o", dir+"/libsays.so.1.0", src).ok()
	s.link("libsays.so.1.0", dir+"/libsays.so.1")
	s.link("libsays.so.1", dir+"/libsays.so")
}

// app compiles a program that asks the library.
func (s *site) app(p, lib string, flags ...string) {
	s.t.Helper()
	src := s.write("app.c", "#include <stdio.h>\n#include <unistd.h>\nconst char *says(void);\nint main(void) { char b[4096]; ssize_t n = readlink(\"/proc/self/exe\", b, sizeof b);\n return printf(\"%s %.*s\\n\", says(), (int)n, b) < 0; }\n", 0o644)
	must(s.t, os.MkdirAll(filepath.Dir(p), 0o755))
	s.command(append([]string{"/usr/bin/cc", "-o", p, src, "-L" + lib, "-lsays"}, flags...)...).ok()
}

// toolchains.md A2, B23: RUNPATH with $ORIGIN, reached by links of the directory and of the file; a library that needs another.
func TestToolchainRunpath(t *testing.T) {
	s := newSite(t, nil).plant()
	opt := s.root + "/opt"
	s.library(opt+"/app-1.2/lib", "one two")
	s.library(s.root+"/fallback", "fallback")
	s.app(opt+"/app-1.2/bin/app", opt+"/app-1.2/lib", "-Wl,--enable-new-dtags", "-Wl,-rpath,$ORIGIN/../lib:"+s.root+"/fallback")
	s.link("app-1.2", opt+"/app")
	s.link(opt+"/app/bin/app", s.home+"/.local/bin/app")
	want := "one two " + opt + "/app-1.2/bin/app\n"
	if out := s.same("--", opt+"/app/bin/app"); out != want {
		t.Errorf("%q", out)
	}
	for _, dir := range []string{opt + "/app/bin", s.home + "/.local/bin", opt + "/app-1.2/bin"} {
		e := s.path0(dir)
		if out := e.same("--", "app"); out != want {
			t.Errorf("%q", out)
		}
		e.same("--", "sh", "-c", "app && command -v app")
		e.readOnly(opt+"/app-1.2/lib", opt+"/app-1.2/bin")
		e.noSecrets()
	}
	// DT_RPATH, absolute, elsewhere than beside the program.
	s.app(s.root+"/elsewhere/app2", opt+"/app-1.2/lib", "-Wl,--disable-new-dtags", "-Wl,-rpath,"+opt+"/app/lib")
	s.same("--", s.root+"/elsewhere/app2")
}

// toolchains.md A1, B16: what a module brings into the environment is there, so that the compiler, the library and the headers are
// those of the module and not the system's.
func TestToolchainModules(t *testing.T) {
	s := newSite(t, nil).plant()
	mod := s.root + "/sw/gcc/13.1"
	s.library(mod+"/lib64", "the module's")
	s.library(s.root+"/sys/lib", "the system's")
	s.app(s.path("app"), mod+"/lib64", "-Wl,-rpath,"+s.root+"/sys/lib")
	s.tool(mod+"/bin/gcc", "gcc 13.1")
	s.write(mod+"/include/says.h", "#define SAYS \"the module's header\"\n", 0o644)
	s.write(mod+"/lib64/pkgconfig/says.pc", "Name: says\nDescription: x\nVersion: 13.1\n", 0o644)
	s.write(s.root+"/modulefiles/gcc/13.1", "#%Module\nprepend-path PATH "+mod+"/bin\nprepend-path LD_LIBRARY_PATH "+mod+"/lib64\nprepend-path CPATH "+mod+"/include\nprepend-path PKG_CONFIG_PATH "+mod+"/lib64/pkgconfig\n", 0o644)
	// A view of Spack: links into its store.
	view := s.root + "/view/lib"
	s.link(mod+"/lib64/libsays.so.1", view+"/libsays.so.1")
	s.write("h.c", "#include <says.h>\nSAYS\n", 0o644)
	check := func(t *testing.T, e *site) {
		t.Helper()
		if out := e.same("--", "./app"); out != "the module's "+s.path("app")+"\n" {
			t.Errorf("%q", out)
		}
		if out := e.same("--", "gcc", "x"); out != "gcc 13.1 gcc x\n" {
			t.Errorf("%q", out)
		}
		e.same("--", "/usr/bin/cc", "-E", "-P", "h.c")
		if exists("/usr/bin/pkg-config") {
			e.same("--", "pkg-config", "--modversion", "says")
		}
		e.readOnly(mod+"/lib64", mod+"/bin", mod+"/include")
		e.noSecrets()
	}
	e := s.path0(mod+"/bin").setenv("LD_LIBRARY_PATH="+mod+"/lib64", "CPATH="+mod+"/bin/../include", "PKG_CONFIG_PATH="+mod+"/lib64/pkgconfig", "LOADEDMODULES=gcc/13.1")
	check(t, e)
	if out := s.setenv("LD_LIBRARY_PATH="+view).same("--", "./app"); !strings.HasPrefix(out, "the module's ") {
		t.Errorf("%q", out)
	}
	// The module command itself, elsewhere than in /usr, and a module that no MODULEPATH names any more.
	s.write(s.root+"/lmod/8.7/init/sh", "module() { echo \"lmod of $MODULESHOME\"; cat \"$_LMFILES_\"; }\n", 0o644)
	file := s.write(s.root+"/elsewhere/1.0.lua", "-- a module\n", 0o644)
	lmod := s.setenv("MODULESHOME="+s.root+"/lmod/8.7", "LMOD_PKG="+s.root+"/lmod/8.7", "_LMFILES_="+file)
	lmod.same("--", "sh", "-c", `. "$MODULESHOME/init/sh"; module`)
	lmod.readOnly(s.root + "/lmod/8.7")
	lmod.noSecrets()
	t.Run("modulecmd", func(t *testing.T) {
		s := *s
		s.t = t
		s.need("modulecmd")
		init := "/usr/share/modules/init/bash"
		if !exists(init) {
			t.Skipf("needs %s", init)
		}
		// As a shell of a user: module load, and then selfcage run in what it left.
		const load = `. /usr/share/modules/init/bash; module use "$0/modulefiles"; module load gcc/13.1; `
		for _, cmd := range []string{"./app", "gcc y", `module -t list 2>&1`, `echo "$LOADEDMODULES $_LMFILES_ $MODULEPATH"`,
			`module avail -t gcc 2>&1`, `module unload gcc; gcc --version | head -1`, `cat /etc/environment-modules/modulespath`} {
			line := strings.Replace(load, "$0", s.root, 1)
			outside := s.sh(line+`bash -c "$1"`, cmd).ok().out
			inside := s.sh(line+`selfcage run --quiet -- bash -c "$1"`, cmd).ok()
			if inside.out != outside || outside == "" {
				t.Errorf("%s:\noutside %q\ninside %q %s", cmd, outside, inside.out, inside.err)
			}
		}
	})
}

// toolchains.md B17: ccache behind the names of the compilers. It looks by what name it was called, and writes to its directory.
func TestToolchainCcache(t *testing.T) {
	s := newSite(t, nil).plant()
	sandtest.Need(t, sandtest.CC)
	s.need("ccache")
	if !exists("/usr/lib/ccache/gcc") {
		t.Skip("needs /usr/lib/ccache/gcc")
	}
	s.write("m.c", "int main(void) { return 0; }\n", 0o644)
	s.write(s.home+"/.config/ccache/ccache.conf", "max_size = 77M\n", 0o644)
	e := s.path0("/usr/lib/ccache")
	e.same("--", "sh", "-c", "command -v gcc; gcc -dumpversion")
	if out := e.same("--", "sh", "-c", "ccache -k max_size"); !strings.HasPrefix(out, "77") {
		t.Errorf("%q", out)
	}
	e.run("--write", ".", "--", "sh", "-c", "gcc -c m.c && gcc m.o -o m && ./m && ccache -s -v").ok().silent()
	// Without a grant it starts empty, and says so; with one it hits what was there.
	must(t, os.MkdirAll(s.home+"/.cache/ccache", 0o755))
	e.sh("rm -f m.o; gcc -c m.c").ok()
	e.selfcage("run", "--", "true").ok().says("nothing new is kept", s.home+"/.cache/ccache", "--cache=ccache")
	r := e.run("--cache", "ccache", "--write", ".", "--", "sh", "-c", "rm m.o; gcc -c m.c && ccache -s").ok()
	if !strings.Contains(r.out, "Hits:               1 /") && !strings.Contains(r.out, "cache hit (direct)                     1") {
		t.Errorf("no hit of what was compiled outside:\n%s", r.out)
	}
	e.noSecrets()
}

// toolchains.md A1, B7: npm behind a link whose own text matters; packages that are links to a checkout; pnpm's layout.
func TestToolchainNode(t *testing.T) {
	s := newSite(t, nil).plant()
	s.need("node")
	s.same("--", "node", "-p", "process.version + process.execPath")
	if exists("/usr/bin/npm") {
		s.same("--", "npm", "--version")
		s.same("--", "npx", "--version")
		s.write(s.home+"/.npmrc", "prefix = "+s.home+"/.npm-global\nregistry=http://127.0.0.1:9/\n//127.0.0.1:9/:_authToken="+homeSecret+"\n", 0o600)
		s.tool(s.home+"/.npm-global/bin/gtool", "global")
		e := s.path0(s.home + "/.npm-global/bin")
		e.same("--", "sh", "-c", "npm config get prefix; npm config get registry; gtool")
		e.noSecrets()
	}
	// npm link, a workspace, pnpm.
	s.write(s.root+"/src/linked/package.json", `{"name": "linked", "main": "m.js"}`, 0o644)
	s.write(s.root+"/src/linked/m.js", "module.exports = __filename\n", 0o644)
	s.write("node_modules/.pnpm/a@1/node_modules/a/index.js", "module.exports = __filename + require('b')\n", 0o644)
	s.write("node_modules/.pnpm/b@1/node_modules/b/index.js", "module.exports = __filename\n", 0o644)
	s.link("../../b@1/node_modules/b", s.path("node_modules/.pnpm/a@1/node_modules/b"))
	s.link(".pnpm/a@1/node_modules/a", s.path("node_modules/a"))
	s.link("../../src/linked", s.path("node_modules/linked"))
	must(t, os.MkdirAll(s.path("node_modules/@scope"), 0o755))
	s.link(s.root+"/src/linked", s.path("node_modules/@scope/linked"))
	s.mkdir("deep/er")
	s.write("deep/er/main.js", "console.log(require('a'), require('linked'), require('@scope/linked'))\n", 0o644)
	out := s.at(s.path("deep/er")).same("--", "node", "main.js")
	if !strings.Contains(out, s.root+"/src/linked/m.js") || strings.Count(out, "\n") != 1 {
		t.Errorf("%q", out)
	}
	s.readOnly(s.root+"/src/linked", s.path("node_modules"))

	// A version manager: nvm's directory, and fnm's, whose link lies in /run or in ~/.local/state.
	node := s.home + "/.local/share/fnm/node-versions/v1/installation"
	s.tool(node+"/bin/node", "fnm")
	s.link("../lib/node_modules/npm/bin/npm-cli.js", node+"/bin/npm")
	s.write(node+"/lib/node_modules/npm/bin/npm-cli.js", "#!/usr/bin/env node\n", 0o755)
	shell := s.link(node, s.home+"/.local/state/fnm_multishells/1_2")
	e := s.path0(shell + "/bin").setenv("FNM_MULTISHELL_PATH=" + shell)
	if out := e.same("--", "node", "x"); out != "fnm node x\n" {
		t.Errorf("%q", out)
	}
	e.same("--", "npm", "y")
	e.noSecrets()
}

// toolchains.md A1, B6, B8: programs that look by what name they were started and keep all else below HOME, as mise and rustup do.
// Each would run the system's program, or be silent, without its data.
func TestToolchainShims(t *testing.T) {
	s := newSite(t, nil).plant()
	sandtest.Need(t, sandtest.CC)
	cargo, rustup := s.home+"/.cargo", s.home+"/.rustup"
	s.write(cargo+"/bin/rustup", `#!/bin/sh
name=${0##*/}
[ "$name" != rustup ] || { echo "rustup 1.27"; exit; }
root=${RUSTUP_HOME:-$HOME/.rustup}
d=$PWD
toolchain=$(sed -n 's/default_toolchain = "\(.*\)"/\1/p' "$root/settings.toml") || { echo "rustup could not choose a version" >&2; exit 1; }
while [ -n "$d" ]; do
	[ ! -f "$d/rust-toolchain.toml" ] || { toolchain=$(sed -n 's/channel = "\(.*\)"/\1/p' "$d/rust-toolchain.toml"); break; }
	d=${d%/*}
done
exec "$root/toolchains/$toolchain/bin/$name" "$@"
`, 0o755)
	for _, name := range []string{"rustc", "cargo"} {
		s.link("rustup", cargo+"/bin/"+name)
		s.tool(rustup+"/toolchains/stable/bin/"+name, "stable")
		s.tool(rustup+"/toolchains/1.70/bin/"+name, "1.70")
		s.tool(s.root+"/linked/stage1/bin/"+name, "stage1")
	}
	s.link(s.root+"/linked/stage1", rustup+"/toolchains/mine")
	s.write(rustup+"/settings.toml", "default_toolchain = \"stable\"\n", 0o644)
	s.write(cargo+"/config.toml", "[build]\njobs = 3\n", 0o644)
	s.write(cargo+"/registry/src/x/lib.rs", "x\n", 0o644)
	s.mkdir("a/b")
	e := s.at(s.path("a/b")).path0(cargo + "/bin")
	check := func(want string) {
		t.Helper()
		for _, name := range []string{"rustc", "cargo"} {
			if out := e.same("--", name, "-V"); out != want+" "+name+" -V\n" {
				t.Errorf("%q, want %s", out, want)
			}
		}
	}
	check("stable")
	s.write(rustup+"/settings.toml", "default_toolchain = \"mine\"\n", 0o644)
	check("stage1")
	s.write("a/rust-toolchain.toml", "channel = \"1.70\"\n", 0o644)
	check("1.70")
	e.same("--", "sh", "-c", `cat "$1/registry/src/x/lib.rs" "$1/config.toml"; readlink "$1/bin/rustc"`, "sh", cargo)
	e.run("--", "sh", "-c", `echo "$CARGO_HOME $RUSTUP_HOME"; cat "$CARGO_HOME/credentials.toml"`).prints(cargo + " " + rustup + "\n")
	e.readOnly(cargo+"/bin", rustup+"/toolchains/stable", cargo+"/registry")
	e.noSecrets()

	// mise: the shim is a link to mise, which looks in installs.
	mise := s.home + "/.local/share/mise"
	s.write(s.home+"/.local/bin/mise", "#!/bin/sh\nexec \"${MISE_DATA_DIR:-$HOME/.local/share/mise}/installs/tool/latest/bin/${0##*/}\" \"$@\"\n", 0o755)
	s.link("../../../bin/mise", mise+"/shims/mtool")
	s.tool(mise+"/installs/tool/20.1/bin/mtool", "20.1")
	s.link("./20.1", mise+"/installs/tool/20")
	s.link("./20", mise+"/installs/tool/latest")
	m := s.path0(mise+"/shims", s.home+"/.local/bin")
	if out := m.same("--", "mtool", "x"); out != "20.1 mtool x\n" {
		t.Errorf("%q", out)
	}
	s.path0(mise+"/shims").same("--", "mtool", "x") // mise itself is not in PATH
	m.readOnly(mise+"/shims", mise+"/installs/tool/20.1")
	m.noSecrets()
}
