package policy

import "strings"

// setting is one row of the table that variables, flags, help and the documentation come from.
type setting struct {
	suffix string // of the variable, after the prefix; "" is a setting that only a policy can say
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
	{suffix: "MODE", flag: "mode", value: "MODE", fold: true, later: "landlock",
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
	{suffix: "HOSTS", flag: "host", value: "HOST", sep: ",", fold: true, later: "*",
		help: "host pattern that egress may reach: NAME, *.NAME or an address, each with :PORT or for ports 80 and 443",
		list: func(s *Settings) *[]Entry { return &s.Hosts }, check: checkHost},
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
	{suffix: "POLICY", flag: "policy", value: "FILE", path: true,
		help:   "policy file, TOML or JSON; without a mode from anywhere stronger it means enforced",
		scalar: func(s *Settings) *Entry { return &s.Policy }},
	{suffix: "BWRAP", flag: "bwrap", value: "PATH", path: true,
		help:   "absolute path of a trusted bwrap",
		scalar: func(s *Settings) *Entry { return &s.Bwrap }, check: checkBwrap},
	{suffix: "REPORT", flag: "report", value: "FILE", path: true,
		help:   "write the report to FILE as JSON, - for standard error",
		scalar: func(s *Settings) *Entry { return &s.Report }},
	{suffix: "QUIET", flag: "quiet",
		help:   "no start notes: 1 in the variable, 0 for notes, and --quiet=0",
		scalar: func(s *Settings) *Entry { return &s.Quiet }, check: checkSwitch},
	{suffix: "HIDE", flag: "hide", value: "PATH", sep: ":", path: true,
		help: "keep PATH out of sight, whatever else is granted",
		list: func(s *Settings) *[]Entry { return &s.Hide }},
	{suffix: "PROTECT", flag: "protect", value: "PATH", sep: ":", path: true,
		help: "keep PATH read-only inside a directory that is writable",
		list: func(s *Settings) *[]Entry { return &s.Protect }},
	{suffix: "TMP_SIZE", flag: "tmp-size", value: "SIZE",
		help:   "size of the private /tmp, as in 512M or 2G; half of the memory without it",
		scalar: func(s *Settings) *Entry { return &s.TmpSize }, check: checkSize},
	{suffix: "RECIPE", flag: "recipe", value: "FILE", sep: ":", path: true,
		help: "narrow all grants to what FILE asks for, the sandbox object of somebody else's manifest; it can add only hosts and variables",
		list: func(s *Settings) *[]Entry { return &s.Recipe }},
	{suffix: "DEFINE", flag: "define", value: "NAME=PATH", sep: ":",
		help: "what {NAME} stands for in policy files: model_dir=/models/m",
		list: func(s *Settings) *[]Entry { return &s.Define }, check: checkDefine},
	{suffix: "REQUIRE_APPROVED", flag: "require-approved",
		help:   "refuse the run if its grants are wider than what selfcage policy approve has stored for the policy file: 1 in the variable",
		scalar: func(s *Settings) *Entry { return &s.RequireApproved }, check: checkSwitch},
	{suffix: "MANIFEST", flag: "manifest",
		help:   "the report also records what the run can see (digests, versions, the machine), to be compared by selfcage policy diff: 1 in the variable",
		scalar: func(s *Settings) *Entry { return &s.Manifest }, check: checkSwitch},
	{scalar: func(s *Settings) *Entry { return &s.Note }},
}

// name is what reports call the setting.
func (t *setting) name() string {
	if t.suffix == "" {
		return "note"
	}
	return lower(t.suffix)
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
