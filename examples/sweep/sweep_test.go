package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/selfcage/selfcage/internal/sandtest"
)

func TestFlagSets(t *testing.T) {
	for _, tt := range []struct {
		depth int
		want  int
	}{
		{0, 3 + 2*1},
		{1, 3 + 2*(1+4)},
		{2, 3 + 2*(1+4+6)},
		{9, 3 + 2*16}, // deeper than there are extras: every subset
	} {
		sets := flagSets(tt.depth)
		if len(sets) != tt.want {
			t.Errorf("flagSets(%d): %d sets, want %d", tt.depth, len(sets), tt.want)
		}
		if got := sets[0].String(); got != reference {
			t.Errorf("flagSets(%d) begins with %q, want the reference", tt.depth, got)
		}
		seen := map[string]bool{}
		for _, s := range sets {
			if seen[s.String()] {
				t.Errorf("flagSets(%d): %q twice", tt.depth, s)
			}
			seen[s.String()] = true
		}
	}
}

func TestCombinations(t *testing.T) {
	var got []string
	for _, c := range combinations([]string{"a", "b", "c"}, 2) {
		got = append(got, strings.Join(c, ""))
	}
	want := []string{"", "a", "b", "c", "ab", "ac", "bc"}
	if !slices.Equal(got, want) {
		t.Errorf("combinations: got %q, want %q", got, want)
	}
}

func TestParseSize(t *testing.T) {
	gnu := "   text\t   data\t    bss\t    dec\t    hex\tfilename\n   1234\t    600\t      8\t   1842\t    732\tx\n"
	if n, err := parseSize(gnu); n != 1234 || err != nil {
		t.Errorf("parseSize: got %d, %v, want 1234", n, err)
	}
	for _, bad := range []string{"", "text\n", "text\nmany\n"} {
		if n, err := parseSize(bad); err == nil {
			t.Errorf("parseSize(%q): got %d, want an error", bad, n)
		}
	}
}

func TestRender(t *testing.T) {
	results := []result{
		{flags: flagSet{"-O0"}, size: 100, cpu: 40 * time.Millisecond, sum: "aa"},
		{flags: flagSet{"-O2"}, size: 80, cpu: 10 * time.Millisecond, sum: "aa"},
		{flags: flagSet{"-wrong"}, size: 60, cpu: time.Millisecond, sum: "bb"},
		{flags: flagSet{"-Ono"}, err: &failure{what: "does not compile", detail: "cc: bad level"}},
		{flags: flagSet{"-O1"}, size: 90, cpu: 20 * time.Millisecond, sum: "aa"},
	}
	want := `flags   size  time      ratio  checksum
-O2     80    10.00 ms  0.25   ok
-O1     90    20.00 ms  0.50   ok
-O0     100   40.00 ms  1.00   ok
-Ono    -     -         -      does not compile
-wrong  60    1.00 ms   0.03   differs: bb
not counted: -Ono: does not compile: cc: bad level
best: -O2
`
	var got strings.Builder
	if err := render(&got, rank(results)); err != nil {
		t.Fatal(err)
	}
	if got.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", got.String(), want)
	}
}

func TestRenderNothing(t *testing.T) {
	if err := render(&bytes.Buffer{}, rank(nil)); !errors.Is(err, errNoResult) {
		t.Errorf("got %v, want %v", err, errNoResult)
	}
}

func TestRatioOfNothing(t *testing.T) {
	if got := ratio(time.Second, 0); got != 0 {
		t.Errorf("got %v, want 0", got)
	}
}

func TestUsage(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want int
	}{
		{[]string{"-h"}, 0},
		{[]string{"-nosuch"}, 2},
		{[]string{"-runs", "0"}, 2},
		{[]string{"-depth", "-1"}, 2},
		{[]string{"surplus"}, 2},
	} {
		var stdout, stderr bytes.Buffer
		if got := run(tt.args, &stdout, &stderr); got != tt.want {
			t.Errorf("%q: status %d, want %d", tt.args, got, tt.want)
		}
		if stdout.Len() != 0 || stderr.Len() == 0 {
			t.Errorf("%q: stdout %q, stderr %q", tt.args, &stdout, &stderr)
		}
	}
}

func TestLook(t *testing.T) {
	home := t.TempDir()
	if err := os.Mkdir(filepath.Join(home, ".ssh"), 0o700); err != nil {
		t.Fatal(err)
	}
	v := look(home, home)
	if v.homeSees != 1 || !v.ssh || !v.writable {
		t.Errorf("got %+v", v)
	}
	v = look(filepath.Join(home, "absent"), filepath.Join(home, "absent"))
	if v.homeSees != 0 || v.ssh || v.writable {
		t.Errorf("absent home: got %+v", v)
	}
	if left := names(home); len(left) != 1 {
		t.Errorf("look left %q behind", left)
	}
}

func TestProcesses(t *testing.T) {
	if got := processes([]string{"1", "self", "4711", "net"}); got != 2 {
		t.Errorf("got %d, want 2", got)
	}
}

// isolate gives the run a temporary directory of its own and returns it, so that a test sees what is left there.
func isolate(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Setenv("CC", "")
	return dir
}

