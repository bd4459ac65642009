//go:build linux && (amd64 || arm64)

package launch

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// failed waits for bwrap to end without having reached the program.
func (s *supervisor) failed() *Failure {
	ws := wait(s.bwrap)
	s.bwrap = 0
	f := &Failure{Met: s.prog != 0}
	if ws.Signaled() {
		f.Signal = int(ws.Signal())
	} else {
		f.Status = ws.ExitStatus()
	}
	return f
}

// kill ends the cage at once.
func (s *supervisor) kill() {
	if s.bwrap != 0 {
		_ = unix.Kill(s.bwrap, unix.SIGKILL)
		wait(s.bwrap)
	}
	s.finish()
}

// end is called when bwrap has ended: how did the program?
func (s *supervisor) end() End {
	ws := wait(s.bwrap)
	e := End{Status: ws.ExitStatus(), Left: s.left}
	if ws.Signaled() {
		e = End{Signal: int(ws.Signal()), Left: s.left}
	}
	if own, ok := exitOf(s.progFD); ok {
		e.Status, e.Signal = own.ExitStatus(), 0
		if own.Signaled() {
			e.Status, e.Signal = 0, int(own.Signal())
		}
	}
	s.finish()
	return e
}

// finish ends and reaps what is left of the cage, and the witness. bwrap is gone, and its pid 1 is ours now: without
// bwrap it may sleep for ever in an eventfd, if it was not told yet to go on.
func (s *supervisor) finish() {
	if s.witness != 0 {
		_ = unix.Kill(s.witness, unix.SIGKILL)
		wait(s.witness)
	}
	if s.init != 0 {
		// Not our child: bwrap has reaped it before it ended, and the number may be somebody else's now.
		if _, err := unix.Wait4(s.init, nil, unix.WNOHANG, nil); err == nil {
			_ = unix.Kill(s.init, unix.SIGKILL)
			wait(s.init)
		}
		return
	}
	for _, pid := range children("self") {
		if otherPidNamespace(pid) {
			_ = unix.Kill(pid, unix.SIGKILL)
			wait(pid)
		}
	}
}

// otherPidNamespace tells a child that is part of a cage from one that somebody had before they executed us.
func otherPidNamespace(pid int) bool {
	own, err1 := os.Readlink("/proc/self/ns/pid_for_children")
	its, err2 := os.Readlink("/proc/" + strconv.Itoa(pid) + "/ns/pid")
	return err1 == nil && err2 == nil && own != its
}

func wait(pid int) (ws unix.WaitStatus) {
	for {
		_, err := unix.Wait4(pid, &ws, 0, nil)
		if !errors.Is(err, unix.EINTR) {
			return ws
		}
	}
}

// children lists the children of all threads of a process.
func children(pid string) (pids []int) {
	tasks, _ := os.ReadDir("/proc/" + pid + "/task")
	for _, t := range tasks {
		data, _ := os.ReadFile("/proc/" + pid + "/task/" + t.Name() + "/children")
		for _, f := range strings.Fields(string(data)) {
			if n, err := strconv.Atoi(f); err == nil {
				pids = append(pids, n)
			}
		}
	}
	return pids
}

// leftovers names what the program leaves running. It ends with the cage, whatever we do; that it is still there to
// be seen is likely, not certain.
func (s *supervisor) leftovers() (names []string) {
	if s.init == 0 {
		return nil
	}
	for _, pid := range children(strconv.Itoa(s.init)) {
		if pid == s.prog {
			continue
		}
		name, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm")
		if err == nil {
			names = append(names, strings.TrimSpace(string(name)))
		}
	}
	return names
}

// pidfdInfo is struct pidfd_info of include/uapi/linux/pidfd.h, 64 bytes (PIDFD_INFO_SIZE_VER0).
type pidfdInfo struct {
	mask, cgroup uint64
	ids          [11]uint32
	exitCode     int32
}

const (
	pidfdGetInfo  = 0xC040FF0B // _IOWR(0xFF, 11, struct pidfd_info)
	pidfdInfoExit = 1 << 3     // since Linux 6.15
)

// exitOf reads how the program itself ended: bwrap reports 128+n for a death by signal as well as for exit(128+n).
// ok is false on a kernel that cannot tell. The kernel knows it a moment after the process was reaped.
func exitOf(pidfd int) (ws unix.WaitStatus, ok bool) {
	for i := 0; i < 1000; i++ {
		info := pidfdInfo{mask: pidfdInfoExit}
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(pidfd), pidfdGetInfo, uintptr(unsafe.Pointer(&info)))
		if errno == unix.EINVAL || errno == unix.ENOTTY || errno == unix.EOPNOTSUPP {
			return 0, false
		}
		if errno == 0 && info.mask&pidfdInfoExit != 0 {
			return unix.WaitStatus(info.exitCode), true
		}
		time.Sleep(time.Millisecond)
	}
	return 0, false
}
