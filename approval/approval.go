// Package approval remembers what a policy file granted when somebody looked at it and agreed, so that a later run with the
// same file and wider grants is refused (seed R38). What is narrower, or the same, passes.
//
// What is remembered are the settings in effect: of the file, all that it extends, recipes, variables and flags together, and
// where each granted path led by its links. There is one approval of a policy file; another one replaces it. They lie in the state directory of the user, $XDG_STATE_HOME/selfcage/approved, one file for each policy file, by the path that
// the policy file has without links. Nobody but its user, or root, can write there.
//
// # Limitations
//
// Links are followed once here and once when the run is planned: who can exchange one in between can still lead a run that
// names it elsewhere. What is hidden or protected is compared by name alone. A
// policy that uses {cwd} grants other paths in another directory, and is to be approved there again.
package approval

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/selfcage/selfcage/internal/hostfs"
	"github.com/selfcage/selfcage/internal/refusal"
	"github.com/selfcage/selfcage/plan"
	"github.com/selfcage/selfcage/policy"
)

// maxBytes is more than any approval has.
const maxBytes = 4 << 20

// Store remembers that the settings s, those in effect for the policy file, may be had by its runs. What was approved for the
// file before is replaced. It returns the digest of the grants. The error is a *refusal.Error.
func Store(file string, s policy.Settings) (digest string, err error) {
	fail := func(cause string, err error) (string, error) {
		return "", &refusal.Error{What: "cannot approve", Object: plan.Quote(file), Cause: cause,
			Hint: "XDG_STATE_HOME names the directory of the user's state; it must be the user's own", Err: err}
	}
	real, err := realPath(file)
	if err != nil {
		return fail(err.Error(), err)
	}
	dir, err := stateDir()
	if err != nil {
		return fail(err.Error(), err)
	}
	if err := withinReach(file, dir, s); err != nil {
		return "", err
	}
	root, err := makeDir(dir)
	if err != nil {
		return fail(err.Error(), err)
	}
	defer root.Close()
	r := newRecord(real, s)
	data, err := json.MarshalIndent(r, "", " ")
	if err == nil {
		err = write(root, nameOf(real), append(data, '\n'))
	}
	if err != nil {
		return fail("it cannot be written to "+plan.Quote(dir)+": "+cause(err), err)
	}
	return r.Digest, nil
}

// Require refuses the settings s of a run with the policy file if they are wider than what was approved for it, or if nothing
// was, or if what was stored cannot be trusted. The error is a *refusal.Error that names what is wider.
func Require(file string, s policy.Settings) error {
	approve := "look at it with selfcage policy show " + again(file) + ", then: selfcage policy approve " + again(file)
	fail := func(cause string, err error) error {
		return &refusal.Error{What: "the policy is not approved", Object: plan.Quote(file), Cause: cause, Hint: approve, Err: err}
	}
	real, err := realPath(file)
	if err != nil {
		return fail(err.Error(), err)
	}
	dir, err := stateDir()
	if err != nil {
		return fail(err.Error(), err)
	}
	if err := withinReach(file, dir, s); err != nil {
		return err
	}
	data, err := read(dir, nameOf(real))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fail("nobody has approved it", err)
	case err != nil:
		return fail("what was approved cannot be used: "+plan.Quote(filepath.Join(dir, nameOf(real)))+" "+cause(err), err)
	}
	a, err := parse(data, real)
	if err != nil {
		return fail("what was approved cannot be used: "+plan.Quote(filepath.Join(dir, nameOf(real)))+" "+err.Error(), err)
	}
	if err := wider(file, a.named, s); err != nil {
		return err
	}
	return a.elsewhere(file, s)
}

// again is what follows "selfcage policy approve" so that it means the same run: flags add grants, and {exe_dir} is the
// directory of the command.
func again(file string) string { return plan.Quote(file) + " [the same flags] -- CMD" }

