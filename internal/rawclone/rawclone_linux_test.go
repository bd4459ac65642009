//go:build linux && (amd64 || arm64)

package rawclone

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// childVar makes the test binary one of the children below: what they do to their signals cannot be undone.
const childVar = "RAWCLONE_TEST_CHILD"

var childMains = map[string]func(){"catch": catchMain, "witness": witnessMain, "orphan": orphanMain, "dispositions": dispositionsMain}

func TestMain(m *testing.M) {
	if f := childMains[os.Getenv(childVar)]; f != nil {
		runtime.LockOSThread()
		f()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child runs one of the children in a process group of its own and returns what it prints.
func child(t *testing.T, name string, prefix ...string) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	argv := append(prefix, exe)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), childVar+"="+name)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, stderr.Bytes())
	}
	return string(out)
}

// check ends a child that cannot go on.
func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func pipe() (r, w int) {
	var p [2]int
	check(syscall.Pipe2(p[:], syscall.O_CLOEXEC|syscall.O_NONBLOCK))
	return p[0], p[1]
}

const usr1, usr2, term, winch = int(syscall.SIGUSR1), int(syscall.SIGUSR2), int(syscall.SIGTERM), int(syscall.SIGWINCH)

func catchMain() {
	r, w := pipe()
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGUSR1) // Catch comes in place of the runtime's handler
	Catch(w, usr1, term, 40, 64)
	Catch(w, winch)
	self := os.Getpid()
	for _, s := range []int{usr1, term, winch, 40, 64} {
		check(syscall.Kill(self, syscall.Signal(s)))
	}
	// From every thread, in the middle of Go code and of its garbage collection.
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 200 {
				_ = make([]byte, 10000)
				check(syscall.Kill(self, 40))
				runtime.Gosched()
			}
		})
	}
	wg.Wait()
	runtime.GC()
	count := map[int]int{}
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline) && count[40] < 801; {
		sigs, _ := Read(r)
		for _, s := range sigs {
			count[int(s.Number)]++
			if s.Code != 0 || int(s.Sender) != self { // SI_USER
				fmt.Printf("%+v\n", s)
			}
		}
		time.Sleep(time.Millisecond)
	}
	fmt.Println(count[usr1], count[term], count[winch], count[40], count[64], len(count), len(c))
	Default(term)
	if ignored, handled := Disposition(term); ignored || handled {
		fmt.Println("TERM is not default")
	}
	Ignore(term)
	if ignored, _ := Disposition(term); !ignored {
		fmt.Println("TERM is not ignored")
	}
	check(syscall.Kill(self, syscall.SIGTERM))
}

func TestCatch(t *testing.T) {
	if got, want := child(t, "catch"), "1 1 1 801 1 5 0\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// seen waits until the witness has written n signals; a mark is 0 and the end is -1.
func seen(r, n int) (sigs []int) {
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline) && len(sigs) < n; time.Sleep(time.Millisecond) {
		more, open := Read(r)
		for _, s := range more {
			if s.Mark() {
				s.Number = 0
			}
			sigs = append(sigs, int(s.Number))
		}
		if !open {
			return append(sigs, -1)
		}
	}
	return sigs
}

func witnessMain() {
	other, err := os.Open("/dev/null")
	check(err)
	defer other.Close()
	r, w := pipe()
	own, iw := pipe()
	Catch(iw, usr1, usr2, term, winch, 64)
	pid, err := Witness(w)
	check(err)
	syscall.Close(w)
	group := func(s int) { check(syscall.Kill(0, syscall.Signal(s))) }
	group(usr1)
	fmt.Println("group", seen(r, 1))
	check(syscall.Kill(os.Getpid(), syscall.SIGUSR2))
	check(Mark(pid))
	fmt.Println("self alone", seen(r, 1))
	// The mark comes last, whatever the order in which the witness takes the signals before it.
	check(syscall.Kill(pid, syscall.SIGSTOP))
	for _, s := range []int{term, winch, usr1, 64} {
		group(s)
	}
	check(Mark(pid))
	check(syscall.Kill(pid, syscall.SIGCONT))
	sigs := seen(r, 6)
	fmt.Println("stopped", sigs[len(sigs)-2:], len(sigs))
	fds, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/fd")
	check(err)
	fmt.Println("descriptors", len(fds))
	check(syscall.Kill(pid, syscall.SIGKILL))
	fmt.Println("killed", seen(r, 1))
	got := map[int]int{}
	caught, _ := Read(own)
	for _, s := range caught {
		got[int(s.Number)]++
	}
	fmt.Println("caught", got[usr1], got[usr2], got[64])
}

