package policy

import (
	"strconv"
	"strings"

	"github.com/selfcage/selfcage/internal/refusal"
)

// Validate returns s as it is meant, or an error for the first value that is wrong: words are trimmed and lower-cased,
// empty entries are dropped. s is not changed. The error is a *refusal.Error that names who said the value and, unless
// it may be a secret, quotes it; the Settings are then zero.
func (s Settings) Validate() (Settings, error) {
	var out Settings
	for i := range table {
		t := &table[i]
		var es []Entry
		for _, e := range t.entries(&s) {
			value := t.clean(e.Value)
			if value == "" {
				continue
			}
			if err := t.validate(e); err != nil {
				return Settings{}, err
			}
			es = append(es, Entry{value, e.By})
		}
		t.set(&out, es)
	}
	out.Confined = append(out.Confined, s.Confined...)
	return out, nil
}

func (t *setting) validate(e Entry) error {
	if t.check != nil {
		if err := t.check(e); err != nil {
			return err
		}
	}
	if strings.IndexByte(e.Value, 0) >= 0 {
		return wrong(e, "wrong value", "it contains a NUL byte", "")
	}
	return nil
}

func checkMode(e Entry) error {
	if _, ok := ParseMode(e.Value); ok {
		return nil
	}
	hint := "for no cage leave it unset or say off"
	for _, m := range Modes() {
		// Never towards less than what was asked for.
		if m != string(Off) && m != string(Disabled) && distance(fold(e.Value), m) < tooFar {
			hint = "did you mean " + m + "?"
			break
		}
	}
	return wrong(e, "unknown mode", "accepted are "+strings.Join(Modes(), ", "), hint)
}

func checkNetwork(e Entry) error {
	switch fold(e.Value) {
	case "shared", "none", "egress":
		return nil
	}
	return wrong(e, "unknown network", "accepted are shared, none, egress", "")
}

func checkHost(e Entry) error {
	_, err := ParseHost(fold(e.Value))
	r, ok := err.(*refusal.Error)
	if !ok {
		return err
	}
	object := e.By
	if r.Object != "" {
		object += " " + r.Object
	}
	return &refusal.Error{What: r.What, Object: object, Cause: "it " + r.Cause, Hint: r.Hint}
}

func checkSwitch(e Entry) error {
	if e.Value == "1" || e.Value == "0" {
		return nil
	}
	return wrong(e, "wrong value", "accepted are 1 and 0", "")
}

func checkSize(e Entry) error {
	if _, ok := ParseSize(e.Value); ok {
		return nil
	}
	return wrong(e, "wrong value", "it is no size", "write a number of bytes above 0, or 512M, 2G")
}

// checkDefine: a relative path would mean another one in every directory.
func checkDefine(e Entry) error {
	name, path, ok := strings.Cut(e.Value, "=")
	if ok && name != "" && strings.Trim(lower(name), "abcdefghijklmnopqrstuvwxyz0123456789_") == "" && strings.HasPrefix(path, "/") {
		return nil
	}
	return wrong(e, "wrong value", "it is not NAME=PATH with an absolute path", "for example model_dir=/models/m")
}

// checkBwrap: a relative path would let the directory that the run happens in choose the program that confines it.
func checkBwrap(e Entry) error {
	if e.Value[0] == '/' {
		return nil
	}
	return wrong(e, "wrong value", "the path of bwrap must be absolute", "for example /usr/bin/bwrap")
}

// checkName prints what stands before a '=' and never what follows: people write --env TOKEN=value.
func checkName(e Entry) error {
	name, _, hasValue := strings.Cut(e.Value, "=")
	if !hasValue {
		return nil
	}
	if name == "" {
		return wrong(Entry{By: e.By}, "wrong value", "the name of the variable is empty", "pass a name only")
	}
	return wrong(Entry{name, e.By}, "wrong value", "it takes the name of a variable, not NAME=VALUE",
		"set "+show(name)+" in the environment and pass "+show(name))
}

func wrong(e Entry, what, cause, hint string) error {
	object := e.By
	if e.Value != "" {
		object += " " + strconv.Quote(e.Value)
	}
	return &refusal.Error{What: what, Object: object, Cause: cause, Hint: hint}
}

// Unsupported returns an error for the first thing that s asks for and this version recognises but cannot do yet, nil
// when there is none. It names the variable or flag that asked. Nothing of what was asked may be skipped silently, so
// every run that is not off must call it.
func (s Settings) Unsupported() error {
	for i := range table {
		t := &table[i]
		for _, e := range t.entries(&s) {
			// A policy's devices are selected by hardware profiles, which a later version has; those of the operator are paths.
			if t.notYet(e.Value) || t.suffix == "DEVICE" && fromPolicy(e) {
				return &refusal.Error{
					What:   lower(t.suffix) + " " + show(e.Value) + " needs what a later version brings",
					Object: e.By,
					Hint:   t.instead(e),
				}
			}
		}
	}
	return nil
}

// instead is what this version offers in place of what is not there yet.
func (t *setting) instead(e Entry) string {
	switch t.suffix {
	case "DEVICE":
		return "name it with --device " + show(e.Value) + ", which is the operator's to say, or leave it out"
	case "MODE":
		return "use " + string(Bwrap) + ", " + string(Enforced) + " or " + string(Auto)
	case "NETWORK":
		return "use shared or none"
	}
	return "leave it out"
}

// UnsetSecret returns an error for the first secret of s that environ ("NAME=value" strings) does not hold, nil when all
// are there: who asks for one expects the run to have it.
func (s Settings) UnsetSecret(environ []string) error {
	for _, e := range s.Secret {
		if !hasName(environ, e.Value) {
			return wrong(e, "cannot pass the secret", "it is not set in the environment", "set it, or leave it out")
		}
	}
	return nil
}

func hasName(environ []string, name string) bool {
	for _, kv := range environ {
		if k, _, ok := strings.Cut(kv, "="); ok && k == name {
			return true
		}
	}
	return false
}

// show is s as a message prints it: as it is when it is plain ASCII without spaces and quotes, else quoted.
func show(s string) string {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || c == '"' || c == '\\' {
			return strconv.Quote(s)
		}
	}
	if s == "" {
		return `""`
	}
	return s
}
