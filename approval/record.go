package approval

import (
	"cmp"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/selfcage/selfcage/internal/hostfs"
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

// grant is one setting that was said, by its name in policy.Settings.Each, or a path and what it is confined to.
type grant struct {
	What  string        `json:"what"`
	Value jsontext.Text `json:"value"`
	Real  jsontext.Text `json:"real,omitempty"`  // of a granted path, where it leads if that is elsewhere; of a confined one, the directory
	Exact bool          `json:"exact,omitempty"` // a path to be written inside of another one, named by an operator: see policy.Compare
}

const (
	version  = 2
	confined = "confined"
)

// without are settings that give a run nothing: how it is reported, and where the rest comes from.
var without = []string{"quiet", "report", "policy", "recipe", "define", "require_approved", "manifest", "bwrap"}

func newRecord(file string, s policy.Settings) record {
	r := record{Version: version, File: jsontext.Text(file), Grants: []grant{}}
	for _, c := range s.Confined {
		r.Grants = append(r.Grants, grant{What: confined, Value: jsontext.Text(c.Path), Real: jsontext.Text(c.Root)})
	}
	writable := make(map[string]bool)
	for _, e := range s.Writable {
		writable[e.Value] = true
	}
	s.Each(func(name string, _ bool, entries []policy.Entry) {
		for _, w := range without {
			if name == w {
				return
			}
		}
		for _, e := range entries {
			g := grant{What: name, Value: jsontext.Text(e.Value)}
			if real := leads(name, e.Value); real != e.Value {
				g.Real = jsontext.Text(real)
			}
			g.Exact = name == "writable" && !strings.HasPrefix(e.By, "policy ") && inside(e.Value, writable)
			r.Grants = append(r.Grants, g)
		}
	})
	r.Grants = sorted(r.Grants)
	r.Digest = r.digest()
	return r
}

// leads is where a granted path leads. Other settings lead nowhere.
func leads(what, value string) string {
	if leadsAnywhere(what) {
		return existing(value)
	}
	return value
}

func leadsAnywhere(what string) bool {
	return what == "readable" || what == "writable" || what == "device"
}

// inside says whether one of dirs holds p, p itself aside.
func inside(p string, dirs map[string]bool) bool {
	for d := hostfs.Parent(p); ; d = hostfs.Parent(d) {
		if dirs[d] && d != p {
			return true
		}
		if d == hostfs.Parent(d) {
			return false
		}
	}
}

// digest is that of the grants as words ended by NUL, which no value can hold.
func (r record) digest() string {
	var b strings.Builder
	for _, g := range r.Grants {
		b.WriteString(g.What + "\x00" + string(g.Value) + "\x00" + string(g.Real) + "\x00" + strconv.FormatBool(g.Exact) + "\x00")
	}
	return digestOf([]byte(b.String()))
}

// approved is what was approved: by the names that paths had, and where each led.
type approved struct {
	named policy.Settings
	led   policy.Settings   // the same grants of paths, as they led
	real  map[string]string // by name
}

// parse reads a record of the policy file.
func parse(data []byte, file string) (approved, error) {
	fail := func(err error) (approved, error) { return approved{}, err }
	var r record
	d := json.NewDecoder(strings.NewReader(string(data)))
	d.DisallowUnknownFields()
	switch err := d.Decode(&r); {
	case err != nil:
		return fail(errors.New("is no approval: " + err.Error()))
	case r.Version != version:
		return fail(errors.New("was written by another version of selfcage"))
	case string(r.File) != file:
		return fail(errors.New("is about another policy file"))
	case r.Digest != r.digest():
		return fail(errors.New("was changed by hand: its digest is another one"))
	}
	a := approved{real: make(map[string]string)}
	for _, g := range r.Grants {
		if g.What == confined {
			a.named.Confined = append(a.named.Confined, policy.Confined{Path: string(g.Value), Root: string(g.Real)})
			continue
		}
		e := policy.Entry{Value: string(g.Value), By: "policy approved"} // by a file, so that only what is exact counts as that
		if g.Exact {
			e.By = "approved"
		}
		if err := Said(&a.named, g.What, e); err != nil {
			return fail(err)
		}
		if real := cmp.Or(string(g.Real), e.Value); leadsAnywhere(g.What) {
			a.real[e.Value] = real
			_ = Said(&a.led, g.What, policy.Entry{Value: real, By: "policy approved"})
		}
	}
	var err error
	a.named, err = a.named.Validate()
	return a, err
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
