package plan

import (
	"slices"
	"testing"
)

// R34: what counts as shown anyway is what the plan shows, so that a recipe which reads there gets no more.
func TestShownAnyway(t *testing.T) {
	s := on(t, "debian12", "/usr/local/bin/demo", proj, "demo")
	dir(s, proj[1:])
	for at, want := range map[string]bool{
		proj: true, "/home/ada": false, "/home": false, "/": false, "/tmp": false, "/etc": false, "/dev/shm": false, "/proc/1": false, "": false,
	} {
		f := s.Facts
		f.Dir = at
		if got := slices.Contains(ShownAnyway(f), at) && at != ""; got != want {
			t.Errorf("%q: %v", at, got)
		}
		if !slices.Contains(ShownAnyway(f), "/usr") {
			t.Error("/usr is not shown")
		}
	}
}
