package policyfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/selfcage/selfcage/internal/refusal"
	"github.com/selfcage/selfcage/policy"
)

// How far extends may lead. The second number stops a few files that extend each other many times over.
const (
	maxChain = 16
	maxFiles = 64
)

// Load reads the policy file path and what it extends. A file that is empty or cannot be read is an error, whoever names
// it; so is a cycle, and the error shows it.
func Load(path string, o Options) (policy.File, error) {
	l := loader{options: o}
	return l.load(path, nil)
}

type loader struct {
	options Options
	chain   []opened // from the first file to the one that is being read
	files   int
}

// opened is a file by its name, and by what it is: a link makes two names of one file.
type opened struct {
	path string
	info fs.FileInfo
}

// from makes the error when a file cannot be loaded: at the extends that names it, nil for the first.
type from func(cause, hint string, err error) error

func (l *loader) load(path string, fail from) (policy.File, error) {
	if fail == nil {
		fail = func(cause, hint string, err error) error {
			return &refusal.Error{What: "cannot read the policy", Object: strconv.Quote(path), Cause: cause, Hint: hint, Err: err}
		}
	}
	data, info, err := read(path)
	if err != nil {
		cause := refusal.Cause(err)
		hint := "a policy that cannot be read grants nothing and is never skipped"
		if err == errPipe {
			hint = "save it in a file; what a pipe or <(COMMAND) gives is not read"
		}
		return policy.File{}, fail(cause, hint, err)
	}
	if err := l.enter(path, info, fail); err != nil {
		return policy.File{}, err
	}
	defer func() { l.chain = l.chain[:len(l.chain)-1] }()
	d, err := parse(path, data, l.options)
	if err != nil {
		return policy.File{}, err
	}
	out, faults := d.file, d.faults
	bases := make([]policy.File, len(d.extends))
	for i, n := range d.extends {
		if bases[i], err = l.base(path, d, n); err != nil && len(faults) < maxFaults {
			faults = append(faults, faultsOf(err)...)
		}
	}
	if len(faults) > 0 {
		return policy.File{}, faults.first()
	}
	for _, base := range slices.Backward(bases) { // the last is the strongest
		out = over(out, base)
	}
	return out, nil
}

// base loads what the file path extends at n.
func (l *loader) base(path string, d *decoder, n *node) (policy.File, error) {
	name := n.text
	switch {
	case name[0] == '{':
		var err error
		if name, err = d.expand(n); err != nil {
			return policy.File{}, err
		}
	case !filepath.IsAbs(name):
		name = filepath.Join(filepath.Dir(path), name)
	}
	return l.load(name, func(cause, hint string, err error) error {
		e := d.fail(n.at, "cannot extend "+strconv.Quote(name)+": "+cause, hint).(*refusal.Error)
		e.Err = err
		return e
	})
}

// enter puts a file at the end of the chain, unless it is there or the chain is too long.
func (l *loader) enter(path string, info fs.FileInfo, fail from) error {
	var names []string
	cycle := false
	for _, o := range l.chain {
		cycle = cycle || os.SameFile(o.info, info)
		names = append(names, refusal.Printable(o.path))
	}
	names = append(names, refusal.Printable(path))
	l.files++
	switch chain := strings.Join(names, " -> "); {
	case cycle:
		return fail("it extends itself: "+chain, "leave out one extends of the circle", nil)
	case len(l.chain) == maxChain:
		return fail("more than "+strconv.Itoa(maxChain)+" files extend one another: "+chain, "", nil)
	case l.files > maxFiles:
		return fail("more than "+strconv.Itoa(maxFiles)+" files are extended", "", nil)
	}
	l.chain = append(l.chain, opened{path, info})
	return nil
}

// read reads a regular file, and no more of it than is needed to see that it is too large. A pipe would wait for somebody who
// writes, and to open a device can do something to it: neither is opened if that can be told before, and none makes it wait.
func read(path string) ([]byte, fs.FileInfo, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, err
	}
	if err := regular(info); err != nil {
		return nil, nil, err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	if info, err = f.Stat(); err == nil {
		err = regular(info)
	}
	if err != nil {
		return nil, nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	return data, info, err
}

// regular says what a file is that is no regular one.
func regular(info fs.FileInfo) error {
	switch {
	case info.Mode().IsRegular():
		return nil
	case info.IsDir():
		return syscall.EISDIR
	case info.Mode()&fs.ModeNamedPipe != 0:
		return errPipe
	}
	return errSpecial
}

var (
	errPipe    = errors.New("it is a pipe, and a policy is a regular file")
	errSpecial = errors.New("it is a device or a socket, and a policy is a regular file")
)

// over is what child says with what it extends: lists add up, the child's scalars replace.
func over(child, base policy.File) policy.File {
	said := func(limit policy.Entry) bool {
		key, _, _ := strings.Cut(limit.Value, "=")
		return slices.ContainsFunc(child.Settings.Limit, func(e policy.Entry) bool { return strings.HasPrefix(e.Value, key+"=") })
	}
	base.Settings.Limit = slices.DeleteFunc(slices.Clone(base.Settings.Limit), said)
	out := policy.File{
		Settings: policy.Merge(child.Settings, base.Settings),
		Said:     unique(slices.Concat(child.Said, base.Said)),
		Narrow:   slices.Concat(child.Narrow, base.Narrow),
		Files:    slices.Concat(child.Files, base.Files),
	}
	if out.Settings.Network.Value != "egress" { // the child closed what its base had opened
		out.Settings.Hosts = nil
	}
	return out
}
