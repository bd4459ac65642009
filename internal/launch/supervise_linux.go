//go:build linux && (amd64 || arm64)

package launch

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/selfcage/selfcage/internal/rawclone"
	"github.com/selfcage/selfcage/plan"
)

// supervisor is the outer stage after it has started bwrap. One thread, one loop, no goroutine: a thread more costs
// more than all that it does.
type supervisor struct {
	plan *plan.Plan
	met  func(pid int) error

	witness, bwrap    int // process ids
	prog, init        int // the program and bwrap's pid 1, as we see them; 0 before they are known
	bwrapFD, progFD   int // pidfds
	witnessFD, sock   int
	signalFD, catchFD int    // the two ends of the pipe of caught signals
	ignored           uint64 // signals that were ignored when we started
	held              uint64 // signals that came too early for the program
	judge             judge
	stop              int       // the stop signal that the program is about to follow; 0 for none
	stopEnd, nextTick time.Time // zero nextTick: no terminal
	left              []string
}

// tick is how often a program is looked at that may have stopped itself. Nothing tells of that, and only somebody at
// a terminal can see the difference.
const tick = 250 * time.Millisecond

// patience is how long a program may take to follow a stop signal: its handler may restore the terminal first. One
// that ignores the signal costs nothing but a few looks.
const patience = time.Second

func (s *supervisor) run() (End, *Failure) {
	early, failure := s.meet()
	if failure != nil || early != 0 {
		s.kill()
		return End{Signal: early}, failure
	}
	s.deliverHeld()
	if fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0); err == nil {
		unix.Close(fd)
		s.nextTick = time.Now().Add(tick)
	}
	ended := false
	for {
		ready := s.poll(ended)
		now := time.Now()
		s.readWitness(now)
		for _, sig := range readSignals(s.signalFD) {
			s.caught(sig, now)
		}
		for _, sig := range s.judge.due(now) {
			s.forward(sig)
		}
		if ready.prog && !ended {
			ended = true
			s.left = s.leftovers()
		}
		if ready.bwrap {
			return s.end(), nil
		}
		s.followStop(now)
	}
}

// meet waits for the program's first message. Signals that come before it find a program that has not begun.
func (s *supervisor) meet() (early int, f *Failure) {
	for {
		ready := s.poll(false)
		s.readWitness(time.Now())
		for _, sig := range readSignals(s.signalFD) {
			if fatal(sig) && s.ignored&bit(sig) == 0 {
				return sig, nil
			}
			s.hold(sig)
		}
		if ready.sock {
			pid, err := receiveHello(s.sock)
			if err == nil {
				return 0, s.greet(pid)
			}
			if !errors.Is(err, errClosed) {
				return 0, &Failure{Step: "meet the program", Err: err}
			}
		}
		if ready.bwrap || ready.sock {
			return 0, s.failed()
		}
	}
}

// greet answers the program, which only then goes on.
func (s *supervisor) greet(pid int) *Failure {
	s.judge = judge{}
	s.prog = pid
	var err error
	if s.progFD, err = unix.PidfdOpen(pid, 0); err != nil {
		return &Failure{Step: "pidfd_open", Err: err, Met: true}
	}
	_, s.init = processState(pid)
	if s.met != nil {
		if err := s.met(pid); err != nil {
			return &Failure{Step: "observe the cage", Err: err, Met: true}
		}
	}
	argv0 := ""
	if len(s.plan.Args) > 0 && s.plan.Args[0] != s.plan.Command {
		argv0 = s.plan.Args[0]
	}
	if err := unix.Sendto(s.sock, []byte("+"+argv0), unix.MSG_NOSIGNAL, nil); err != nil {
		return s.failed()
	}
	unix.Close(s.sock)
	s.sock = -1
	return nil
}

// hold keeps a signal that the program could not have handled yet. A continue cancels a stop, as it does for a
// process that has both pending.
func (s *supervisor) hold(sig int) {
	switch {
	case sig == int(unix.SIGCONT):
		s.held &^= bit(int(unix.SIGTSTP)) | bit(int(unix.SIGTTIN)) | bit(int(unix.SIGTTOU))
	case sig != int(unix.SIGWINCH) && s.ignored&bit(sig) == 0:
		s.held |= bit(sig)
	}
}

func (s *supervisor) deliverHeld() {
	for sig := 1; sig <= 64; sig++ {
		if s.held&bit(sig) != 0 {
			s.forward(sig)
			s.beginStop(sig, time.Now())
		}
	}
}

// caught deals with a signal that this process got.
func (s *supervisor) caught(sig int, now time.Time) {
	s.judge.catch(sig, now)
	if sig == int(unix.SIGCONT) {
		s.stop = 0
		if !s.nextTick.IsZero() {
			s.nextTick = now.Add(tick)
		}
	}
	s.beginStop(sig, now)
}

func (s *supervisor) forward(sig int) {
	// The program may be gone already; then there is nobody to tell.
	_ = unix.PidfdSendSignal(s.progFD, unix.Signal(sig), nil, 0)
}

