package policy

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// said reads settings in short: "readable /a /b; network none", with by as who says them.
func said(t testing.TB, text, by string) (s Settings, keys []Entry) {
	t.Helper()
	for part := range strings.SplitSeq(text, ";") {
		words := strings.Fields(part)
		if len(words) == 0 {
			continue
		}
		known := false
		for i := range table {
			if row := &table[i]; row.name() == words[0] {
				known = true
				for _, w := range words[1:] {
					row.set(&s, append(row.entries(&s), Entry{w, by}))
				}
			}
		}
		if !known {
			t.Fatalf("no setting %s", words[0])
		}
		key := map[string]string{"readable": "read_paths", "writable": "write_paths", "device": "devices", "env": "env_allowlist", "hosts": "network",
			"tmp_size": "tmp", "limit": "limits"}[words[0]]
		if key == "" {
			key = words[0]
		}
		keys = append(keys, Entry{key, by})
	}
	return s, keys
}

func settings(t testing.TB, text, by string) Settings {
	s, _ := said(t, text, by)
	return s
}

func file(t testing.TB, text, name string) File {
	s, keys := said(t, text, "policy "+name+":1")
	return File{Settings: s, Said: keys, Files: []string{name}}
}

// short is the other way round.
func short(s Settings) string {
	var parts []string
	s.Each(func(name string, _ bool, es []Entry) { parts = append(parts, name+" "+strings.Join(values(es), " ")) })
	return strings.Join(parts, "; ")
}

// Seeds R15, R23, R32, R33 and R35: from nothing, what operators say adds up, the strongest first.
func TestAssemble(t *testing.T) {
	const none = "\x00" // no policy file
	for _, tt := range []struct{ flags, env, policy, options, want string }{
		{"", "", none, "", ""},
		{"", "", none, "mode bwrap; network shared; readable o", "mode bwrap; readable /w/o; network shared"},
		// A policy in force: what it does not say is the strictest, whatever Options says, and nothing is granted.
		{"", "", "", "", "mode enforced; network none"},
		{"", "", "", "mode off; network shared", "mode enforced; network none"},
		{"mode bwrap", "network shared", "", "mode off", "mode bwrap; network shared"},
		{"", "", "mode auto; network egress; hosts a", "mode off; network shared", "mode auto; network egress; hosts a"},
		{"mode disabled", "mode auto", "mode enforced", "mode off", "mode disabled; network none"},
		{"", "mode auto", "mode enforced", "mode off", "mode auto; network none"},
		{"", "", "note n; tmp_size 1G; report /r", "note o; tmp_size 2G; report /o", "mode enforced; network none; report /r; tmp_size 1G; note n"},
		// Lists add up; what can be written can be read, and what can be read cannot be written.
		{"readable /f; writable d", "readable /e", "readable /p /f; writable /p2; hide /h; env A", "readable o; device /dev/fuse; env B A; protect /w/d/x",
			"mode enforced; readable /f /e /p /w/o; writable /w/d /p2; network none; device /dev/fuse; env A B; hide /h; protect /w/d/x"},
		{"readable /x//y/./z/ x ..", "", none, "writable /x/y/z", "readable /w/x /; writable /x/y/z"},
		{"readable /a", "", none, "writable /a /a/", "writable /a"},
		// Who closes the network closes it for the hosts of all that are weaker.
		{"network none", "", "network egress; hosts a b", "hosts c", "mode enforced; network none"},
		{"", "", "network egress; hosts a b", "hosts c", "mode enforced; network egress; hosts a b c"},
		{"hosts A.b", "network egress", none, "hosts c", "network egress; hosts a.b c"},
		{"network shared", "", none, "network egress; hosts c", "network shared"},
	} {
		src := Sources{Flags: settings(t, tt.flags, "--x"), Env: settings(t, tt.env, "P_X"), Options: settings(t, tt.options, "Options.X"), Dir: "/w"}
		if tt.policy != none {
			f := file(t, tt.policy, "p.toml")
			src.Policy = &f
		}
		got, err := Assemble(src)
		if err != nil || short(got.Settings) != tt.want || got.InForce != (tt.policy != none) || len(got.Narrowed) > 0 {
			t.Errorf("%+v\n got %s, in force %v, narrowed %v, %v\nwant %s", tt, short(got.Settings), got.InForce, got.Narrowed, err, tt.want)
		}
	}
}

