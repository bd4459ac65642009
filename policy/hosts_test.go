package policy

import (
	"errors"
	"strings"
	"testing"

	"github.com/selfcage/selfcage/internal/refusal"
)

// Seeds R24 and R40: what is a host pattern, in its one spelling.
func TestParseHost(t *testing.T) {
	for in, want := range map[string]string{
		"huggingface.co": "", "*.huggingface.co": "", "localhost": "", "h": "", "a_b.c-d.e": "", "xn--bcher-kva.example": "", "*.a.b.c:8443": "",
		"HuggingFace.CO:443": "huggingface.co:443", "*.A.Org": "*.a.org", "a.b:65535": "", "a.b:1": "", "1e100.net": "", "0x7f.example": "", "x.0xg": "",
		"10.1.2.3": "", "10.1.2.3:22": "", "10.0.0.0/8": "", "10.0.0.0/8:443": "", "255.255.255.255": "", "0.0.0.0": "",
		"[::1]": "", "[::1]:443": "", "[2001:DB8:0:0:0:0:0:1]": "[2001:db8::1]", "[fd00::/8]": "", "[fd00::/8]:53": "", "[::]": "",
		"[1:2:3:4:5:6:7:8]": "", "[1:0:0:2:0:0:0:3]": "[1:0:0:2::3]", "[1::]": "", "[::1.2.3.4]": "[::102:304]", "[1:0:3:4:5:6:7:8]": "",
		"[0:0:3:4:5:6:7:8]": "[::3:4:5:6:7:8]", "[64:ff9b::1.2.3.4]:443": "[64:ff9b::102:304]:443", strings.Repeat("a", 63) + ".b": "",
	} {
		if want == "" {
			want = in
		}
		h, err := ParseHost(in)
		if err != nil || h.String() != want {
			t.Errorf("ParseHost(%q) = %q, %v, want %q", in, h, err, want)
		}
		if again, err := ParseHost(h.String()); err != nil || again != h {
			t.Errorf("%q is read as %q, then as %q, %v", in, h, again, err)
		}
	}
	if (Host{}).String() != "" {
		t.Error("the zero Host says something")
	}
}

