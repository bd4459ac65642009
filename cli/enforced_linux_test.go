package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/selfcage/selfcage/internal/sandtest"
)

// enforced compares what a command prints outside and in mode enforced. That the environment is a clean one is seen by a variable
// that is harmless.
func (s *site) enforced(words ...string) string {
	s.t.Helper()
	e := s.setenv("HARMLESS=1")
	out := e.same(append([]string{"--mode", "enforced", "--network", "none", "--"}, words...)...)
	e.run("--mode", "enforced", "--network", "none", "--", "env").ok().hasNot("HARMLESS")
	return out
}

// Mode enforced starts from no variables at all, and interpreters and toolchains are found and say the same as outside.
func TestEnforcedTools(t *testing.T) {
	sandtest.Need(t, sandtest.Bwrap, sandtest.Cage, sandtest.NetNS)
	for _, tt := range []struct {
		tool, script string
		holds        string
	}{
		{"nproc", "nproc; nproc --all; getconf _NPROCESSORS_ONLN", "\n"},
		{"go", "go version && go env GOROOT GOVERSION GOMAXPROCS", "go version go"},
		{"python3", `python3 -c 'import sys, os, ssl, ctypes; print(sys.version, sys.prefix, sys.executable, os.cpu_count(), ssl.OPENSSL_VERSION)'`, "3."},
		{"node", `node -v; node -p 'process.execPath + " " + require("os").availableParallelism()'`, "v"},
		{"java", `java -version 2>&1; java -XshowSettings:system -version 2>&1 | grep -i cpu`, "ersion"},
		{"cc", `echo 'int main(void) { return 0; }' | cc -x c - -o /dev/null && cc --version`, ""},
		{"perl", `perl -MPOSIX -e 'print "$] $^X\n"'`, "5."},
		{"git", "git --version; git config --list --system --name-only | sort", "git version"},
	} {
		t.Run(tt.tool, func(t *testing.T) {
			s := newSite(t, nil).plant()
			if tt.tool == "go" {
				s = s.machine("go").setenv("HOME=" + s.home)
			} else {
				s.need(tt.tool)
			}
			if out := s.enforced("sh", "-c", tt.script); !strings.Contains(out, tt.holds) {
				t.Errorf("%q", out)
			}
			s.noSecrets("--mode", "enforced", "--network", "none")
		})
	}
}

// An environment of Python keeps its prefix and the version that it was made from, by its path, by PATH and by VIRTUAL_ENV.
func TestEnforcedVenv(t *testing.T) {
	s := newSite(t, nil).plant()
	version, _ := s.systemPython()
	v := s.root + "/venvs/v1"
	s.command("/usr/bin/python3", "-m", "venv", "--without-pip", v).ok()
	s.write(filepath.Join(v, "lib/python"+version, "site-packages/own.py"), "where = __file__\n", 0o644)
	which := whichPython + "; import own; print(own.where)"
	for _, e := range []*site{s, s.path0(v + "/bin"), s.path0(v + "/bin").setenv("VIRTUAL_ENV=" + v)} {
		name := "python"
		if e == s {
			name = v + "/bin/python"
		}
		if f := strings.Split(e.enforced(name, "-c", which), "\n"); f[1] != v || f[5] != v+"/lib/python"+version+"/site-packages/own.py" {
			t.Errorf("%q", f)
		}
		e.run("--mode", "enforced", "--network", "none", "--", "sh", "-c", `echo lost >"$1/f"`, "sh", v).is(2)
		e.noSecrets("--mode", "enforced", "--network", "none")
	}
	if exists(v + "/f") {
		t.Error("the environment was written to")
	}
}

// rustup finds its toolchains by RUSTUP_HOME, which passes although nobody lists it, with CARGO_HOME and without its credentials.
func TestEnforcedRustup(t *testing.T) {
	s := newSite(t, nil)
	e := s.machine("rustup")
	rustup := strings.TrimSpace(e.command("/usr/bin/env", "rustup", "show", "home").ok().out)
	cargo := s.root + "/cargo"
	s.write(cargo+"/credentials.toml", homeSecret, 0o600)
	s.write(cargo+"/config.toml", "[build]\njobs = 1\n", 0o644)
	for _, e := range []*site{e, e.setenv("RUSTUP_HOME="+rustup, "CARGO_HOME="+cargo)} {
		if out := e.enforced("sh", "-c", "cargo --version && rustc --version && rustc --print sysroot"); !strings.Contains(out, rustup+"/toolchains/") {
			t.Errorf("%q", out)
		}
	}
	r := e.setenv("RUSTUP_HOME="+rustup, "CARGO_HOME="+cargo).run("--mode", "enforced", "--network", "none", "--", "sh", "-c", `echo "$RUSTUP_HOME $CARGO_HOME"; cat "$CARGO_HOME/config.toml" "$CARGO_HOME/credentials.toml"; echo x >"$RUSTUP_HOME/x"`)
	if r.hasNot(homeSecret).has(rustup+" "+cargo, "jobs = 1"); exists(rustup + "/x") {
		os.Remove(rustup + "/x")
		t.Error("rustup's directory can be written")
	}
}
