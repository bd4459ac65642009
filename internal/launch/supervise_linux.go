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
	marker string // value of StartVar
	plan   *plan.Plan
	met    func(pid int, ask Ask) error
	lost   func(target string) bool

	witness, bwrap    int // process ids
	prog, init        int // the program and bwrap's pid 1, as we see them; 0 before they are known
	bwrapFD, progFD   int // pidfds
	witnessFD, sock   int
	signalFD, catchFD int       // the two ends of the pipe of caught signals
	ignored, blocked  uint64    // signals that were ignored, or blocked, when we started
	asking            bool      // the program has been asked something
	ending            int       // a signal that ends the run before the program has begun
	held              uint64    // signals that came too early for the program
	continued         time.Time // when the last continue was held
	judge             judge
	stop              int       // the stop signal that the program is about to follow; 0 for none
	stopEnd, nextTick time.Time // zero nextTick: no terminal
	left              []string
	mountsFD          int             // tells of changes of the cage's mounts; 0 for none
	gone              map[string]bool // mounts that are
}

// tick is how often a program is looked at that may have stopped itself. Nothing tells of that, and only somebody at
// a terminal can see the difference.
const tick = 250 * time.Millisecond

// patience is how long a program may take to follow a stop signal: its handler may restore the terminal first. One
// that ignores the signal costs nothing but a few looks.
const patience = time.Second

func (s *supervisor) run() (End, *Failure) {
	early, failure := s.meet()
	if failure != nil {
		early = s.missed(failure)
	}
	if failure != nil || early != 0 {
		s.kill()
		s.release()
		if early == 0 {
			early = s.early()
		}
		if early != 0 {
			return End{Signal: early}, nil
		}
		return End{}, failure
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
		for _, sig := range s.readSignals() {
			s.caught(sig, now)
		}
		s.askWitness(now)
		if ready.prog && !ended {
			ended = true
			s.left = s.leftovers()
		}
		if ready.bwrap {
			return s.end(), nil
		}
		if ready.mounts && !ended && !s.mountsChanged() {
			s.kill()
			return End{Status: lostStatus, Lost: true}, nil
		}
		s.followStop(now)
	}
}

// meet waits for the program's first message. Signals that come before it find a program that has not begun.
func (s *supervisor) meet() (early int, f *Failure) {
	for {
		ready := s.poll(false)
		s.readWitness(time.Now())
		if sig := s.early(); sig != 0 {
			return sig, nil
		}
		s.followEarlyStop()
		if ready.sock {
			pid, err := receiveHello(s.sock)
			if err == nil {
				return 0, s.greet(pid)
			}
			if !errors.Is(err, errClosed) {
				return 0, &Failure{Step: "meet the program", Err: err}
			}
			s.hangUp() // nobody can say hello any more, but somebody may still run
		}
		if ready.bwrap {
			return 0, s.failed()
		}
	}
}

// early reads the signals that were caught before the program has begun: one that ends it, or 0. The others are held.
func (s *supervisor) early() (sig int) {
	for _, c := range s.readSignals() {
		sig := int(c.Number)
		if fatal(sig) && s.ignored&bit(sig) == 0 { // never blocked: a Go program unblocks them
			return sig
		}
		s.hold(sig, time.Now())
	}
	return 0
}

// followEarlyStop is for a program that already has its signals back, has stopped, and so cannot say hello.
func (s *supervisor) followEarlyStop() {
	sig := heldStop(s.held)
	if sig == 0 {
		return
	}
	for _, init := range children(strconv.Itoa(s.bwrap)) {
		for _, pid := range children(strconv.Itoa(init)) {
			if state, _ := processState(pid); state == 'T' {
				s.held &^= stopSet
				for _, late := range s.stopSelf(sig) {
					s.hold(int(late.Number), time.Now())
				}
				_ = unix.Kill(pid, unix.SIGCONT)
			}
		}
	}
}