func TestParseHostRefuses(t *testing.T) {
	long := strings.Repeat("a.", 126) + "ab"
	for _, tt := range []struct{ in, object, cause, hint string }{
		{"", "", "is empty", "write a name"},
		{"https://example.org", "", "is a URL", "without https://"},
		{"https://u:hunter2@example.org/", "", "is a URL", "without"},
		{"u:hunter2@example.org", "", "has a user in it", "follows the @"},
		{"hunter2@h", "", "has a user in it", "follows"},
		{"example.org/hunter2", `"example.org"`, "has a path in it", "only the host"},
		{"example.org/", `"example.org/"`, "has a path in it", "only the host"},
		{"example.org?hunter2", "", "has a character", "write a name"},
		{"a b", "", "has a character", ""}, {"a,b", "", "has a character", ""}, {"a\x00.b", "", "has a character", ""}, {"a%x", "", "has a character", ""},
		{"a\nb", "", "has a character", ""}, {"[fe80::1%lo]", "", "has a character", ""}, {"a\x7f", "\"a\\x7f\"", "has a character", ""},
		{"bücher.example", `"bücher.example"`, "is not ASCII", "xn--"}, {"h\u212a", "\"h\u212a\"", "is not ASCII", "xn--"}, {"\xff.a", `"\xff.a"`, "is not ASCII", "xn--"},
		{"*", `"*"`, "names every host", ""}, {"*.*", `"*.*"`, "names every host", ""}, {"*:443", `"*:443"`, "names every host", ""}, {":443", `":443"`, "names every host", ""},
		{"**", `"**"`, "names every host", ""}, {".", `"."`, "names every host", ""},
		{"0.0.0.0/0", `"0.0.0.0/0"`, "names every host", ""}, {"[::/0]", `"[::/0]"`, "names every host", ""},
		{"*.com", `"*.com"`, "names all of a top-level domain", "two labels"}, {"*.com:443", `"*.com:443"`, "names all of a top-level domain", ""},
		{"*.com.", `"*.com."`, "ends with a dot", ""}, {"a.b.", `"a.b."`, "ends with a dot", "leave"}, {"a..b", `"a..b"`, "has an empty label", ""}, {".a.b", `".a.b"`, "has an empty label", ""},
		{"*a.b.c", `"*a.b.c"`, "has a *", ""}, {"a.*.b", `"a.*.b"`, "has a *", ""}, {"*.*.a.b", `"*.*.a.b"`, "has a *", ""}, {"a.b.*", `"a.b.*"`, "has a *", ""},
		{"a:0", `"a:0"`, "has a port that is none", "1 to 65535"}, {"a:65536", `"a:65536"`, "has a port", ""}, {"a:", `"a"`, "has a port", ""}, {"a:080", `"a:080"`, "has a port", ""},
		{"a:hunter2", `"a"`, "has a port", ""}, {"a:+1", `"a"`, "has a port", ""}, {"a:123456789", `"a"`, "has a port", ""}, {"[::1]:", `"[::1]"`, "has a port", ""}, {"[::1]:hunter2", `"[::1]"`, "has a port", ""},
		{"::1", `"::1"`, "is ambiguous", "in brackets"}, {"2001:db8::1", `"2001:db8::1"`, "is ambiguous", ""}, {"a:1:2", `"a:1:2"`, "is ambiguous", ""},
		{"-a.b", `"-a.b"`, "begins or ends with -", ""}, {"a-.b", `"a-.b"`, "begins or ends with -", ""}, {"a!b", `"a!b"`, "has a character", ""},
		{strings.Repeat("a", 64) + ".b", `"` + strings.Repeat("a", 64) + `.b"`, "more than 63", ""}, {long, `"` + long + `"`, "longer than any name", ""},
		{strings.Repeat("hunter2.", 100), "", "longer than any name", ""},
		// What some read as an address and others as a name.
		{"127.1", `"127.1"`, "ends like an address and is none", "in full"}, {"0x7f.1", `"0x7f.1"`, "ends like an address", ""}, {"2130706433", `"2130706433"`, "ends like", ""},
		{"a.0x1", `"a.0x1"`, "ends like", ""}, {"0x", `"0x"`, "ends like", ""}, {"010.0.0.1", `"010.0.0.1"`, "ends like", ""}, {"1.2.3.256", `"1.2.3.256"`, "ends like", ""},
		{"1.2.3.4.5", `"1.2.3.4.5"`, "ends like", ""}, {"*.1.2.3.4", `"*.1.2.3.4"`, "ends like", ""}, {"1.2.3.4.", `"1.2.3.4."`, "ends with a dot", ""},
		{"10.0.0.1/8", `"10.0.0.1/8"`, "has bits behind its network prefix", "leave the /"}, {"10.0.0.0/33", `"10.0.0.0/33"`, "prefix that is none", ""},
		{"10.0.0.0/08", `"10.0.0.0/08"`, "prefix that is none", ""}, {"10.0.0.0/", `"10.0.0.0/"`, "prefix that is none", ""}, {"/", `"/"`, "ends like an address", ""},
		{"[::ffff:1.2.3.4]", `"[::ffff:1.2.3.4]"`, "is an IPv4 address in IPv6 form", "as IPv4"}, {"[::ffff:0:0/96]", `"[::ffff:0:0/96]"`, "is an IPv4", ""},
		{"[::1", "", "without its ]", ""}, {"[::1]x", `"[::1]"`, "without its ]", ""}, {"[", "", "without its ]", ""}, {"[]", `"[]"`, "ends like", ""}, {"[hunter2]", "", "ends like", ""},
		{"[1.2.3.4]", `"[1.2.3.4]"`, "ends like", ""}, {"[:::]", `"[:::]"`, "ends like", ""}, {"[1::2::3]", `"[1::2::3]"`, "ends like", ""}, {"[12345::]", `"[12345::]"`, "ends like", ""},
		{"[1:2:3:4:5:6:7]", `"[1:2:3:4:5:6:7]"`, "ends like", ""}, {"[1:2:3:4:5:6:7:8:9]", `"[1:2:3:4:5:6:7:8:9]"`, "ends like", ""}, {"[1:2:3:4:5:6:7::8]", `"[1:2:3:4:5:6:7::8]"`, "ends like", ""},
	} {
		h, err := ParseHost(tt.in)
		var r *refusal.Error
		if !errors.As(err, &r) || h != (Host{}) {
			t.Errorf("ParseHost(%q) = %q, %v", tt.in, h, err)
			continue
		}
		if r.Object != tt.object || !strings.Contains(r.Cause, tt.cause) || !strings.Contains(r.Hint, tt.hint) || r.Hint == "" {
			t.Errorf("ParseHost(%q): %q, %q, %q; want %q, %q, %q", tt.in, r.Object, r.Cause, r.Hint, tt.object, tt.cause, tt.hint)
		}
		if len(tt.in) > 9 && strings.Contains(r.Error()+r.Hint, "hunter2") {
			t.Errorf("ParseHost(%q) shows what may be a password: %v", tt.in, r)
		}
	}
}

