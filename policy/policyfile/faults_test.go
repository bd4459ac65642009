package policyfile

import (
	"errors"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/selfcage/selfcage/internal/refusal"
	"github.com/selfcage/selfcage/policy"
)

// places are where the faults of a file are, each with what it is about, and the same for the error itself.
func places(t *testing.T, err error, dir string) (first string, all []string) {
	t.Helper()
	line := func(err error) string {
		var r *refusal.Error
		if !errors.As(err, &r) {
			t.Fatalf("no refusal: %v", err)
		}
		return strings.ReplaceAll(r.Object+" "+r.Cause, dir, "D")
	}
	for _, e := range faultsOf(err) {
		all = append(all, line(e))
	}
	return line(err), all
}

// Every fault of a file is told, in the order of the places, whatever the order in which keys are read. What only follows from
// another fault is none.
func TestFaults(t *testing.T) {
	for _, text := range []string{`mode = "strict"
read_paths = ["relative", "/ok", "~/x", 7]
raed_paths = []
env_allowlist = ["A", "B=hunter2", "C D"]
limits = { pids = 0, memory = "x", gpu = 1 }

[network]
egress = true
hosts = ["https://u:hunter2@h", "*.com"]
more = 1

[narrow]
mode = "off"
hide = ["{nosuch}"]
`, `{"mode": "strict",
"read_paths": ["relative", "/ok", "~/x", 7],
"raed_paths": [],
"env_allowlist": ["A", "B=hunter2", "C D"],
"limits": { "pids": 0, "memory": "x", "gpu": 1 },

"network": {
"egress": true,
"hosts": ["https://u:hunter2@h", "*.com"],
"more": 1},

"narrow": {
"mode": "off",
"hide": ["{nosuch}"]}}
`} {
		_, err := Parse("p", []byte(text), opts)
		first, all := places(t, err, "-")
		var got []string
		for _, s := range all {
			object, cause, _ := strings.Cut(s, " ")
			line := strings.Split(object, ":")[1]
			got = append(got, line+" "+cause)
		}
		want := []string{`1 unknown mode "strict"`, `2 the path "relative" is relative`, `2 the path "~/x" begins with ~`, `2 an element of "read_paths" is a string`,
			`3 unknown key "raed_paths"`, `4 env_allowlist has names`, `4 "C D" is no name`, `5 "pids" is no count`, `5 "memory" is no size`, `5 unknown key "gpu"`,
			`9 `, `9 "*.com" `, `10 unknown key "more"`, `13 "mode" cannot stand in narrow`, `14 unknown token "{nosuch}"`}
		if len(got) != len(want) {
			t.Fatalf("%d faults, want %d:\n%s", len(got), len(want), strings.Join(got, "\n"))
		}
		for i := range want {
			if !strings.HasPrefix(got[i], want[i]) {
				t.Errorf("got %s, want %s", got[i], want[i])
			}
		}
		if first != all[0] || strings.Contains(err.Error()+strings.Join(all, " "), "hunter2") {
			t.Errorf("the error is %v", err)
		}
	}
	// A table that is written in several places.
	_, err := Parse("p", []byte("network.egress = 1\nmode = 'x'\nnetwork.hosts = 1\n"), opts)
	_, all := places(t, err, "-")
	if len(all) != 3 || !strings.HasPrefix(all[0], "p:1:") || !strings.HasPrefix(all[1], "p:2:") || !strings.HasPrefix(all[2], "p:3:") {
		t.Errorf("in this order: %q", all)
	}
	// One fault is one error and no list.
	_, err = Parse("p", []byte("mode = 'x'"), opts)
	var many Faults
	if err == nil || errors.As(err, &many) {
		t.Errorf("%#v", err)
	}
	// A file of a hostile size does not fill the screen, and takes no time.
	text := ""
	for i := range 30000 {
		text += "k" + strconv.Itoa(i) + " = 1\n"
	}
	if _, all := places(t, errorOf(Parse("p.toml", []byte(text), opts)), "-"); len(all) != maxFaults {
		t.Errorf("%d faults", len(all))
	}
}

func errorOf(_ policy.File, err error) error { return err }

