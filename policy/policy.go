// Package policy holds what a run asks for: the mode, the grants and the other settings, each with the place that said
// it, read from variables and flags and merged into one value.
//
// Everything here is pure: it looks at no file, no clock and no environment of its own. A wrong setting is a
// *refusal.Error that names the variable or flag, never a default, since a typing error must not switch a cage off.
//
// # Limitations
//
// A variable that lists paths is split at ':' like PATH and knows no escape. A path that contains ':' is named with
// --read or --write, or in reexec.Options, where every value is literal. In a variable its halves are two other paths,
// and the run is refused when one of them does not exist.
//
// [Entry.Abs] removes ".." by name, as the shell's cd does. Behind a symbolic link that is another directory than the
// kernel's.
package policy

import "strings"

// Mode says how a run is confined. The empty Mode means that nobody said.
type Mode string

// The modes, in the order in which errors and help list them.
const (
	Off          Mode = "off"           // no cage, the environment is left alone
	Bwrap        Mode = "bwrap"         // bubblewrap, or the run fails
	Landlock     Mode = "landlock"      // Landlock and seccomp, or the run fails
	Auto         Mode = "auto"          // the strongest that the host allows; what was lost is reported
	Enforced     Mode = "enforced"      // the strongest that holds the whole plan, or the run fails
	ScrubbedOnly Mode = "scrubbed_only" // only the environment is cleaned
	Disabled     Mode = "disabled"      // like Off, but the report says so
)

// Modes returns every accepted mode in the order of the documentation. The slice is the caller's own.
func Modes() []string {
	return []string{
		string(Off), string(Bwrap), string(Landlock), string(Auto),
		string(Enforced), string(ScrubbedOnly), string(Disabled),
	}
}

// ParseMode reads a mode: space around it and upper case do not count. Nothing but space is the empty Mode and true;
// what is no mode is false, and the caller must refuse it.
func ParseMode(s string) (Mode, bool) {
	s = fold(s)
	if s == "" {
		return "", true
	}
	for _, m := range Modes() {
		if s == m {
			return Mode(m), true
		}
	}
	return "", false
}

// Entry is one value with its origin. A zero Entry was not said.
type Entry struct {
	Value string // one element, literal; may hold any byte but NUL
	By    string // who said it: "--write", "HYPERLOOM_SANDBOX_WRITABLE", "Options.Writable"
}

// Settings is all that variables, flags and options can say. The zero value says nothing. Build one by hand (from
// options) and pass it through [Settings.Validate]; FromEnv and FromFlags have done so already.
type Settings struct {
	Mode    Entry // a Mode
	Network Entry // "shared", "none" or "egress"
	Bwrap   Entry // absolute path of a trusted bwrap
	Report  Entry // a file, or "-" for standard error
	Policy  Entry // a policy file
	Quiet   Entry // "1" or "0"
	TmpSize Entry // size of the private /tmp in bytes, for ParseSize
	Note    Entry // free text of a policy; ContainerNote says that a container runtime isolates

	RequireApproved Entry // "1" or "0": refuse what is wider than the approved policy
	Manifest        Entry // "1" or "0": the report records what the run can see

	Readable []Entry // paths, relative ones to the working directory
	Writable []Entry // paths, relative ones to the working directory
	Device   []Entry // paths of character devices
	Hosts    []Entry // host patterns
	GPU      []Entry // "all", nodes, PCI addresses or CDI names
	NPU      []Entry // as GPU
	Cache    []Entry // names of build caches
	Env      []Entry // names of variables
	Secret   []Entry // names of secret variables
	Limit    []Entry // "memory=…", "pids=…", "cpu=…"
	Hide     []Entry // paths that are not visible, whatever is granted
	Protect  []Entry // paths that stay read-only inside a writable grant
	Recipe   []Entry // files of third parties that narrow the rest
	Define   []Entry // "NAME=PATH": what {NAME} stands for in a policy file

	// Confined are paths of the lists above that must not lead out of a directory by their links. It is not said by anybody
	// but follows from how a path was said.
	Confined []Confined
}

// Confined says that Path, with all links resolved, must lie in Root: "{model_dir}/x" in the model directory.
type Confined struct{ Path, Root string }

// ContainerNote is the note of a policy whose run a container runtime isolates already (seeds R2, R39).
const ContainerNote = "exempt_container_backend"

// Said returns everything that was said except the mode, in the order of the documentation: what an explicit off
// leaves unused.
func (s Settings) Said() []Entry {
	var said []Entry
	for i := range table {
		if table[i].suffix != "MODE" {
			said = append(said, table[i].entries(&s)...)
		}
	}
	return said
}

// Each calls f for every setting that was said, in the order of the documentation, with the name that reports and policy
// show give it.
func (s Settings) Each(f func(name string, scalar bool, entries []Entry)) {
	for i := range table {
		t := &table[i]
		if es := t.entries(&s); len(es) > 0 {
			f(t.name(), t.list == nil, es)
		}
	}
}

// fold is how a word with a fixed set of values is read.
func fold(s string) string { return lower(strings.TrimSpace(s)) }

// lower changes ASCII letters only. strings.ToLower replaces bytes that are not UTF-8 and makes a 'k' of the Kelvin sign.
func lower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c - 'A' + 'a'
		}
	}
	return string(b)
}
