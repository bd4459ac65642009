package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/selfcage/selfcage/internal/sandtest"
)

// Where no cage can be made, policies can be looked at all the same. No bubblewrap is asked, and the home is not needed.
func TestPolicyWithoutBwrap(t *testing.T) {
	s := newSite(t, nil)
	s.write("p.toml", "read_paths = ['/usr/share']\n", 0o644)
	s.env = []string{"PATH=" + s.bin}
	s.selfcage("policy", "check", "p.toml").ok().silent().prints("p.toml: ok\n")
	s.selfcage("policy", "show", "p.toml").ok().silent().has("readable  /usr/share  read")
	s.selfcage("policy", "diff", "p.toml", "p.toml").ok().silent().prints("")
}

// A policy may have any name and grant any path: what is printed stays on its line, and no byte is lost in JSON.
func TestPolicyOddNames(t *testing.T) {
	s := newSite(t, nil)
	odd := "a\x1b[2J\n\"p.toml: ok"
	s.mkdir(odd)
	s.write(odd+".json", `{"read_paths": ["{cwd}/a\u001b[2J\n\"p.toml: ok"], "env_allowlist": ["A_TOKEN"]}`, 0o644)
	r := s.selfcage("policy", "check", odd+".json").is(1)
	for line := range strings.Lines(r.out) {
		if !strings.HasPrefix(line, `a\x1b[2J\x0a"p.toml: ok.json: `) && !strings.HasPrefix(line, "  hint: ") {
			t.Errorf("a line of its own: %q", line)
		}
	}
	r.hasNot("\x1b")
	var all []struct {
		File   string
		Valid  bool
		Errors []struct{ What, Object string }
	}
	r = s.selfcage("policy", "check", "--format=json", odd+".json").is(1)
	must(t, json.Unmarshal([]byte(r.out), &all))
	if len(all) != 1 || all[0].File != odd+".json" || all[0].Valid || len(all[0].Errors) != 1 || !strings.Contains(all[0].Errors[0].Object, "A_TOKEN") {
		t.Errorf("%+v", all)
	}
	name := "b\xff.toml"
	s.write(name, "write_paths = ['/usr/share']\n", 0o644)
	s.selfcage("policy", "check", "--format", "json", name).ok().has(`"file": {` + "\n" + `   "bytes": "Yv8udG9tbA=="`)
	s.selfcage("policy", "show", name).ok().has("writable  /usr/share  write")
}

// No command prints the value of a variable, whatever the policy says about it.
func TestPolicyPrintsNoValue(t *testing.T) {
	s := newSite(t, nil)
	s.write("p.toml", "env_allowlist = ['PLAIN', 'LOCALE_X']\n", 0o644)
	s.write("q.toml", "env_allowlist = ['MY_TOKEN']\n", 0o644)
	s = s.setenv("PLAIN=hunter2", "LOCALE_X=hunter2", "MY_TOKEN=hunter2", "XDG_STATE_HOME="+s.path("state"))
	for _, args := range [][]string{{"check", "p.toml", "q.toml"}, {"show", "p.toml"}, {"show", "--format", "json", "p.toml"}, {"show", "q.toml"},
		{"diff", "p.toml", "q.toml"}, {"approve", "p.toml"}, {"approve", "q.toml"}} {
		s.selfcage(append([]string{"policy"}, args...)...).hasNot("hunter2")
	}
	stored, err := filepath.Glob(s.path("state/selfcage/approved/*.json"))
	must(t, err)
	if len(stored) != 1 || strings.Contains(read(t, stored[0]), "hunter2") || !strings.Contains(read(t, stored[0]), "LOCALE_X") {
		t.Errorf("stored: %q", stored)
	}
}

// R38: the program in the cage cannot approve in its user's name, though its own home is writable.
func TestApproveInside(t *testing.T) {
	s := newSite(t, nil)
	s.write("p.toml", "read_paths = ['/usr/share']\n", 0o644)
	s.run("--", "selfcage", "policy", "approve", "p.toml").ok().says("approved inside a cage")
	s.run("--policy", "p.toml", "--require-approved", "--", "echo", "ran").refused("nobody has approved it")
	if exists(filepath.Join(s.home, ".local")) {
		t.Error("something was written into the home")
	}
}

// R38: what one user approved, another one has not.
func TestApproveByAnother(t *testing.T) {
	sandtest.Need(t, sandtest.Root, sandtest.User)
	u := sandtest.OrdinaryUser(t)
	s := newSite(t, &u)
	s.write("p.toml", "read_paths = ['/usr/share']\n", 0o644)
	s = s.setenv("XDG_STATE_HOME=" + s.path("state"))
	s.selfcage("policy", "approve", "p.toml").ok()
	s.run("--policy", "p.toml", "--require-approved", "--", "echo", "ran").ok().prints("ran\n")
	s.as = nil // root does not take over what somebody else could have written
	s.run("--policy", "p.toml", "--require-approved", "--", "echo", "ran").refused("the policy is not approved", "belongs to somebody else")
}

// A run that is replaced by another one is told from it also where everything has the same size.
func TestManifestOfRun(t *testing.T) {
	s := newSite(t, nil)
	s.write("in/data", "one", 0o644)
	s.run("--report", "a.json", "--manifest", "--", "cat", "in/data").ok().prints("one")
	s.write("in/data", "two", 0o644)
	s.run("--report", "b.json", "--manifest", "--", "cat", "in/data").ok().prints("two")
	s.selfcage("policy", "diff", "a.json", "b.json").is(1).has("input "+s.path("in/data")+": ", "input "+s.path("")+": ").hasNot("mount ", "program ", "tool ")
	// It does not change what the run may do, nor is it there unasked.
	s.run("--report", "c.json", "--", "cat", "in/data").ok()
	if strings.Contains(read(t, s.path("c.json")), `"manifest":`) {
		t.Error("a manifest that nobody asked for")
	}
	s.run("--manifest", "--", "echo", "ran").refused("nowhere to put the manifest")
	var d struct {
		Manifest struct {
			Version  int
			Programs []struct{ Role, Path, SHA256 string }
			Mounts   []struct{ Target, Options string }
		}
	}
	must(t, json.Unmarshal([]byte(read(t, s.path("a.json"))), &d))
	roles := map[string]string{}
	for _, p := range d.Manifest.Programs {
		roles[p.Role] = p.Path
	}
	if cat, err := filepath.EvalSymlinks("/bin/cat"); err != nil || roles["command"] != cat || roles["program"] == "" {
		t.Errorf("programs %v, %v", roles, err)
	}
	for _, m := range d.Manifest.Mounts {
		if m.Target == "/usr" && !strings.HasPrefix(m.Options, "ro,") { // as the kernel says, not as was planned
			t.Errorf("%+v", m)
		}
	}
	if fi, err := os.Stat(s.path("a.json")); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", fi.Mode(), err)
	}
}