// missed returns the signal by which a start failed, if that was one to the whole group: the program, which had no
// handler yet, died of it, and it may have reached us on another thread and a moment later.
func (s *supervisor) missed(f *Failure) (sig int) {
	if s.ending != 0 {
		return s.ending
	}
	if fatal(f.Status - 128) {
		t := unix.NsecToTimespec(int64(window))
		_, _ = unix.Ppoll([]unix.PollFd{{Fd: int32(s.signalFD), Events: unix.POLLIN}}, &t, nil)
	}
	return s.early()
}

// release gives the signals back: finding out why a start failed takes a while, and Ctrl-C must end that.
func (s *supervisor) release() {
	for _, sig := range caughtSignals() {
		if s.ignored&bit(sig) != 0 {
			rawclone.Ignore(sig)
		} else {
			rawclone.Default(sig)
		}
	}
	rawclone.SetMask(s.blocked)
}

func (s *supervisor) hangUp() {
	unix.Close(s.sock)
	s.sock = -1
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
	s.watchMounts() // before anything is compared: what changes from now on is noticed
	for _, err := range []error{sameFiles(s.plan.Mounts, pid), sameProgram(s.plan.Program, pid), sameCommands(s.plan.Same, pid)} {
		if err != nil {
			return &Failure{Step: "look at what is inside", Err: err, Met: true, Exchanged: true}
		}
	}
	if s.met != nil {
		if err := s.met(pid, s.ask); err != nil {
			return &Failure{Step: "observe the cage", Err: err, Met: true}
		}
	}
	if err := unix.Sendto(s.sock, []byte(answer(s.plan.Command, s.plan.Args)), unix.MSG_NOSIGNAL, nil); err != nil {
		return s.failed()
	}
	s.hangUp()
	return nil
}

var errNoReply = errors.New("the program did not answer")

// ask puts a question to the program, which has not begun yet, and returns its reply.
func (s *supervisor) ask(question []byte) ([]byte, error) {
	if err := unix.Sendto(s.sock, append([]byte("?"), question...), unix.MSG_NOSIGNAL, nil); err != nil {
		return nil, os.NewSyscallError("send", err)
	}
	s.asking = true
	defer func() { s.asking = false }()
	for {
		ready := s.poll(false)
		s.readWitness(time.Now())
		if s.ending = s.early(); s.ending != 0 {
			return nil, errNoReply
		}
		s.followEarlyStop()
		if ready.sock {
			var buf [4096]byte
			n, _, err := unix.Recvfrom(s.sock, buf[:], unix.MSG_DONTWAIT)
			if n > 0 {
				return buf[:n], nil
			}
			if err == nil || !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR) {
				return nil, errNoReply
			}
		}
		if ready.bwrap {
			return nil, errNoReply
		}
	}
}

