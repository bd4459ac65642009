package probe

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/selfcage/selfcage/binds"
	"github.com/selfcage/selfcage/internal/hostfs"
	"github.com/selfcage/selfcage/internal/refusal"
	"github.com/selfcage/selfcage/internal/sandtest"
	"github.com/selfcage/selfcage/plan"
	"github.com/selfcage/selfcage/policy"
)

// childVar makes the test binary do one thing and print it, so that it can be started on a host that a test has made.
const childVar = "SELFCAGE_PROBE_TEST"

func TestMain(m *testing.M) {
	switch os.Getenv(childVar) {
	case "":
		os.Exit(m.Run())
	case "examine":
		os.Stdout.Write(Examine(policy.Entry{}).JSON())
	case "diagnose":
		bwrap, err := Bwrap(policy.Entry{})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		p := &plan.Plan{Dir: "/", Command: "/usr/bin/true", Mounts: []binds.Mount{{Kind: binds.ReadOnly, Source: "/usr", Target: "/usr"}}}
		e := Diagnose(bwrap, p, Failure{Status: 1})
		fmt.Printf("%v\nhint: %s\n", e, e.Hint)
	}
	os.Exit(0)
}

// onHost runs this binary on a host that the shell script makes; "$0" in it is the binary. It runs as the caller.
func onHost(t *testing.T, what, script string, as ...string) string {
	t.Helper()
	args := append(as, "sh", "-c", script, copyOfTest(t))
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), childVar+"="+what)
	cmd.Dir = "/"
	var errs strings.Builder // apart: the race detector writes there where there is no /proc
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s%s", err, out, &errs)
	}
	return string(out)
}

// copyOfTest is a copy of the test binary that every user can execute: go test's own directory is closed to others.
func copyOfTest(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	d := t.TempDir()
	for p := d; p != "/" && strings.Contains(p, t.Name()); p = filepath.Dir(p) {
		os.Chmod(p, 0o755)
	}
	p := filepath.Join(d, "probe.test")
	if err := os.WriteFile(p, data, 0o755); err != nil {
		t.Fatal(err)
	}
	return p
}

func parseReport(t *testing.T, out string) Report {
	t.Helper()
	var r Report
	if err := json.NewDecoder(strings.NewReader(out)).Decode(&r.Rows); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return r
}

