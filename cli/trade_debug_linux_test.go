package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What tracers and debuggers print of a run that differs from the next: process ids, addresses, times and, as the cage has
// some of its own, the number of variables.
var traced = varies{{`\b(pid|[Pp]rocess|si_pid=|LWP) *\d+`, "${1} N"}, {`0x[0-9a-f]+`, "ADDR"}, {`/\* \d+ vars \*/`, "/* N vars */"},
	{`(si_[us]time=)\d+( /\*.*?\*/)?`, "${1}N"}}

// A program inside may be traced by its own parent: the cage has its own processes, and no capability is needed for them.
func TestTradeStrace(t *testing.T) {
	s := newSite(t, nil)
	s.need("strace")
	s.mkdir("out")
	const script = `/usr/bin/env true; (exit 3); cat /no/such; exit 4`
	r := s.alike(traced, "--", "strace", "-f", "-e", "trace=execve,exit_group,openat", "-P", "/no/such", "-P", "/usr/bin/env", "sh", "-c", script)
	r.is(4).says(`execve("/usr/bin/env", ["/usr/bin/env", "true"]`, `openat(AT_FDCWD, "/no/such", O_RDONLY) = -1 ENOENT`)
	r = s.alike(traced, "--", "strace", "-f", "-e", "trace=exit_group", "sh", "-c", script)
	r.is(4).says("exit_group(3)", "exit_group(4)", "+++ exited with 3 +++", "+++ exited with 4 +++")
	// A fault put in, and a table of what was called.
	s.alike(traced, "--", "strace", "-qq", "-e", "trace=chdir", "-e", "inject=chdir:error=EXDEV", "env", "--chdir=/usr", "true").
		is(125).says("= -1 EXDEV (Invalid cross-device link) (INJECTED)")
	s.alike(varies{{`(?m)^ *[0-9.]+ +[0-9.]+ +\d+ +(\d+)`, "$1"}, {`(?m)^100.00 .*$`, ""}}, "--",
		"strace", "-c", "-S", "name", "-e", "trace=chdir,exit_group", "env", "--chdir=/usr", "true").ok().says("chdir")
	// One file for each process, where it was granted.
	s.run("--write", "out", "--", "strace", "-ff", "-o", "out/trace", "sh", "-c", "(exit 3); exit 4").is(4).silent()
	if names, _ := filepath.Glob(s.path("out/trace.*")); len(names) != 2 {
		t.Errorf("traces %q", names)
	}
	s.refusedWrite("trace", "strace", "-o", "trace", "true")
	// Who is outside cannot be seen, and so not traced.
	other := s.cmd("/bin/sleep", "1000")
	must(t, other.Start())
	t.Cleanup(func() { other.Process.Kill(); other.Wait() })
	s.run("--", "strace", "-p", fmt.Sprint(other.Process.Pid)).is(1).hasNot("attached")
}

func TestTradeLtrace(t *testing.T) {
	s := newSite(t, nil)
	s.need("ltrace")
	prog := s.trade()
	// The arguments are as /etc/ltrace.conf has them: without it ltrace prints what is in the registers.
	if r := s.alike(traced, "--", "ltrace", prog, "factorial", "5").ok(); strings.Contains(r.err, "printf") {
		r.says(`strcmp("factorial", "pages")`, `printf("%d\n", 120)`)
	} else if r.says("exited (status 0)"); r.out != "120\n" { // no procedure linkage table that it knows
		t.Errorf("%q", r.out)
	}
}

