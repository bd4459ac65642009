package cli_test

import (
	"strings"
	"testing"
)

// What the host replaces while a run lasts takes the cage's mount with it: the kernel says nothing, we do. In mode enforced
// the run ends there.
func TestMountLost(t *testing.T) {
	s := newSite(t, nil)
	for _, mode := range []string{"bwrap", "enforced"} {
		s.write("secret", "the first\n", 0o644)
		s.write("new", "the second\n", 0o644)
		r := s.sh(`(while ! [ -e ready ]; do sleep 0.05; done; mv new secret) &
			selfcage run --mode ` + mode + ` --write . --hide secret --report r.json -- sh -c 'cat secret; touch ready; for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.2; done; echo end'; s=$?; rm -f ready; exit $s`)
		r.says("secret was replaced on the host: what the cage had mounted there is gone").hasNot("the first", "the second")
		d := parse(t, read(t, s.path("r.json")))
		status := 0
		if mode == "enforced" {
			status = 125
			r.says("the run was ended")
		} else {
			r.has("end\n")
		}
		if r.is(status); d.State != "ended" || d.Result["status"] != float64(status) || len(d.NotEnforced) != 1 || !strings.HasPrefix(d.NotEnforced[0].What, "mount ") {
			t.Errorf("mode %s: %+v", mode, d)
		}
	}
}

// What is moved away takes its mount along, of which the kernel tells nobody: it is found out when the run has ended.
func TestMovedAway(t *testing.T) {
	s := newSite(t, nil)
	s.write("secret", "the first\n", 0o644)
	s.write("fixed", "as it was\n", 0o644)
	r := s.sh(`(while ! [ -e ready ]; do sleep 0.05; done; mv secret old; echo the second >secret; touch done) &
		selfcage run --write . --hide secret --protect fixed --report r.json -- sh -c 'cat secret; touch ready; while ! [ -e done ]; do sleep 0.05; done; echo end'`).ok()
	r.has("end\n").says("secret was moved away or replaced on the host").hasNot("the first", "fixed was moved")
	d := parse(t, read(t, s.path("r.json")))
	if len(d.NotEnforced) != 1 || d.NotEnforced[0].What != "mount "+s.path("secret") {
		t.Errorf("%+v", d.NotEnforced)
	}
	s.sh("rm -f ready done").ok()
	s.selfcage("run", "--write", ".", "--hide", "secret", "--protect", "fixed", "--", "true").ok().silent()
}
