package cli_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/selfcage/selfcage/internal/sandtest"
)

// stub is a bubblewrap that answers --version, writes down each call, and otherwise does what script says.
func (s *site) stub(version, script string) string {
	s.t.Helper()
	return s.write(filepath.Join(s.root, "stub", "bwrap"), `#!/bin/sh
echo "$*" >>`+filepath.Join(s.root, "stub", "calls")+`
case "$1" in
--version) echo "bubblewrap `+version+`"; exit 0;;
esac
`+script+"\n", 0o755)
}

func (s *site) calls() string { return read(s.t, filepath.Join(s.root, "stub", "calls")) }

const noUserNS = `echo "bwrap: setting up uid map: Permission denied" >&2; exit 1`

// Case 1 (containers/bubblewrap#632): namespaces are refused by an LSM. Seeds H9, H13, H14, L6, L7, L9: the command
// never runs, nothing is tried with less, the raw line and the way out are named.
func TestNamespacesRefused(t *testing.T) {
	s := newSite(t, nil)
	stub := s.stub("0.9.0", noUserNS)
	mark := s.path("ran")
	for name, r := range map[string]*result{
		"flag":     s.selfcage("run", "--write", s.dir, "--bwrap", stub, "--", "touch", mark),
		"variable": s.setenv("SANDBOX_BWRAP="+stub, "SANDBOX_MODE=bwrap").selfcage("run", "--write", s.dir, "--", "touch", mark),
	} {
		r.refused("user namespace", "setting up uid map: Permission denied", "refusing to run unconfined", "hint: ")
		if n := strings.Count(r.err, "setting up uid map"); n < 1 {
			t.Errorf("%s: bubblewrap's own line is there %d times", name, n)
		}
	}
	if exists(mark) {
		t.Error("the command was run")
	}
	for _, call := range strings.Split(strings.TrimSpace(s.calls()), "\n") {
		ran := strings.Contains(call, "touch")
		if ran && !strings.HasPrefix(call, "--args ") {
			t.Errorf("the command was given to bubblewrap without the whole plan: %s", call)
		}
		if !ran && call != "--version" && call != "--help" && !strings.Contains(call, "--unshare-user") {
			t.Errorf("tried with less: %s", call)
		}
	}
	r := s.selfcage("doctor", "--bwrap", stub)
	r.is(1).has("refused", "user namespace", "setting up uid map: Permission denied", "mode bwrap", "cannot run: user namespace")
	s.selfcage("doctor", "--bwrap", stub, "--format", "json").is(1).has(`"id":"ns.user"`, `"state":"refused"`)
}

// Case 1, the part that names AppArmor: what Ubuntu 24.04 says in /proc/sys, where root can make it say so. The narrow
// fix, a profile for exactly this bubblewrap, comes before the one for the whole host.
func TestAppArmorNamed(t *testing.T) {
	s := newStage(t, `
		mount -t tmpfs none /proc/sys/kernel
		echo 1 >/proc/sys/kernel/apparmor_restrict_unprivileged_userns
	`)
	stub := s.stub("0.9.0", noUserNS)
	for _, r := range []*result{
		s.selfcage("run", "--bwrap", stub, "--", "echo", "ran").refused(),
		s.selfcage("doctor", "--bwrap", stub).is(1),
	} {
		text := r.out + r.err
		narrow, wide := strings.Index(text, "profile selfcage-bwrap "+stub), strings.Index(text, "apparmor_restrict_unprivileged_userns=0")
		if !strings.Contains(text, "apparmor_restrict_unprivileged_userns is 1") || narrow < 0 || wide < narrow {
			t.Errorf("profile at %d, sysctl at %d:\n%s", narrow, wide, text)
		}
	}
}

