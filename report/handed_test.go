package report

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/selfcage/selfcage/env"
	"github.com/selfcage/selfcage/internal/refusal"
	"github.com/selfcage/selfcage/policy"
)

func whats(ls []Loss) (got []string) {
	for _, l := range ls {
		got = append(got, l.What)
	}
	return got
}

// R2, R7, R42: where no engine of ours confines, nothing that was declared is enforced, each with the reason, and
// neither text nor JSON can be read otherwise.
func TestNotEnforced(t *testing.T) {
	parts := []string{"files", "network", "devices", "processes", "system calls"}
	promised := []string{`readable /r`, `writable "/w\xff"`, "network none", "hosts h", "gpu all", "npu all", "device /dev/x", "cache go", "limit pids=9",
		"tmp_size 1024", "hide /h", "protect /p", "recipe r.json"}
	for _, tt := range []struct {
		name     string
		headline string
		why      string // of the devices
		more     []string
	}{
		{"scrubbed", "no cage: the kernel confines nothing, mode scrubbed_only", "mode scrubbed_only", nil},
		{"disabled", "no cage: the kernel confines nothing, mode disabled", "mode disabled", []string{"environment", "env NAME", "secret A_TOKEN"}},
		{"degraded", "no cage: the kernel confines nothing, mode auto", "bwrap is not there", nil},
		{"container", "no cage: the kernel confines nothing on behalf of selfcage; isolation is the container runtime's own", "isolation is the container runtime's, which was not looked at", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := reports()[tt.name]
			got := make(map[string]string)
			for _, l := range r.NotEnforced() {
				if _, twice := got[l.What]; twice {
					t.Errorf("%s is there twice", l.What)
				}
				got[l.What] = l.Why
			}
			for _, what := range append(append(append([]string{}, parts...), promised...), tt.more...) {
				if got[what] == "" {
					t.Errorf("%s is not there", what)
				}
			}
			if n := len(parts) + len(promised) + len(tt.more); len(got) != n {
				t.Errorf("%d, want %d: %q", len(got), n, got)
			}
			if want := "all that the user may use can be used: " + tt.why; got["devices"] != want {
				t.Errorf("devices: %q, want %q", got["devices"], want)
			}
			text := r.Text()
			if !strings.HasPrefix(text, tt.headline) {
				t.Errorf("begins otherwise:\n%s", text)
			}
			for _, word := range []string{"inside the cage", "engine bwrap", "mount ", "namespace", "seccomp filter"} {
				if strings.Contains(text, word) {
					t.Errorf("it says %q:\n%s", word, text)
				}
			}
			for _, c := range r.Controls {
				if c.Name != environment {
					t.Errorf("%+v", c)
				}
			}
		})
	}
}

