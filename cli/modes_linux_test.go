package cli_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/selfcage/selfcage/internal/sandtest"
)

// names are the variables that a program printed with env.
func names(out string) (ns []string) {
	for line := range strings.Lines(out) {
		if n, _, ok := strings.Cut(line, "="); ok {
			ns = append(ns, n)
		}
	}
	slices.Sort(ns)
	return ns
}

func (s *site) report(file string) (doc map[string]any) {
	s.t.Helper()
	if err := json.Unmarshal([]byte(read(s.t, file)), &doc); err != nil {
		s.t.Fatal(err)
	}
	return doc
}

// R5, R9, R17, R19: mode enforced is a cage with an environment that starts from nothing.
func TestEnforced(t *testing.T) {
	sandtest.Need(t, sandtest.Bwrap, sandtest.Cage)
	s := newSite(t, nil).setenv("HARMLESS=1", "AWS_ACCESS_KEY_ID=AKIAIOSFODNN7EXAMPLE", "LANG=C.UTF-8", "SLURM_PROCID=3", "PYTHONPATH=/x", "WANTED=yes")
	report := s.path("r.json")
	r := s.selfcage("run", "--mode", "enforced", "--env", "WANTED", "--report", report, "--", "env").is(0)
	got := names(r.out)
	for _, n := range []string{"HARMLESS", "AWS_ACCESS_KEY_ID", "PYTHONPATH"} {
		if slices.Contains(got, n) {
			t.Errorf("%s is inside: %v", n, got)
		}
	}
	for _, n := range []string{"LANG", "SLURM_PROCID", "WANTED", "PATH", "HOME", "TMPDIR"} {
		if !slices.Contains(got, n) {
			t.Errorf("%s is not inside: %v", n, got)
		}
	}
	doc := s.report(report)
	if doc["mode"] != "enforced" || doc["engine"] != "bwrap" || doc["runtime_owned"] != false || doc["state"] != "ended" {
		t.Errorf("mode %v, engine %v, runtime_owned %v, state %v", doc["mode"], doc["engine"], doc["runtime_owned"], doc["state"])
	}
	refusedOpen := false
	for _, c := range doc["enforced"].([]any) {
		c := c.(map[string]any)
		if c["state"] != "as planned" {
			t.Errorf("%v", c)
		}
		refusedOpen = refusedOpen || strings.HasPrefix(c["control"].(string), "open ") && strings.HasPrefix(c["observed"].(string), "refused")
	}
	if !refusedOpen {
		t.Error("no forbidden open was attempted")
	}
	// All of /sys is for mode bwrap; what Go, Java and hwloc read is there.
	s.selfcage("run", "--mode", "enforced", "--network", "none", "--", "sh", "-c", "ls /sys; cat /sys/devices/system/cpu/online; nproc").is(0).hasNot("firmware", "\nbus").has("devices")
}

// R9: in mode enforced nothing runs because somebody forgot the policy. Grants on the command line are one.
func TestEnforcedWithoutPolicy(t *testing.T) {
	s := newSite(t, nil)
	s.selfcage("run", "--mode", "enforced", "--", "echo", "ran").refused("mode enforced needs a policy, --mode", "no policy file")
	s.setenv("SANDBOX_MODE=enforced").selfcage("run", "--report", s.path("r.json"), "--", "echo", "ran").refused("mode enforced needs a policy, SANDBOX_MODE")
	s.selfcage("explain", "--mode", "enforced", "--", "echo").refused("mode enforced needs a policy")
	sandtest.Need(t, sandtest.NetNS)
	s.selfcage("run", "--mode", "enforced", "--network", "none", "--", "echo", "ran").ok().prints("ran\n")
	empty := s.write("none.toml", "read_paths = []\n", 0o644)
	s.selfcage("run", "--policy", empty, "--", "echo", "ran").ok().prints("ran\n")
}

// R5: a host that cannot confine fails the run; nothing is tried with less.
func TestEnforcedCannot(t *testing.T) {
	s := newSite(t, nil)
	stub := s.stub("0.9.0", noUserNS)
	mark := s.path("ran")
	s.selfcage("run", "--mode", "enforced", "--write", s.dir, "--bwrap", stub, "--", "touch", mark).refused("user namespace", "refusing to run unconfined")
	if exists(mark) {
		t.Error("the command was run")
	}
}

