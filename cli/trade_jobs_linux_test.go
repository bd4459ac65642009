package cli_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Tools that start many programs, wait for something, or stand between a program and its terminal.
func TestTradeJobs(t *testing.T) {
	s := newSite(t, nil)
	s = s.setenv("TMPDIR=" + s.mkdir("tmp")) // outside: inside it is another one
	killed := varies{{`line \d+: +\d+`, "line N: N"}}
	for _, tt := range []struct{ tool, script, says string }{
		{"xargs", `seq 20 | xargs -P 4 -n 1 sh -c 'echo "job $0"' | sort -V; echo 3 | xargs -I{} sh -c 'exit {}'; echo $?`, "job 20\n123\n"},
		// With two jobs at a time each waits for the other: with one, the first would wait in vain.
		{"xargs", `cd $(mktemp -d) && printf 'a b\nb a\n' | xargs -P 2 -L 1 timeout 20 sh -c ': >$0; until [ -e $1 ]; do sleep 0.01; done; echo met'`, "met\nmet\n"},
		{"parallel", `seq 6 | parallel -k -j 3 'echo {} of {#}; exit {}'; echo $?; parallel --number-of-cores; seq 1000 | parallel --pipe -k -N 250 -j 2 'sort -n | tail -1'`, "6 of 6\n6\n"},
		{"flock", `f=$(mktemp); exec 9>$f; flock -n 9 && flock -n $f true; echo $?; flock -s $f -c 'echo shared' & p=$!; flock -u 9; wait $p`, "1\nshared\n"},
		{"inotifywait", `cd $(mktemp -d); exec 3< <(exec inotifywait -m -e create,delete,moved_to --format '%e %f' . 2>&1); p=$!
			while read a b <&3; do case "$a $b" in *established*) : >one; mv one two; rm two;; Setting*) ;; *) echo $a $b;; esac; [ "$a" != DELETE ] || break; done; kill $p`, "CREATE one\nMOVED_TO two\nDELETE two\n"},
		{"script", `script -qec 'tty >/dev/null && stty size && [ -t 0 ] && [ -t 1 ] && echo a terminal; exit 4' /dev/null </dev/null; echo $?`, "a terminal\r\n4\n"},
		{"expect", `expect -c 'spawn -noecho sh -c {read -p "name? " x; echo "hello $x"; exit 5}; expect "name? "; send "there\r"; expect eof; exit [lindex [wait] 3]'; echo $?`, "hello there\r\n5\n"},
		{"timeout", `timeout -s INT 0.1 sleep 60; echo $?; timeout -k 0.1 0.1 sh -c 'trap "" TERM; while :; do sleep 0.05; done' 2>/dev/null; echo $?`, "124\n137\n"},
		{"stdbuf", `stdbuf -o0 printf 'a\nb\n' | (read x; echo $x; cat)`, "a\nb\n"},
		{"setsid", `setsid -w sh -c 'ps -o sid= -p $$ >/dev/null && echo of its own; exit 6'; echo $?; nohup sh -c 'trap' 2>/dev/null`, "of its own\n6\n"},
		{"bash", `set -m; sleep 60 & kill -KILL %1; wait %1; echo $?; coproc cat; echo x >&${COPROC[1]}; read y <&${COPROC[0]}; echo $y`, "137\nx\n"},
	} {
		t.Run(tt.tool, func(t *testing.T) {
			s := *s
			s.t = t
			s.need(tt.tool)
			s.alike(killed, "--", "bash", "-c", tt.script).ok().has(tt.says)
		})
	}
}

// A lock on a file that is granted is the same for both sides, and so is the news of a change.
func TestTradeAcross(t *testing.T) {
	s := newSite(t, nil)
	s.need("flock")
	s.mkdir("out")
	inside := `selfcage run --quiet --write out -- `
	s.sh(`: >out/lock; exec 9>out/lock; flock -n 9 && ` + inside + `flock -n out/lock echo got; echo $?; flock -u 9; ` + inside + `flock -n out/lock echo got`).ok().prints("1\ngot\n")
	r := s.begin("run", "--quiet", "--write", "out", "--", "flock", "out/lock", "sh", "-c", "echo held; read x; echo $x")
	r.line("held")
	s.command("/usr/bin/flock", "-n", "out/lock", "true").is(1)
	_, err := r.in.Write([]byte("released\n"))
	must(t, err)
	if got := r.ends(); got != "released\n" {
		t.Errorf("%q", got)
	}
	s.command("/usr/bin/flock", "-n", "out/lock", "true").ok()

	s.need("inotifywait")
	w := s.begin("run", "--quiet", "--read", "out", "--", "sh", "-c", "exec inotifywait -e close_write --format '%w%f' out 2>&1")
	w.line("Setting up watches.")
	w.line("Watches established.")
	s.write("out/result", "x\n", 0o644)
	if got := w.ends(); got != "out/result\n" {
		t.Errorf("%q", got)
	}
}

