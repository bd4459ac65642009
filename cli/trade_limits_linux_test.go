package cli_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/selfcage/selfcage/internal/sandtest"
)

// attributes prints what a process inherits from the one that starts it.
const attributes = `umask; nice; ionice; chrt -p $$ | cut -d: -f2; taskset -p $$ | cut -d: -f2; numactl --show 2>&1
for f in personality oom_score_adj coredump_filter timerslack_ns; do cat /proc/self/$f; done
grep -E '^(Cpus_allowed|Mems_allowed|Sig(Blk|Ign)|THP_enabled)' /proc/self/status; ulimit -Sa; ulimit -Ha; prlimit`

// What is set around the start of the cage holds in it: priorities, places and limits. Limits above all: the Go
// runtime raises that of open files for itself, and a program that uses select, or closes all that there may be,
// notices. Of signals that are ignored only those are here that the Go runtime leaves alone: it catches PIPE, TERM and
// others, and cannot be asked what they were.
func TestTradeInherited(t *testing.T) {
	s := newSite(t, nil)
	for _, name := range []string{"ionice", "chrt", "taskset", "prlimit"} {
		s.need(name)
	}
	for _, around := range []string{
		"env", "nice -n 3", "ionice -c 3", "ionice -c 2 -n 7", "chrt -b 0", "chrt -i 0", "setarch -R", "choom -n 500 --",
		"prlimit --nofile=777:888", "prlimit --nofile=64:", "prlimit --core=1000: --fsize=99999999 --stack=16777216: --nproc=5000:",
		"prlimit --memlock=65536:65536", "sh -c 'umask 027; exec \"$@\"' sh", "sh -c 'trap \"\" HUP INT TSTP TTOU; exec \"$@\"' sh",
	} {
		t.Run(around, func(t *testing.T) {
			s := *s
			s.t = t
			want := s.sh(around+` bash -c "$1"`, attributes)
			if want.status != 0 {
				t.Skipf("needs a machine that lets %s be used: %s", around, want.err)
			}
			got := s.sh(around+` selfcage run --quiet -- bash -c "$1"`, attributes).ok()
			if diff := cmp.Diff(want.out+want.err, got.out+got.err); diff != "" {
				t.Errorf("inside it differs (-outside +inside):\n%s", diff)
			}
		})
	}
	s.sh("ulimit -Sn 777; selfcage run --quiet -- sh -c 'ulimit -n'; ulimit -n 99; selfcage run --quiet -- sh -c 'ulimit -n; ulimit -Hn'").ok().prints("777\n99\n99\n")
}

// Inside, a program gives itself less and never more. Root has no capabilities there, and gets what everybody else does.
func TestTradeOwnLimits(t *testing.T) {
	s := newSite(t, nil)
	for _, name := range []string{"ionice", "chrt", "taskset", "prlimit"} {
		s.need(name)
	}
	pids := varies{{`\bpid \d+`, "pid N"}}
	for _, tt := range []struct{ script, says string }{
		{"nice -n 5 nice", "5\n"},
		{"ionice -c 3 ionice", "idle\n"},
		{"chrt -b 0 chrt -p 0; chrt -i 0 chrt -p 0", "SCHED_BATCH"},
		{"taskset -c $(awk '/^Cpus_allowed_list/ { print int($2) }' /proc/self/status) nproc", "1\n"},
		{"prlimit --nofile=50:60 bash -c 'ulimit -n; ulimit -Hn'", "50\n60\n"},
		{"ulimit -Sn 40; ulimit -Sn $(ulimit -Hn) && [ $(ulimit -Sn) = $(ulimit -Hn) ] && echo raised", "raised\n"},
		{"ulimit -v 4000000; python3 -c 'bytearray(5 << 30)' 2>&1 | tail -1", "MemoryError"},
		{"ulimit -t 1; ulimit -t", "1\n"},
		{"trap '' XFSZ; ulimit -f 8; f=$(mktemp); head -c 100000 /dev/zero >$f; stat -c %s $f; rm $f", "8192\n"},
	} {
		s.alike(pids, "--", "bash", "-c", tt.script).ok().has(tt.says)
	}
	for _, tt := range []struct{ script, says string }{
		{"nice -n -5 nice", "nice: cannot set niceness: Permission denied"},
		{"chrt -f 1 true", "Operation not permitted"},
		{"ionice -c 1 true", "Operation not permitted"},
		{"ulimit -n 50; ulimit -Hn 60", "Operation not permitted"},
	} {
		if sandtest.Have(sandtest.Ordinary) { // some machines allow it to everybody
			s.alike(varies{{`bash: line \d+`, "bash: line N"}}, "--", "bash", "-c", tt.script)
		} else {
			s.run("--", "bash", "-c", tt.script).says(tt.says)
		}
	}
}

