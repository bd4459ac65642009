//go:build linux && (amd64 || arm64)

package reexec_test

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/selfcage/selfcage/internal/sandtest"
)

// usual are signals that a program may have a handler for, real-time ones among them.
var usual = []syscall.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM, syscall.SIGTERM,
	syscall.SIGCONT, syscall.SIGWINCH, syscall.SIGXCPU, syscall.SIGIO, syscall.SIGTSTP, 35, 40, 64,
}

func numbers(sigs []syscall.Signal) (list []string) {
	for _, s := range sigs {
		list = append(list, strconv.Itoa(int(s)))
	}
	return list
}

// Case 41 a to c, hosts.md 18: each signal is delivered once, whether it is sent to the supervisor or to the whole group, and the
// program's own status comes back. L35: a signal is a normal end.
func TestSignalsOnce(t *testing.T) {
	eachUser(t, func(t *testing.T, u user) {
		for name, send := range map[string]func(*host, syscall.Signal){"supervisor": (*host).kill, "group": (*host).killGroup} {
			t.Run(name, func(t *testing.T) {
				h := start(t, u.command(t, append([]string{"count"}, numbers(usual)...)...))
				h.expect("ready")
				want := map[string]int{}
				for round := range 2 { // a second Ctrl-C is one more, not one that is lost
					for _, s := range usual {
						send(h, s)
						text := fmt.Sprintf("got %d\n", s)
						if err := h.out.wait(func(out string) bool { return strings.Count(out, text) > round }); err != nil {
							t.Fatalf("signal %d, round %d: %v: %s%s", s, round, err, h.out, h.err)
						}
						want[strconv.Itoa(int(s))]++
					}
				}
				h.in.Close()
				h.wantStatus("exit 9")
				_, total, _ := strings.Cut(h.out.String(), "total ")
				got := map[string]int{}
				for f := range strings.FieldsSeq(total) {
					name, n, _ := strings.Cut(f, ":")
					got[name], _ = strconv.Atoi(n)
				}
				if d := cmp.Diff(want, got); d != "" {
					t.Errorf("(-want +got):\n%s", d)
				}
			})
		}
	})
}

// Case 41 with its own program: a shell with a trap.
func TestCleanup(t *testing.T) {
	eachUser(t, func(t *testing.T, u user) {
		const script = `trap "echo cleanup; exit 9" INT TERM HUP; echo ready; while :; do sleep 0.1; done`
		for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
			for _, group := range []bool{false, true} {
				h := start(t, u.command(t, "sh", script))
				h.expect("ready")
				if group {
					h.killGroup(sig)
				} else {
					h.kill(sig)
				}
				h.wantStatus("exit 9")
				if got := h.out.String(); got != "ready\ncleanup\n" {
					t.Errorf("%v, group %v: %q", sig, group, got)
				}
			}
		}
	})
}

// A program without a handler dies of the signal, and the caller sees it die of that signal.
func TestDefaultAction(t *testing.T) {
	eachUser(t, func(t *testing.T, u user) {
		for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGALRM, 40} {
			for _, group := range []bool{false, true} {
				h := start(t, u.command(t, "sh", "echo ready; exec sleep "+token()))
				h.expect("ready")
				if group {
					h.killGroup(sig)
				} else {
					h.kill(sig)
				}
				h.wantStatus(fmt.Sprint("signal ", int(sig)))
			}
		}
	})
}

