package start

import (
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/selfcage/selfcage/binds"
	"github.com/selfcage/selfcage/enforce/seccomp"
	"github.com/selfcage/selfcage/internal/launch"
	"github.com/selfcage/selfcage/internal/refusal"
	"github.com/selfcage/selfcage/plan"
	"github.com/selfcage/selfcage/policy"
	"github.com/selfcage/selfcage/probe"
	"github.com/selfcage/selfcage/report"
)

// confine does what the mode asks. It returns nil where the program may go on in this process, since the mode has no cage;
// with a cage it ends the process as the program in it ended.
func (p Program) confine(eff policy.Effective, environ []string) error {
	rep, err := report.Begin(eff)
	if err != nil {
		return err
	}
	err = p.byMode(rep, eff, environ)
	if err != nil {
		if err := rep.Refused(err); err != nil {
			p.say("note: " + err.Error())
		}
	}
	return err
}

func (p Program) byMode(rep *report.Run, eff policy.Effective, environ []string) error {
	if eff.Mode.Value == string(policy.Disabled) {
		if eff.InForce { // the policy says so itself
			if err := p.approved(eff); err != nil {
				return err
			}
		}
		return p.disabled(rep, eff)
	}
	if err := p.Possible(eff, environ); err != nil {
		return err
	}
	switch {
	case eff.Note.Value == policy.ContainerNote:
		return p.containerOwned(rep, eff, environ)
	case eff.Mode.Value == string(policy.ScrubbedOnly):
		p.note(eff.Settings, "mode scrubbed_only ("+eff.Mode.By+"): nothing is confined, only the environment is cleaned"+
			unused(eff.Settings, "env", "secret", "policy", "define", "recipe", "require_approved"))
		return p.scrubOnly(rep, eff, environ, false)
	}
	path, err := probe.Bwrap(eff.Bwrap)
	if err != nil {
		if eff.Mode.Value == string(policy.Auto) && eff.Bwrap.Value == "" {
			return p.degrade(rep, eff, environ, err)
		}
		return err
	}
	return p.cage(rep, eff, environ, path)
}

// cage makes the cage and ends the process as the program in it ended.
func (p Program) cage(rep *report.Run, eff policy.Effective, environ []string, bwrap string) error {
	pl, err := p.build(eff, environ, os.Args)
	if err != nil {
		return err
	}
	if len(pl.Create) > 0 {
		if err := create(pl.Create); err != nil {
			return err
		}
		if pl, err = p.build(eff, environ, os.Args); err != nil { // now that each of them is a file that can be told from another
			return err
		}
	}
	release, err := holdAll(pl)
	if err != nil {
		return err
	}
	pl.Seal()
	rep.Planned(pl)
	for _, n := range pl.Notes {
		p.note(eff.Settings, n)
	}
	auto := eff.Mode.Value == string(policy.Auto)
	var inherited []int
	if auto {
		inherited = launch.Inherited()
	}
	fixed := moor(pl, eff.Report.Value)
	end, failure := launch.Run(launch.Cage{Bwrap: bwrap, Plan: pl, Met: p.met(rep, eff, pl), Lost: p.lost(rep, eff)})
	adrift := fixed.adrift()
	release()
	if failure != nil {
		refused := explain(bwrap, pl, failure)
		if auto && !failure.Met && failure.Step == "" && !probe.Examine(eff.Bwrap).CanHold(pl) {
			launch.Undo(inherited)
			return p.degrade(rep, eff, environ, refused)
		}
		return refused
	}
	slices.Sort(adrift)
	for _, target := range adrift {
		if rep.LostMount(target) && !end.Lost {
			p.say("note: " + plan.Quote(target) + " was moved away or replaced on the host while the run lasted: what has its name now was neither hidden nor protected")
		}
	}
	for _, root := range pl.Checkouts {
		if why := broken(root); why != "" {
			p.say("note: the run has left " + plan.Quote(root) + " so that git takes something else for its repository: " + why + "; look before you run git there")
		}
	}
	if end.Lost {
		if err := rep.Ended(end.Status, 0); err != nil {
			p.say("note: " + err.Error())
		}
		p.Fail(&refusal.Error{What: "the run was ended", Cause: "its cage is not what it was: the host has replaced what it mounts over",
			Hint: "leave those files alone while a run of mode enforced lasts", Status: end.Status})
	}
	if len(end.Left) > 0 {
		p.note(eff.Settings, "still ran when the program ended, and was ended: "+strings.Join(end.Left, ", "))
	}
	if auto { // in other modes the run would not have begun
		for _, d := range rep.Differs() {
			p.say("note: not enforced: " + d)
		}
	}
	if err := rep.Ended(end.Status, end.Signal); err != nil {
		p.say("note: " + err.Error())
	}
	end.Exit()
	return nil
}

