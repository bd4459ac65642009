package report

import (
	"bytes"

	"github.com/selfcage/selfcage/internal/jsonw"
	"github.com/selfcage/selfcage/policy"
)

// document is a JSON object whose members are written one by one, each on a line of its own.
type document []byte

func (d *document) raw(key string, value []byte) {
	b := append(*d, ",\n"...)
	if len(*d) == 0 {
		b = append(b[:0], '{')
	}
	*d = append(append(append(append(b, '"'), key...), `":`...), bytes.TrimSpace(value)...)
}

func (d *document) add(key string, write func(w *jsonw.Writer)) {
	var w jsonw.Writer
	write(&w)
	d.raw(key, w.Bytes())
}

func (d *document) text(key, value string) { d.add(key, func(w *jsonw.Writer) { w.Text(value) }) }

// JSON is the form of docs/report.schema.json. It holds no value of any variable.
func (r *Report) JSON() []byte {
	var d document
	d.add("version", func(w *jsonw.Writer) { w.Int(Version) })
	d.text("state", string(r.Phase))
	if r.Inside {
		d.add("inside", func(w *jsonw.Writer) { w.Bool(true) })
	}
	d.text("mode", string(r.Mode))
	d.text("engine", r.engineWord())
	d.add("runtime_owned", func(w *jsonw.Writer) { w.Bool(r.Engine == Runtime) })
	d.add("declared", func(w *jsonw.Writer) { declared(w, r.Declared.Settings) })
	d.add("policy_files", func(w *jsonw.Writer) { texts(w, r.Declared.Files) })
	d.add("narrowed", func(w *jsonw.Writer) { list(w, r.Declared.Narrowed, change) })
	d.planned(r)
	d.add("enforced", func(w *jsonw.Writer) { list(w, r.Controls, control) })
	d.add("not_enforced", func(w *jsonw.Writer) { list(w, r.NotEnforced(), loss) })
	d.add("scrubbed", func(w *jsonw.Writer) { r.environment().write(w) })
	d.add("omitted", r.omitted)
	d.add("notes", r.notes)
	d.add("host", r.Host.write)
	if r.Phase == Examined {
		d.raw("host_checks", r.Checks)
	}
	d.add("descriptors_closed", r.closed)
	if len(r.Manifest) > 0 {
		d.raw("manifest", r.Manifest)
	}
	d.add("result", r.result)
	return append(d, "}\n"...)
}

func (r *Report) engineWord() string {
	if r.Engine == "" {
		return "undecided"
	}
	return string(r.Engine)
}

func (d *document) planned(r *Report) {
	switch p := r.planned(); {
	case p == nil:
		d.raw("planned", []byte("{}"))
	case len(r.PlanJSON) > 0:
		d.raw("planned", r.PlanJSON)
	default:
		d.add("planned", p.WriteJSON)
	}
}

// declared writes what was asked for, each value with who said it. Names of secrets are among them, values never.
func declared(w *jsonw.Writer, s policy.Settings) {
	w.Open('{')
	s.Each(func(name string, scalar bool, entries []policy.Entry) {
		w.Key(name)
		if scalar {
			entry(w, entries[0])
			return
		}
		w.Open('[')
		for _, e := range entries {
			entry(w, e)
		}
		w.Close(']')
	})
	w.Close('}')
}

func entry(w *jsonw.Writer, e policy.Entry) {
	w.Open('{')
	w.Key("value")
	w.Text(e.Value)
	w.Pair("by", e.By)
	w.Close('}')
}

// list writes an array of objects, one a line.
func list[T any](w *jsonw.Writer, xs []T, write func(*jsonw.Writer, T)) {
	w.Open('[')
	for _, x := range xs {
		w.Line()
		w.Open('{')
		write(w, x)
		w.Close('}')
	}
	w.Close(']')
}

func texts(w *jsonw.Writer, ss []string) {
	w.Open('[')
	for _, s := range ss {
		w.Text(s)
	}
	w.Close(']')
}

func change(w *jsonw.Writer, c policy.Change) {
	w.Pair("kind", string(c.Kind))
	w.Pair("what", c.What)
	w.Pair("value", c.Value)
	w.Pair("old", c.Old)
	w.Pair("new", c.New)
	w.Pair("by", c.By)
}

func control(w *jsonw.Writer, c Control) {
	w.Pair("control", c.Name)
	w.Pair("planned", c.Planned)
	w.Pair("observed", c.Observed)
	w.Pair("state", string(c.State))
}

func loss(w *jsonw.Writer, l Loss) {
	w.Pair("what", l.What)
	w.Pair("why", l.Why)
}

// JSON is the form of the report's member "scrubbed".
func (e Environment) JSON() []byte {
	var w jsonw.Writer
	e.write(&w)
	return append(w.Bytes(), '\n')
}

func (e Environment) write(w *jsonw.Writer) {
	w.Open('{')
	w.Pair("level", string(e.Level))
	w.Key("kept")
	list(w, e.Kept, variable)
	w.Key("dropped")
	list(w, e.Dropped, variable)
	w.Close('}')
}

func variable(w *jsonw.Writer, v Variable) {
	w.Key("name")
	w.Text(v.Name)
	w.Pair("rule", v.Rule)
}

func (r *Report) omitted(w *jsonw.Writer) {
	var ls []Loss
	if p := r.planned(); p != nil {
		for _, o := range p.Omitted {
			ls = append(ls, Loss(o))
		}
	}
	list(w, ls, loss)
}

func (r *Report) notes(w *jsonw.Writer) {
	var ss []string
	if p := r.planned(); p != nil {
		ss = p.Notes
	}
	texts(w, ss)
}

func (r *Report) closed(w *jsonw.Writer) {
	w.Open('[')
	if r.planned() != nil {
		for _, fd := range r.Closed {
			w.Int(int64(fd))
		}
	}
	w.Close(']')
}

func (r *Report) result(w *jsonw.Writer) {
	w.Open('{')
	switch {
	case r.Refusal != nil:
		w.Key("status")
		w.Int(int64(r.Refusal.ExitStatus()))
		w.Pair("what", r.Refusal.What)
		w.Pair("object", r.Refusal.Object)
		w.Pair("cause", r.Refusal.Cause)
		w.Pair("hint", r.Refusal.Hint)
	case r.Signal != 0:
		w.Key("signal")
		w.Int(int64(r.Signal))
	case r.Phase == Ended:
		w.Key("status")
		w.Int(int64(r.Status))
	}
	w.Close('}')
}
