package approval

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/selfcage/selfcage/internal/jsontext"
	"github.com/selfcage/selfcage/policy"
)

// record is what is stored.
type record struct {
	Version int           `json:"version"`
	File    jsontext.Text `json:"file"`
	Digest  string        `json:"digest"` // of the grants
	Grants  []grant       `json:"grants"` // sorted
}

// grant is one setting that was said, by its name in policy.Settings.Each.
type grant struct {
	What  string        `json:"what"`
	Value jsontext.Text `json:"value"`
}

// without are settings that give a run nothing: how it is reported, and where the rest comes from.
var without = []string{"quiet", "report", "policy", "recipe", "define", "require_approved", "manifest", "bwrap"}

func newRecord(file string, s policy.Settings) record {
	r := record{Version: 1, File: jsontext.Text(file), Grants: []grant{}}
	s.Each(func(name string, _ bool, entries []policy.Entry) {
		for _, w := range without {
			if name == w {
				return
			}
		}
		for _, e := range entries {
			r.Grants = append(r.Grants, grant{name, jsontext.Text(e.Value)})
		}
	})
	r.Grants = sorted(r.Grants)
	r.Digest = r.digest()
	return r
}

// digest is that of the grants as words ended by NUL, which no value can hold.
func (r record) digest() string {
	var b strings.Builder
	for _, g := range r.Grants {
		b.WriteString(g.What + "\x00" + string(g.Value) + "\x00")
	}
	return digestOf([]byte(b.String()))
}

// parse reads a record of the policy file.
func parse(data []byte, file string) (policy.Settings, error) {
	var r record
	d := json.NewDecoder(strings.NewReader(string(data)))
	d.DisallowUnknownFields()
	switch err := d.Decode(&r); {
	case err != nil:
		return policy.Settings{}, errors.New("is no approval: " + err.Error())
	case r.Version != 1:
		return policy.Settings{}, errors.New("was written by another version of selfcage")
	case string(r.File) != file:
		return policy.Settings{}, errors.New("is about another policy file")
	case r.Digest != r.digest():
		return policy.Settings{}, errors.New("was changed by hand: its digest is another one")
	}
	var s policy.Settings
	for _, g := range r.Grants {
		if err := Said(&s, g.What, policy.Entry{Value: string(g.Value), By: "approved"}); err != nil {
			return policy.Settings{}, err
		}
	}
	return s.Validate()
}

// Said adds to s one entry of the setting that policy.Settings.Each calls name. The error says that there is none of that
// name, or that it has one value and was said already.
func Said(s *policy.Settings, name string, e policy.Entry) error {
	scalars := map[string]*policy.Entry{
		"mode": &s.Mode, "network": &s.Network, "bwrap": &s.Bwrap, "report": &s.Report, "policy": &s.Policy, "quiet": &s.Quiet,
		"tmp_size": &s.TmpSize, "note": &s.Note, "require_approved": &s.RequireApproved, "manifest": &s.Manifest,
	}
	lists := map[string]*[]policy.Entry{
		"readable": &s.Readable, "writable": &s.Writable, "device": &s.Device, "hosts": &s.Hosts, "gpu": &s.GPU, "npu": &s.NPU,
		"cache": &s.Cache, "env": &s.Env, "secret": &s.Secret, "limit": &s.Limit, "hide": &s.Hide, "protect": &s.Protect,
		"recipe": &s.Recipe, "define": &s.Define,
	}
	switch scalar, list := scalars[name], lists[name]; {
	case list != nil:
		*list = append(*list, e)
	case scalar == nil:
		return errors.New("has a setting that this version does not know: " + name)
	case scalar.Value != "":
		return errors.New("has two values for " + name)
	default:
		*scalar = e
	}
	return nil
}
