package fakehost

import (
	"io/fs"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	host, err := Parse([]byte(strings.ReplaceAll(`Some machine.
-- @links --
# a comment
/bin -> usr/bin

/odd -> a -> b
-- @dirs --
/root 0700
/srv
-- @files --
/usr/bin/env 3 0755
/usr/bin/plain 0
-- @devices --
/dev/kfd 0666
-- @modes --
/etc/shadow 0640
-- etc/shadow --
root:*
`, "\n", "\r\n")))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		name, data string
		mode       fs.FileMode
	}{
		{"bin", "usr/bin", fs.ModeSymlink | 0o777},
		{"odd", "a -> b", fs.ModeSymlink | 0o777},
		{"root", "", fs.ModeDir | 0o700},
		{"srv", "", fs.ModeDir | 0o755},
		{"usr/bin/env", "\x00\x00\x00", 0o755},
		{"usr/bin/plain", "", 0o644},
		{"dev/kfd", "", fs.ModeDevice | fs.ModeCharDevice | 0o666},
		{"etc/shadow", "root:*\n", 0o640},
	} {
		f := host[want.name]
		if f == nil || string(f.Data) != want.data || f.Mode != want.mode {
			t.Errorf("%s is %+v, want %q, mode %v", want.name, f, want.data, want.mode)
		}
	}
	if len(host) != 8 {
		t.Errorf("%d files, want 8", len(host))
	}
}

// A mistake in a fixture must not become a host that nobody meant.
func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		"-- @link --\n/a -> b\n":                                 "unknown section",
		"-- @links --\n/a\n":                                     "want PATH -> TEXT",
		"-- @dirs --\na\n":                                       "not an absolute clean path",
		"-- @dirs --\n/a/\n":                                     "not an absolute clean path",
		"-- @dirs --\n/a 0799\n":                                 "invalid syntax",
		"-- @dirs --\n/a 0700 x\n":                               "too many words",
		"-- @files --\n/a\n":                                     "want PATH SIZE",
		"-- @files --\n/a -1\n":                                  "bad size",
		"-- @modes --\n/a 0700\n":                                "no such file",
		"-- @dirs --\n/a\n/a\n":                                  "is there twice",
		"-- @links --\n/a -> b\n-- a/c --\n":                     `lies below "/a"`,
		"-- /a --\n":                                             "not an absolute clean path",
		"-- @files --\n/a 0\n-- @devices --\n/a/b/c 0666\n":      `lies below "/a"`,
		"-- @links --\n/etc -> x\n-- @files --\n/etc/passwd 1\n": `lies below "/etc"`,
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%q) = %v, want %q", text, err, want)
		}
	}
}

func TestHosts(t *testing.T) {
	for _, name := range Names(t) {
		if Load(t, name)["etc/passwd"] == nil {
			t.Errorf("host %s has no /etc/passwd", name)
		}
	}
}
