package manifest

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// host is a root directory of files; a text that begins with "->" is a link, and one that is "denied" cannot be read.
func host(files map[string]string) fs.FS {
	m := fstest.MapFS{}
	for name, text := range files {
		f := &fstest.MapFile{Data: []byte(text), Mode: 0o644}
		if to, ok := strings.CutPrefix(text, "->"); ok {
			f.Data, f.Mode = []byte(to), fs.ModeSymlink|0o777
		}
		m[name] = f
	}
	return m
}

func lookAt(files map[string]string) (map[string]facts, map[string]string) {
	m := machine{fsys: host(files), proc: "/proc/7", facts: map[string]facts{}}
	m.look()
	why := map[string]string{}
	for _, u := range m.unknown {
		why[u.Area+"."+u.Item] = u.Why
	}
	return m.facts, why
}

const cpufreq = "sys/devices/system/cpu/"

// What a machine says of itself.
func TestFacts(t *testing.T) {
	got, why := lookAt(map[string]string{
		"proc/sys/kernel/osrelease":                  "6.1.0-9\n",
		"proc/sys/kernel/version":                    "#1 SMP x\n",
		"proc/sys/kernel/random/boot_id":             "b-1\n",
		"proc/cpuinfo":                               "processor\t: 0\nmodel name\t: AMD EPYC\nmicrocode\t: 0x1\nflags\t\t: fpu avx hypervisor\n\nprocessor\t: 1\nmodel name\t: other\n",
		cpufreq + "online":                           "0-3\n",
		cpufreq + "isolated":                         "\n",
		cpufreq + "smt/active":                       "1\n",
		cpufreq + "cpu0/cpufreq/scaling_governor":    "powersave\n",
		cpufreq + "cpu1/cpufreq/scaling_governor":    "performance\n",
		cpufreq + "cpu2/cpufreq/scaling_governor":    "powersave\n",
		cpufreq + "cpu0/cpufreq/scaling_driver":      "amd-pstate\n",
		cpufreq + "cpu1/cpufreq/scaling_driver":      "amd-pstate\n",
		cpufreq + "cpufreq/boost":                    "1\n",
		cpufreq + "vulnerabilities/meltdown":         "Mitigation: PTI\n",
		"sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
		"proc/meminfo":                               "MemTotal:       1024 kB\nMemFree: 3 kB\nSwapTotal:      0 kB\n",
		"proc/7/limits":                              "Limit                     Soft Limit           Hard Limit           Units     \nMax open files            20000                30000                files     \nMax nice priority         0                    0                    \nMax stack size            8388608              unlimited            bytes     \n",
		"proc/7/cgroup":                              "4:memory:/old\n0::/user/x\n",
		"sys/fs/cgroup/user/x/cpu.max":               "50000 100000\n",
		"proc/7/stat":                                "7 (a) R (b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 5 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 3 39\n",
		"proc/7/status":                              "Name:\tx\nCpus_allowed_list:\t0,2\nMems_allowed_list:\t0\n",
		"etc/os-release":                             "ID=debian\nPRETTY_NAME=\"Debian 12\"\n",
		"etc/localtime":                              "->/usr/share/zoneinfo/Europe/Berlin",
		"usr/share/zoneinfo/Europe/Berlin":           "TZif",
	})
	for _, tt := range []struct{ area, item, want string }{
		{"kernel", "release", "6.1.0-9"}, {"kernel", "version", "#1 SMP x"}, {"kernel", "boot", "b-1"},
		{"cpu", "model", "AMD EPYC"}, {"cpu", "microcode", "0x1"}, {"cpu", "virtual machine", "yes"},
		{"cpu", "features", "sha256:" + digest([]byte("avx fpu hypervisor"))},
		{"cpu", "online", "0-3"}, {"cpu", "isolated", "none"}, {"cpu", "SMT active", "1"}, {"cpu", "boost", "1"},
		{"cpu", "governor", "performance (1), powersave (2)"}, {"cpu", "scaling driver", "amd-pstate"},
		{"cpu", "mitigation of meltdown", "Mitigation: PTI"},
		{"memory", "total", "1024 kB"}, {"memory", "swap", "0 kB"}, {"memory", "transparent huge pages", "madvise"},
		{"limits", "open files, hard", "30000"}, {"limits", "nice priority", "0 0"}, {"limits", "stack size", "8388608 unlimited bytes"}, {"limits", "cgroup cpu.max", "50000 100000"},
		{"scheduling", "nice", "5"}, {"scheduling", "policy", "3"},
		{"scheduling", "allowed processors", "0,2"}, {"scheduling", "allowed memory nodes", "0"},
		{"system", "name", "Debian 12"}, {"locale", "time zone", "Europe/Berlin"}, {"locale", "time zone rules", "sha256:" + digest([]byte("TZif"))},
	} {
		if v := got[tt.area][tt.item]; v != tt.want {
			t.Errorf("%s %s is %q, want %q", tt.area, tt.item, v, tt.want)
		}
	}
	want := map[string]string{
		"kernel.clock source":                       "/sys/devices/system/clocksource/clocksource0/current_clocksource is not there",
		"cpu.maximum frequency in kHz":              "no processor has cpufreq/scaling_max_freq",
		"cpu.NUMA nodes":                            "/sys/devices/system/node/online is not there",
		"memory.huge pages":                         "/proc/sys/vm/nr_hugepages is not there",
		"memory.address space layout randomisation": "/proc/sys/kernel/randomize_va_space is not there",
		"memory.swappiness":                         "/proc/sys/vm/swappiness is not there",
		"memory.overcommit":                         "/proc/sys/vm/overcommit_memory is not there",
		"memory.NUMA balancing":                     "/proc/sys/kernel/numa_balancing is not there",
		"scheduling.automatic groups":               "/proc/sys/kernel/sched_autogroup_enabled is not there",
		"locale.locales":                            "/usr/lib/locale is not there",
	}
	for _, name := range []string{"cpu.weight", "cpuset.cpus.effective", "memory.max", "memory.high", "memory.swap.max", "pids.max"} {
		want["limits.cgroup "+name] = "/sys/fs/cgroup/user/x/" + name + " is not there"
	}
	if d := cmp.Diff(want, why); d != "" {
		t.Errorf("unknown (-want +got)\n%s", d)
	}
}