// Revoke forgets what was approved for the policy file, which may be gone itself. It returns the error of package os, for
// fs.ErrNotExist, as the cause of a *refusal.Error where nothing was approved.
func Revoke(file string) error {
	fail := func(cause string, err error) error {
		return &refusal.Error{What: "cannot revoke the approval", Object: plan.Quote(file), Cause: cause, Err: err}
	}
	p, err := filepath.Abs(file)
	if err != nil {
		return fail(err.Error(), err)
	}
	dir, err := stateDir()
	if err != nil {
		return fail(err.Error(), err)
	}
	root, err := openDir(dir)
	if err == nil {
		defer root.Close()
		err = root.Remove(nameOf(existing(p)))
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fail("nobody has approved it", err)
	case err != nil:
		return fail(cause(err), err)
	}
	return nil
}

// elsewhere refuses paths that lead out of what those of their names led to when they were approved.
func (a approved) elsewhere(file string, s policy.Settings) error {
	var now policy.Settings
	from := make(map[string]policy.Entry) // by where it leads, who goes there
	s.Each(func(name string, _ bool, entries []policy.Entry) {
		for _, e := range entries {
			if leadsAnywhere(name) {
				real := leads(name, e.Value)
				_ = Said(&now, name, policy.Entry{Value: real, By: "policy approved"})
				if _, there := from[real]; !there || real != e.Value {
					from[real] = e
				}
			}
		}
	})
	for _, c := range policy.Compare(a.led, now) {
		if c.What != "readable" && c.What != "writable" && c.What != "device" || !c.Wider() {
			continue
		}
		e := from[c.Value]
		why := c.What + " " + plan.Quote(e.Value) + " (" + e.By + ") leads to " + plan.Quote(c.Value)
		if name, real := a.above(e.Value); name == e.Value {
			why += ", and led to " + plan.Quote(real) + " when it was approved"
		} else if name != "" {
			why += ", which is outside of " + plan.Quote(real) + ", where " + plan.Quote(name) + " led when it was approved"
		}
		return &refusal.Error{What: "the run would get more than was approved", Object: plan.Quote(file), Cause: why,
			Hint: "if that is wanted: selfcage policy approve " + again(file)}
	}
	return nil
}

// above is the approved path that is p or next above it, and where that led.
func (a approved) above(p string) (name, real string) {
	for {
		if real, ok := a.real[p]; ok {
			return p, real
		}
		if p == "/" || p == "." {
			return "", ""
		}
		p = filepath.Dir(p)
	}
}

// withinReach refuses settings by which a run could write what was approved, and so approve in its user's place.
func withinReach(file, dir string, s policy.Settings) error {
	for _, e := range s.Writable {
		if p := existing(e.Value); hostfs.Within(p, filepath.Dir(dir)) || hostfs.Within(filepath.Dir(dir), p) {
			return &refusal.Error{What: "the policy cannot be approved", Object: plan.Quote(file), Cause: "a run could write what was approved: writable " +
				plan.Quote(e.Value) + " (" + e.By + ") holds " + plan.Quote(filepath.Dir(dir)) + " or lies in it", Hint: "grant a narrower directory"}
		}
	}
	return nil
}

// wider refuses what s has and approved has not.
func wider(file string, approved, s policy.Settings) error {
	const most = 3
	var named []string
	count := 0
	for _, c := range policy.Compare(approved, s) {
		if !c.Wider() {
			continue
		}
		if count++; count <= most {
			named = append(named, strings.Join(strings.Fields(c.String()), " "))
		}
	}
	if count == 0 {
		return nil
	}
	if count > most {
		named = append(named, "and "+strconv.Itoa(count-most)+" more")
	}
	return &refusal.Error{What: "the run would get more than was approved", Object: plan.Quote(file), Cause: strings.Join(named, ", "),
		Hint: "if that is wanted: selfcage policy approve " + again(file)}
}

// realPath names a policy file the same whichever way it is reached.
func realPath(file string) (string, error) {
	p, err := filepath.Abs(file)
	if err == nil {
		p, err = filepath.EvalSymlinks(p)
	}
	if err != nil {
		return "", errors.New("it " + cause(err))
	}
	return p, nil
}

