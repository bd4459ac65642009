//go:build linux && (amd64 || arm64)

package launch

import (
	"math/bits"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/selfcage/selfcage/internal/rawclone"
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

// stopSet is the mask of the signals that stop a job.
const stopSet uint64 = 1<<(unix.SIGTSTP-1) | 1<<(unix.SIGTTIN-1) | 1<<(unix.SIGTTOU-1)

func stops(sig int) bool { return stopSet&bit(sig) != 0 }

// heldStop returns the stop signal in a mask, or 0.
func heldStop(held uint64) int {
	if held &= stopSet; held == 0 {
		return 0
	}
	return bits.TrailingZeros64(held) + 1
}

// fatal are the signals that end a Go program which has not begun yet.
func fatal(sig int) bool {
	switch unix.Signal(sig) {
	case unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM:
		return true
	}
	return false
}

// window is how long after the supervisor the witness may get one and the same signal. One kill(2) reaches both in one
// go, so that this is plenty; a signal to the supervisor alone reaches the program that much later.
const window = 20 * time.Millisecond

// overdue is how long the witness may take to answer. One that somebody has stopped must not swallow a signal.
const overdue = time.Second

// judge tells a signal that was sent to the supervisor alone from one that was sent to the whole process group, and
// so to the program as well. What the witness has not reported when the window is over was sent to the supervisor
// alone, or the witness had no processor yet, as on a busy machine: so it is asked then, and what it got before the
// question it reports before the answer. The judge has no clock of its own.
//
// Two signals with one number become one for a process that has not taken the first yet, and of a stop and a continue
// the second takes away the first. Both happen to the witness before they happen to the supervisor, which is waiting
// for nothing else.
type judge struct {
	caught  []event // by the supervisor, not decided yet
	seen    []event // by the witness, not matched yet
	asked   int     // the witness has been asked about so many of caught, the first ones
	askedAt time.Time
	marks   int // answers that are still to come
}

type event struct {
	rawclone.Signal
	at time.Time
}

// catch notes a signal that the supervisor got and says whether it is known to have gone to the group.
func (j *judge) catch(sig rawclone.Signal, now time.Time) (group bool) {
	j.cancel(int(sig.Number))
	for i, e := range j.seen {
		if e.Signal == sig && now.Sub(e.at) < window {
			j.seen = slices.Delete(j.seen, i, i+1)
			return true
		}
	}
	j.caught = append(j.caught, event{sig, now})
	return false
}

// witness notes a signal that the witness got and returns how many that the supervisor has caught were the same: more
// than one when they became one for the witness.
func (j *judge) witness(sig rawclone.Signal, now time.Time) (group int) {
	j.expire(now)
	for i := 0; i < len(j.caught); {
		if j.caught[i].Signal != sig || group > 0 && sig.Number >= firstQueued {
			i++
			continue
		}
		j.drop(i)
		group++
	}
	if group == 0 {
		j.seen = append(j.seen, event{sig, now})
	}
	return group
}

// firstQueued is the first of the real-time signals, of which each one is delivered.
const firstQueued = 32

// cancel forgets what a signal takes away that comes after it.
func (j *judge) cancel(sig int) {
	for i := 0; i < len(j.caught); {
		if was := int(j.caught[i].Number); stops(sig) && was == int(unix.SIGCONT) || sig == int(unix.SIGCONT) && stops(was) {
			j.drop(i)
		} else {
			i++
		}
	}
}

// drop takes the i-th of caught out.
func (j *judge) drop(i int) {
	j.caught = slices.Delete(j.caught, i, i+1)
	if i < j.asked {
		j.asked--
	}
}

// ask says whether the witness has to be asked now.
func (j *judge) ask(now time.Time) bool {
	if j.asked > 0 {
		return false
	}
	for j.asked < len(j.caught) && now.Sub(j.caught[j.asked].at) >= window {
		j.asked++
	}
	if j.asked == 0 {
		return false
	}
	j.askedAt = now
	j.marks++
	return true
}

// mark notes an answer of the witness and returns what it decides.
func (j *judge) mark() (sigs []int) {
	if j.marks--; j.marks > 0 {
		return nil // it answers a question that was given up
	}
	return j.giveUp()
}

// giveUp takes out the signals that the witness was asked about and has not reported.
func (j *judge) giveUp() (sigs []int) {
	for _, e := range j.caught[:j.asked] {
		sigs = append(sigs, int(e.Number))
	}
	j.caught = j.caught[j.asked:]
	j.asked = 0
	return sigs
}

// late says that the witness does not answer.
func (j *judge) late(now time.Time) bool { return j.asked > 0 && now.Sub(j.askedAt) >= overdue }

// wait is how long it takes until ask or late has something; negative when nothing is open.
func (j *judge) wait(now time.Time) time.Duration {
	switch {
	case j.asked > 0:
		return max(0, overdue-now.Sub(j.askedAt))
	case len(j.caught) > 0:
		return max(0, window-now.Sub(j.caught[0].at))
	}
	return -1
}

// expire forgets what the witness saw long ago: two signals to the group may reach the supervisor as one, and the
// second must not hide a later one that is meant for the supervisor alone.
func (j *judge) expire(now time.Time) {
	for len(j.seen) > 0 && now.Sub(j.seen[0].at) >= window {
		j.seen = j.seen[1:]
	}
}
