//go:build linux && (amd64 || arm64)

package launch

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/selfcage/selfcage/internal/rawclone"
)

const (
	hup  = int(unix.SIGHUP)
	intr = int(unix.SIGINT)
	term = int(unix.SIGTERM)
	usr1 = int(unix.SIGUSR1)
	cont = int(unix.SIGCONT)
	tstp = int(unix.SIGTSTP)
	ttin = int(unix.SIGTTIN)
)

// step is one thing that happens to a judge, at ms milliseconds.
type step struct {
	ms   int
	what string // "catch", "witness", "ask", "mark", "late"; "/7" behind the first two is a sender
	sig  int
}

func from(sig int, sender string) rawclone.Signal {
	n, _ := strconv.Atoi(sender)
	return rawclone.Signal{Number: int32(sig), Sender: int32(n)}
}

// run plays the steps and returns which signals went to the group and which to the supervisor alone.
func (j *judge) run(steps []step) (group, alone []int) {
	start := time.Unix(1000, 0)
	for _, s := range steps {
		now := start.Add(time.Duration(s.ms) * time.Millisecond)
		what, sender, _ := strings.Cut(s.what, "/")
		switch what {
		case "catch":
			if j.catch(from(s.sig, sender), now) {
				group = append(group, s.sig)
			}
		case "witness":
			for range j.witness(from(s.sig, sender), now) {
				group = append(group, s.sig)
			}
		case "ask":
			j.ask(now)
		case "mark":
			alone = append(alone, j.mark()...)
		case "late":
			if j.late(now) {
				alone = append(alone, j.giveUp()...)
			}
		}
	}
	return group, alone
}

// Case 41: each signal reaches the program once, whether it was sent to the supervisor or to its group.
func TestJudge(t *testing.T) {
	for _, tt := range []struct {
		name         string
		steps        []step
		group, alone []int
	}{
		{"to the group, the supervisor first", []step{{0, "catch", term}, {1, "witness", term}, {30, "ask", 0}}, []int{term}, nil},
		{"to the group, the witness first", []step{{0, "witness", term}, {1, "catch", term}, {30, "ask", 0}}, []int{term}, nil},
		{"to the supervisor", []step{{0, "catch", term}, {20, "ask", 0}, {21, "mark", 0}}, nil, []int{term}},
		{"not decided before the window is over", []step{{0, "catch", term}, {19, "ask", 0}}, nil, nil},
		{"not decided before the witness answers", []step{{0, "catch", term}, {20, "ask", 0}, {900, "late", 0}}, nil, nil},
		{"a witness without a processor", []step{{0, "catch", intr}, {20, "ask", 0}, {500, "witness", intr}, {500, "mark", 0}}, []int{intr}, nil},
		{"a witness that was stopped", []step{{0, "catch", term}, {20, "ask", 0}, {1020, "late", 0}}, nil, []int{term}},
		{
			"an answer to a question that was given up decides nothing",
			[]step{{0, "catch", term}, {20, "ask", 0}, {1020, "late", 0}, {1030, "catch", hup}, {1050, "ask", 0}, {1051, "mark", 0}, {1052, "witness", hup}, {1053, "mark", 0}},
			[]int{hup}, []int{term},
		},
		{
			"another signal of the group does not count",
			[]step{{0, "catch", term}, {1, "witness", hup}, {2, "catch", hup}, {20, "ask", 0}, {21, "mark", 0}},
			[]int{hup}, []int{term},
		},
		{
			"two that became one for the witness",
			[]step{{0, "catch", intr}, {1, "catch", intr}, {2, "witness", intr}, {30, "ask", 0}},
			[]int{intr, intr}, nil,
		},
		{
			"one of two was to the group",
			[]step{{0, "catch/7", usr1}, {0, "catch/8", usr1}, {1, "witness/8", usr1}, {20, "ask", 0}, {21, "mark", 0}},
			[]int{usr1}, []int{usr1},
		},
		{
			"real-time signals never become one",
			[]step{{0, "catch", 40}, {0, "catch", 40}, {1, "witness", 40}, {20, "ask", 0}, {21, "mark", 0}},
			[]int{40}, []int{40},
		},
		{
			// Ctrl-Z right after fg: passed on, the continue would undo the stop.
			"a stop takes a continue away, for the witness too",
			[]step{{0, "catch", cont}, {1, "catch", tstp}, {2, "witness", tstp}, {30, "ask", 0}},
			[]int{tstp}, nil,
		},
		{
			"a continue takes a stop away",
			[]step{{0, "catch", tstp}, {0, "catch", usr1}, {20, "ask", 0}, {21, "catch", cont}, {22, "mark", 0}, {41, "ask", 0}, {42, "mark", 0}},
			nil, []int{usr1, cont},
		},
		{
			"what came after the question waits for the next",
			[]step{{0, "catch", usr1}, {15, "catch", term}, {20, "ask", 0}, {21, "mark", 0}, {22, "ask", 0}, {35, "ask", 0}, {36, "mark", 0}},
			nil, []int{usr1, term},
		},
		{
			"a signal to the group among those asked about",
			[]step{{0, "catch", usr1}, {0, "catch", term}, {20, "ask", 0}, {21, "witness", usr1}, {22, "catch", hup}, {23, "mark", 0}},
			[]int{usr1}, []int{term},
		},
		{
			// Two of the group's may reach the supervisor as one.
			"an unmatched one of the witness does not hide a later one to the supervisor",
			[]step{{0, "catch", intr}, {0, "witness", intr}, {0, "witness", intr}, {25, "catch", intr}, {45, "ask", 0}, {46, "mark", 0}},
			[]int{intr}, []int{intr},
		},
		{"the order stays", []step{{0, "catch", usr1}, {1, "catch", hup}, {2, "catch", term}, {30, "ask", 0}, {31, "mark", 0}}, nil, []int{usr1, hup, term}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var j judge
			group, alone := j.run(tt.steps)
			if d := cmp.Diff(tt.group, group); d != "" {
				t.Errorf("to the group (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tt.alone, alone); d != "" {
				t.Errorf("to be passed on (-want +got):\n%s", d)
			}
		})
	}
}