func nameOf(real string) string { return digestOf([]byte(real)) + ".json" }

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// stateDir is the directory of approvals, absolute, without links above our own part of it.
func stateDir() (string, error) {
	base := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(base) { // as the specification of XDG wants it
		home := home()
		if home == "" {
			return "", errors.New("neither XDG_STATE_HOME nor HOME is set, and the account has no home")
		}
		base = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(existing(filepath.Clean(base)), "selfcage", "approved"), nil
}

// existing is p with the links of that part of it resolved that is there.
func existing(p string) string {
	if real, err := filepath.EvalSymlinks(p); err == nil {
		return real
	}
	if parent := filepath.Dir(p); parent != p {
		return filepath.Join(existing(parent), filepath.Base(p))
	}
	return p
}

// home is that of the environment, else the account's. os/user would link against the C library.
func home() string {
	if h := os.Getenv("HOME"); filepath.IsAbs(h) {
		return h
	}
	data, _ := os.ReadFile("/etc/passwd")
	return homeOf(string(data), strconv.Itoa(os.Getuid()))
}

func homeOf(passwd, uid string) string {
	for line := range strings.Lines(passwd) {
		if f := strings.Split(strings.TrimSpace(line), ":"); len(f) > 6 && f[2] == uid && filepath.IsAbs(f[5]) {
			return f[5]
		}
	}
	return ""
}

// cause is an error without the path, which is said already.
func cause(err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		return "does not exist"
	}
	return refusal.Cause(err)
}

// own are the parts of the state directory that are selfcage's.
func own(dir string) []string { return []string{filepath.Dir(dir), dir} }

// makeDir makes the directory and those above it, and opens it if nobody else can put something there.
func makeDir(dir string) (*os.Root, error) {
	if err := os.MkdirAll(filepath.Dir(filepath.Dir(dir)), 0o700); err != nil {
		return nil, errors.New(plan.Quote(filepath.Dir(filepath.Dir(dir))) + " cannot be made: " + cause(err))
	}
	for _, p := range own(dir) {
		if err := os.Mkdir(p, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, errors.New(plan.Quote(p) + " cannot be made: " + cause(err))
		}
	}
	return openDir(dir)
}

// openDir opens the directory if it is the caller's own, is no link, and nobody else can exchange it.
func openDir(dir string) (*os.Root, error) {
	for _, p := range own(dir) {
		fi, err := os.Lstat(p)
		if err != nil {
			return nil, err
		}
		if why := untrusted(fi, fs.ModeDir, 0o022); why != "" {
			return nil, errors.New(plan.Quote(p) + " " + why)
		}
	}
	for p := filepath.Dir(filepath.Dir(dir)); ; p = filepath.Dir(p) {
		fi, err := os.Stat(p)
		if err != nil {
			return nil, err
		}
		if fi.Mode().Perm()&0o002 != 0 && fi.Mode()&fs.ModeSticky == 0 {
			return nil, errors.New(plan.Quote(p) + " can be written by everybody")
		}
		if p == filepath.Dir(p) {
			break
		}
	}
	return os.OpenRoot(dir)
}

// write puts a whole file in the place of the old one, so that a reader sees the one or the other, also after the machine
// lost its power.
func write(root *os.Root, name string, data []byte) error {
	temp := "." + name + "." + strconv.Itoa(os.Getpid())
	_ = root.Remove(temp) // of a process that had the number before and was killed
	f, err := root.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	for _, last := range []func() error{f.Sync, f.Close} {
		if err2 := last(); err == nil {
			err = err2
		}
	}
	if err == nil {
		err = root.Rename(temp, name)
	}
	if err != nil {
		_ = root.Remove(temp)
		return err
	}
	if d, err := root.Open("."); err == nil { // not every file system can
		_ = d.Sync()
		_ = d.Close()
	}
	return nil
}

// read returns the file if only its owner could have written it.
func read(dir, name string) ([]byte, error) {
	root, err := openDir(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	fi, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if why := untrusted(fi, 0, 0o022); why != "" {
		return nil, errors.New(why)
	}
	data, err := root.ReadFile(name)
	if err == nil && len(data) > maxBytes {
		err = errors.New("is larger than any approval")
	}
	return data, err
}

// sorted lists what Each gives in the one order that a digest needs.
func sorted(grants []grant) []grant {
	slices.SortFunc(grants, func(a, b grant) int {
		return slices.Compare([]string{a.What, string(a.Value), string(a.Real)}, []string{b.What, string(b.Value), string(b.Real)})
	})
	return slices.Compact(grants)
}