// hold keeps a signal that the program could not have handled yet. A continue cancels a stop, as it does for a
// process that has both pending.
func (s *supervisor) hold(sig int, now time.Time) {
	switch {
	case sig == int(unix.SIGCONT):
		s.held &^= stopSet
		s.continued = now
	case stops(sig) && now.Sub(s.continued) < window:
		// A stop and the continue after it may have been caught by two threads, of which the first wrote last. To stop then
		// would be for good.
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
func (s *supervisor) caught(c rawclone.Signal, now time.Time) {
	sig := int(c.Number)
	if s.judge.catch(c, now) {
		s.groupGot(sig)
	}
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
		for _, late := range s.stopSelf(sig) {
			s.caught(late, time.Now())
		}
	case s.stop != 0 && now.After(s.stopEnd):
		s.stop = 0
	}
}

// stopSelf takes the default action of a stop signal. A continue that arrived since the program was seen stopped must
// win, or the program would run on below a stopped job: the signal is first made pending while it is blocked, since
// from then on the kernel takes it back when a continue comes. It returns the signals that it found meanwhile.
func (s *supervisor) stopSelf(sig int) (late []rawclone.Signal) {
	old := rawclone.SetMask(bit(sig))
	rawclone.Default(sig)
	_ = unix.Tgkill(os.Getpid(), unix.Gettid(), unix.Signal(sig))
	late = s.readSignals()
	for _, c := range late {
		if int(c.Number) == int(unix.SIGCONT) {
			takePending(bit(sig))
		}
	}
	rawclone.SetMask(old) // here this process stops, and goes on when it is continued
	rawclone.Catch(s.catchFD, sig)
	s.giveTerminal()
	return late
}

func takePending(set uint64) {
	var none unix.Timespec
	unix.RawSyscall6(unix.SYS_RT_SIGTIMEDWAIT, uintptr(unsafe.Pointer(&set)), 0, uintptr(unsafe.Pointer(&none)), 8, 0, 0)
}

type readiness struct{ sock, bwrap, prog, mounts bool }

// lostStatus is that of a run which was ended since its cage is not what it was: 125, as for one that could not be made.
const lostStatus = 125

// poll waits for something to do.
func (s *supervisor) poll(progEnded bool) readiness {
	fds := []unix.PollFd{
		{Fd: int32(s.signalFD), Events: unix.POLLIN}, {Fd: int32(s.witnessFD), Events: unix.POLLIN},
		{Fd: int32(s.bwrapFD), Events: unix.POLLIN}, {Fd: -1, Events: unix.POLLIN}, {Fd: -1, Events: unix.POLLIN},
		{Fd: -1, Events: unix.POLLPRI},
	}
	if s.mountsFD > 0 && !progEnded {
		fds[5].Fd = int32(s.mountsFD)
	}
	if s.prog == 0 || s.asking {
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
	return readiness{sock: fds[3].Revents != 0, bwrap: fds[2].Revents != 0, prog: fds[4].Revents != 0, mounts: fds[5].Revents != 0}
}

// timeout is how long to wait at the most; negative is for ever.
func (s *supervisor) timeout(now time.Time) time.Duration {
	if s.prog == 0 {
		if heldStop(s.held) != 0 {
			return 5 * time.Millisecond
		}
		return -1
	}
	d := s.judge.wait(now)
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

func (s *supervisor) readSignals() []rawclone.Signal {
	sigs, _ := rawclone.Read(s.signalFD)
	return sigs
}

func (s *supervisor) readWitness(now time.Time) {
	if s.witnessFD < 0 {
		return
	}
	sigs, alive := rawclone.Read(s.witnessFD)
	for _, sig := range sigs {
		if !sig.Mark() {
			for range s.judge.witness(sig, now) {
				s.groupGot(int(sig.Number))
			}
			continue
		}
		for _, directed := range s.judge.mark() {
			s.forward(directed)
		}
	}
	if !alive {
		s.noWitness()
	}
}

// askWitness passes on what was sent to this process alone.
func (s *supervisor) askWitness(now time.Time) {
	given := s.judge.late(now)
	if s.judge.ask(now) {
		given = s.witnessFD < 0 || rawclone.Mark(s.witness) != nil
	}
	if given {
		for _, sig := range s.judge.giveUp() {
			s.forward(sig)
		}
	}
}

// noWitness goes on after somebody has killed the witness: then each signal is passed on, better twice than never.
func (s *supervisor) noWitness() {
	unix.Close(s.witnessFD)
	s.witnessFD = -1
}

// groupGot is called for a signal that went to the group, and so to the program, unless that has left the group.
func (s *supervisor) groupGot(sig int) {
	if s.apart() != 0 {
		s.forward(sig)
	}
}

// apart returns the process group of a program that has left ours although we lead it, or 0. Unconfined the program
// would be the leader, and a leader cannot leave: what comes for the group is still meant for it. Shells do that.
func (s *supervisor) apart() (pgrp int) {
	own := unix.Getpgrp()
	if own != os.Getpid() {
		return 0
	}
	if its, err := unix.Getpgid(s.prog); err == nil && its != own {
		return its
	}
	return 0
}

// giveTerminal hands on to such a program the terminal that a shell has given to our group.
func (s *supervisor) giveTerminal() {
	pgrp := s.apart()
	if pgrp == 0 {
		return
	}
	fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if has, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP); err == nil && has == unix.Getpgrp() {
		_ = unix.IoctlSetPointerInt(fd, unix.TIOCSPGRP, pgrp)
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
