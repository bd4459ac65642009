//go:build linux && (amd64 || arm64)

package launch

import (
	"errors"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/selfcage/selfcage/internal/rawclone"
	"github.com/selfcage/selfcage/plan"
)

// Cage is what Run makes and supervises.
type Cage struct {
	Bwrap string // path of a trusted bwrap
	Plan  *plan.Plan
	// Met is called when the program has been reached, with its process id, before it goes on. An error ends the cage.
	Met func(pid int, ask Ask) error
	// Lost is called when the host has taken away the mount at target while the program runs. false ends the cage.
	Lost func(target string) bool
}

// Inherited lists the descriptors above 2 that this process would hand on to what it executes.
func Inherited() (fds []int) {
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil
	}
	for _, n := range names {
		if fd, err := strconv.Atoi(n.Name()); err == nil && fd > 2 {
			if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
				fds = append(fds, fd)
			}
		}
	}
	return fds
}

// callersFiles is the limit of open files that this process was started with, once it is known.
var callersFiles unix.Rlimit

// Undo takes back what a Run that failed has changed of this process, as far as it would outlive an exec: the
// descriptors fds, which Inherited has listed before, are handed on again.
func Undo(fds []int) {
	for _, fd := range fds {
		setInherited(fd)
	}
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
	if callersFiles.Max != 0 { // what the runtime remembered of it, it has given back once
		_ = unix.Setrlimit(unix.RLIMIT_NOFILE, &callersFiles)
	}
}

// maxWords is how many words bwrap gets. It refuses more than 9000 (MAX_ARGS in bubblewrap.c), counting three for
// each variable; the rest is a margin for what it adds itself.
const maxWords = 8000

// Run makes the cage, waits until the program in it has ended, and says how. A *Failure means that the program was
// never begun. The calling goroutine stays locked to its thread for ever, since the parent-death signal of bwrap is
// tied to it; signals of the process are the supervisor's own from now on. The caller is expected to exit.
func Run(c Cage) (End, *Failure) {
	runtime.LockOSThread()
	s := &supervisor{plan: c.Plan, met: c.Met, lost: c.Lost}
	if f := s.start(c.Bwrap); f != nil {
		return End{}, f
	}
	return s.run()
}

func (s *supervisor) start(bwrap string) *Failure {
	for fd := 0; fd <= 2; fd++ {
		var st unix.Stat_t
		if unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR {
			return &Failure{Step: "use descriptor " + strconv.Itoa(fd), Err: errors.New("it is a directory, and a way around every grant")}
		}
	}
	keep := openDescriptors(s.plan.FDs)
	if err := closeOnExec(); err != nil {
		return &Failure{Step: "close descriptors on exec", Err: err}
	}
	for _, fd := range keep {
		setInherited(fd)
	}
	for _, sig := range caughtSignals() {
		if ignored, _ := rawclone.Disposition(sig); ignored {
			s.ignored |= bit(sig)
		}
	}
	sp, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return &Failure{Step: "socketpair", Err: err}
	}
	defer unix.Close(sp[1])
	s.sock = sp[0]
	if err := unix.SetsockoptInt(s.sock, unix.SOL_SOCKET, unix.SO_PASSCRED, 1); err != nil {
		return &Failure{Step: "SO_PASSCRED", Err: err}
	}
	setInherited(sp[1])
	cmd, files, err := s.command(sp[1])
	defer closeAll(files)
	if err != nil {
		return &Failure{Step: "write the plan to memory", Err: err}
	}
	if err := s.watch(); err != nil {
		return &Failure{Step: "witness signals", Err: err}
	}
	return s.execute(bwrap, cmd)
}

// execute starts bwrap. When that fails nothing of ours is left.
func (s *supervisor) execute(bwrap string, cmd []string) (f *Failure) {
	defer func() {
		if f != nil {
			s.kill()
			s.release()
		}
	}()
	// Orphans of the cage become our children, so that we can wait for all of it.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return &Failure{Step: "PR_SET_CHILD_SUBREAPER", Err: err}
	}
	ignore := managed[:]
	if s.ignored&bit(int(unix.SIGCONT)) != 0 { // which we catch now, so that the child would get it back as default
		ignore = append(ignore, int(unix.SIGCONT))
	}
	// bwrap starts with an empty environment: what it is started with can be read in /proc/1/environ inside.
	var err error
	raise := lowerOpenFiles()
	s.bwrap, err = rawclone.Exec(bwrap, cmd, []string{StartVar + "=" + s.marker}, ignore)
	raise()
	if err != nil {
		return &Failure{Step: "execute " + bwrap, Err: err}
	}
	// A signal that the caller has blocked is blocked in the program too, and waits there. Here it must not wait.
	s.blocked = rawclone.SetMask(0)
	if s.bwrapFD, err = unix.PidfdOpen(s.bwrap, 0); err != nil {
		return &Failure{Step: "pidfd_open", Err: err}
	}
	return nil
}

