//go:build linux && (amd64 || arm64)

package reexec_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/selfcage/selfcage/internal/sandtest"
)

func TestMain(m *testing.M) {
	if os.Getenv(hostVar) != "" {
		hostMain()
		os.Exit(0)
	}
	code := m.Run()
	if hostDir != "" {
		_ = os.RemoveAll(hostDir)
	}
	os.Exit(code)
}

var (
	hostDir  string
	hostOnce sync.Once
	hostErr  error
)

// hostPath is a copy of this binary where every user may execute it.
func hostPath(t testing.TB) string {
	t.Helper()
	sandtest.Need(t, sandtest.Disk)
	hostOnce.Do(func() {
		base := os.Getenv("SELFCAGE_TEST_DIR")
		if base == "" {
			base = "/var/tmp"
		}
		if base, hostErr = filepath.EvalSymlinks(base); hostErr != nil {
			return
		}
		if hostDir, hostErr = os.MkdirTemp(base, "selfcage-host-"); hostErr != nil {
			return
		}
		if hostErr = os.Chmod(hostDir, 0o755); hostErr == nil {
			hostErr = copyFile("/proc/self/exe", hostDir+"/host", 0o755)
		}
	})
	if hostErr != nil {
		t.Fatal(hostErr)
	}
	return hostDir + "/host"
}

func copyFile(from, to string, mode os.FileMode) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	if _, err = io.Copy(out, in); err != nil {
		return err
	}
	return out.Close()
}

// user is who runs the host program.
type user struct {
	account *sandtest.Account // nil: whoever runs the test
}

// eachUser runs the test as the user who runs it, and when that is root, as an ordinary one too.
func eachUser(t *testing.T, f func(*testing.T, user)) {
	sandtest.Need(t, sandtest.Cage)
	if os.Getuid() != 0 {
		t.Run("ordinary", func(t *testing.T) { f(t, user{}) })
		return
	}
	t.Run("root", func(t *testing.T) { f(t, user{}) })
	t.Run("ordinary", func(t *testing.T) {
		a := sandtest.OrdinaryUser(t)
		f(t, user{&a})
	})
}

// ordinary is an ordinary user: the one that runs the test, or another one when that is root.
func ordinary(t *testing.T) user {
	sandtest.Need(t, sandtest.Cage)
	if os.Getuid() != 0 {
		return user{}
	}
	a := sandtest.OrdinaryUser(t)
	return user{&a}
}

func (u user) dir(t testing.TB) string {
	if u.account != nil {
		return u.account.WorkDir(t)
	}
	return sandtest.WorkDir(t)
}

// own gives a file to the user.
func (u user) own(t testing.TB, path string) {
	t.Helper()
	if u.account == nil {
		return
	}
	if err := os.Lchown(path, int(u.account.UID), int(u.account.GID)); err != nil {
		t.Fatal(err)
	}
}

// host is a run of the host program: as the user, in a working directory of its own, caged, and the leader of a
// process group of its own.
type host struct {
	t   testing.TB
	cmd *exec.Cmd
	in  io.WriteCloser
	out *output
	err *output
	end chan error
}

func (u user) command(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(hostPath(t), args...)
	u.prepare(t, cmd)
	return cmd
}

// prepare makes a command one of the user's, caged.
func (u user) prepare(t testing.TB, cmd *exec.Cmd) {
	cmd.Dir = u.dir(t)
	home := os.Getenv("HOME")
	if u.account != nil {
		home = u.account.Home
	}
	// With the race detector a program would sleep for a second before it exits.
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + home, hostVar + "=1", "SANDBOX_MODE=bwrap", "GORACE=atexit_sleep_ms=0"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if u.account != nil {
		cmd.SysProcAttr.Credential = u.account.Attr().Credential
	}
}

func start(t testing.TB, cmd *exec.Cmd) *host {
	t.Helper()
	h := &host{t: t, cmd: cmd, end: make(chan error, 1)}
	var err error
	if cmd.Stdin == nil {
		if h.in, err = cmd.StdinPipe(); err != nil {
			t.Fatal(err)
		}
	}
	var closers []io.Closer
	pipe := func(to *io.Writer) *output {
		if *to != nil {
			return nil
		}
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		*to = w
		closers = append(closers, w)
		return collect(r)
	}
	h.out, h.err = pipe(&cmd.Stdout), pipe(&cmd.Stderr)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for _, c := range closers {
		c.Close()
	}
	done := make(chan struct{})
	go func() {
		h.end <- cmd.Wait()
		close(done)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-done
	})
	return h
}

// expect waits until the host program has printed a text.
func (h *host) expect(text string) {
	h.t.Helper()
	if err := h.out.wait(func(s string) bool { return strings.Contains(s, text) }); err != nil {
		h.t.Fatalf("no %q: %v\nstdout: %q\nstderr: %q", text, err, h.out, h.err)
	}
}

// wait returns how the process ended. All it printed has been read then, unless something survived it.
func (h *host) wait() syscall.WaitStatus {
	h.t.Helper()
	select {
	case <-h.end:
	case <-time.After(patience):
		h.t.Fatalf("does not end\nstdout: %q\nstderr: %q\nprocesses:\n%s", h.out, h.err, processes(h.cmd.Args[0]))
	}
	for _, o := range []*output{h.out, h.err} {
		if o != nil {
			if err := o.wait(func(string) bool { return false }); err != io.ErrUnexpectedEOF {
				h.t.Fatalf("it ended, and somebody still has its output: %v\nstdout: %q\nstderr: %q", err, h.out, h.err)
			}
		}
	}
	return h.cmd.ProcessState.Sys().(syscall.WaitStatus)
}