// Who said what stays known, also of what a policy means by saying nothing.
func TestAssembleSays(t *testing.T) {
	f := file(t, "readable /p", "dir\n/p.toml")
	recipe := file(t, "readable /p/q", "r.json")
	got, err := Assemble(Sources{Policy: &f, Recipes: []File{recipe}, Flags: settings(t, "writable w", "--write"), Dir: "/d"})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, got.Mode, Entry{"enforced", `policy dir\x0a/p.toml: no mode means enforced`})
	equal(t, got.Network, Entry{"none", `policy dir\x0a/p.toml: no network means none`})
	equal(t, got.Writable, []Entry{{"/d/w", "--write"}})
	equal(t, got.Readable, []Entry{{"/p/q", "policy r.json:1"}})
	equal(t, got.Files, []string{"dir\n/p.toml", "r.json"})
	equal(t, len(got.Narrowed), 1)
	equal(t, got.Narrowed[0].String(), "narrowed readable /p (was read; policy dir\n/p.toml:1)")
	equal(t, values(f.Settings.Readable), []string{"/p"}) // nothing is shared
	built := File{Settings: settings(t, "mode bwrap", "hook")}
	got, err = Assemble(Sources{Policy: &built})
	if err != nil || got.Network.By != "policy: no network means none" || !got.InForce {
		t.Errorf("%v %v", got, err)
	}
}

func TestAssembleRefuses(t *testing.T) {
	for _, tt := range []struct {
		flags, policy, recipe string
		parts                 []string
	}{
		// Seed R24.
		{"network egress", "", "", []string{"wrong network", "--x", "names no host", "--host"}},
		{"", "network egress", "", []string{"policy p.toml:1", "names no host"}},
		{"hosts a.b", "", "", []string{"wrong host", `--x "a.b"`, "the network is none (policy p.toml: no network means none)", "--network egress"}},
		{"hosts a.b; network shared", "", "", []string{`"a.b"`, "the network is shared (--x)"}},
		{"", "network egress; hosts *.com", "", []string{"policy p.toml:1", `"*.com"`, "top-level domain"}},
		{"hosts https://u:hunter2@h; network egress", "", "", []string{"--x", "URL"}},
		{"mode strict", "", "", []string{"unknown mode", `"strict"`}},
		// Seed R40: the whole network is not to be had by a name of its own.
		{"", "network full", "", []string{"unknown network", `"full"`, "shared, none, egress"}},
		// What only an operator can say.
		{"", "secret A_TOKEN", "", []string{"policy p.toml:1", "a policy cannot say secret", "--secret"}},
		{"", "bwrap /evil", "", []string{"a policy cannot say bwrap"}},
		{"", "quiet 1", "", []string{"a policy cannot say quiet"}},
		{"", "", "recipe /other.json", []string{"policy r.json:1", "a policy cannot say recipe"}},
		{"", "", "require_approved 0", []string{"a policy cannot say require_approved"}},
		{"", "", "mode on", []string{"policy r.json:1", "unknown mode"}},
	} {
		f := file(t, tt.policy, "p.toml")
		src := Sources{Flags: settings(t, tt.flags, "--x"), Policy: &f, Dir: "/w"}
		if tt.recipe != "" {
			src.Recipes = []File{file(t, tt.recipe, "r.json")}
		}
		got, err := Assemble(src)
		refused(t, err, tt.parts...)
		equal(t, got, Effective{})
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("a secret is printed: %v", err)
		}
	}
	_, err := Assemble(Sources{Flags: settings(t, "hosts a.b", "--host")})
	refused(t, err, `--host "a.b"`, "a host is named and the network is not egress")
	// Case 25 and a working directory that is gone.
	for _, text := range []string{"readable a", "writable a", "device a", "hide a", "protect .", "report r", "recipe r", "policy p"} {
		_, err := Assemble(Sources{Env: settings(t, text, "P_X")})
		refused(t, err, "wrong path, P_X", "working directory was deleted", "in full")
		if _, err := Assemble(Sources{Env: settings(t, text, "P_X"), Dir: "/"}); err != nil {
			t.Error(err)
		}
	}
	if _, err := Assemble(Sources{Env: settings(t, "readable /a; report -", "P_X")}); err != nil {
		t.Error(err)
	}
}

