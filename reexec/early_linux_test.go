//go:build linux && (amd64 || arm64)

package reexec_test

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A start takes about 20 ms. Each of these tests sends something at every one of the first milliseconds, from before
// the supervisor's main until after the program's, and says which ends are right. Which one it is depends on the
// moment; that nothing hangs, that nothing is left and that no signal is lost does not.
const firstMilliseconds = 30

func eachMillisecond(t *testing.T, f func(delay time.Duration)) {
	t.Helper()
	for ms := range firstMilliseconds + 1 {
		if t.Failed() {
			return
		}
		f(time.Duration(ms) * time.Millisecond)
	}
}

// end is how a run ended and what it printed.
type end struct{ status, out string }

func wantOneOf(t *testing.T, h *host, delay time.Duration, ends ...end) {
	t.Helper()
	got := end{status(h.wait()), h.out.String()}
	if !slices.Contains(ends, got) {
		t.Errorf("after %v: got %q, want one of %q\nstderr: %q", delay, got, ends, h.err)
	}
	wantGone(t, h.cmd.Args[len(h.cmd.Args)-1])
}

// L35. A Go program that has not begun dies of the signal, and so does a caged one; later its handler runs.
func TestEarlyEnd(t *testing.T) {
	eachUser(t, func(t *testing.T, u user) {
		for _, tt := range []struct {
			name string
			send func(*host, syscall.Signal)
			sig  syscall.Signal
			ends []end
		}{
			{"TERM", (*host).kill, syscall.SIGTERM, []end{{"signal 15", ""}, {"exit 9", "ready\ncleanup 15\n"}}},
			{"TERM to the group", (*host).killGroup, syscall.SIGTERM, []end{{"signal 15", ""}, {"exit 9", "ready\ncleanup 15\n"}}},
			{"INT to the group", (*host).killGroup, syscall.SIGINT, []end{{"signal 2", ""}, {"exit 9", "ready\ncleanup 2\n"}}},
			{"KILL", (*host).kill, syscall.SIGKILL, []end{{"signal 9", ""}, {"signal 9", "ready\n"}}},
		} {
			t.Run(tt.name, func(t *testing.T) {
				eachMillisecond(t, func(delay time.Duration) {
					h := start(t, u.command(t, "handle", "2", "15", token()))
					time.Sleep(delay)
					tt.send(h, tt.sig)
					wantOneOf(t, h, delay, tt.ends...)
					if tt.sig != syscall.SIGKILL && h.err.String() != "" {
						t.Errorf("after %v: %s", delay, h.err)
					}
				})
			})
		}
	})
}

// A signal that does not end a Go program either reaches its handler, or comes before there is one. It never ends a
// program whose main has begun.
func TestEarlyOther(t *testing.T) {
	u := ordinary(t)
	for name, send := range map[string]func(*host, syscall.Signal){"supervisor": (*host).kill, "group": (*host).killGroup} {
		t.Run(name, func(t *testing.T) {
			eachMillisecond(t, func(delay time.Duration) {
				h := start(t, u.command(t, "handle", "10", "15", token()))
				time.Sleep(delay)
				send(h, syscall.SIGUSR1)
				// Not before main: TERM would end the start.
				if err := h.out.wait(func(out string) bool { return strings.HasPrefix(out, "ready\n") }); err == nil {
					_ = syscall.Kill(h.cmd.Process.Pid, syscall.SIGTERM) // it may have ended already
				}
				wantOneOf(t, h, delay, end{"signal 10", ""}, end{"exit 9", "ready\ncleanup 10\n"}, end{"exit 9", "ready\ncleanup 15\n"})
			})
		})
	}
}

// A stop and a continue while the program starts: it starts, later.
func TestEarlyStop(t *testing.T) {
	u := ordinary(t)
	for name, send := range map[string]func(*host, syscall.Signal){"supervisor": (*host).kill, "group": (*host).killGroup} {
		t.Run(name, func(t *testing.T) {
			eachMillisecond(t, func(delay time.Duration) {
				h := start(t, u.command(t, "handle", "15", token()))
				time.Sleep(delay)
				send(h, syscall.SIGTSTP)
				wantState(t, h.cmd.Process.Pid, "T")
				send(h, syscall.SIGCONT)
				h.expect("ready\n")
				send(h, syscall.SIGTERM)
				wantOneOf(t, h, delay, end{"exit 9", "ready\ncleanup 15\n"})

				h = start(t, u.command(t, "handle", "15", token()))
				time.Sleep(delay)
				send(h, syscall.SIGTSTP)
				send(h, syscall.SIGCONT)
				h.expect("ready\n")
				send(h, syscall.SIGTERM)
				wantOneOf(t, h, delay, end{"exit 9", "ready\ncleanup 15\n"})
			})
		})
	}
}

// A bwrap that dies early leaves its first child asleep for ever, unless the supervisor ends it.
func TestEarlyKillInside(t *testing.T) {
	eachUser(t, func(t *testing.T, u user) {
		for name, who := range map[string]func(family) int{
			"bwrap":   func(f family) int { return f.bwrap },
			"pid 1":   func(f family) int { return f.init },
			"witness": func(f family) int { return f.witness },
		} {
			t.Run(name, func(t *testing.T) {
				for delay := range 15 {
					h := start(t, u.command(t, "handle", "15", token()))
					pid := 0
					poll(t, func() error {
						if pid = who(findFamily(h.cmd.Process.Pid)); pid == 0 && state(h.cmd.Process.Pid) != "Z" {
							return errPatience
						}
						return nil
					})
					time.Sleep(time.Duration(delay) * time.Millisecond)
					if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
						t.Fatal(err)
					}
					if name == "witness" {
						h.expect("ready\n")
						h.kill(syscall.SIGTERM)
						h.wantStatus("exit 9")
						continue
					}
					got := end{status(h.wait()), h.out.String()}
					switch {
					case got.status == "exit 125" && got.out == "":
						refused(t, result{got.status, got.out, h.err.String()}, "sandbox: ", "\nhint: ")
					case got.status == "signal 9" && (got.out == "" || got.out == "ready\n"):
					default:
						t.Errorf("after %d ms: %q\n%s", delay, got, h.err)
					}
					wantGone(t, h.cmd.Args[len(h.cmd.Args)-1])
				}
			})
		}
	})
}

// A start that hangs before main still obeys.
func TestHangingStart(t *testing.T) {
	u := ordinary(t)
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGKILL} {
		tok := token()
		h := start(t, env(u.command(t, "handle", "15", tok), initVar+"=hang"))
		h.expect("hanging\n")
		h.kill(sig)
		if got := status(h.wait()); got != "signal "+numbers([]syscall.Signal{sig})[0] {
			t.Errorf("%v: %s", sig, got)
		}
		wantGone(t, tok)
	}
}
