//go:build linux && (amd64 || arm64)

package launch

import (
	"errors"
	"os"
	"os/signal"
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
// of StartVar. When it returns an error the process must not go on: it is not supervised.
func Enter(value string) error {
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
	var buf [4096]byte
	n := 0
	for {
		var err error
		if n, err = unix.Read(st.sock, buf[:]); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	unix.Close(st.sock)
	if n < 1 {
		return errAlone
	}
	if n > 1 {
		os.Args[0] = string(buf[1:n])
	}
	return nil
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
	unix.Close(st.big)
	argv, environ, ok := splitWords(b)
	if !ok {
		return errTruncated
	}
	st.big = -1
	return os.NewSyscallError("execve", syscall.Exec("/proc/self/exe", argv, append(environ, StartVar+"="+st.String())))
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
