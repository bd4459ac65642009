//go:build linux && (amd64 || arm64)

package launch

import (
	"errors"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/selfcage/selfcage/internal/rawclone"
	"github.com/selfcage/selfcage/plan"
)

// Inside says whether this process is in a cage of ours. It is the kernel's word, not a variable's: the plan's file is
// the root of a mount, and that mount is read-only. A variable leaks through ssh, srun, cron and docker.
func Inside() bool {
	var x unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, plan.File, unix.AT_NO_AUTOMOUNT|unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BASIC_STATS, &x)
	if err != nil || x.Attributes_mask&unix.STATX_ATTR_MOUNT_ROOT != 0 && x.Attributes&unix.STATX_ATTR_MOUNT_ROOT == 0 {
		return false
	}
	var fs unix.Statfs_t
	return unix.Statfs(plan.File, &fs) == nil && fs.Flags&unix.ST_RDONLY != 0
}

var (
	errBadStart  = errors.New("the variable " + StartVar + " does not say where to meet the supervisor")
	errAlone     = errors.New("the supervisor is gone")
	errClosed    = errors.New("closed without a message")
	errNoCreds   = errors.New("the message carried no credentials")
	errTruncated = errors.New("the memory file ended early")
)

// Enter completes the start inside, before the program does anything: signals are as they were outside, the supervisor
// has answered, and nothing of the start is left in the environment, the arguments or the descriptors. value is that
// of StartVar. reply answers what the supervisor asks first, if it asks. When Enter returns an error the process must not
// go on: it is not supervised.
func Enter(value string, reply func(question []byte) []byte) error {
	st, ok := parseStart(value)
	if !ok {
		return errBadStart
	}
	if st.big >= 0 {
		return enterAgain(st)
	}
	_ = os.Unsetenv(StartVar)
	unix.CloseOnExec(st.sock)
	// Before the message: what the supervisor passes on afterwards must find the program as it is unconfined.
	restoreSignals(st.ignored)
	if err := unix.Sendto(st.sock, []byte("hello"), unix.MSG_NOSIGNAL, nil); err != nil {
		return errAlone
	}
	word, err := receiveAnswer(st.sock)
	if err == nil && len(word) > 0 && word[0] == '?' {
		if err := unix.Sendto(st.sock, reply(word[1:]), unix.MSG_NOSIGNAL, nil); err != nil {
			return errAlone
		}
		word, err = receiveAnswer(st.sock)
	}
	unix.Close(st.sock)
	if err != nil || len(word) == 0 {
		return errAlone
	}
	if word[0] == '=' {
		os.Args[0] = string(word[1:])
	}
	return nil
}

// receiveAnswer waits for the supervisor's message. It holds argv[0], which can be longer than a path.
func receiveAnswer(sock int) ([]byte, error) {
	buf := make([]byte, 512)
	for {
		n, _, err := unix.Recvfrom(sock, buf, unix.MSG_PEEK|unix.MSG_TRUNC)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return nil, err
		case n <= len(buf):
			_, _, err := unix.Recvfrom(sock, buf, 0) // it was only looked at
			return buf[:n], err
		default:
			buf = make([]byte, n)
		}
	}
}

// A command line that did not fit bwrap's is fetched before the program's main, and before most of its own package
// initialisation: neither must see half of it, and a program that calls Init only under some condition would go on
// half started. It costs nothing else: such a stage has no arguments. An error is reported by Enter, which tries again.
func init() {
	if len(os.Args) != 1 {
		return
	}
	if st, ok := parseStart(os.Getenv(StartVar)); ok && st.big >= 0 && Inside() {
		_ = enterAgain(st)
	}
}

// enterAgain fetches a command line and environment that did not fit bwrap's, and executes this program once more
// with them.
func enterAgain(st start) error {
	var stat unix.Stat_t
	if err := unix.Fstat(st.big, &stat); err != nil {
		return os.NewSyscallError("fstat", err)
	}
	b := make([]byte, stat.Size)
	for off := 0; off < len(b); {
		n, err := unix.Pread(st.big, b[off:], int64(off))
		if err != nil && !errors.Is(err, unix.EINTR) {
			return os.NewSyscallError("read", err)
		}
		if n == 0 {
			return errTruncated
		}
		off += max(n, 0)
	}
	unix.CloseOnExec(st.big)
	argv, environ, ok := splitWords(b)
	if !ok {
		return errTruncated
	}
	st.big = -1
	// The runtime's handlers do not survive the exec, and a signal to the group must not meet the default action.
	for _, sig := range managed {
		rawclone.Ignore(sig)
	}
	return os.NewSyscallError("execve", syscall.Exec(ownPath(), argv, append(environ, StartVar+"="+st.String())))
}

// ownPath is the path by which bwrap has executed this program: its last part is the name that ps and pkill know.
func ownPath() string {
	const self = "/proc/self/exe"
	name, dirs := os.Args[0], []string{""}
	if !strings.Contains(name, "/") {
		dirs = strings.Split(os.Getenv("PATH"), ":")
		name = "/" + name
	}
	var runs, lies unix.Stat_t
	if unix.Stat(self, &runs) != nil {
		return self
	}
	for _, dir := range dirs {
		if unix.Stat(dir+name, &lies) == nil && lies.Dev == runs.Dev && lies.Ino == runs.Ino {
			return dir + name
		}
	}
	return self
}

// restoreSignals gives each signal that is ignored only because bwrap had to survive it its default action. The Go
// runtime looks at HUP and INT when it starts and believes that they are meant to be ignored for ever; turning them on
// and off again makes it look once more.
func restoreSignals(ignored uint64) {
	var forget []os.Signal
	for _, sig := range managed {
		if ignored&bit(sig) != 0 {
			continue
		}
		if now, _ := rawclone.Disposition(sig); !now {
			continue
		}
		rawclone.Default(sig)
		if sig == int(unix.SIGHUP) || sig == int(unix.SIGINT) {
			forget = append(forget, syscall.Signal(sig))
		}
	}
	if len(forget) > 0 {
		// The runtime's goroutine for signals takes the thread it is on for ever: not the first one, whose signal mask
		// is what others see as the process's.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		c := make(chan os.Signal, 1)
		signal.Notify(c, forget...)
		signal.Stop(c)
	}
}

// receiveHello returns the process id of the sender as this process sees it: the kernel translates it.
func receiveHello(sock int) (pid int, err error) {
	var buf [64]byte
	oob := make([]byte, unix.CmsgSpace(unix.SizeofUcred))
	n, oobn, _, _, err := unix.Recvmsg(sock, buf[:], oob, unix.MSG_DONTWAIT)
	if err != nil {
		return 0, os.NewSyscallError("recvmsg", err)
	}
	if n == 0 {
		return 0, errClosed
	}
	ms, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil || len(ms) == 0 {
		return 0, errNoCreds
	}
	cred, err := unix.ParseUnixCredentials(&ms[0])
	if err != nil || cred.Pid <= 0 {
		return 0, errNoCreds
	}
	return int(cred.Pid), nil
}

// isMeetingPoint says whether a descriptor is one end of a socket pair like the supervisor's.
func isMeetingPoint(fd int) bool {
	domain, err1 := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	kind, err2 := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	return err1 == nil && err2 == nil && domain == unix.AF_UNIX && kind == unix.SOCK_SEQPACKET
}