// Seeds R22, R29, R34, R35 and D2: a delta takes away, in all its forms, and adds only hosts and variables. "!" is the
// error, which names the entry.
func TestNarrow(t *testing.T) {
	for _, tt := range []struct{ base, delta, want string }{
		{"readable /a; writable /w; device /dev/x; env A; cache go", "", "readable /a; writable /w; device /dev/x; cache go; env A"},
		// Paths.
		{"readable /a /b", "readable /a", "readable /a"},
		{"readable /a", "readable /a/b /a/c", "readable /a/b /a/c"},
		{"readable /a", "readable", ""},
		{"readable /a; writable /w", "readable", "writable /w"},
		{"readable /a; writable /w", "readable /w/x", "readable /w/x; writable /w"},
		{"writable /w", "readable /w; writable", "readable /w"},
		{"writable /w", "readable /w/a; writable /w/b", "readable /w/a; writable /w/b"},
		{"writable /w", "writable", "readable /w"},
		{"writable /w", "writable /w/a", "readable /w; writable /w/a"},
		{"readable /a; writable /w /v", "writable /v", "readable /a /w; writable /v"},
		{"writable /w", "readable; writable", ""},
		{"writable /w", "readable /w; writable /w", "writable /w"},
		{"readable /", "readable /etc/x", "readable /etc/x"},
		{"readable /a//", "readable /a/./b/", "readable /a/b"},
		// What is read-only inside of what stays writable is not to be lost.
		{"readable /w/ro; writable /w", "readable; writable /w", "readable /w/ro; writable /w"},
		{"readable /w/ro; writable /w", "readable", "readable /w/ro; writable /w"},
		{"readable /w/ro /x; writable /w", "writable /w/a", "readable /w/ro /x /w; writable /w/a"},
		{"readable /w/ro; writable /w", "readable; writable /w/a", "writable /w/a"},
		{"readable /w/ro; writable /w /w/ro/out", "readable; writable /w/ro/out", "writable /w/ro/out"},
		{"readable /a", "readable /b", `! "/b", nothing that is granted holds it`},
		{"readable /a/b", "readable /a", `! "/a", nothing that is granted holds it`},
		{"readable /a", "readable /ab", `! "/ab", nothing that is granted holds it`},
		{"readable /a", "readable /a/../b", `! "/b", nothing that is granted holds it`},
		{"", "readable /a", `! "/a", nothing that is granted holds it`},
		{"readable /a", "writable /b", `! "/b", nothing that is granted holds it`},
		{"readable /a", "writable /a/b", `! "/a/b", /a is granted for reading only`},
		{"readable /w/ro; writable /w", "writable /w/ro/x", `! "/w/ro/x", /w/ro is granted for reading only`},
		{"writable /w/a", "writable /w", `! "/w", nothing that is granted holds it`},
		// Devices and caches.
		{"device /dev/dri /dev/kfd", "device /dev/kfd", "device /dev/kfd"},
		{"device /dev/dri", "device /dev/dri/renderD128", "device /dev/dri/renderD128"},
		{"device /dev/dri", "device", ""},
		{"device /dev/dri/card0", "device /dev/dri", `! "/dev/dri", no device that is granted holds it`},
		{"", "device /dev/kfd", `! "/dev/kfd", no device that is granted holds it`},
		{"gpu all; npu all", "gpu 0000:03:00.0; npu", "gpu 0000:03:00.0"},
		{"gpu 0 1", "gpu 1", "gpu 1"},
		{"gpu 0 1", "gpu all", `! "all", no gpu that is granted holds it`},
		{"npu /dev/accel", "npu /dev/accel/accel0", "npu /dev/accel/accel0"},
		{"npu 0", "npu 1", `! "1", no npu that is granted holds it`},
		{"cache go pip", "cache pip", "cache pip"},
		{"cache go", "cache uv", `! "uv", no cache that is granted holds it`},
		{"cache all", "cache uv", `! "uv", no cache that is granted holds it`},
		// Less access adds up.
		{"readable /a; hide /a/h; protect /p", "hide /a/i; protect /q", "readable /a; hide /a/h /a/i; protect /p /q"},
		// Hosts and variables are added.
		{"network none", "network egress; hosts a *.b.c", "network egress; hosts a *.b.c"},
		{"network egress; hosts a", "network egress; hosts b a", "network egress; hosts a b"},
		{"network shared", "network egress; hosts a", "network egress; hosts a"},
		{"", "network egress; hosts a", "network egress; hosts a"},
		{"network egress; hosts a", "network none", "network none"},
		{"network egress; hosts a", "network", "network none"},
		{"", "network", "network none"},
		{"network shared", "network none", "network none"},
		{"network egress; hosts a", "", "network egress; hosts a"},
		{"network none", "network shared", `! "shared", the network is none`},
		{"network none", "network egress", "! egress names no host that it may reach"},
		{"network none", "hosts a", "! a host is named and the network is not egress"},
		{"env A", "env B A", "env A B"},
	} {
		for _, recipe := range []bool{false, true} {
			src := Sources{Flags: settings(t, tt.base, "--x"), Dir: "/d"}
			delta := file(t, tt.delta, "d.toml")
			base := tt.base
			if recipe {
				src.Recipes = []File{delta}
			} else {
				f := file(t, "mode bwrap; network shared", "p.toml")
				if base, _, _ = strings.Cut(base, "network"); base != tt.base {
					f = file(t, "mode bwrap", "p.toml")
				}
				f.Narrow = []File{delta}
				src.Policy = &f
			}
			got, err := Assemble(src)
			if cause, ok := strings.CutPrefix(tt.want, "! "); ok {
				refused(t, err, "policy d.toml:1", cause)
				equal(t, got, Effective{})
				continue
			}
			want := tt.want
			text := short(got.Settings)
			if !recipe {
				text = strings.TrimPrefix(strings.TrimPrefix(text, "mode bwrap"), "; ")
				if !strings.Contains(want, "network") {
					text = strings.Replace(strings.Replace(text, "; network shared", "", 1), "network shared", "", 1)
					text = strings.TrimPrefix(text, "; ")
				}
			}
			if err != nil || text != want {
				t.Errorf("%s by %s\n got %s, %v\nwant %s", tt.base, tt.delta, text, err, want)
			}
			for _, c := range got.Narrowed {
				if c.Wider() || c.Kind == Changed {
					t.Errorf("%s by %s narrowed %v", tt.base, tt.delta, c)
				}
			}
		}
	}
}

