package start

import (
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/selfcage/selfcage/binds"
	"github.com/selfcage/selfcage/internal/hostfs"
	"github.com/selfcage/selfcage/internal/refusal"
	"github.com/selfcage/selfcage/plan"
	"github.com/selfcage/selfcage/policy"
	"github.com/selfcage/selfcage/report"
	"github.com/selfcage/selfcage/toolchain"
)

// nested is what a program does that is inside already: it goes on, if what it asks for is no more than the cage gives.
func (p Program) nested(environ []string) error {
	data, err := os.ReadFile(plan.GrantsFile)
	around, ok := plan.ParseGrants(data)
	if err != nil || !ok {
		return &refusal.Error{What: "cannot read the grants of the cage around it", Object: plan.GrantsFile, Cause: "it is missing or not whole", Err: err}
	}
	eff, err := p.askedInside(environ, around)
	switch mode := policy.Mode(eff.Mode.Value); {
	case err != nil:
		return err
	case mode == policy.Off, mode == policy.Disabled:
		p.note(eff.Settings, "mode "+eff.Mode.Value+" asked for inside a cage: it stays in force, since one cannot leave")
		return nil
	case mode == "" && eff.Policy.Value == "":
		return nil // nobody asked for a cage
	}
	if err := p.within(eff, environ, around); err != nil {
		return err
	}
	if mode := policy.Mode(eff.Mode.Value); around.Clean || mode != policy.Auto && mode != policy.ScrubbedOnly {
		return nil
	}
	rep, err := report.Begin(policy.Effective{})
	if err != nil {
		return err
	}
	return p.scrubOnly(rep, eff, environ, false)
}

// askedInside is Asked for a program inside. A policy file that the cage was made by need not be visible: what it says
// holds already.
func (p Program) askedInside(environ []string, around plan.Grants) (policy.Effective, error) {
	known := func(e policy.Entry) bool { return slices.Contains(around.Policies, e.Abs(workDir())) }
	src, err := p.sources(environ)
	if err != nil {
		return policy.Effective{}, err
	}
	said := policy.Merge(src.Flags, src.Env, src.Options)
	others := slices.DeleteFunc(slices.Clone(said.Recipe), known)
	if (said.Policy.Value == "" || known(said.Policy)) && len(others) == 0 {
		return policy.Effective{Settings: said}, nil
	}
	eff, err := p.Asked(environ)
	if e := new(refusal.Error); err != nil && asRefusal(err, e) && e.Err != nil && os.IsNotExist(e.Err) {
		e.Hint = "inside a cage only what it shows can be read: ask for this policy where the outer cage is made, or grant the file with --read there"
		return eff, e
	}
	return eff, err
}

func asRefusal(err error, to *refusal.Error) bool {
	e, ok := err.(*refusal.Error)
	if ok {
		*to = *e
	}
	return ok
}

// cannotWiden refuses what the cage around does not give.
func cannotWiden(e policy.Entry, cause string) error {
	return &refusal.Error{
		What: "cannot make another cage inside this one", Object: e.By + " " + plan.Quote(e.Value), Cause: cause,
		Hint: "ask for it where the outer cage is made, or leave it out here",
	}
}

// within compares what is asked for inside a cage with what the cage gives: one can neither leave nor widen it.
func (p Program) within(eff policy.Effective, environ []string, around plan.Grants) error {
	s := eff.Settings
	for _, err := range []error{policy.Misspelt(policy.Prefix(p.Name), environ), s.Unsupported(), s.UnsetSecret(environ)} {
		if err != nil {
			return err
		}
	}
	if by := s.Report.By; strings.HasPrefix(by, "-") {
		// From a variable it is the one that the cage around was asked for.
		p.note(s, by+" "+plan.Quote(s.Report.Value)+": no report is written inside a cage")
	}
	size, _ := policy.ParseSize(s.TmpSize.Value)
	switch {
	case s.Mode.Value == string(policy.Enforced) && !around.Clean:
		return cannotWiden(s.Mode, "the cage was made in mode "+around.Mode+", which only scrubs the environment")
	case s.Network.Value == "none" && around.ShareNet:
		return cannotWiden(s.Network, "the cage shares the host's network")
	case s.Network.Value == "shared" && !around.ShareNet:
		return cannotWiden(s.Network, "the cage has no network")
	case size > 0 && (around.Tmp == 0 || around.Tmp > size):
		return cannotWiden(s.TmpSize, "the cage's /tmp is larger")
	}
	if err := pathsWithin(s, environ, around); err != nil || !eff.InForce && len(s.Recipe) == 0 {
		return err
	}
	if eff.InForce {
		if err := p.approved(eff); err != nil {
			return err
		}
	}
	return onlyGranted(eff, environ, around)
}

