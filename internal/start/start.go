// Package start takes a run from what was asked to its end: it reads the settings, decides, and either returns because
// the program may go on, or makes the cage, supervises it and ends the process. reexec is its public face for host
// programs, and the run command calls it with flags on top.
package start

import (
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/selfcage/selfcage/binds"
	"github.com/selfcage/selfcage/enforce/seccomp"
	"github.com/selfcage/selfcage/internal/hostfs"
	"github.com/selfcage/selfcage/internal/launch"
	"github.com/selfcage/selfcage/internal/refusal"
	"github.com/selfcage/selfcage/plan"
	"github.com/selfcage/selfcage/policy"
	"github.com/selfcage/selfcage/probe"
	"github.com/selfcage/selfcage/report"
	"github.com/selfcage/selfcage/toolchain"
)

// Program is the program that may put itself into a cage.
type Program struct {
	Name     string          // of the host program; decides the prefix of its variables
	Flags    policy.Settings // from its command line, the strongest
	Options  policy.Settings // from its source, the weakest
	Operands int             // index in os.Args of the first word that is not the cage's own
	Runs     string          // the command that the program executes inside, if that is all it does
}

// Label is what messages begin with.
func (p Program) Label() string {
	if p.Name == "" {
		return "selfcage"
	}
	return p.Name
}

// Settings reads the variables and merges them with flags and options.
func (p Program) Settings(environ []string) (policy.Settings, error) {
	fromEnv, err := policy.FromEnv(policy.Prefix(p.Name), environ)
	if err != nil {
		return policy.Settings{}, err
	}
	options, err := p.Options.Validate()
	if err != nil {
		return policy.Settings{}, err
	}
	return policy.Merge(p.Flags, fromEnv, options), nil
}

