//go:build linux && (amd64 || arm64)

package reexec_test

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/selfcage/selfcage/internal/rawclone"
	"github.com/selfcage/selfcage/reexec"
)

// hostVar makes the test binary the host program of these tests: one line at the top of main, and then what its
// arguments say. Being a test binary it is also case 29: go test with a TestMain that cages itself.
const hostVar = "REEXEC_TEST_HOST"

// initVar makes the host program end or hang before its main, in the initialisation of a package, where nothing of
// ours runs: in the inner stage only.
const initVar = "REEXEC_TEST_INIT"

// What the host program says about itself.
const (
	nameVar = "REEXEC_TEST_NAME"
	modeVar = "REEXEC_TEST_MODE"
)

var _ = initHook()

func initHook() bool {
	what := os.Getenv(initVar)
	if what == "" || os.Getenv(hostVar) == "" || !reexec.Inside() {
		return false
	}
	if n, err := strconv.Atoi(what); err == nil {
		os.Exit(n)
	}
	if what == "hang" {
		fmt.Println("hanging")
		for {
			time.Sleep(time.Hour)
		}
	}
	return true
}

func hostMain() {
	reexec.Init(reexec.Options{Name: os.Getenv(nameVar), Mode: os.Getenv(modeVar)})
	if len(os.Args) < 2 {
		fmt.Println("nothing to do")
		return
	}
	verb, args := os.Args[1], os.Args[2:]
	switch verb {
	case "exit":
		n, _ := strconv.Atoi(args[0])
		os.Exit(n)
	case "die":
		n, _ := strconv.Atoi(args[0])
		die(n)
	case "sh":
		// In place of this process: what the tests do in a shell is done to the program itself.
		must(syscall.Exec("/bin/sh", append([]string{"sh", "-c"}, args...), os.Environ()))
	case "exec":
		path, err := exec.LookPath(args[0])
		must(err)
		must(syscall.Exec(path, args, os.Environ()))
	case "count":
		countSignals(args)
	case "handle":
		handle(args)
	case "tell":
		tell(args)
	case "leave group":
		must(unix.Setpgid(0, 0))
		handle(args)
	case "dispositions":
		dispositions()
	case "where":
		mnt, err := os.Readlink("/proc/self/ns/mnt")
		must(err)
		fmt.Println(reexec.Inside(), mnt)
	case "args":
		fmt.Println(digest(os.Args[1:]))
		fmt.Println(digest(comparable(os.Environ())))
		fmt.Println(os.Args[0])
	case "cmdline":
		comm, err := os.ReadFile("/proc/self/comm")
		must(err)
		cmdline, err := os.ReadFile("/proc/self/cmdline")
		must(err)
		fmt.Printf("%q\n%s%q\n", os.Args[0], comm, strings.SplitN(string(cmdline), "\x00", 2)[0])
	case "self":
		f, err := os.Open("/proc/self/exe")
		must(err)
		h := sha256.New()
		_, err = io.Copy(h, f)
		must(err)
		fmt.Printf("%v %x\n", reexec.Inside(), h.Sum(nil))
	default:
		fmt.Fprintln(os.Stderr, "no such verb:", verb)
		os.Exit(99)
	}
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "host:", err)
		os.Exit(98)
	}
}

// die ends this process by a signal, with a core file where it may have one.
func die(sig int) {
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY})
	rawclone.Default(sig)
	rawclone.SetMask(0)
	must(unix.Kill(os.Getpid(), syscall.Signal(sig)))
	for {
		time.Sleep(time.Hour)
	}
}

// countSignals handles the signals and ends with status 9 when its input does, having told how often each one came.
func countSignals(numbers []string) {
	c := make(chan os.Signal, 1000)
	for _, s := range numbers {
		n, err := strconv.Atoi(s)
		must(err)
		signal.Notify(c, syscall.Signal(n))
	}
	fmt.Println("ready", os.Getpid())
	input := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		time.Sleep(100 * time.Millisecond) // for one too many
		close(input)
	}()
	count := map[int]int{}
	for {
		select {
		case s := <-c:
			n := int(s.(syscall.Signal))
			count[n]++
			fmt.Println("got", n)
		case <-input:
			var list []string
			for n, times := range count {
				list = append(list, fmt.Sprintf("%d:%d", n, times))
			}
			sort.Strings(list)
			fmt.Println("total", strings.Join(list, " "))
			os.Exit(9)
		}
	}
}