// memoryCode asks for memory in all the ways that need a word from the kernel.
const memoryCode = `
import ctypes, mmap, os, resource
libc = ctypes.CDLL(None, use_errno=True)
anon = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
def tell(what, f):
    try: print(what, f())
    except OSError as e: print(what, e.strerror)
def huge():
    m = mmap.mmap(-1, 32 << 20, flags=anon)
    m.madvise(14) # MADV_HUGEPAGE
    for i in range(0, len(m), 4096): m[i] = 1
    with open("/proc/self/smaps_rollup") as f:
        return [int(l.split()[1]) > 0 for l in f if l.startswith("AnonHugePages")]
def hugetlb(size):
    m = mmap.mmap(-1, 1 << size, flags=anon | 0x40000 | size << 26) # MAP_HUGETLB and the size
    m[0] = 1
    return m[0]
def lock(size):
    m = mmap.mmap(-1, size, flags=anon)
    a = ctypes.addressof(ctypes.c_char.from_buffer(m))
    if libc.mlock(ctypes.c_void_p(a), ctypes.c_size_t(size)): raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    with open("/proc/self/status") as f: return [l for l in f if l.startswith("VmLck")]
tell("transparent", huge)
tell("hugetlb 2M", lambda: hugetlb(21))
tell("hugetlb 1G", lambda: hugetlb(30))
print("sizes", sorted(os.listdir("/sys/kernel/mm/hugepages")), open("/proc/sys/vm/nr_hugepages").read())
print("memlock", resource.getrlimit(resource.RLIMIT_MEMLOCK))
hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)[1]
small = 128 << 10 if hard < 0 else min(hard, 128 << 10)
resource.setrlimit(resource.RLIMIT_MEMLOCK, (small, small))
tell("lock 64K", lambda: lock(64 << 10))
tell("lock 16M", lambda: lock(16 << 20))
`

// Huge pages and locked memory are what they are outside, but that root has no capability to lock more than its limit.
func TestTradeMemory(t *testing.T) {
	sandtest.Need(t, sandtest.Python)
	s := newSite(t, nil)
	s.write("memory.py", memoryCode, 0o644)
	v := varies(nil)
	if sandtest.Have(sandtest.Root) {
		v = varies{{`(?m)^lock 16M .*\n`, ""}}
	}
	out := s.alike(v, "--", "python3", "memory.py").ok().has("lock 64K ['VmLck:\\t      64 kB\\n']").out
	if mode, err := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled"); err == nil && !strings.Contains(string(mode), "[never]") && !strings.Contains(out, "transparent [True]") {
		t.Errorf("%s: %s", mode, out)
	}
	s.run("--", "python3", "memory.py").ok().has("lock 16M Cannot allocate memory")
	// The mount for huge pages with a name is none of the standard devices; a directory of one can be granted.
	if r := s.run("--", "ls", "-A", "/dev/hugepages"); r.status == 0 && r.out != "" {
		t.Errorf("/dev/hugepages holds %s", r.out)
	}
}

// A core file lands where it does outside, if it may be written there; and the status says whether there is one.
func TestTradeCore(t *testing.T) {
	s := newSite(t, nil)
	prog := s.trade()
	s.mkdir("out")
	pattern := strings.TrimSpace(read(t, "/proc/sys/kernel/core_pattern"))
	if limit := s.sh("ulimit -Hc").ok().out; strings.ContainsAny(pattern[:1], "|/") || limit != "unlimited\n" {
		t.Skipf("needs core files in the working directory: kernel.core_pattern is %q, and the limit %s", pattern, limit)
	}
	cores := func() []string {
		names, err := filepath.Glob(s.path("out", strings.SplitN(pattern, "%", 2)[0]+"*"))
		must(t, err)
		return names
	}
	crash := `cd out && ulimit -c unlimited && ` + prog + ` crash; echo $?; ulimit -c; ls | wc -l`
	s.sh(crash).ok().prints("139\nunlimited\n1\n").says("core dumped")
	for _, c := range cores() {
		must(t, os.Remove(c))
	}
	if r := s.run("--", "bash", "-c", crash).ok().prints("139\nunlimited\n0\n"); strings.Contains(r.err, "core dumped") || len(cores()) > 0 {
		t.Errorf("a core where nothing can be written: %s", r.err)
	}
	s.run("--write", "out", "--", "bash", "-c", crash).ok().prints("139\nunlimited\n1\n").says("core dumped")
	if len(cores()) != 1 {
		t.Fatalf("cores %q", cores())
	}
	s.run("--", "bash", "-c", `cd /tmp && ulimit -c unlimited && "$0" crash; ls | wc -l`, prog).ok().prints("1\n").says("core dumped")
	// Without the limit there is none.
	s.alike(varies{{`line \d+: +\d+`, "line N: N"}}, "--", "bash", "-c", "ulimit -c 0; "+prog+" crash; echo $?").ok().prints("139\n").hasNot("core dumped")
	// What selfcage itself ends with is the program's signal, and no second core.
	told := kernelAtLeast(t, 6, 15)
	r := s.sh("cd out && rm -f * && ulimit -c unlimited && selfcage run --quiet --write . -- " + prog + " crash; echo $?").ok()
	if r.prints("139\n"); len(cores()) != 1 || told && !strings.Contains(r.err, "Segmentation fault") {
		t.Errorf("cores %q, %s", cores(), r.err)
	}
	if gdb, err := sandtest.Program("gdb"); err == nil {
		s.run("--", gdb, "-nx", "-q", "-batch", "-ex", "bt", prog, cores()[0]).ok().has("crash (where=", "main (argc=2, argv=", strconv.Quote(prog)[1:len(prog)])
	}
}
