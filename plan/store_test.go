package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A run that may write the directory around what was approved cannot approve its own wishes (R38), also where nothing was
// approved yet.
func TestStoreIsProtected(t *testing.T) {
	const state = "/home/ada/.local/state"
	s := on(t, "debian12", "/usr/local/bin/demo", proj, "demo")
	dir(s, proj[1:])
	dir(s, state[1:]+"/other")
	p := build(t, s.write(state))
	sound(t, s, p)
	want := map[string]string{state + "/other/x": "rw", state + "/selfcage/approved/x.json": "ro"}
	if diff := cmp.Diff(want, shown(p, keys(want)...)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{`directory ` + state + `/selfcage ""`}, removed(p)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	file(s, state[1:]+"/selfcage/approved/x.json", "{}")
	for _, grant := range []string{state, state + "/selfcage"} {
		p = build(t, s.write(grant))
		if got := shown(p, state+"/selfcage/approved/x.json")[state+"/selfcage/approved/x.json"]; got != "ro" || len(removed(p)) != 0 {
			t.Errorf("--write %s: %s, %v", grant, got, removed(p))
		}
	}
	// Where nothing of it is writable nothing is made.
	if p = build(t, s.write(proj)); len(removed(p)) != 0 {
		t.Errorf("%v", removed(p))
	}
}
