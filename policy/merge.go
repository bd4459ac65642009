package policy

import (
	"path"
	"strings"
)

// Merge returns what all of them say together, the strongest first: flags, variables, policy, options. Of a scalar the
// first that was said wins. Lists add up in the same order; of entries with the same Value the first stays, so that its
// By names the strongest. Nothing is shared with the arguments.
func Merge(strongestFirst ...Settings) Settings {
	var out Settings
	for i := range table {
		t := &table[i]
		var es []Entry
		for j := range strongestFirst {
			es = append(es, t.entries(&strongestFirst[j])...)
		}
		t.set(&out, unique(es))
	}
	for _, s := range strongestFirst {
		out.Confined = append(out.Confined, s.Confined...)
	}
	return out
}

// Absolute returns s with every path made absolute by [Entry.Abs] from dir, the absolute working directory. Paths that
// are the same then are there once, and one that is both readable and writable is only writable.
func (s Settings) Absolute(dir string) Settings {
	out := Merge(s)
	for i := range table {
		t := &table[i]
		if !t.path {
			continue
		}
		es := t.entries(&out)
		for j, e := range es {
			if t.suffix != "REPORT" || e.Value != "-" {
				es[j].Value = e.Abs(dir)
			}
		}
		t.set(&out, unique(es))
	}
	out.Readable = without(out.Readable, out.Writable)
	for i, c := range out.Confined {
		out.Confined[i] = c.clean()
	}
	return out
}

// Abs returns the value as an absolute clean path: relative to dir, which must be absolute, unless it is absolute
// itself. It keeps every byte, UTF-8 or not, and knows no "~". ".." goes by name, as in the shell's cd, not by link.
func (e Entry) Abs(dir string) string {
	if strings.HasPrefix(e.Value, "/") {
		return path.Clean(e.Value)
	}
	return path.Join(dir, e.Value)
}

// unique and without use maps: a variable holds up to 128 KiB of short elements.
func unique(es []Entry) []Entry { return fresh(es, make(map[string]bool, len(es))) }

func without(es, drop []Entry) []Entry {
	seen := make(map[string]bool, len(es)+len(drop))
	for _, e := range drop {
		seen[e.Value] = true
	}
	return fresh(es, seen)
}

// fresh returns a new slice of the entries whose Value is not in seen, and adds each to it.
func fresh(es []Entry, seen map[string]bool) []Entry {
	var out []Entry
	for _, e := range es {
		if !seen[e.Value] {
			seen[e.Value] = true
			out = append(out, e)
		}
	}
	return out
}