// lowerOpenFiles sets the soft limit of open files to what it was when this process was started, and returns what undoes
// that. The Go runtime raises it for itself (go.dev/issue/46279), remembers what it was, and gives that back only to what
// its own fork and exec start. An exec that cannot work is the one way to make it do so here. Without it programs inside
// have another limit than outside: select fails with descriptors from 1024 on, and closing all that may be takes long.
func lowerOpenFiles() (raise func()) {
	var raised unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &raised) != nil {
		return func() {}
	}
	_ = syscall.Exec("", nil, nil)
	_ = unix.Getrlimit(unix.RLIMIT_NOFILE, &callersFiles)
	return func() { _ = unix.Setrlimit(unix.RLIMIT_NOFILE, &raised) }
}

// command returns bwrap's command line and the memory files that it reads. The options, and with them the environment,
// are in one of them: values on a command line can be read by everybody.
func (s *supervisor) command(sock int) (cmd []string, files []int, err error) {
	p := s.plan
	for _, d := range p.Data() {
		fd, err := memoryFile(d.Name, d.Content)
		if err != nil {
			return nil, files, err
		}
		files = append(files, fd)
	}
	st := start{sock: sock, ignored: s.ignored, big: -1}
	args := p.Argv(func(i int) int { return files[i] })
	prog := append([]string{p.Command}, p.Operands()...)
	if len(args)+len(prog) > maxWords {
		if st.big, err = memoryFile("arguments", joinWords(p.Args, p.Environ())); err != nil {
			return nil, files, err
		}
		files = append(files, st.big)
		small := *p
		small.Env = nil
		args = small.Argv(func(i int) int { return files[i] })
		small.Env = someVars(p.Env, (maxWords-len(args))/3)
		args = small.Argv(func(i int) int { return files[i] })
		prog = prog[:1]
	}
	s.marker = st.String()
	args = append(args, "--setenv", StartVar, s.marker)
	fd, err := memoryFile("options", joinArgs(args))
	if err != nil {
		return nil, files, err
	}
	return append([]string{"bwrap", "--args", strconv.Itoa(fd), "--"}, prog...), append(files, fd), nil
}

// someVars returns max of the variables at the most: first those by which the program and its libraries are found.
func someVars(vars []plan.Var, max int) (some []plan.Var) {
	for _, first := range []bool{true, false} {
		for _, v := range vars {
			if needed := v.Name == "PATH" || strings.HasPrefix(v.Name, "LD_"); needed == first && len(some) < max {
				some = append(some, v)
			}
		}
	}
	return some
}

func joinArgs(args []string) []byte {
	n := 0
	for _, a := range args {
		n += len(a) + 1
	}
	b := make([]byte, 0, n)
	for _, a := range args {
		b = append(append(b, a...), 0)
	}
	return b
}

// openDescriptors returns those of fds that the caller has handed over. Those that are close-on-exec cannot have come
// through an exec: they are the Go runtime's or the program's own, under a number that is not open outside.
func openDescriptors(fds []plan.FD) (open []int) {
	for _, f := range fds {
		flags, err := unix.FcntlInt(uintptr(f.N), unix.F_GETFD, 0)
		if err != nil || flags&unix.FD_CLOEXEC != 0 {
			continue
		}
		// Not a directory: from an open one a program climbs to everything beside it.
		var st unix.Stat_t
		if unix.Fstat(f.N, &st) == nil && st.Mode&unix.S_IFMT != unix.S_IFDIR {
			open = append(open, f.N)
		}
	}
	return open
}

// closeOnExec marks every descriptor above 2: bwrap hands on what it inherits, and an open directory or socket walks
// around every path rule.
func closeOnExec() error {
	err := unix.CloseRange(3, ^uint(0)>>32, unix.CLOSE_RANGE_CLOEXEC)
	if err == nil || !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EINVAL) {
		return err
	}
	// Before Linux 5.11.
	dir, err := os.Open("/proc/self/fd")
	if err != nil {
		return err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	for _, n := range names {
		if fd, err := strconv.Atoi(n); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
	return err
}

func setInherited(fd int) { unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0) }

func closeAll(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}

// watch starts the witness and catches signals.
func (s *supervisor) watch() error {
	var w, own [2]int
	if err := unix.Pipe2(w[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return err
	}
	if err := unix.Pipe2(own[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return err
	}
	s.witnessFD, s.signalFD, s.catchFD = w[0], own[0], own[1]
	var err error
	s.witness, err = rawclone.Witness(w[1])
	unix.Close(w[1])
	if err != nil {
		return err
	}
	rawclone.Catch(s.catchFD, caughtSignals()...)
	return nil
}

func caughtSignals() []int { return append(managed[:], int(unix.SIGCONT), int(unix.SIGWINCH)) }

// Exit ends this process as the program ended: with its status, or by the signal that it died of, so that the
// caller's WIFSIGNALED is true.
func (e End) Exit() {
	if e.Signal == 0 {
		os.Exit(e.Status)
	}
	// The program's core file is enough. The limit does not count where cores go to a program.
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	rawclone.Default(e.Signal)
	old := rawclone.SetMask(0)
	unix.Tgkill(os.Getpid(), unix.Gettid(), syscall.Signal(e.Signal))
	rawclone.SetMask(old)
	os.Exit(128 + e.Signal) // still here: pid 1 of a container, which no signal of its own kills
}
