package policy

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// Seed R38, as far as it is pure: what is wider and what is not.
func TestCompare(t *testing.T) {
	for _, tt := range []struct{ old, new, want string }{ // of want each change, joined by "; "
		{"readable /a; env A; network none", "readable /a; env A; network none", ""},
		// Paths, by what a run can do with them.
		{"", "readable /a", "added readable /a"},
		{"readable /a", "", "removed readable /a (was read)"},
		{"readable /a", "readable /a /a/b", ""},
		{"readable /a /a/b", "readable /a", ""},
		{"readable /a/b", "readable /a", "widened readable /a"},
		{"readable /a", "readable /a/b", "narrowed readable /a (was read)"},
		{"readable /a", "readable /ab", "removed readable /a (was read); added readable /ab"},
		{"readable /a", "writable /a", "widened writable /a (was read)"},
		{"writable /a", "readable /a", "narrowed writable /a (was write)"},
		{"readable /a", "readable /a; writable /a/b", "widened writable /a/b (was read)"},
		{"writable /a", "readable /a; writable /a/b", "narrowed writable /a (was write)"},
		{"writable /a", "writable /a; readable /a/b", "narrowed writable /a/b (was write)"},
		{"writable /a; readable /a/b", "writable /a", "widened writable /a/b (was read)"},
		{"writable /a; readable /a/b", "", "removed readable /a/b (was read); removed writable /a (was write)"},
		{"", "writable /a/b; readable /a", "added readable /a; added writable /a/b"},
		{"readable /a /b /c", "", "removed readable /a (was read); removed readable /b (was read); removed readable /c (was read)"},
		{"readable /a /a/b /a/b/c", "", "removed readable /a (was read)"},
		{"", "writable /a /a/b", "added writable /a"},
		{"readable /", "readable /a", "narrowed readable / (was read)"},
		{"readable /a", "readable /", "widened readable /"},
		// Marks.
		{"hide /a", "", "widened hide /a (was hidden)"},
		{"", "hide /a", "narrowed hide /a"},
		{"hide /a", "hide /a /a/b", ""},
		{"hide /a/b", "hide /a", "narrowed hide /a"},
		{"hide /a", "hide /a/b", "widened hide /a (was hidden)"},
		{"protect /a", "protect /b", "widened protect /a (was protected); narrowed protect /b"},
		// Network and hosts.
		{"network none", "network egress; hosts a", "added hosts a; widened network egress (was none)"},
		{"network egress; hosts a", "network shared", "widened network shared (was egress)"},
		{"network shared", "network egress; hosts a", "narrowed network egress (was shared)"},
		{"", "network none", "narrowed network none (was unset)"},
		{"network none", "", "widened network unset (was none)"},
		{"", "network shared", "changed network shared (was unset)"},
		{"network egress; hosts a b", "network egress; hosts b c", "removed hosts a; added hosts c"},
		{"network egress; hosts *.a.b", "network egress; hosts *.a.b x.a.b:443", ""},
		{"network egress; hosts x.a.b", "network egress; hosts *.a.b", "widened hosts *.a.b"},
		{"network egress; hosts *.a.b", "network egress; hosts x.a.b", "narrowed hosts *.a.b"},
		{"network egress; hosts a", "network egress; hosts a:443", "narrowed hosts a"},
		{"network egress; hosts a", "network egress; hosts a:8443", "removed hosts a; added hosts a:8443"},
		{"network egress; hosts 10.0.0.0/8", "network egress; hosts 10.1.2.3", "narrowed hosts 10.0.0.0/8"},
		{"network egress; hosts a", "network egress; hosts *.x.y b.x.y", "added hosts *.x.y; removed hosts a"},
		{"hosts a; network none", "hosts b; network none", ""},
		// Names.
		{"env A B; secret S; cache go", "env B C; secret T; cache go pip", "added cache pip; removed env A; added env C; removed secret S; added secret T"},
		{"gpu 0", "gpu all", "widened gpu all"}, {"gpu all", "gpu 0 1", "narrowed gpu all"}, {"npu all", "npu all 0", ""}, {"", "npu 0", "added npu 0"},
		{"device /dev/dri", "device /dev/dri/card0", "narrowed device /dev/dri"}, {"device /dev/dri/card0", "device /dev/dri", "widened device /dev/dri"},
		// Limits and sizes; an absent one is the largest.
		{"limit pids=10", "limit pids=20", "widened limit pids 20 (was 10)"}, {"limit pids=20", "limit pids=10", "narrowed limit pids 10 (was 20)"},
		{"limit memory=1G", "limit memory=1024M", ""}, {"limit cpu=1.50", "limit cpu=1.5", ""}, {"limit cpu=2", "", "widened limit cpu unset (was 2)"},
		{"", "limit memory=1G cpu=2", "narrowed limit cpu 2 (was unset); narrowed limit memory 1G (was unset)"},
		{"limit pids=9", "limit pids=10", "widened limit pids 10 (was 9)"}, {"limit pids=x", "limit pids=1", "widened limit pids 1 (was x)"},
		{"tmp_size 1G", "tmp_size 2G", "widened tmp_size 2G (was 1G)"}, {"", "tmp_size 1", "narrowed tmp_size 1 (was unset)"}, {"tmp_size 1", "", "widened tmp_size unset (was 1)"},
		// Modes.
		{"mode enforced", "mode bwrap", "widened mode bwrap (was enforced)"}, {"mode bwrap", "mode enforced", "narrowed mode enforced (was bwrap)"},
		{"mode bwrap", "mode landlock", "changed mode landlock (was bwrap)"}, {"mode off", "mode disabled", "changed mode disabled (was off)"},
		{"mode bwrap", "mode auto", "widened mode auto (was bwrap)"}, {"mode auto", "mode scrubbed_only", "widened mode scrubbed_only (was auto)"},
		{"mode scrubbed_only", "", "widened mode unset (was scrubbed_only)"}, {"", "mode scrubbed_only", "narrowed mode scrubbed_only (was unset)"},
		// A note is one; but what says that a container isolates takes our cage away.
		{"note a", "note b", "changed note b (was a)"}, {"", "note exempt_container_backend", "widened note exempt_container_backend (was unset)"},
		{"note exempt_container_backend", "note b", "narrowed note b (was exempt_container_backend)"},
		// What gives a run nothing.
		{"", "bwrap /b; report /r; quiet 1; policy /p; recipe /r; define a=/b; require_approved 1; manifest 1", ""},
	} {
		var got []string
		for _, c := range Compare(settings(t, tt.old, ""), settings(t, tt.new, "")) {
			got = append(got, strings.Join(strings.Fields(c.String()), " "))
		}
		if s := strings.Join(got, "; "); s != tt.want {
			t.Errorf("from %s to %s\n got %s\nwant %s", tt.old, tt.new, s, tt.want)
		}
	}
}

