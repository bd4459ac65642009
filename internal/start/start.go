// Package start takes a run from what was asked to its end: it reads the settings, decides, and either returns because
// the program may go on, or makes the cage, supervises it and ends the process. reexec is its public face for host
// programs, and the run command calls it with flags on top.
package start

import (
	"os"
	"slices"
	"strings"

	"github.com/selfcage/selfcage/env"
	"github.com/selfcage/selfcage/internal/launch"
	"github.com/selfcage/selfcage/internal/refusal"
	"github.com/selfcage/selfcage/plan"
	"github.com/selfcage/selfcage/policy"
	"github.com/selfcage/selfcage/report"
)

// Program is the program that may put itself into a cage. What it does not hand in, a run that asks for is refused.
type Program struct {
	Name     string          // of the host program; decides the prefix of its variables
	Flags    policy.Settings // from its command line, the strongest
	Options  policy.Settings // from its source, the weakest
	Operands int             // index in os.Args of the first word that is not the cage's own
	Runs     string          // the command that the program executes inside, if that is all it does

	Tokens   map[string]string                                            // what {NAME} stands for in policy files
	Load     func(path string, o policy.FileOptions) (policy.File, error) // reads policy files
	Approved func(file string, s policy.Settings) error                   // refuses what is wider than what was approved
	Manifest func(p *plan.Plan, pid int) []byte                           // what the run can see, a JSON object
}

// Label is what messages begin with.
func (p Program) Label() string {
	if p.Name == "" {
		return "selfcage"
	}
	return p.Name
}

// Enter does what a host program does first. It returns nil when the program may go on: nobody asked for a cage, or
// it is inside, or the mode is one without a cage. Otherwise it makes the cage and never returns, or returns why it could
// not.
func (p Program) Enter() error {
	marker, marked := os.LookupEnv(launch.StartVar)
	inside := launch.Inside()
	again := marked && launch.Again(marker)
	if marked && inside && !again {
		if err := launch.Enter(marker, tryAll); err != nil {
			return &refusal.Error{What: "cannot complete the start inside the cage", Cause: err.Error(), Hint: "start the program again", Err: err}
		}
		return nil
	}
	if marked && launch.Reached(marker) {
		return &refusal.Error{
			What: "cannot make the cage", Cause: "what was to make it has started the program without one; nothing was run unconfined",
			Hint: "name a real bubblewrap with --bwrap or " + policy.Prefix(p.Name) + "BWRAP",
		}
	}
	if marked {
		// Ours from a moment ago, or somebody's: it must not reach what this program starts.
		_ = os.Unsetenv(launch.StartVar)
	}
	if again {
		return nil // executed once more with a clean environment, in which its settings may read otherwise
	}
	environ := os.Environ()
	if inside {
		return p.nested(environ)
	}
	eff, err := p.Asked(environ)
	if err != nil {
		p.reportOf(environ, err)
		return err
	}
	if Off(eff) {
		return p.off(eff)
	}
	return p.confine(eff, environ)
}

// reportOf writes the report of a run whose settings cannot be read, where those that can ask for one.
func (p Program) reportOf(environ []string, err error) {
	src, e := p.sources(environ)
	if e != nil {
		return
	}
	s := policy.Merge(src.Flags, src.Env, src.Options)
	if rep, e := report.Begin(policy.Effective{Settings: s}); e == nil {
		_ = rep.Refused(err)
	}
}

// Possible refuses what must not be skipped silently: a misspelt variable, a setting that is not there yet, a secret
// that is not set or that the mode does not permit, a policy that is missing or wider than what was approved.
func (p Program) Possible(eff policy.Effective, environ []string) error {
	s := eff.Settings
	for _, err := range []error{policy.Misspelt(policy.Prefix(p.Name), environ), s.Unsupported(), s.UnsetSecret(environ)} {
		if err != nil {
			return err
		}
	}
	if err := p.noSecrets(eff, environ); err != nil {
		return err
	}
	if e := first(s.Secret); e.Value != "" && s.Mode.Value == string(policy.Enforced) {
		return &refusal.Error{What: "cannot let a secret through", Object: e.By + " " + plan.Quote(e.Value), Cause: "mode enforced permits none (" + s.Mode.By + ")",
			Hint: "leave it out, or use mode bwrap"}
	}
	if s.Mode.Value == string(policy.Enforced) && !eff.InForce && !grantsAnything(s) {
		return &refusal.Error{What: "mode enforced needs a policy", Object: s.Mode.By, Cause: "there is no policy file, and nobody said what the run may use",
			Hint: "name a policy file with --policy, or say it on the command line: --write DIR, --network none"}
	}
	if e := s.Manifest; e.Value == "1" && s.Report.Value == "" {
		return &refusal.Error{What: "nowhere to put the manifest", Object: e.By, Cause: "it is a part of the report, and none was asked for", Hint: "add --report FILE"}
	}
	if s.Manifest.Value == "1" && p.Manifest == nil {
		return notBuiltIn(s.Manifest, "Options.Manifest: manifest.Collect")
	}
	return p.approved(eff)
}

