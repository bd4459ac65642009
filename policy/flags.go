package policy

import (
	"strings"

	"github.com/selfcage/selfcage/internal/refusal"
)

// FromFlags reads flags up to "--", which is dropped, or to the first word that is no flag; what follows is rest,
// untouched. "--flag=value" and "--flag value" mean the same, but in the second spelling a value cannot begin with
// "--", or a forgotten value would swallow the next flag or the "--" itself. Lists are repeatable and take one literal
// value each, never split; any other flag is given once. A word "-" is no flag.
//
// At -h or --help it stops and returns only help, so that help works next to a wrong value. The error is a
// *refusal.Error that names the flag; everything else is then zero.
func FromFlags(args []string) (s Settings, rest []string, help bool, err error) {
	for len(args) > 0 {
		word := args[0]
		if word == "--" {
			args = args[1:]
			break
		}
		if len(word) < 2 || word[0] != '-' {
			break
		}
		if word == "-h" || word == "--help" {
			return Settings{}, nil, true, nil
		}
		if args, err = oneFlag(&s, args); err != nil {
			return Settings{}, nil, false, err
		}
	}
	if s, err = s.Validate(); err != nil {
		return Settings{}, nil, false, err
	}
	return s, args, false, nil
}

// oneFlag puts the flag args[0] into s and returns the words after it and its value.
func oneFlag(s *Settings, args []string) (rest []string, err error) {
	word, value, hasValue := strings.Cut(args[0], "=")
	args = args[1:]
	t := flagNamed(word)
	if t == nil {
		return nil, unknownFlag(word)
	}
	switch {
	case hasValue:
	case t.value == "":
		value = "1"
	case len(args) == 0 || strings.HasPrefix(args[0], "--"):
		return nil, badFlag(word, "it needs a value", "write "+t.spelling()+"; a value that begins with -- is given as "+word+"="+t.value)
	default:
		value, args = args[0], args[1:]
	}
	if t.clean(value) == "" {
		return nil, badFlag(word, "its value is empty", "leave the flag out, or give a value (an unset variable in the shell?)")
	}
	said := t.entries(s)
	if t.list == nil && len(said) > 0 {
		return nil, badFlag(word, "it is given twice", "only flags that are lists can be repeated")
	}
	t.set(s, append(said, Entry{value, word}))
	return args, nil
}

func flagNamed(word string) *setting {
	name, ok := strings.CutPrefix(word, "--")
	for i := range table {
		if ok && name != "" && table[i].flag == name {
			return &table[i]
		}
	}
	return nil
}

// unknownFlag leaves the value out: it may be a secret.
func unknownFlag(word string) error {
	hint := "--help lists the flags; the command comes after --"
	if t := nearest(strings.TrimLeft(word, "-"), false); t != nil {
		hint = "did you mean --" + t.flag + "?"
	}
	return &refusal.Error{What: "unknown flag", Object: show(word), Hint: hint}
}

func badFlag(word, cause, hint string) error {
	return &refusal.Error{What: "wrong flag", Object: show(word), Cause: cause, Hint: hint}
}