// A run in a cage lists nothing, unless something was seen to differ; that is what mode auto goes on with.
func TestNotEnforcedInCage(t *testing.T) {
	r := reports()["ended"]
	if ls := r.NotEnforced(); len(ls) != 0 {
		t.Errorf("%v", ls)
	}
	r = reports()["differs"]
	if diff := cmp.Diff([]Loss{{"no new privileges", "observed: 0; planned: 1"}}, r.NotEnforced()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	r = reports()["degraded"]
	r.Phase = Refused
	if ls := r.NotEnforced(); len(ls) != 0 {
		t.Errorf("of a run that was refused: %v", ls)
	}
}

// What notes say is not enforced is what the report says.
func TestUnenforced(t *testing.T) {
	for _, m := range []policy.Mode{policy.Auto, policy.Disabled} {
		r := Report{Phase: HandedOver, Mode: m, Engine: None, Declared: everything(m), Environment: Environment{Level: LevelOf(m)}}
		if diff := cmp.Diff(Unenforced(r.Declared.Settings), whats(r.NotEnforced())); diff != "" {
			t.Errorf("%s (-notes +report)\n%s", m, diff)
		}
	}
	got := Unenforced(policy.Settings{Mode: policy.Entry{Value: "auto"}, Network: policy.Entry{Value: "shared"}, Env: []policy.Entry{{Value: "A"}}})
	if diff := cmp.Diff([]string{"files", "network", "devices", "processes", "system calls"}, got); diff != "" {
		t.Errorf("what promises nothing is there (-want +got)\n%s", diff)
	}
}

// R7, R10: a mode without a supervisor writes its report before it goes on; what was planned before is no part of it.
func TestHanded(t *testing.T) {
	file := filepath.Join(t.TempDir(), "r.json")
	t.Setenv("A_TOKEN", "hunter2")
	s := settings(file)
	s.Mode.Value = "auto"
	s.Report = policy.Entry{Value: file, By: "--report"}
	r, err := Begin(s)
	if err != nil {
		t.Fatal(err)
	}
	r.Planned(somePlan())
	r.Engine(None)
	r.Lost([]string{"files", "network"}, "bwrap is not there")
	if err := r.Handed([]env.Kept{{Name: "A", Value: "the value", Rule: "system runtime"}}, []env.Dropped{{Name: "A_TOKEN", Rule: "secret"}}); err != nil {
		t.Fatal(err)
	}
	doc := load(t, file)
	if doc["state"] != "handed over" || doc["engine"] != "none" || doc["runtime_owned"] != false || len(doc["planned"].(map[string]any)) != 0 {
		t.Errorf("%v", doc)
	}
	// This process still has it: it may go with an exec, and nobody has seen that.
	want := map[string]any{"control": "environment", "planned": "only what is kept", "observed": "unknown", "state": "not observed"}
	if diff := cmp.Diff([]any{want}, doc["enforced"]); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	names := map[string]any{"level": "clean", "kept": []any{map[string]any{"name": "A", "rule": "system runtime"}}, "dropped": []any{map[string]any{"name": "A_TOKEN", "rule": "secret"}}}
	if diff := cmp.Diff(names, doc["scrubbed"]); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	data, err := os.ReadFile(file)
	if err != nil || strings.Contains(string(data), "hunter2") || strings.Contains(string(data), "the value") {
		t.Errorf("it holds a value: %v\n%s", err, data)
	}
}

// R2, R39: what a container runtime isolates is its own, whatever is said afterwards.
func TestHandedToRuntime(t *testing.T) {
	s := settings("")
	s.Mode.Value, s.Report = "enforced", policy.Entry{Value: filepath.Join(t.TempDir(), "r.json"), By: "--report"}
	r, err := Begin(s)
	if err != nil {
		t.Fatal(err)
	}
	r.Engine(Runtime)
	if err := r.Handed(nil, nil); err != nil {
		t.Fatal(err)
	}
	doc := load(t, s.Settings.Report.Value)
	if doc["engine"] != "container runtime" || doc["runtime_owned"] != true || doc["state"] != "handed over" {
		t.Errorf("%v", doc)
	}
}

func TestOwnEnvironment(t *testing.T) {
	kept := []env.Kept{{Name: "A"}, {Name: "B"}}
	for _, tt := range []struct {
		environ []string
		want    State
	}{
		{[]string{"A=1", "B=2"}, AsPlanned},
		{[]string{"A="}, AsPlanned},
		{nil, AsPlanned},
		{[]string{"A=1", "C=3"}, NotObserved},
		{[]string{"A=1", "junk"}, NotObserved},
	} {
		if c := ownEnvironment(kept, tt.environ); c.State != tt.want || c.Name != "environment" {
			t.Errorf("%q: %+v", tt.environ, c)
		}
	}
}

// A manifest is a part of the report as it came, where one was asked for.
func TestManifest(t *testing.T) {
	s := settings(filepath.Join(t.TempDir(), "r.json"))
	s.Settings.Manifest = policy.Entry{Value: "1", By: "--manifest"}
	r, err := Begin(s)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Wants() || !r.WantsManifest() {
		t.Error("it is not wanted")
	}
	r.Planned(somePlan())
	r.Manifest([]byte("{\"version\":1,\n\"kernel\":\"6.1\"}\n"))
	if err := r.Ended(0, 0); err != nil {
		t.Fatal(err)
	}
	doc := load(t, s.Settings.Report.Value)
	if diff := cmp.Diff(map[string]any{"version": 1.0, "kernel": "6.1"}, doc["manifest"]); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestLevelOf(t *testing.T) {
	for mode, want := range map[policy.Mode]Level{
		policy.Off: Untouched, policy.Disabled: Untouched, "": Untouched, policy.Bwrap: Scrubbed, policy.Landlock: Scrubbed,
		policy.Auto: Clean, policy.Enforced: Clean, policy.ScrubbedOnly: Clean,
	} {
		if got := LevelOf(mode); got != want {
			t.Errorf("%q: %s", mode, got)
		}
	}
}

func TestHeadline(t *testing.T) {
	p := wholePlan()
	for want, r := range map[string]Report{
		"inside the cage of prog, engine bwrap, network shared, mode bwrap, policy /p.toml \"/\\xff\"": {Phase: Started, Inside: true, Mode: "bwrap", Engine: Bwrap, Plan: p, Declared: policy.Effective{Files: []string{"/p.toml", "/\xff"}}},
		"a cage, engine bwrap, network shared, mode auto":                                              {Phase: Ended, Mode: "auto", Engine: Bwrap, Plan: p},
		"refused: nothing was run, engine bwrap, mode bwrap":                                           {Phase: Refused, Mode: "bwrap", Engine: Bwrap, Plan: p, Refusal: &refusal.Error{Err: errors.New("x")}},
		"refused: nothing was run":                                                                     {Phase: Refused},
		"no cage yet, mode enforced":                                                                   {Phase: Started, Mode: "enforced"},
		"no cage: the kernel confines nothing, mode auto":                                              {Phase: Refused, Mode: "auto", Engine: None, Plan: p},
	} {
		if got := r.headline(); got != want {
			t.Errorf("%q\nwant %q", got, want)
		}
	}
}