// A secret is never passed in mode enforced, whoever says it, and by --env in no mode.
func TestEnforcedSecret(t *testing.T) {
	s := newSite(t, nil).setenv("A_TOKEN=abcdef")
	s.selfcage("run", "--mode", "enforced", "--secret", "A_TOKEN", "--", "env").refused("A_TOKEN", "mode enforced permits none")
	s.selfcage("run", "--mode", "enforced", "--env", "A_TOKEN", "--", "env").refused("--env A_TOKEN", "in mode enforced no secret passes")
	policy := s.write("p.toml", "# names\nenv_allowlist = [\"LANG\",\n\"A_TOKEN\"]\n", 0o644)
	s.selfcage("run", "--policy", policy, "--", "env").refused("policy "+policy+":3 A_TOKEN", "in mode enforced no secret passes")
	s.selfcage("run", "--policy", policy, "--mode", "bwrap", "--", "env").refused("policy "+policy+":3 A_TOKEN", "hint: --secret A_TOKEN")
}

// R4: auto is a cage where the host can make one, and says what is lost where it cannot: also to those who want no notes.
func TestAuto(t *testing.T) {
	sandtest.Need(t, sandtest.Bwrap, sandtest.Cage)
	s := newSite(t, nil).setenv("HARMLESS=1", "A_TOKEN=abcdef")
	r := s.selfcage("run", "--mode", "auto", "--", "sh", "-c", "env; ls -d /run/selfcage").is(0).has("/run/selfcage").hasNot("HARMLESS", "A_TOKEN")
	if strings.Contains(r.err, "not enforced") {
		t.Error(r.err)
	}
	stub := s.stub("0.9.0", noUserNS)
	report := s.path("r.json")
	r = s.selfcage("run", "--mode", "auto", "--quiet", "--network", "none", "--bwrap", stub, "--report", report, "--", "sh", "-c", "env; ls -d /run/selfcage || echo bare; exit 7").is(7)
	r.has("bare").hasNot("HARMLESS", "A_TOKEN")
	for _, text := range []string{"mode auto: there is no cage", "setting up uid map", "not enforced: files, network"} {
		if !strings.Contains(r.err, text) {
			t.Errorf("no %q in %s", text, r.err)
		}
	}
	doc := s.report(report)
	if doc["engine"] != "none" || doc["mode"] != "auto" || doc["state"] != "handed over" || len(doc["not_enforced"].([]any)) < 5 {
		t.Errorf("%v", doc)
	}
	for _, c := range doc["enforced"].([]any) {
		if !strings.Contains(c.(map[string]any)["control"].(string), "environment") {
			t.Errorf("claims %v", c)
		}
	}
}

// auto never fails for lack of an engine, and for nothing else is it less than bwrap: a wrong grant is refused.
func TestAutoRefuses(t *testing.T) {
	sandtest.Need(t, sandtest.Bwrap, sandtest.Cage)
	s := newSite(t, nil)
	s.selfcage("run", "--mode", "auto", "--read", "/nonexistent", "--", "echo", "ran").refused("/nonexistent")
	s.selfcage("run", "--mode", "auto", "--bwrap", "/nonexistent/bwrap", "--", "echo", "ran").refused("/nonexistent/bwrap")
	s.selfcage("run", "--mode", "auto", "--read", s.home, "--", "echo", "ran").refused("credentials")
	// What fails in the plan is not the host's inability.
	broken := s.stub("0.9.0", `echo "$*" | grep -q -- --args || exec /usr/bin/bwrap "$@"; echo "bwrap: broken" >&2; exit 1`)
	s.selfcage("run", "--mode", "auto", "--bwrap", broken, "--", "echo", "ran").refused()
}

// After a start that failed, descriptors, ignored signals and limits are what the caller gave.
func TestAutoHandsOn(t *testing.T) {
	s := newSite(t, nil)
	stub := s.stub("0.9.0", noUserNS)
	script := `trap "" HUP; exec 7<<EOF
seven
EOF
exec "$@" sh -c 'cat <&7; grep SigIgn /proc/self/status; ulimit -n; ls /proc/self/fd | tr "\n" " "'`
	args := []string{"-c", script, "sh"}
	bare := s.command(append([]string{"/bin/sh"}, args...)...).is(0)
	caged := s.command(append(append([]string{"/bin/sh"}, args...), filepath.Join(s.bin, "selfcage"), "run", "--mode", "auto", "--bwrap", stub, "--")...).is(0)
	if bare.out != caged.out || !strings.Contains(bare.out, "seven") {
		t.Errorf("bare:\n%s\nmode auto:\n%s%s", bare.out, caged.out, caged.err)
	}
}