// forkingTests starts processes in each way that Python has, and needs semaphores, sockets and shared memory for it.
const forkingTests = `
import concurrent.futures, multiprocessing as mp, multiprocessing.shared_memory as shm, os, subprocess, sys, unittest

def square(n): return n * n
def tell(q, lock, name):
    with lock: q.put(os.getpid())
    m = shm.SharedMemory(name); m.buf[0] += 1; m.close()

class Forks(unittest.TestCase):
    def each(self, method):
        c = mp.get_context(method)
        with c.Pool(2) as p: self.assertEqual(p.map(square, range(5)), [0, 1, 4, 9, 16])
        m = shm.SharedMemory(create=True, size=16)
        q, lock = c.Queue(), c.Lock()
        for _ in range(2):
            p = c.Process(target=tell, args=(q, lock, m.name)); p.start(); self.assertEqual(q.get(timeout=60), p.pid); p.join(60)
            self.assertEqual(p.exitcode, 0)
        self.assertEqual(m.buf[0], 2)
        m.close(); m.unlink()
    def test_fork(self): self.each("fork")
    def test_forkserver(self): self.each("forkserver")
    def test_spawn(self): self.each("spawn")
    def test_executor(self):
        with concurrent.futures.ProcessPoolExecutor(2) as e: self.assertEqual(list(e.map(square, [7, 8])), [49, 64])
    def test_subprocess(self): self.assertEqual(subprocess.run([sys.executable, "-c", "raise SystemExit(3)"]).returncode, 3)
    def test_broken(self): self.assertEqual(square(2), 5)
    @unittest.skip("to be counted")
    def test_skipped(self): pass
`

// What a test runner finds, runs and counts is the same, whichever way its processes are made.
func TestTradeUnittest(t *testing.T) {
	s := newSite(t, nil)
	s.systemPython()
	s.write("tests/test_forks.py", forkingTests, 0o644)
	seconds := varies{{`in \d+\.\d+s`, "in Ns"}}
	s.alike(seconds, "--", "/usr/bin/python3", "-B", "-m", "unittest", "discover", "-v", "-s", "tests").is(1).
		says("test_fork (", "test_spawn (", "test_forkserver (", "AssertionError: 4 != 5", "Ran 7 tests in Ns", "FAILED (failures=1, skipped=1)")
}

func TestTradePytest(t *testing.T) {
	s := newSite(t, nil)
	s = s.setenv("TMPDIR=" + s.mkdir("tmp")) // outside: inside it is another one
	pytest := s.need("pytest")
	if r := s.command(pytest, "-p", "xdist", "--version"); r.status != 0 {
		t.Skipf("needs xdist, a plugin of pytest: %s", r.err)
	}
	s.write("tests/test_files.py", `
import multiprocessing, os, pytest
@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_pool(method):
    with multiprocessing.get_context(method).Pool(1) as p: assert p.map(abs, [-1, -2]) == [1, 2]
def test_broken(): assert abs(-2) == 5
@pytest.mark.skip
def test_skipped(): pass
@pytest.mark.parametrize("n", range(6))
def test_worker(n): assert os.environ["PYTEST_XDIST_WORKER"] in ("gw0", "gw1")
def test_tmp(tmp_path): (tmp_path / "f").write_text("x"); assert tmp_path.is_relative_to(os.environ.get("TMPDIR", "/tmp"))
def test_here():
    with open("written", "w") as f: f.write("x")
`, 0o644)
	// How they are spread over the workers and in which order they end is chance.
	words := []string{"-B", "-m", "pytest", "-p", "xdist", "-p", "no:cacheprovider", "-n", "2", "-q", "-rA", "--tb=line", "--color=no"}
	lines := func(r *result) string {
		found := regexp.MustCompile(`(?m)^(PASSED|FAILED|SKIPPED) .*`).FindAllString(r.out, -1)
		slices.Sort(found)
		return strings.Join(found, "\n")
	}
	out, in := s.command(append([]string{"/usr/bin/python3"}, words...)...).is(1), s.run(append([]string{"--write", ".", "--", "/usr/bin/python3"}, words...)...).is(1)
	if want, got := lines(out), lines(in); got != want || strings.Count(got, "PASSED") != 11 {
		t.Errorf("outside\n%s\ninside\n%s\n%s", want, got, in.out)
	}
	in.has("1 failed, 11 passed, 1 skipped in ")
	if read(t, s.path("written")) != "x" {
		t.Error("not written")
	}
	// Without a grant what writes into the checkout fails, and says why; what pytest keeps for itself is a warning.
	must(t, os.Remove(s.path("written")))
	s.run("--", "/usr/bin/python3", "-B", "-m", "pytest", "-p", "xdist", "-n", "2", "-q", "--tb=line", "--color=no").is(1).
		has("Read-only file system: 'written'", "could not create cache path", "2 failed, 10 passed, 1 skipped")
	if exists(s.path(".pytest_cache")) || exists(s.path("written")) {
		t.Error("written without a grant")
	}
}
