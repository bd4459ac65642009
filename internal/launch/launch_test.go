package launch

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Case 27: what does not fit bwrap's command line travels in one file, whatever bytes it has.
func TestWords(t *testing.T) {
	for _, tt := range []struct {
		name          string
		argv, environ []string
	}{
		{"usual", []string{"prog", "-x", "file"}, []string{"A=1", "B=2"}},
		{"no environment", []string{"prog"}, nil},
		{"no arguments", nil, []string{"A=1"}},
		{"nothing", nil, nil},
		{"empty words", []string{"", "", ""}, []string{"", "A="}},
		{"numbers", []string{"3", "2", "1"}, []string{"1"}},
		{"bytes", []string{"a\nb\xff\x80", "\xc3"}, []string{"N\xfe=\x01"}},
		{"long", []string{strings.Repeat("x", 131000)}, []string{"A=" + strings.Repeat("y", 131000)}},
		{"many", make([]string, 200000), make([]string, 5000)},
	} {
		t.Run(tt.name, func(t *testing.T) { checkWords(t, tt.argv, tt.environ) })
	}
}

func checkWords(t *testing.T, argv, environ []string) {
	t.Helper()
	a, e, ok := splitWords(joinWords(argv, environ))
	if !ok {
		t.Fatal("refused")
	}
	if d := cmp.Diff(append([]string{}, argv...), append([]string{}, a...)); d != "" {
		t.Errorf("arguments (-want +got):\n%s", d)
	}
	if d := cmp.Diff(append([]string{}, environ...), append([]string{}, e...)); d != "" {
		t.Errorf("environment (-want +got):\n%s", d)
	}
}

func TestSplitWordsRefuses(t *testing.T) {
	for _, b := range []string{"", "1", "2\x00a\x00", "-1\x00", "x\x00", "\x00", "99999999999999999999\x00", " 1\x00a\x00"} {
		if a, e, ok := splitWords([]byte(b)); ok {
			t.Errorf("%q: got %q, %q", b, a, e)
		}
	}
}

func FuzzWords(f *testing.F) {
	f.Add("prog\x00a\x00b", "A=1\x00B=2")
	f.Add("", "")
	f.Fuzz(func(t *testing.T, argv, environ string) {
		checkWords(t, strings.Split(argv, "\x00"), strings.Split(environ, "\x00"))
	})
}

// Whatever is in the file, a process never gets words that are not in it.
func FuzzSplitWords(f *testing.F) {
	f.Add([]byte("1\x00prog\x00A=1\x00"))
	f.Add([]byte("2\x00prog\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		argv, environ, ok := splitWords(b)
		if !ok {
			return
		}
		n := 0
		for _, w := range append(append([]string{}, argv...), environ...) {
			n += len(w) + 1
		}
		if n > len(b) {
			t.Errorf("%q gave %q and %q", b, argv, environ)
		}
	})
}

func TestParseStart(t *testing.T) {
	for _, tt := range []struct {
		value string
		want  start
		ok    bool
	}{
		{"3:0:-1", start{3, 0, -1}, true},
		{"7:4001:9", start{7, 0x4001, 9}, true},
		{"1023:ffffffffffffffff:1024", start{1023, ^uint64(0), 1024}, true},
		{"2:0:-1", start{}, false}, // the program's own standard error
		{"-1:0:-1", start{}, false},
		{"3:0:2", start{}, false},
		{"3:0:-2", start{}, false},
		{"3:10000000000000000:-1", start{}, false},
		{"3:-1:-1", start{}, false},
		{"3:0", start{}, false},
		{"3:0:-1:0", start{}, false},
		{"", start{}, false},
		{"1", start{}, false},
		{"::", start{}, false},
		{"3:0:-1 ", start{}, false},
	} {
		got, ok := parseStart(tt.value)
		if ok != tt.ok || ok && got != tt.want {
			t.Errorf("parseStart(%q) = %+v, %v, want %+v, %v", tt.value, got, ok, tt.want, tt.ok)
		}
	}
}

func FuzzParseStart(f *testing.F) {
	f.Add("3:0:-1")
	f.Add("+3:0:0x4")
	f.Fuzz(func(t *testing.T, v string) {
		s, ok := parseStart(v)
		if !ok {
			return
		}
		if s.sock <= 2 || s.big != -1 && s.big <= 2 {
			t.Errorf("%q: %+v names a standard descriptor", v, s)
		}
		if again, ok := parseStart(s.String()); !ok || again != s {
			t.Errorf("%q: %+v became %+v", v, s, again)
		}
	})
}

func TestAnswer(t *testing.T) {
	for _, tt := range []struct {
		command string
		args    []string
		want    string
	}{
		{"/bin/prog", []string{"/bin/prog", "a"}, "+"},
		{"/bin/prog", []string{"-prog"}, "=-prog"},
		{"/bin/prog", []string{""}, "="},
		{"/bin/prog", nil, "+"},
	} {
		if got := answer(tt.command, tt.args); got != tt.want {
			t.Errorf("answer(%q, %q) = %q, want %q", tt.command, tt.args, got, tt.want)
		}
	}
}

func TestFailure(t *testing.T) {
	cause := errors.New("no such file or directory")
	for _, tt := range []struct {
		f    Failure
		want string
	}{
		{Failure{Step: "execute /usr/bin/bwrap", Err: cause}, "execute /usr/bin/bwrap: no such file or directory"},
		{Failure{Status: 1}, "bubblewrap ended before the program began"},
	} {
		if got := tt.f.Error(); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}