func TestTradeGdb(t *testing.T) {
	s := newSite(t, nil)
	gdb := []string{s.need("gdb"), "-q", "-batch"}
	prog := s.trade()
	s.mkdir("out")
	words := append(slices.Clone(gdb), "-ex", "break factorial if n == 1", "-ex", "run", "-ex", "print n * 41", "-ex", "backtrace", "-ex", "up", "-ex", "info locals",
		"-ex", "set variable n = 10", "-ex", "finish", "-ex", "continue", "--args", prog, "factorial", "4")
	// Breakpoint at 1 of 4: the frame of 2 gets 10 instead, so that the result is 1 * 10 * 3 * 4.
	s.alike(traced, append([]string{"--"}, words...)...).ok().has("\n$1 = 41\n", "#0  factorial (n=1) at trade.c:", "in factorial (n=3) at trade.c:", "in main (argc=3, argv=ADDR) at trade.c:",
		"if (n <= 1)\n", "120\n", "exited normally")
	// By a core of its own making, by a watchpoint, and of a program that runs already.
	s.alike(traced, append([]string{"--"}, append(slices.Clone(gdb), "-ex", "run", "-ex", "print where", "-ex", "info program", "--args", prog, "crash")...)...).has("received signal SIGSEGV", "$1 = (int *) ADDR")
	s.alike(traced, append([]string{"--"}, append(slices.Clone(gdb), "-ex", "break leak", "-ex", "run", "-ex", "watch held", "-ex", "continue", "-ex", "continue", "--args", prog, "leak", "1")...)...).
		has("atchpoint 2: held", "Old value = (void * volatile) ADDR", "New value = (void * volatile) ADDR")
	// Attaching to one's own child may be forbidden (Yama), as it is outside.
	attach := `"$0" spin 4000000000 & p=$!; gdb -q -batch -p $p -ex 'frame function main' -ex 'print argc'; kill $p`
	s.alike(append(varies{{`(?s)^.*(\$1 = )`, "$1"}, {`\[Inferior .*`, ""}}, traced...), "--", "bash", "-c", attach, prog)

	// Its history is written where the session was begun, at a terminal, if that was granted.
	s.need("script")
	history := []string{"sh", "-c", `cd out && printf 'print 6 * 7\nquit\n' | script -qec "gdb -q -ex 'set history save on'" /dev/null`}
	s.run(append([]string{"--write", "out", "--"}, history...)...).ok().has("$1 = 42")
	if got := read(t, s.path("out/.gdb_history")); got != "print 6 * 7\nquit\n" {
		t.Errorf("%q", got)
	}
	must(t, os.Remove(s.path("out/.gdb_history")))
	s.run(append([]string{"--"}, history...)...).ok().has("$1 = 42")
	if exists(s.path("out/.gdb_history")) {
		t.Error("written without a grant")
	}
	// Settings for all users hold; those of the home are not there.
	s.write(filepath.Join(s.home, ".gdbinit"), "echo of the home\\n\n", 0o644)
	s.run(append([]string{"--"}, append(slices.Clone(gdb), "-ex", "print 1")...)...).ok().has("$1 = 1").hasNot("of the home")
	if exists("/etc/gdb/gdbinit") {
		s.same("--", "cat", "/etc/gdb/gdbinit")
	}
}

func TestTradeValgrind(t *testing.T) {
	s := newSite(t, nil)
	s.need("valgrind")
	prog := s.trade()
	s.mkdir("out")
	ids := varies{{`==\d+==`, "==N=="}, {`\b0x[0-9A-F]+`, "ADDR"}}
	s.alike(ids, "--", "valgrind", "--leak-check=full", "--error-exitcode=9", prog, "leak", "7").is(9).
		says("70 bytes in 7 blocks are definitely lost", "by ADDR: leak (trade.c:", "by ADDR: main (trade.c:", "ERROR SUMMARY: 1 errors from 1 contexts")
	// Files of its own: counted, and readable by the tool that belongs to it.
	callgrind := []string{"valgrind", "-q", "--tool=callgrind", "--callgrind-out-file=out/callgrind", prog, "factorial", "12"}
	s.run(append([]string{"--write", "out", "--"}, callgrind...)...).ok().prints("479001600\n")
	s.same("--", "sh", "-c", "callgrind_annotate out/callgrind trade.c | grep -E 'trade.c:(factorial|main)'")

	// A core of what crashed lies in the working directory, and nothing says so when it cannot.
	crash := []string{"bash", "-c", `cd out && ulimit -c unlimited && exec valgrind -q "$0" crash`, prog}
	cores := func() []string { names, _ := filepath.Glob(s.path("out/vgcore*")); return names }
	s.run(append([]string{"--"}, crash...)...).says("Invalid write of size 4", "by 0x", "main (trade.c:")
	if len(cores()) != 0 {
		t.Errorf("cores %q without a grant", cores())
	}
	s.run(append([]string{"--write", "out", "--"}, crash...)...).says("Invalid write of size 4")
	if c := cores(); len(c) != 1 || !strings.HasPrefix(read(t, c[0]), "\x7fELF") {
		t.Errorf("cores %q", c)
	}
}
