package policyfile

import (
	"errors"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/selfcage/selfcage/internal/refusal"
	"github.com/selfcage/selfcage/policy"
)

// small makes a policy of few words, so that one often lies in another. In a delta (narrow or recipe) most entries are
// taken from base.
func small(r *rand.Rand, base map[string][]string, recipe bool) (ms []member, said map[string][]string) {
	said = make(map[string][]string)
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	place := func() string {
		p := ""
		for range 1 + r.IntN(3) {
			p += "/" + pick("a", "b")
		}
		return p
	}
	list := func(key string, each func() string) {
		if r.IntN(3) == 0 {
			return
		}
		out := []string{}
		for range r.IntN(4) {
			if known := base[key]; len(known) > 0 && r.IntN(8) > 0 {
				out = append(out, known[r.IntN(len(known))]+pick("", "", "/a", "/b/c"))
			} else if base == nil || r.IntN(20) == 0 {
				out = append(out, each())
			}
		}
		said[key] = out
		ms = append(ms, member{key, out})
	}
	list("write_paths", place)
	if base != nil {
		base["read_paths"] = append(base["read_paths"], base["write_paths"]...)
	}
	list("read_paths", place)
	list("devices", func() string { return pick("/dev/dri", "/dev/dri/card0", "/dev/kfd") })
	list("hide", place)
	list("protect", place)
	if base == nil || r.IntN(2) == 0 {
		list("cache", func() string { return pick("go", "pip") })
	}
	list("env_allowlist", func() string { return pick("A", "B", "C") })
	switch r.IntN(3) {
	case 0:
		ms = append(ms, member{"network", []member{{"egress", true}, {"hosts", []string{pick("a", "b.c.d", "*.c.d")}}}})
	case 1:
		ms = append(ms, member{"network", []member{}})
	}
	if recipe && r.IntN(3) == 0 {
		ms = append(ms, member{"mode", pick("bwrap", "enforced", "auto")}, member{"tmp", pick("1M", "2M", "3M")},
			member{"limits", []member{{"pids", 1 + r.IntN(3)}}}, member{"note", pick("n", policy.ContainerNote)})
	}
	return ms, said
}

func parsed(t *testing.T, name string, ms []member) policy.File {
	t.Helper()
	var b strings.Builder
	writeJSON(&b, ms)
	f, err := Parse(name, []byte(b.String()), opts)
	if err != nil {
		t.Fatalf("%v\n%s", err, &b)
	}
	return f
}

// Seed R34 and D2: whatever stands in a delta, nothing but hosts and names of variables gets more.
func TestNarrowNeverWidens(t *testing.T) {
	accepted := 0
	for seed := range uint64(2500) {
		r := rand.New(rand.NewPCG(seed, 7))
		ms, said := small(r, nil, true)
		base := parsed(t, "base.json", ms)
		deltaMembers, _ := small(r, said, seed%2 == 0)
		delta := parsed(t, "delta.json", deltaMembers)
		if narrows(t, base, delta, seed%2 == 0) {
			accepted++
		}
	}
	if accepted < 600 || accepted > 2300 {
		t.Errorf("%d of 2500 deltas are accepted: too few or too many to show anything", accepted)
	}
}

// narrows applies delta to base and checks what is true of every delta; it tells whether this one was accepted.
func narrows(t *testing.T, base, delta policy.File, recipe bool) bool {
	t.Helper()
	before, err := policy.Assemble(policy.Sources{Policy: &base, Dir: "/d"})
	if err != nil {
		refusedBy(t, err, "policy ")
		return false
	}
	src := policy.Sources{Policy: &base, Dir: "/d", Recipes: []policy.File{delta}}
	if !recipe {
		with := base
		with.Narrow = append(slices.Clone(base.Narrow), delta)
		src = policy.Sources{Policy: &with, Dir: "/d"}
	}
	after, err := policy.Assemble(src)
	again, err2 := policy.Assemble(src)
	if d := cmp.Diff(again, after); d != "" || (err == nil) != (err2 == nil) {
		t.Fatalf("not the same twice, %v and %v:\n%s", err, err2, d)
	}
	if err != nil {
		refusedBy(t, err, "policy ")
		return false
	}
	for _, c := range policy.Compare(before.Settings, after.Settings) {
		added := c.What == "hosts" || c.What == "env" || c.What == "network" && c.New == "egress"
		if c.Wider() && !added {
			t.Fatalf("wider: %v", c)
		}
	}
	lessOnDisk(t, before.Settings, after.Settings)
	confined(t, before.Settings, after.Settings)
	if after.Note.Value == policy.ContainerNote && before.Note.Value != policy.ContainerNote {
		t.Fatal("a delta's note switches the cage off")
	}
	return true
}