// What lies in a writable directory and is named by an operator is not protected there any more, as git's configuration is in
// a checkout: it counts, and by whom it is named. A policy file or a recipe names nothing of the kind.
func TestCompareExact(t *testing.T) {
	inside := func(by string) Settings {
		s := settings(t, "writable /w", "policy p.toml:1")
		s.Writable = append(s.Writable, Entry{"/w/.git/config", by})
		return s
	}
	none := settings(t, "writable /w", "policy p.toml:1")
	for _, by := range []string{"--write", "P_WRITABLE", "Options.Writable", ""} {
		for _, old := range []Settings{none, inside("policy p.toml:2")} {
			cs := Compare(old, inside(by))
			equal(t, cs, []Change{{Added, "writable", "/w/.git/config", "", "write", by}})
			equal(t, Compare(inside(by), old), []Change{{Removed, "writable", "/w/.git/config", "write", "", by}})
		}
		equal(t, Compare(inside(by), inside("--write")), []Change(nil))
	}
	equal(t, Compare(none, inside("policy p.toml:2")), []Change(nil))
	// Named alone it holds nothing that could be protected in it, and where it became writable at all that is said once.
	equal(t, len(Compare(Settings{}, inside("--write"))), 1)
	equal(t, len(Compare(settings(t, "readable /w", "x"), inside("--write"))), 1)
}

