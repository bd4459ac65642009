//go:build linux && (amd64 || arm64)

package reexec_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// Case 43: the status is the program's own, whatever it is. 125 to 127 are not ours alone.
func TestExitStatus(t *testing.T) {
	eachUser(t, func(t *testing.T, u user) {
		for _, n := range []int{0, 1, 7, 125, 126, 127, 128, 137, 143, 255} {
			r := run(t, u.command(t, "exit", strconv.Itoa(n)))
			if want := (result{status: "exit " + strconv.Itoa(n)}); r != want {
				t.Errorf("exit %d: got %+v", n, r)
			}
		}
	})
}

// Case 43, hosts.md 19: a death by signal is one for the caller too, and leaves no core file of the supervisor's.
func TestDeathBySignal(t *testing.T) {
	eachUser(t, func(t *testing.T, u user) {
		for _, sig := range []syscall.Signal{
			syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGILL, syscall.SIGABRT, syscall.SIGBUS, syscall.SIGFPE,
			syscall.SIGKILL, syscall.SIGSEGV, syscall.SIGPIPE, syscall.SIGALRM, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGSYS, 34, 64,
		} {
			cmd := shellFirst(u.command(t, "die", strconv.Itoa(int(sig))), "ulimit -c unlimited 2>/dev/null")
			r := run(t, cmd)
			if want := fmt.Sprint("signal ", int(sig)); r.status != want || r.out+r.err != "" {
				t.Errorf("signal %d: got %+v", sig, r)
			}
			files, err := os.ReadDir(cmd.Dir)
			if err != nil || len(files) > 0 {
				t.Errorf("signal %d: files %v, %v", sig, files, err)
			}
		}
	})
}

// A crash of the Go runtime has its own text and status.
func TestUnconfinedAndCagedEndTheSame(t *testing.T) {
	u := ordinary(t)
	for _, script := range []string{
		"kill -SEGV $$", "kill -TERM $$", "exit 3", "exec /no/such/command", "exec /etc/passwd", "true | false", "ulimit -t 1; while :; do :; done",
	} {
		caged, bare := run(t, u.command(t, "sh", script)), run(t, env(u.command(t, "sh", script), "SANDBOX_MODE=off"))
		if caged.status != strings.TrimSuffix(bare.status, " with a core") {
			t.Errorf("%q: %s in the cage, %s without\n%s", script, caged.status, bare.status, caged.err)
		}
	}
}

// H1, and design point 8: whatever happens before main is a failure to start, never the program's status, and nothing
// is run unconfined.
func TestBrokenStart(t *testing.T) {
	eachUser(t, func(t *testing.T, u user) {
		fake := func(script string) string {
			path := u.dir(t) + "/bwrap"
			if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			u.own(t, path)
			return "SANDBOX_BWRAP=" + path
		}
		for _, tt := range []struct {
			name  string
			vars  []string
			texts []string
		}{
			{"no bwrap", []string{"SANDBOX_BWRAP=/no/such/bwrap"}, []string{"/no/such/bwrap", "\nhint: "}},
			{"a bwrap that runs nothing", []string{fake("exit 0")}, []string{"\nhint: "}},
			{"a bwrap that fails", []string{fake("echo 'bwrap: broken' >&2; exit 1")}, []string{"bwrap: broken", "\nhint: "}},
			{"a bwrap that dies", []string{fake("kill -KILL $$")}, []string{"\nhint: "}},
			{"an init function that ends with 0", []string{initVar + "=0"}, []string{"own initialisation", "\nhint: "}},
			{"an init function that ends with 3", []string{initVar + "=3"}, []string{"own initialisation", "status 3", "\nhint: "}},
			{"H4: a mode that there is not", []string{"SANDBOX_MODE=bwarp"}, []string{"bwarp", "\nhint: "}},
		} {
			t.Run(tt.name, func(t *testing.T) {
				r := run(t, env(u.command(t, "sh", "echo the program ran"), tt.vars...))
				refused(t, r, tt.texts...)
				if !strings.HasPrefix(r.err, "selfcage: sandbox: ") && !strings.Contains(r.err, "\nselfcage: sandbox: ") {
					t.Errorf("not our message: %q", r.err)
				}
			})
		}
	})
}

// H3: off is the default, and changes nothing.
func TestOff(t *testing.T) {
	u := ordinary(t)
	bare, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		t.Fatal(err)
	}
	for _, mode := range []string{"", "off"} {
		cmd := env(u.command(t, "where"), "SANDBOX_MODE="+mode)
		if r := run(t, cmd); r != (result{"exit 0", "false " + bare + "\n", ""}) {
			t.Errorf("mode %q: got %+v", mode, r)
		}
	}
}

// L36 and H33: what is started in the cage is in the cage.
func TestDescendantsAreInside(t *testing.T) {
	eachUser(t, func(t *testing.T, u user) {
		script := `for n in user mnt pid ipc uts; do readlink /proc/self/ns/$n; done; setsid sh -c 'readlink /proc/self/ns/mnt'`
		r := run(t, u.command(t, "sh", script))
		lines := strings.Fields(r.out)
		if r.status != "exit 0" || len(lines) != 6 || lines[1] != lines[5] {
			t.Fatalf("got %+v", r)
		}
		for _, l := range lines {
			kind, _, _ := strings.Cut(l, ":")
			if own, err := os.Readlink("/proc/self/ns/" + kind); err != nil || own == l {
				t.Errorf("%s is the host's own: %v", l, err)
			}
		}
	})
}

func TestManyStarts(t *testing.T) {
	u := ordinary(t)
	one := func(i int) {
		want := result{status: "exit " + strconv.Itoa(i%100), out: fmt.Sprintf("run %d\n", i)}
		if r := run(t, u.command(t, "sh", fmt.Sprintf("echo run %d; exit %d", i, i%100))); r != want {
			t.Errorf("got %+v, want %+v", r, want)
		}
	}
	for i := range 100 {
		one(i)
	}
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() { one(100 + i) })
	}
	wg.Wait()
	wantGone(t, hostDir)
}