func refusedBy(t *testing.T, err error, who string) {
	t.Helper()
	var r *refusal.Error
	if !errors.As(err, &r) || !strings.HasPrefix(r.Object, who) || r.Cause == "" || r.Hint == "" {
		t.Fatalf("no refusal that names the entry and a remedy: %#v", err)
	}
}

// lessOnDisk looks at single paths, by other means than the package.
func lessOnDisk(t *testing.T, before, after policy.Settings) {
	t.Helper()
	for _, es := range [][]policy.Entry{before.Readable, before.Writable, after.Readable, after.Writable, after.Hide, before.Hide, before.Protect} {
		for _, e := range es {
			if e.Value != path.Clean(e.Value) || e.Value[0] != '/' {
				t.Fatalf("%q is not absolute and clean", e.Value)
			}
			for _, p := range []string{e.Value, path.Dir(e.Value), e.Value + "/x", e.Value + "x"} {
				if a, b := access(before, p), access(after, p); b > a {
					t.Fatalf("%s: access %d, and %d before", p, b, a)
				}
				if held(before.Hide, p) && !held(after.Hide, p) || held(before.Protect, p) && !held(after.Protect, p) {
					t.Fatalf("%s is not hidden or protected any more", p)
				}
			}
		}
	}
}

func access(s policy.Settings, p string) (how int) {
	best := -1
	for access, es := range [][]policy.Entry{1: s.Readable, 2: s.Writable} {
		for _, e := range es {
			if inside := held([]policy.Entry{e}, p); inside && len(e.Value) >= best {
				best, how = len(e.Value), access
			}
		}
	}
	return how
}

func held(es []policy.Entry, p string) bool {
	return slices.ContainsFunc(es, func(e policy.Entry) bool { return e.Value == "/" || strings.HasPrefix(p+"/", e.Value+"/") })
}

// confined: each new path is bound to what was granted before, or a link in it could lead anywhere.
func confined(t *testing.T, before, after policy.Settings) {
	t.Helper()
	granted := slices.Concat(before.Readable, before.Writable)
	has := func(es []policy.Entry, p string) bool {
		return slices.ContainsFunc(es, func(e policy.Entry) bool { return e.Value == p })
	}
	for _, e := range slices.Concat(after.Readable, after.Writable) {
		bound := func(c policy.Confined) bool { return c.Path == e.Value && has(granted, c.Root) }
		if !has(granted, e.Value) && !slices.ContainsFunc(after.Confined, bound) {
			t.Fatalf("%v is confined to nothing: %v", e, after.Confined)
		}
	}
}

// FuzzNarrow: through the real parser, no delta widens, panics, or is refused without a place.
func FuzzNarrow(f *testing.F) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 9))
		var a, b strings.Builder
		ms, said := small(r, nil, true)
		writeJSON(&a, ms)
		ms, _ = small(r, said, true)
		writeJSON(&b, ms)
		f.Add(a.String(), b.String(), seed%2 == 0)
	}
	f.Add("read_paths = ['/', '//a/.']\nwrite_paths = ['/a/b/']\n[narrow]\nread_paths = ['/a']", "write_paths = ['/a/b/c']\nread_paths = ['{home}/x']\ndevices = []", true)
	f.Add("mode = 'auto'\ntmp = '1G'\nlimits = {cpu = 1.5}", "mode = 'bwrap'\ntmp = 7\nlimits = {cpu = 1}\nnote = 'exempt_container_backend'", true)
	f.Add("network = {egress = true, hosts = ['*.a.b']}", "network = {egress = true, hosts = ['[::1]:9', '10.0.0.0/8']}\nenv_allowlist = ['A']", false)
	f.Fuzz(func(t *testing.T, base, delta string, recipe bool) {
		a, err1 := Parse("a", []byte(base), opts)
		b, err2 := Parse("b", []byte(delta), opts)
		if err1 == nil && err2 == nil {
			narrows(t, a, b, recipe)
		}
	})
}

