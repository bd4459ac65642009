package policy

import "strings"

// setting is one row of the table that variables, flags, help and the documentation come from.
type setting struct {
	suffix string // of the variable, after the prefix
	flag   string // without dashes
	value  string // placeholder in the help; "" is a flag that needs no value
	sep    string // between the elements of a list in a variable; "" is a scalar
	fold   bool   // space around it and upper case do not count
	path   bool   // relative to the working directory
	later  string // recognised but not there yet: "*" for all of it, or values with a space between
	help   string

	scalar func(*Settings) *Entry
	list   func(*Settings) *[]Entry
	check  func(Entry) error // of one value that is not empty; nil accepts all
}

// table is data only: with a call or a map in it every start of every host program would pay.
var table = [...]setting{
	{suffix: "MODE", flag: "mode", value: "MODE", fold: true, later: "landlock auto enforced scrubbed_only disabled",
		help:   "how to confine: off, bwrap, landlock, auto, enforced, scrubbed_only or disabled",
		scalar: func(s *Settings) *Entry { return &s.Mode }, check: checkMode},
	{suffix: "READABLE", flag: "read", value: "PATH", sep: ":", path: true,
		help: "let the run read PATH",
		list: func(s *Settings) *[]Entry { return &s.Readable }},
	{suffix: "WRITABLE", flag: "write", value: "PATH", sep: ":", path: true,
		help: "let the run read and write PATH",
		list: func(s *Settings) *[]Entry { return &s.Writable }},
	{suffix: "NETWORK", flag: "network", value: "NET", fold: true, later: "egress",
		help:   "shared (the host's), none, or egress (needs hosts)",
		scalar: func(s *Settings) *Entry { return &s.Network }, check: checkNetwork},
	{suffix: "HOSTS", flag: "host", value: "HOST", sep: ",", later: "*",
		help: "host pattern that egress may reach",
		list: func(s *Settings) *[]Entry { return &s.Hosts }},
	{suffix: "GPU", flag: "gpu", value: "GPU", sep: ",", later: "*",
		help: "all, or a node, PCI address or CDI name",
		list: func(s *Settings) *[]Entry { return &s.GPU }},
	{suffix: "NPU", flag: "npu", value: "NPU", sep: ",", later: "*",
		help: "all, or a node, PCI address or CDI name",
		list: func(s *Settings) *[]Entry { return &s.NPU }},
	{suffix: "DEVICE", flag: "device", value: "PATH", sep: ",", path: true,
		help: "let the run use the character device at PATH",
		list: func(s *Settings) *[]Entry { return &s.Device }},
	{suffix: "CACHE", flag: "cache", value: "NAME", sep: ",",
		help: "let the run read and write a tool's own cache, made if missing: go, gomod, pip, uv, npm, cargo, ccache, mage and others",
		list: func(s *Settings) *[]Entry { return &s.Cache }},
	{suffix: "ENV", flag: "env", value: "NAME", sep: ",",
		help: "let the variable NAME through although scrubbing would drop it; never a secret",
		list: func(s *Settings) *[]Entry { return &s.Env }, check: checkName},
	{suffix: "SECRET", flag: "secret", value: "NAME", sep: ",",
		help: "let the secret variable NAME through on this run",
		list: func(s *Settings) *[]Entry { return &s.Secret }, check: checkName},
	{suffix: "LIMIT", flag: "limit", value: "KEY=N", sep: ",", later: "*",
		help: "memory=N, pids=N or cpu=N",
		list: func(s *Settings) *[]Entry { return &s.Limit }},
	{suffix: "POLICY", flag: "policy", value: "FILE", path: true, later: "*",
		help:   "policy file, TOML or JSON",
		scalar: func(s *Settings) *Entry { return &s.Policy }},
	{suffix: "BWRAP", flag: "bwrap", value: "PATH", path: true,
		help:   "absolute path of a trusted bwrap",
		scalar: func(s *Settings) *Entry { return &s.Bwrap }, check: checkBwrap},
	{suffix: "REPORT", flag: "report", value: "FILE", path: true,
		help:   "write the report to FILE as JSON, - for standard error",
		scalar: func(s *Settings) *Entry { return &s.Report }},
	{suffix: "QUIET", flag: "quiet",
		help:   "no start notes: 1 in the variable, 0 for notes, and --quiet=0",
		scalar: func(s *Settings) *Entry { return &s.Quiet }, check: checkQuiet},
}

// entries returns what s says about t, nothing when it was not said.
func (t *setting) entries(s *Settings) []Entry {
	if t.list != nil {
		return *t.list(s)
	}
	if e := *t.scalar(s); e.Value != "" {
		return []Entry{e}
	}
	return nil
}

// set replaces what s says about t. A scalar takes the first of es.
func (t *setting) set(s *Settings, es []Entry) {
	switch {
	case t.list != nil:
		*t.list(s) = es
	case len(es) > 0:
		*t.scalar(s) = es[0]
	default:
		*t.scalar(s) = Entry{}
	}
}

// clean is value as the setting reads it, before any check.
func (t *setting) clean(value string) string {
	if t.fold {
		return fold(value)
	}
	return value
}

// notYet tells whether this version recognises value without being able to do it.
func (t *setting) notYet(value string) bool {
	if t.later == "*" {
		return true
	}
	for v := range strings.FieldsSeq(t.later) {
		if v == value {
			return true
		}
	}
	return false
}

// laterNote is what help and documentation say of what is not there yet.
func (t *setting) laterNote() string {
	switch t.later {
	case "":
		return ""
	case "*":
		return " (not in this version)"
	}
	return " (not in this version: " + strings.Join(strings.Fields(t.later), ", ") + ")"
}
