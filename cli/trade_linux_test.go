package cli_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/selfcage/selfcage/internal/sandtest"
)

// The tests of the tools of the trade compare what a tool that measures, places, traces or debugs other programs says
// outside and inside. What a run decides by chance is masked, and that alone.

// varies are patterns of what differs from one run to the next, outside too, each with what stands for it.
type varies [][2]string

func (v varies) mask(text string) string {
	for _, p := range v {
		text = regexp.MustCompile(p[0]).ReplaceAllString(text, p[1])
	}
	return text
}

// alike is same for a command that ends with any status and prints what varies, on either output. It returns what was
// said inside, masked.
func (s *site) alike(v varies, words ...string) *result {
	s.t.Helper()
	i := slices.Index(words, "--")
	out := s.command(append([]string{"/usr/bin/env"}, words[i+1:]...)...)
	in := s.run(words...)
	for _, r := range []*result{out, in} {
		r.out, r.err = v.mask(r.out), v.mask(r.err)
	}
	if out.status != in.status || out.signal != in.signal || out.out != in.out || out.err != in.err {
		s.t.Fatalf("%q:\noutside: status %d, printed\n%s%s\ninside: status %d, printed\n%s%s", words, out.status, out.out, out.err, in.status, in.out, in.err)
	}
	return in
}

// tradeCode is a program that does what such tools look at, and nothing else.
const tradeCode = `#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Each page is touched once, and none is a huge one. */
static void pages(long n, long size) {
	char *p = mmap(0, n * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise(p, n * size, MADV_NOHUGEPAGE);
	for (long i = 0; i < n; i++) p[i * size] = 1;
}

static int factorial(int n) {
	if (n <= 1)
		return 1;
	return n * factorial(n - 1);
}

static void *volatile held;
static void leak(int n) { for (int i = 0; i < n; i++) held = malloc(10); held = 0; }
static void crash(int *where) { *where = 1; }
static unsigned spin(unsigned n) { volatile unsigned x = 1; while (n--) x = x * 1664525 + 1013904223; return x; }

int main(int argc, char **argv) {
	int n = argc > 2 ? atoi(argv[2]) : 0;
	if (argc < 2) return 2;
	if (!strcmp(argv[1], "pages")) pages(n, sysconf(_SC_PAGESIZE));
	if (!strcmp(argv[1], "factorial")) printf("%d\n", factorial(n));
	if (!strcmp(argv[1], "leak")) leak(n);
	if (!strcmp(argv[1], "crash")) crash(0);
	if (!strcmp(argv[1], "spin")) return spin(n) == 0;
	return 0;
}
`

// trade compiles the program and returns its path.
func (s *site) trade() string {
	s.t.Helper()
	sandtest.Need(s.t, sandtest.CC)
	s.write("trade.c", tradeCode, 0o644)
	s.sh("cc -g -O0 -fno-omit-frame-pointer -o trade trade.c").ok()
	return s.path("trade")
}

// refusedWrite makes sure that a tool which cannot write its file says so, ends with an error and leaves none.
func (s *site) refusedWrite(file string, words ...string) {
	s.t.Helper()
	r := s.run(append([]string{"--"}, words...)...)
	if r.says("Read-only file system"); r.status == 0 || exists(s.path(file)) {
		s.t.Errorf("%q: status %d, and %s exists: %v", words, r.status, file, exists(s.path(file)))
	}
}

func TestTradeHyperfine(t *testing.T) {
	s := newSite(t, nil)
	s.need("hyperfine")
	s.mkdir("out")
	type results struct {
		Results []struct {
			Command    string
			Times      []float64
			ExitCodes  []int             `json:"exit_codes"`
			Parameters map[string]string `json:"parameters"`
		}
	}
	words := []string{"hyperfine", "--style=none", "--runs=3", "--ignore-failure", "--parameter-list", "n", "0,3"}
	for _, shell := range [][]string{{"-N", "sh -c 'exit {n}'"}, {"exit {n}"}} { // started by itself, and by a shell
		var got [2]results
		for i, file := range []string{"out/outside.json", "out/inside.json"} {
			cmd := append(append(slices.Clone(words), "--export-json", file), shell...)
			if i == 0 {
				s.command(append([]string{"/usr/bin/env"}, cmd...)...).ok()
			} else {
				s.run(append([]string{"--write", "out", "--"}, cmd...)...).ok()
			}
			must(t, json.Unmarshal([]byte(read(t, s.path(file))), &got[i]))
		}
		if len(got[1].Results) != 2 {
			t.Fatalf("%d results", len(got[1].Results))
		}
		for i, in := range got[1].Results {
			out, status := got[0].Results[i], 3*i
			if in.Command != out.Command || in.Parameters["n"] != strconv.Itoa(status) || !slices.Equal(in.ExitCodes, []int{status, status, status}) || !slices.Equal(out.ExitCodes, in.ExitCodes) {
				t.Errorf("inside %+v, outside %+v", in, out)
			}
			// What a shell takes to start is subtracted, and may be more than it took.
			if len(in.Times) != 3 || slices.Min(in.Times) < 0 || shell[0] == "-N" && slices.Min(in.Times) == 0 {
				t.Errorf("times %v", in.Times)
			}
		}
	}
	s.refusedWrite("lost.json", append(words, "--export-json", "lost.json", "true")...)
}