func TestHostCovers(t *testing.T) {
	for _, tt := range []struct {
		h, o string
		want bool
	}{
		{"a.org", "A.org", true}, {"a.org", "b.a.org", false}, {"*.a.org", "b.a.org", true}, {"*.a.org", "c.b.a.org", true}, {"*.a.org", "a.org", false},
		{"*.a.org", "xa.org", false}, {"*.a.org", "*.a.org", true}, {"*.a.org", "*.b.a.org", true}, {"*.b.a.org", "*.a.org", false}, {"a.org", "*.a.org", false},
		// Without a port it is 80 and 443.
		{"a.org", "a.org:443", true}, {"a.org", "a.org:80", true}, {"a.org", "a.org:8443", false}, {"a.org:443", "a.org", false}, {"a.org:443", "a.org:443", true},
		{"*.a.org:22", "b.a.org:22", true}, {"*.a.org:22", "b.a.org:23", false},
		// An address is covered only by what is spelt as one.
		{"10.1.2.3", "10.1.2.3", true}, {"10.0.0.0/8", "10.1.2.3:443", true}, {"10.0.0.0/8", "11.1.2.3", false}, {"10.0.0.0/8", "10.1.0.0/16", true},
		{"10.1.0.0/16", "10.0.0.0/8", false}, {"10.0.0.0/16", "10.0.0.0/8", false}, {"10.0.0.0/8", "10.0.0.0/8:8080", false}, {"128.0.0.0/1", "200.1.1.1", true}, {"128.0.0.0/1", "100.1.1.1", false},
		{"[fd00::/8]", "[fd12::1]", true}, {"[fd00::/8]", "[fe80::1]", false}, {"[a00::/8]", "10.1.2.3", false}, {"[::1]", "[0::1]:443", true},
		{"*.a.org", "10.1.2.3", false}, {"10.0.0.0/8", "a.org", false},
	} {
		h, err1 := ParseHost(tt.h)
		o, err2 := ParseHost(tt.o)
		if got := h.Covers(o); got != tt.want || err1 != nil || err2 != nil {
			t.Errorf("%s covers %s: %v, want %v; %v, %v", tt.h, tt.o, got, tt.want, err1, err2)
		}
		if h.Covers(Host{}) || (Host{}).Covers(o) || (Host{}).Covers(Host{}) {
			t.Errorf("no host covers %s or is covered by %s", o, h)
		}
	}
}

