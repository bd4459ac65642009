package report

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/selfcage/selfcage/binds"
	"github.com/selfcage/selfcage/plan"
)

// BenchmarkObserve is what every start in a strict mode pays, with as many mounts as an ordinary plan has.
func BenchmarkObserve(b *testing.B) {
	p := wholePlan()
	for i := range 50 {
		p.Mounts = append(p.Mounts, binds.Mount{Kind: binds.ReadOnly, Target: "/opt/some/directory/" + strconv.Itoa(i)})
	}
	p.Env = nil
	for _, n := range parseNames(strings.Join(os.Environ(), "\x00")) {
		p.Env = append(p.Env, plan.Var{Name: n})
	}
	tried := triedAll(p, outcomes...)
	r := &Run{}
	r.Planned(p)
	for b.Loop() {
		if err := r.Observe(os.Getpid(), tried, false); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkBegin is what a run with a report pays more, without the writing.
func BenchmarkBegin(b *testing.B) {
	r := reports()["ended"]
	for b.Loop() {
		r.Host = LookAtHost()
		_ = r.JSON()
	}
}