// broken says what is wrong with a checkout after a run that could write it. Where .git is no git directory any more, git
// takes the directory itself for one, if it looks like one, and runs what its configuration names.
func broken(root string) string {
	has := func(names ...string) bool {
		for _, n := range names {
			if _, err := os.Stat(root + "/" + n); err != nil {
				return false
			}
		}
		return true
	}
	switch {
	case has("HEAD", "objects", "refs"):
		return "it looks like a bare repository itself (HEAD, objects, refs)"
	case has(".git/objects", ".git/refs") && !has(".git/HEAD"):
		return ".git/HEAD is gone"
	}
	return ""
}

// met looks at the cage when the program has been reached, before it goes on.
func (p Program) met(rep *report.Run, eff policy.Effective, pl *plan.Plan) func(int, launch.Ask) error {
	strict := eff.Mode.Value != string(policy.Auto)
	return func(pid int, ask launch.Ask) error {
		var tried []report.Tried
		if len(pl.Attempts) > 0 {
			reply, err := ask(attempts(pl.Attempts))
			if err != nil {
				return err
			}
			tried, _ = report.DecodeTried(reply, pl.Attempts)
		}
		if rep.WantsManifest() {
			rep.Manifest(p.Manifest(pl, pid))
		}
		return rep.Observe(pid, tried, strict)
	}
}

// lost tells of a mount that the host has taken away, by replacing the file under it. Nothing can prevent or mend that; in
// mode enforced it ends the run.
func (p Program) lost(rep *report.Run, eff policy.Effective) func(target string) bool {
	return func(target string) bool {
		if target == eff.Report.Value {
			return true // another run has written its report by the same name
		}
		rep.LostMount(target)
		p.say("note: " + plan.Quote(target) + " was replaced on the host: what the cage had mounted there is gone, and it is as the host has it now")
		return eff.Mode.Value != string(policy.Enforced)
	}
}

// attempts is the question to the program inside: what it must fail at.
func attempts(as []plan.Attempt) []byte {
	var b []byte
	for _, a := range as {
		b = append(append(append(append(b, a.Op...), 0), a.Object...), 0)
	}
	return b
}

// tryAll is its answer.
func tryAll(question []byte) []byte {
	words := strings.Split(string(question), "\x00")
	var as []plan.Attempt
	for i := 0; i+1 < len(words); i += 2 {
		as = append(as, plan.Attempt{Op: words[i], Object: words[i+1]})
	}
	return report.EncodeTried(report.Try(as))
}

// Plan makes the plan for this process as it was started.
func (p Program) Plan(eff policy.Effective, environ []string) (*plan.Plan, error) {
	return p.PlanFor(eff, environ, os.Args)
}

// PlanFor makes the plan for this process as if it had been started with the command line args.
func (p Program) PlanFor(eff policy.Effective, environ, args []string) (*plan.Plan, error) {
	pl, err := p.build(eff, environ, args)
	if err == nil {
		pl.Seal()
	}
	return pl, err
}