// The remedy is the narrowest: one grant, where the operator would make it.
func TestNarrowHints(t *testing.T) {
	f := file(t, "", "p.toml")
	f.Narrow = []File{file(t, "readable /x", "p.toml")}
	_, err := Assemble(Sources{Policy: &f})
	refused(t, err, `cannot widen by a delta, policy p.toml:1 "/x"`, "leave it out of narrow, or add it to read_paths")
	_, err = Assemble(Sources{Recipes: []File{file(t, "writable /x", "r.json")}})
	refused(t, err, `policy r.json:1 "/x"`, "grant it to the recipe with --write /x, or leave it out of the recipe")
	_, err = Assemble(Sources{Recipes: []File{file(t, "device /dev/kfd", "r.json")}})
	refused(t, err, "grant it to the recipe with --device /dev/kfd")
	_, err = Assemble(Sources{Recipes: []File{file(t, "mode off", "r.json")}})
	refused(t, err, `policy r.json:1 "off"`, "leave the mode out of the recipe")
	if strings.Contains(err.Error(), "--mode") {
		t.Errorf("who would confine the run is told to switch that off: %v", err)
	}
}

// What a run shows anyway can be read by a delta; its links must stay there, and writing it is still wider.
func TestNarrowReadsWhatIsShown(t *testing.T) {
	src := Sources{Flags: settings(t, "writable /out", "--x"), Dir: "/w", Shown: []string{"/w/", "/opt/engine"}}
	src.Recipes = []File{file(t, "readable lib /opt/engine /opt/engine/share /out; writable /out/x", "r.json")}
	got, err := Assemble(src)
	if err != nil || short(got.Settings) != "readable /w/lib /opt/engine /opt/engine/share /out; writable /out/x" {
		t.Fatalf("%s, %v", short(got.Settings), err)
	}
	equal(t, got.Confined, []Confined{{"/w/lib", "/w"}, {"/opt/engine/share", "/opt/engine"}, {"/out/x", "/out"}})
	for text, object := range map[string]string{"readable /opt": "/opt", "readable /opt/engine2": "/opt/engine2", "writable /w/lib": "/w/lib", "readable /": "/"} {
		src.Recipes = []File{file(t, text, "r.json")}
		_, err := Assemble(src)
		refused(t, err, "policy r.json:1", `"`+object+`"`, "nothing that is granted holds it")
	}
}