// tell prints each signal that comes.
func tell(numbers []string) {
	c := make(chan os.Signal, 10)
	for _, s := range numbers {
		n, err := strconv.Atoi(s)
		must(err)
		signal.Notify(c, syscall.Signal(n))
	}
	fmt.Println("ready")
	for s := range c {
		fmt.Println("got", int(s.(syscall.Signal)))
	}
}

// handle ends with status 9 at the first signal: a program that cleans up. It ends by itself after a while.
func handle(numbers []string) {
	c := make(chan os.Signal, 10)
	for _, s := range numbers {
		n, err := strconv.Atoi(s)
		must(err)
		signal.Notify(c, syscall.Signal(n))
	}
	fmt.Println("ready")
	select {
	case s := <-c:
		fmt.Println("cleanup", int(s.(syscall.Signal)))
		os.Exit(9)
	case <-time.After(30 * time.Second):
		os.Exit(0)
	}
}

// dispositions prints how signals are handled, in this process as the runtime sees it, and in a child.
func dispositions() {
	for n := 1; n <= 31; n++ {
		if signal.Ignored(syscall.Signal(n)) {
			fmt.Println("ignored", n)
		}
	}
	// This thread's own: another one may be making a thread, and the Go runtime blocks all signals for that moment.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for _, f := range []string{"/proc/thread-self/status", ""} {
		var text []byte
		var err error
		if f != "" {
			text, err = os.ReadFile(f)
		} else {
			text, err = exec.Command("/bin/cat", "/proc/self/status").Output()
		}
		must(err)
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "Sig") && !strings.HasPrefix(line, "SigQ") && !strings.HasPrefix(line, "SigPnd") {
				fmt.Print(line)
			}
		}
	}
}

// comparable leaves out the variables that a cage sets itself.
func comparable(environ []string) (list []string) {
	for _, e := range environ {
		switch name, _, _ := strings.Cut(e, "="); name {
		case "HOME", "TMPDIR", "PWD", "SANDBOX_MODE":
		default:
			list = append(list, e)
		}
	}
	sort.Strings(list)
	return list
}

func digest(words []string) string {
	h := sha256.New()
	for _, w := range words {
		_, _ = io.WriteString(h, w+"\x00")
	}
	return fmt.Sprintf("%d %x", len(words), h.Sum(nil)[:8])
}

// output collects what a process prints; wait blocks until it contains something.
type output struct {
	mu   sync.Mutex
	text strings.Builder
	more chan struct{}
	eof  bool
}

func collect(r io.Reader) *output {
	o := &output{more: make(chan struct{}, 1)}
	go func() {
		b := bufio.NewReader(r)
		buf := make([]byte, 4096)
		for {
			n, err := b.Read(buf)
			o.mu.Lock()
			o.text.Write(buf[:n])
			o.eof = err != nil
			o.mu.Unlock()
			select {
			case o.more <- struct{}{}:
			default:
			}
			if err != nil {
				return
			}
		}
	}()
	return o
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

var errPatience = errors.New("nothing more came in time")

// wait waits until ok holds for what was printed.
func (o *output) wait(ok func(string) bool) error {
	timeout := time.After(patience)
	for {
		o.mu.Lock()
		text, eof := o.text.String(), o.eof
		o.mu.Unlock()
		switch {
		case ok(text):
			return nil
		case eof:
			return io.ErrUnexpectedEOF
		}
		select {
		case <-o.more:
		case <-timeout:
			return errPatience
		}
	}
}

// patience is far more than anything here takes; what exceeds it hangs.
const patience = 60 * time.Second