// build is PlanFor without the plan's own data, which is written when nothing of it changes any more.
func (p Program) build(eff policy.Effective, environ, args []string) (*plan.Plan, error) {
	facts, err := Facts(environ)
	if err != nil {
		return nil, err
	}
	facts.Args = args
	facts.Operands = p.Operands
	req, err := p.Request(eff, environ)
	if err != nil {
		return nil, err
	}
	if req.Filter, err = seccomp.Filter(seccomp.Keep, runtime.GOARCH); err != nil {
		return nil, err
	}
	return plan.Build(facts, req)
}

// Request is what a plan is made from, without the seccomp program.
func (p Program) Request(eff policy.Effective, environ []string) (plan.Request, error) {
	s := eff.Settings
	req := plan.Request{
		Runs: p.Runs, Name: p.Label(), Prefix: policy.Prefix(p.Name), NoNet: s.Network.Value == "none",
		Allow: values(s.Env), Secret: values(s.Secret), Mode: s.Mode.Value, Clean: cleanMode(eff),
		SmallSys: s.Mode.Value == string(policy.Enforced), Confined: s.Confined, Policies: append(absolute(s, workDir()), eff.Files...),
	}
	req.TmpSize, _ = policy.ParseSize(s.TmpSize.Value)
	said, err := p.spelled(environ)
	if err != nil {
		return req, err
	}
	req.Hide, req.Protect = said.grants(s.Hide, 0), said.grants(s.Protect, 0)
	if file := s.Report.Value; file != "" && file != "-" {
		if _, err := os.Lstat(file); err == nil { // a run could write its own report in place of ours
			req.Protect = append(req.Protect, plan.Grant{Path: file, By: "report"})
		}
	}
	req.Grants = append(append(said.grants(s.Readable, binds.ReadOnly), said.grants(s.Writable, binds.ReadWrite)...), said.grants(s.Device, binds.Device)...)
	for _, e := range s.Cache {
		req.Caches = append(req.Caches, plan.Cache{Name: e.Value, By: e.By})
	}
	dir := workDir()
	if err := oneOrTwo(req.Prefix, environ, dir); err != nil {
		return req, err
	}
	req.Rewrite, err = rewrite(req.Prefix, environ, dir)
	return req, err
}

// cleanMode says whether the environment starts from nothing.
func cleanMode(eff policy.Effective) bool {
	return report.LevelOf(policy.Mode(eff.Mode.Value)) == report.Clean
}

// absolute are the files by which policies were asked for: a request inside may ask for them again.
func absolute(s policy.Settings, dir string) (files []string) {
	if s.Policy.Value != "" {
		files = append(files, s.Policy.Abs(dir))
	}
	for _, e := range s.Recipe {
		files = append(files, e.Abs(dir))
	}
	return files
}

// spelling knows how the paths were spelled that are absolute by now: messages speak of what the user wrote.
type spelling struct {
	dir  string
	said map[policy.Entry]string // by the absolute path and who said it
}

func (p Program) spelled(environ []string) (spelling, error) {
	src, err := p.sources(environ)
	sp := spelling{src.Dir, make(map[policy.Entry]string)}
	for _, s := range []policy.Settings{src.Flags, src.Env, src.Options} {
		for _, es := range [][]policy.Entry{s.Readable, s.Writable, s.Device, s.Hide, s.Protect} {
			for _, e := range es {
				// ".." goes by name here and by link in the kernel: what is granted is the absolute path.
				if src.Dir != "" && !strings.Contains(e.Value, "..") {
					sp.said[policy.Entry{Value: e.Abs(src.Dir), By: e.By}] = e.Value
				}
			}
		}
	}
	return sp, err
}

func (sp spelling) grants(es []policy.Entry, access binds.Kind) (gs []plan.Grant) {
	for _, e := range es {
		path := e.Value
		if said, ok := sp.said[e]; ok {
			path = said
		}
		gs = append(gs, plan.Grant{Path: path, Access: access, By: e.By})
	}
	return gs
}

func values(es []policy.Entry) (vs []string) {
	for _, e := range es {
		vs = append(vs, e.Value)
	}
	return vs
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