// counts reads what perf stat -x, wrote, by event.
func counts(t testing.TB, text string) map[string]float64 {
	t.Helper()
	m := map[string]float64{}
	for line := range strings.Lines(text) {
		if f := strings.Split(line, ","); len(f) > 3 {
			n, err := strconv.ParseFloat(f[0], 64)
			must(t, err)
			m[f[2]] = n
		}
	}
	return m
}

func TestTradePerf(t *testing.T) {
	sandtest.Need(t, sandtest.Perf)
	s := newSite(t, nil)
	prog := s.trade()
	s.mkdir("out")
	// Events of the kernel's own: a virtual machine has no counters of the processor.
	const events = "task-clock:u,page-faults:u,context-switches:u"
	stat := func(file string) []string {
		return []string{"perf", "stat", "-x", ",", "-o", file, "-e", events, "--", prog, "pages", "2000"}
	}
	s.command(append([]string{"/usr/bin/env"}, stat("out/outside")...)...).ok()
	s.run(append([]string{"--write", "out", "--"}, stat("out/inside")...)...).ok()
	for _, where := range []string{"outside", "inside"} {
		n := counts(t, read(t, s.path("out", where)))
		// The program's own faults, and not those of what starts it.
		if f := n["page-faults:u"]; len(n) != 3 || n["task-clock:u"] <= 0 || f < 2000 || f > 2500 {
			t.Errorf("%s: %v", where, n)
		}
	}
	s.refusedWrite("lost", stat("lost")...)

	// Samples and their symbols, from a file that was granted; what perf keeps beside it in HOME ends with the cage.
	record := []string{"perf", "record", "-e", "cpu-clock:u", "-o"}
	s.run(append(append([]string{"--write", "out", "--"}, record...), "out/perf.data", prog, "spin", "100000000")...).ok()
	if exists(s.home + "/.debug") {
		t.Error("perf wrote into the home of outside")
	}
	hottest := regexp.MustCompile(`^\s*[0-9.]+%\s+\[\.\] spin\b`)
	report := []string{"perf", "report", "-q", "--stdio", "--sort=symbol", "-i", "out/perf.data"}
	// That its file is somebody else's is what perf says to root of outside, and to nobody else.
	for _, r := range []*result{s.command(append([]string{"/usr/bin/env"}, report...)...), s.run(append([]string{"--"}, report...)...)} {
		if text := strings.TrimSpace(r.ok().out); !hottest.MatchString(text) {
			t.Errorf("%q: the hottest is not spin:\n%s", r.args, text)
		}
	}
	s.refusedWrite("perf.data", append(slices.Clone(record), "perf.data", prog, "spin", "1")...)
	// In a place that ends with the cage it works, and is gone.
	r := s.run(append([]string{"--", "sh", "-c", `cd ~ && "$@" && ls`, "sh"}, append(record, "perf.data", prog, "spin", "1000000")...)...).ok()
	if r.has("perf.data\n"); exists(s.home + "/perf.data") {
		t.Error("perf.data is in the home of outside")
	}

	// Root has no capabilities inside: the kernel's part is not counted, and the event's name says so.
	clock := func(r *result) string { return strings.Split(r.ok().err, ",")[2] }
	out, in := clock(s.command("/usr/bin/perf", "stat", "-x", ",", "-e", "task-clock", "true")), clock(s.run("--", "perf", "stat", "-x", ",", "-e", "task-clock", "true"))
	paranoid, _ := strconv.Atoi(strings.TrimSpace(read(t, "/proc/sys/kernel/perf_event_paranoid")))
	if want := map[bool]string{true: "task-clock:u", false: out}[paranoid >= 2]; in != want {
		t.Errorf("inside %s, outside %s, paranoid %d", in, out, paranoid)
	}
}

// time(1) reports what the kernel says of its child, and ends as the child did.
func TestTradeTime(t *testing.T) {
	s := newSite(t, nil)
	s.need("time")
	prog := s.trade()
	s.mkdir("out")
	const pages = 5000
	timed := func(file string) []string {
		return []string{"/usr/bin/time", "-v", "-o", file, "sh", "-c", `"$0" pages 5000; exit 7`, prog}
	}
	s.command(timed("out/outside")...).is(7).silent()
	s.run(append([]string{"--write", "out", "--"}, timed("out/inside")...)...).is(7).silent()
	var keys [2][]string
	for i, where := range []string{"outside", "inside"} {
		text := read(t, s.path("out", where))
		value := map[string]int{}
		for line := range strings.Lines(text) {
			if k, v, ok := strings.Cut(strings.TrimSpace(line), ": "); ok {
				keys[i] = append(keys[i], k)
				value[k], _ = strconv.Atoi(v)
			}
		}
		if kb := pages * os.Getpagesize() / 1024; value["Maximum resident set size (kbytes)"] < kb || value["Minor (reclaiming a frame) page faults"] < pages || value["Exit status"] != 7 {
			t.Errorf("%s: %s", where, text)
		}
	}
	if !slices.Equal(keys[0], keys[1]) {
		t.Errorf("inside %q, outside %q", keys[1], keys[0])
	}
	// The shell's own word.
	s.alike(varies{{`\d+\.\d+`, "N"}}, "--", "bash", "-c", `TIMEFORMAT="%R %U %S"; time (exit 3)`).is(3).says("N N N\n")
	s.alike(varies{{`\d+m\d+\.\d+s`, "N"}}, "--", "sh", "-c", "times").ok().prints("N N\nN N\n")
}