// grantsAnything says whether somebody has said what the run may use, or that it may not.
func grantsAnything(s policy.Settings) (said bool) {
	s.Each(func(name string, _ bool, _ []policy.Entry) {
		switch name {
		case "mode", "bwrap", "report", "quiet", "define", "manifest", "require_approved", "note", "recipe":
		default:
			said = true
		}
	})
	return said
}

// noSecrets refuses each name that is a secret and was asked for as an ordinary variable, with the place that asked.
func (p Program) noSecrets(eff policy.Effective, environ []string) error {
	for _, e := range eff.Env {
		_, _, err := env.Scrub(environ, env.Rules{Clean: cleanMode(eff), Allow: []string{e.Value}, Secret: values(eff.Secret)})
		r, ok := err.(*refusal.Error)
		if !ok {
			continue
		}
		with := *r
		with.Object = e.By + " " + r.Object
		if eff.Mode.Value == string(policy.Enforced) {
			with.Hint = "leave it out: in mode enforced no secret passes; in mode bwrap --secret " + e.Value + " would pass it on one run"
		}
		return &with
	}
	return nil
}

func (p Program) approved(eff policy.Effective) error {
	switch e := eff.RequireApproved; {
	case e.Value != "1":
		return nil
	case eff.Policy.Value == "":
		return &refusal.Error{What: "cannot tell what was approved", Object: e.By, Cause: "there is no policy file, and it is policy files that are approved", Hint: "name one with --policy"}
	case p.Approved == nil:
		return notBuiltIn(e, "Options.Approved: approval.Require")
	default:
		return p.Approved(eff.Policy.Value, eff.Settings)
	}
}

// notBuiltIn: what a host program does not ask for is not linked, and a setting that needs it is never ignored.
func notBuiltIn(e policy.Entry, option string) error {
	return &refusal.Error{What: "this program was built without what the setting needs", Object: e.By + " " + plan.Quote(e.Value),
		Cause: "its author has not set " + option, Hint: "leave the setting out, or run the program by selfcage run"}
}

func first(es []policy.Entry) policy.Entry {
	if len(es) == 0 {
		return policy.Entry{}
	}
	return es[0]
}

// off is what happens where nothing is to be confined: nothing, unless it is a policy file that says so. Somebody has named
// that file in order to be confined, so it is said, and what was approved counts.
func (p Program) off(eff policy.Effective) error {
	if !eff.InForce {
		return nil
	}
	if err := p.approved(eff); err != nil {
		return err
	}
	if p.Runs == "" { // the run command says it by itself
		p.note(eff.Settings, "mode off ("+eff.Mode.By+"): nothing is confined"+unused(eff.Settings))
	}
	return nil
}

// Off says whether nothing at all is to happen.
func Off(eff policy.Effective) bool {
	return eff.Mode.Value == "" && !eff.InForce || eff.Mode.Value == string(policy.Off)
}

// Unused says which grants go unused when an explicit off makes a command run as it is.
func (p Program) Unused(environ []string) {
	eff, err := p.Asked(environ)
	if err == nil && eff.Mode.Value == string(policy.Off) && !launch.Inside() {
		p.note(eff.Settings, "mode off ("+eff.Mode.By+"): nothing is confined"+unused(eff.Settings))
	}
}

// unused lists what was said and has no effect, but for settings that have one all the same.
func unused(s policy.Settings, used ...string) string {
	used = append(used, "mode", "quiet", "report")
	var list []string
	s.Each(func(name string, _ bool, entries []policy.Entry) {
		for _, e := range entries {
			if !slices.Contains(used, name) && !strings.Contains(e.By, ": no ") { // nobody said what a policy leaves out
				list = append(list, e.By+" "+plan.Quote(e.Value))
			}
		}
	})
	if len(list) == 0 {
		return ""
	}
	return "; unused: " + strings.Join(list, ", ")
}

// note tells of something that the run survives, unless the user wants to hear of none.
func (p Program) note(s policy.Settings, text string) {
	if s.Quiet.Value != "1" {
		p.say("note: " + text)
	}
}

// say prints one line on standard error.
func (p Program) say(s string) { toStderr(p.Label() + ": sandbox: " + refusal.Printable(s) + "\n") }

// Fail prints a refusal and ends the process with its status.
func (p Program) Fail(err error) {
	status := refusal.CannotCage
	out := p.Label() + ": sandbox: " + refusal.Printable(err.Error()) + "\n"
	if r, ok := err.(*refusal.Error); ok {
		status = r.ExitStatus()
		if r.Hint != "" {
			out += "hint: " + r.Hint + "\n"
		}
	}
	toStderr(out)
	os.Exit(status)
}
