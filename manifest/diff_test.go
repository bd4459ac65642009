package manifest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// run is the manifest of a run on a usual machine, after change was applied.
func run(t *testing.T, change func(d *document)) []byte {
	t.Helper()
	d := empty()
	d.Facts = map[string]facts{
		"cpu":    {"model": "X", "governor": "powersave"},
		"kernel": {"release": "6.1", "boot": "b1"},
		"memory": {"transparent huge pages": "madvise"},
	}
	d.Unknown = []unknown{{"cpu", "boost", "no file"}}
	d.Programs = []program{{Role: "program", Path: "/bin/selfcage", SHA256: "s1"}, {Role: "command", Path: "/usr/bin/python3", ID: "1:2", SHA256: "p1"},
		{Role: "libc", Path: "/lib/libc.so.6", SHA256: "l1", Says: "2.36"}}
	d.Tools = []tool{{Name: "go", Path: "/opt/go1.21", Version: "go1.21"}, {Name: "python", Path: "/v1", Version: "python 3.11"}, {Name: "python", Path: "/v2"}}
	d.Inputs = []input{{Path: "/data/x", By: "--read", Kind: "file", Size: 3, SHA256: "d1"},
		{Path: "/proj", By: "working directory", Kind: "directory", Commit: "c1", SHA256: "t1"}}
	d.Devices = []device{{Path: "/dev/dri/renderD128", Number: "226:128", Driver: "amdgpu", Says: "0x1002 0x73bf"}}
	d.Mounts = []mount{{Target: "/usr", Source: "/usr", Kind: "ro", By: "base", ID: "1:9", Filesystem: "ext4", Options: "ro,relatime"},
		{Target: "/etc/hosts", Kind: "file", By: "base", SHA256: "h1"}}
	d.Variables = []text{"HOME", "PATH"}
	change(&d)
	data, err := d.bytes()
	must(t, err)
	return data
}

func same(*document) {}

// Each kind of difference is told once, with what it means; what does not matter is not told.
func TestDiff(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(d *document)
		want   []string // area, item, a, b
	}{
		"the same": {same, nil},
		"governor": {func(d *document) { d.Facts["cpu"]["governor"] = "performance" }, []string{"cpu|governor|powersave|performance"}},
		"unknown now": {func(d *document) {
			delete(d.Facts["cpu"], "governor")
			d.Unknown = append(d.Unknown, unknown{"cpu", "governor", "no file"})
		},
			[]string{"cpu|governor|powersave|unknown: no file"}},
		"another reason for not knowing":     {func(d *document) { d.Unknown[0].Why = "other" }, nil},
		"another kernel, and no other host":  {func(d *document) { d.Facts["kernel"]["release"] = "6.2" }, []string{"kernel|release|6.1|6.2"}},
		"another build of the command":       {func(d *document) { d.Programs[1].SHA256 = "p2" }, []string{"program|command|/usr/bin/python3 p1|/usr/bin/python3 p2"}},
		"another command":                    {func(d *document) { d.Programs[1].Path = "/opt/python3" }, []string{"program|command|/usr/bin/python3 p1|/opt/python3 p1"}},
		"the same command elsewhere on disk": {func(d *document) { d.Programs[1].ID = "1:3" }, nil},
		"another go":                         {func(d *document) { d.Tools[0].Path, d.Tools[0].Version = "/opt/go1.22", "go1.22" }, []string{"tool|go|/opt/go1.21 go1.21|/opt/go1.22 go1.22"}},
		"one of two pythons":                 {func(d *document) { d.Tools[1].Version = "python 3.12" }, []string{"tool|python /v1|python 3.11|python 3.12"}},
		"no go":                              {func(d *document) { d.Tools = d.Tools[1:] }, []string{"tool|go|/opt/go1.21 go1.21|"}},
		"other data":                         {func(d *document) { d.Inputs[0].SHA256 = "d2" }, []string{"input|/data/x|d1|d2"}},
		"another commit": {func(d *document) { d.Inputs[1].Commit = "c2" },
			[]string{"input|/proj|t1 commit c1|t1 commit c2"}},
		"too large in one": {func(d *document) { d.Inputs[1].SHA256, d.Inputs[1].Why = "", errLarge.Error() },
			[]string{"input|/proj|t1 commit c1|directory, no digest: it is larger than what is digested commit c1"}},
		"who granted":                  {func(d *document) { d.Inputs[0].By = "policy p.toml:3" }, nil},
		"another driver":               {func(d *document) { d.Devices[0].Says = "0x1002 0x744c" }, []string{"device|/dev/dri/renderD128|amdgpu 0x1002 0x73bf|amdgpu 0x1002 0x744c"}},
		"another number of the device": {func(d *document) { d.Devices[0].Number = "226:129" }, nil},
		"writable":                     {func(d *document) { d.Mounts[0].Kind = "rw" }, []string{"mount|/usr|ro ext4 ro,relatime file 1:9|rw ext4 ro,relatime file 1:9"}},
		"another file, one host":       {func(d *document) { d.Mounts[0].ID = "1:10" }, []string{"mount|/usr|ro ext4 ro,relatime file 1:9|ro ext4 ro,relatime file 1:10"}},
		"another host":                 {func(d *document) { d.Mounts[0].ID, d.Facts["kernel"]["boot"] = "1:10", "b2" }, []string{"kernel|boot|b1|b2"}},
		"another copy":                 {func(d *document) { d.Mounts[1].SHA256 = "h2" }, []string{"mount|/etc/hosts|file h1|file h2"}},
		"a variable more":              {func(d *document) { d.Variables = append(d.Variables, "LANG") }, []string{"variable|LANG||there"}},
		"order of what decides": {func(d *document) {
			d.Variables, d.Facts["memory"]["transparent huge pages"] = d.Variables[1:], "always"
			d.Facts["cpu"]["model"], d.Inputs[0].SHA256, d.Programs[2].Says = "Y", "d2", "2.37"
			d.Facts["kernel"]["release"] = "6.2"
		}, []string{"program|libc|/lib/libc.so.6 l1 2.36|/lib/libc.so.6 l1 2.37", "input|/data/x|d1|d2", "cpu|model|X|Y",
			"memory|transparent huge pages|madvise|always", "kernel|release|6.1|6.2", "variable|HOME|there|"}},
	} {
		t.Run(name, func(t *testing.T) {
			ds, err := Diff(run(t, same), run(t, tt.change))
			must(t, err)
			var got []string
			for _, d := range ds {
				got = append(got, strings.Join([]string{d.Area, d.Item, d.A, d.B}, "|"))
				if d.Meaning == "" {
					t.Errorf("%s %s: no meaning", d.Area, d.Item)
				}
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
			back, err := Diff(run(t, tt.change), run(t, same))
			if err != nil || len(back) != len(ds) || len(ds) > 0 && (back[0].A != ds[0].B || back[0].B != ds[0].A) {
				t.Errorf("the other way round it is %v, %v", back, err)
			}
		})
	}
}