// Seed R14: what was to stay in a directory and may now be a link to anywhere is wider, while it is granted.
func TestCompareConfined(t *testing.T) {
	bound := func(text string, roots ...string) Settings {
		s := settings(t, text, "x")
		for _, r := range roots {
			p, root, _ := strings.Cut(r, ":")
			s.Confined = append(s.Confined, Confined{p, root})
		}
		return s
	}
	for _, tt := range []struct {
		old, new   Settings
		want, back string
	}{
		{bound("writable /w/out", "/w/out:/w"), bound("writable /w/out"), "widened confined /w/out (was /w; x)", "narrowed confined /w/out (x)"},
		{bound("readable /w/in", "/w/in:/w"), bound("readable /w/in", "/w/in:/"), "widened confined /w/in (was /w; x)", "narrowed confined /w/in (x)"},
		{bound("readable /w/in", "/w/in:/w"), bound("readable /w/in", "/w/in/.:/w/"), "", ""},
		{bound("readable /w/in", "/w/in:/w"), bound("readable /w/in", "/w/in:/w/in"), "narrowed confined /w/in (x)", "widened confined /w/in (was /w/in; x)"},
		{bound("readable /w/in", "/w/in:/w", "/w/in:/v"), bound("readable /w/in", "/w/in:/w"), "widened confined /w/in (was /v; x)", "narrowed confined /w/in (x)"},
		{bound("device /dev/d/x", "/dev/d/x:/dev"), bound("device /dev/d/x"), "widened confined /dev/d/x (was /dev; x)", "narrowed confined /dev/d/x (x)"},
		{bound("readable /w/in", "/w/in:/w"), bound(""), "removed readable /w/in (was read; x)", "added readable /w/in (x)"},
		{bound("readable /w/in", "/w/in:/w"), bound("readable /w"), "widened readable /w (x)", "narrowed readable /w (was read; x)"},
	} {
		for _, way := range []struct {
			a, b Settings
			want string
		}{{tt.old, tt.new, tt.want}, {tt.new, tt.old, tt.back}} {
			var got []string
			for _, c := range Compare(way.a, way.b) {
				got = append(got, strings.Join(strings.Fields(c.String()), " "))
			}
			s := strings.Join(got, "; ")
			if s != way.want {
				t.Errorf("from %+v to %+v\n got %s\nwant %s", way.a, way.b, s, way.want)
			}
		}
	}
}