// Seed R34: a third party that may name LD_PRELOAD or BASH_ENV runs what it likes in each program of the run. What the operator
// has listed, it may list too.
func TestNarrowAddsNoExecution(t *testing.T) {
	for _, name := range []string{"LD_PRELOAD", "LD_LIBRARY_PATH", "BASH_ENV", "PYTHONPATH", "NODE_OPTIONS", "GIT_SSH_COMMAND", "DYLD_X", "GOFLAGS"} {
		for _, recipe := range []bool{false, true} {
			delta := file(t, "env HARMLESS "+name, "d.toml")
			p := file(t, "", "p.toml")
			src, hint := Sources{Policy: &p, Recipes: []File{delta}}, "grant it to the recipe with --env "+name+", or leave it out of the recipe"
			if !recipe {
				p.Narrow, src.Recipes, hint = []File{delta}, nil, "leave it out of narrow, or add it to env_allowlist"
			}
			_, err := Assemble(src)
			refused(t, err, `cannot widen by a delta, policy d.toml:1 "`+name+`"`, "it changes what programs execute", hint)
			src.Flags = settings(t, "env "+name, "--env")
			if got, err := Assemble(src); err != nil || short(got.Settings) != "mode enforced; network none; env "+name+" HARMLESS" {
				t.Errorf("%s, which the operator lists: %s, %v", name, short(got.Settings), err)
			}
		}
	}
}

// many is a list of n paths in directories of a hundred.
func many(n int, root string) (es []Entry) {
	for i := range n {
		es = append(es, Entry{root + "/" + strconv.Itoa(i/100) + "/" + strconv.Itoa(i), "policy p.toml:1"})
	}
	return es
}

// What a third party writes must not keep the start busy: ten times as much takes about ten times as long.
func TestAssembleIsLinear(t *testing.T) {
	took := func(n int) time.Duration {
		base := Settings{Readable: many(n, "/r"), Writable: many(n, "/w"), Device: many(n, "/dev"), GPU: many(n, "/gpu")}
		for _, e := range slices.Concat(base.Readable, base.Writable) {
			base.Confined = append(base.Confined, Confined{e.Value, "/r"})
		}
		delta := File{Settings: Settings{Device: many(n, "/dev"), GPU: many(n, "/gpu"), Writable: many(n, "/w")}}
		for _, e := range base.Readable {
			delta.Settings.Readable = append(delta.Settings.Readable, Entry{e.Value + "/x", e.By})
		}
		begin := time.Now()
		if _, err := Assemble(Sources{Flags: base, Recipes: []File{delta}}); err != nil {
			t.Fatal(err)
		}
		return time.Since(begin)
	}
	took(100)
	if small, large := took(1000), took(20000); large > 50*small+500*time.Millisecond {
		t.Errorf("a thousand take %v, twenty thousand %v", small, large)
	}
}

