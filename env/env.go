// Package env decides which environment variables enter a cage, and why.
//
// Scrub has two levels. Both drop what is a secret by its name, by the shape of its name or by its value; what names a
// socket, a directory or a library that is not visible inside; and what is no variable at all.
//
// At the scrubbed level everything else stays, since a program that loses LD_LIBRARY_PATH, GOFLAGS or its own
// configuration behaves differently without a word.
//
// At the clean level (Rules.Clean) nothing stays but
//
//   - the system runtime's own: PATH, USER, LOGNAME, SHELL, LANG, LANGUAGE, LC_*, TZ, and of the terminal TERM, COLORTERM,
//     NO_COLOR, FORCE_COLOR, CLICOLOR, CLICOLOR_FORCE, COLUMNS and LINES;
//   - the launchers': SLURM_*, OMPI_*, PMIX_*, PMI_*, HYDRA_*, PBS_*, LSB_* and FLUX_*;
//   - the settings of a host program's cage: SANDBOX_MODE, HYPERLOOM_SANDBOX_READABLE and so on;
//   - the names of Rules.Allow.
//
// HOME, TMPDIR, PWD and XDG_* are not among them: who makes the cage sets them. A proxy, a certificate bundle, what
// changes what programs execute (LD_LIBRARY_PATH, PYTHONPATH, NODE_OPTIONS, BASH_ENV, GIT_*, GOFLAGS) and the harmless
// members of a vendor's family (AWS_REGION, GITHUB_SHA) pass by name only. All of LEMONADE_* is secret at this level.
//
// The clean level keeps only what the scrubbed one keeps under the same rules, and refuses all that it refuses.
//
// # Limitations
//
// A secret in a variable with a harmless name and no known form passes, at the clean level if its name does. At the
// scrubbed level names are not judged by who reads them: vendors' families and what changes what programs execute stay.
//
// The package is pure: it reads no file and not the process's own environment.
package env

import (
	"strconv"
	"strings"

	"github.com/selfcage/selfcage/internal/refusal"
)

// Kept is a variable that enters the cage.
type Kept struct {
	Name  string
	Value string
	Rule  string // why it passes: "not secret", "system runtime", "launcher", "--env", "--secret"
}

// Dropped is a variable that does not enter the cage. It never holds a value.
type Dropped struct {
	Name string // empty when the entry was no NAME=VALUE
	Rule string // why it was dropped: "secret name", "secret shape: ends in _TOKEN", "not on the allowlist"
}

// Rules are the decisions that Scrub cannot take by itself.
type Rules struct {
	Clean   bool                   // start from nothing: only what is listed passes, and Allow is part of the list
	Allow   []string               // let through although Scrub would drop them; never a secret (--env)
	Secret  []string               // secrets let through on this run (--secret)
	Visible func(path string) bool // is this absolute path visible inside? nil: nothing is
}

// The values of Kept.Rule; rulePartly may follow any.
const (
	ruleHarmless = "not secret"
	ruleRuntime  = "system runtime"
	ruleLauncher = "launcher"
	ruleSetting  = "setting of a cage"
	ruleAllow    = "--env"
	ruleSecret   = "--secret"
	rulePartly   = ", without the entries that are not visible"
	rulePreload  = ruleHarmless + rulePartly
)

// Scrub splits environ, which has the form of os.Environ, into what is kept and what is dropped, both in the order of
// environ.
//
// When a name occurs twice the first entry counts, as for getenv(3) and os.Getenv, and the others vanish: bash reads the
// last one, so keeping both would let a variable be judged by one value and used with another.
//
// At the scrubbed level Rules.Allow also lets through what names something that is not visible; at the clean level it
// does not. Rules.Secret passes a variable at either level, as it is; a mode that permits no secret refuses it before.
//
// A name of Rules.Allow that is a secret, and a name of Rules.Secret that is not set, are a *refusal.Error.
func Scrub(environ []string, r Rules) (kept []Kept, dropped []Dropped, err error) {
	s := newScrubber(environ, r)
	if err := s.check(); err != nil {
		return nil, nil, err
	}
	for i, entry := range environ {
		name, value, ok := strings.Cut(entry, "=")
		if !ok || name == "" {
			// The entry itself is not shown: without a name, all of it may be a value.
			dropped = append(dropped, Dropped{Rule: "entry " + strconv.Itoa(i+1) + " is not NAME=VALUE"})
			continue
		}
		if s.first[name] != i {
			continue
		}
		value, keep, drop := s.judge(name, value)
		if drop != "" {
			dropped = append(dropped, Dropped{Name: name, Rule: drop})
			continue
		}
		kept = append(kept, Kept{Name: name, Value: value, Rule: keep})
	}
	kept, dropped = wholeGitConfig(kept, dropped)
	return kept, dropped, nil
}

// wholeGitConfig drops the numbered GIT_CONFIG_ variables together: with one missing git refuses to do anything. A key
// may be a secret as well as a value: url.https://user:password@host/.insteadOf.
func wholeGitConfig(kept []Kept, dropped []Dropped) ([]Kept, []Dropped) {
	broken := false
	for _, d := range dropped {
		broken = broken || strings.HasPrefix(d.Name, "GIT_CONFIG_KEY_") || strings.HasPrefix(d.Name, "GIT_CONFIG_VALUE_")
	}
	if !broken {
		return kept, dropped
	}
	rest := kept[:0]
	for _, k := range kept {
		switch {
		case k.Name == "GIT_CONFIG_COUNT", strings.HasPrefix(k.Name, "GIT_CONFIG_KEY_"), strings.HasPrefix(k.Name, "GIT_CONFIG_VALUE_"):
			dropped = append(dropped, Dropped{Name: k.Name, Rule: "belongs to a set of which a variable is dropped"})
		default:
			rest = append(rest, k)
		}
	}
	return rest, dropped
}