func TestWitness(t *testing.T) {
	want := "group [10]\nself alone [0]\nstopped [64 0] 6\ndescriptors 1\nkilled [-1]\ncaught 2 1 1\n"
	if d := cmp.Diff(want, child(t, "witness")); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func orphanMain() {
	_, w := pipe()
	pid, err := Witness(w)
	check(err)
	fmt.Println(pid)
	check(syscall.Kill(os.Getpid(), syscall.SIGKILL))
}

// Case 41 d: nothing survives a kill -9.
func TestWitnessEndsWithParent(t *testing.T) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), childVar+"=orphan")
	out, _ := cmd.Output()
	pid, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("still there: %s", stat)
		}
	}
}

func dispositionsMain() {
	_, w := pipe()
	Catch(w, usr1, usr2, term)
	Ignore(int(syscall.SIGHUP))
	blocked := SetMask(1<<(syscall.SIGALRM-1) | 1<<(50-1))
	pid, err := Exec("/bin/cat", []string{"cat", "/proc/self/status", "/proc/self/environ"}, []string{"A=1"}, []int{usr1, 40})
	SetMask(blocked)
	check(err)
	_, err = syscall.Wait4(pid, nil, 0, nil)
	check(err)
}

func TestExecDispositions(t *testing.T) {
	own, err := os.ReadFile("/proc/self/status") // what the caller ignores, the child ignores too
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(own), "SigIgn:\t")
	inherited, err := strconv.ParseUint(rest[:16], 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	out := child(t, "dispositions")
	bits := func(sigs ...int) string {
		var m uint64
		for _, s := range sigs {
			m |= 1 << (s - 1)
		}
		return fmt.Sprintf("%016x", m)
	}
	for name, want := range map[string]string{
		"SigIgn:": fmt.Sprintf("%016x", inherited|1<<(syscall.SIGHUP-1)|1<<(usr1-1)|1<<(40-1)), // HUP was ignored before
		"SigCgt:": bits(),
		"SigBlk:": bits(int(syscall.SIGALRM), 50),
	} {
		_, rest, _ := strings.Cut(out, name+"\t")
		if got, _, _ := strings.Cut(rest, "\n"); got != want {
			t.Errorf("%s %s, want %s", name, got, want)
		}
	}
	if !strings.HasSuffix(out, "\nA=1\x00") {
		t.Errorf("environment: %q", out[max(0, len(out)-100):])
	}
}

func TestExecErrors(t *testing.T) {
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, []byte("#!/no/such/interpreter\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		path string
		argv []string
		want error
	}{
		{"/no/such/file", []string{"x"}, syscall.ENOENT},
		{plain, []string{"x"}, syscall.EACCES},
		{"/", []string{"x"}, syscall.EACCES},
		{"/bin/true", []string{strings.Repeat("x", 140000)}, syscall.E2BIG},
		{"/bin/true\x00", []string{"x"}, syscall.EINVAL},
		{"/bin/true", []string{"x\x00"}, syscall.EINVAL},
	} {
		pid, err := Exec(tt.path, tt.argv, nil, nil)
		if !errors.Is(err, tt.want) || pid != 0 {
			t.Errorf("%q: pid %d, error %v, want %v", tt.path, pid, err, tt.want)
		}
	}
	if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); err != syscall.ECHILD {
		t.Errorf("a child is left: %d, %v", pid, err)
	}
}

// The children share our memory: nothing of it may change, whatever else runs.
func TestExecMany(t *testing.T) {
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				_ = bytes.Repeat([]byte("x"), 100000)
			}
		}
	})
	for i := range 200 {
		pid, err := Exec("/bin/sh", []string{"sh", "-c", "exit " + strconv.Itoa(i%100)}, nil, []int{usr1})
		if err != nil {
			t.Fatal(err)
		}
		var ws syscall.WaitStatus
		for {
			if _, err = syscall.Wait4(pid, &ws, 0, nil); err != syscall.EINTR {
				break
			}
		}
		if err != nil || ws.ExitStatus() != i%100 {
			t.Fatalf("run %d: %v, status %v", i, err, ws)
		}
	}
	close(stop)
	wg.Wait()
}
