package plan

import (
	"testing"
	"testing/fstest"

	"github.com/selfcage/selfcage/binds"
	"github.com/selfcage/selfcage/internal/fakehost"
	"github.com/selfcage/selfcage/internal/hostfs"
)

// What planning may cost for a uv environment in a Go workspace and a PATH of 40 entries, the system's own parts
// included. What bwrap does for a mount grows with their number.
const (
	mostCalls       = 2000
	mostMountsTools = 60
)

// developer is such a start on a host of the tests.
func developer(t testing.TB, uid int) start {
	s := on(t, "debian12", "/usr/local/bin/demo", "/", "demo")
	d := fakehost.NewDeveloper("", 80)
	d.AddTo(s.Host.(fstest.MapFS))
	s.Env, s.Dir, s.UID = append([]string{"PWD=" + d.Dir}, d.Env...), d.Dir, uid
	s.Args, s.Runs, s.Operands = []string{"demo", "python"}, "python", 1
	return s
}

func TestBudget(t *testing.T) {
	for _, uid := range []int{1000, 0} {
		s := developer(t, uid)
		calls := fakehost.Count(s.Host)
		s.Host = calls
		p := build(t, s)
		n := calls.Total()
		t.Logf("uid %d: %d calls %v, %d mounts", uid, n, calls.N, mounts(p))
		if n > mostCalls {
			t.Errorf("uid %d: %d file-system calls, want at most %d", uid, n, mostCalls)
		}
		if n := mounts(p); n > mostMountsTools {
			t.Errorf("uid %d: %d mounts, want at most %d\n%s", uid, n, mostMountsTools, p.Explain())
		}
		sound(t, s, p)
	}
}

func BenchmarkBuild(b *testing.B) {
	d := fakehost.NewDeveloper(b.TempDir(), 20)
	if err := d.Make(); err != nil {
		b.Fatal(err)
	}
	f := Facts{Host: hostfs.OS{}, Args: []string{"env", "python"}, Operands: 1, Env: d.Env, Dir: d.Dir, UID: 1000, GID: 1000,
		Exe: Exe{Path: "/usr/bin/env", Intact: true}}
	b.ReportAllocs()
	for b.Loop() {
		p, err := Build(f, Request{Name: "demo", Prefix: "DEMO_SANDBOX_", Runs: "python"})
		if err != nil {
			b.Fatal(err)
		}
		if _, ok := binds.Cover(p.Mounts, d.Dir); !ok {
			b.Fatal("the working directory is missing")
		}
		p.Seal()
	}
}
