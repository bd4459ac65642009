package policyfile

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"

	"github.com/selfcage/selfcage/internal/refusal"
	"github.com/selfcage/selfcage/policy"
)

// The seeds lie in testdata/fuzz.
func FuzzTOML(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		holds(t, "p.toml", data, func(v *map[string]any) error { return toml.Unmarshal(data, v) })
	})
}

func FuzzJSON(f *testing.F) {
	examples, _ := filepath.Glob("testdata/rfc/*.json")
	for _, e := range examples {
		data, err := os.ReadFile(e)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		holds(t, "p.json", data, func(v *map[string]any) error { return json.Unmarshal(data, v) })
	})
}

// holds is what is true of every document: no panic; an error names the place and tells no value of a variable; what is
// granted stands in the document under that very key, as another reader of the language reads it.
func holds(t *testing.T, name string, data []byte, read func(*map[string]any) error) {
	f, err := Parse(name, data, opts)
	var doc map[string]any
	other := read(&doc)
	if err != nil {
		var r *refusal.Error
		if !errors.As(err, &r) || !strings.HasPrefix(r.Object, name) || r.Cause == "" {
			t.Fatalf("no refusal with a place: %#v", err)
		}
		for _, v := range literal(inside(doc), "env_allowlist") {
			_, value, _ := strings.Cut(v, "=")
			if len(value) > 8 && strings.Contains(r.Cause+r.Hint, value) && !strings.Contains(strings.ReplaceAll(string(data), v, ""), value) {
				t.Fatalf("the value %q is printed: %s (%s)", value, err, r.Hint)
			}
		}
		return
	}
	if other != nil {
		t.Fatalf("accepted, but the language's own reader says %v", other)
	}
	if _, err := f.Settings.Validate(); err != nil {
		t.Fatalf("what was read is not valid: %v", err)
	}
	granted(t, f, inside(doc), strings.Count(string(data), "\n")+1)
}

// inside is the object with the keys.
func inside(doc map[string]any) map[string]any {
	if box, ok := doc["sandbox"].(map[string]any); ok {
		return box
	}
	return doc
}

// literal are the strings of a list, or the string, under a key.
func literal(doc map[string]any, key string) (out []string) {
	switch v := doc[key].(type) {
	case string:
		return []string{v}
	case []any:
		for _, e := range v {
			if s, ok := e.(string); ok {
				out = append(out, s)
			}
		}
	}
	return out
}

func granted(t *testing.T, f policy.File, doc map[string]any, lines int) {
	s := f.Settings
	network, _ := doc["network"].(map[string]any)
	for _, g := range []struct {
		key   string
		doc   map[string]any
		es    []policy.Entry
		paths bool
	}{
		{"read_paths", doc, s.Readable, true}, {"write_paths", doc, s.Writable, true}, {"devices", doc, s.Device, true},
		{"hide", doc, f.Settings.Hide, true}, {"protect", doc, f.Settings.Protect, true}, {"gpu", doc, s.GPU, false}, {"npu", doc, s.NPU, false},
		{"cache", doc, s.Cache, false}, {"env_allowlist", doc, s.Env, false}, {"hosts", network, s.Hosts, false},
	} {
		words := make(map[string]bool)
		for _, w := range literal(g.doc, g.key) {
			if g.paths {
				w = substituted(w)
			}
			if g.key == "hosts" {
				h, err := policy.ParseHost(w)
				if w = h.String(); err != nil {
					t.Fatalf("the host %q is accepted: %v", w, err)
				}
			}
			words[w] = true
		}
		if len(words) != len(g.es) {
			t.Fatalf("%s: %v became %q", g.key, words, g.es)
		}
		for _, e := range g.es {
			line, err := strconv.Atoi(e.By[strings.LastIndexByte(e.By, ':')+1:])
			switch {
			case !words[e.Value]:
				t.Fatalf("%s: %q is granted, and the document has %v", g.key, e.Value, words)
			case g.paths && (e.Value[0] != '/' || strings.Contains(e.Value+"/", "/../")):
				t.Fatalf("%s: %q", g.key, e.Value)
			case err != nil || line < 1 || line > lines:
				t.Fatalf("%s: who said it is %q, of %d lines", g.key, e.By, lines)
			}
		}
	}
	if egress, _ := network["egress"].(bool); (s.Network.Value == "egress") != egress || len(s.Secret) > 0 || s.Bwrap.Value != "" {
		t.Fatalf("more than was said: %v", s)
	}
	if len(f.Narrow) > 0 {
		granted(t, f.Narrow[0], doc["narrow"].(map[string]any), lines)
	}
}

// substituted is a path with its token replaced, by other means than the package's.
func substituted(p string) string {
	for name, value := range tokens {
		if rest, ok := strings.CutPrefix(p, "{"+name+"}"); ok {
			if value == "/" && rest != "" {
				return rest
			}
			return value + rest
		}
	}
	return p
}