func TestJudgeWait(t *testing.T) {
	var j judge
	now := time.Unix(1000, 0)
	check := func(at, want time.Duration) {
		t.Helper()
		if got := j.wait(now.Add(at)); got != want {
			t.Errorf("after %v: wait %v, want %v", at, got, want)
		}
	}
	check(0, -1)
	j.witness(from(term, ""), now)
	check(0, -1)
	j.catch(from(hup, ""), now)
	check(0, window)
	check(15*time.Millisecond, 5*time.Millisecond)
	check(time.Minute, 0)
	if !j.ask(now.Add(window)) || j.ask(now.Add(window)) {
		t.Error("must ask exactly once")
	}
	check(window, overdue)
	check(time.Minute, 0)
	j.mark()
	check(time.Minute, -1)
}

func TestHold(t *testing.T) {
	for _, tt := range []struct {
		name    string
		ignored []int
		sigs    []int
		want    []int
	}{
		{"kept until the program is there", nil, []int{usr1, 34, 64}, []int{usr1, 34, 64}},
		{"a continue cancels a stop", nil, []int{tstp, ttin, usr1, cont}, []int{usr1}},
		{"a stop after a continue counts", nil, []int{cont, 0, tstp}, []int{tstp}},
		{"but not where the two may have been caught the other way round", nil, []int{cont, tstp}, nil},
		{"a resize has been seen by whoever asks for the size later", nil, []int{int(unix.SIGWINCH)}, nil},
		{"what was ignored outside", []int{hup}, []int{hup, usr1}, []int{usr1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var s supervisor
			for _, sig := range tt.ignored {
				s.ignored |= bit(sig)
			}
			now := time.Now()
			for _, sig := range tt.sigs {
				if sig == 0 { // time passes
					now = now.Add(window)
					continue
				}
				s.hold(sig, now)
			}
			var got []int
			for sig := 1; sig <= 64; sig++ {
				if s.held&bit(sig) != 0 {
					got = append(got, sig)
				}
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("held (-want +got):\n%s", d)
			}
		})
	}
}

// A crash that is ignored loops for ever, and the C library's own signals are nobody's business.
func TestManaged(t *testing.T) {
	seen := map[int]bool{}
	for _, sig := range managed {
		if seen[sig] {
			t.Errorf("signal %d twice", sig)
		}
		seen[sig] = true
	}
	for _, sig := range []unix.Signal{
		unix.SIGSEGV, unix.SIGBUS, unix.SIGFPE, unix.SIGILL, unix.SIGTRAP, unix.SIGABRT, unix.SIGSYS, unix.SIGKILL, unix.SIGSTOP,
		unix.SIGCHLD, unix.SIGCONT, unix.SIGURG, unix.SIGWINCH, unix.SIGPIPE, 32, 33,
	} {
		if seen[int(sig)] {
			t.Errorf("signal %d must not be among them", sig)
		}
	}
	for sig := 1; sig <= 64; sig++ {
		if stops(sig) && !seen[sig] || fatal(sig) && !seen[sig] {
			t.Errorf("signal %d is missing", sig)
		}
	}
	if len(seen) != 64-16 {
		t.Errorf("%d signals", len(seen))
	}
	if got := heldStop(bit(term) | bit(ttin)); got != ttin {
		t.Errorf("heldStop = %d, want %d", got, ttin)
	}
	if got := heldStop(bit(term) | bit(cont)); got != 0 {
		t.Errorf("heldStop = %d, want 0", got)
	}
}
