package report

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/selfcage/selfcage/plan"
)

// A process outside is seen as it is: nothing of a plan is claimed of it. The run's own observation refuses it.
func TestObserveOutside(t *testing.T) {
	p := somePlan()
	p.Outside = nil
	for _, n := range plan.NamespaceFiles {
		text, err := os.Readlink("/proc/self/ns/" + n.Word)
		if err != nil {
			t.Fatal(err)
		}
		p.Outside = append(p.Outside, plan.Namespace{Name: n.Name, Word: text})
	}
	o := observe(self, p.Outside)
	if o.Namespaces["mount"] != "shared" || o.Status["NoNewPrivs"] == "" || len(o.Mounts) == 0 {
		t.Errorf("%+v", o)
	}
	differs := 0
	for _, c := range Compare(p, o) {
		if c.State == Differs {
			differs++
		}
	}
	if differs < 5 {
		t.Errorf("only %d controls differ", differs)
	}
	for _, to := range []string{"", filepath.Join(t.TempDir(), "r.json")} {
		r, err := Begin(settings(to))
		if err != nil {
			t.Fatal(err)
		}
		r.Planned(p)
		if err := r.Observe(os.Getpid(), nil, true); err == nil || !strings.Contains(err.Error(), "user namespace is shared, planned is own") {
			t.Errorf("strict: %v", err)
		}
		if err := r.Observe(os.Getpid(), nil, false); err != nil || len(r.Differs()) < 5 {
			t.Errorf("not strict: %v, %q", err, r.Differs())
		}
	}
}

// A process that is gone was not observed.
func TestObserveNobody(t *testing.T) {
	for _, c := range Compare(somePlan(), observe("0", somePlan().Outside)) {
		if c.State != NotObserved {
			t.Errorf("%+v", c)
		}
	}
}
