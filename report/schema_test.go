package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/selfcage/selfcage/binds"
	"github.com/selfcage/selfcage/env"
	"github.com/selfcage/selfcage/internal/refusal"
	"github.com/selfcage/selfcage/plan"
	"github.com/selfcage/selfcage/policy"
)

const schemaFile = "../docs/report.schema.json"

func schema(t testing.TB) *jsonschema.Schema {
	t.Helper()
	s, err := jsonschema.NewCompiler().Compile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// valid parses a report and holds it to the schema.
func valid(t testing.TB, data []byte) (doc map[string]any) {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err == nil {
		err = schema(t).Validate(v)
	}
	if err != nil {
		t.Errorf("%v in\n%s", err, data)
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// everything is each setting, said once.
func everything(mode policy.Mode) policy.Effective {
	one := func(v string) policy.Entry { return policy.Entry{Value: v, By: "--x"} }
	list := func(v string) []policy.Entry { return []policy.Entry{one(v)} }
	return policy.Effective{
		Settings: policy.Settings{
			Mode: one(string(mode)), Network: one("none"), Bwrap: one("/b"), Report: one("-"), Policy: one("p.toml"), Quiet: one("1"), TmpSize: one("1024"),
			Note: one("n"), RequireApproved: one("1"), Manifest: one("1"), Readable: list("/r"), Writable: list("/w\xff"), Device: list("/dev/x"),
			Hosts: list("h"), GPU: list("all"), NPU: list("all"), Cache: list("go"), Env: list("NAME"), Secret: list("A_TOKEN"), Limit: list("pids=9"),
			Hide: list("/h"), Protect: list("/p"), Recipe: list("r.json"), Define: list("model_dir=/m"),
		},
		InForce: true, Files: []string{"/p.toml", "/\xff"},
		Narrowed: []policy.Change{{Kind: policy.Removed, What: "readable", Value: "/r", Old: "read", By: "policy r.json:1"}},
	}
}

func wholePlan() *plan.Plan {
	p := somePlan()
	p.Mode, p.Policies, p.Executes = "bwrap", []string{"/p.toml"}, "ls"
	p.Env = []plan.Var{{Name: "A", Value: "the value", Reason: binds.Reason{By: "environment", Why: "not secret"}}}
	p.Dropped = []env.Dropped{{Name: "A_TOKEN", Rule: "secret shape: ends in _TOKEN"}, {Rule: "entry 3 is not NAME=VALUE"}}
	p.Remove = []plan.Missing{{Path: "/m", Reason: binds.Reason{By: "--protect", Why: "w"}}}
	p.Create = []plan.Missing{{Path: "/c", IsDir: true, Reason: binds.Reason{By: "--cache", Why: "w"}}}
	p.FDs = []plan.FD{{N: 7, Reason: binds.Reason{By: "b", Why: "w"}}}
	p.Omitted = []plan.Omission{{What: "/opt", Why: "not there"}}
	p.Notes = []string{"a note"}
	p.Attempts = []plan.Attempt{{Op: "open", Object: "/home/u/.ssh", Why: "w"}, {Op: "write", Object: "/usr"}, {Op: "connect", Object: "192.0.2.1:53"}}
	return p
}

var outcomes = []string{"ENOENT", "EROFS", "ENETUNREACH"}

func triedAll(p *plan.Plan, hows ...string) (ts []Tried) {
	for i, h := range hows {
		ts = append(ts, result(p.Attempts[i], h))
	}
	return ts
}

// reports is one of every state, engine and mode that there is.
func reports() map[string]Report {
	p := wholePlan()
	seen := asPlanned()
	seen.Names = []string{"A"}
	seen.Tried = triedAll(p, outcomes...)
	caged := Report{
		Phase: Ended, Mode: policy.Bwrap, Engine: Bwrap, Declared: everything(policy.Bwrap), Plan: p, Controls: Compare(p, seen),
		Environment: Environment{Level: Scrubbed}, Closed: []int{5}, Status: 3, Manifest: []byte("{\"version\":1}\n"),
		Host: Host{Kernel: "6.1", Machine: "x86_64", Container: "docker", LandlockABI: 7, UserNamespaces: Restricted, Selfcage: "v1"},
	}
	with := func(change func(*Report)) Report { r := caged; change(&r); return r }
	without := func(m policy.Mode, e Engine) Report {
		r := Report{Phase: HandedOver, Mode: m, Engine: e, Declared: everything(m), Plan: p, Closed: []int{5}, Host: Host{LandlockABI: -1}}
		r.Environment = EnvironmentOf(LevelOf(m), []env.Kept{{Name: "A", Value: "the value", Rule: "system runtime"}}, []env.Dropped{{Name: "B", Rule: "not on the allowlist"}})
		if LevelOf(m) != Untouched {
			r.Controls = []Control{ownEnvironment([]env.Kept{{Name: "A"}}, []string{"A=the value"})}
		}
		return r
	}
	degraded := without(policy.Auto, None)
	degraded.Cause = "bwrap is not there"
	degraded.Lost = []Loss{{"files", degraded.Cause}, {"network", degraded.Cause}}
	return map[string]Report{
		"ended":   caged,
		"signal":  with(func(r *Report) { r.Status, r.Signal = 0, 9 }),
		"no plan": {Phase: Refused, Declared: policy.Effective{}, Refusal: &refusal.Error{What: "x"}, Environment: Environment{Level: Untouched}},
		"begun":   {Phase: Started, Mode: policy.Enforced, Declared: everything(policy.Enforced), Environment: Environment{Level: Clean}},
		"refused": with(func(r *Report) {
			r.Phase, r.Refusal = Refused, &refusal.Error{What: "w", Object: "o\xff", Cause: "c", Hint: "h"}
		}),
		"differs": with(func(r *Report) {
			r.Mode, r.Controls = policy.Auto, Compare(p, Observed{Status: map[string]string{"NoNewPrivs": "0"}})
		}),
		"inside": with(func(r *Report) {
			r.Phase, r.Inside, r.Declared, r.Status = Started, true, policy.Effective{Files: p.Policies}, 0
		}),
		"scrubbed":  without(policy.ScrubbedOnly, None),
		"disabled":  without(policy.Disabled, None),
		"degraded":  degraded,
		"container": without(policy.Enforced, Runtime),
		"owned off": without(policy.Disabled, Runtime),
	}
}

// Issue 4 item 5, R43: every engine, mode and state has the one published shape, and none holds a value of a variable.
func TestSchemaAccepts(t *testing.T) {
	for name, r := range reports() {
		t.Run(name, func(t *testing.T) {
			data := r.JSON()
			valid(t, data)
			if bytes.Contains(data, []byte("the value")) || strings.Contains(r.Text(), "the value") {
				t.Error("it holds the value of a variable")
			}
		})
	}
}

// The schema knows each setting that can be declared, and no other.
func TestSchemaSettings(t *testing.T) {
	var doc struct {
		Defs struct {
			Declared struct{ Properties map[string]any }
		} `json:"$defs"`
	}
	data, err := os.ReadFile(schemaFile)
	if err == nil {
		err = json.Unmarshal(data, &doc)
	}
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	everything(policy.Bwrap).Each(func(name string, _ bool, _ []policy.Entry) { want = append(want, name) })
	slices.Sort(want)
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(doc.Defs.Declared.Properties))); diff != "" || len(want) < 20 {
		t.Errorf("(-settings +schema)\n%s", diff)
	}
}

// The other way round: a report that claims what it cannot know, or has another shape, is not valid. R2, R7: nothing is
// enforced by the kernel where no engine of ours is.
func TestSchemaRejects(t *testing.T) {
	s := schema(t)
	at := func(doc map[string]any, key string) map[string]any { return doc[key].(map[string]any) }
	first := func(doc map[string]any, key string) map[string]any { return doc[key].([]any)[0].(map[string]any) }
	control := map[string]any{"control": "mount /", "planned": "read-only", "observed": "read-only", "state": "as planned"}
	for _, tt := range []struct {
		name, of string
		spoil    func(doc map[string]any)
	}{
		{"another version", "ended", func(d map[string]any) { d["version"] = 1 }},
		{"no version", "ended", func(d map[string]any) { delete(d, "version") }},
		{"unknown member", "ended", func(d map[string]any) { d["more"] = 1 }},
		{"unknown state", "ended", func(d map[string]any) { d["state"] = "done" }},
		{"unknown mode", "ended", func(d map[string]any) { d["mode"] = "strict" }},
		{"unknown engine", "ended", func(d map[string]any) { d["engine"] = "docker" }},
		{"unknown setting", "ended", func(d map[string]any) { at(d, "declared")["readble"] = []any{} }},
		{"value without who", "ended", func(d map[string]any) { at(d, "declared")["mode"] = "bwrap" }},
		{"control without state", "ended", func(d map[string]any) { delete(first(d, "enforced"), "state") }},
		{"invented state of a control", "ended", func(d map[string]any) { first(d, "enforced")["state"] = "enforced" }},
		{"unseen and as planned", "ended", func(d map[string]any) { first(d, "enforced")["observed"] = "unknown" }},
		{"value of a variable", "ended", func(d map[string]any) { at(d, "scrubbed")["kept"].([]any)[0].(map[string]any)["value"] = "x" }},
		{"value in the plan", "ended", func(d map[string]any) { at(d, "planned")["env"].([]any)[0].(map[string]any)["value"] = "x" }},
		{"unknown kind of mount", "ended", func(d map[string]any) { at(d, "planned")["mounts"].([]any)[0].(map[string]any)["kind"] = "overlay" }},
		{"an engine and no plan", "ended", func(d map[string]any) { d["planned"] = map[string]any{} }},
		{"ended without a status", "ended", func(d map[string]any) { d["result"] = map[string]any{} }},
		{"ended twice", "ended", func(d map[string]any) { at(d, "result")["signal"] = 9 }},
		{"ended without an engine", "ended", func(d map[string]any) { d["engine"] = "undecided" }},
		{"refused without a cause", "refused", func(d map[string]any) { d["result"] = map[string]any{"status": 125} }},
		{"started with a result", "begun", func(d map[string]any) { d["result"] = map[string]any{"status": 0} }},
		{"undecided and enforced", "begun", func(d map[string]any) { d["enforced"] = []any{control} }},
		{"manifest without a version", "ended", func(d map[string]any) { d["manifest"] = map[string]any{} }},
		{"standard descriptor closed", "ended", func(d map[string]any) { d["descriptors_closed"] = []any{1} }},
		{"runtime's and ours", "ended", func(d map[string]any) { d["runtime_owned"] = true }},
		{"runtime's and not said", "container", func(d map[string]any) { d["runtime_owned"] = false }},
		{"runtime's with a mount", "container", func(d map[string]any) { d["enforced"] = []any{control} }},
		{"runtime's with a plan", "container", func(d map[string]any) { d["planned"] = at(loadReport(t, "ended"), "planned") }},
		{"disabled with a mount", "disabled", func(d map[string]any) { d["enforced"] = []any{control} }},
		{"disabled, all enforced", "disabled", func(d map[string]any) { d["not_enforced"] = []any{} }},
		{"disabled, secrets unsaid", "disabled", func(d map[string]any) {
			d["not_enforced"] = slices.DeleteFunc(d["not_enforced"].([]any), func(l any) bool { return l.(map[string]any)["what"] == "environment" })
		}},
		{"scrubbed only, network unsaid", "scrubbed", func(d map[string]any) {
			d["not_enforced"] = slices.DeleteFunc(d["not_enforced"].([]any), func(l any) bool { return l.(map[string]any)["what"] == "network" })
		}},
		{"handed over to bwrap", "disabled", func(d map[string]any) { d["engine"] = "bwrap" }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			doc := loadReport(t, tt.of)
			if err := s.Validate(doc); err != nil {
				t.Fatal(err)
			}
			tt.spoil(doc)
			var ve *jsonschema.ValidationError
			if err := s.Validate(doc); !errors.As(err, &ve) {
				t.Errorf("it is accepted: %v", err)
			}
		})
	}
}

func loadReport(t *testing.T, name string) (doc map[string]any) {
	t.Helper()
	r, ok := reports()[name]
	if !ok {
		t.Fatal(name)
	}
	if err := json.Unmarshal(r.JSON(), &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// The examples of docs/report.md are reports' parts as they are.
func TestDocumentedExamples(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "docs", "report.md"))
	if err != nil {
		t.Fatal(err)
	}
	examples := strings.Split(string(data), "```json\n")[1:]
	if len(examples) == 0 {
		t.Fatal("no examples")
	}
	for _, e := range examples {
		e, _, _ = strings.Cut(e, "```")
		valid(t, []byte(e))
	}
	for _, key := range slices.Sorted(maps.Keys(loadReport(t, "ended"))) {
		if !strings.Contains(string(data), "`"+key+"`") {
			t.Errorf("docs/report.md does not explain %s", key)
		}
	}
}
