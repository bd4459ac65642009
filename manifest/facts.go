package manifest

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/selfcage/selfcage/internal/hostfs"
)

// machine collects facts of one host. Everything is read from fsys, the host's root.
type machine struct {
	fsys    fs.FS
	proc    string // the program's directory in /proc
	facts   map[string]facts
	unknown []unknown
}

func (m *machine) set(area, item, value string) {
	if value = printable(value); value == "" {
		m.miss(area, item, "it is empty")
		return
	}
	if m.facts[area] == nil {
		m.facts[area] = facts{}
	}
	m.facts[area][item] = value
}

func (m *machine) miss(area, item, why string) {
	m.unknown = append(m.unknown, unknown{area, item, why})
}

// file makes a fact of a small file's first line.
func (m *machine) file(area, item, path string) {
	if s, ok := m.read(area, item, path); ok {
		line, _, _ := strings.Cut(s, "\n")
		m.set(area, item, line)
	}
}

// chosen makes a fact of a file like "always [madvise] never".
func (m *machine) chosen(area, item, path string) {
	if s, ok := m.read(area, item, path); ok {
		_, rest, open := strings.Cut(s, "[")
		word, _, closed := strings.Cut(rest, "]")
		if !open || !closed {
			m.miss(area, item, path+" has another form")
			return
		}
		m.set(area, item, word)
	}
}

// read returns a file's content. Where it cannot be read, the fact is unknown.
func (m *machine) read(area, item, path string) (string, bool) {
	data, err := fs.ReadFile(m.fsys, path[1:])
	if err != nil {
		if rest, own := strings.CutPrefix(path, m.proc+"/"); own {
			path = "/proc/PID/" + rest // another number each time
		}
		m.miss(area, item, path+" "+cause(err))
		return "", false
	}
	return string(data), true
}

// cause says what is wrong with a file, the same words on every host.
func cause(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, hostfs.ErrNotDir):
		return "is not there"
	case errors.Is(err, fs.ErrPermission):
		return "may not be read"
	}
	return "cannot be read"
}

// look reads all facts.
func (m *machine) look() {
	m.kernel()
	m.cpu()
	m.memory()
	m.limits()
	m.scheduling()
	m.places()
}

func (m *machine) kernel() {
	m.file("kernel", "release", "/proc/sys/kernel/osrelease")
	m.file("kernel", "version", "/proc/sys/kernel/version")
	m.file("kernel", "boot", "/proc/sys/kernel/random/boot_id")
	m.file("kernel", "clock source", "/sys/devices/system/clocksource/clocksource0/current_clocksource")
	if s, ok := m.read("system", "name", "/etc/os-release"); ok {
		m.set("system", "name", assigned(s, "PRETTY_NAME"))
	}
}

// assigned is the value of NAME= in a file of shell assignments, without its quotes; "" where there is none.
func assigned(s, name string) string {
	for line := range strings.Lines(s) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), name+"="); ok {
			return strings.Trim(v, `"'`)
		}
	}
	return ""
}

const cpuDir = "/sys/devices/system/cpu"

func (m *machine) cpu() {
	m.cpuinfo()
	m.file("cpu", "online", cpuDir+"/online")
	if s, ok := m.read("cpu", "isolated", cpuDir+"/isolated"); ok {
		m.set("cpu", "isolated", cmp.Or(strings.TrimSpace(s), "none"))
	}
	m.file("cpu", "SMT active", cpuDir+"/smt/active")
	m.perCPU("governor", "cpufreq/scaling_governor")
	m.perCPU("scaling driver", "cpufreq/scaling_driver")
	m.perCPU("maximum frequency in kHz", "cpufreq/scaling_max_freq")
	m.boost()
	m.file("cpu", "NUMA nodes", "/sys/devices/system/node/online")
	list, _ := fs.ReadDir(m.fsys, cpuDir[1:]+"/vulnerabilities")
	for _, e := range list { // what the kernel does about them costs time
		m.file("cpu", "mitigation of "+e.Name(), cpuDir+"/vulnerabilities/"+e.Name())
	}
}