// The faults of what a file extends are told behind its own.
func TestFaultsOfExtended(t *testing.T) {
	dir := tree(t, map[string]string{
		"a.toml": "extends = ['b.toml', 'c.toml', 'no.toml']\nmode = 'x'\nread_paths = ['y']",
		"b.toml": "mode = 'bwrap'\n[",
		"c.toml": "extends = 'd.toml'\nhide = ['z']\ncache = 1",
		"d.toml": "extends = 'a.toml'",
	})
	first, all := places(t, errorOf(Load(filepath.Join(dir, "a.toml"), opts)), dir)
	for i, want := range []string{`D/a.toml:2:8 unknown mode "x"`, "D/a.toml:3:15 the path", "D/b.toml:2:", "D/c.toml:2:9 the path", `D/c.toml:3:9 "cache" is a list`,
		`D/d.toml:1:11 cannot extend "D/a.toml": it extends itself: D/a.toml -> D/c.toml -> D/d.toml -> D/a.toml`, "D/a.toml:1:32 cannot extend"} {
		if i >= len(all) || !strings.HasPrefix(all[i], want) {
			t.Errorf("%d is not %s in\n%s", i, want, strings.Join(all, "\n"))
		}
	}
	if len(all) != 7 || first != all[0] {
		t.Errorf("%d faults, the first is %s", len(all), first)
	}
}

// A recipe is somebody else's manifest: what stands beside its "sandbox" is not looked at. In a policy it is an error.
func TestBeside(t *testing.T) {
	with := opts
	with.Beside = true
	deep := strings.Repeat("[", 20) + strings.Repeat("]", 20)
	manifests := map[string]string{
		"a.json": `{"name": "engine", "version": 3, "x": {"mode": 1, "mode": 2}, "deep": ` + deep + `, "sandbox": {"read_paths": ["/a"]}, "bad": "\ud800"}`,
		"b.toml": "name = 'engine'\nversion = { a = [" + deep + "] }\nx.y.z = 1\n[sandbox]\nread_paths = ['/a']\n[[files]]\nname = 'f'\n[other]\nread_paths = 7\n[sandbox.narrow]\nhide = ['/h']",
		"c.toml": "sandbox = { read_paths = ['/a'] }\nname = 'engine'\n[[x]]\n",
		"d.toml": "name = 1\nsandbox.read_paths = ['/a']\nmode = 'off'",
	}
	for name, text := range manifests {
		f, err := Parse(name, []byte(text), with)
		if err != nil || len(f.Settings.Readable) != 1 || f.Settings.Readable[0].Value != "/a" || f.Settings.Mode.Value != "" || len(f.Said) != map[bool]int{true: 2, false: 1}[name == "b.toml"] {
			t.Errorf("%s: %v\n%s", name, err, dump(f))
		}
		if _, err := Parse(name, []byte(text), opts); err == nil {
			t.Errorf("%s is taken for a policy", name)
		}
	}
	// In the box, and where there is none, all is as ever.
	for text, want := range map[string]string{
		`{"name": 1, "sandbox": {"nmae": 1}}`:                    `unknown key "nmae"`,
		`{"name": 1, "sandbox": {"mode": "off", "mode": "off"}}`: `the key "mode" is there twice`,
		`{"sandbox": {}, "name": 1, "sandbox": {"mode": "off"}}`: `the key "sandbox" is there twice`,
		`{"name": 1, "mode": "bwrap"}`:                           `unknown key "name"`,
		`{"name": 1, "sandbox": {}, "x": }`:                      "JSON: invalid character",
		"name = 1\n[sandbox]\nnmae = 1":                          `unknown key "nmae"`,
		"name = 1\nmode = 'bwrap'":                               `unknown key "name"`,
		"[sandbox]\nmode = 'off'\n[x]\n[sandbox]\nmode = 'off'":  `the key "sandbox" is there twice`,
		"[[sandbox]]\nmode = 'off'":                              "no key of a policy is a list of tables",
		"[sandbox]\n[x\n":                                        "TOML: ",
		"[other]\nsandbox.mode = 'off'":                          `unknown key "other"`,
	} {
		_, err := Parse("p", []byte(text), with)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
