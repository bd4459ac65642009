// Package policyfile reads policy files, TOML or JSON with the same keys, into [policy.File].
//
//	mode = "enforced"
//	read_paths = ["{model_dir}", "{exe_dir}"]
//	write_paths = ["{scratch_dir}"]
//	network = { egress = true, hosts = ["huggingface.co"] }
//	env_allowlist = ["HTTPS_PROXY"]
//
// The same keys may lie in one object "sandbox", as backend manifests have them. Every key is optional and an absent one
// grants nothing. What a file says that is not understood is an error with its place, FILE:LINE:COLUMN, never a default:
// an unknown key or token, a wrong type, a key that is there twice, an empty file.
//
// Paths are absolute or begin with a token such as {home}, and hold no "..": who reads a grant must see what it grants.
// What stands in a file is otherwise literal; there is no "~", no variable and no pattern.
//
// extends names files whose grants this one takes over. The file that extends is the stronger: its scalars (mode, network,
// tmp, report, note and each limit) replace, its lists add up. Of several that are extended, a later one is the stronger.
// Relative names begin at the directory of the file that says them, by its name, links not resolved.
//
// # Limitations
//
// Whether a path may be granted or a variable is a secret is judged by those who know the host. Paths that are not UTF-8,
// and such that have a {word} of their own, cannot be named in a file.
//
// A list has at most 1000 elements, and of more than 100 faults the rest is not told. Only a regular file is read, no pipe: it
// may be read more than once, and a pipe whose writer never comes would keep the start waiting for ever.
//
// In TOML an array inside an array, which no key has, is reported at the outer one.
package policyfile

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/selfcage/selfcage/internal/refusal"
	"github.com/selfcage/selfcage/policy"
)

// Options is what Parse and Load have to know about the run. It lies in package policy so that a host program's options
// can name the type of Load without linking this package.
type Options = policy.FileOptions

// Parse reads the policy data, a file called name. The format goes by the name's extension, .toml or .json, else by the
// content: a policy in JSON begins with '{'. A policy with extends is an error here, since the rest of it is elsewhere.
//
// The error is a *refusal.Error that names the place of the first fault; errors.As finds all as [Faults]. It quotes keys, words and paths, never what follows the '=' of a
// variable that was given with its value.
func Parse(name string, data []byte, o Options) (policy.File, error) {
	d, err := parse(name, data, o)
	if err != nil {
		return policy.File{}, err
	}
	if len(d.faults) > 0 {
		return policy.File{}, d.faults.first()
	}
	if len(d.extends) > 0 {
		return policy.File{}, d.fail(d.extends[0].at, "extends needs a file that it is relative to", "pass the policy as a file")
	}
	return d.file, nil
}

// parse returns an error where there is no document. What is wrong with one is among the faults of the decoder.
func parse(name string, data []byte, o Options) (*decoder, error) {
	s, err := newSource(name, data)
	if err != nil {
		return nil, err
	}
	read := parseTOML
	if isJSON(name, data) {
		read = parseJSON
	}
	root, err := read(s, o.Beside)
	if err != nil {
		return nil, err
	}
	d := &decoder{source: s, tokens: o.Tokens}
	d.fault(d.document(root))
	slices.SortStableFunc(d.faults, func(a, b error) int { return s.at[a] - s.at[b] })
	d.file.Files = []string{name}
	return d, nil
}

// Faults are all that is wrong with a policy file, in the order of their places, then what is wrong with the files that it
// extends. Each is a *refusal.Error. Where Parse and Load return an error that is made of more than one, it is found by
// errors.As.
type Faults []error

func (fs Faults) Error() string {
	var texts []string
	for _, err := range fs {
		texts = append(texts, err.Error())
	}
	return strings.Join(texts, "; ")
}

// first is the error for all: the first of them, with the others behind it.
func (fs Faults) first() error {
	first, ok := fs[0].(*refusal.Error)
	if !ok || len(fs) == 1 {
		return fs[0]
	}
	with := *first
	with.Err = fs
	return &with
}

// faultsOf is the other way round.
func faultsOf(err error) Faults {
	var many Faults
	if errors.As(err, &many) {
		return many
	}
	return Faults{err}
}

func isJSON(name string, data []byte) bool {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".json":
		return true
	case ".toml":
		return false
	}
	return strings.HasPrefix(strings.TrimLeft(string(data), " \t\r\n"), "{")
}
