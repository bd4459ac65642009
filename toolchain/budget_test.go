package toolchain

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/selfcage/selfcage/internal/fakehost"
	"github.com/selfcage/selfcage/internal/hostfs"
)

// Planning for a uv environment, a Go workspace and a PATH of 40 entries stays cheap, and the mounts are few.
func TestBudget(t *testing.T) {
	d := fakehost.NewDeveloper("", 80)
	m := fstest.MapFS{"usr/bin/x": {}, "usr/local/bin/y": {}, "bin": {Data: []byte("usr/bin"), Mode: fs.ModeSymlink}}
	d.AddTo(m)
	c := newCage(m, d.Dir)
	calls := fakehost.Count(m)
	h := hostOf(calls, d.Env, d.Dir, c)
	found := Find(h, "python")
	total, roots := calls.Total(), 0
	for _, n := range found.Needs {
		if n.Root != "" {
			roots++
		}
	}
	c.apply(t, found)
	for p := range d.Links {
		if strings.Contains(p, "/bin/") && !c.sees(p) {
			t.Errorf("%s is not visible", p)
		}
	}
	t.Logf("%d calls %v, %d needs, %d roots", total, calls.N, len(found.Needs), roots)
	if total > 2000 {
		t.Errorf("%d file-system calls, want at most 2000", total)
	}
	if roots > 60-10 {
		t.Errorf("%d roots leave too little of 60 mounts", roots)
		for _, n := range found.Needs {
			t.Log(n.By, n.Path, n.Root)
		}
	}
}

func BenchmarkFind(b *testing.B) {
	d := fakehost.NewDeveloper(b.TempDir(), 20)
	if err := d.Make(); err != nil {
		b.Fatal(err)
	}
	c := newCage(hostfs.OS{}, d.Dir)
	b.ReportAllocs()
	for b.Loop() {
		h := hostOf(hostfs.OS{}, d.Env, d.Dir, c)
		h.Homes = []string{d.Home}
		Find(h, "python")
	}
}