// stub writes a bubblewrap that is a shell script. It runs with an empty environment, so it uses only built-ins.
func stub(t *testing.T, script string) policy.Entry {
	t.Helper()
	p := filepath.Join(t.TempDir(), "bwrap")
	if err := os.WriteFile(p, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	return policy.Entry{Value: p, By: "--bwrap"}
}

func TestStubs(t *testing.T) {
	const v9 = `case $1 in --version) echo bubblewrap 0.9.0; exit 0;; esac` + "\n"
	for _, c := range []struct {
		name, script string
		want         []string
		states       string
	}{
		{"case 1", v9 + `echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1`,
			[]string{"user namespace, refused (bwrap: setting up uid map: Permission denied)", "refusing to run unconfined"}, "ns.user=refused"},
		{"case 4", `case $1 in --version) echo bubblewrap 0.4.0;; --help) echo '    --bind SRC DEST   Bind
    --unshare-user   x'; exit 0;; *) echo 'bwrap: Unknown option --perms' >&2; exit 1;; esac`,
			[]string{"too old: version 0.4.0 at ", "--die-with-parent", "0.8.0 or newer is needed"}, "options=refused"},
		{"case 4, --help refused", v9 + `for a; do case $a in --size) echo 'bwrap: Unknown option --size' >&2; exit 1;; esac; last=$a; done
echo "bwrap: execvp $last: Not a directory" >&2; exit 1`, []string{"lacks --size"}, ""},
		{"seed H15", v9 + `echo 'bwrap: Failed to make / slave: Permission denied' >&2; exit 1`,
			[]string{"Failed to make / slave", "forbidden by what surrounds"}, "ns.user=refused"},
		{"it says nothing", "exit 1", []string{"user namespace, refused: "}, "ns.user=refused"},
		{"it claims success", "exit 0", []string{"user namespace, refused: "}, "ns.user=refused"},
		{"it is killed", v9 + "kill -KILL $$", []string{"killed by signal 9"}, "ns.user=refused"},
		{"it sees no variable, no input and no other descriptor", v9 + `read x && echo "bwrap: input $x" >&2 && exit 1
[ -z "$HOME$PATH_$SELFCAGE_TEST" ] || { echo bwrap: environment >&2; exit 1; }
[ ! -e /proc/$$/fd/9 ] || { echo bwrap: descriptor >&2; exit 1; }
for a; do last=$a; done; while read -r x <&3; do :; done 2>/dev/null; echo "bwrap: execvp $last: Not a directory" >&2; exit 1`,
			[]string{"prog, failed (bwrap: execvp prog: Not a directory)"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("SELFCAGE_TEST", "leak")
			bwrap, err := Bwrap(stub(t, c.script))
			if err != nil {
				t.Fatal(err)
			}
			p := samplePlan()
			p.Mounts[5].Size = 4096
			e := Diagnose(bwrap, p, Failure{Status: 1})
			inOrder(t, e.Error(), c.want)
			if c.states != "" {
				r := Examine(policy.Entry{Value: bwrap, By: "--bwrap"})
				if got := states(r); !strings.HasPrefix(got, c.states) || r.CanRun(policy.Bwrap) {
					t.Errorf("states %s, want %s", got, c.states)
				}
			}
		})
	}
}

func TestHangingStepIsKilled(t *testing.T) {
	e := stub(t, "while :; do :; done")
	start := time.Now()
	r := runFor(300*time.Millisecond, e.Value, []string{"--x"}, [][]byte{make([]byte, 1<<20)})
	if !r.timedOut || time.Since(start) > 5*time.Second {
		t.Errorf("%+v after %v", r, time.Since(start))
	}
}

// What it starts must not keep a step waiting: its output stays open.
func TestHangingGrandchildIsKilled(t *testing.T) {
	e := stub(t, "while :; do :; done &\nexit 1")
	start := time.Now()
	r := runFor(300*time.Millisecond, e.Value, nil, nil)
	if r.status != 1 || time.Since(start) > 5*time.Second {
		t.Errorf("%+v after %v", r, time.Since(start))
	}
}

func TestNotAProgram(t *testing.T) {
	e := stub(t, "")
	if err := os.WriteFile(e.Value, []byte("\x7fELF nonsense"), 0o755); err != nil {
		t.Fatal(err)
	}
	got := Diagnose(e.Value, samplePlan(), Failure{Status: 1})
	inOrder(t, got.Error(), []string{"bubblewrap, failed", "exec format error", "cannot be run"})
}

func TestTrustOfRealFiles(t *testing.T) {
	d := t.TempDir()
	write := func(name string, mode os.FileMode) string {
		p := filepath.Join(d, name)
		if err := os.WriteFile(p, []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(p, mode); err != nil {
			t.Fatal(err)
		}
		return p
	}
	good := write("bwrap", 0o755)
	if err := os.Symlink("bwrap", d+"/link"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(d+"/open", 0o755); err != nil {
		t.Fatal(err)
	}
	os.Chmod(d+"/open", 0o777)
	for _, c := range []struct{ path, want string }{
		{good, ""}, {d + "/link", ""},
		{write("world", 0o757), "mode 0757 lets others write it"},
		{write("group", 0o775), "mode 0775 lets others write it"},
		{write("data", 0o644), "not executable"},
		{write("open/bwrap", 0o755), "/open has mode 0777"},
		{d, "not a regular file but a directory"}, {d + "/none", "not there"}, {"./bwrap", "not an absolute path"},
		{good + "/", ""}, {good + "/x", "not a directory"},
	} {
		got, err := Bwrap(policy.Entry{Value: c.path, By: "--bwrap"})
		var e *refusal.Error
		switch {
		case c.want == "" && (err != nil || got != good):
			t.Errorf("%s: %q, %v", c.path, got, err)
		case c.want != "" && (!errors.As(err, &e) || !strings.Contains(e.Error(), c.want)):
			t.Errorf("%s: %v, want %q", c.path, err, c.want)
		}
	}
	if os.Getuid() == 0 {
		p := write("theirs", 0o755)
		os.Chown(p, 4242, 4242)
		if _, err := Bwrap(policy.Entry{Value: p, By: "--bwrap"}); err == nil || !strings.Contains(err.Error(), "owned by uid 4242") {
			t.Errorf("%v", err)
		}
	}
}

func TestHealthyHost(t *testing.T) {
	sandtest.Need(t, sandtest.Bwrap, sandtest.Cage, sandtest.NetNS)
	r := Examine(policy.Entry{})
	if !r.CanRun(policy.Bwrap) || r.CanRun(policy.Landlock) {
		t.Errorf("a cage can be made here, and the report says\n%s", r.Text())
	}
	if row, ok := r.Row("ns.net"); !ok || row.State != OK {
		t.Errorf("%+v", row)
	}
}

// realPlan is what a usual start has on this host.
func realPlan(t *testing.T, grants ...plan.Grant) *plan.Plan {
	t.Helper()
	p, err := plan.Build(plan.Facts{
		Host: hostfs.OS{}, Args: []string{"/usr/bin/env"}, Env: []string{"PATH=/usr/bin:/bin", "TOKEN_X=hunter2"}, Dir: "/usr",
		Exe: plan.Exe{Path: "/usr/bin/env", Intact: true}, UID: os.Getuid(), GID: os.Getgid(),
	}, plan.Request{Name: "test", Filter: allowAll(), Grants: grants})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestRealDiagnosis(t *testing.T) {
	sandtest.Need(t, sandtest.Bwrap, sandtest.Cage)
	bwrap, err := Bwrap(policy.Entry{})
	if err != nil {
		t.Fatal(err)
	}
	d := sandtest.WorkDir(t)
	secret, gone := filepath.Join(d, "closed"), filepath.Join(d, "gone")
	for _, p := range []string{secret, gone, filepath.Join(secret, "in")} {
		if err := os.Mkdir(p, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	grant := func(p string) plan.Grant { return plan.Grant{Path: p, Access: binds.ReadOnly, By: "--read"} }
	noexec := func(p *plan.Plan) {
		os.WriteFile(filepath.Join(gone, "data"), []byte("x"), 0o644)
		p.Command = filepath.Join(gone, "data")
	}
	for _, c := range []struct {
		name   string
		grant  string
		change func(*plan.Plan)
		fail   Failure
		want   []string
	}{
		{"everything works, status 7", gone, nil, Failure{Status: 7}, []string{"own initialisation (status 7)"}},
		{"everything works, status 1", gone, nil, Failure{Status: 1}, []string{"passing fault"}},
		{"nothing is tried where the program is known to have run", gone, func(p *plan.Plan) { p.Dir = "/nope" }, Failure{Status: 1, Program: true}, []string{"own initialisation (status 1)"}},
		{"directory", gone, func(p *plan.Plan) { p.Dir = "/nope" }, Failure{Status: 1}, []string{"working directory /nope", "Can't chdir to /nope"}},
		{"filter", gone, func(p *plan.Plan) { p.Filter = make([]byte, 8) }, Failure{Status: 1}, []string{"seccomp filter"}},
		{"command missing", gone, func(p *plan.Plan) { p.Command = "/usr/bin/none" }, Failure{Status: 1}, []string{"command /usr/bin/none", "not in the cage"}},
		{"command not executable", gone, noexec, Failure{Status: 1}, []string{"Permission denied", "may not be executed"}},
		{"mount point", gone, func(p *plan.Plan) {
			m := binds.Mount{Kind: binds.ReadOnly, Source: "/etc", Target: "/usr/no-such-place", Reason: binds.Reason{By: "--read"}}
			p.Mounts = append(p.Mounts, m)
		}, Failure{Status: 1}, []string{"/etc, failed", "the mount point /usr/no-such-place, asked for by --read,"}},
		{"source gone", gone, func(*plan.Plan) { os.RemoveAll(gone) }, Failure{Status: 1}, []string{gone + ", failed", "Can't find source path", "asked for by --read, is not there any more"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := realPlan(t, grant(c.grant))
			if c.change != nil {
				c.change(p)
			}
			e := Diagnose(bwrap, p, c.fail)
			inOrder(t, e.Error(), c.want)
			if strings.Contains(e.Error()+e.Hint, "hunter2") {
				t.Error("a value of the environment is shown")
			}
		})
	}
	// An ordinary user's own closed directories are open to bubblewrap, which has that user's capabilities over them.
	t.Run("source closed", func(t *testing.T) {
		sandtest.Need(t, sandtest.Root)
		p := realPlan(t, grant(filepath.Join(secret, "in")))
		os.Chown(secret, 4242, 4242)
		os.Chmod(secret, 0o700)
		e := Diagnose(bwrap, p, Failure{Status: 1})
		inOrder(t, e.Error(), []string{secret + "/in, failed", "Permission denied", "asked for by --read, cannot be reached as uid 0 (in a user namespace"})
	})
}

// The command must be dynamically linked for this: its interpreter is not in the cage, and the kernel says that the
// command itself is not there.
func TestInterpreterIsMissing(t *testing.T) {
	sandtest.Need(t, sandtest.Bwrap, sandtest.Cage)
	const prog = "/usr/bin/env"
	interp := interpreter(prog)
	if interp == "" {
		t.Skipf("%s names no interpreter", prog)
	}
	p := &plan.Plan{Dir: "/", Command: prog, Mounts: []binds.Mount{{Kind: binds.ReadOnly, Source: prog, Target: prog}}}
	bwrap, err := Bwrap(policy.Entry{})
	if err != nil {
		t.Fatal(err)
	}
	o := bisect(runWith(bwrap), p, observations{bwrap: bwrap, interp: interp})
	inOrder(t, diagnose(o).Error(), []string{prog, interp + " is not in the cage"})
}

// Case 2 for real: namespaces are allowed, a fresh /proc is not.
func TestMaskedProc(t *testing.T) {
	sandtest.Need(t, sandtest.Bwrap, sandtest.Cage, sandtest.Root, sandtest.User)
	a := sandtest.OrdinaryUser(t)
	as := fmt.Sprintf("setpriv --reuid %d --regid %d --clear-groups", a.UID, a.GID)
	script := `mount -t tmpfs none /proc/fs && exec ` + as + ` "$0"`
	r := parseReport(t, onHost(t, "examine", script, "unshare", "-m"))
	row, _ := r.Row("proc")
	if row.State != Refused || r.CanRun(policy.Bwrap) {
		t.Fatalf("%+v", r)
	}
	inOrder(t, row.Detail, []string{"Can't mount proc", "is masked", "/proc/fs"})
	if user, _ := r.Row("ns.pid"); user.State != OK {
		t.Errorf("%+v: namespaces are allowed here", user)
	}
	out := onHost(t, "diagnose", script, "unshare", "-m")
	inOrder(t, out, []string{"cannot make the cage, fresh /proc, refused (bwrap: Can't mount proc", "/proc/fs", "nothing was run", "hint:"})
}

// The switch is set in a user namespace of the test's own, never on the host. There uid 0 is not mapped, so it tells too
// that a root-owned bubblewrap is still trusted.
func TestUserNamespacesSwitchedOff(t *testing.T) {
	sandtest.Need(t, sandtest.Bwrap, sandtest.UserNS, sandtest.Ordinary)
	script := `echo 0 >/proc/sys/user/max_user_namespaces && exec setpriv --ambient-caps=-all --inh-caps=-all "$0"`
	r := parseReport(t, onHost(t, "examine", script, "unshare", "--user", "--map-current-user", "--keep-caps"))
	if row, _ := r.Row("bwrap"); row.State != OK {
		t.Errorf("%+v", row)
	}
	row, _ := r.Row("ns.user")
	if row.State != Refused {
		t.Fatalf("%+v", r)
	}
	inOrder(t, row.Detail, []string{"ENOSPC", "user.max_user_namespaces is 0"})
}

func TestAmbientCapabilities(t *testing.T) {
	sandtest.Need(t, sandtest.Bwrap, sandtest.Cage, sandtest.Root, sandtest.User)
	a := sandtest.OrdinaryUser(t)
	out := onHost(t, "diagnose", `exec "$0"`, "setpriv", "--reuid", fmt.Sprint(a.UID), "--regid", fmt.Sprint(a.GID), "--clear-groups",
		"--inh-caps", "+net_admin", "--ambient-caps", "+net_admin")
	inOrder(t, out, []string{"Unexpected capabilities", "ambient capabilities", "setpriv --ambient-caps=-all"})
}

func TestChroot(t *testing.T) {
	sandtest.Need(t, sandtest.Bwrap, sandtest.Cage, sandtest.Root, sandtest.User)
	a := sandtest.OrdinaryUser(t)
	root := sandtest.WorkDir(t)
	os.Chmod(root, 0o755)
	script := fmt.Sprintf(`cd %s && for d in usr bin lib lib64 proc; do [ -e /$d ] || continue; mkdir $d && mount --rbind /$d $d; done
cp "$0" t && chmod 755 t && exec chroot . /usr/bin/setpriv --reuid %d --regid %d --clear-groups /t`, root, a.UID, a.GID)
	out := onHost(t, "diagnose", script, "unshare", "-m")
	inOrder(t, out, []string{"No permissions to create new namespace", "in a chroot"})
}

// Whatever is missing, doctor says so and does not fall over.
func TestBrokenHost(t *testing.T) {
	sandtest.Need(t, sandtest.Root)
	for name, script := range map[string]string{
		"no /proc":        `umount -l /proc && mount -t tmpfs none /proc; exec "$0"`,
		"no /dev":         `mount -t tmpfs none /dev; exec "$0" </proc/version`,
		"no /etc":         `mount -t tmpfs none /etc; exec "$0"`,
		"no /run, no tmp": `mount -t tmpfs none /run; exec "$0"`,
		"dangling resolv": `mount -t tmpfs none /etc; ln -s ../run/nowhere/resolv.conf /etc/resolv.conf; exec "$0"`, // case 10
	} {
		t.Run(strings.ReplaceAll(name, "/", ""), func(t *testing.T) {
			r := parseReport(t, onHost(t, "examine", script, "unshare", "-m"))
			if len(r.Rows) < 12 {
				t.Errorf("%+v", r)
			}
			row, _ := r.Row("resolv.conf")
			if (name == "dangling resolv" || name == "no /etc") && row.State != Warning {
				t.Errorf("%+v", row)
			}
			if name == "dangling resolv" && sandtest.Have(sandtest.Cage) && !r.CanRun(policy.Bwrap) {
				t.Errorf("a dangling link is no failure\n%s", r.Text())
			}
		})
	}
}

// A start asks the host as little as possible.
func BenchmarkBwrap(b *testing.B) {
	for b.Loop() {
		if _, err := Bwrap(policy.Entry{}); err != nil {
			b.Skip(err)
		}
	}
}
