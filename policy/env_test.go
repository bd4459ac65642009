package policy

import (
	"slices"
	"strings"
	"testing"
)

func TestPrefix(t *testing.T) {
	for name, want := range map[string]string{
		"":             "SANDBOX_",
		"hyperloom":    "HYPERLOOM_SANDBOX_",
		"Loom-serve.2": "LOOM_SERVE_2_SANDBOX_",
		"a b/é\xff":    "A_B_____SANDBOX_",
	} {
		if got := Prefix(name); got != want {
			t.Errorf("Prefix(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestFromEnv(t *testing.T) {
	entries := func(by string, vs ...string) []Entry {
		var es []Entry
		for _, v := range vs {
			es = append(es, Entry{v, by})
		}
		return es
	}
	tests := []struct {
		name    string
		environ []string
		want    Settings
	}{
		{"nothing", nil, Settings{}},
		{"others", []string{"SANDBOX_MODE=bwrap", "P_MODE", "=", "", "XP_MODE=off"}, Settings{}},
		{"mode", []string{"P_MODE= BWrap\n"}, Settings{Mode: Entry{"bwrap", "P_MODE"}}},
		{"empty is unset", []string{"P_MODE=", "P_NETWORK= ", "P_QUIET=", "P_WRITABLE=", "P_BWRAP="}, Settings{}},
		{"first of two, as os.Getenv", []string{"P_MODE=bwrap", "P_MODE=off"}, Settings{Mode: Entry{"bwrap", "P_MODE"}}},
		{"scalars", []string{"P_NETWORK=None", "P_BWRAP=/opt/bwrap", "P_REPORT=-", "P_POLICY=a,b:c", "P_QUIET=1"}, Settings{
			Network: Entry{"none", "P_NETWORK"}, Bwrap: Entry{"/opt/bwrap", "P_BWRAP"}, Report: Entry{"-", "P_REPORT"},
			Policy: Entry{"a,b:c", "P_POLICY"}, Quiet: Entry{"1", "P_QUIET"}}},
		{"paths split at colons only", []string{"P_READABLE=/a,b:c d: e", "P_WRITABLE=/w"}, Settings{
			Readable: entries("P_READABLE", "/a,b", "c d", " e"), Writable: entries("P_WRITABLE", "/w")}},
		{"empty elements", []string{"P_WRITABLE=::/a::b:", "P_ENV=,A, ,B,,"}, Settings{
			Writable: entries("P_WRITABLE", "/a", "b"), Env: entries("P_ENV", "A", "B")}},
		{"only separators", []string{"P_WRITABLE=::", "P_ENV=, ,"}, Settings{}},
		{"odd bytes", []string{"P_READABLE=/a\nb\xff\":/é"}, Settings{Readable: entries("P_READABLE", "/a\nb\xff\"", "/é")}},
		{"commas", []string{"P_HOSTS=a.b:443, *.c.d", "P_GPU=all", "P_NPU=/dev/davinci0,0000:01:00.0", "P_DEVICE=/dev/fuse,/dev/a:b",
			"P_CACHE=go,pip", "P_SECRET=TOKEN", "P_LIMIT=memory=1G,pids=9"}, Settings{
			Hosts: entries("P_HOSTS", "a.b:443", "*.c.d"), GPU: entries("P_GPU", "all"),
			NPU: entries("P_NPU", "/dev/davinci0", "0000:01:00.0"), Device: entries("P_DEVICE", "/dev/fuse", "/dev/a:b"),
			Cache: entries("P_CACHE", "go", "pip"), Secret: entries("P_SECRET", "TOKEN"), Limit: entries("P_LIMIT", "memory=1G", "pids=9")}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := FromEnv("P_", tt.environ)
			if err != nil {
				t.Fatal(err)
			}
			equal(t, got, tt.want)
		})
	}
}

func TestFromEnvRefuses(t *testing.T) {
	allModes := []string{"off", "bwrap", "landlock", "auto", "enforced", "scrubbed_only", "disabled"}
	tests := []struct {
		environ string
		parts   []string
	}{
		// Seeds H4 and H6: rejected, naming the variable, the bad value and every accepted mode.
		{"H_SANDBOX_MODE=bwarp", append([]string{"H_SANDBOX_MODE", `"bwarp"`, "did you mean bwrap?"}, allModes...)},
		{"H_SANDBOX_MODE=\xff\n1", append([]string{"H_SANDBOX_MODE", `"\xff\n1"`}, allModes...)},
		{"H_SANDBOX_NETWORK=host", []string{"H_SANDBOX_NETWORK", `"host"`, "shared, none, egress"}},
		{"H_SANDBOX_QUIET=true", []string{"H_SANDBOX_QUIET", `"true"`, "1 and 0"}},
		{"H_SANDBOX_BWRAP=bin/bwrap", []string{"H_SANDBOX_BWRAP", `"bin/bwrap"`, "absolute"}},
		{"H_SANDBOX_ENV=A,B=hunter2", []string{"H_SANDBOX_ENV", `"B"`, "pass B"}},
		{"H_SANDBOX_SECRET==hunter2", []string{"H_SANDBOX_SECRET", "empty"}},
		{"H_SANDBOX_SECRET=A\x00B", []string{"H_SANDBOX_SECRET", "NUL"}},
		{"H_SANDBOX_WRITABLE=/a:/b\x00", []string{"H_SANDBOX_WRITABLE", `"/b\x00"`, "NUL"}},
	}
	for _, tt := range tests {
		t.Run(tt.environ, func(t *testing.T) {
			s, err := FromEnv("H_SANDBOX_", []string{"H_SANDBOX_READABLE=/r", tt.environ})
			refused(t, err, tt.parts...)
			equal(t, s, Settings{})
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the value of a variable is shown: %v", err)
			}
		})
	}
}

func TestMisspelt(t *testing.T) {
	for kv, want := range map[string]string{
		"P_MDOE=bwrap":       "P_MODE",
		"P_MOD=x":            "P_MODE",
		"P_Mode=bwrap":       "P_MODE",
		"P_WRITEABLE=/w":     "P_WRITABLE",
		"P_WRITABLES=/w":     "P_WRITABLE",
		"P_READ=/r":          "P_READABLE", // the flag's spelling
		"P_WRITE=/w":         "P_WRITABLE",
		"P_HOST=a":           "P_HOSTS",
		"P_POLICI\xff=x":     "P_POLICY",
		"P_MODE=x":           "",
		"P_HOSTS=x":          "",
		"P_MDOE=":            "", // empty is as if unset
		"P_MDOE":             "",
		"P_":                 "",
		"P_START=3":          "",
		"P_ROOT=/":           "",
		"Q_MDOE=bwrap":       "",
		"P_MODE_OVERRIDES=x": "",
	} {
		err := Misspelt("P_", []string{"P_MODE=bwrap", kv})
		if want == "" {
			if err != nil {
				t.Errorf("%q: %v", kv, err)
			}
			continue
		}
		name, _, _ := strings.Cut(kv, "=")
		refused(t, err, show(name), want)
	}
}

// Every known variable is far enough from the others not to be called a misspelling of one.
func TestKnownAreNotMisspelt(t *testing.T) {
	for i := range table {
		if err := Misspelt("", []string{table[i].suffix + "=x"}); err != nil {
			t.Error(err)
		}
	}
}

func FuzzFromEnv(f *testing.F) {
	for _, seed := range []string{"P_MODE=bwrap", "P_MODE=Bwarp\x01P_WRITABLE=/a::b:", "P_ENV=A,,B\x01P_ENV=C", "P_SECRET=A=b",
		"P_READABLE=/\xff\n:", "P_NETWORK= EGRESS \x01P_HOSTS= a , b", "P_QUIET=0", "P_LIMIT=memory=1", "P_MOD=1", "=\x01\x01P_="} {
		f.Add("p", strings.ReplaceAll(seed, "P_", "P_SANDBOX_"))
	}
	f.Fuzz(func(t *testing.T, name, block string) {
		prefix := Prefix(name)
		environ := strings.Split(block, "\x01")
		if err := Misspelt(prefix, environ); err != nil {
			refused(t, err, prefix)
		}
		s, err := FromEnv(prefix, environ)
		if err != nil {
			refused(t, err)
			equal(t, s, Settings{})
			return
		}
		for i := range table {
			row := &table[i]
			value := lookup(environ, prefix+row.suffix)
			es := row.entries(&s)
			if row.list == nil {
				if len(es) == 1 && es[0].Value != row.clean(value) {
					t.Errorf("%s: got %q out of %q", row.suffix, es[0].Value, value)
				}
				continue
			}
			if most := strings.Count(value, row.sep) + 1; len(es) > most {
				t.Errorf("%s: %d elements out of %q", row.suffix, len(es), value)
			}
			for _, e := range es {
				whole := slices.ContainsFunc(strings.Split(value, row.sep), func(v string) bool {
					return v == e.Value || row.sep == "," && strings.TrimSpace(v) == e.Value
				})
				if e.Value == "" || !whole || e.By != prefix+row.suffix {
					t.Errorf("%s: %q is no element of %q", row.suffix, e, value)
				}
			}
		}
		again, err := s.Validate()
		if err != nil {
			t.Fatal(err)
		}
		equal(t, again, s)
	})
}