// kill sends a signal to the supervisor, or with a negative number to its group.
func (h *host) kill(sig syscall.Signal) {
	h.t.Helper()
	if err := syscall.Kill(h.cmd.Process.Pid, sig); err != nil {
		h.t.Fatal(err)
	}
}

func (h *host) killGroup(sig syscall.Signal) {
	h.t.Helper()
	if err := syscall.Kill(-h.cmd.Process.Pid, sig); err != nil {
		h.t.Fatal(err)
	}
}

// result is a whole run.
type result struct {
	status   string // "exit 7" or "signal 15"
	out, err string
}

func run(t testing.TB, cmd *exec.Cmd) result {
	t.Helper()
	h := start(t, cmd)
	if h.in != nil {
		h.in.Close()
	}
	ws := h.wait()
	r := result{status: status(ws)}
	if h.out != nil {
		r.out = h.out.String()
	}
	if h.err != nil {
		r.err = h.err.String()
	}
	return r
}

func status(ws syscall.WaitStatus) string {
	switch {
	case ws.Exited():
		return "exit " + strconv.Itoa(ws.ExitStatus())
	case ws.Signaled() && ws.CoreDump():
		return "signal " + strconv.Itoa(int(ws.Signal())) + " with a core"
	case ws.Signaled():
		return "signal " + strconv.Itoa(int(ws.Signal()))
	}
	return fmt.Sprintf("%#x", uint32(ws))
}

func (h *host) wantStatus(want string) {
	h.t.Helper()
	if got := status(h.wait()); got != want {
		h.t.Errorf("%s, want %s\nstdout: %q\nstderr: %q", got, want, h.out, h.err)
	}
}

// env adds variables to a command, in place of those of the same name.
func env(cmd *exec.Cmd, vars ...string) *exec.Cmd {
	names := map[string]bool{}
	for _, v := range vars {
		name, _, _ := strings.Cut(v, "=")
		names[name] = true
	}
	cmd.Env = slices.DeleteFunc(cmd.Env, func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		return names[name]
	})
	cmd.Env = append(cmd.Env, vars...)
	return cmd
}

// shellFirst makes a shell do something first, and then execute the program as the same process.
func shellFirst(cmd *exec.Cmd, script string) *exec.Cmd {
	cmd.Args = append([]string{"sh", "-c", script + "\nexec \"$0\" \"$@\"", cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/bin/sh"
	return cmd
}

var tokens atomic.Int64

// token is a number that nothing else on this machine has in its command line: `sleep TOKEN` can be found again.
func token() string {
	return strconv.FormatInt(1_000_000_000+int64(os.Getpid())*10_000+tokens.Add(1), 10)
}

// processes lists the processes that have a text in their command line, zombies excepted.
func processes(text string) string {
	var list []string
	procs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range procs {
		if filepath.Base(dir) == strconv.Itoa(os.Getpid()) {
			continue
		}
		cmdline, err := os.ReadFile(dir + "/cmdline")
		if err == nil && strings.Contains(string(cmdline), text) {
			list = append(list, filepath.Base(dir)+" "+strings.ReplaceAll(string(cmdline), "\x00", " "))
		}
	}
	return strings.Join(list, "\n")
}

// wantGone waits until no process has the text in its command line.
func wantGone(t testing.TB, text string) {
	t.Helper()
	poll(t, func() error {
		if left := processes(text); left != "" {
			return fmt.Errorf("these survived:\n%s", left)
		}
		return nil
	})
}

// poll waits until f returns nil.
func poll(t testing.TB, f func() error) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if err = f(); err == nil {
			return
		}
	}
	t.Fatal(err)
}

// family are the processes of a run: the supervisor's children are the witness and then bwrap, whose child is pid 1 of
// the cage, whose first child is the program.
type family struct{ witness, bwrap, init, program int }

func (h *host) family() (f family) {
	h.t.Helper()
	poll(h.t, func() error {
		f = findFamily(h.cmd.Process.Pid)
		if f.witness == 0 || f.program == 0 {
			return fmt.Errorf("no whole family: %+v", f)
		}
		return nil
	})
	return f
}

func findFamily(pid int) (f family) {
	first := func(pid, i int) int {
		if children := childrenOf(pid); pid != 0 && len(children) > i {
			return children[i]
		}
		return 0
	}
	f.witness, f.bwrap = first(pid, 0), first(pid, 1)
	f.init = first(f.bwrap, 0)
	f.program = first(f.init, 0)
	return f
}

func childrenOf(pid int) (pids []int) {
	tasks, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children")
	for _, task := range tasks {
		text, _ := os.ReadFile(task)
		for f := range strings.FieldsSeq(string(text)) {
			n, _ := strconv.Atoi(f)
			pids = append(pids, n)
		}
	}
	return pids
}

// refused checks one of our own refusals: status 125, the two lines, and nothing that the program printed.
func refused(t testing.TB, r result, texts ...string) {
	t.Helper()
	if r.status != "exit 125" || r.out != "" {
		t.Errorf("%s, stdout %q, want a refusal\n%s", r.status, r.out, r.err)
	}
	for _, text := range texts {
		if !strings.Contains(r.err, text) {
			t.Errorf("no %q in %q", text, r.err)
		}
	}
}
