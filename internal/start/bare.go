package start

import (
	"os"
	"slices"
	"strings"

	"github.com/selfcage/selfcage/env"
	"github.com/selfcage/selfcage/internal/launch"
	"github.com/selfcage/selfcage/internal/refusal"
	"github.com/selfcage/selfcage/policy"
	"github.com/selfcage/selfcage/probe"
	"github.com/selfcage/selfcage/report"
	"github.com/selfcage/selfcage/toolchain"
)

// disabled is off with a word about it (seeds R7): in the report and, unless quiet, on standard error.
func (p Program) disabled(rep *report.Run, eff policy.Effective) error {
	p.note(eff.Settings, "mode disabled ("+eff.Mode.By+"): nothing is confined and the environment is as it was"+unused(eff.Settings))
	return rep.Handed(nil, nil)
}

// containerOwned is for a policy that says that a container runtime isolates: a second cage would be the runtime's again,
// or fail. Its word is not taken where no container is seen, since that would be a way around every mode.
func (p Program) containerOwned(rep *report.Run, eff policy.Effective, environ []string) error {
	name := probe.Container()
	if name == "" {
		return &refusal.Error{What: "cannot leave the isolation to a container runtime", Object: eff.Note.By, Cause: "the policy's note says " + policy.ContainerNote + ", and this process is in no container; nothing was run",
			Hint: "take the note out of the policy, or start the program in its container"}
	}
	rep.Engine(report.Runtime)
	p.say("note: the policy leaves isolation to the container runtime (" + name + "): selfcage confines nothing but the environment")
	return p.scrubOnly(rep, eff, environ, false)
}

// degrade is what mode auto does where there is no engine: the environment is cleaned, and what is lost is said, also to
// those who want no notes.
func (p Program) degrade(rep *report.Run, eff policy.Effective, environ []string, why error) error {
	cause, _, _ := strings.Cut(why.Error(), "; refusing to run unconfined")
	p.say("note: mode auto: there is no cage, only the environment is cleaned: " + cause)
	rep.Engine(report.None)
	lost := report.Unenforced(eff.Settings)
	rep.Lost(lost, cause)
	p.say("note: not enforced: " + strings.Join(lost, ", "))
	return p.scrubOnly(rep, eff, environ, true)
}

// scrubOnly leaves this process nothing but a clean environment. It returns nil when that is so already; otherwise it
// executes this program once more, since what a process was started with can be read in /proc as long as it lives.
// again executes it in any case: a start that failed has changed this process.
func (p Program) scrubOnly(rep *report.Run, eff policy.Effective, environ []string, again bool) error {
	kept, dropped, err := p.Scrubbed(eff, environ)
	if err != nil {
		return err
	}
	if err := rep.Handed(kept, dropped); err != nil {
		return err
	}
	clean := environOf(kept)
	if !again && slices.Equal(clean, environ) {
		return nil
	}
	err = launch.ExecAgain(executablePath(), clean)
	return &refusal.Error{What: "cannot clean the environment", Cause: "the program cannot be executed once more: " + err.Error() + "; nothing was run", Err: err}
}

// hostPlaces are the directories of a user on the host, which a cage would have its own in place of.
var hostPlaces = [...]string{"HOME", "PWD", "OLDPWD", "TMPDIR", "TMP", "TEMP", "TEMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME",
	"XDG_STATE_HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_DIRS", "XDG_DATA_DIRS"}

func environOf(kept []env.Kept) []string {
	list := make([]string, len(kept))
	for i, k := range kept {
		list[i] = k.Name + "=" + k.Value
	}
	return list
}

// Scrubbed splits the environment as modes without a cage do: to the clean level, where the host's own places stay, since
// there are no others, and what tells where tools are.
func (p Program) Scrubbed(eff policy.Effective, environ []string) ([]env.Kept, []env.Dropped, error) {
	rules := env.Rules{Clean: true, Allow: values(eff.Env), Secret: values(eff.Secret), Visible: onHost}
	kept, dropped, err := env.Scrub(environ, rules)
	if err != nil {
		return nil, nil, err
	}
	stay, _, err := env.Scrub(environ, env.Rules{Visible: onHost})
	if err != nil {
		return nil, nil, err
	}
	for _, k := range stay {
		i := slices.IndexFunc(dropped, func(d env.Dropped) bool { return d.Name == k.Name })
		switch {
		case i < 0:
			continue
		case slices.Contains(hostPlaces[:], k.Name):
			k.Rule = "place of the host's"
		case toolchain.Location(k.Name):
			k.Rule = "location of a tool"
		default:
			continue
		}
		kept = append(kept, k)
		dropped = slices.Delete(dropped, i, i+1)
	}
	// The report is this run's; whatever it starts would write its own over it.
	name := policy.Prefix(p.Name) + "REPORT"
	if n := len(kept); len(slices.DeleteFunc(kept, func(k env.Kept) bool { return k.Name == name })) < n {
		kept = kept[:n-1]
		dropped = append(dropped, env.Dropped{Name: name, Rule: "the report is this run's own"})
	}
	return kept, dropped, nil
}

func onHost(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
