package cli

import (
	"encoding/json"
	"errors"

	"github.com/selfcage/selfcage/binds"
	"github.com/selfcage/selfcage/plan"
)

// text is a string of a plan's JSON form: a string, or {"bytes": "<base64>"} where it is not UTF-8.
type text string

func (t *text) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '{' {
		var raw struct {
			Bytes []byte `json:"bytes"`
		}
		err := json.Unmarshal(b, &raw)
		*t = text(raw.Bytes)
		return err
	}
	return json.Unmarshal(b, (*string)(t))
}

// parsePlan reads as much of a plan's JSON form as can be observed.
func parsePlan(data []byte) (*plan.Plan, error) {
	var d struct {
		Version    int               `json:"version"`
		Program    text              `json:"program"`
		Namespaces map[string]string `json:"namespaces"`
		Outside    map[string]string `json:"outside_namespaces"`
		Seccomp    int               `json:"seccomp_instructions"`
		Mounts     []struct {
			Kind   string `json:"kind"`
			Target text   `json:"target"`
		} `json:"mounts"`
	}
	if err := json.Unmarshal(data, &d); err != nil {
		return nil, err
	}
	if d.Version != 1 {
		return nil, errors.New("it was written by another version of selfcage")
	}
	p := &plan.Plan{Name: string(d.Program), Filter: make([]byte, d.Seccomp)}
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
	return p, nil
}