// boost is told in one of two places, by opposite words.
func (m *machine) boost() {
	const intel = "/sys/devices/system/cpu/intel_pstate/no_turbo"
	if data, err := fs.ReadFile(m.fsys, intel[1:]); err == nil {
		switch strings.TrimSpace(string(data)) {
		case "0":
			m.set("cpu", "boost", "1")
		case "1":
			m.set("cpu", "boost", "0")
		default:
			m.miss("cpu", "boost", intel+" has another form")
		}
		return
	}
	m.file("cpu", "boost", cpuDir+"/cpufreq/boost")
}

// cpuinfo reads what /proc/cpuinfo says of the first processor. Architectures call it by different names.
func (m *machine) cpuinfo() {
	s, ok := m.read("cpu", "model", "/proc/cpuinfo")
	if !ok {
		return
	}
	first := map[string]string{}
	for line := range strings.Lines(s) {
		k, v, ok := strings.Cut(line, ":")
		if k = strings.TrimSpace(k); ok && first[k] == "" {
			first[k] = strings.TrimSpace(v)
		}
	}
	model := first["model name"]
	for _, k := range []string{"CPU implementer", "CPU architecture", "CPU variant", "CPU part", "CPU revision"} {
		if first["model name"] == "" && first[k] != "" {
			model += " " + strings.TrimPrefix(k, "CPU ") + " " + first[k]
		}
	}
	m.set("cpu", "model", model)
	if v := first["microcode"]; v != "" {
		m.set("cpu", "microcode", v)
	}
	flags := strings.Fields(first["flags"] + " " + first["Features"])
	if len(flags) == 0 {
		m.miss("cpu", "features", "/proc/cpuinfo does not list them")
		return
	}
	slices.Sort(flags)
	m.set("cpu", "features", "sha256:"+digest([]byte(strings.Join(flags, " "))))
	m.set("cpu", "virtual machine", map[bool]string{true: "yes", false: "no"}[slices.Contains(flags, "hypervisor")])
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// perCPU makes one fact of a file that each processor has: "performance", or "performance (8), powersave (8)".
func (m *machine) perCPU(item, name string) {
	list, err := fs.ReadDir(m.fsys, cpuDir[1:])
	if err != nil {
		m.miss("cpu", item, cpuDir+" "+cause(err))
		return
	}
	count := map[string]int{}
	for _, e := range list {
		n, isCPU := strings.CutPrefix(e.Name(), "cpu")
		if _, err := strconv.Atoi(n); !isCPU || err != nil {
			continue
		}
		if data, err := fs.ReadFile(m.fsys, cpuDir[1:]+"/"+e.Name()+"/"+name); err == nil {
			count[strings.TrimSpace(string(data))]++
		}
	}
	var words []string
	for w, n := range count {
		if len(count) > 1 {
			w += " (" + strconv.Itoa(n) + ")"
		}
		words = append(words, w)
	}
	if len(words) == 0 {
		m.miss("cpu", item, "no processor has "+name)
		return
	}
	slices.Sort(words)
	m.set("cpu", item, strings.Join(words, ", "))
}

func (m *machine) memory() {
	if s, ok := m.read("memory", "total", "/proc/meminfo"); ok {
		for _, f := range []struct{ item, key string }{{"total", "MemTotal"}, {"swap", "SwapTotal"}} {
			_, rest, _ := strings.Cut(s, f.key+":")
			line, _, _ := strings.Cut(rest, "\n")
			m.set("memory", f.item, line)
		}
	}
	m.chosen("memory", "transparent huge pages", "/sys/kernel/mm/transparent_hugepage/enabled")
	m.file("memory", "huge pages", "/proc/sys/vm/nr_hugepages")
	m.file("memory", "address space layout randomisation", "/proc/sys/kernel/randomize_va_space")
	m.file("memory", "swappiness", "/proc/sys/vm/swappiness")
	m.file("memory", "overcommit", "/proc/sys/vm/overcommit_memory")
	m.file("memory", "NUMA balancing", "/proc/sys/kernel/numa_balancing")
}

// limits are those of the program's own cgroup and its own resource limits.
func (m *machine) limits() {
	if s, ok := m.read("limits", "resources", m.proc+"/limits"); ok {
		m.resources(s)
	}
	const v2 = "0::"
	s, ok := m.read("limits", "cgroup", m.proc+"/cgroup")
	if !ok {
		return
	}
	group := ""
	for line := range strings.Lines(s) {
		if p, ok := strings.CutPrefix(strings.TrimSpace(line), v2); ok {
			group = p
		}
	}
	for _, name := range []string{"cpu.max", "cpu.weight", "cpuset.cpus.effective", "memory.max", "memory.high", "memory.swap.max", "pids.max"} {
		if group == "" || strings.Contains(group, "/..") {
			m.miss("limits", "cgroup "+name, "the program's cgroup has no place in the hierarchy of cgroup 2 that can be seen")
			continue
		}
		m.file("limits", "cgroup "+name, "/sys/fs/cgroup"+strings.TrimSuffix(group, "/")+"/"+name)
	}
}

// resources reads /proc/PID/limits, a table whose columns are apart by two spaces or more.
func (m *machine) resources(s string) {
	for line := range strings.Lines(s) {
		var cells []string
		for c := range strings.SplitSeq(strings.TrimSpace(line), "  ") {
			if c = strings.TrimSpace(c); c != "" {
				cells = append(cells, c)
			}
		}
		switch {
		case len(cells) < 3 || cells[0] == "Limit":
		case cells[0] == "Max open files": // of which Go raises the soft limit for itself until it executes the command
			m.set("limits", "open files, hard", cells[2])
		default:
			m.set("limits", strings.TrimPrefix(cells[0], "Max "), strings.Join(cells[1:], " "))
		}
	}
}

// scheduling reads fields of /proc/PID/stat and status; the name in the former may hold anything, parentheses too.
func (m *machine) scheduling() {
	if s, ok := m.read("scheduling", "nice", m.proc+"/stat"); ok {
		fields := strings.Fields(s[strings.LastIndexByte(s, ')')+1:])
		const nice, policy = 19 - 3, 41 - 3 // counted as in proc(5), where the state is the third
		if len(fields) > policy {
			m.set("scheduling", "nice", fields[nice])
			m.set("scheduling", "policy", fields[policy])
		} else {
			m.miss("scheduling", "nice", "/proc/PID/stat has another form")
		}
	}
	if s, ok := m.read("scheduling", "allowed processors", m.proc+"/status"); ok {
		for _, f := range []struct{ item, key string }{{"allowed processors", "Cpus_allowed_list"}, {"allowed memory nodes", "Mems_allowed_list"}} {
			_, rest, _ := strings.Cut(s, "\n"+f.key+":")
			line, _, _ := strings.Cut(rest, "\n")
			m.set("scheduling", f.item, line)
		}
	}
	m.file("scheduling", "automatic groups", "/proc/sys/kernel/sched_autogroup_enabled")
}

// places are the rules for time zones and locales.
func (m *machine) places() {
	v := hostfs.New(m.fsys)
	const zone = "/etc/localtime"
	r, err := v.Walk(zone)
	if err != nil {
		m.miss("locale", "time zone", zone+" "+cause(err))
	} else if data, err := fs.ReadFile(m.fsys, r.Path[1:]); err != nil || len(data) > maxFile {
		m.miss("locale", "time zone", zone+" cannot be read")
	} else {
		if _, name, ok := strings.Cut(r.Path, "/zoneinfo/"); ok {
			m.set("locale", "time zone", name)
		}
		m.set("locale", "time zone rules", "sha256:"+digest(data))
	}
	list, err := fs.ReadDir(m.fsys, "usr/lib/locale")
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
		if fi, err := e.Info(); err == nil && !fi.IsDir() {
			names = append(names, strconv.FormatInt(fi.Size(), 10))
		}
	}
	if err != nil {
		m.miss("locale", "locales", "/usr/lib/locale "+cause(err))
		return
	}
	m.set("locale", "locales", "sha256:"+digest([]byte(strings.Join(names, "\x00"))))
}
