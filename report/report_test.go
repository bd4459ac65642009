package report

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/selfcage/selfcage/binds"
	"github.com/selfcage/selfcage/internal/launch"
	"github.com/selfcage/selfcage/internal/refusal"
	"github.com/selfcage/selfcage/internal/sandtest"
	"github.com/selfcage/selfcage/plan"
	"github.com/selfcage/selfcage/policy"
)

func settings(report string) policy.Effective {
	return policy.Effective{Settings: policy.Settings{
		Mode:     policy.Entry{Value: "bwrap", By: "P_MODE"},
		Report:   policy.Entry{Value: report, By: "--report"},
		Writable: []policy.Entry{{Value: "/w\xff", By: "--write"}},
		Secret:   []policy.Entry{{Value: "A_TOKEN", By: "--secret"}},
		GPU:      []policy.Entry{{Value: "all", By: "P_GPU"}},
	}}
}

func somePlan() *plan.Plan {
	return &plan.Plan{
		Name: "prog", Dir: "/d", Command: "/d/prog", Filter: make([]byte, 16),
		Namespaces: plan.Namespaces{ShareNet: true},
		Outside:    []plan.Namespace{{Name: "pid", Word: "pid:[1]"}},
		Env:        []plan.Var{{Name: "A", Value: "the value", Reason: binds.Reason{By: "environment", Why: "not secret"}}},
		Mounts: []binds.Mount{
			{Kind: binds.ReadOnly, Source: "/usr", Target: "/usr"},
			{Kind: binds.ReadWrite, Source: "/w", Target: "/w"},
			{Kind: binds.Dev, Target: "/dev"},
			{Kind: binds.Tmpfs, Target: "/tmp", Perm: 0o1777},
			{Kind: binds.Symlink, Source: "usr/bin", Target: "/bin"},
			{Kind: binds.File, Target: "/etc/passwd", Data: []byte("x")},
			{Kind: binds.Sealed, Target: plan.File, Data: []byte("{}")},
			{Kind: binds.RemountRO, Target: "/dev"},
			{Kind: binds.RemountRO, Target: "/"},
		},
	}
}

// asPlanned is what the kernel says of a process in the cage of somePlan.
func asPlanned() Observed {
	return Observed{
		Namespaces: map[string]string{"user": "own", "mount": "own", "pid": "own", "ipc": "own", "uts": "own", "network": "shared", "cgroup": "own"},
		Status:     map[string]string{"CapEff": "0000000000000000", "NoNewPrivs": "1", "Seccomp": "2"},
		Mounts: []MountInfo{
			{Target: "/", ReadOnly: true}, {Target: "/usr", ReadOnly: true}, {Target: "/w"}, {Target: "/dev"}, {Target: "/dev", ReadOnly: true},
			{Target: "/tmp"}, {Target: plan.File, ReadOnly: true},
		},
		Names: []string{"A", launch.StartVar},
	}
}

