package manifest

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
)

// Difference is one thing in which two runs differ.
type Difference struct {
	Area    string `json:"area"` // "cpu", "input", "tool"
	Item    string `json:"item"` // "governor", a path
	A       string `json:"a"`    // what the first manifest has, "" is nothing
	B       string `json:"b"`
	Meaning string `json:"meaning,omitempty"` // for whoever compares the results of the two runs
}

// Diff compares two manifests, as Collect writes them. Differences come in a fixed order, what decides about results first.
// What is unknown in both is not compared; of programs and inputs that have no digest on either side it is said that they could
// not be compared. Device and inode numbers are compared only where both runs were on one host since
// one boot. The error says that one of them is no manifest.
func Diff(a, b []byte) ([]Difference, error) {
	x, err := parse(a)
	if err != nil {
		return nil, errors.New("the first: " + err.Error())
	}
	y, err := parse(b)
	if err != nil {
		return nil, errors.New("the second: " + err.Error())
	}
	d := differ{sameHost: x.Facts["kernel"]["boot"] != "" && x.Facts["kernel"]["boot"] == y.Facts["kernel"]["boot"]}
	d.programs(x, y)
	d.rows("tool", tools(x), tools(y), "another version, or another tool, may be used")
	d.rows("input", inputs(x), inputs(y), "the runs do not read the same")
	d.uncompared(x, y)
	d.facts(x, y)
	d.rows("device", devices(x), devices(y), "the runs do not compute on the same")
	d.rows("mount", mounts(x, d.sameHost), mounts(y, d.sameHost), "another part of the file system is visible")
	d.rows("variable", variables(x), variables(y), "one of the runs has it, the other one does not; values are not recorded")
	return d.out, nil
}

func parse(data []byte) (document, error) {
	var d document
	if err := json.Unmarshal(data, &d); err != nil {
		return d, err
	}
	if d.Version != 1 {
		return d, errors.New("it is of version " + strconv.Itoa(d.Version) + ", known is 1")
	}
	return d, nil
}

type differ struct {
	out      []Difference
	sameHost bool
}

// row is one thing by a name that is the same in both manifests.
type row struct {
	item  string
	value string // what is compared and printed
}

