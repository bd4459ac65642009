package policyfile

import (
	"strings"
	"testing"
)

// The reference says of each key what is true of it: its example is read, and one that is marked narrow stands in a delta.
func TestMarkdown(t *testing.T) {
	md := Markdown()
	for _, k := range keys() {
		if !strings.Contains(md, "| `"+k.name+"` | "+k.value+" | ") || k.value == "" || k.meaning == "" {
			t.Errorf("no row for %s", k.name)
		}
		if k.name == "extends" {
			continue // which needs the file
		}
		f := mustParse(t, "p.toml", k.example)
		if len(f.Said) != 1 || f.Said[0].Value != k.name {
			t.Errorf("the example of %s says %v", k.name, f.Said)
		}
		_, err := Parse("p.toml", []byte("[narrow]\n"+k.example), opts)
		if (err == nil) != k.narrow {
			t.Errorf("%s in narrow: %v, marked %v", k.name, err, k.narrow)
		}
	}
	for _, tok := range known {
		if !strings.Contains(md, "| `{"+tok.name+"}` | ") || tok.what == "" {
			t.Errorf("no row for {%s}", tok.name)
		}
	}
	for line := range strings.Lines(md) {
		if n := strings.Count(line, "|"); n != 0 && n != 3 && n != 6 {
			t.Errorf("a cell breaks the table: %s", line)
		}
	}
}
