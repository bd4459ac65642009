package report

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/selfcage/selfcage/plan"
)

// R11: only an error that the kernel gives for want of access shows that an attempt was refused. Any other shows
// nothing.
func TestRefuses(t *testing.T) {
	for _, tt := range []struct {
		op, how string
		state   State
		says    string
	}{
		{"open", "ENOENT", AsPlanned, "refused (ENOENT)"},
		{"open", "EACCES", AsPlanned, "refused (EACCES)"},
		{"open", "ENOTDIR", AsPlanned, "refused (ENOTDIR)"},
		{"open", "EROFS", NotObserved, "unknown (EROFS)"},
		{"open", "E24", NotObserved, "unknown (E24)"}, // EMFILE
		{"open", Worked, Differs, "it worked"},
		{"open", "", NotObserved, "unknown"},
		{"write", "EROFS", AsPlanned, "refused (EROFS)"},
		{"write", "EPERM", AsPlanned, "refused (EPERM)"},
		{"write", "EOPNOTSUPP", NotObserved, "unknown (EOPNOTSUPP)"}, // the file system has no O_TMPFILE: asked after access
		{"write", "E28", NotObserved, "unknown (E28)"},               // ENOSPC
		{"connect", "ENETUNREACH", AsPlanned, "refused (ENETUNREACH)"},
		{"connect", "EHOSTUNREACH", AsPlanned, "refused (EHOSTUNREACH)"},
		{"connect", "ENOENT", NotObserved, "unknown (ENOENT)"},
		{"connect", Worked, Differs, "it worked"},
		{"invented", "ENOENT", NotObserved, "unknown (ENOENT)"},
	} {
		c := result(plan.Attempt{Op: tt.op, Object: "a b"}, tt.how).control()
		want := Control{tt.op + ` "a b"`, "refused", tt.says, tt.state}
		if diff := cmp.Diff(want, c); diff != "" {
			t.Errorf("%s %s (-want +got)\n%s", tt.op, tt.how, diff)
		}
	}
}

// An attempt of the plan that nobody made, or another one in its place, is not observed.
func TestCompareAttempts(t *testing.T) {
	p := wholePlan()
	states := func(tried []Tried) (got []State) {
		o := asPlanned()
		o.Tried = tried
		cs := Compare(p, o)
		for _, c := range cs[len(cs)-len(p.Attempts):] {
			got = append(got, c.State)
		}
		return got
	}
	other := triedAll(p, outcomes...)
	other[0].Object = "/elsewhere"
	for _, tt := range []struct {
		name  string
		tried []Tried
		want  []State
	}{
		{"all", triedAll(p, outcomes...), []State{AsPlanned, AsPlanned, AsPlanned}},
		{"none", nil, []State{NotObserved, NotObserved, NotObserved}},
		{"some", triedAll(p, "ENOENT", Worked), []State{AsPlanned, Differs, NotObserved}},
		{"other", other, []State{NotObserved, AsPlanned, AsPlanned}},
	} {
		if diff := cmp.Diff(tt.want, states(tt.tried)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", tt.name, diff)
		}
	}
}

func TestEncodeTried(t *testing.T) {
	p := wholePlan()
	for _, hows := range [][]string{outcomes, {Worked, Worked, Worked}, {"E24", "EPERM", "E2"}} {
		ts := triedAll(p, hows...)
		got, ok := DecodeTried(EncodeTried(ts), p.Attempts)
		if diff := cmp.Diff(ts, got); diff != "" || !ok {
			t.Errorf("%v (-want +got)\n%s", ok, diff)
		}
	}
	if ts, ok := DecodeTried(nil, nil); !ok || ts != nil {
		t.Errorf("%v %v", ts, ok)
	}
	for _, wrong := range []string{
		"", "ENOENT\n", "ENOENT\nEROFS\n", "ENOENT\nEROFS\nEPERM", "ENOENT\nEROFS\nEPERM\nEPERM\n", "ENOENT\nEROFS\nEPERM\n\n", "\n\n\n",
		"ENOENT\nEROFS\nenoent\n", "ENOENT\nEROFS\nit worked \n", "ENOENT\nEROFS\nE\n", "ENOENT\nEROFS\nE" + strings.Repeat("9", 20) + "\n",
		"ENOENT\nEROFS\nE\x00\n", "ENOENT\nEROFS\nEPERM\nx",
	} {
		if ts, ok := DecodeTried([]byte(wrong), p.Attempts); ok || ts != nil {
			t.Errorf("%q: %v", wrong, ts)
		}
	}
}

// What travels can make no attempt refused that was not: that is judged here.
func FuzzDecodeTried(f *testing.F) {
	f.Add([]byte("ENOENT\nEROFS\nENETUNREACH\n"))
	f.Add([]byte("it worked\nE24\nEPERM\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p := wholePlan()
		ts, ok := DecodeTried(data, p.Attempts)
		if !ok {
			return
		}
		if string(EncodeTried(ts)) != string(data) || len(ts) != len(p.Attempts) {
			t.Errorf("%q is %v", data, ts)
		}
		for _, tried := range ts {
			if tried.Refused != refuses(tried.Op, tried.How) {
				t.Errorf("%+v", tried)
			}
		}
	})
}

func TestParseIPv4(t *testing.T) {
	if to, ok := parseIPv4("192.0.2.255:65535"); !ok || to != (ipv4{[4]byte{192, 0, 2, 255}, 65535}) {
		t.Errorf("%v %v", to, ok)
	}
	for _, wrong := range []string{"", "192.0.2.1", "192.0.2.1:", "192.0.2.1:0", "192.0.2.1:65536", "192.0.2:1", "192.0.2.1.1:1", "192.0.2.256:1", "::1:53", "host:53", "192.0.2.-1:1", "1.2.3.4:1:2"} {
		if to, ok := parseIPv4(wrong); ok {
			t.Errorf("%q: %v", wrong, to)
		}
	}
}