// Case 2 (containers/bubblewrap#284): a container masks parts of /proc, so the kernel refuses a fresh one. The start
// fails closed and doctor, which tries the same mount, says the same.
func TestMaskedProc(t *testing.T) {
	s := newStage(t, `mount -t tmpfs none /proc/fs`)
	r := s.selfcage("run", "--", "echo", "ran").refused("fresh /proc", "/proc/fs", "masked", "hint: ")
	if !strings.Contains(r.err, "Can't mount proc") {
		t.Errorf("bubblewrap's own line is missing:\n%s", r.err)
	}
	s.selfcage("doctor").is(1).has("refused", "fresh /proc", "/proc/fs", "masked", "cannot run: fresh /proc")
	s.selfcage("explain").ok().has("proc", "/proc") // whatever the host can do
}

// Case 4 (openai/codex#21516): a bubblewrap that lacks options. Seed L8. Refused before the command, with the version
// that was found, where, and the least one that would do.
func TestOldBubblewrap(t *testing.T) {
	s := newSite(t, nil)
	stub := s.stub("0.4.0", `
case "$1" in
--help) printf '    --help\n    --version\n    --args FD\n    --unshare-user\n    --ro-bind SRC DEST\n    --bind SRC DEST\n    --dev-bind SRC DEST\n    --proc DEST\n    --dev DEST\n    --tmpfs DEST\n    --dir DEST\n    --file FD DEST\n    --symlink SRC DEST\n    --seccomp FD\n    --chdir DIR\n    --setenv VAR VALUE\n    --die-with-parent\n'; exit 0;;
esac
echo "bwrap: Unknown option --perms" >&2; exit 1`)
	r := s.selfcage("run", "--bwrap", stub, "--", "echo", "ran").refused("0.4.0", stub, "0.8.0", "--perms", "--clearenv", "hint: ")
	if strings.Contains(r.err, "--argv0") {
		t.Errorf("an option that is never used is said to be missing:\n%s", r.err)
	}
	s.selfcage("doctor", "--bwrap", stub).is(1).has("0.4.0", "--perms", "cannot run")
}

// Case 4, the other half: what a plain start uses is what 0.8.0 has, and no option that skips silently.
func TestOnlyOldOptions(t *testing.T) {
	s := newSite(t, nil)
	s.mkdir("w")
	script := s.selfcage("explain", "--format", "argv", "--write", "w", "--read", "/usr/share", "--network", "none", "--", "true").ok().out
	known := map[string]bool{}
	for _, o := range strings.Fields(`--unshare-user --unshare-pid --unshare-ipc --unshare-uts --unshare-cgroup --unshare-net --die-with-parent
		--cap-drop --clearenv --setenv --ro-bind --bind --dev-bind --tmpfs --size --proc --dev --dir --symlink --file --ro-bind-data
		--perms --remount-ro --seccomp --chdir --`) {
		known[o] = true
	}
	options := regexp.MustCompile(`(?m)^  (--[a-z0-9-]*)`).FindAllStringSubmatch(script, -1)
	if len(options) < 30 {
		t.Fatalf("only %d options found:\n%s", len(options), script)
	}
	for _, o := range options {
		if !known[o[1]] {
			t.Errorf("%s is not among the options of 0.8.0 that are meant", o[1])
		}
	}
}

// L5, H11: never a bubblewrap out of PATH, and none that somebody else could have written.
func TestOnlyTrustedBubblewrap(t *testing.T) {
	s := newSite(t, nil)
	s.write(filepath.Join(s.bin, "bwrap"), "#!/bin/sh\necho from PATH\n", 0o755)
	s.run("--", "echo", "inside").ok().prints("inside\n")
	loose := s.write("loose/bwrap", "#!/bin/sh\necho loose\n", 0o777)
	s.run("--bwrap", loose, "--", "echo", "ran").refused("--bwrap "+loose, "mode 0777", "chmod go-w")
	s.run("--bwrap", "loose/bwrap", "--", "echo", "ran").refused("--bwrap", "absolute")
	s.run("--bwrap", s.path("none"), "--", "echo", "ran").refused(s.path("none"), "not there")
	s.setenv("SANDBOX_BWRAP="+s.path("none")).run("--", "echo", "ran").refused("SANDBOX_BWRAP", "not there")
	own := s.write("own/bwrap", "#!/bin/sh\nexec /usr/bin/bwrap \"$@\"\n", 0o755)
	s.run("--bwrap", own, "--", "echo", "inside").ok().prints("inside\n")
}

