package report

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/selfcage/selfcage/env"
	"github.com/selfcage/selfcage/internal/hostfs"
	"github.com/selfcage/selfcage/internal/refusal"
	"github.com/selfcage/selfcage/plan"
	"github.com/selfcage/selfcage/policy"
)

// Run is the report of one run, written to the place that was asked for. A Run without a place writes nothing.
type Run struct {
	about Report
	to    string   // a file, "-" for standard error, "" for nowhere
	dir   *os.Root // the directory of the file
}

// Begin prepares the report of a run that was asked for by s. A place that cannot be written is an error now, before
// anything is run.
func Begin(s policy.Effective) (*Run, error) {
	r := &Run{to: s.Settings.Report.Value}
	r.about.Phase, r.about.Declared, r.about.Mode = Started, s, policy.Mode(s.Mode.Value)
	r.about.Environment.Level = LevelOf(r.about.Mode)
	if r.Wants() {
		r.about.Host = LookAtHost()
	}
	if r.to == "" || r.to == "-" {
		return r, nil
	}
	if err := r.place(); err != nil {
		return nil, &refusal.Error{
			What: "cannot write the report", Object: s.Settings.Report.By + " " + plan.Quote(s.Settings.Report.Value), Cause: refusal.Cause(err),
			Hint: "name a new file, or an old report, in a directory that you can write", Err: err,
		}
	}
	// That of an earlier run must not stand for this one, should this process be killed.
	return r, r.write()
}

// Wants says whether somebody asked for the report.
func (r *Run) Wants() bool { return r.to != "" }

var (
	errNotFile     = errors.New("it is there and is no regular file")
	errForeignLink = errors.New("it is a link that belongs to somebody else")
	errLinks       = errors.New("too many links")
	errNotReport   = errors.New("it is there and is no report, which would replace it")
	errNoPlan      = errors.New("BUG(report): there is no plan to compare with")
)

// place finds out where the report goes, and tries it: a file is made there and removed at once, so that nothing is
// left should this process be killed.
func (r *Run) place() (err error) {
	if r.to, err = filepath.Abs(r.to); err != nil {
		return err
	}
	for range maxLinks {
		// Held open from now on: the program may be able to put another directory in its place.
		if r.dir, err = os.OpenRoot(filepath.Dir(r.to)); err != nil {
			return err
		}
		fi, err := r.dir.Lstat(filepath.Base(r.to))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return r.try()
		case err != nil:
			return err
		case fi.Mode()&fs.ModeSymlink == 0:
			if err := r.replaceable(fi); err != nil {
				return err
			}
			return r.try()
		}
		// The rename would replace the link.
		if err := r.follow(fi); err != nil {
			return err
		}
	}
	return errLinks
}

// maxLinks is how many links in a row are followed, as many as the kernel follows.
const maxLinks = 40

// follow goes on to where the link fi leads. One that belongs to somebody else would choose what is overwritten; the kernel
// follows none in a directory like /tmp, but nobody keeps us from it.
func (r *Run) follow(fi fs.FileInfo) error {
	if _, _, uid, ok := hostfs.Identity(fi); ok && int(uid) != os.Geteuid() && uid != 0 {
		return errForeignLink
	}
	text, err := r.dir.Readlink(filepath.Base(r.to))
	if err != nil {
		return err
	}
	_ = r.dir.Close()
	if !filepath.IsAbs(text) {
		text = filepath.Join(filepath.Dir(r.to), text)
	}
	r.to = text
	return nil
}

// replaceable says whether what is there may be replaced by a report.
func (r *Run) replaceable(fi fs.FileInfo) error {
	switch {
	case !fi.Mode().IsRegular():
		return errNotFile // a rename over /dev/null would take it from everybody
	case fi.Size() > 0 && !r.isReport():
		return errNotReport // what was named by mistake would be gone
	}
	return nil
}

// isReport says whether what is there may be a report, of this version or another.
func (r *Run) isReport() bool {
	f, err := r.dir.Open(filepath.Base(r.to))
	if err != nil {
		return false
	}
	defer f.Close()
	const begin = `{"version":`
	buf := make([]byte, len(begin))
	n, _ := f.Read(buf)
	return string(buf[:n]) == begin
}

// try makes a file where the report goes, and removes it.
func (r *Run) try() error {
	f, name, err := r.beside()
	if err != nil {
		return err
	}
	err = f.Close()
	if err2 := r.dir.Remove(name); err == nil {
		err = err2
	}
	return err
}

// beside makes a file beside the report, so that the last step is a rename: a reader sees the old file or the new one,
// whole. Its mode is 0600.
func (r *Run) beside() (f *os.File, name string, err error) {
	name = "." + filepath.Base(r.to) + "." + strconv.Itoa(os.Getpid())
	f, err = r.dir.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	return f, name, err
}