// timeout(1) signals its child, and then its group.
func TestTimeout(t *testing.T) {
	u := ordinary(t)
	cmd := u.command(t, "sh", `trap "echo cleanup; exit 9" TERM; echo ready; while :; do sleep 0.1; done`)
	cmd.Args = append([]string{"timeout", "2", cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/usr/bin/timeout"
	if r := run(t, cmd); r.status != "exit 124" || r.out != "ready\ncleanup\n" {
		t.Errorf("got %+v", r)
	}
}

// Case 41 d: nothing survives, whoever is killed, and however the program has hidden its children.
func TestKill(t *testing.T) {
	eachUser(t, func(t *testing.T, u user) {
		for _, tt := range []struct {
			name, want string
			who        func(*host, family) int
		}{
			{"supervisor", "signal 9", func(h *host, f family) int { return h.cmd.Process.Pid }},
			{"bwrap", "signal 9", func(h *host, f family) int { return f.bwrap }},
			{"pid 1 of the cage", "signal 9", func(h *host, f family) int { return f.init }},
			{"program", "signal 9", func(h *host, f family) int { return f.program }},
			{"group", "signal 9", func(h *host, f family) int { return -h.cmd.Process.Pid }},
		} {
			t.Run(tt.name, func(t *testing.T) {
				tok := token()
				script := fmt.Sprintf("sleep %s & setsid sleep %[1]s & (setsid nohup sleep %[1]s >/dev/null 2>&1 &) ; echo ready; wait", tok)
				h := start(t, u.command(t, "sh", script))
				h.expect("ready")
				poll(t, func() error {
					if n := strings.Count(processes("sleep\x00"+tok), "\n") + 1; n != 3 {
						return fmt.Errorf("%d sleepers", n)
					}
					return nil
				})
				if err := syscall.Kill(tt.who(h, h.family()), syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
				h.wantStatus(tt.want)
				wantGone(t, tok)
			})
		}
	})
}

// The witness is nobody's target, but a start must survive the loss of it.
func TestWitnessKilled(t *testing.T) {
	u := ordinary(t)
	h := start(t, u.command(t, "handle", "15"))
	h.expect("ready")
	if err := syscall.Kill(h.family().witness, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	h.kill(syscall.SIGTERM)
	h.wantStatus("exit 9")
	if got := h.out.String(); got != "ready\ncleanup 15\n" {
		t.Errorf("got %q", got)
	}
}

// A witness that somebody has stopped must not swallow a signal.
func TestWitnessStopped(t *testing.T) {
	u := ordinary(t)
	h := start(t, u.command(t, "handle", "15"))
	h.expect("ready")
	if err := syscall.Kill(h.family().witness, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	h.kill(syscall.SIGTERM)
	h.wantStatus("exit 9")
}

// An alarm survives an exec, and so is the supervisor's: it is meant for the program.
func TestAlarm(t *testing.T) {
	sandtest.Need(t, sandtest.Perl)
	u := ordinary(t)
	cmd := u.command(t, "handle", "14")
	cmd.Args = append([]string{"perl", "-e", "alarm 1; exec @ARGV", cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/usr/bin/perl"
	if r := run(t, cmd); r != (result{"exit 9", "ready\ncleanup 14\n", ""}) {
		t.Errorf("got %+v", r)
	}
}

// Case 41: what is ignored outside (nohup; INT and QUIT in the background of a script) is ignored inside, and only
// that: bwrap itself ignores nearly everything, which must not show. Blocked signals stay blocked.
func TestDispositions(t *testing.T) {
	sandtest.Need(t, sandtest.Perl)
	eachUser(t, func(t *testing.T, u user) {
		for _, tt := range []struct{ ignore, block string }{
			{"", ""},
			{"HUP", ""},
			{"INT QUIT", ""},
			{"HUP INT QUIT TERM TSTP TTIN TTOU USR1 USR2 ALRM PIPE CHLD CONT XCPU NUM40 NUM64 URG WINCH", ""},
			{"", "TERM USR1 CHLD TSTP"},
			{"HUP", "HUP INT QUIT TERM USR1 USR2 ALRM TSTP TTIN TTOU PIPE CHLD CONT"},
		} {
			cmds := [2]*exec.Cmd{u.command(t, "dispositions"), env(u.command(t, "dispositions"), "SANDBOX_MODE=off")}
			var outs [2]string
			for i, cmd := range cmds {
				const script = `use POSIX; ($i, $b) = splice @ARGV, 0, 2; $SIG{$_} = "IGNORE" for split / /, $i;
					sigprocmask(SIG_BLOCK, POSIX::SigSet->new(map { eval "POSIX::SIG$_()" } split / /, $b)); exec @ARGV`
				cmd.Args = append([]string{"perl", "-e", script, tt.ignore, tt.block, cmd.Path}, cmd.Args[1:]...)
				cmd.Path = "/usr/bin/perl"
				r := run(t, cmd)
				if r.status != "exit 0" || r.err != "" {
					t.Fatalf("ignore %q, block %q: %+v", tt.ignore, tt.block, r)
				}
				outs[i] = r.out
			}
			if d := cmp.Diff(outs[1], outs[0]); d != "" {
				t.Errorf("ignore %q, block %q (-without +in the cage):\n%s", tt.ignore, tt.block, d)
			}
			if ignored := strings.Contains(outs[0], "ignored 1\n"); ignored != strings.Contains(tt.ignore, "HUP") {
				t.Errorf("ignore %q: HUP is ignored: %v", tt.ignore, ignored)
			}
		}
	})
}

// nohup: the program lives on, and sees nothing of it.
func TestNohup(t *testing.T) {
	u := ordinary(t)
	h := start(t, shellFirst(u.command(t, "sh", `trap "echo usr1; exit 9" USR1; echo ready; while :; do sleep 0.1; done`), "trap '' HUP"))
	h.expect("ready")
	h.killGroup(syscall.SIGHUP)
	h.kill(syscall.SIGHUP)
	h.kill(syscall.SIGUSR1)
	h.wantStatus("exit 9")
}

// A signal that is blocked waits in the program, not in the supervisor: when the program unblocks it, it is there.
func TestBlocked(t *testing.T) {
	sandtest.Need(t, sandtest.Perl)
	u := ordinary(t)
	cmd := u.command(t, "exec", "perl", "-e", `use POSIX; $SIG{USR1} = sub { print "got\n"; exit 9 }; print "ready\n"; $| = 1;
		sigprocmask(SIG_UNBLOCK, POSIX::SigSet->new(SIGUSR1)); sleep 30`)
	cmd.Args = append([]string{"perl", "-e", `use POSIX; sigprocmask(SIG_BLOCK, POSIX::SigSet->new(SIGUSR1)); kill USR1 => $$; exec @ARGV`, cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/usr/bin/perl"
	if r := run(t, cmd); r != (result{"exit 9", "ready\ngot\n", ""}) {
		t.Errorf("got %+v", r)
	}
}

// The leader of a group cannot leave it. The program, which would be the leader, can: the group's signals are still
// meant for it.
func TestProgramLeavesGroup(t *testing.T) {
	u := ordinary(t)
	for _, send := range []func(*host, syscall.Signal){(*host).kill, (*host).killGroup} {
		h := start(t, u.command(t, "leave group", "2"))
		h.expect("ready")
		send(h, syscall.SIGINT)
		h.wantStatus("exit 9")
	}
}

func state(pid int) string {
	stat, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	_, rest, _ := strings.Cut(string(stat), ") ")
	return rest[:min(1, len(rest))]
}

func wantState(t *testing.T, pid int, want string) {
	t.Helper()
	poll(t, func() error {
		if got := state(pid); !strings.Contains(want, got) || got == "" {
			return fmt.Errorf("process %d is in state %q, want %s", pid, got, want)
		}
		return nil
	})
}

// Point 5 of the design: who waits for the supervisor sees a stopped job when the program has stopped, and a running
// one when it goes on.
func TestStop(t *testing.T) {
	eachUser(t, func(t *testing.T, u user) {
		for _, sig := range []syscall.Signal{syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU} {
			for name, send := range map[string]func(*host, syscall.Signal){"supervisor": (*host).kill, "group": (*host).killGroup} {
				h := start(t, u.command(t, "handle", "15"))
				h.expect("ready")
				f := h.family()
				for range 2 {
					send(h, sig)
					wantState(t, h.cmd.Process.Pid, "T")
					wantState(t, f.program, "T")
					send(h, syscall.SIGCONT)
					wantState(t, h.cmd.Process.Pid, "SR")
					wantState(t, f.program, "SR")
				}
				send(h, syscall.SIGTERM)
				if got := status(h.wait()); got != "exit 9" {
					t.Errorf("%v to the %s: %s", sig, name, got)
				}
			}
		}
	})
}

// A stop and a continue at once, over and over: the supervisor must never stay stopped.
func TestStopRace(t *testing.T) {
	u := ordinary(t)
	h := start(t, u.command(t, "handle", "15"))
	h.expect("ready")
	for i := range 300 {
		h.killGroup(syscall.SIGTSTP)
		for range i * 100 {
			runtime.Gosched()
		}
		h.killGroup(syscall.SIGCONT)
	}
	wantState(t, h.cmd.Process.Pid, "SR")
	h.kill(syscall.SIGTERM)
	h.wantStatus("exit 9")
}

// SIGCHLD that is ignored makes the kernel reap children by itself.
func TestChildrenIgnored(t *testing.T) {
	sandtest.Need(t, sandtest.Perl)
	eachUser(t, func(t *testing.T, u user) {
		cmd := u.command(t, "sh", "sh -c 'exit 3'; exit $((4 + $?))")
		cmd.Args = append([]string{"perl", "-e", `$SIG{CHLD} = "IGNORE"; exec @ARGV`, cmd.Path}, cmd.Args[1:]...)
		cmd.Path = "/usr/bin/perl"
		if r := run(t, cmd); r != (result{status: "exit 7"}) {
			t.Errorf("got %+v", r)
		}
	})
}

// Case 42, hosts.md 20: the thread that starts the program may end.
func TestStartedByThreadThatEnds(t *testing.T) {
	u := ordinary(t)
	var hosts []*host
	for range 20 {
		cmd := u.command(t, "handle", "15")
		started := make(chan *host)
		go func() {
			runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
			started <- start(t, cmd)
		}()
		hosts = append(hosts, <-started)
	}
	for _, h := range hosts {
		h.expect("ready")
	}
	for _, h := range hosts {
		h.kill(syscall.SIGTERM)
		h.wantStatus("exit 9")
	}
}

// As pid 1 of a container no signal of its own kills the supervisor: 128+n then.
func TestFirstProcess(t *testing.T) {
	sandtest.Need(t, sandtest.Cage, sandtest.Root)
	inContainer := func(args ...string) *exec.Cmd {
		cmd := user{}.command(t, args...)
		cmd.Args = append([]string{"unshare", "--pid", "--fork", "--mount-proc", cmd.Path}, cmd.Args[1:]...)
		cmd.Path = "/usr/bin/unshare"
		return cmd
	}
	if r := run(t, inContainer("die", "15")); r != (result{status: "exit 143"}) {
		t.Errorf("got %+v", r)
	}
	h := start(t, inContainer("handle", "15"))
	h.expect("ready")
	first := childrenOf(h.cmd.Process.Pid)
	if len(first) != 1 {
		t.Fatalf("children %v", first)
	}
	if err := syscall.Kill(first[0], syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	h.wantStatus("exit 9")
}
