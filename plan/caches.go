package plan

import (
	"errors"
	"io/fs"
	"strings"

	"github.com/selfcage/selfcage/binds"
	"github.com/selfcage/selfcage/internal/hostfs"
	"github.com/selfcage/selfcage/internal/refusal"
	"github.com/selfcage/selfcage/toolchain"
)

// caches grants tools' own caches. One that is not there yet is to be made: it would be by the tool, outside.
func (b *builder) caches() error {
	for _, asked := range b.req.Caches {
		c, err := toolchain.CacheNamed(b.toolHost(), asked.By, asked.Name)
		if err != nil {
			return err
		}
		by := asked.By + " " + asked.Name
		for _, p := range c.Dirs {
			if err := b.cache(Grant{p, binds.ReadWrite, by}, c.Why, true); err != nil {
				return err
			}
		}
		for _, p := range c.Files {
			if err := b.cache(Grant{p, binds.ReadWrite, by}, c.Why, false); err != nil {
				return err
			}
		}
		for _, p := range c.Pins {
			b.pins = append(b.pins, Var{p.Name, p.Value, binds.Reason{By: p.By, Why: p.Why}})
		}
	}
	return nil
}

// cache grants one part of a cache.
func (b *builder) cache(g Grant, why string, isDir bool) error {
	if out, err := b.hiddenGrant(g, g.Path); out || err != nil {
		return err
	}
	r, err := b.host.Walk(g.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		r, err = b.future(g)
		if err != nil {
			return err
		}
		b.plan.Create = append(b.plan.Create, Missing{Path: r.Path, IsDir: isDir, Reason: binds.Reason{By: g.By, Why: why}})
		b.granted(g, r, why)
		return nil
	case err == nil && !isDir && len(r.Links) > 0 && r.Links[len(r.Links)-1].Rest == "":
		return &refusal.Error{What: "cannot grant " + g.By, Object: Quote(g.Path), Cause: "it is a link, to " + Quote(r.Path) + ", and a lock file is none",
			Hint: "remove the link"}
	case err == nil && b.leadsOut(r):
		return leadsOut(g, r)
	case err == nil && r.Info.IsDir() != isDir:
		return &refusal.Error{What: "cannot grant " + g.By, Object: Quote(g.Path), Cause: map[bool]string{
			true: "it is not a directory", false: "it is a directory"}[isDir], Hint: "move it away, or set the tool's own variable"}
	}
	return b.grant(g, g.Path, why)
}

// future is where g's path, which does not exist, will lie once it is made.
func (b *builder) future(g Grant) (hostfs.Resolved, error) {
	p := clean(g.Path)
	above := p
	r, err := hostfs.Resolved{}, error(fs.ErrNotExist)
	for errors.Is(err, fs.ErrNotExist) && above != "/" {
		above = hostfs.Parent(above)
		r, err = b.host.Walk(above)
	}
	if err != nil {
		return r, b.missing(g, r.Path, err)
	}
	rest := strings.TrimPrefix(p[len(above):], "/")
	name, _, _ := strings.Cut(rest, "/")
	if at := hostfs.Join(r.Path, name); !r.Info.IsDir() {
		return r, b.missing(g, r.Path, hostfs.ErrNotDir)
	} else if _, err := b.host.Lstat(at); err == nil {
		return r, &refusal.Error{What: "cannot grant " + g.By, Object: Quote(g.Path), Cause: Quote(at) + " is a link that leads nowhere",
			Hint: "make what it leads to, or remove it"}
	}
	if _, _, uid, ok := hostfs.Identity(r.Info); ok && b.UID == 0 && uid != 0 {
		return r, &refusal.Error{What: "cannot grant " + g.By, Object: Quote(g.Path), Cause: "it is missing, and would be made as root's in a directory of somebody else's, " + Quote(r.Path),
			Hint: "make it as its user, or start as that user"}
	}
	r.Path = hostfs.Join(r.Path, rest)
	if b.leadsOut(r) {
		return r, leadsOut(g, r)
	}
	return r, b.grantablePath(g, r.Path)
}

// leadsOut says whether a link of the working directory's own leads elsewhere: what a variable names there is not what the
// tree makes of it.
func (b *builder) leadsOut(r hostfs.Resolved) bool {
	for _, l := range r.Links {
		if b.Dir != "" && b.Dir != "/" && hostfs.Within(l.Path, b.Dir) && !hostfs.Within(r.Path, b.Dir) {
			return true
		}
	}
	return false
}

func leadsOut(g Grant, r hostfs.Resolved) error {
	return &refusal.Error{What: "cannot grant " + g.By, Object: Quote(g.Path), Cause: "a link in the working directory leads out of it, to " + Quote(r.Path),
		Hint: "name that directory by the tool's own variable, if it is meant"}
}

func (m Missing) kind() string {
	if m.IsDir {
		return "directory"
	}
	return "file"
}
