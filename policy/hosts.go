package policy

import (
	"strconv"
	"strings"

	"github.com/selfcage/selfcage/internal/refusal"
)

// Host is a pattern that says which hosts a run may reach, and on which ports. Host values can be compared with ==. The
// zero Host covers nothing.
type Host struct {
	name string   // in lower case; "" for an address
	sub  bool     // only what lies below name, at any depth
	addr [16]byte // the address; IPv4 has its bytes at the beginning
	bits uint8    // of the address that must be the same
	kind uint8    // 4 or 6 for an address, 0 for a name
	port uint16   // 0: the usual ones, 80 and 443
}

// ParseHost reads a host pattern:
//
//	huggingface.co         this name
//	*.huggingface.co       every name below it, not itself; two labels or more must follow the "*."
//	10.1.2.3  [fd00::1]    an address, which no name stands for
//	10.1.0.0/16  [fd00::/8]  the addresses of a network
//
// each with :PORT or, without, for ports 80 and 443. Upper case does not count. Names are ASCII: the others have a form
// that begins with xn--.
//
// The error is a *refusal.Error whose Object is what can be shown of s: what may be a password in a URL is not.
func ParseHost(s string) (Host, error) {
	const what = "wrong host"
	fail := func(cause, hint string) (Host, error) {
		return Host{}, &refusal.Error{What: what, Object: shownHost(s), Cause: cause, Hint: hint}
	}
	if cause, hint := notAHost(s); cause != "" {
		return fail(cause, hint)
	}
	name, port, cause := splitPort(lower(s))
	if cause != "" {
		return fail(cause, "write NAME:PORT with a port from 1 to 65535")
	}
	h := Host{port: port}
	literal := strings.HasPrefix(name, "[")
	if literal || strings.Contains(name, "/") || numeric(name[strings.LastIndexByte(name, '.')+1:]) {
		if cause, hint := h.address(name, literal); cause != "" {
			return fail(cause, hint)
		}
		return h, nil
	}
	h.name, h.sub = strings.CutPrefix(name, "*.")
	if cause, hint := h.wrongName(); cause != "" {
		return fail(cause, hint)
	}
	return h, nil
}

const hostHint = "write a name or *.name, with :PORT where it is not 80 or 443"

// notAHost says what is wrong with what cannot be a host at all.
func notAHost(s string) (cause, hint string) {
	rest := strings.TrimPrefix(s, "*.")
	switch {
	case s == "":
		return "is empty", hostHint
	case strings.Contains(s, "://"):
		return "is a URL, not a host", "write only the name in it, without https:// and what follows the name"
	case strings.Contains(s, "@"):
		return "has a user in it", "write only what follows the @"
	case strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune(`,;?#%\"'`, r) }):
		return "has a character that no host has", hostHint
	case strings.ContainsFunc(s, func(r rune) bool { return r > 0x7f }):
		return "is not ASCII", "write its xn-- form"
	case strings.Contains(s, "/") && !strings.HasPrefix(s, "[") && strings.Trim(s, "0123456789./:") != "":
		return "has a path in it", "write only the host, without what follows the name"
	case s[0] != '[' && strings.Count(s, ":") > 1:
		return "is ambiguous", "write an IPv6 address in brackets: [2001:db8::1] or [2001:db8::1]:443"
	case strings.Trim(beforePort(s), "*.") == "":
		return "names every host", hostHint
	case strings.Contains(rest, "*"):
		return "has a * that is not the whole first label", hostHint
	case len(s) > 300:
		return "is longer than any name", hostHint
	}
	return "", ""
}

func beforePort(s string) string {
	if i := strings.IndexByte(s, ':'); i >= 0 && s[0] != '[' {
		return s[:i]
	}
	return s
}

// shownHost is as much of s as cannot be a password, a token in a path or another secret, quoted.
func shownHost(s string) string {
	if s == "" || len(s) > 300 || strings.ContainsAny(s, "@?#=;,%\\\"' \t\r\n\x00") || strings.Contains(s, "://") {
		return ""
	}
	if s[0] == '[' {
		end := strings.IndexByte(s, ']')
		if end < 0 || strings.Trim(s[1:end], "0123456789abcdefABCDEF:./") != "" {
			return ""
		}
		return strconv.Quote(s[:end+1])
	}
	if strings.Count(s, ":") > 1 && strings.Trim(s, "0123456789abcdefABCDEF:") == "" {
		return strconv.Quote(s)
	}
	name, rest, _ := strings.Cut(s, ":")
	name, path, hasPath := strings.Cut(name, "/")
	switch {
	case hasPath && strings.Trim(path, "0123456789") == "":
		return strconv.Quote(name + "/" + path)
	case hasPath || rest == "" || strings.Trim(rest, "0123456789") != "" || len(rest) > 5:
		return strconv.Quote(name)
	}
	return strconv.Quote(name + ":" + rest)
}

// splitPort takes the port off. s holds at most one ':' outside of brackets.
func splitPort(s string) (name string, port uint16, cause string) {
	name = s
	i := strings.LastIndexByte(s, ':')
	if i < 0 || s[0] == '[' && i < strings.LastIndexByte(s, ']') {
		return name, 0, ""
	}
	digits := s[i+1:]
	n, err := strconv.ParseUint(digits, 10, 16)
	if err != nil || n == 0 || digits[0] == '0' {
		return "", 0, "has a port that is none"
	}
	return s[:i], uint16(n), ""
}

// wrongName says what is wrong with the name of h.
func (h *Host) wrongName() (cause, hint string) {
	labels := strings.Split(h.name, ".")
	switch {
	case labels[len(labels)-1] == "" && len(labels) > 1:
		return "ends with a dot", "leave the dot out"
	case h.sub && len(labels) < 2:
		return "names all of a top-level domain", "two labels or more must follow the *., as in *.example.org"
	case len(h.name) > 253:
		return "is longer than any name", hostHint
	}
	for _, l := range labels {
		switch {
		case l == "":
			return "has an empty label", hostHint
		case len(l) > 63:
			return "has a label of more than 63 characters", hostHint
		case strings.Trim(l, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "":
			return "has a character that no host has", hostHint
		case l[0] == '-' || l[len(l)-1] == '-':
			return "has a label that begins or ends with -", hostHint
		}
	}
	return "", ""
}

// numeric: a name that ends so is read as an address by some and as a name by others, as 127.1 and 0x7f.1 are.
func numeric(label string) bool {
	return label != "" && strings.Trim(label, "0123456789") == "" ||
		strings.HasPrefix(label, "0x") && strings.Trim(label[2:], "0123456789abcdef") == ""
}

// Covers tells whether everything that o stands for may be reached when h is allowed.
func (h Host) Covers(o Host) bool {
	switch {
	case h == (Host{}) || o == (Host{}) || h.kind != o.kind:
		return false
	case h.port != o.port && (h.port != 0 || o.port != 80 && o.port != 443):
		return false
	case h.kind != 0:
		return o.bits >= h.bits && sameBits(h.addr, o.addr, int(h.bits))
	case !h.sub:
		return !o.sub && o.name == h.name
	}
	return strings.HasSuffix(o.name, "."+h.name) || o.sub && o.name == h.name
}

// String is h as ParseHost reads it.
func (h Host) String() string {
	s := h.name
	switch {
	case h == (Host{}):
		return ""
	case h.sub:
		s = "*." + s
	case h.kind != 0:
		s = h.addressString()
	}
	if h.port != 0 {
		s += ":" + strconv.Itoa(int(h.port))
	}
	return s
}
