package policy

import (
	"strings"

	"github.com/selfcage/selfcage/internal/refusal"
)

// Prefix returns what the variables of the host program name begin with: "hyperloom" gives "HYPERLOOM_SANDBOX_", the
// empty name gives "SANDBOX_". Letters are upper-cased, every other byte that is no ASCII digit becomes '_'.
func Prefix(name string) string {
	if name == "" {
		return "SANDBOX_"
	}
	p := []byte(name)
	for i, c := range p {
		switch {
		case 'a' <= c && c <= 'z':
			p[i] = c - 'a' + 'A'
		case 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		default:
			p[i] = '_'
		}
	}
	return string(p) + "_SANDBOX_"
}

// FromEnv reads the variables that begin with prefix out of environ, whose strings are "NAME=value". An empty variable
// is as if unset. Of a name that is there twice the first counts, as for os.Getenv.
//
// Lists of paths are split at ':' and their elements are literal; a path that contains ':' cannot be named there (the flags
// can). The other lists are split at ',' and space around an element does not count. An empty element is ignored.
//
// The error is a *refusal.Error that names the variable; the Settings are then zero.
func FromEnv(prefix string, environ []string) (Settings, error) {
	var s Settings
	for i := range table {
		t := &table[i]
		if t.suffix == "" {
			continue
		}
		name := prefix + t.suffix
		value := lookup(environ, name)
		if t.list == nil {
			*t.scalar(&s) = Entry{value, name}
			continue
		}
		if value == "" {
			continue
		}
		for v := range strings.SplitSeq(value, t.sep) {
			if t.sep == "," {
				v = strings.TrimSpace(v)
			}
			*t.list(&s) = append(*t.list(&s), Entry{v, name})
		}
	}
	return s.Validate() // which drops what is empty
}

// lookup returns the value of the first variable called name, "" when there is none.
func lookup(environ []string, name string) string {
	for _, kv := range environ {
		if k, v, ok := strings.Cut(kv, "="); ok && k == name {
			return v
		}
	}
	return ""
}

// Misspelt returns an error for the first variable of environ that begins with prefix, is not empty, is no known one and
// is at most two letters away from a known one, in upper or lower case, or spelt like its flag (READ for READABLE). It
// names both. A setting that silently does nothing is worse than a run that does not start; when a run is off, do not
// call it: then nothing may change.
func Misspelt(prefix string, environ []string) error {
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		suffix, ok := strings.CutPrefix(name, prefix)
		if !ok || value == "" {
			continue
		}
		if t := nearest(suffix, true); t != nil && t.suffix != suffix {
			return &refusal.Error{
				What:   "misspelt variable",
				Object: show(name),
				Cause:  "the nearest known one is " + prefix + t.suffix,
				Hint:   "rename or unset it",
			}
		}
	}
	return nil
}
