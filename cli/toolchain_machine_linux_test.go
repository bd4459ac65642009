package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// machine is the site with the home and the PATH of whoever runs the tests, for version managers that this machine has.
func (s *site) machine(tool string) *site {
	s.t.Helper()
	p, err := exec.LookPath(tool)
	home, homeErr := os.UserHomeDir()
	if err != nil || homeErr != nil {
		s.need(tool)
	}
	return s.setenv("HOME="+home, "PATH="+s.bin+":"+filepath.Dir(p)+":"+os.Getenv("PATH"))
}

// toolchains.md B2, the real one: shims choose by .python-version above the working directory, and a virtual environment
// made by one of its versions keeps that version.
func TestToolchainMachinePyenv(t *testing.T) {
	s := newSite(t, nil)
	e := s.machine("pyenv")
	versions := strings.Fields(e.command("/usr/bin/env", "pyenv", "versions", "--bare").ok().out)
	if len(versions) < 2 {
		s.need("pyenv with two versions")
	}
	root := strings.TrimSpace(e.command("/usr/bin/env", "pyenv", "root").ok().out)
	e = e.setenv("PATH=" + root + "/shims:" + root + "/bin:" + s.bin + ":" + cleanPath)
	for _, v := range []string{versions[0], versions[len(versions)-1]} {
		s.write(".python-version", v+"\n", 0o644)
		deep := e.at(s.mkdir("a/b"))
		if got := deep.same("--", "pyenv", "version-name"); got != v+"\n" {
			t.Errorf("%q, want %s", got, v)
		}
		if got := deep.same("--", "python", "-c", `import sys; sys.stdout.write("%s %s\n" % (sys.version.split()[0], sys.prefix))`); got != v+" "+root+"/versions/"+v+"\n" {
			t.Errorf("%q, want %s", got, v)
		}
	}
	newest := versions[len(versions)-1]
	e.command("/usr/bin/env", "python", "-m", "venv", "--without-pip", s.path("v")).ok()
	got := e.same("--", s.path("v/bin/python"), "-c", "import sys; print(sys.version.split()[0], sys.prefix, sys.base_prefix)")
	if got != newest+" "+s.path("v")+" "+root+"/versions/"+newest+"\n" {
		t.Errorf("%q", got)
	}
	e.readOnly(root, root+"/versions/"+newest)
	e.run("--", "ls", filepath.Dir(root)+"/.ssh").is(2)
}

// toolchains.md B8, the real one: rustc and cargo are links to rustup, which asks by what name it was started.
func TestToolchainMachineRustup(t *testing.T) {
	s := newSite(t, nil)
	e := s.machine("rustup")
	if got := e.same("--", "rustc", "--version"); !strings.HasPrefix(got, "rustc ") {
		t.Errorf("%q", got)
	}
	e.same("--", "rustc", "--print", "sysroot")
	e.same("--", "cargo", "--version")
	s.write("Cargo.toml", "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2021\"\n", 0o644)
	s.write("src/main.rs", "fn main() { println!(\"built by {}\", env!(\"CARGO\")); }\n", 0o644)
	built := e.run("--write", ".", "--", "cargo", "run", "--offline", "--quiet").ok().out
	must(t, os.RemoveAll(s.path("target")))
	if outside := e.command("/usr/bin/env", "cargo", "run", "--offline", "--quiet").ok().out; built != outside || !strings.HasPrefix(built, "built by /") {
		t.Errorf("inside %q, outside %q", built, outside)
	}
	// Another toolchain than the one that is there is refused by rustup itself, with its own words.
	s.write("rust-toolchain.toml", "[toolchain]\nchannel = \"1.0.0\"\n", 0o644)
	offline := e.setenv("RUSTUP_DIST_SERVER=http://127.0.0.1:9", "RUSTUP_UPDATE_ROOT=http://127.0.0.1:9")
	if r := offline.run("--network", "none", "--", "rustc", "--version"); r.status == 0 || !strings.Contains(r.err, "1.0.0") {
		t.Errorf("status %d: %s%s", r.status, r.out, r.err)
	}
	e.readOnly(strings.TrimSpace(e.command("/usr/bin/env", "rustup", "show", "home").ok().out))
}
