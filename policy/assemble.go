package policy

import (
	"path"
	"slices"
	"strings"

	"github.com/selfcage/selfcage/internal/refusal"
)

// Sources are all who say something about one run.
type Sources struct {
	Flags   Settings // the strongest
	Env     Settings
	Policy  *File // nil: there is no policy file
	Options Settings
	Recipes []File // the deltas of third parties
	Dir     string // the working directory, which relative paths begin at; "" when it is gone

	// Shown are absolute paths that the run can read whatever is granted, such as the directory of the program: a delta that
	// reads there is not wider. What Assemble is not told is wider.
	Shown []string
}

// Effective is what holds for a run.
type Effective struct {
	Settings
	InForce  bool     // there is a policy file
	Narrowed []Change // what deltas took away
	Files    []string // every policy file and recipe that was read
}

// Assemble puts together what all of them say (seeds R32 to R35). From nothing, what the operator says adds up: flags,
// variables, the policy file, Options; of a scalar the strongest counts. Then the deltas take away, in order: the
// [narrow] tables of the policy file, and the recipes. A delta may add only hosts and names of variables.
//
// With a policy file in force, a mode that neither a flag nor a variable nor the file says is enforced, and such a network
// is none, whatever Options says. Every path of the result is absolute and clean.
//
// The error is a *refusal.Error that names the entry which is wrong, or wider than what was granted before it.
func Assemble(src Sources) (Effective, error) {
	eff := Effective{InForce: src.Policy != nil}
	said := []Settings{src.Flags, src.Env}
	if src.Policy != nil {
		if err := onlyOperators(src.Policy.Settings); err != nil {
			return Effective{}, err
		}
		said = append(said, src.Policy.Settings, strictest(*src.Policy))
		eff.Files = append(eff.Files, src.Policy.Files...)
	}
	base, err := addUp(append(said, src.Options), src.Dir)
	if err != nil {
		return Effective{}, err
	}
	after, dropped, err := deltas(base, src)
	if err != nil {
		return Effective{}, err
	}
	if len(src.Recipes) > 0 || src.Policy != nil && len(src.Policy.Narrow) > 0 {
		less := func(c Change) bool { return c.Kind == Removed || c.Kind == Narrowed }
		eff.Narrowed = append(slices.DeleteFunc(Compare(base, after), func(c Change) bool { return !less(c) }), dropped...)
	}
	for _, r := range src.Recipes {
		eff.Files = append(eff.Files, r.Files...)
	}
	eff.Settings = after
	return eff, nil
}

// strictest is what a policy file means that says no mode or no network.
func strictest(f File) Settings {
	by := "policy"
	if len(f.Files) > 0 {
		by += " " + refusal.Printable(f.Files[0])
	}
	return Settings{
		Mode:    Entry{string(Enforced), by + ": no mode means enforced"},
		Network: Entry{"none", by + ": no network means none"},
	}
}

// addUp merges what operators say, the strongest first, into valid settings with absolute paths.
func addUp(said []Settings, dir string) (Settings, error) {
	network := len(said) // who says what the network is
	for i := range said {
		s, err := said[i].Validate()
		if err != nil {
			return Settings{}, err
		}
		said[i] = s
		if network == len(said) && s.Network.Value != "" {
			network = i
		}
	}
	if network < len(said) && said[network].Network.Value != "egress" {
		for i := network + 1; i < len(said); i++ {
			said[i].Hosts = nil // somebody stronger has closed what these would open
		}
	}
	all := Merge(said...)
	if err := reachable(all); err != nil {
		return Settings{}, err
	}
	return all.located(dir)
}

// reachable refuses an egress that reaches nobody, and hosts that nothing would reach (seed R24): neither is ever inferred
// from the other.
func reachable(s Settings) error {
	egress := s.Network.Value == "egress"
	switch {
	case egress && len(s.Hosts) == 0:
		return wrong(s.Network, "wrong network", "egress names no host that it may reach", "name each with --host")
	case !egress && len(s.Hosts) > 0:
		cause := "a host is named and the network is not egress"
		if s.Network.By != "" {
			cause = "a host is named and the network is " + s.Network.Value + " (" + s.Network.By + ")"
		}
		return wrong(s.Hosts[0], "wrong host", cause, "say --network egress, or leave the host out")
	}
	return nil
}

// located is Absolute for a working directory that may be gone.
func (s Settings) located(dir string) (Settings, error) {
	for i := range table {
		t := &table[i]
		for _, e := range t.entries(&s) {
			if dir == "" && t.path && !strings.HasPrefix(e.Value, "/") && (t.suffix != "REPORT" || e.Value != "-") {
				return Settings{}, wrong(e, "wrong path", "it is relative and the working directory was deleted", "change to a directory that exists, or write it in full")
			}
		}
	}
	return s.Absolute(dir), nil
}

// onlyOperators refuses what no file may say: a program that confines, a secret, another file.
func onlyOperators(s Settings) error {
	for i := range table {
		t := &table[i]
		switch t.suffix {
		case "SECRET", "BWRAP", "QUIET", "POLICY", "RECIPE", "DEFINE", "REQUIRE_APPROVED", "MANIFEST":
			for _, e := range t.entries(&s) {
				return wrong(Entry{By: e.By}, "wrong policy", "a policy cannot say "+t.name(),
					"only who starts the run can, with --"+t.flag)
			}
		}
	}
	return nil
}

// deltas narrows base by all deltas in order. dropped is what of them has no effect.
func deltas(base Settings, src Sources) (after Settings, dropped []Change, err error) {
	after = base
	apply := func(d File, recipe bool) {
		if err == nil {
			var note []Change
			after, note, err = narrow(after, d, recipe, src)
			dropped = append(dropped, note...)
		}
	}
	if src.Policy != nil {
		for _, d := range src.Policy.Narrow {
			apply(d, false)
		}
	}
	for _, r := range src.Recipes {
		apply(r, true)
		for _, d := range r.Narrow {
			apply(d, false)
		}
	}
	if err != nil {
		return Settings{}, nil, err
	}
	return after, dropped, nil
}

// clean makes the paths of c as those of the grants are.
func (c Confined) clean() Confined { return Confined{path.Clean(c.Path), path.Clean(c.Root)} }

// stillGranted leaves those of cs whose path is in a list of s, each once.
func stillGranted(cs []Confined, s Settings) []Confined {
	var out []Confined
	granted := make(index)
	for i := range table {
		for _, e := range table[i].entries(&s) {
			if table[i].path {
				granted[e.Value] = e
			}
		}
	}
	seen := make(map[Confined]bool)
	for _, c := range cs {
		if _, ok := granted[c.Path]; ok && !seen[c] {
			seen[c] = true
			out = append(out, c)
		}
	}
	return out
}