// What the machine is, and how much of it a program may use.
func TestTradeProcessors(t *testing.T) {
	s := newSite(t, nil)
	// Frequencies and free memory are of the moment.
	moment := varies{{`(?m)^(CPU\(s\) scaling MHz|cpu MHz|CPU MHz).*\n`, ""}, {`(free: |_AVPHYS_PAGES +)\d+`, "${1}N"}}
	// What limits the groups, in both versions.
	const limits = `; while IFS=: read n c p; do for f in cpu.max cpu.cfs_quota_us cpu.cfs_period_us cpuset.cpus memory.max memory.limit_in_bytes pids.max; do
		f=/sys/fs/cgroup/${c#name=}$p/$f; [ ! -e "$f" ] || echo "$f $(cat "$f")"; done; done </proc/self/cgroup`
	for _, tt := range []struct {
		tool, script string
		says         string // what shows that it is no error that is the same
	}{
		{"nproc", "nproc; nproc --all", "\n"},
		{"getconf", "getconf -a .", "_NPROCESSORS_ONLN"},
		{"lscpu", "lscpu; lscpu -e=CPU,NODE,SOCKET,CORE,CACHE,ONLINE; lscpu -C=NAME,ONE-SIZE,ALL-SIZE", "Architecture:"},
		{"cat", "cat /proc/cpuinfo /sys/devices/system/cpu/online; ls /sys/devices/system/node", "processor"},
		{"awk", `grep ^MemTotal: /proc/meminfo; awk '$5 ~ "^/sys/fs/cgroup" { print $4, $5 }' /proc/self/mountinfo; cat /proc/self/cgroup` + limits, "MemTotal:"},
		{"taskset", "taskset -p $$ | cut -d: -f2; taskset -c $(awk '/^Cpus_allowed_list/ { print int($2) }' /proc/self/status) nproc", "\n1\n"},
		{"numactl", "numactl --show; numactl --hardware; numactl --membind=0 echo bound; numactl --interleave=all echo interleaved", "policy: default"},
		{"lstopo", "lstopo --of console; hwloc-calc --number-of pu all; hwloc-bind --get", "PU L#0"},
		{"python3", "python3 -c 'import os, resource; print(os.cpu_count(), sorted(os.sched_getaffinity(0)), os.sysconf(\"SC_PHYS_PAGES\"), resource.getpagesize())'", "["},
		{"java", "java -XX:-UsePerfData -XX:+PrintFlagsFinal -XshowSettings:system -version 2>&1 | grep -E 'CPU|Memory|MaxHeapSize|ParallelGCThreads|Use.*GC '", "MaxHeapSize"},
	} {
		t.Run(tt.tool, func(t *testing.T) {
			s := *s
			s.t = t
			s.need(tt.tool)
			r := s.alike(moment, "--", "sh", "-c", tt.script)
			if r.status != 0 {
				t.Skipf("needs a machine where %s works: %s", tt.tool, r.err)
			}
			r.has(tt.says)
		})
	}
	// The cage is made where its caller may run.
	one := `taskset -c $(awk '/^Cpus_allowed_list/ { print int($2) }' /proc/self/status) `
	s.sh(one + "selfcage run --quiet -- nproc").ok().prints("1\n")
}

// A Go program has as many threads as the control groups and the affinity of its caller allow.
func TestGoProcessors(t *testing.T) {
	s := newSite(t, nil)
	goroot := s.need("go")
	out, err := exec.Command("go", "env", "GOCACHE").Output()
	must(t, err)
	s.write("procs.go", "package main\n\nimport \"runtime\"\n\nfunc main() { println(runtime.GOMAXPROCS(0), runtime.NumCPU()) }\n", 0o644)
	s.setenv("GOCACHE="+strings.TrimSpace(string(out)), "GOTOOLCHAIN=local").command(goroot, "build", "-o", "procs", "procs.go").ok()
	if r := s.alike(nil, "--", "./procs").ok(); !regexp.MustCompile(`^\d+ \d+\n$`).MatchString(r.err) {
		t.Errorf("%q", r.err)
	}
	s.sh(`taskset -c $(awk '/^Cpus_allowed_list/ { print int($2) }' /proc/self/status) selfcage run --quiet -- ./procs`).ok().says("1 1\n")
}