// Recipes that speak of different things can be given in any order.
func TestDisjointRecipes(t *testing.T) {
	base := mustParse(t, "base.toml", `read_paths = ["/a", "/b"]
write_paths = ["/w"]
devices = ["/dev/x", "/dev/y"]
cache = ["go", "pip"]
limits = { pids = 9, cpu = 4 }
`)
	recipes := []policy.File{
		mustParse(t, "1", "read_paths = ['/a/x', '/w/r']"), mustParse(t, "2", "devices = ['/dev/x']\ncache = ['go']"),
		mustParse(t, "3", "env_allowlist = ['A']\nnetwork = {egress = true, hosts = ['h']}"), mustParse(t, "4", "limits = {pids = 3}\ntmp = 9\nhide = ['/a/x/h']"),
		mustParse(t, "5", "mode = 'enforced'\nprotect = ['/w/.git']"),
	}
	var first policy.Effective
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 3))
		rs := slices.Clone(recipes)
		r.Shuffle(len(rs), func(i, j int) { rs[i], rs[j] = rs[j], rs[i] })
		got, err := policy.Assemble(policy.Sources{Policy: &base, Recipes: rs})
		if err != nil {
			t.Fatal(err)
		}
		got.Files = nil
		if seed == 0 {
			first = got
		}
		diff(t, first, got)
	}
	diff(t, []policy.Entry{{Value: "/a/x", By: "policy 1:1"}, {Value: "/w/r", By: "policy 1:1"}}, first.Readable)
}

// Seeds R13, R22, R24, R29, R32 to R35, R39, RFC section 12: the RFC's examples as recipes over what an operator grants.
func TestRecipesOfRFC(t *testing.T) {
	operator := mustParse(t, "operator.toml", `mode = "enforced"
read_paths = ["/models", "/opt"]
write_paths = ["/scratch", "{hf_cache}"]
devices = ["/dev/dri", "/dev/kfd", "/dev/accel"]
`)
	for name, want := range map[string]string{
		"passthrough": "mode enforced; readable /models/hub/snapshots/1 /opt/engine; writable /scratch; network none; device /dev/dri /dev/kfd",
		"weights": "mode enforced; readable /models/hub/snapshots/1 /opt/engine; writable /scratch /home/u/.cache/huggingface; network egress; " +
			"hosts huggingface.co cdn-lfs.huggingface.co; device /dev/dri /dev/kfd; env HTTP_PROXY HTTPS_PROXY NO_PROXY SSL_CERT_FILE SSL_CERT_DIR",
		"container": "mode enforced; readable /models /opt; writable /scratch /home/u/.cache/huggingface; network none; device /dev/dri /dev/kfd /dev/accel",
	} {
		f, err := Load("testdata/rfc/"+name+".json", opts)
		if err != nil {
			t.Fatal(err)
		}
		got, err := policy.Assemble(policy.Sources{Policy: &operator, Recipes: []policy.File{f}})
		if err != nil {
			t.Fatal(err)
		}
		var parts []string
		got.Each(func(name string, _ bool, es []policy.Entry) {
			for _, e := range es {
				name += " " + e.Value
			}
			parts = append(parts, name)
		})
		diff(t, want, strings.Join(parts, "; "))
	}
	f, err := Load("testdata/rfc/passthrough.json", opts)
	if err != nil {
		t.Fatal(err)
	}
	_, err = policy.Assemble(policy.Sources{Recipes: []policy.File{f}})
	var r *refusal.Error
	if !errors.As(err, &r) || r.Object != `policy testdata/rfc/passthrough.json:3 "/models/hub/snapshots/1"` ||
		r.Hint != "grant it to the recipe with --read /models/hub/snapshots/1, or leave it out of the recipe" {
		t.Errorf("%v %#v", err, r)
	}
}