// slowCovers is Covers by other means: on the spelling, labels from the end, and addresses bit by bit.
func slowCovers(h, o string) bool {
	hn, hp := slowPort(h)
	on, op := slowPort(o)
	switch {
	case hp == "" && op != "" && op != "80" && op != "443", hp != "" && hp != op:
		return false
	case slowAddress(hn) != slowAddress(on):
		return false
	case slowAddress(hn):
		hb, ob := slowBits(hn), slowBits(on)
		return (hn[0] == '[') == (on[0] == '[') && strings.HasPrefix(ob, hb)
	}
	hl, ol := strings.Split(hn, "."), strings.Split(on, ".")
	for len(hl) > 0 && hl[len(hl)-1] != "*" {
		if len(ol) == 0 || ol[len(ol)-1] != hl[len(hl)-1] {
			return false
		}
		hl, ol = hl[:len(hl)-1], ol[:len(ol)-1]
	}
	return len(hl) == len(ol) && len(hl) == 0 || len(hl) == 1 && len(ol) >= 1
}

func slowPort(s string) (name, port string) {
	if s[0] == '[' {
		name, port, _ = strings.Cut(s, "]")
		return name + "]", strings.TrimPrefix(port, ":")
	}
	name, port, _ = strings.Cut(s, ":")
	return name, port
}

func slowAddress(name string) bool {
	last := name[strings.LastIndexByte(name, '.')+1:]
	return name[0] == '[' || '0' <= last[0] && last[0] <= '9' && strings.Trim(last, "0123456789/") == ""
}

// slowBits are the bits that an address fixes, as a string of 0 and 1.
func slowBits(s string) string {
	h, err := ParseHost(s)
	if err != nil {
		panic(s)
	}
	var b strings.Builder
	for i := range int(h.bits) {
		b.WriteByte('0' + h.addr[i/8]>>(7-i%8)&1)
	}
	return b.String()
}

// FuzzHost: what is a pattern has one spelling, which is read as the same; Covers agrees with a slow model, covers itself
// and is transitive; errors show no more of the pattern than its host.
func FuzzHost(f *testing.F) {
	for _, s := range []string{"a.org", "*.a.org:8443", "10.0.0.0/8", "[fd00::/8]:443", "https://u:p@h", "u:hunter2@a", "*.com", "[::1]", "127.1", "é.org", "a..b", "b.a.org:80"} {
		f.Add(s, "b.a.org", "c.b.a.org:443")
		f.Add("*.a.org", s, "10.1.2.3")
	}
	f.Fuzz(func(t *testing.T, x, y, z string) {
		var hs []Host
		for _, s := range []string{x, y, z} {
			h, err := ParseHost(s)
			if err != nil {
				var r *refusal.Error
				if !errors.As(err, &r) || h != (Host{}) || r.Cause == "" || r.Hint == "" {
					t.Fatalf("%q: %#v with %v", s, err, h)
				}
				if i := strings.LastIndexByte(s, '@'); i > 8 && strings.Contains(r.Error()+r.Hint, s[:i]) {
					t.Fatalf("%q: %v shows the user", s, r)
				}
				return
			}
			again, err := ParseHost(h.String())
			if err != nil || again != h || again.String() != h.String() || !h.Covers(h) {
				t.Fatalf("%q is %v, then %v, %v", s, h, again, err)
			}
			hs = append(hs, h)
		}
		for _, a := range hs {
			for _, b := range hs {
				if got, want := a.Covers(b), slowCovers(a.String(), b.String()); got != want {
					t.Fatalf("%v covers %v: %v, want %v", a, b, got, want)
				}
				if a.Covers(b) && b.Covers(a) && a != b {
					t.Fatalf("%v and %v cover each other", a, b)
				}
			}
		}
		if hs[0].Covers(hs[1]) && hs[1].Covers(hs[2]) && !hs[0].Covers(hs[2]) {
			t.Fatalf("%v covers %v, and that %v", hs[0], hs[1], hs[2])
		}
	})
}