func TestSweepKernel(t *testing.T) {
	sandtest.Need(t, sandtest.CC)
	tmp := isolate(t)
	var stdout, stderr bytes.Buffer
	if status := run([]string{"-depth", "0", "-runs", "1", "-see"}, &stdout, &stderr); status != 0 {
		t.Fatalf("status %d: %s", status, &stderr)
	}
	for _, want := range []string{`(?m)^what I can see$`, `(?m)^-O0 .* 1\.00 +ok$`, `(?m)^best: -O\w+\n\z`} {
		if !regexp.MustCompile(want).Match(stdout.Bytes()) {
			t.Errorf("no %s in:\n%s", want, &stdout)
		}
	}
	if stderr.Len() != 0 {
		t.Errorf("stderr is not a terminal and got %q", &stderr)
	}
	if left := names(tmp); len(left) != 0 {
		t.Errorf("left behind: %q", left)
	}
}

// A faster program that prints something else must never be the best.
func TestSweepWrongResult(t *testing.T) {
	sandtest.Need(t, sandtest.CC)
	isolate(t)
	src := filepath.Join(t.TempDir(), "wrong.c")
	code := `#include <stdio.h>
int main(void) {
#ifdef __OPTIMIZE__
	puts("wrong");
#else
	for (volatile int i = 0; i < 3000000; i++) ;
	puts("right");
#endif
	return 0;
}
`
	if err := os.WriteFile(src, []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	if status := run([]string{"-src", src, "-depth", "0", "-runs", "1"}, &stdout, &stderr); status != 0 {
		t.Fatalf("status %d: %s", status, &stderr)
	}
	if !strings.HasSuffix(stdout.String(), "\nbest: -O0\n") || strings.Count(stdout.String(), "differs: ") != 4 {
		t.Errorf("got:\n%s", &stdout)
	}
}

func TestSweepFails(t *testing.T) {
	sandtest.Need(t, sandtest.CC)
	dir := t.TempDir()
	for name, code := range map[string]string{
		"syntax.c": "int main(void) { return\n",
		"status.c": "int main(void) { return 3; }\n",
	} {
		tmp := isolate(t)
		src := filepath.Join(dir, name)
		if err := os.WriteFile(src, []byte(code), 0o600); err != nil {
			t.Fatal(err)
		}
		var stdout, stderr bytes.Buffer
		if status := run([]string{"-src", src}, &stdout, &stderr); status != 1 {
			t.Errorf("%s: status %d, want 1", name, status)
		}
		if !strings.HasPrefix(stderr.String(), "sweep: -O0: ") {
			t.Errorf("%s: stderr %q", name, &stderr)
		}
		if left := names(tmp); len(left) != 0 {
			t.Errorf("%s: left behind: %q", name, left)
		}
	}
}

func TestNoCompiler(t *testing.T) {
	isolate(t)
	t.Setenv("CC", filepath.Join(t.TempDir(), "absent"))
	var stdout, stderr bytes.Buffer
	if status := run(nil, &stdout, &stderr); status != 1 || !strings.Contains(stderr.String(), "absent") {
		t.Errorf("status %d, stderr %q", status, &stderr)
	}
}

func TestUnstable(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell script")
	}
	bin := filepath.Join(t.TempDir(), "unstable")
	if err := os.WriteFile(bin, []byte("#!/bin/sh\necho $$\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, _, err := measure(context.Background(), bin, 2); err == nil || verdict(err) != "is unstable" {
		t.Errorf("got %v", err)
	}
}

// TestMain lets the test binary be sweep, so that signals meet a whole process.
func TestMain(m *testing.M) {
	if os.Getenv("SWEEP_TEST_MAIN") != "" {
		os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

func TestInterrupted(t *testing.T) {
	sandtest.Need(t, sandtest.CC)
	if runtime.GOOS == "windows" {
		t.Skip("has no SIGTERM to send")
	}
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if signal.Ignored(sig) {
			t.Logf("%v is ignored here, and so sweep ignores it", sig)
			continue
		}
		tmp := isolate(t)
		started := filepath.Join(t.TempDir(), "started")
		src := filepath.Join(t.TempDir(), "slow.c")
		// The first set answers at once, so that there is a partial table; the second never does.
		code := `#include <stdio.h>
#include <unistd.h>
int main(void) {
#ifdef __OPTIMIZE__
	fclose(fopen("` + started + `", "w"));
	for (;;) pause();
#endif
	return 0;
}
`
		if err := os.WriteFile(src, []byte(code), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(os.Args[0], "-src", src)
		cmd.Env = append(os.Environ(), "SWEEP_TEST_MAIN=1")
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cmd.Process.Kill() }) // for when the wait fails
		waitFor(t, started)
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		cmd.Wait() // the status is looked at below
		if got, want := cmd.ProcessState.ExitCode(), 128+int(sig); got != want {
			t.Errorf("%v: status %d, want %d; stderr %q", sig, got, want, &stderr)
		}
		if !strings.HasSuffix(stdout.String(), "\nbest: -O0\n") {
			t.Errorf("%v: no partial table:\n%s", sig, &stdout)
		}
		if left := names(tmp); len(left) != 0 {
			t.Errorf("%v: left behind: %q", sig, left)
		}
	}
}

func waitFor(t *testing.T, path string) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if _, err := os.Lstat(path); err == nil {
			return
		}
	}
	t.Fatalf("%s did not appear", path)
}