// The escape hatches work with a bubblewrap that is missing, broken or a stranger's.
func TestHelpWithoutBubblewrap(t *testing.T) {
	s := newSite(t, nil)
	bad := s.write("bad/bwrap", "not a program\n", 0o644)
	for _, b := range []string{bad, s.path("none")} {
		e := s.setenv("SANDBOX_BWRAP="+b, "SANDBOX_MODE=bwarp")
		e.selfcage("--help").ok().has("explain", "doctor", "status")
		e.selfcage().ok().has("explain", "doctor", "status")
		e.selfcage("run", "--help").ok().has("--write PATH", "Exit status").silent()
		e.selfcage("explain", "--help").ok().has("--format text|json|argv", "--write PATH")
		e.selfcage("version").ok().has("selfcage ")
		e.selfcage("status").is(1).prints("not in a cage\n")
		e = s.setenv("SANDBOX_BWRAP=" + b)
		e.selfcage("explain", "--", "ls").ok().has("/usr", "base: programs and libraries")
		e.selfcage("explain", "--format", "json").ok().has(`"mounts":[`)
		e.selfcage("explain", "--format", "argv", "--", "true").ok().has("env -i " + b + " ")
		e.selfcage("doctor").is(1).has("refused", b, "cannot run")
		e.run("--", "echo", "ran").refused(b)
	}
}

// The usual bubblewrap itself is missing, or was tampered with: no other one is looked for.
func TestUsualBubblewrapGone(t *testing.T) {
	s := newStage(t, `mount --bind "$W/broken" /usr/bin/bwrap`)
	s.write(filepath.Join(s.root, "broken"), "#!/bin/sh\nexit 0\n", 0o644)
	must(t, os.Chown(filepath.Join(s.root, "broken"), 0, 0))
	s.run("--", "echo", "ran").refused("/usr/bin/bwrap", "not executable")
	s.selfcage("doctor").is(1).has("/usr/bin/bwrap", "not executable")
	s.selfcage("explain").ok().has("/usr")
	s.setenv("SANDBOX_MODE=off").run("--", "echo", "ran").ok().prints("ran\n")
}

// Case 7 (Gitlawb/zero PR#744), hosts.md 16: nothing in the environment proves that a process is inside. The environment of a caged
// process, replayed outside, gives a cage; so do the marker variables by hand. What is inside gets no marker.
func TestMarkerProvesNothing(t *testing.T) {
	s := newSite(t, nil)
	inside := s.run("--", "env", "-0").ok().out
	if strings.Contains(inside, "SELFCAGE_START") {
		t.Errorf("the command has the marker: %q", inside)
	}
	ns := func(environ ...string) string {
		t.Helper()
		e := *s
		e.env = environ
		return e.selfcage("run", "--quiet", "--", "readlink", "/proc/self/ns/mnt").ok().out
	}
	outside := s.command("/usr/bin/readlink", "/proc/self/ns/mnt").ok().out
	for name, environ := range map[string][]string{
		"replayed":   strings.Split(strings.TrimSuffix(inside, "\x00"), "\x00"),
		"marker":     append(s.env[:len(s.env):len(s.env)], "SELFCAGE_START=3:0:-1"),
		"nonsense":   append(s.env[:len(s.env):len(s.env)], "SELFCAGE_START=yes"),
		"descriptor": append(s.env[:len(s.env):len(s.env)], "SELFCAGE_START=0:ffff:1", "SANDBOX_MODE=bwrap"),
	} {
		if got := ns(environ...); got == outside || !strings.HasPrefix(got, "mnt:[") {
			t.Errorf("%s: mount namespace %q, outside it is %q", name, got, outside)
		}
	}
	s.setenv("SELFCAGE_START=3:0:-1").run("--mode", "off", "--", "env").ok().has("HOME=").hasNot("SELFCAGE_START")
	s.setenv("SELFCAGE_START=3:0:-1").selfcage("status").is(1).prints("not in a cage\n")
}

