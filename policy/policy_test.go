package policy

import (
	"errors"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/selfcage/selfcage/internal/refusal"
)

// refused fails unless err is a refusal with status 125 whose text and hint hold every one of parts.
func refused(t *testing.T, err error, parts ...string) {
	t.Helper()
	var r *refusal.Error
	if !errors.As(err, &r) {
		t.Fatalf("got %v, want a *refusal.Error", err)
	}
	if r.ExitStatus() != refusal.CannotCage {
		t.Errorf("status %d, want %d", r.ExitStatus(), refusal.CannotCage)
	}
	text := r.Error() + "\n" + r.Hint
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%q is not in\n%s", p, text)
		}
	}
	if !utf8.ValidString(text) || strings.ContainsFunc(r.Error(), func(c rune) bool { return !strconv.IsPrint(c) }) {
		t.Errorf("odd bytes are not quoted: %q", r.Error())
	}
}

func equal(t *testing.T, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func values(es []Entry) []string {
	var vs []string
	for _, e := range es {
		vs = append(vs, e.Value)
	}
	return vs
}

func TestParseMode(t *testing.T) {
	tests := []struct {
		in   string
		want Mode
		ok   bool
	}{
		{"", "", true},
		{" \t\n", "", true},
		{"off", Off, true},
		{" BWrap\n", Bwrap, true},
		{"landlock", Landlock, true},
		{"AUTO", Auto, true},
		{"enforced", Enforced, true},
		{"scrubbed_only", ScrubbedOnly, true},
		{"disabled", Disabled, true},
		// Seed H4: a typing error must not switch the cage off.
		{"bwarp", "", false},
		{"scrubbed-only", "", false},
		{"0", "", false},
		{"landloc\u212a", "", false}, // Kelvin sign
		{"false", "", false},
		{"o ff", "", false},
		{"off,bwrap", "", false},
	}
	for _, tt := range tests {
		if got, ok := ParseMode(tt.in); got != tt.want || ok != tt.ok {
			t.Errorf("ParseMode(%q) = %q, %v; want %q, %v", tt.in, got, ok, tt.want, tt.ok)
		}
	}
}

func TestModesAreTheCallersOwn(t *testing.T) {
	Modes()[0] = "x"
	if Modes()[0] != "off" {
		t.Error("a caller changed the accepted modes")
	}
	if m := strings.Join(Modes(), " "); m != "off bwrap landlock auto enforced scrubbed_only disabled" {
		t.Error(m)
	}
}

func TestSaid(t *testing.T) {
	s := Settings{Mode: Entry{"off", "--mode"}, Network: Entry{"none", "--network"}, Writable: []Entry{{"/w", "--write"}}}
	equal(t, s.Said(), []Entry{{"/w", "--write"}, {"none", "--network"}})
	equal(t, len(Settings{}.Said()), 0)
}

func TestDistance(t *testing.T) {
	tests := []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"mode", "mode", 0}, {"mdoe", "mode", 1}, {"mod", "mode", 1}, {"modes", "mode", 1}, {"node", "mode", 1},
		{"mo", "mode", 2}, {"omed", "mode", 2}, {"", "ab", 2}, {"ab", "", 2}, {"ca", "abc", tooFar}, {"", "abc", tooFar},
		{"writeable", "writable", 1}, {"wrtaible", "writable", 2}, {"readable", "writable", tooFar}, {"bwrap", "landlock", tooFar},
	}
	for _, tt := range tests {
		if got := distance(tt.a, tt.b); got != tt.want {
			t.Errorf("distance(%q, %q) = %d, want %d", tt.a, tt.b, got, tt.want)
		}
		if got := distance(tt.b, tt.a); got != tt.want {
			t.Errorf("distance(%q, %q) = %d, want %d", tt.b, tt.a, got, tt.want)
		}
	}
}