func (s *supervisor) beginStop(sig int, now time.Time) {
	if stops(sig) {
		s.stop, s.stopEnd = sig, now.Add(patience)
	}
}

// followStop stops this process once the program has stopped, so that whoever waits for us sees a stopped job.
func (s *supervisor) followStop(now time.Time) {
	if s.stop == 0 {
		if s.nextTick.IsZero() || now.Before(s.nextTick) {
			return
		}
		s.nextTick = now.Add(tick)
		if state, _ := processState(s.bwrap); state == 'T' {
			_ = unix.Kill(s.bwrap, unix.SIGCONT) // stopped by name: it would not see the program end
		}
	}
	state, _ := processState(s.prog)
	switch {
	case state == 'T' || state == 't' && s.stop != 0:
		sig := s.stop
		if sig == 0 {
			sig = int(unix.SIGTSTP)
		}
		s.stop = 0
		s.stopSelf(sig)
	case s.stop != 0 && now.After(s.stopEnd):
		s.stop = 0
	}
}

// stopSelf takes the default action of a stop signal. A continue that arrived since the program was seen stopped must
// win, or the program would run on below a stopped job: the signal is first made pending while it is blocked, since
// from then on the kernel takes it back when a continue comes.
func (s *supervisor) stopSelf(sig int) {
	old := rawclone.SetMask(bit(sig))
	rawclone.Default(sig)
	_ = unix.Tgkill(os.Getpid(), unix.Gettid(), unix.Signal(sig))
	late := readSignals(s.signalFD)
	for _, c := range late {
		if c == int(unix.SIGCONT) {
			takePending(bit(sig))
		}
	}
	rawclone.SetMask(old) // here this process stops, and goes on when it is continued
	rawclone.Catch(s.catchFD, sig)
	now := time.Now()
	for _, c := range late {
		s.caught(c, now)
	}
}

func takePending(set uint64) {
	var none unix.Timespec
	unix.RawSyscall6(unix.SYS_RT_SIGTIMEDWAIT, uintptr(unsafe.Pointer(&set)), 0, uintptr(unsafe.Pointer(&none)), 8, 0, 0)
}

type readiness struct{ sock, bwrap, prog bool }

// poll waits for something to do.
func (s *supervisor) poll(progEnded bool) readiness {
	fds := []unix.PollFd{
		{Fd: int32(s.signalFD), Events: unix.POLLIN}, {Fd: int32(s.witnessFD), Events: unix.POLLIN},
		{Fd: int32(s.bwrapFD), Events: unix.POLLIN}, {Fd: -1, Events: unix.POLLIN}, {Fd: -1, Events: unix.POLLIN},
	}
	if s.prog == 0 {
		fds[3].Fd = int32(s.sock)
	} else if !progEnded {
		fds[4].Fd = int32(s.progFD)
	}
	var ts *unix.Timespec
	if d := s.timeout(time.Now()); d >= 0 {
		t := unix.NsecToTimespec(int64(d))
		ts = &t
	}
	if _, err := unix.Ppoll(fds, ts, nil); err != nil {
		return readiness{} // EINTR: the signal is in the pipe now
	}
	return readiness{sock: fds[3].Revents != 0, bwrap: fds[2].Revents != 0, prog: fds[4].Revents != 0}
}

// timeout is how long to wait at the most; negative is for ever.
func (s *supervisor) timeout(now time.Time) time.Duration {
	d := s.judge.wait(now)
	if s.prog == 0 {
		return -1
	}
	if s.stop != 0 && (d < 0 || d > 2*time.Millisecond) {
		d = 2 * time.Millisecond
	}
	if !s.nextTick.IsZero() {
		if t := max(0, s.nextTick.Sub(now)); d < 0 || t < d {
			d = t
		}
	}
	return d
}

// readSignals empties a pipe of signal numbers.
func readSignals(fd int) (sigs []int) {
	var buf [64]byte
	for {
		n, err := unix.Read(fd, buf[:])
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return sigs
		}
		for _, b := range buf[:n] {
			sigs = append(sigs, int(b))
		}
		if n < len(buf) {
			return sigs
		}
	}
}

func (s *supervisor) readWitness(now time.Time) {
	for _, sig := range readSignals(s.witnessFD) {
		s.judge.witness(sig, now)
	}
}

// processState reads the state letter and the parent of a process; 'X' when it is gone.
func processState(pid int) (state byte, parent int) {
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 'X', 0
	}
	defer unix.Close(fd)
	var buf [512]byte
	n, _ := unix.Read(fd, buf[:])
	// The name is in parentheses and may hold any byte, ')' too.
	i := bytes.LastIndexByte(buf[:max(n, 0)], ')')
	if i < 0 || i+4 > n {
		return 'X', 0
	}
	field, _, _ := bytes.Cut(buf[i+4:n], []byte(" "))
	parent, _ = strconv.Atoi(string(field))
	return buf[i+2], parent
}
