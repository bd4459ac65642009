package plan

import (
	"strings"

	"github.com/selfcage/selfcage/binds"
	"github.com/selfcage/selfcage/env"
	"github.com/selfcage/selfcage/internal/hostfs"
)

// Resolved is one thing that was asked for, as it is on the host.
type Resolved struct {
	What   string // "readable", "writable", "device", "cache NAME", "hide", "protect"
	Path   string // as it was spelled
	Real   string // without links, "" where there is nothing
	Access string // "read", "write", "device" or "none"
	By     string
	Note   string // what else there is to say, mostly ""
}

// Refusals are all that is wrong with a request, in the order of the request. Each is a *refusal.Error.
type Refusals []error

func (rs Refusals) Error() string {
	var texts []string
	for _, err := range rs {
		texts = append(texts, err.Error())
	}
	return strings.Join(texts, "; ")
}

// Unwrap makes errors.Is and errors.As look at each.
func (rs Refusals) Unwrap() []error { return rs }

// Check looks at what was asked for without a program: it judges each path and each name of a variable as Build would, and
// returns what each path means. Of f only Host, Env, Dir, UID and GID count. The error is a Refusals that holds every fault.
func Check(f Facts, r Request) ([]Resolved, error) {
	c := checker{builder: newBuilder(f, r)}
	for _, g := range r.Hide {
		c.hideRow(g)
	}
	c.toolEnv = c.Env
	for _, g := range r.Grants {
		c.grantRow(g)
	}
	for _, asked := range r.Caches {
		c.cacheRow(asked)
	}
	for _, g := range r.Protect {
		c.protectRow(g)
	}
	_, _, err := env.Scrub(f.Env, env.Rules{Clean: r.Clean, Allow: r.Allow, Secret: r.Secret})
	c.fault(err)
	if len(c.faults) > 0 {
		return c.rows, c.faults
	}
	return c.rows, nil
}

type checker struct {
	*builder
	rows   []Resolved
	faults Refusals
}

func (c *checker) fault(err error) {
	if err != nil {
		c.faults = append(c.faults, err)
	}
}

// absolute makes a path absolute. ok is false where that is not possible.
func (c *checker) absolute(g Grant) (p string, ok bool) {
	p = hostfs.Abs(g.Path, c.Dir)
	if c.Dir == "" && p != g.Path {
		c.fault(deletedDir(g.By + " " + Quote(g.Path)))
		return "", false
	}
	return p, true
}

func (c *checker) hideRow(g Grant) {
	h, err := c.toHide(g)
	c.fault(err)
	row := Resolved{What: "hide", Path: g.Path, Access: "none", By: g.By}
	if h != nil {
		row.Real = h.path
		c.hidden = append(c.hidden, *h)
	} else if err == nil {
		row.Note = nothingHidden
	}
	c.rows = append(c.rows, row)
}

func (c *checker) grantRow(g Grant) {
	row := Resolved{What: "readable", Path: g.Path, Access: "read", By: g.By}
	switch g.Access {
	case binds.ReadWrite:
		row.What, row.Access = "writable", "write"
	case binds.Device:
		row.What, row.Access = "device", "device"
	}
	p, ok := c.absolute(g)
	if !ok {
		return
	}
	out, err := c.hiddenGrant(g, p)
	if err == nil && out {
		row.Access, row.Note = "none", "hidden"
	}
	if err == nil && !out {
		err = c.grant(g, p, "")
	}
	c.fault(err)
	if r, err := c.real.Walk(p); err == nil {
		row.Real = r.Path
		if tokens, _ := c.tokensIn(binds.Mount{Source: r.Path}); len(tokens) > 0 && row.Note == "" {
			row.Note = "without " + strings.Join(tokens, ", ")
		}
	}
	c.rows = append(c.rows, row)
}

func (c *checker) cacheRow(asked Cache) {
	before, made := len(c.plan.Mounts), len(c.plan.Create)
	c.req.Caches = []Cache{asked}
	if err := c.caches(); err != nil {
		c.fault(err)
		return
	}
	for _, m := range c.plan.Mounts[before:] {
		if m.Kind != binds.ReadWrite {
			continue
		}
		row := Resolved{What: "cache " + asked.Name, Path: m.Target, Real: m.Source, Access: "write", By: asked.By}
		for _, lacks := range c.plan.Create[made:] {
			if lacks.Path == m.Source {
				row.Note = "made when the run starts"
			}
		}
		c.rows = append(c.rows, row)
	}
}

func (c *checker) protectRow(g Grant) {
	p, ok := c.absolute(g)
	if !ok {
		return
	}
	row := Resolved{What: "protect", Path: g.Path, Access: "read", By: g.By}
	note, err := c.protectAsked(g)
	c.fault(err)
	row.Note = note
	if r, err := c.real.Walk(p); err == nil {
		row.Real = r.Path
	}
	c.rows = append(c.rows, row)
}
