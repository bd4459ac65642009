// Package launch is the only place that starts bubblewrap, and holds both ends of the start: Run makes the cage and
// stays outside as its supervisor; Enter completes the start inside.
//
// # Protocol
//
// Three processes share the caller's process group: the supervisor, bwrap and the program. The kernel's job control
// and everybody's group kills then reach the program directly, once. bwrap ignores every signal that could be sent to
// the group, from its first instruction. A fourth process, the witness, blocks all signals and tells which ones it
// got: those were sent to the group, and the program has them too; any other was sent to the supervisor alone and is
// passed on. A program that is the leader of the group unconfined, and has left it here, gets those of the group as well.
//
// Both ends meet over a socket pair. The program's first message carries its credentials, which the kernel
// translates, so that the supervisor learns its process id whatever the namespaces. Until then whatever happens is a
// failure to make the cage; from then on the status is the program's own.
package launch

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// StartVar names the environment variable by which the supervisor tells the inner stage where to meet: a descriptor,
// the mask of the signals that were ignored outside, and the descriptor of the command line where that did not fit
// bwrap's own, or -1. It proves nothing; Inside does.
const StartVar = "SELFCAGE_START"

// Ask puts a question to the program inside, which answers before it goes on.
type Ask func(question []byte) (reply []byte, err error)

// ExecAgain executes this program once more in place of this process, with the same arguments and another environment. It
// returns only on failure.
func ExecAgain(path string, environ []string) error {
	mark, err := againMark()
	if err != nil {
		return err
	}
	return os.NewSyscallError("execve", syscall.Exec(path, os.Args, append(environ, StartVar+"="+mark)))
}

// Reached says whether this process was started by a supervisor that waits to be met, by the value of StartVar. Outside a
// cage that means that what should have made the cage has not: the descriptor is our socket, which nobody else has.
func Reached(value string) bool {
	st, ok := parseStart(value)
	return ok && isMeetingPoint(st.sock)
}

// start is the value of StartVar.
type start struct {
	sock    int
	ignored uint64
	big     int
}

// Failure says how a cage failed to be made.
type Failure struct {
	Step   string // what failed in this process, with Err; empty when bwrap was started and ended
	Err    error
	Status int  // bwrap's exit status
	Signal int  // the signal that bwrap died of
	Met    bool // the program was reached, so it was inside, but it did not go on

	Exchanged bool // a file inside is another one than the plan means
}

// Error says what is known.
func (f *Failure) Error() string {
	if f.Step != "" {
		return f.Step + ": " + f.Err.Error()
	}
	return "bubblewrap ended before the program began"
}

// End is how the program ended: by a signal, or with a status.
type End struct {
	Status int
	Signal int
	Lost   bool     // it was ended since the host has taken a mount of the cage away
	Left   []string // names of processes that were still there and ended with it, as far as seen
}

// joinWords packs an argv and an environment into one file: the number of arguments, then every word, each ended by
// NUL, which no word can contain.
func joinWords(argv, environ []string) []byte {
	n := 24
	for _, list := range [][]string{argv, environ} {
		for _, w := range list {
			n += len(w) + 1
		}
	}
	b := make([]byte, 0, n)
	b = append(strconv.AppendInt(b, int64(len(argv)), 10), 0)
	for _, list := range [][]string{argv, environ} {
		for _, w := range list {
			b = append(append(b, w...), 0)
		}
	}
	return b
}

// splitWords is the inverse of joinWords.
func splitWords(b []byte) (argv, environ []string, ok bool) {
	words := strings.Split(string(b), "\x00")
	words = words[:len(words)-1]
	if len(words) == 0 {
		return nil, nil, false
	}
	n, err := strconv.Atoi(words[0])
	if err != nil || n < 0 || n > len(words)-1 {
		return nil, nil, false
	}
	return words[1 : n+1], words[n+1:], true
}

func (s start) String() string {
	return strconv.Itoa(s.sock) + ":" + strconv.FormatUint(s.ignored, 16) + ":" + strconv.Itoa(s.big)
}

// answer is what the supervisor says to the program: that it may go on, and argv[0] where bwrap could not set it.
func answer(command string, args []string) string {
	if len(args) == 0 || args[0] == command {
		return "+"
	}
	return "=" + args[0]
}

func parseStart(v string) (s start, ok bool) {
	f := strings.Split(v, ":")
	if len(f) != 3 {
		return s, false
	}
	var err [3]error
	s.sock, err[0] = strconv.Atoi(f[0])
	s.ignored, err[1] = strconv.ParseUint(f[1], 16, 64)
	s.big, err[2] = strconv.Atoi(f[2])
	return s, err == [3]error{} && s.sock > 2 && (s.big == -1 || s.big > 2)
}
