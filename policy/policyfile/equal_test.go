package policyfile

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/selfcage/selfcage/policy"
)

// member is a key with a value, and the members of a member that is an object.
type member struct {
	key   string
	value any // string, int, float64, bool, []string or []member
}

// random makes a policy that is valid, with anything that can stand in one.
func random(r *rand.Rand, delta bool) (ms []member) {
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	some := func(each func() string) []string {
		out := []string{}
		for range r.IntN(4) {
			out = append(out, each())
		}
		return out
	}
	odd := func() string {
		return pick("a", " ", "é", "\"", "'", "\\", "\n", "\t", "\x7f", "#", "=", "[", "]", "😀", "\\u0041", "'''", "…")
	}
	path := func() string {
		return pick("{home}", "{cwd}", "{root}", "", "/usr") + "/" + strings.Join(some(odd), pick("", "/", "x"))
	}
	word := func() string { return "w" + strings.Join(some(odd), "") }
	name := func() string { return pick("HF_HOME", "HTTP_PROXY", "x", "ÄÖ") }
	host := func() string { return pick("huggingface.co", "*.a.org", "b:8443", "[::1]:443") }
	add := func(key string, value any) {
		if r.IntN(2) == 0 {
			ms = append(ms, member{key, value})
		}
	}
	add("read_paths", some(path))
	add("write_paths", some(path))
	add("devices", some(path))
	add("gpu", "all")
	add("npu", some(word))
	add("cache", some(word))
	add("env_allowlist", some(name))
	add("hide", some(path))
	add("protect", some(path))
	if r.IntN(2) == 0 {
		add("network", []member{{"egress", false}})
	} else {
		add("network", []member{{"egress", true}, {"hosts", append(some(host), host())}})
	}
	if !delta {
		add("mode", pick("off", "bwrap", "Enforced", " auto "))
		add("tmp", pick("2G", "512m", "7"))
		add("report", pick("-", "{cwd}/r.json"))
		add("note", word())
		add("limits", []member{{"memory", 1 + r.IntN(1<<30)}, {"pids", 1 + r.IntN(999)}, {"cpu", float64(1+r.IntN(99)) / 4}})
		add("narrow", random(r, true))
	}
	r.Shuffle(len(ms), func(i, j int) { ms[i], ms[j] = ms[j], ms[i] })
	if !delta && r.IntN(4) == 0 {
		ms = []member{{"sandbox", ms}}
	}
	return ms
}

func writeJSON(b *strings.Builder, v any) {
	ms, ok := v.([]member)
	if !ok {
		out, _ := json.Marshal(v)
		b.Write(out)
		return
	}
	b.WriteString("{")
	for i, m := range ms {
		if i > 0 {
			b.WriteString(",\n")
		}
		b.WriteString(strconv.Quote(m.key) + " :")
		writeJSON(b, m.value)
	}
	b.WriteString("}")
}

// tomlText spells a string in one of TOML's ways.
func tomlText(r *rand.Rand, s string) string {
	if !strings.ContainsAny(s, "'\n\x7f") && r.IntN(2) == 0 {
		return "'" + s + "'"
	}
	var b strings.Builder
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			b.WriteString(`\` + string(c))
		case c < ' ' || c == 0x7f || r.IntN(20) == 0:
			h := strconv.FormatInt(int64(c), 16)
			b.WriteString(`\U` + strings.Repeat("0", 8-len(h)) + h)
		default:
			b.WriteRune(c)
		}
	}
	if r.IntN(2) == 0 {
		return "\"\"\"\n" + b.String() + `"""`
	}
	return `"` + b.String() + `"`
}

func inlineTOML(r *rand.Rand, v any) string {
	switch v := v.(type) {
	case string:
		return tomlText(r, v)
	case []string:
		var items []string
		for _, s := range v {
			items = append(items, tomlText(r, s))
		}
		return "[ # ]\n" + strings.Join(items, " ,\n\t") + "\n]"
	case []member:
		var items []string
		for _, m := range v {
			items = append(items, m.key+" = "+inlineTOML(r, m.value))
		}
		return "{ " + strings.Join(items, ", ") + " }"
	case float64:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	out, _ := json.Marshal(v)
	return string(out)
}

// writeTOML writes a table: its objects inline, with dotted keys, or behind a header of their own.
func writeTOML(r *rand.Rand, b *strings.Builder, header string, ms []member) {
	type later struct {
		header string
		ms     []member
	}
	var tables []later
	for _, m := range ms {
		sub, ok := m.value.([]member)
		switch how := r.IntN(3); {
		case ok && how == 0:
			tables = append(tables, later{header + m.key, sub})
		case ok && how == 1 && len(sub) > 0:
			for _, s := range sub {
				b.WriteString(m.key + ` . "` + s.key + `" = ` + inlineTOML(r, s.value) + " # x\n")
			}
		default:
			b.WriteString(m.key + "=" + inlineTOML(r, m.value) + "\r\n")
		}
	}
	for _, t := range tables {
		b.WriteString("\n[" + t.header + "]\n")
		writeTOML(r, b, t.header+".", t.ms)
	}
}

// The same policy is the same value in both languages, whatever is in it and however it is spelt.
func TestSameInBoth(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 4))
		ms := random(r, false)
		if len(ms) == 0 {
			continue // {} in JSON, and nothing at all in TOML
		}
		var j, toml strings.Builder
		writeJSON(&j, ms)
		writeTOML(r, &toml, "", ms)
		a, err := Parse("p.json", []byte(j.String()), opts)
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, &j)
		}
		b, err := Parse("p.toml", []byte(toml.String()), opts)
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, &toml)
		}
		a, b = anonymous(a), anonymous(b)
		inOrder(&a)
		inOrder(&b)
		if d := cmp.Diff(a, b); d != "" {
			t.Fatalf("seed %d (-json +toml)\n%s\n%s\n%s", seed, d, &j, &toml)
		}
	}
}

// inOrder sorts what was said: in TOML a table with a header of its own comes after the rest.
func inOrder(f *policy.File) {
	byValue := func(a, b policy.Entry) int { return strings.Compare(a.Value, b.Value) }
	slices.SortFunc(f.Said, byValue)
	for i := range f.Narrow {
		inOrder(&f.Narrow[i])
	}
}
