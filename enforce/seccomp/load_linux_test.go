package seccomp

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/selfcage/selfcage/internal/sandtest"
)

// childVar makes a child of the test binary of us: a filter cannot be taken off again.
const childVar = "SELFCAGE_SECCOMP_TEST_CHILD"

func TestMain(m *testing.M) {
	switch os.Getenv(childVar) {
	case "bare":
		attempt()
	case "load":
		runtime.LockOSThread()
		if err := loadFilter(); err != nil {
			fmt.Println("cannot load:", err)
			os.Exit(1)
		}
		attempt()
	default:
		os.Exit(m.Run())
	}
}

// Results without the filter are asked first: a refusal that comes without it proves nothing.
func TestLoaded(t *testing.T) {
	if _, ok := archOf(runtime.GOARCH); !ok {
		t.Skipf("no filter for %s", runtime.GOARCH)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bare := child(t, exec.Command(self), "bare")
	for _, name := range []string{"TIOCSTI", "TIOCLINUX"} {
		if bare[name] == "EPERM" {
			t.Errorf("%s without the filter: EPERM already, so this test proves nothing", name)
		}
	}
	t.Run("in-process", func(t *testing.T) {
		check(t, bare, child(t, exec.Command(self), "load"))
	})
	t.Run("bwrap", func(t *testing.T) {
		sandtest.Need(t, sandtest.Bwrap, sandtest.UserNS)
		cmd := exec.Command(bwrap(t), "--unshare-user", "--ro-bind", "/", "/", "--dev-bind", "/dev", "/dev",
			"--chdir", "/", "--seccomp", "3", self)
		cmd.ExtraFiles = []*os.File{filterFile(t)}
		check(t, bare, child(t, cmd, "bare"))
	})
}

func check(t *testing.T, bare, got map[string]string) {
	t.Helper()
	want := map[string]string{
		"TIOCSTI": "EPERM", "TIOCSTI|1<<32": "EPERM", "TIOCLINUX": "EPERM", "TIOCLINUX|1<<32": "EPERM",
		"keyctl": "ENOSYS", "add_key": "ENOSYS", "request_key": "ENOSYS", "open_by_handle_at": "EPERM",
		"x32": "ENOSYS", "call -1": "ENOSYS",
		"TIOCGWINSZ": "ok", "getpid": "ok", "open": "ok", "no such call": "ENOSYS",
		"Seccomp": "2",
	}
	if runtime.GOARCH != "amd64" {
		delete(want, "x32")
	}
	for name, w := range want {
		if got[name] != w {
			t.Errorf("%s: got %s, want %s (without the filter %s)", name, got[name], w, bare[name])
		}
	}
}

// child runs a command as session leader on a terminal of its own, since TIOCSTI on any other is refused anyway, and
// returns the results it printed.
func child(t *testing.T, cmd *exec.Cmd, mode string) map[string]string {
	t.Helper()
	master, slave := pty(t)
	defer master.Close()
	defer slave.Close()
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, &stdout, &stderr
	cmd.Env = []string{childVar + "=" + mode}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %v\n%s%s", cmd.Args, err, stdout.Bytes(), stderr.Bytes())
	}
	results := map[string]string{}
	for line := range strings.Lines(stdout.String()) {
		name, result, _ := strings.Cut(strings.TrimSpace(line), "\t")
		results[name] = result
	}
	return results
}

func pty(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("needs a pty: %v", err)
	}
	var unlock, number int32
	for request, arg := range map[uintptr]*int32{syscall.TIOCSPTLCK: &unlock, syscall.TIOCGPTN: &number} {
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, master.Fd(), request, uintptr(unsafe.Pointer(arg))); errno != 0 {
			t.Fatalf("ioctl %#x of /dev/ptmx: %v", request, errno)
		}
	}
	slave, err = os.OpenFile("/dev/pts/"+strconv.Itoa(int(number)), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return master, slave
}

func filterFile(t *testing.T) *os.File {
	t.Helper()
	b, err := Filter(Keep, runtime.GOARCH)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "filter")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// bwrap is one of the places where sandtest looks.
func bwrap(t *testing.T) string {
	t.Helper()
	for _, path := range []string{"/usr/bin/bwrap", "/run/current-system/sw/bin/bwrap"} {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	t.Fatal("no bwrap, although sandtest found one")
	return ""
}

// loadFilter puts the filter on this thread alone, the one that attempt then uses.
func loadFilter() error {
	b, err := Filter(Keep, runtime.GOARCH)
	if err != nil {
		return err
	}
	const (
		prSetNoNewPrivs      = 38
		seccompSetModeFilter = 1
	)
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, prSetNoNewPrivs, 1, 0, 0, 0, 0); errno != 0 {
		return fmt.Errorf("no_new_privs: %w", errno)
	}
	sysSeccomp := uintptr(317)
	if runtime.GOARCH == "arm64" {
		sysSeccomp = 277
	}
	fprog := struct {
		length uint16
		filter *byte
	}{uint16(len(b) / 8), &b[0]}
	if _, _, errno := syscall.RawSyscall(sysSeccomp, seccompSetModeFilter, 0, uintptr(unsafe.Pointer(&fprog))); errno != 0 {
		return fmt.Errorf("seccomp: %w", errno)
	}
	return nil
}

// attempt tries what the filter is about and prints the results. A null pointer makes it harmless where it is allowed.
func attempt() {
	a, _ := archOf(runtime.GOARCH)
	try := func(name string, nr uintptr, args ...uintptr) {
		var full [3]uintptr
		copy(full[:], args)
		_, _, errno := syscall.RawSyscall(nr, full[0], full[1], full[2])
		say(name, errno)
	}
	try("TIOCSTI", uintptr(a.ioctl), 0, tiocsti)
	try("TIOCSTI|1<<32", uintptr(a.ioctl), 0, high|tiocsti)
	try("TIOCLINUX", uintptr(a.ioctl), 0, tioclinux)
	try("TIOCLINUX|1<<32", uintptr(a.ioctl), 0, high|tioclinux)
	try("add_key", uintptr(a.addKey))
	try("request_key", uintptr(a.requestKey))
	try("keyctl", uintptr(a.keyctl), 0, ^uintptr(2), 0) // KEYCTL_GET_KEYRING_ID of the session keyring
	try("open_by_handle_at", uintptr(a.openByHandleAt), ^uintptr(0))
	try("x32", x32Bit|39)
	try("call -1", ^uintptr(0))
	try("no such call", 0x3fffffff)
	try("getpid", syscall.SYS_GETPID)
	var size [4]uint16
	try("TIOCGWINSZ", uintptr(a.ioctl), 0, syscall.TIOCGWINSZ, uintptr(unsafe.Pointer(&size)))

	// The thread's own file: the filter is on this thread only.
	status, err := os.ReadFile("/proc/thread-self/status")
	if err != nil {
		fmt.Printf("open\t%v\n", err)
		return
	}
	say("open", 0)
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "Seccomp:"); ok {
			fmt.Printf("Seccomp\t%s\n", strings.TrimSpace(value))
		}
	}
}

// high is a bit of the request that the kernel drops.
const high = uintptr(1) << (^uintptr(0) >> 63 << 5)

func say(name string, errno syscall.Errno) {
	result := errno.Error()
	switch errno {
	case 0:
		result = "ok"
	case syscall.EPERM:
		result = "EPERM"
	case syscall.ENOSYS:
		result = "ENOSYS"
	case syscall.EFAULT:
		result = "EFAULT"
	}
	fmt.Printf("%s\t%s\n", name, result)
}