// What only a recipe can say, which is a whole policy of a third party. Seeds R2, R34 and R39.
func TestRecipe(t *testing.T) {
	for _, tt := range []struct{ base, recipe, want string }{
		{"mode bwrap", "mode enforced", "mode enforced"},
		{"mode auto", "mode bwrap", "mode bwrap"},
		{"mode bwrap", "mode landlock", "mode bwrap"},
		{"mode enforced", "mode enforced", "mode enforced"},
		{"mode off", "mode disabled", "mode off"},
		{"mode scrubbed_only", "mode auto", "mode auto"},
		{"", "mode enforced", "mode enforced"},
		{"", "mode bwrap", "mode bwrap"},
		{"mode bwrap", "", "mode bwrap"},
		{"mode bwrap", "mode auto", `! "auto", it is weaker than bwrap`},
		{"mode enforced", "mode bwrap", `! "bwrap", it is weaker than enforced`},
		{"mode auto", "mode scrubbed_only", `! "scrubbed_only", it is weaker than auto`},
		{"mode scrubbed_only", "mode off", `! "off", it is weaker than scrubbed_only`},
		{"", "mode off", `! "off", it is weaker than bwrap`},
		{"", "mode auto", `! "auto", it is weaker than bwrap`},
		{"limit memory=1G pids=10 cpu=2", "limit memory=512M pids=10 cpu=1.5", "limit memory=512M pids=10 cpu=1.5"},
		{"limit pids=10", "limit pids=9 memory=1T", "limit pids=9 memory=1T"},
		{"limit memory=1G", "limit memory=1025M", `! "memory=1025M", the limit is memory=1G`},
		{"limit cpu=1.5", "limit cpu=10", `! "cpu=10", the limit is cpu=1.5`},
		{"limit pids=10", "limit pids=x", `! "pids=x", the limit is pids=10`},
		{"tmp_size 1G", "tmp_size 1024M", "tmp_size 1024M"},
		{"", "tmp_size 4G", "tmp_size 4G"},
		{"tmp_size 1G", "tmp_size 2G", `! "2G", the size of /tmp is 1G`},
		{"", "report -", `! "-", where the report goes is the operator's to say`},
		{"", "note hello", "note hello"},
		{"note mine", "note hello", "note mine"},
		{"", "note exempt_container_backend", ""},
		{"note mine", "note exempt_container_backend", "note mine"},
	} {
		base := settings(t, tt.base, "--x")
		got, err := Assemble(Sources{Options: base, Recipes: []File{file(t, tt.recipe, "r.json")}})
		if cause, ok := strings.CutPrefix(tt.want, "! "); ok {
			refused(t, err, "policy r.json:1", cause)
			continue
		}
		if err != nil || short(got.Settings) != tt.want {
			t.Errorf("%s by %s\n got %s, %v\nwant %s", tt.base, tt.recipe, short(got.Settings), err, tt.want)
		}
	}
	// That a note has no effect is said. The operator's own has one.
	got, err := Assemble(Sources{Recipes: []File{file(t, "note exempt_container_backend", "r.json")}})
	if err != nil || len(got.Narrowed) != 1 || got.Narrowed[0].String() != "changed  note unset (was exempt_container_backend; policy r.json:1)" {
		t.Errorf("%v %v", got.Narrowed, err)
	}
	own := file(t, "note exempt_container_backend", "p.toml")
	got, err = Assemble(Sources{Policy: &own, Recipes: []File{file(t, "note exempt_container_backend", "r.json")}})
	if err != nil || got.Note != (Entry{ContainerNote, "policy p.toml:1"}) || len(got.Narrowed) != 0 {
		t.Errorf("%v %v", got, err)
	}
}

// Deltas act one after the other: the file's own, then each recipe with its own.
func TestDeltasInOrder(t *testing.T) {
	p := file(t, "readable /a; writable /w", "p.toml")
	p.Narrow = []File{file(t, "readable /a/b", "p.toml")}
	r1 := file(t, "readable /a/b/c /w", "r1.json")
	r1.Narrow = []File{file(t, "writable", "r1.json")}
	r2 := file(t, "readable /a/b/c/d", "r2.json")
	got, err := Assemble(Sources{Policy: &p, Recipes: []File{r1, r2}})
	if err != nil || short(got.Settings) != "mode enforced; readable /a/b/c/d; network none" {
		t.Errorf("%s, %v", short(got.Settings), err)
	}
	equal(t, got.Files, []string{"p.toml", "r1.json", "r2.json"})
	_, err = Assemble(Sources{Policy: &p, Recipes: []File{r2, r1}})
	refused(t, err, `policy r1.json:1 "/a/b/c"`)
}

// Seed R14: the links of a path that a delta names are judged against the grant that covers it, and against what that one
// itself was confined to.
func TestConfined(t *testing.T) {
	base := settings(t, "readable /m /n; writable /s", "--x")
	base.Confined = []Confined{{"/m/", "/models/."}, {"/n", "/models"}}
	delta := file(t, "readable /m/x /s/y/z; writable /s/y", "d")
	delta.Settings.Confined = []Confined{{"/m/x", "/m"}}
	got, err := Assemble(Sources{Flags: base, Recipes: []File{delta}})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, got.Confined, []Confined{{"/m/x", "/m"}, {"/m/x", "/models"}, {"/s/y/z", "/s"}, {"/s/y", "/s"}})
	got, err = Assemble(Sources{Flags: base, Recipes: []File{file(t, "readable /n", "d")}})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, got.Confined, []Confined{{"/n", "/models"}})
}

// Seed R37: a delta that a host program makes in code, without Said, means the same as one from a file.
func TestBuiltInDelta(t *testing.T) {
	const base = "readable /a; writable /w; device /dev/x; network egress; hosts h"
	for _, text := range []string{"readable /a/b", "writable /w/x", "device /dev/x", "network egress; hosts i", "env A", "network none"} {
		f := file(t, text, "d")
		a, err1 := Assemble(Sources{Flags: settings(t, base, "--x"), Recipes: []File{f}})
		f.Said = nil
		b, err2 := Assemble(Sources{Flags: settings(t, base, "--x"), Recipes: []File{f}})
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		equal(t, a, b)
	}
}
