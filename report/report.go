// Package report tells three things apart: what was declared (asked for), what was planned (made of it), and what is
// enforced (observed in the running cage). What could not be observed is said to be not observed, never to be enforced.
package report

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/selfcage/selfcage/internal/jsonw"
	"github.com/selfcage/selfcage/internal/refusal"
	"github.com/selfcage/selfcage/plan"
	"github.com/selfcage/selfcage/policy"
)

// Run is the report of one run, written to the place that was asked for. A Run without a place does nothing.
type Run struct {
	to       string   // a file, "-" for standard error, "" for nowhere
	dir      *os.Root // the directory of the file
	declared policy.Settings
	plan     *plan.Plan
	state    string // "started" until it is known how it ended: "refused" or "ended"
	controls []Control
	closed   []int // descriptors that the caller left open and the program does not get
	err      *refusal.Error
	status   int
	signal   int
}

// Begin prepares the report of a run that was asked for by s. A place that cannot be written is an error now, before
// anything is run.
func Begin(s policy.Settings) (*Run, error) {
	r := &Run{to: s.Report.Value, declared: s, state: "started"}
	if r.to == "" || r.to == "-" {
		return r, nil
	}
	if err := r.place(); err != nil {
		return nil, &refusal.Error{
			What: "cannot write the report", Object: s.Report.By + " " + plan.Quote(s.Report.Value), Cause: cause(err),
			Hint: "name a file in a directory that you can write", Err: err,
		}
	}
	// That of an earlier run must not stand for this one, should this process be killed.
	return r, r.write()
}

var errNotFile = errors.New("it is there and is no regular file")

// place finds out where the report goes, and tries it: a file is made there and removed at once, so that nothing is
// left should this process be killed.
func (r *Run) place() (err error) {
	if r.to, err = filepath.Abs(r.to); err != nil {
		return err
	}
	if fi, err := os.Lstat(r.to); err == nil && fi.Mode()&fs.ModeSymlink != 0 {
		// The rename would replace the link.
		if r.to, err = filepath.EvalSymlinks(r.to); err != nil {
			return err
		}
	}
	if fi, err := os.Lstat(r.to); err == nil && !fi.Mode().IsRegular() {
		return errNotFile // a rename over /dev/null would take it from everybody
	}
	// Held open from now on: the program may be able to put another directory in its place.
	if r.dir, err = os.OpenRoot(filepath.Dir(r.to)); err != nil {
		return err
	}
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

func cause(err error) string {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}

// Planned adds the plan.
func (r *Run) Planned(p *plan.Plan) {
	r.plan = p
	if r.to != "" {
		r.closed = closedDescriptors(p)
	}
}

// Observe looks at the cage from outside, when its program pid has been reached and before it goes on. A control that
// is not as planned is an error. Without a report nobody looks.
func (r *Run) Observe(pid int) error {
	if r.to == "" {
		return nil
	}
	o := observe(strconv.Itoa(pid), r.plan.Outside)
	r.controls = Compare(r.plan, o)
	for _, c := range r.controls {
		if c.State == Differs {
			return errors.New(c.Name + " is " + c.Observed + ", planned is " + c.Planned)
		}
	}
	return nil
}

// Refused writes the report of a run that was not begun.
func (r *Run) Refused(err error) error {
	if !errors.As(err, &r.err) {
		r.err = &refusal.Error{What: err.Error()}
	}
	r.state = "refused"
	return r.write()
}

// Ended writes the report of a run that ended with a status or, if signal is not 0, died of a signal.
func (r *Run) Ended(status, signal int) error {
	r.state, r.status, r.signal = "ended", status, signal
	return r.write()
}

func (r *Run) write() error {
	if r.to == "" {
		return nil
	}
	data := r.json()
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
		return &refusal.Error{What: "cannot write the report", Object: plan.Quote(r.to), Cause: cause(err), Err: err}
	}
	return nil
}

func (r *Run) json() []byte {
	var w jsonw.Writer
	w.Open('{')
	w.Key("version")
	w.Int(1)
	w.Pair("state", r.state)
	w.Line()
	w.Key("declared")
	declared(&w, r.declared)
	w.Line()
	w.Key("planned")
	if r.plan != nil {
		r.plan.WriteJSON(&w)
	} else {
		w.Open('{')
		w.Close('}')
	}
	w.Line()
	w.Key("enforced")
	writeControls(&w, r.controls)
	w.Line()
	w.Key("descriptors_closed")
	w.Open('[')
	for _, fd := range r.closed {
		w.Int(int64(fd))
	}
	w.Close(']')
	w.Line()
	w.Key("result")
	r.result(&w)
	w.Close('}')
	return append(w.Bytes(), '\n')
}

func (r *Run) result(w *jsonw.Writer) {
	w.Open('{')
	switch {
	case r.err != nil:
		w.Key("status")
		w.Int(int64(r.err.ExitStatus()))
		w.Pair("what", r.err.What)
		w.Pair("object", r.err.Object)
		w.Pair("cause", r.err.Cause)
		w.Pair("hint", r.err.Hint)
	case r.signal != 0:
		w.Key("signal")
		w.Int(int64(r.signal))
	case r.state == "ended":
		w.Key("status")
		w.Int(int64(r.status))
	}
	w.Close('}')
}

// declared writes what was asked for, each value with who said it. Names of secrets are among them, values never.
func declared(w *jsonw.Writer, s policy.Settings) {
	w.Open('{')
	for _, one := range []struct {
		key   string
		entry policy.Entry
	}{{"mode", s.Mode}, {"network", s.Network}, {"policy", s.Policy}, {"bwrap", s.Bwrap}, {"report", s.Report}, {"quiet", s.Quiet}} {
		if one.entry.Value != "" {
			w.Key(one.key)
			entry(w, one.entry)
		}
	}
	for _, list := range []struct {
		key     string
		entries []policy.Entry
	}{{"readable", s.Readable}, {"writable", s.Writable}, {"hosts", s.Hosts}, {"gpu", s.GPU}, {"npu", s.NPU},
		{"device", s.Device}, {"cache", s.Cache}, {"env", s.Env}, {"secret", s.Secret}, {"limit", s.Limit}} {
		if len(list.entries) == 0 {
			continue
		}
		w.Key(list.key)
		w.Open('[')
		for _, e := range list.entries {
			entry(w, e)
		}
		w.Close(']')
	}
	w.Close('}')
}

func entry(w *jsonw.Writer, e policy.Entry) {
	w.Open('{')
	w.Pair("value", e.Value)
	w.Pair("by", e.By)
	w.Close('}')
}
