package cli

import (
	"encoding/json"
	"errors"

	"github.com/selfcage/selfcage/binds"
	"github.com/selfcage/selfcage/env"
	"github.com/selfcage/selfcage/internal/jsontext"
	"github.com/selfcage/selfcage/plan"
)

// row is a thing of a plan's JSON form with the reason for it.
type row struct {
	Name jsontext.Text `json:"name"`
	By   jsontext.Text `json:"by"`
	Why  jsontext.Text `json:"why"`
}

// planDocument is a plan's JSON form, as far as a report shows or compares it.
type planDocument struct {
	Version    int               `json:"version"`
	Program    jsontext.Text     `json:"program"`
	Mode       string            `json:"mode"`
	Level      string            `json:"environment"`
	Policies   []jsontext.Text   `json:"policies"`
	Namespaces map[string]string `json:"namespaces"`
	Outside    map[string]string `json:"outside_namespaces"`
	Seccomp    int               `json:"seccomp_instructions"`
	Mounts     []struct {
		Kind   string        `json:"kind"`
		Target jsontext.Text `json:"target"`
	} `json:"mounts"`
	Attempts []struct {
		Op     string        `json:"op"`
		Object jsontext.Text `json:"object"`
		Why    jsontext.Text `json:"why"`
	} `json:"attempts"`
	Env     []row `json:"env"`
	Dropped []row `json:"env_dropped"`
	Omitted []row `json:"omitted"`
	Notes   []struct {
		Text jsontext.Text `json:"text"`
	} `json:"notes"`
}

// parsePlan reads as much of a plan's JSON form as can be observed and reported.
func parsePlan(data []byte) (*plan.Plan, error) {
	var d planDocument
	if err := json.Unmarshal(data, &d); err != nil {
		return nil, err
	}
	if d.Version != 1 {
		return nil, errors.New("it was written by another version of selfcage")
	}
	p := &plan.Plan{Name: string(d.Program), Mode: d.Mode, Clean: d.Level == "clean", Filter: make([]byte, max(0, d.Seccomp))}
	p.Namespaces = plan.Namespaces{ShareNet: d.Namespaces["network"] == "shared", ShareCgroup: d.Namespaces["cgroup"] == "shared"}
	for name, word := range d.Outside {
		p.Outside = append(p.Outside, plan.Namespace{Name: name, Word: word})
	}
	for _, m := range d.Mounts {
		kind, ok := binds.ParseKind(m.Kind)
		if !ok {
			return nil, errors.New("it has a mount of unknown kind " + m.Kind)
		}
		p.Mounts = append(p.Mounts, binds.Mount{Kind: kind, Target: string(m.Target)})
	}
	for _, a := range d.Attempts {
		p.Attempts = append(p.Attempts, plan.Attempt{Op: a.Op, Object: string(a.Object), Why: string(a.Why)})
	}
	d.said(p)
	return p, nil
}

// said adds what a report repeats of a plan.
func (d *planDocument) said(p *plan.Plan) {
	for _, f := range d.Policies {
		p.Policies = append(p.Policies, string(f))
	}
	for _, v := range d.Env {
		p.Env = append(p.Env, plan.Var{Name: string(v.Name), Reason: binds.Reason{By: string(v.By), Why: string(v.Why)}})
	}
	for _, v := range d.Dropped {
		p.Dropped = append(p.Dropped, env.Dropped{Name: string(v.Name), Rule: string(v.Why)})
	}
	for _, o := range d.Omitted {
		p.Omitted = append(p.Omitted, plan.Omission{What: string(o.Name), Why: string(o.Why)})
	}
	for _, n := range d.Notes {
		p.Notes = append(p.Notes, string(n.Text))
	}
}