// What is missing, or has another form, is unknown with its reason; nothing is guessed, and nothing depends on the number of
// the process.
func TestUnknownFacts(t *testing.T) {
	got, why := lookAt(nil)
	if len(got) != 0 {
		t.Errorf("an empty host has facts: %v", got)
	}
	for _, w := range why {
		if strings.Contains(w, "/proc/7") {
			t.Errorf("it names a process: %s", w)
		}
	}
	if len(why) < 20 || why["limits.cgroup"] != "/proc/PID/cgroup is not there" {
		t.Errorf("unknown: %v", why)
	}
	got, why = lookAt(map[string]string{
		cpufreq + "intel_pstate/no_turbo":            "maybe\n",
		cpufreq + "cpufreq/boost":                    "1\n",
		"sys/kernel/mm/transparent_hugepage/enabled": "always\n",
		"proc/cpuinfo":                               "processor : 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n",
		"proc/7/stat":                                "7 (short) S 1\n",
		"proc/7/cgroup":                              "0::/../../x\n",
		"etc/localtime":                              "->nowhere",
		"etc/os-release":                             "ID=x\n",
	})
	if d := cmp.Diff(map[string]facts{"cpu": {"model": "implementer 0x41 part 0xd0c"}}, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	for item, want := range map[string]string{
		"cpu.boost": "has another form", "memory.transparent huge pages": "has another form", "scheduling.nice": "has another form",
		"limits.cgroup cpu.max": "no place in the hierarchy", "locale.time zone": "is not there", "system.name": "it is empty",
		"cpu.features": "does not list them",
	} {
		if !strings.Contains(why[item], want) {
			t.Errorf("%s: %q, want %q", item, why[item], want)
		}
	}
	for text, want := range map[string]string{"0\n": "1", "1\n": "0"} {
		got, _ = lookAt(map[string]string{cpufreq + "intel_pstate/no_turbo": text})
		if got["cpu"]["boost"] != want {
			t.Errorf("no_turbo %q: boost %q", text, got["cpu"]["boost"])
		}
	}
}

// Versions are read from files, never asked of a program.
func TestVersionOf(t *testing.T) {
	fsys := host(map[string]string{
		"opt/go/VERSION":      "go1.22.3\ntime 2024\n",
		"opt/go/bin/go":       "",
		"srv/venv/pyvenv.cfg": "home = /usr/bin\nversion = 3.11.2\n",
		"srv/uv/pyvenv.cfg":   "version_info = 3.12.1\n",
		"opt/conda/conda-meta/python-3.10.4-h_0.json":               "{}",
		"opt/conda/lib/python3.10/os.py":                            "",
		"opt/py/lib/python3.13/os.py":                               "",
		"opt/pyh/lib/python3.9/os.py":                               "",
		"opt/pyh/include/python3.9/patchlevel.h":                    "#define PY_MAJOR 3\n#define PY_VERSION      	\"3.9.18\"\n",
		"opt/node/include/node/node_version.h":                      "#define NODE_MAJOR_VERSION 20\n#define NODE_MINOR_VERSION 1\n#define NODE_PATCH_VERSION 0\n",
		"opt/jdk/release":                                           "IMPLEMENTOR=\"X\"\nJAVA_VERSION=\"17.0.1\"\n",
		"opt/rocm/.info/version":                                    "6.2.0-66\n",
		"opt/cuda/version.json":                                     `{"cuda":{"name":"CUDA SDK","version":"12.4.1"}}`,
		"h/.rustup/toolchains/stable-x/lib/librustc_driver-0a1b.so": "",
		"srv/app/package.json":                                      `{"name":"app","version":"1.2.3"}`,
		"opt/bad/VERSION":                                           "my secret notes\n",
		"opt/odd/.info/version":                                     "1\x1b[2J.2\n",
		"h/.pyenv/libexec/pyenv":                                    "", "h/.pyenv/versions/3.11.1/bin/python": "", "h/.pyenv/versions/3.9.2/x": "",
		"h/.rustup/settings.toml": "version = 1", "opt/notpyenv/versions/1/x": "",
		"opt/none/x": "",
	})
	for p, want := range map[string][2]string{
		"/opt/go":                        {"go1.22.3", "/opt/go/VERSION"},
		"/opt/go/bin/go":                 {"go1.22.3", "/opt/go/VERSION"},
		"/srv/venv":                      {"python 3.11.2", "/srv/venv/pyvenv.cfg"},
		"/srv/uv":                        {"python 3.12.1", "/srv/uv/pyvenv.cfg"},
		"/opt/conda":                     {"python 3.10.4", "/opt/conda/conda-meta/python-3.10.4-h_0.json"},
		"/opt/py":                        {"python 3.13", "/opt/py/lib/python3.13"},
		"/opt/py/lib":                    {"python 3.13", "/opt/py/lib/python3.13"},
		"/opt/pyh":                       {"python 3.9.18", "/opt/pyh/include/python3.9/patchlevel.h"},
		"/opt/node":                      {"node 20.1.0", "/opt/node/include/node/node_version.h"},
		"/opt/jdk":                       {"java 17.0.1", "/opt/jdk/release"},
		"/opt/rocm":                      {"rocm 6.2.0-66", "/opt/rocm/.info/version"},
		"/opt/cuda":                      {"cuda 12.4.1", "/opt/cuda/version.json"},
		"/h/.rustup/toolchains/stable-x": {"rust stable-x, librustc_driver-0a1b.so", "/h/.rustup/toolchains/stable-x/lib/librustc_driver-0a1b.so"},
		"/srv/app":                       {"app 1.2.3", "/srv/app/package.json"},
		"/h/.pyenv":                      {"3.11.1 3.9.2", "/h/.pyenv/versions"}, "/h/.rustup": {"stable-x", "/h/.rustup/toolchains"}, "/opt/notpyenv": {},
		"/opt/bad":  {},
		"/opt/odd":  {"rocm 1[2J.2", "/opt/odd/.info/version"},
		"/opt/none": {},
		"/":         {},
	} {
		v, from := versionOf(fsys, p)
		if got := [2]string{v, from}; got != want {
			t.Errorf("%s: %q, want %q", p, got, want)
		}
	}
}

// The last mount at a point counts. Values that may name a user, a host or a directory are not told.
func TestMountOptions(t *testing.T) {
	got := mountOptions("22 27 0:21 / /a\\040b ro,nosuid - tmpfs tmpfs rw,size=4k,mode=755\n" +
		"23 27 0:21 / /n rw,relatime shared:1 - cifs //server/x rw,vers=3.0,username=me,password=pw,addr=10.0.0.1\n" +
		"24 27 0:21 / /n rw - overlay overlay rw,lowerdir=/var/a:/b,upperdir=/u\n" +
		"half a line\n25 27 0:3 / /p - proc\n")
	want := map[string][2]string{
		"/a b": {"tmpfs", "ro,nosuid,size=4k,mode=755"},
		"/n":   {"overlay", "rw,lowerdir=…,upperdir=…"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if o := mountOptions("1 2 0:1 / /n rw - cifs //s rw,vers=3.0,username=me,password=pw")["/n"][1]; o != "rw,vers=3.0,username=…,password=…" {
		t.Errorf("options %s", o)
	}
}

func TestCommit(t *testing.T) {
	id := strings.Repeat("0123456789abcdef", 3)[:40]
	for name, tt := range map[string]struct {
		files map[string]string
		want  string
	}{
		"branch":    {map[string]string{"p/.git/HEAD": "ref: refs/heads/a\n", "p/.git/refs/heads/a": id + "\n"}, id},
		"packed":    {map[string]string{"p/.git/HEAD": "ref: refs/heads/a\n", "p/.git/packed-refs": "# x\n" + id + " refs/heads/a\n"}, id},
		"detached":  {map[string]string{"p/.git/HEAD": id + "\n"}, id},
		"unborn":    {map[string]string{"p/.git/HEAD": "ref: refs/heads/a\n"}, ""},
		"elsewhere": {map[string]string{"p/.git/HEAD": "ref: ../../secret\n", "secret": id}, ""},
		"other":     {map[string]string{"p/.git/HEAD": "a password of forty letters, more or less"}, ""},
		"none":      {map[string]string{"p/x": ""}, ""},
		"worktree":  {map[string]string{"p/.git": "gitdir: /x\n"}, ""},
	} {
		if got := commit(host(tt.files), "/p"); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