func TestChangeString(t *testing.T) {
	for want, c := range map[string]Change{
		"widened  writable /out (was read; policy b.toml:3)": {Widened, "writable", "/out", "read", "write", "policy b.toml:3"},
		"added    hosts *.a.b (--host)":                      {Added, "hosts", "*.a.b", "", "", "--host"},
		"narrowed network none (was egress; P_NETWORK)":      {Narrowed, "network", "", "egress", "none", "P_NETWORK"},
		"removed  env A":                                              {Removed, "env", "A", "", "", ""},
		"changed  note \"a b\" (was unset)":                           {Changed, "note", "", "", "a b", ""},
		"narrowed limit pids 10 (was unset; policy p.toml:1)":         {Narrowed, "limit", "pids", "", "10", "policy p.toml:1"},
		`removed  readable "/a\nb\x1b" (was read; policy a.toml:1)`:   {Removed, "readable", "/a\nb\x1b", "read", "", "policy a.toml:1"},
		"widened  hide /home/u/.ssh (was hidden; policy old.json:12)": {Widened, "hide", "/home/u/.ssh", "hidden", "", "policy old.json:12"},
	} {
		if got := c.String(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	for k, want := range map[ChangeKind]bool{Added: true, Widened: true, Removed: false, Narrowed: false, Changed: false} {
		if got := (Change{Kind: k}).Wider(); got != want {
			t.Errorf("%s is wider: %v", k, got)
		}
	}
}

// Who said it is the new side, where there is one.
func TestCompareBy(t *testing.T) {
	old, new := settings(t, "readable /a /c; network none; env A; limit pids=1; hide /h", "old"), settings(t, "readable /b; writable /c; env B; tmp_size 1; protect /p", "new")
	for _, c := range Compare(old, new) {
		want := "new"
		switch c.Value {
		case "/a", "A", "pids", "/h":
			want = "old"
		}
		if c.What == "network" {
			want = "old"
		}
		if c.By != want {
			t.Errorf("%v: by %s", c, c.By)
		}
	}
	if got := Compare(settings(t, "readable /a", "old"), settings(t, "readable /a", "new")); got != nil {
		t.Errorf("who says it makes no difference: %v", got)
	}
}

// randomPaths picks from few, so that they often hold one another.
func randomPaths(r *rand.Rand, n int) []Entry {
	var es []Entry
	for range r.IntN(n) {
		p := ""
		for range 1 + r.IntN(3) {
			p += "/" + string(rune('a'+r.IntN(2)))
		}
		es = append(es, Entry{p, "policy x"})
	}
	return es
}

// bruteAccess is what a run may do with p: the longest grant that holds it decides.
func bruteAccess(s Settings, p string) int {
	best, how := -1, 0
	for access, es := range [][]Entry{1: s.Readable, 2: s.Writable} {
		for _, e := range es {
			if strings.HasPrefix(p+"/", e.Value+"/") && len(e.Value) >= best {
				best, how = len(e.Value), access
			}
		}
	}
	return how
}

func bruteHeld(es []Entry, p string) bool {
	return slices.ContainsFunc(es, func(e Entry) bool { return strings.HasPrefix(p+"/", e.Value+"/") })
}

// Compare says that something is wider exactly when there is a path with more access, by another way to look at it; and
// what it says is there in both directions.
func TestCompareIsComplete(t *testing.T) {
	var every []string
	for _, a := range []string{"/a", "/b"} {
		for _, b := range []string{"", "/a", "/b", "/z"} {
			for _, c := range []string{"", "/a", "/b", "/z"} {
				if b != "" || c == "" {
					every = append(every, a+b+c)
				}
			}
		}
	}
	opposite := map[ChangeKind]ChangeKind{Added: Removed, Removed: Added, Widened: Narrowed, Narrowed: Widened}
	for seed := range uint64(5000) {
		r := rand.New(rand.NewPCG(seed, 1))
		a := Settings{Readable: randomPaths(r, 4), Writable: randomPaths(r, 3), Hide: randomPaths(r, 3), Protect: randomPaths(r, 3)}.Absolute("/")
		b := Settings{Readable: randomPaths(r, 4), Writable: randomPaths(r, 3), Hide: randomPaths(r, 3), Protect: randomPaths(r, 3)}.Absolute("/")
		more, less := false, false
		for _, p := range every {
			x, y := bruteAccess(a, p), bruteAccess(b, p)
			more, less = more || y > x, less || y < x
			for _, marks := range [][2][]Entry{{a.Hide, b.Hide}, {a.Protect, b.Protect}} {
				u, v := bruteHeld(marks[0], p), bruteHeld(marks[1], p)
				more, less = more || u && !v, less || v && !u
			}
		}
		forth, back := Compare(a, b), Compare(b, a)
		wider := slices.ContainsFunc(forth, Change.Wider)
		narrower := slices.ContainsFunc(forth, func(c Change) bool { return !c.Wider() })
		if wider != more || narrower != less || len(forth) != len(back) {
			t.Fatalf("seed %d: from %s to %s: more %v, less %v\n%v\n%v", seed, short(a), short(b), more, less, forth, back)
		}
		for i, c := range forth {
			d := back[i]
			if d.Kind != opposite[c.Kind] || d.Value != c.Value || d.What != c.What || d.Old != c.New || d.New != c.Old {
				t.Fatalf("seed %d: %v, and back %v", seed, c, d)
			}
		}
		if d := Compare(a, a); d != nil {
			t.Fatalf("seed %d: %v", seed, d)
		}
		for range 3 {
			if !slices.Equal(Compare(a, b), forth) {
				t.Fatalf("seed %d: not the same twice", seed)
			}
		}
	}
}