func TestCompareAsPlanned(t *testing.T) {
	var got []string
	for _, c := range Compare(somePlan(), asPlanned()) {
		if c.State != AsPlanned {
			t.Errorf("%+v", c)
		}
		got = append(got, c.Name+" "+c.Observed)
	}
	want := []string{
		"user namespace own", "mount namespace own", "pid namespace own", "ipc namespace own", "uts namespace own", "network namespace shared",
		"cgroup namespace own", "capabilities (CapEff) none", "no new privileges 1", "seccomp filter 2", "environment only what is kept", "mount /usr read-only",
		"mount /w writable", "mount /dev read-only", "mount /tmp writable", "mount " + plan.File + " read-only", "mount / read-only",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// R11, R42: each promise that is not kept is named, and what could not be looked at is never said to be enforced.
func TestCompareDiffers(t *testing.T) {
	for _, tt := range []struct {
		name    string
		spoil   func(*Observed)
		control string
		state   State
		says    string
	}{
		{"namespace shared", func(o *Observed) { o.Namespaces["pid"] = "shared" }, "pid namespace", Differs, "shared"},
		{"namespace unknown", func(o *Observed) { delete(o.Namespaces, "uts") }, "uts namespace", NotObserved, "unknown"},
		{"no namespaces", func(o *Observed) { o.Namespaces = nil }, "user namespace", NotObserved, "unknown"},
		{"network not shared", func(o *Observed) { o.Namespaces["network"] = "own" }, "network namespace", Differs, "own"},
		{"capability", func(o *Observed) { o.Status["CapEff"] = "0000000000200000" }, "capabilities (CapEff)", Differs, "0000000000200000"},
		{"privileges", func(o *Observed) { o.Status["NoNewPrivs"] = "0" }, "no new privileges", Differs, "0"},
		{"filter", func(o *Observed) { o.Status["Seccomp"] = "0" }, "seccomp filter", Differs, "0"},
		{"old kernel", func(o *Observed) { delete(o.Status, "NoNewPrivs") }, "no new privileges", NotObserved, "unknown"},
		{"no status", func(o *Observed) { o.Status = nil }, "seccomp filter", NotObserved, "unknown"},
		{"writable", func(o *Observed) { o.Mounts[1].ReadOnly = false }, "mount /usr", Differs, "writable"},
		{"writable root", func(o *Observed) { o.Mounts[0].ReadOnly = false }, "mount /", Differs, "writable"},
		{"read-only", func(o *Observed) { o.Mounts[2].ReadOnly = true }, "mount /w", Differs, "read-only"},
		{"mounted over", func(o *Observed) { o.Mounts = append(o.Mounts, MountInfo{Target: "/usr"}) }, "mount /usr", Differs, "writable"},
		{"absent", func(o *Observed) { o.Mounts = o.Mounts[:5] }, "mount /tmp", Differs, "not mounted"},
		{"variable more", func(o *Observed) { o.Names = append(o.Names, "B C") }, "environment", Differs, `also "B C"`},
		{"no variables", func(o *Observed) { o.Names = nil }, "environment", NotObserved, "unknown"},
		{"no mounts", func(o *Observed) { o.Mounts = nil }, "mount /usr", NotObserved, "unknown"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := asPlanned()
			tt.spoil(&o)
			cs := Compare(somePlan(), o)
			found := false
			for _, c := range cs {
				if c.Name == tt.control {
					found = c.State == tt.state && c.Observed == tt.says
				}
			}
			if !found {
				t.Errorf("no control %q in state %q with %q: %+v", tt.control, tt.state, tt.says, cs)
			}
			r := Report{Engine: Bwrap, Plan: somePlan(), Controls: cs}
			_, table, _ := strings.Cut(r.Text(), "\n")
			if tt.state == Differs {
				if first, _, _ := strings.Cut(table, "\n"); !strings.HasPrefix(first, "  not enforced: "+tt.control+": observed: "+tt.says) {
					t.Errorf("what differs does not come first: %q", first)
				}
			}
			if i, j := strings.Index(table, string(tt.state)+"\n"), strings.Index(table, "as planned\n"); i < 0 || j < i {
				t.Errorf("what is as planned comes first:\n%s", table)
			}
		})
	}
}

// A program with no filter planned is not said to have one.
func TestCompareNoFilter(t *testing.T) {
	p := somePlan()
	p.Filter = nil
	for _, c := range Compare(p, asPlanned()) {
		if c.Name == "seccomp filter" {
			t.Errorf("%+v", c)
		}
	}
}

func TestParseMountInfo(t *testing.T) {
	const data = `22 1 254:0 / / ro,relatime - ext4 /dev/root rw
23 22 0:5 /x\040y /a\040b\134c\012d rw,nosuid shared:1 master:2 - tmpfs tmpfs rw,size=1k
too short
24 22 0:6 / /ro rw,ro-like - proc proc rw
25 22 0:6 / /e\9\04 ro - proc proc rw
`
	want := []MountInfo{
		{Target: "/", ReadOnly: true, Type: "ext4"},
		{Target: "/a b\\c\nd", Type: "tmpfs"},
		{Target: "/ro", Type: "proc"},
		{Target: `/e\9\04`, ReadOnly: true, Type: "proc"},
	}
	if diff := cmp.Diff(want, ParseMountInfo(data)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if ms := ParseMountInfo(""); ms != nil {
		t.Errorf("%v", ms)
	}
}

func TestParseNames(t *testing.T) {
	if diff := cmp.Diff([]string{"A", "B", "", "junk"}, parseNames("A=1\x00B=x=y\x00=\x00junk\x00")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if names := parseNames(""); names != nil {
		t.Errorf("%q", names)
	}
}

func FuzzParseMountInfo(f *testing.F) {
	f.Add("22 1 254:0 / /a\\040b ro,relatime shared:1 - ext4 /dev/root rw\n")
	f.Add("\\")
	f.Fuzz(func(t *testing.T, data string) {
		for _, m := range ParseMountInfo(data) {
			if m.Target == "" || len(m.Target) > len(data) {
				t.Errorf("%q", m.Target)
			}
		}
	})
}

func TestParseStatus(t *testing.T) {
	got := ParseStatus("Name:\ta:b\nCapEff:\t00\nSeccomp: 2 \n\nnonsense\n")
	want := map[string]string{"Name": "a:b", "CapEff": "00", "Seccomp": "2"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func load(t *testing.T, file string) (doc map[string]any) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return valid(t, data)
}

// only fails the test unless the directory holds exactly these names: nothing of ours is left.
func only(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := []string{}
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if diff := cmp.Diff(append([]string{}, names...), got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// Without a place there is no report. A strict run is looked at all the same.
func TestNowhere(t *testing.T) {
	r, err := Begin(settings(""))
	if err != nil {
		t.Fatal(err)
	}
	if r.Wants() || r.WantsManifest() {
		t.Error("it wants to be written")
	}
	if err := r.Observe(1, nil, false); !errors.Is(err, errNoPlan) {
		t.Errorf("without a plan: %v", err)
	}
	for _, err := range []error{r.Handed(nil, nil), r.Ended(0, 0), r.Refused(errors.New("x"))} {
		if err != nil {
			t.Error(err)
		}
	}
}

func TestRefused(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "r.json")
	r, err := Begin(settings(file))
	if err != nil {
		t.Fatal(err)
	}
	only(t, dir, "r.json") // also when the process is killed now
	if doc := load(t, file); doc["state"] != "started" {
		t.Errorf("state %v", doc["state"])
	}
	if err := r.Refused(&refusal.Error{What: "cannot", Object: "/w\xff", Cause: "why", Hint: "do", Status: 125}); err != nil {
		t.Fatal(err)
	}
	doc := load(t, file)
	want := map[string]any{"status": 125.0, "what": "cannot", "object": map[string]any{"bytes": "L3f/"}, "cause": "why", "hint": "do"}
	if diff := cmp.Diff(want, doc["result"]); diff != "" || doc["state"] != "refused" {
		t.Errorf("state %v (-want +got)\n%s", doc["state"], diff)
	}
	declared := map[string]any{
		"mode":     map[string]any{"value": "bwrap", "by": "P_MODE"},
		"report":   map[string]any{"value": file, "by": "--report"},
		"writable": []any{map[string]any{"value": map[string]any{"bytes": "L3f/"}, "by": "--write"}},
		"secret":   []any{map[string]any{"value": "A_TOKEN", "by": "--secret"}},
		"gpu":      []any{map[string]any{"value": "all", "by": "P_GPU"}},
	}
	if diff := cmp.Diff(declared, doc["declared"]); diff != "" {
		t.Errorf("declared (-want +got)\n%s", diff)
	}
	only(t, dir, "r.json")
	if err := r.Refused(errors.New("plain")); err != nil {
		t.Fatal(err)
	}
	if got := load(t, file)["result"].(map[string]any)["what"]; got != "plain" {
		t.Errorf("%v", got)
	}
}

func TestEnded(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "r.json")
	if err := os.WriteFile(file, []byte(`{"version":1}`), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		status, signal int
		want           map[string]any
	}{{3, 0, map[string]any{"status": 3.0}}, {0, 0, map[string]any{"status": 0.0}}, {0, 11, map[string]any{"signal": 11.0}}} {
		r, err := Begin(settings(file))
		if err != nil {
			t.Fatal(err)
		}
		r.Planned(somePlan())
		if err := r.Ended(tt.status, tt.signal); err != nil {
			t.Fatal(err)
		}
		doc := load(t, file)
		if diff := cmp.Diff(tt.want, doc["result"]); diff != "" || doc["state"] != "ended" {
			t.Errorf("state %v (-want +got)\n%s", doc["state"], diff)
		}
		if n := len(doc["planned"].(map[string]any)["mounts"].([]any)); n != len(somePlan().Mounts) {
			t.Errorf("%d mounts", n)
		}
		data, _ := os.ReadFile(file)
		if strings.Contains(string(data), "the value") {
			t.Error("the report holds the value of a variable")
		}
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	only(t, dir, "r.json")
}

func TestPlaceRefused(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink("gone/x", filepath.Join(dir, "dangling")); err != nil {
		t.Fatal(err)
	}
	letter := filepath.Join(dir, "letter")
	if err := os.WriteFile(letter, []byte("Dear Ada"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{filepath.Join(dir, "none", "r.json"), dir, "/dev/null", filepath.Join(dir, "dangling"), letter} {
		_, err := Begin(settings(to))
		var e *refusal.Error
		if !errors.As(err, &e) || e.What != "cannot write the report" || !strings.Contains(e.Object, "--report ") || e.Cause == "" || e.Hint == "" {
			t.Errorf("%s: %v", to, err)
		}
	}
	only(t, dir, "dangling", "letter")
	if data, err := os.ReadFile(letter); string(data) != "Dear Ada" {
		t.Errorf("%q, %v", data, err)
	}
}

// As root, a link of another user's must not choose what is overwritten.
func TestPlaceByLinkOfOthers(t *testing.T) {
	sandtest.Need(t, sandtest.Root)
	dir := t.TempDir()
	victim, link := filepath.Join(dir, "victim"), filepath.Join(dir, "link")
	if err := os.WriteFile(victim, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("victim", link); err != nil {
		t.Fatal(err)
	}
	if _, err := Begin(settings(link)); err != nil {
		t.Errorf("own: %v", err)
	}
	if err := os.Lchown(link, 4242, 4242); err != nil {
		t.Fatal(err)
	}
	if _, err := Begin(settings(link)); err == nil || !strings.Contains(err.Error(), "belongs to somebody else") {
		t.Errorf("%v", err)
	}
}

func TestPlaceWithoutPermission(t *testing.T) {
	sandtest.Need(t, sandtest.Ordinary) // root may write everywhere
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
	if _, err := Begin(settings(filepath.Join(dir, "r.json"))); err == nil || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("%v", err)
	}
}

// The place can go away while the program runs: that is an error at the end, and leaves nothing.
func TestPlaceGone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	r, err := Begin(settings(filepath.Join(dir, "r.json")))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := r.Ended(0, 0); err == nil || !strings.Contains(err.Error(), "cannot write the report") {
		t.Errorf("%v", err)
	}
}

// The program may put another directory in the place of the report's: it is written where it was meant to be.
func TestPlaceExchanged(t *testing.T) {
	top := t.TempDir()
	dir, victim := filepath.Join(top, "d"), filepath.Join(top, "victim")
	for _, d := range []string{dir, victim} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	r, err := Begin(settings(filepath.Join(dir, "r.json")))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(dir, dir+".moved"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("victim", dir); err != nil {
		t.Fatal(err)
	}
	if err := r.Ended(0, 0); err != nil {
		t.Fatal(err)
	}
	if names, _ := os.ReadDir(victim); len(names) > 0 {
		t.Errorf("written through the link: %v", names)
	}
	data, err := os.ReadFile(filepath.Join(dir+".moved", "r.json"))
	if err != nil || !strings.Contains(string(data), `"state":"ended"`) {
		t.Errorf("%q, %v", data, err)
	}
}

func TestThroughLink(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	if err := os.WriteFile(filepath.Join(dir, "real"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real", link); err != nil {
		t.Fatal(err)
	}
	r, err := Begin(settings(link))
	if err != nil {
		t.Fatal(err)
	}
	r.Planned(somePlan())
	if err := r.Ended(0, 0); err != nil {
		t.Fatal(err)
	}
	if text, err := os.Readlink(link); text != "real" {
		t.Errorf("the link was replaced: %v", err)
	}
	load(t, filepath.Join(dir, "real"))
}