// A file where a cage has its plan proves nothing either: it must be a read-only mount of its own.
func TestPlanFileProvesNothing(t *testing.T) {
	s := newStage(t, `
		mount -t tmpfs none /run
		mkdir /run/selfcage
		echo '{"version":1}' >/run/selfcage/plan.json
		chmod 0444 /run/selfcage/plan.json
	`)
	outside := s.command("/usr/bin/readlink", "/proc/self/ns/pid").ok().out
	if got := s.run("--", "readlink", "/proc/self/ns/pid").ok().out; got == outside || !strings.HasPrefix(got, "pid:[") {
		t.Errorf("pid namespace %q, outside it is %q", got, outside)
	}
	s.selfcage("status").is(1).prints("not in a cage\n")
}

// H1, H4, H6, R9: run means to confine. Every other mode is refused by its name, never defaulted.
func TestModes(t *testing.T) {
	s := newSite(t, nil)
	outside := s.command("/usr/bin/readlink", "/proc/self/ns/pid").ok().out
	for _, mode := range []string{"", "bwrap", " BWrap ", "enforced", "auto"} {
		if got := s.setenv("SANDBOX_MODE="+mode).run("--read", s.dir, "--", "readlink", "/proc/self/ns/pid").ok().silent().out; got == outside {
			t.Errorf("mode %q does not confine", mode)
		}
	}
	for _, mode := range []string{"scrubbed_only", "disabled"} {
		s.setenv("SANDBOX_MODE="+mode).run("--", "readlink", "/proc/self/ns/pid").ok().prints(outside)
	}
	s.run("--mode", "landlock", "--", "echo", "ran").refused("--mode", "landlock", "hint: use bwrap, enforced or auto")
	s.setenv("SANDBOX_MODE=landlock").run("--", "echo", "ran").refused("SANDBOX_MODE", "landlock")
	all := []string{"off", "bwrap", "landlock", "auto", "enforced", "scrubbed_only", "disabled"}
	s.setenv("SANDBOX_MODE=bwarp").run("--", "echo", "ran").refused(append(all, `SANDBOX_MODE "bwarp"`, "did you mean bwrap?")...)
	s.run("--mode", "on", "--", "echo", "ran").refused(append(all, `--mode "on"`)...)
	s.run("--network=egress", "--", "echo", "ran").refused("--network", "egress", "names no host")
	s.setenv("SANDBOX_NETWORK=egress").run("--", "echo", "ran").refused("SANDBOX_NETWORK", "egress", "names no host")
	s.run("--host=a.b", "--", "echo", "ran").refused("--host", "a.b", "the network is not egress")
	s.run("--network=egress", "--host=a.b", "--", "echo", "ran").refused("--network", "egress", "needs what a later version brings")
	s.setenv("SANDBOX_NETWORK=egress", "SANDBOX_HOSTS=a.b").run("--", "echo", "ran").refused("SANDBOX_NETWORK", "egress", "needs what a later version brings")
	for _, arg := range []string{"--gpu=all", "--npu=all", "--limit=pids=1"} {
		name, value, _ := strings.Cut(arg, "=")
		s.run(arg, "--", "echo", "ran").refused(name, value, "needs what a later version brings")
	}
	for _, v := range []string{"SANDBOX_GPU=all", "SANDBOX_NPU=all",
		"SANDBOX_LIMIT=pids=1"} {
		name, value, _ := strings.Cut(v, "=")
		s.setenv(v).run("--", "echo", "ran").refused(name, value, "needs what a later version brings")
	}
	for _, v := range []string{"SANDBOX_WRITEABLE", "SANDBOX_MDOE", "SANDBOX_READ", "SANDBOX_NETWROK"} {
		s.setenv(v+"=x").run("--", "echo", "ran").refused("misspelt variable, "+v, "SANDBOX_")
		s.setenv(v+"=x").run("--mode", "off", "--", "echo", "ran").ok().prints("ran\n")
	}
	s.run("--wirte", "x", "--", "echo", "ran").refused("--wirte", "did you mean --write?")
	s.run("--write", "", "--", "echo", "ran").refused("--write", "empty")
	s.run("--").refused("nothing to run", "usage: selfcage run")
}