// Enter does what a host program does first. It returns nil when the program may go on: nobody asked for a cage, or
// it is inside. Otherwise it makes the cage and never returns, or returns why it could not.
func (p Program) Enter() error {
	marker, marked := os.LookupEnv(launch.StartVar)
	inside := launch.Inside()
	if marked && inside {
		if err := launch.Enter(marker); err != nil {
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
		// Somebody's variable, not ours: it proves nothing and must not reach what this program starts.
		_ = os.Unsetenv(launch.StartVar)
	}
	environ := os.Environ()
	s, err := p.Settings(environ)
	if err != nil {
		return err
	}
	if p.off(s) {
		if inside {
			p.note(s, "mode off asked for inside a cage: it stays in force, since one cannot leave")
		}
		return nil
	}
	if inside {
		return p.nested(s, environ)
	}
	return p.cage(s, environ)
}

// possible refuses what must not be skipped silently: a misspelt variable, a setting that is not there yet, a secret
// that is not set.
func (p Program) possible(s policy.Settings, environ []string) error {
	for _, err := range []error{policy.Misspelt(policy.Prefix(p.Name), environ), s.Unsupported(), s.UnsetSecret(environ)} {
		if err != nil {
			return err
		}
	}
	return nil
}

func (p Program) off(s policy.Settings) bool {
	return s.Mode.Value == "" && s.Policy.Value == "" || s.Mode.Value == string(policy.Off)
}

// cage makes the cage and ends the process as the program in it ended.
func (p Program) cage(s policy.Settings, environ []string) error {
	rep, err := report.Begin(s)
	if err != nil {
		return err
	}
	end, err := p.run(rep, s, environ)
	if err != nil {
		if err := rep.Refused(err); err != nil {
			p.say("note: " + err.Error())
		}
		return err
	}
	if len(end.Left) > 0 {
		p.note(s, "still ran when the program ended, and was ended: "+strings.Join(end.Left, ", "))
	}
	if err := rep.Ended(end.Status, end.Signal); err != nil {
		p.say("note: " + err.Error())
	}
	end.Exit()
	return nil
}

func (p Program) run(rep *report.Run, s policy.Settings, environ []string) (end launch.End, err error) {
	if err := p.possible(s, environ); err != nil {
		return end, err
	}
	path, err := probe.Bwrap(s.Bwrap)
	if err != nil {
		return end, err
	}
	pl, err := p.Plan(s, environ)
	if err != nil {
		return end, err
	}
	if len(pl.Create) > 0 {
		if err := create(pl.Create); err != nil {
			return end, err
		}
		if pl, err = p.Plan(s, environ); err != nil { // now that each of them is a file that can be told from another
			return end, err
		}
	}
	rep.Planned(pl)
	for _, n := range pl.Notes {
		p.note(s, n)
	}
	end, failure := launch.Run(launch.Cage{Bwrap: path, Plan: pl, Met: rep.Observe})
	if failure != nil {
		return end, explain(path, pl, failure)
	}
	return end, nil
}

// Unused says which grants go unused when an explicit off makes a command run as it is.
func (p Program) Unused(environ []string) {
	s, err := p.Settings(environ)
	if err != nil || s.Mode.Value != string(policy.Off) || launch.Inside() {
		return
	}
	note := "mode off (" + s.Mode.By + "): nothing is confined"
	var unused []string
	for _, e := range s.Said() {
		if e.By != s.Quiet.By {
			unused = append(unused, e.By+" "+plan.Quote(e.Value))
		}
	}
	if len(unused) > 0 {
		note += "; unused: " + strings.Join(unused, ", ")
	}
	p.note(s, note)
}

// Plan makes the plan for this process as it was started.
func (p Program) Plan(s policy.Settings, environ []string) (*plan.Plan, error) {
	return p.PlanFor(s, environ, os.Args)
}

// PlanFor makes the plan for this process as if it had been started with the command line args.
func (p Program) PlanFor(s policy.Settings, environ, args []string) (*plan.Plan, error) {
	facts, err := Facts(environ)
	if err != nil {
		return nil, err
	}
	facts.Args = args
	facts.Operands = p.Operands
	filter, err := seccomp.Filter(seccomp.Keep, runtime.GOARCH)
	if err != nil {
		return nil, err
	}
	req := plan.Request{
		Runs: p.Runs, Name: p.Label(), Prefix: policy.Prefix(p.Name), NoNet: s.Network.Value == "none",
		Allow: values(s.Env), Secret: values(s.Secret), Filter: filter,
	}
	for _, list := range []struct {
		entries []policy.Entry
		access  binds.Kind
	}{{s.Readable, binds.ReadOnly}, {s.Writable, binds.ReadWrite}, {s.Device, binds.Device}} {
		for _, e := range list.entries {
			req.Grants = append(req.Grants, plan.Grant{Path: e.Value, Access: list.access, By: e.By})
		}
	}
	for _, e := range s.Cache {
		req.Caches = append(req.Caches, plan.Cache{Name: e.Value, By: e.By})
	}
	if err := oneOrTwo(req.Prefix, environ, facts.Dir); err != nil {
		return nil, err
	}
	if req.Rewrite, err = rewrite(req.Prefix, environ, facts.Dir); err != nil {
		return nil, err
	}
	pl, err := plan.Build(facts, req)
	if err != nil {
		return nil, err
	}
	pl.Seal()
	return pl, nil
}

// create makes what a tool's cache lacks, as the tool would: for its user alone.
func create(list []plan.Missing) error {
	for _, m := range list {
		var err error
		if m.IsDir {
			err = os.MkdirAll(m.Path, 0o700)
		} else {
			var f *os.File
			if f, err = os.OpenFile(m.Path, os.O_WRONLY|os.O_CREATE, 0o600); err == nil {
				err = f.Close()
			}
		}
		if err != nil {
			return &refusal.Error{What: "cannot grant " + m.Reason.By, Object: plan.Quote(m.Path), Cause: "it is missing and cannot be made: " + err.Error(),
				Hint: "make it, or set the tool's own variable to a directory that you may write", Err: err}
		}
	}
	return nil
}

func values(es []policy.Entry) (vs []string) {
	for _, e := range es {
		vs = append(vs, e.Value)
	}
	return vs
}

// oneOrTwo refuses a list in which neighbours are, together, one path that exists: it was meant, perhaps, and a grant
// of its halves is not what anybody wants.
func oneOrTwo(prefix string, environ []string, dir string) error {
	for _, suffix := range []string{"READABLE", "WRITABLE"} {
		name := prefix + suffix
		parts := strings.Split(plan.Getenv(environ, name), ":")
		for i := range parts {
			for j := i + 2; j <= len(parts) && parts[i] != ""; j++ {
				whole := strings.Join(parts[i:j], ":")
				if strings.HasSuffix(whole, ":") {
					continue // an empty element, which is ignored
				}
				if _, err := os.Lstat(hostfs.Abs(whole, dir)); err == nil {
					return &refusal.Error{
						What: "wrong value", Object: name,
						Cause: plan.Quote(whole) + " is a path that exists, and the list is split at each ':'",
						Hint:  "a path that holds ':' can be granted by --read and --write only, not by a variable",
					}
				}
			}
		}
	}
	return nil
}

// rewrite gives the variables that list paths the same meaning in every directory, so that a program started from
// another one asks for the same.
func rewrite(prefix string, environ []string, dir string) (vars []plan.Var, err error) {
	for _, suffix := range []string{"READABLE", "WRITABLE"} {
		name := prefix + suffix
		value := plan.Getenv(environ, name)
		if value == "" {
			continue
		}
		parts := strings.Split(value, ":")
		for i, part := range parts {
			if part == "" || strings.HasPrefix(part, "/") {
				continue
			}
			if strings.Contains(dir, ":") {
				return nil, &refusal.Error{
					What: "wrong value", Object: name,
					Cause: "it holds a relative path, and the working directory " + plan.Quote(dir) + " contains ':'",
					Hint:  "write the path in full with --read or --write",
				}
			}
			parts[i] = hostfs.Abs(part, dir)
		}
		if v := strings.Join(parts, ":"); v != value {
			vars = append(vars, plan.Var{Name: name, Value: v, Reason: binds.Reason{By: "base", Why: "its relative paths are made absolute"}})
		}
	}
	return vars, nil
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

// nested compares what is asked for inside a cage with what the cage gives: one can neither leave nor widen it.
func (p Program) nested(s policy.Settings, environ []string) error {
	if err := p.possible(s, environ); err != nil {
		return err
	}
	if by := s.Report.By; strings.HasPrefix(by, "-") {
		// From a variable it is the one that the cage around was asked for.
		p.note(s, by+" "+plan.Quote(s.Report.Value)+": no report is written inside a cage")
	}
	refuse := func(e policy.Entry, cause string) error {
		return &refusal.Error{
			What: "cannot make another cage inside this one", Object: e.By + " " + plan.Quote(e.Value), Cause: cause,
			Hint: "ask for it where the outer cage is made, or leave it out here",
		}
	}
	data, err := os.ReadFile(plan.GrantsFile)
	around, ok := plan.ParseGrants(data)
	if err != nil || !ok {
		return &refusal.Error{What: "cannot read the grants of the cage around it", Object: plan.GrantsFile, Cause: "it is missing or not whole", Err: err}
	}
	if s.Network.Value == "none" && around.ShareNet {
		return refuse(s.Network, "the cage shares the host's network")
	}
	if s.Network.Value == "shared" && !around.ShareNet {
		return refuse(s.Network, "the cage has no network")
	}
	dir, err := os.Getwd()
	if err != nil {
		return &refusal.Error{What: "cannot use the working directory", Cause: err.Error(), Hint: "change to a directory that exists", Err: err}
	}
	host := hostfs.New(hostfs.OS{})
	writable := s.Writable
	for _, e := range s.Cache {
		c, err := toolchain.CacheNamed(toolchain.Host{View: host, FS: hostfs.OS{}, Env: environ}, e.By, e.Value)
		if err != nil {
			return err
		}
		for _, p := range append(c.Dirs, c.Files...) {
			writable = append(writable, policy.Entry{Value: p, By: e.By + " " + e.Value})
		}
	}
	for _, list := range []struct {
		entries []policy.Entry
		ok      func(binds.Kind) bool
		cause   string
	}{
		{s.Readable, func(k binds.Kind) bool { return k.Bind() || k == binds.File || k == binds.Tmpfs }, "the cage does not show it"},
		// What is made in a private place can be written as long as the cage is there.
		{writable, func(k binds.Kind) bool { return k == binds.ReadWrite || k == binds.Tmpfs }, notWritable},
		{s.Device, func(k binds.Kind) bool { return k == binds.Device || k == binds.Dev }, "the cage does not have this device"},
	} {
		for _, e := range list.entries {
			r, err := host.Walk(hostfs.Abs(e.Value, dir))
			if err != nil {
				return refuse(e, list.cause)
			}
			if m, ok := binds.Cover(around.Mounts, r.Path); !ok || !list.ok(m.Kind) || list.cause == notWritable && remounted(around.Mounts, m.Target) {
				return refuse(e, list.cause+": "+strconv.Quote(r.Path))
			}
		}
	}
	return nil
}

const notWritable = "the cage does not make it writable"

// remounted says whether the mount at target was made read-only afterwards.
func remounted(ms []binds.Mount, target string) bool {
	for _, m := range ms {
		if m.Kind == binds.RemountRO && m.Target == target {
			return true
		}
	}
	return false
}

// explain turns a failed start into its refusal: what failed here is known, what bwrap failed at is found out.
func explain(bwrap string, pl *plan.Plan, f *launch.Failure) *refusal.Error {
	if f.Step != "" {
		e := &refusal.Error{What: "cannot make the cage", Object: f.Step, Cause: f.Err.Error() + "; nothing was run", Err: f.Err}
		if f.Exchanged {
			e.Hint = "it was replaced while the cage was made: start again when that is over"
		}
		return e
	}
	known := probe.Failure{Status: f.Status, Program: f.Met}
	if f.Signal != 0 {
		known.Status, known.Signaled = f.Signal, true
	}
	return probe.Diagnose(bwrap, pl, known)
}
