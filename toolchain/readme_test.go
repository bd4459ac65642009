package toolchain

import (
	"os"
	"strings"
	"testing"
)

// The README says what is recognised: every source and every cache, by its name, and nothing else.
func TestReadmeNamesAll(t *testing.T) {
	data, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(data), "<!-- recognised: checked by a test -->")
	section, _, end := strings.Cut(section, "\n## ")
	if !ok || !end {
		t.Fatal("README.md has no such section")
	}
	named := map[string]bool{"command": true, "venv": true, "versions": true} // of Find itself and of inspect
	for _, s := range sources {
		named[s.name] = true
	}
	said := map[string]bool{}
	for line := range strings.SplitSeq(section, "\n") {
		if first, ok := strings.CutPrefix(line, "| `"); ok {
			first, _, _ = strings.Cut(first, "` |")
			for name := range strings.SplitSeq(first, "`, `") {
				said[name] = true
			}
		}
	}
	for name := range named {
		if !said[name] {
			t.Errorf("README.md does not say what %s recognises", name)
		}
	}
	for name := range said {
		if !named[name] {
			t.Errorf("README.md says %s, which there is not", name)
		}
	}
	for _, c := range caches {
		if !strings.Contains(section, "`"+c.name+"`") {
			t.Errorf("README.md does not name the cache %s", c.name)
		}
	}
}