// Planned adds the plan. It is bubblewrap's until [Run.Engine] says otherwise.
func (r *Run) Planned(p *plan.Plan) {
	r.about.Plan = p
	if r.about.Engine == "" {
		r.about.Engine = Bwrap
	}
	if r.Wants() {
		r.about.Closed = closedDescriptors(p)
	}
}

// Engine says what enforces the plan. A plan that nothing of ours enforces is not in the report.
func (r *Run) Engine(e Engine) { r.about.Engine = e }

// Lost says what was declared and is not enforced, and why: a mode without an engine, or one that was not to be had.
func (r *Run) Lost(what []string, why string) {
	r.about.Cause = why
	for _, w := range what {
		r.about.Lost = append(r.about.Lost, Loss{w, why})
	}
}

// WantsManifest says whether the report is to hold a manifest.
func (r *Run) WantsManifest() bool {
	return r.Wants() && r.about.Declared.Settings.Manifest.Value == "1"
}

// Manifest adds what the run can see, a JSON object.
func (r *Run) Manifest(data []byte) { r.about.Manifest = data }

// Observe looks at the cage from outside, when its program pid has been reached and before it goes on; tried is what
// the inner stage made of the plan's attempts. A control that is not as planned is an error where strict, else it is in
// NotEnforced. One that could not be observed is neither.
func (r *Run) Observe(pid int, tried []Tried, strict bool) error {
	if r.about.Plan == nil {
		return errNoPlan
	}
	o := observe(strconv.Itoa(pid), r.about.Plan.Outside)
	o.Tried = tried
	r.about.Controls = Compare(r.about.Plan, o)
	if differs := r.Differs(); strict && len(differs) > 0 {
		return errors.New(differs[0])
	}
	return nil
}

// LostMount says that the mount at target is gone from its name, as nothing but the host can make it, and whether that is
// news.
func (r *Run) LostMount(target string) (news bool) {
	name := "mount " + plan.Quote(target)
	for i := range r.about.Controls {
		if c := &r.about.Controls[i]; c.Name == name && c.State != Differs {
			c.Observed, c.State, news = "gone: the host replaced what it was mounted over", Differs, true
		}
	}
	return news
}

// Differs says, of each control that was seen to be otherwise than planned, what it is.
func (r *Run) Differs() (texts []string) {
	for _, c := range r.about.Controls {
		if c.State == Differs {
			texts = append(texts, c.Name+" is "+c.Observed+", planned is "+c.Planned)
		}
	}
	return texts
}

// Handed writes the report of a run that nobody watches from outside: the mode has no engine of ours. kept and dropped
// are what was made of the environment. Where the environment of this process is that already, it was observed.
func (r *Run) Handed(kept []env.Kept, dropped []env.Dropped) error {
	if r.about.Engine != Runtime {
		r.about.Engine = None
	}
	r.about.Environment = EnvironmentOf(r.about.Environment.Level, kept, dropped)
	r.about.Controls = nil
	if r.about.Environment.Level != Untouched {
		r.about.Controls = []Control{ownEnvironment(kept, os.Environ())}
	}
	r.about.Phase = HandedOver
	return r.write()
}

// ownEnvironment compares what was kept with the environment of this process. A variable that is there and was not kept
// shows nothing: it may still go, when the program is executed.
func ownEnvironment(kept []env.Kept, environ []string) Control {
	names := make(map[string]bool, len(kept))
	for _, k := range kept {
		names[k.Name] = true
	}
	for _, n := range parseNames(strings.Join(environ, "\x00")) {
		if !names[n] {
			return Control{environment, onlyKept, "unknown", NotObserved}
		}
	}
	return Control{environment, onlyKept, onlyKept, AsPlanned}
}

// Refused writes the report of a run that was not begun.
func (r *Run) Refused(err error) error {
	if !errors.As(err, &r.about.Refusal) {
		r.about.Refusal = &refusal.Error{What: err.Error()}
	}
	r.about.Phase = Refused
	return r.write()
}

// Ended writes the report of a run that ended with a status or, if signal is not 0, died of a signal.
func (r *Run) Ended(status, signal int) error {
	r.about.Phase, r.about.Status, r.about.Signal = Ended, status, signal
	return r.write()
}

func (r *Run) write() error {
	if r.to == "" {
		return nil
	}
	data := r.about.JSON()
	if r.to == "-" {
		_, err := os.Stderr.Write(data)
		return err
	}
	f, name, err := r.beside()
	if err == nil {
		_, err = f.Write(data)
		if err2 := f.Close(); err == nil {
			err = err2
		}
		if err == nil {
			err = r.dir.Rename(name, filepath.Base(r.to))
		}
		if err != nil {
			_ = r.dir.Remove(name)
		}
	}
	if err != nil {
		return &refusal.Error{What: "cannot write the report", Object: plan.Quote(r.to), Cause: refusal.Cause(err), Err: err}
	}
	return nil
}