// onlyGranted holds a policy of the program's own against what the cage makes writable: it would permit less.
func onlyGranted(eff policy.Effective, environ []string, around plan.Grants) error {
	granted := func(p string) bool {
		for _, e := range eff.Writable {
			if hostfs.Within(p, e.Value) {
				return true
			}
		}
		for _, e := range eff.Cache {
			c, err := toolchain.CacheNamed(toolchain.Host{View: hostfs.New(hostfs.OS{}), FS: hostfs.OS{}, Env: environ}, e.By, e.Value)
			if err == nil && slices.ContainsFunc(append(c.Dirs, c.Files...), func(dir string) bool { return hostfs.Within(p, dir) }) {
				return true
			}
		}
		return false
	}
	for _, m := range around.Mounts {
		if m.Kind == binds.ReadWrite && !granted(m.Target) {
			e := eff.Policy
			if !eff.InForce {
				e = first(eff.Recipe)
			}
			return cannotWiden(e, "the cage makes "+strconv.Quote(m.Target)+" writable, which this policy does not")
		}
	}
	return nil
}

// pathsWithin compares paths: what is to be seen must be, what is not to be seen or written must not be.
func pathsWithin(s policy.Settings, environ []string, around plan.Grants) error {
	dir, err := os.Getwd()
	if err != nil {
		return &refusal.Error{What: "cannot use the working directory", Cause: err.Error(), Hint: "change to a directory that exists", Err: err}
	}
	host := hostfs.New(hostfs.OS{})
	writable := s.Writable
	for _, e := range s.Cache {
		c, err := toolchain.CacheNamed(toolchain.Host{View: host, FS: hostfs.OS{}, Env: environ}, e.By, e.Value)
		if err != nil {
			return err
		}
		for _, p := range append(c.Dirs, c.Files...) {
			writable = append(writable, policy.Entry{Value: p, By: e.By + " " + e.Value})
		}
	}
	readable := func(m binds.Mount) bool { return m.Kind.Bind() || m.Kind == binds.File || m.Kind == binds.Tmpfs }
	// What is made in a private place can be written as long as the cage is there.
	canWrite := func(m binds.Mount) bool {
		return (m.Kind == binds.ReadWrite || m.Kind == binds.Tmpfs) && !remounted(around.Mounts, m.Target)
	}
	device := func(m binds.Mount) bool { return m.Kind == binds.Device || m.Kind == binds.Dev }
	empty := func(m binds.Mount) bool { return !m.Kind.Bind() }
	protected := func(m binds.Mount) bool { return !canWrite(m) || m.Kind == binds.Tmpfs }
	for _, list := range []struct {
		entries []policy.Entry
		ok      func(binds.Mount) bool
		absent  bool // whether that it is not there is as good
		cause   string
	}{
		{s.Readable, readable, false, "the cage does not show it"},
		{writable, canWrite, false, "the cage does not make it writable"},
		{s.Device, device, false, "the cage does not have this device"},
		{s.Hide, empty, true, "the cage shows it"},
		{s.Protect, protected, true, "the cage makes it writable"},
	} {
		for _, e := range list.entries {
			r, err := host.Walk(hostfs.Abs(e.Value, dir))
			if err != nil {
				if list.absent {
					continue
				}
				return cannotWiden(e, list.cause)
			}
			if m, ok := binds.Cover(around.Mounts, r.Path); !ok && !list.absent || ok && !list.ok(m) {
				return cannotWiden(e, list.cause+": "+strconv.Quote(r.Path))
			}
			for _, m := range around.Mounts {
				// What is not to be there must not be in it either.
				if list.absent && m.Target != r.Path && hostfs.Within(m.Target, r.Path) && m.Kind != binds.RemountRO && !list.ok(m) {
					return cannotWiden(e, list.cause+": "+strconv.Quote(m.Target))
				}
			}
		}
	}
	return nil
}

// remounted says whether the mount at target was made read-only afterwards.
func remounted(ms []binds.Mount, target string) bool {
	for _, m := range ms {
		if m.Kind == binds.RemountRO && m.Target == target {
			return true
		}
	}
	return false
}
