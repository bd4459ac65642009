package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/selfcage/selfcage/approval"
	"github.com/selfcage/selfcage/internal/jsontext"
	"github.com/selfcage/selfcage/internal/refusal"
	"github.com/selfcage/selfcage/manifest"
	"github.com/selfcage/selfcage/plan"
	"github.com/selfcage/selfcage/policy"
)

// side is one of the two that diff compares.
type side struct {
	settings policy.Settings
	report   *reportHead // nil: it is a policy file
}

// reportHead is what diff needs of a report.
type reportHead struct {
	Version  int
	State    string
	Engine   string
	Declared map[string]json.RawMessage
	Manifest json.RawMessage
}

// changed is a policy.Change in JSON.
type changed struct {
	Kind  string        `json:"kind"`
	What  string        `json:"what"`
	Value jsontext.Text `json:"value,omitempty"`
	Old   jsontext.Text `json:"old,omitempty"`
	New   jsontext.Text `json:"new,omitempty"`
	By    jsontext.Text `json:"by,omitempty"`
	Wider bool          `json:"wider"`
}

func changes(cs []policy.Change) []changed {
	out := []changed{}
	for _, c := range cs {
		out = append(out, changed{string(c.Kind), c.What, jsontext.Text(c.Value), jsontext.Text(c.Old), jsontext.Text(c.New), jsontext.Text(c.By), c.Wider()})
	}
	return out
}

// diff prints what the second file gives more or less than the first; of two reports also in what else the runs differ.
func (l looker) diff() (int, error) {
	var sides [2]side
	for i, file := range l.files {
		s, err := l.side(file)
		if err != nil {
			return 0, err
		}
		sides[i] = s
	}
	if sides[0].report != nil || sides[1].report != nil {
		// A report does not say by which token a path was said, and so what its links were bound to.
		sides[0].settings.Confined, sides[1].settings.Confined = nil, nil
	}
	cs := policy.Compare(sides[0].settings, sides[1].settings)
	slices.SortStableFunc(cs, func(a, b policy.Change) int { return order(a) - order(b) })
	ds, err := l.runs(sides[0].report, sides[1].report)
	if err != nil {
		return 0, err
	}
	status := 0
	if len(cs)+len(ds) > 0 {
		status = 1
	}
	if l.format == "json" {
		return status, l.json(struct {
			Grants []changed             `json:"grants"`
			Runs   []manifest.Difference `json:"runs"`
		}{changes(cs), append([]manifest.Difference{}, ds...)})
	}
	_, err = io.WriteString(l.out, diffText(cs, ds))
	return status, err
}

// order puts what gives more before the rest.
func order(c policy.Change) int {
	if c.Wider() {
		return 0
	}
	return 1
}

func diffText(cs []policy.Change, ds []manifest.Difference) string {
	var b strings.Builder
	for _, c := range cs {
		b.WriteString(refusal.Printable(c.String()) + "\n")
	}
	for _, d := range together(ds) {
		line := d.Area + " " + plan.Quote(d.Item) + ": " + short(d.A) + " -> " + short(d.B)
		if d.Area == "variables" {
			line = d.Area + " " + d.Item + ": " + d.A
		}
		if d.Meaning != "" {
			line += " (" + d.Meaning + ")"
		}
		b.WriteString(refusal.Printable(line) + "\n")
	}
	return b.String()
}

// together makes one difference of all variables that only one of the runs has, and one of those of the other: two modes
// differ in dozens of them.
func together(ds []manifest.Difference) (out []manifest.Difference) {
	at := map[manifest.Difference]int{}
	for _, d := range ds {
		if d.Area != "variable" {
			out = append(out, d)
			continue
		}
		only := "only in the second"
		if d.B == "" {
			only = "only in the first"
		}
		kind := manifest.Difference{Area: d.Area, Item: only, Meaning: d.Meaning}
		i, there := at[kind]
		if !there {
			i = len(out)
			at[kind], out = i, append(out, manifest.Difference{Area: "variables", Item: only, Meaning: "values are not recorded"})
		}
		out[i].A = strings.TrimPrefix(out[i].A+", "+plan.Quote(d.Item), ", ")
	}
	return out
}

var longDigest = regexp.MustCompile(`\b([0-9a-f]{12})[0-9a-f]{52}\b`)

// short is a value for people: of digests, enough to tell two apart.
func short(s string) string {
	if s == "" {
		return "nothing"
	}
	return longDigest.ReplaceAllString(s, "$1…")
}

// runs says in what two runs differ, apart from what was declared. What was not recorded is not compared, and that is said.
func (l looker) runs(a, b *reportHead) (ds []manifest.Difference, err error) {
	if a == nil || b == nil {
		return nil, nil
	}
	if a.Engine != b.Engine {
		ds = append(ds, manifest.Difference{Area: "run", Item: "engine", A: a.Engine, B: b.Engine, Meaning: "the two were not confined by the same means"})
	}
	for i, r := range []*reportHead{a, b} {
		if len(r.Manifest) == 0 {
			_, err := io.WriteString(l.err, "selfcage: note: "+refusal.Printable(l.files[i])+" has no manifest (run --manifest), so only what was declared is compared\n")
			return ds, err
		}
	}
	more, err := manifest.Diff(a.Manifest, b.Manifest)
	if err != nil {
		return nil, &refusal.Error{What: "cannot compare the manifests", Cause: err.Error(), Err: err}
	}
	return append(ds, more...), nil
}

// side reads a policy file or a report.
func (l looker) side(file string) (side, error) {
	if r, err := readReport(file); r != nil || err != nil {
		if err != nil {
			return side{}, err
		}
		s, err := declaredBy(r)
		if err != nil {
			return side{}, &refusal.Error{What: "cannot read the report", Object: plan.Quote(file), Cause: err.Error(), Err: err}
		}
		return side{s, r}, nil
	}
	p, environ := l.ofFile(file, true)
	eff, err := p.Asked(environ)
	return side{settings: eff.Settings}, err
}

// maxReport is more than any report has.
const maxReport = 64 << 20

// readReport returns nil where the file is no report. That it cannot be read is for the reader of policies to say.
func readReport(file string) (*reportHead, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil
	}
	defer f.Close()
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() { // a pipe would wait for its writer
		return nil, nil
	}
	data, err := io.ReadAll(io.LimitReader(f, maxReport+1))
	if err != nil || !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		return nil, nil
	}
	var r reportHead
	if json.Unmarshal(data, &r) != nil || r.Version == 0 || r.State == "" || r.Declared == nil {
		return nil, nil
	}
	if r.Version > 2 || len(data) > maxReport {
		return nil, &refusal.Error{What: "cannot read the report", Object: plan.Quote(file), Cause: "it was written by another version of selfcage"}
	}
	return &r, nil
}

// declaredBy is what a report says was declared.
func declaredBy(r *reportHead) (s policy.Settings, err error) {
	for name, raw := range r.Declared {
		var one said
		many := []said{}
		if bytes.HasPrefix(bytes.TrimSpace(raw), []byte("[")) {
			err = json.Unmarshal(raw, &many)
		} else if err = json.Unmarshal(raw, &one); err == nil {
			many = append(many, one)
		}
		for _, e := range many {
			if err == nil {
				err = approval.Said(&s, name, policy.Entry{Value: string(e.Value), By: string(e.By)})
			}
		}
		if err != nil {
			return s, err
		}
	}
	return s.Validate()
}
