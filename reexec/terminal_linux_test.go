//go:build linux && (amd64 || arm64)

package reexec_test

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/selfcage/selfcage/internal/sandtest"
)

// terminal is an interactive shell, outside of every cage, at a terminal of its own. What is typed is not echoed.
type terminal struct {
	t      *testing.T
	master *os.File
	fd     int // of master: its Fd method would make it blocking
	out    *output
	read   int // how much of out has been expected
	shell  int // process id
}

const prompt = "OUT> "

func (u user) terminal(t *testing.T) *terminal {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	master := os.NewFile(uintptr(fd), "/dev/ptmx") // not blocking, so that Close hangs up although somebody reads
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	name := "/dev/pts/" + strconv.Itoa(n)
	slave, err := os.OpenFile(name, os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer slave.Close()
	u.own(t, name)
	shell := "/bin/bash"
	args := []string{shell, "--norc", "--noprofile", "--noediting", "-i"}
	if _, err := os.Stat(shell); err != nil {
		shell, args = "/bin/sh", []string{"sh", "-i"}
	}
	cmd := exec.Command(shell)
	u.prepare(t, cmd)
	cmd.Args = args
	env(cmd, "PROG="+hostPath(t), "TERM=xterm", "HISTFILE=", "SANDBOX_WRITABLE="+cmd.Dir)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr.Setpgid = false
	cmd.SysProcAttr.Setsid = true
	cmd.SysProcAttr.Setctty = true
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	x := &terminal{t: t, master: master, fd: fd, out: collect(master), shell: cmd.Process.Pid}
	t.Cleanup(func() {
		_ = master.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	x.typ("stty -echo -onlcr; PS1='" + prompt[:3] + "'\"" + prompt[3:] + "\"\n")
	x.expect(prompt)
	return x
}

// typ types at the terminal.
func (x *terminal) typ(keys string) {
	x.t.Helper()
	if _, err := x.master.WriteString(keys); err != nil {
		x.t.Fatal(err)
	}
}

// expect waits for a text after the one that was expected before, and returns what came before it.
func (x *terminal) expect(text string) string {
	x.t.Helper()
	at := -1
	if err := x.out.wait(func(out string) bool {
		at = strings.Index(out[x.read:], text)
		return at >= 0
	}); err != nil {
		x.t.Fatalf("no %q: %v\nafter: %q\nbefore: %q", text, err, x.out.String()[x.read:], x.out.String()[:x.read])
	}
	before := x.out.String()[x.read : x.read+at]
	x.read += at + len(text)
	return before
}

// command types a command, waits for the prompt, and returns what the command printed.
func (x *terminal) command(line string) string {
	x.t.Helper()
	x.typ(line + "\n")
	return x.expect(prompt)
}

func (x *terminal) wantStatus(want int) {
	x.t.Helper()
	if got := x.command("echo $?"); got != fmt.Sprintf("%d\n", want) {
		x.t.Errorf("status %q, want %d\nall of it: %q", got, want, x.out)
	}
}

// job waits for the one child of the shell, which is a supervisor.
func (x *terminal) job() (pid int) {
	x.t.Helper()
	poll(x.t, func() error {
		jobs := childrenOf(x.shell)
		if len(jobs) != 1 {
			return fmt.Errorf("jobs %v", jobs)
		}
		pid = jobs[0]
		return nil
	})
	return pid
}

const (
	ctrlC         = "\x03"
	ctrlD         = "\x04"
	ctrlZ         = "\x1a"
	ctrlBackslash = "\x1c"
)

// Case 41 a, L35: the program's clean-up runs, once, and its own status comes back.
func TestTerminalInterrupt(t *testing.T) {
	eachUser(t, func(t *testing.T, u user) {
		x := u.terminal(t)
		for range 3 {
			x.typ(`$PROG sh 'trap "echo cleanup; exit 9" INT; echo ready; while :; do sleep 0.1; done'` + "\n")
			x.expect("ready\n")
			x.typ(ctrlC)
			if got := x.expect(prompt); strings.Count(got, "cleanup\n") != 1 {
				t.Errorf("got %q", got)
			}
			x.wantStatus(9)
		}
		// Two Ctrl-C are two.
		x.typ("$PROG count 2\n")
		x.expect("ready")
		x.typ(ctrlC)
		x.expect("got 2\n")
		x.typ(ctrlC)
		x.expect("got 2\n")
		x.typ(ctrlD)
		x.expect("total 2:2\n")
		x.expect(prompt)
		// Without a handler it dies of them.
		for keys, status := range map[string]int{ctrlC: 130, ctrlBackslash: 131} {
			x.typ("$PROG sh 'echo ready; exec sleep " + token() + "'\n")
			x.expect("ready\n")
			x.typ(keys)
			x.expect(prompt)
			x.wantStatus(status)
		}
	})
}

// Point 2: job control is the kernel's and the shell's, as for any program.
func TestTerminalJobs(t *testing.T) {
	eachUser(t, func(t *testing.T, u user) {
		x := u.terminal(t)
		// Not a shell: one whose child is stopped between vfork and exec cannot stop, in a cage or not.
		x.typ("$PROG tell 18\n")
		x.expect("ready\n")
		pid := x.job()
		f := findFamily(pid)
		for range 2 {
			x.typ(ctrlZ)
			x.expect("Stopped")
			x.expect(prompt)
			wantState(t, pid, "T")
			wantState(t, f.program, "T")
			if got := x.command("jobs"); !strings.Contains(got, "Stopped") {
				t.Errorf("jobs: %q", got)
			}
			x.typ("fg\n")
			x.expect("got 18\n")
			wantState(t, pid, "SR")
		}
		x.typ(ctrlZ)
		x.expect("Stopped")
		x.expect(prompt)
		x.command("bg")
		wantState(t, pid, "SR")
		if err := x.out.wait(func(out string) bool { return strings.Count(out, "got 18\n") == 3 }); err != nil {
			t.Errorf("%v: %q", err, x.out)
		}
		if got := x.command("jobs"); !strings.Contains(got, "Running") {
			t.Errorf("jobs: %q", got)
		}
		x.typ("kill %1; wait\n")
		x.expect("Terminated")
		poll(t, func() error {
			if state(f.program) != "" {
				return fmt.Errorf("the program is still there")
			}
			return nil
		})
	})
}

// A program may stop itself (an editor's :stop, a shell's suspend), and one in the background that reads is stopped.
func TestTerminalSelfStop(t *testing.T) {
	u := ordinary(t)
	x := u.terminal(t)
	for _, sig := range []string{"STOP", "TSTP", "TTIN"} {
		x.typ(`$PROG sh 'echo ready; kill -` + sig + ` $$; echo back; exit 4'` + "\n")
		x.expect("ready\n")
		x.expect("Stopped")
		x.expect(prompt)
		x.typ("fg\n")
		x.expect("back\n")
		x.expect(prompt)
		x.wantStatus(4)
	}
	x.typ("$PROG exec cat &\n")
	x.expect(prompt)
	wantState(t, x.job(), "T")
	x.typ("fg\n")
	x.typ("a line\n")
	x.expect("a line\n")
	x.typ(ctrlD)
	x.expect(prompt)
	x.wantStatus(0)
}

// Case 39.
func TestTerminalResize(t *testing.T) {
	eachUser(t, func(t *testing.T, u user) {
		x := u.terminal(t)
		x.typ(`$PROG sh 'trap "echo GOT_WINCH; stty size; exit 6" WINCH; echo ready; while :; do sleep 0.1; done'` + "\n")
		x.expect("ready\n")
		if err := unix.IoctlSetWinsize(x.fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 50, Col: 132}); err != nil {
			t.Fatal(err)
		}
		x.expect("GOT_WINCH\n50 132\n")
		x.expect(prompt)
		x.wantStatus(6)
	})
}

// A pipeline is one group; a loop and a script end when the program dies of Ctrl-C.
func TestTerminalPipelines(t *testing.T) {
	u := ordinary(t)
	x := u.terminal(t)
	for line, want := range map[string]string{
		"$PROG sh 'seq 100000; echo status $? >&2' 2>/dev/null | head -1": "1\n",
		"seq 5 | $PROG exec cat | tail -1":                                "5\n",
		"seq 5 | $PROG exec cat | $PROG exec tail -1; echo $?":            "5\n0\n",
		"$PROG sh 'echo out; echo err >&2' 2>&1 | sort":                   "err\nout\n",
		"echo $($PROG sh 'echo substituted')":                             "substituted\n",
	} {
		if got := x.command(line); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
	x.typ(`$PROG sh 'trap "echo cleanup; exit 9" INT; echo ready; while :; do sleep 0.1; done' | (trap "" INT; cat)` + "\n")
	x.expect("ready\n")
	x.typ(ctrlC)
	x.expect("cleanup\n")
	x.expect(prompt)
	x.typ("while :; do $PROG sh 'echo ready; exec sleep " + token() + "'; done\n")
	x.expect("ready\n")
	x.typ(ctrlC)
	if got := x.expect(prompt); strings.Contains(got, "ready") {
		t.Errorf("the loop went on: %q", got)
	}
	x.typ("sh -c 'while :; do $PROG sh \"echo ready; exec sleep " + token() + "\"; done; echo not reached'\n")
	x.expect("ready\n")
	x.typ(ctrlC)
	if got := x.expect(prompt); strings.Contains(got, "rea") {
		t.Errorf("the script went on: %q", got)
	}
	x.wantStatus(130)
}

// Case 40: nothing inside types at the terminal outside.
func TestTerminalInjection(t *testing.T) {
	sandtest.Need(t, sandtest.Perl, sandtest.Tiocsti)
	eachUser(t, func(t *testing.T, u user) {
		x := u.terminal(t)
		const stdin = `ioctl(STDIN, $r, my $c = "Z") or die "blocked $!\n"; print "INJECTED\n"`
		const tty = `open(T, "+<", "/dev/tty") or die "no tty $!\n"; ioctl(T, $r, my $c = "Z") or die "blocked $!\n"; print "INJECTED\n"`
		for _, request := range []string{"0x5412", "0x541c"} {
			for _, code := range []string{stdin, tty} {
				code = "$r = " + request + "; " + code
				for _, line := range []string{
					"$PROG exec perl -e '" + code + "'",
					"$PROG sh 'perl -e \"$0\"; true' '" + code + "'",
				} {
					if got := x.command(line); got != "blocked Operation not permitted\n" {
						t.Errorf("%s: %q", line, got)
					}
				}
			}
		}
	})
}

// Case 39, hosts.md 25: a shell inside has job control; suspend stops it, and the shell outside takes it up again.
func TestTerminalShellInside(t *testing.T) {
	if _, err := os.Stat("/bin/bash"); err != nil {
		return
	}
	eachUser(t, func(t *testing.T, u user) {
		x := u.terminal(t)
		x.typ("PS1='IN> ' $PROG exec bash --norc --noprofile --noediting -i\n")
		if got := x.expect("IN> "); strings.Contains(got, "job control") {
			t.Errorf("got %q", got)
		}
		sleeps := func() {
			t.Helper()
			poll(t, func() error {
				pid := foreground(x)
				if name, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm"); string(name) != "sleep\n" || state(pid) != "S" {
					return fmt.Errorf("%q is in the foreground, %s", name, state(pid))
				}
				return nil
			})
		}
		x.typ("sleep " + token() + "\n")
		sleeps()
		x.typ(ctrlZ)
		x.expect("Stopped")
		x.expect("IN> ")
		x.typ("fg\n")
		x.expect("sleep ")
		sleeps()
		x.typ(ctrlC)
		x.expect("IN> ")
		x.typ("echo $?\n")
		x.expect("130\n")
		x.expect("IN> ")
		for range 2 {
			x.typ("suspend\n")
			x.expect("Stopped")
			x.expect(prompt)
			x.typ("fg\n")
			x.typ("echo here\"\" again\n")
			x.expect("here again\n")
			x.expect("IN> ")
		}
		x.typ("exit 5\n")
		x.expect(prompt)
		x.wantStatus(5)
	})
}

// foreground is the process group that Ctrl-Z would stop.
func foreground(x *terminal) int {
	pgrp, err := unix.IoctlGetInt(x.fd, unix.TIOCGPGRP)
	if err != nil {
		return 0
	}
	return pgrp
}

func TestTerminalPrograms(t *testing.T) {
	u := ordinary(t)
	x := u.terminal(t)
	x.command("seq 1000 >numbers")
	if _, err := exec.LookPath("less"); err == nil {
		x.typ("$PROG exec less numbers\n")
		x.expect("\n23")
		x.typ("G")
		x.expect("1000")
		x.typ("q")
		x.expect(prompt)
		x.wantStatus(0)
		x.typ("$PROG sh 'seq 1000' | less\n")
		x.expect("\n23")
		x.typ("q")
		x.expect(prompt)
	}
	if _, err := exec.LookPath("vim"); err == nil {
		x.typ("$PROG exec vim -u NONE -N numbers\n")
		x.expect("numbers")
		x.typ("ggOfirst\x1b:stop\r")
		x.expect("Stopped")
		x.expect(prompt)
		x.typ("fg\n")
		x.typ(":wq\r")
		x.expect(prompt)
		x.wantStatus(0)
		if got := x.command("head -1 numbers"); got != "first\n" {
			t.Errorf("written: %q", got)
		}
	}
}

// A terminal that is closed ends the job, in its own way.
func TestTerminalHangup(t *testing.T) {
	u := ordinary(t)
	x := u.terminal(t)
	tok := token()
	x.typ(`$PROG sh 'trap "echo cleanup >done; exit 9" HUP; echo ready; while :; do sleep 0.1; done' ` + tok + "\n")
	x.expect("ready\n")
	dir, err := os.Readlink("/proc/" + strconv.Itoa(x.shell) + "/cwd")
	if err != nil {
		t.Fatal(err)
	}
	x.master.Close()
	wantGone(t, tok)
	if text, err := os.ReadFile(dir + "/done"); err != nil || string(text) != "cleanup\n" {
		t.Errorf("%q, %v", text, err)
	}
}