// scrubber is an environment with the rules for it.
type scrubber struct {
	environ []string
	first   map[string]int // name to index of its first entry
	rules   Rules
}

func newScrubber(environ []string, r Rules) *scrubber {
	s := &scrubber{environ: environ, first: make(map[string]int, len(environ)), rules: r}
	for i, entry := range environ {
		name, _, ok := strings.Cut(entry, "=")
		if !ok || name == "" {
			continue
		}
		if _, dup := s.first[name]; !dup {
			s.first[name] = i
		}
	}
	return s
}

// get is os.LookupEnv on the environment that is scrubbed.
func (s *scrubber) get(name string) (value string, ok bool) {
	i, ok := s.first[name]
	if !ok {
		return "", false
	}
	return s.environ[i][len(name)+1:], true
}

func (s *scrubber) visible(path string) bool {
	return s.rules.Visible != nil && s.rules.Visible(path)
}

// judge returns either the rule that keeps a variable, with the value it is kept with, or the rule that drops it.
func (s *scrubber) judge(name, value string) (newValue, keep, drop string) {
	if contains(s.rules.Secret, name) {
		return value, ruleSecret, ""
	}
	if value != "" {
		if rule := s.secret(name, value); rule != "" {
			return "", "", rule
		}
	}
	switch {
	case s.rules.Clean:
		if keep = s.listed(name); keep == "" {
			return "", "", unlisted(name)
		}
	case value != "" && contains(s.rules.Allow, name):
		return value, ruleAllow, ""
	default:
		keep = harmless(name)
	}
	// A variable that is set and empty holds no secret and names nothing, and it differs from an unset one.
	if value == "" {
		return value, keep, ""
	}
	if name == "LD_PRELOAD" || name == "LD_AUDIT" {
		return s.preload(keep, value)
	}
	if rule := s.hidden(name, value); rule != "" {
		return "", "", rule
	}
	return value, keep, ""
}

// secret returns the rule by which a variable is a secret, or "".
func (s *scrubber) secret(name, value string) string {
	if !s.ownSetting(name, value) {
		if rule := secretName(name, value); rule != "" {
			return rule
		}
	}
	if s.rules.Clean && neverListed(name) {
		return "secret name: all of LEMONADE_"
	}
	if what := secretValue(value); what != "" {
		return "value looks like " + what
	}
	return ""
}

// ownSetting tells our own …_SANDBOX_SECRET, which lists names, from a secret of the same shape: each name that it lists
// is set, or the run would have been refused.
func (s *scrubber) ownSetting(name, value string) bool {
	if name != "SANDBOX_SECRET" && !strings.HasSuffix(name, "_SANDBOX_SECRET") {
		return false
	}
	for _, listed := range strings.Split(value, ",") {
		listed = strings.TrimSpace(listed)
		if _, ok := s.first[listed]; !ok && listed != "" {
			return false
		}
	}
	return true
}

// check refuses rules that contradict themselves, before anything is let through.
func (s *scrubber) check() error {
	for _, name := range s.rules.Secret {
		if err := checkName(name, "--secret"); err != nil {
			return err
		}
		if _, ok := s.get(name); !ok && name != "" {
			return &refusal.Error{What: "cannot pass a secret", Object: quote(name), Cause: "it is not set",
				Hint: "set " + quote(name) + ", or leave out --secret " + quote(name)}
		}
	}
	for _, name := range s.rules.Allow {
		if err := checkName(name, "--env"); err != nil {
			return err
		}
		if name == "" || contains(s.rules.Secret, name) {
			continue
		}
		// An unset or empty variable is judged by its name alone, or a policy would be right today and wrong tomorrow.
		value, _ := s.get(name)
		if rule := s.secret(name, value); rule != "" {
			return &refusal.Error{What: "cannot let a secret through", Object: quote(name), Cause: rule,
				Hint: "--secret " + quote(name) + " passes it on this run"}
		}
	}
	return nil
}

// checkName refuses NAME=VALUE where a name belongs. Only the name is shown: the value may be the secret itself.
func checkName(s, flag string) error {
	name, _, ok := strings.Cut(s, "=")
	if !ok {
		return nil
	}
	return &refusal.Error{What: "cannot pass a variable", Object: quote(name), Cause: flag + " takes a name, not NAME=VALUE",
		Hint: flag + " " + quote(name) + ", and set the variable before the command"}
}

// harmless is the rule that keeps a variable which nothing speaks against.
func harmless(name string) string {
	if launcher(name) {
		return ruleLauncher
	}
	return ruleHarmless
}

func contains(list []string, s string) bool {
	for _, e := range list {
		if e == s {
			return true
		}
	}
	return false
}

// quote leaves an ordinary name as it is, so that a hint can be pasted.
func quote(name string) string {
	for i := 0; i < len(name); i++ {
		if !isAlnum(name[i]) && name[i] != '_' {
			return strconv.Quote(name)
		}
	}
	if name == "" {
		return `""`
	}
	return name
}