// H3: an explicit off is a bare run, and says so with the grants that are then unused.
func TestExplicitOff(t *testing.T) {
	s := newSite(t, nil)
	outside := s.command("/usr/bin/readlink", "/proc/self/ns/pid").ok().out
	r := s.setenv("SANDBOX_READABLE=/r").selfcage("run", "--mode", "off", "--write", "/w", "--", "readlink", "/proc/self/ns/pid").ok().prints(outside)
	r.says("mode off (--mode)", "nothing is confined", "unused: ", "--write /w", "SANDBOX_READABLE /r")
	s.setenv("SANDBOX_MODE=off").selfcage("run", "--", "readlink", "/proc/self/ns/pid").ok().prints(outside).says("mode off (SANDBOX_MODE)")
	s.setenv("A_TOKEN=x").run("--mode", "off", "--", "sh", "-c", "echo $A_TOKEN").ok().silent().prints("x\n") // untouched, and --quiet
	s.setenv("SANDBOX_MODE=off").selfcage("explain").ok().has("cage of selfcage").says("run would confine nothing", "SANDBOX_MODE")
}

// L36, H2, H33: namespaces of its own, no capabilities, and every descendant is in them.
func TestNamespaces(t *testing.T) {
	sandtest.Need(t, sandtest.NetNS)
	s := newSite(t, nil)
	const script = `for n in user mnt pid ipc uts net; do readlink /proc/self/ns/$n; done; grep -E '^(CapEff|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status`
	outside := strings.Split(s.sh(script).ok().out, "\n")
	// Through two more shells, one of them in a session of its own.
	inside := strings.Split(s.run("--network", "none", "--", "sh", "-c", `setsid -w sh -c "$1"`, "sh", script).ok().out, "\n")
	for i := range 6 {
		if outside[i] == inside[i] || !strings.Contains(inside[i], ":[") {
			t.Errorf("namespace %q, outside %q", inside[i], outside[i])
		}
	}
	got := strings.Join(inside[6:], "\n")
	want := "CapEff:\t0000000000000000\nCapBnd:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// What is to make the cage starts the program without one: nothing is run, and the reason is said.
func TestBubblewrapThatMakesNoCage(t *testing.T) {
	s := newSite(t, nil)
	s.write("bwrap", "#!/bin/sh\nPATH="+s.bin+":/usr/bin:/bin; export PATH\nwhile [ $# -gt 0 ] && [ \"$1\" != -- ]; do shift; done; shift; exec \"$@\"\n", 0o755)
	s.run("--bwrap", s.path("bwrap"), "--", "sh", "-c", "echo ran").is(125).
		says("cannot make the cage", "has started the program without one", "hint: ")
	r := s.run("--bwrap", s.path("bwrap"), "--", "sh", "-c", "echo ran")
	if strings.Contains(r.out, "ran") {
		t.Errorf("it ran: %q", r.out)
	}
}

// An open directory is a way around every grant, also as standard input.
func TestStandardInputIsDirectory(t *testing.T) {
	s := newSite(t, nil)
	s.sh(`"$1" run -- ls /proc/self/fd/0/ <"$2"`, filepath.Join(s.bin, "selfcage"), s.home).is(125).says("descriptor 0", "it is a directory")
}