// R6, R19: scrubbed_only cleans the environment, of the process itself too, and confines nothing.
func TestScrubbedOnly(t *testing.T) {
	s := newSite(t, nil).setenv("HARMLESS=1", "A_TOKEN=abcdef", "LANG=C.UTF-8", "GITHUB_TOKEN=ghp_abcdefghijklmnopqrstuvwxyz0123456789", "SANDBOX_MODE=scrubbed_only")
	report := s.path("r.json")
	r := s.selfcage("run", "--report", report, "--", "sh", "-c", `tr '\0' '\n' </proc/self/environ; echo "$HOME"; ls -d /run/selfcage || echo bare; exit 5`).is(5)
	r.has("bare", s.home, "LANG=C.UTF-8", "SANDBOX_MODE=scrubbed_only").hasNot("HARMLESS", "A_TOKEN", "GITHUB_TOKEN", "SELFCAGE_START")
	doc := s.report(report)
	text := read(t, report)
	if doc["engine"] != "none" || doc["state"] != "handed over" || strings.Contains(text, "abcdef") || !strings.Contains(text, `"A_TOKEN"`) {
		t.Errorf("%s", text)
	}
	s.selfcage("run", "--secret", "A_TOKEN", "--env", "HARMLESS", "--", "env").is(0).has("A_TOKEN=abcdef", "HARMLESS=1")
}

// A variable is no proof of having been through the start, however it is made up: the modes that confine confine.
func TestStartVariableProvesNothing(t *testing.T) {
	s := newSite(t, nil)
	outside := s.command("/usr/bin/readlink", "/proc/self/ns/mnt").ok().out
	for _, value := range []string{"scrubbed:$$", "again:$$", "again:5", "again:0", "5:0:-1", "x"} {
		for _, mode := range []string{"bwrap", "auto", "enforced"} {
			r := s.sh("exec 5</etc/passwd; SELFCAGE_START=" + value + " exec selfcage run --quiet --mode " + mode + " --read " + s.dir + " -- readlink /proc/self/ns/mnt").ok()
			if r.out == outside {
				t.Errorf("SELFCAGE_START=%s, mode %s: not confined", value, mode)
			}
		}
		s.setenv("A_TOKEN=x").sh("exec 5</etc/passwd; SELFCAGE_START="+value+" exec selfcage run --quiet --mode scrubbed_only -- env").ok().hasNot("A_TOKEN", "SELFCAGE_START")
	}
}

// R7: disabled leaves everything as it is, and says so.
func TestDisabled(t *testing.T) {
	s := newSite(t, nil).setenv("HARMLESS=1", "A_TOKEN=abcdef")
	report := s.path("r.json")
	r := s.selfcage("run", "--mode", "disabled", "--write", "/nonexistent", "--report", report, "--", "env").is(0).has("HARMLESS=1", "A_TOKEN=abcdef")
	if !strings.Contains(r.err, "mode disabled (--mode): nothing is confined") || !strings.Contains(r.err, "unused: --write /nonexistent") {
		t.Error(r.err)
	}
	doc := s.report(report)
	if doc["engine"] != "none" || doc["mode"] != "disabled" || len(doc["enforced"].([]any)) != 0 || len(doc["not_enforced"].([]any)) < 5 {
		t.Errorf("%v", doc)
	}
}

// R2, R39: what a container runtime isolates is not wrapped again, and no confinement is claimed. Outside a container the
// note is no way around.
func TestContainerNote(t *testing.T) {
	s := newSite(t, nil).setenv("HARMLESS=1")
	policy := s.write(s.path("p.json"), `{ "sandbox": { "note": "exempt_container_backend" } }`, 0o644)
	report := s.path("r.json")
	r := s.selfcage("run", "--policy", policy, "--report", report, "--", "env")
	doc := s.report(report)
	if doc["engine"] == "container runtime" { // the tests run in one
		r.is(0).hasNot("HARMLESS")
		if doc["runtime_owned"] != true || !strings.Contains(r.err, "container runtime") {
			t.Errorf("%v %s", doc, r.err)
		}
		return
	}
	r.refused("container runtime", policy+":1", "in no container")
}