// rows compares two lists of rows. Several rows of one name are compared together.
func (d *differ) rows(area string, a, b []row, meaning string) {
	values := map[string][2][]string{}
	for side, list := range [2][]row{a, b} {
		for _, r := range list {
			v := values[r.item]
			v[side] = append(v[side], r.value)
			values[r.item] = v
		}
	}
	for _, item := range sortedKeys(values) {
		x, y := strings.Join(values[item][0], "; "), strings.Join(values[item][1], "; ")
		if x != y {
			d.add(area, item, x, y, meaning)
		}
	}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func (d *differ) add(area, item, a, b, meaning string) {
	d.out = append(d.out, Difference{area, item, a, b, meaning})
}

// programs are compared by what they are for: the command of one run with that of the other.
func (d *differ) programs(x, y document) {
	d.rows("program", programs(x), programs(y), "another program runs, or another build of it")
}

func programs(d document) (rows []row) {
	for _, p := range d.Programs {
		content := p.SHA256
		if content == "" {
			content = "size " + strconv.FormatInt(p.Size, 10) + ", no digest: " + p.Why
		}
		if p.Says != "" {
			content += " " + p.Says
		}
		rows = append(rows, row{itemOf(p), string(p.Path) + " " + content})
	}
	return rows
}

func itemOf(p program) string {
	if p.Role == "started" || p.Role == "interpreter" {
		return p.Role + " " + string(p.Path)
	}
	return p.Role
}

// tools are compared by name where there is one of the name, so that two places of one tool are one difference.
func tools(d document) (rows []row) {
	count := map[string]int{}
	for _, t := range d.Tools {
		count[t.Name]++
	}
	for _, t := range d.Tools {
		content := strings.TrimSpace(t.Version + " " + t.SHA256)
		r := row{t.Name, strings.TrimSpace(string(t.Path) + " " + content)}
		if count[t.Name] > 1 {
			r = row{t.Name + " " + string(t.Path), cmp.Or(content, "there")}
		}
		rows = append(rows, r)
	}
	return rows
}

// inputs without a digest are compared by what else is known.
func inputs(d document) (rows []row) {
	for _, in := range d.Inputs {
		v := in.SHA256
		if v == "" {
			v = in.Kind
			if in.Size > 0 {
				v += " of " + strconv.FormatInt(in.Size, 10) + " bytes"
			}
			v += ", no digest: " + in.Why
		}
		if in.Commit != "" {
			v += " commit " + in.Commit
		}
		rows = append(rows, row{string(in.Path), v})
	}
	return rows
}

// uncompared are programs and inputs of which nothing is known that could differ: to say nothing of them would be to say that
// they are the same.
func (d *differ) uncompared(x, y document) {
	const meaning = "could not be compared: it may differ"
	without := func(doc document) map[[2]string]string {
		out := map[[2]string]string{}
		for _, p := range doc.Programs {
			if p.SHA256 == "" {
				out[[2]string{"program", itemOf(p)}] = "no digest: " + p.Why
			}
		}
		for _, in := range doc.Inputs {
			if in.SHA256 == "" && in.Kind != "other" && in.Why != whyCache {
				out[[2]string{"input", string(in.Path)}] = "no digest: " + in.Why
			}
		}
		return out
	}
	a, b := without(x), without(y)
	told := map[string]bool{}
	for _, t := range d.out {
		told[t.Area+" "+t.Item] = true
	}
	keys := map[string][2]string{}
	for k := range a {
		if _, ok := b[k]; ok && !told[k[0]+" "+k[1]] {
			keys[k[0]+"\x00"+k[1]] = k
		}
	}
	for _, s := range sortedKeys(keys) {
		k := keys[s]
		d.add(k[0], k[1], a[k], b[k], meaning)
	}
}

func devices(d document) (rows []row) {
	for _, dev := range d.Devices {
		rows = append(rows, row{string(dev.Path), cmp.Or(strings.TrimSpace(dev.Driver+" "+dev.Says), dev.Why, "there")})
	}
	return rows
}

// mounts leaves out who asked: the same grant can be said in a file and by a flag.
func mounts(d document, ids bool) (rows []row) {
	for _, m := range d.Mounts {
		words := []string{m.Kind}
		if m.Source != m.Target && m.Source != "" {
			words = append(words, "of "+string(m.Source))
		}
		if m.Filesystem != "" {
			words = append(words, m.Filesystem, m.Options)
		}
		if m.SHA256 != "" {
			words = append(words, m.SHA256)
		}
		if ids && m.ID != "" {
			words = append(words, "file "+m.ID)
		}
		rows = append(rows, row{string(m.Target), strings.Join(words, " ")})
	}
	return rows
}

func variables(d document) (rows []row) {
	for _, v := range d.Variables {
		rows = append(rows, row{string(v), "there"})
	}
	return rows
}

// areas is the order of the facts that are known; others come after them.
var areas = []string{"cpu", "memory", "limits", "scheduling", "kernel", "system", "locale"}

// facts compares what is known of the two machines. A fact that one of them does not know is a difference, too: nobody can
// say that it is the same.
func (d *differ) facts(x, y document) {
	names := map[string]bool{}
	for _, doc := range []document{x, y} {
		for area := range doc.Facts {
			names[area] = true
		}
		for _, u := range doc.Unknown {
			names[u.Area] = true
		}
	}
	order := sortedKeys(names)
	slices.SortStableFunc(order, func(a, b string) int { return cmp.Compare(place(a), place(b)) })
	for _, area := range order {
		items := map[string]bool{}
		for _, doc := range []document{x, y} {
			for item := range doc.Facts[area] {
				items[item] = true
			}
		}
		for _, item := range sortedKeys(items) {
			d.fact(area, item, value(x, area, item), value(y, area, item))
		}
	}
}

func place(area string) int {
	if i := slices.Index(areas, area); i >= 0 {
		return i
	}
	return len(areas)
}

// value is a fact, or why it is not known.
func value(d document, area, item string) string {
	if v := d.Facts[area][item]; v != "" {
		return v
	}
	for _, u := range d.Unknown {
		if u.Area == area && u.Item == item {
			return "unknown: " + u.Why
		}
	}
	return ""
}

func (d *differ) fact(area, item, a, b string) {
	if a == b {
		return
	}
	m := meaning(area, item)
	switch {
	case a == "" || b == "" || strings.HasPrefix(a, "unknown: ") || strings.HasPrefix(b, "unknown: "):
		m = "it is not known whether the two are the same"
	case item == "governor" && (a != "performance" || b != "performance"):
		m = "with a governor other than performance, frequencies change with load: timings are not comparable"
	}
	d.add(area, item, a, b, m)
}

// meaning says what a fact's difference does to results.
func meaning(area, item string) string {
	for _, row := range [...]struct{ area, item, text string }{
		{"cpu", "governor", "frequencies are chosen by other rules: timings are not comparable"},
		{"cpu", "model", "another processor: timings are not comparable"},
		{"cpu", "features", "libraries may choose other code: timings and last digits may differ"},
		{"cpu", "microcode", "the same processor may do the same at another speed"},
		{"cpu", "boost", "frequencies go higher on one of them: timings are not comparable"},
		{"cpu", "SMT active", "two threads may share one core on one of them"},
		{"cpu", "online", "another number of processors: parallel programs scale otherwise"},
		{"cpu", "isolated", "other processors are kept free of other work"},
		{"cpu", "scaling driver", "frequencies are chosen by another mechanism"},
		{"cpu", "maximum frequency in kHz", "the clock may go higher on one of them: timings are not comparable"},
		{"cpu", "NUMA nodes", "memory may be farther away on one of them"},
		{"cpu", "virtual machine", "one of them shares its processors with others that cannot be seen"},
		{"memory", "total", "what fits into one may not fit into the other"},
		{"memory", "transparent huge pages", "other page sizes: memory-bound timings and peak memory differ"},
		{"memory", "huge pages", "other page sizes: memory-bound timings differ"},
		{"memory", "address space layout randomisation", "layout-dependent timings vary more on one of them"},
		{"memory", "swappiness", "under pressure, memory goes to disk sooner on one of them"},
		{"memory", "swap", "under pressure, one of them slows down where the other one ends programs"},
		{"memory", "NUMA balancing", "pages move between nodes on one of them"},
		{"scheduling", "allowed processors", "another number of processors: parallel programs scale otherwise"},
		{"scheduling", "nice", "under load, one of the runs gets less of the processor"},
		{"scheduling", "policy", "the runs are scheduled by other rules"},
		{"limits", "cgroup cpu.max", "one of the runs is slowed down by a quota"},
		{"limits", "cgroup memory.max", "what fits into one may not fit into the other"},
		{"kernel", "release", "another kernel: system calls and scheduling may take other times"},
		{"kernel", "version", "another build of the kernel"},
		{"kernel", "boot", "another host, or another boot of it"},
		{"kernel", "architecture", "other machine code runs"},
		{"kernel", "clock source", "reading the clock takes another time, and may be less exact"},
		{"system", "name", "other versions of the system's libraries and tools"},
		{"locale", "time zone", "local times differ"},
		{"locale", "time zone rules", "local times may differ"},
		{"locale", "locales", "sorting and formatting may differ"},
	} {
		if row.area == area && row.item == item {
			return row.text
		}
	}
	switch {
	case strings.HasPrefix(item, "mitigation of "):
		return "the kernel works around the processor's fault in another way: system calls may take other times"
	case area == "limits":
		return "one of the runs may be stopped where the other one goes on"
	}
	return ""
}