// What has no digest on either side could be anything: it is told, once. What needs none, or cannot have one, is not.
func TestUncompared(t *testing.T) {
	none := func(why string) func(d *document) {
		return func(d *document) { d.Inputs[1].SHA256, d.Inputs[1].Why = "", why }
	}
	program := func(why string, size int64) func(d *document) {
		return func(d *document) { d.Programs[1].SHA256, d.Programs[1].Why, d.Programs[1].Size = "", why, size }
	}
	large := "no digest: " + errLarge.Error()
	for name, tt := range map[string]struct {
		a, b func(d *document)
		want []Difference
	}{
		"a directory":   {none(errLarge.Error()), none(errLarge.Error()), []Difference{{"input", "/proj", large, large, "could not be compared: it may differ"}}},
		"another cause": {none(errLarge.Error()), none(errLate.Error()), []Difference{{"input", "/proj", "directory, " + large + " commit c1", "directory, no digest: " + errLate.Error() + " commit c1", "the runs do not read the same"}}},
		"a program":     {program(errLarge.Error(), 5), program(errLarge.Error(), 5), []Difference{{"program", "command", large, large, "could not be compared: it may differ"}}},
		"another size": {program(errLarge.Error(), 5), program(errLarge.Error(), 6), []Difference{{"program", "command", "/usr/bin/python3 size 5, " + large,
			"/usr/bin/python3 size 6, " + large, "another program runs, or another build of it"}}},
		"a cache":  {none(whyCache), none(whyCache), nil},
		"a socket": {func(d *document) { none("x")(d); d.Inputs[1].Kind = "other" }, func(d *document) { none("x")(d); d.Inputs[1].Kind = "other" }, nil},
	} {
		ds, err := Diff(run(t, tt.a), run(t, tt.b))
		must(t, err)
		if d := cmp.Diff(tt.want, ds); d != "" {
			t.Errorf("%s: -want +got\n%s", name, d)
		}
	}
}

// The example of the documentation: a governor other than performance on either side makes timings worthless.
func TestMeaning(t *testing.T) {
	for _, tt := range []struct{ area, item, a, b, want string }{
		{"cpu", "governor", "powersave", "performance", "frequencies change with load: timings are not comparable"},
		{"cpu", "governor", "powersave", "schedutil", "frequencies change with load: timings are not comparable"},
		{"cpu", "model", "a", "b", "another processor: timings are not comparable"},
		{"cpu", "mitigation of x", "a", "b", "works around the processor's fault"},
		{"cpu", "boost", "1", "unknown: x", "not known whether the two are the same"},
		{"limits", "open files", "1", "2", "stopped where the other one goes on"},
	} {
		var d differ
		d.fact(tt.area, tt.item, tt.a, tt.b)
		if len(d.out) != 1 || !strings.Contains(d.out[0].Meaning, tt.want) {
			t.Errorf("%s %s: %v, want %q", tt.area, tt.item, d.out, tt.want)
		}
	}
}

// What is no manifest is an error that says which of the two.
func TestDiffOfOthers(t *testing.T) {
	good := run(t, same)
	for name, bad := range map[string]string{"nothing": "", "a list": "[]", "a later one": `{"version":2}`, "none": `{}`} {
		if _, err := Diff(good, []byte(bad)); err == nil || !strings.HasPrefix(err.Error(), "the second: ") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := Diff([]byte(bad), good); err == nil || !strings.HasPrefix(err.Error(), "the first: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Whatever the two are: no panic, and a manifest does not differ from itself.
func FuzzDiff(f *testing.F) {
	f.Add([]byte(`{"version":1,"facts":{"cpu":{"a":"b"}},"mounts":[{"target":"/x"}]}`), []byte(`{"version":1,"facts":{"cpu":null}}`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		if _, err := Diff(a, b); err != nil {
			return
		}
		for _, m := range [][]byte{a, b} {
			ds, err := Diff(m, m)
			for _, d := range ds {
				if d.A != d.B || !strings.HasPrefix(d.A, "no digest: ") {
					t.Errorf("it differs from itself: %v", d)
				}
			}
			if err != nil {
				t.Error(err)
			}
		}
	})
}
