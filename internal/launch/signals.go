//go:build linux && (amd64 || arm64)

package launch

import (
	"time"

	"golang.org/x/sys/unix"
)

// managed are the signals that a group, a scheduler or a terminal may send: bwrap has to survive them, and the
// program must find them as they were. Not among them are those that a program raises on itself (SEGV, BUS, FPE, ILL,
// TRAP, ABRT, SYS: ignored, a crash would loop for ever), KILL and STOP, those without effect by default (CHLD, CONT,
// URG, WINCH), PIPE, and 32 and 33, which belong to the C library's threads.
var managed = [...]int{
	int(unix.SIGHUP), int(unix.SIGINT), int(unix.SIGQUIT), int(unix.SIGUSR1), int(unix.SIGUSR2), int(unix.SIGALRM),
	int(unix.SIGTERM), int(unix.SIGSTKFLT), int(unix.SIGTSTP), int(unix.SIGTTIN), int(unix.SIGTTOU), int(unix.SIGXCPU),
	int(unix.SIGXFSZ), int(unix.SIGVTALRM), int(unix.SIGPROF), int(unix.SIGIO), int(unix.SIGPWR),
	34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49,
	50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63, 64,
}

// bit is the place of a signal in a mask of type sigset_t.
func bit(sig int) uint64 { return 1 << (sig - 1) }

func stops(sig int) bool {
	return sig == int(unix.SIGTSTP) || sig == int(unix.SIGTTIN) || sig == int(unix.SIGTTOU)
}

// fatal are the signals that end a Go program which has not begun yet.
func fatal(sig int) bool {
	switch unix.Signal(sig) {
	case unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM:
		return true
	}
	return false
}

// window is how far apart the supervisor and the witness may see one and the same signal. One kill(2) wakes both, so
// that it is a few scheduling delays; a signal to the supervisor alone reaches the program that much later.
const window = 20 * time.Millisecond

// judge tells a signal that was sent to the supervisor alone from one that was sent to the whole process group, and
// so to the program as well. It has no clock of its own.
type judge struct {
	caught []event // by the supervisor, not decided yet
	seen   []event // by the witness, not matched yet
}

type event struct {
	sig int
	at  time.Time
}

// catch notes a signal that the supervisor got and says whether it is known to have gone to the group.
func (j *judge) catch(sig int, now time.Time) (group bool) {
	j.expire(now)
	if take(&j.seen, sig) {
		return true
	}
	j.caught = append(j.caught, event{sig, now})
	return false
}

// witness notes a signal that the witness got and says whether it decides one that the supervisor has caught.
func (j *judge) witness(sig int, now time.Time) (group bool) {
	j.expire(now)
	if take(&j.caught, sig) {
		return true
	}
	j.seen = append(j.seen, event{sig, now})
	return false
}

// due takes out the signals that the supervisor caught and the witness did not see in time: they are for the
// program's ears too and have to be passed on.
func (j *judge) due(now time.Time) (sigs []int) {
	for len(j.caught) > 0 && now.Sub(j.caught[0].at) >= window {
		sigs = append(sigs, j.caught[0].sig)
		j.caught = j.caught[1:]
	}
	return sigs
}

// wait is how long it takes until due has something; negative when nothing is open.
func (j *judge) wait(now time.Time) time.Duration {
	if len(j.caught) == 0 {
		return -1
	}
	return max(0, window-now.Sub(j.caught[0].at))
}

// expire forgets what the witness saw long ago: two signals to the group may reach the supervisor as one, and the
// second must not hide a later one that is meant for the supervisor alone.
func (j *judge) expire(now time.Time) {
	for len(j.seen) > 0 && now.Sub(j.seen[0].at) >= window {
		j.seen = j.seen[1:]
	}
}

func take(list *[]event, sig int) bool {
	for i, e := range *list {
		if e.sig == sig {
			*list = append((*list)[:i], (*list)[i+1:]...)
			return true
		}
	}
	return false
}