// A policy without a mode means enforced, an absent network none (R23).
func TestPolicyDefaults(t *testing.T) {
	sandtest.Need(t, sandtest.Bwrap, sandtest.Cage, sandtest.NetNS)
	s := newSite(t, nil).setenv("HARMLESS=1")
	out := s.mkdir("out")
	policy := s.write(s.path("p.toml"), "write_paths = [\"{cwd}/out\"]\n", 0o644)
	report := s.path("r.json")
	s.selfcage("run", "--policy", policy, "--report", report, "--", "sh", "-c", "env; cat /proc/net/dev; echo result >out/r; echo x >beside || echo read-only").is(0).
		hasNot("HARMLESS", "eth0").has("read-only", "lo:")
	if read(t, filepath.Join(out, "r")) != "result\n" {
		t.Error("nothing was written")
	}
	doc := s.report(report)
	if doc["mode"] != "enforced" || !strings.Contains(read(t, report), "policy "+policy+":1") {
		t.Errorf("%v", doc)
	}
	// Of the operator, flags are stronger and grants add up.
	s.selfcage("run", "--policy", policy, "--mode", "bwrap", "--write", s.dir, "--", "sh", "-c", "env; echo x >beside && echo written").is(0).has("HARMLESS", "written")
	// A policy in the working directory is never read by itself, and one that is not there is an error.
	s.write(s.path("selfcage.toml"), "mode = \"nonsense\"\n", 0o644)
	s.selfcage("run", "--", "true").is(0)
	s.selfcage("run", "--policy", s.path("none.toml"), "--", "echo", "ran").refused("none.toml")
	s.selfcage("run", "--policy", s.write(s.path("empty.toml"), "", 0o644), "--", "echo", "ran").refused("empty.toml", "empty")
}

// A program inside that asks for the same again goes on; one that asks for another policy or a stronger mode does not.
func TestPolicyInside(t *testing.T) {
	sandtest.Need(t, sandtest.Bwrap, sandtest.Cage, sandtest.NetNS)
	s := newSite(t, nil)
	policy := s.write(s.path("p.toml"), "write_paths = [\"{cwd}\"]\n", 0o644)
	plain := s
	s = s.setenv("SANDBOX_POLICY=p.toml")
	s.selfcage("run", "--read", s.bin, "--", "sh", "-c", "cd / && selfcage run -- echo again").is(0).has("again")
	s = plain
	s.selfcage("run", "--read", s.bin, "--", "selfcage", "run", "--mode", "enforced", "--", "echo", "again").refused("only scrubs the environment")
	s.selfcage("run", "--read", s.bin, "--read", policy, "--", "selfcage", "run", "--policy", policy, "--", "echo", "again").refused()
	// Less than the cage gives is as impossible as more.
	s.mkdir("w")
	none := s.write("none.toml", "mode = \"bwrap\"\nread_paths = []\n", 0o644)
	s.selfcage("run", "--network", "none", "--", "selfcage", "run", "--policy", none, "--", "echo", "again").ok().prints("again\n")
	s.selfcage("run", "--network", "none", "--write", "w", "--", "selfcage", "run", "--policy", none, "--", "echo", "again").refused("makes", "/w", "writable")
	s.selfcage("run", "--write", "w", "--", "selfcage", "run", "--mode", "bwrap", "--protect", s.dir, "--", "echo", "again").refused("writable", "/w")
	s.setenv("HARMLESS=1").selfcage("run", "--read", s.bin, "--", "selfcage", "run", "--mode", "auto", "--", "env").is(0).hasNot("HARMLESS")
}

// A run can leave a checkout so that git takes something else for its repository; whoever looks at it next is told.
func TestBrokenCheckout(t *testing.T) {
	sandtest.Need(t, sandtest.Git)
	s := newSite(t, nil)
	s.sh("git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x").ok()
	const hint = "look before you run git there"
	s.selfcage("run", "--write", ".", "--", "git", "status", "--short").ok().hasNot(hint)
	s.selfcage("run", "--write", ".", "--", "sh", "-c", "mkdir objects refs; echo 'ref: refs/heads/x' >HEAD").ok().says("bare repository", hint)
	s.sh("rm -r objects refs HEAD").ok()
	s.run("--write", ".", "--", "mv", ".git/HEAD", "head").ok().says(".git/HEAD is gone", hint)
}
