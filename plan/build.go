package plan

import (
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/selfcage/selfcage/binds"
	"github.com/selfcage/selfcage/internal/hostfs"
	"github.com/selfcage/selfcage/internal/refusal"
)

// builder collects a plan. Each step adds mounts; none takes one away.
type builder struct {
	Facts
	req   Request
	host  *hostfs.View
	homes []string // the caller's real home by every name it has
	plan  Plan
}

// Build makes the plan for a request on a host. Its errors are *refusal.Error.
func Build(f Facts, r Request) (*Plan, error) {
	b := &builder{Facts: f, req: r, host: hostfs.New(f.Host)}
	b.plan.Name = r.Name
	b.plan.Args = f.Args
	b.plan.Filter = r.Filter
	b.plan.Outside = f.Outside
	b.homes = b.findHomes()
	b.runtime()
	b.accounts()
	b.add(private()...)
	if f.UID == 0 {
		b.kernelSettings()
	}
	b.plan.Namespaces = Namespaces{ShareNet: !r.NoNet, ShareCgroup: b.host.Exists("/sys/fs/cgroup")}
	b.descriptors()
	for _, step := range []func() error{b.grants, b.program, b.workDir, b.runs, b.environment} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	b.add(varNames(b.plan.Mounts)...)
	// Its data is the plan itself, which the start fills in.
	b.add(binds.Mount{Kind: binds.Sealed, Target: File, Perm: 0o444, Reason: binds.Reason{By: base, Why: "tells a process that it is inside, and in what"}},
		binds.Mount{Kind: binds.File, Target: GrantsFile, Perm: 0o444, Reason: binds.Reason{By: base, Why: "a request made inside is compared with it"}})
	ms, err := binds.Arrange(b.plan.Mounts)
	if err != nil {
		return nil, &refusal.Error{What: "the grants contradict each other", Cause: err.Error(), Hint: "grant one of the two"}
	}
	b.plan.Mounts = ms
	b.notes()
	return &b.plan, nil
}

func (b *builder) add(ms ...binds.Mount) { b.plan.Mounts = append(b.plan.Mounts, ms...) }

func (b *builder) omit(what, why string) {
	b.plan.Omitted = append(b.plan.Omitted, Omission{what, why})
}

// links makes the links on the way to a file, each with its own text.
func (b *builder) links(ls []hostfs.Link, why binds.Reason) {
	for _, l := range ls {
		if hostfs.Within(l.Path, "/proc") || l.Path == "/var/run" || l.Path == "/var/tmp" {
			continue // those of the cage itself
		}
		b.add(binds.Mount{Kind: binds.Symlink, Source: l.Text, Target: l.Path, Reason: why})
	}
}

// runtime is the system runtime, read-only.
func (b *builder) runtime() {
	for _, e := range runtimeDirs {
		b.optional(e.path, e.why)
	}
	for _, e := range etcNames {
		b.optional("/etc/"+e.path, e.why)
	}
	if !b.req.NoNet {
		b.live("/etc/"+resolvConf.path, resolvConf.why)
	}
	b.optional("/sys", "ROCm and Mesa find devices through it: without it there are none, and no message")
}

// optional makes a part of the system runtime visible, if the host has it.
func (b *builder) optional(p, text string) {
	if _, err := b.host.Lstat(p); err != nil {
		b.omit(p, "not on this host")
		return
	}
	why := binds.Reason{By: base, Why: text}
	r, err := b.host.Walk(p)
	if err != nil {
		b.omit(p, "a link that leads nowhere on this host")
		return
	}
	b.links(r.Links, why)
	if data, ok := b.smallFile(r); ok {
		b.add(binds.Mount{Kind: binds.File, Target: r.Path, Data: data, Perm: 0o444, Reason: why})
		return
	}
	b.add(binds.Mount{Kind: binds.ReadOnly, Source: r.Path, Target: r.Path, Reason: why})
}

// live is optional for a file that may change while the program runs, so that a copy will not do.
func (b *builder) live(p, text string) {
	r, err := b.host.Walk(p)
	if err != nil {
		b.omit(p, "not on this host, or a link that leads nowhere")
		return
	}
	why := binds.Reason{By: base, Why: text}
	b.links(r.Links, why)
	b.add(binds.Mount{Kind: binds.ReadOnly, Source: r.Path, Target: r.Path, Reason: why})
}

// maxCopy is the size up to which a file of the runtime is copied instead of bound. Writing one page costs a tenth of a
// mount, and what bwrap does for each mount grows with the number of mounts.
const maxCopy = 8 << 10

// smallFile returns the content of a file of the runtime that is worth a copy: small, readable, and not in a directory
// that is visible anyway.
func (b *builder) smallFile(r hostfs.Resolved) ([]byte, bool) {
	if !r.Info.Mode().IsRegular() || r.Info.Size() > maxCopy {
		return nil, false
	}
	if m, ok := binds.Cover(b.plan.Mounts, r.Path); ok && m.Kind.Bind() {
		return nil, false
	}
	data, err := b.host.ReadFile(r.Path)
	return data, err == nil && len(data) <= maxCopy
}

func (b *builder) kernelSettings() {
	for _, p := range procReadOnly {
		if _, err := b.host.Lstat(p); err == nil {
			b.add(binds.Mount{Kind: binds.ReadOnly, Source: p, Target: p, Reason: binds.Reason{
				By: base, Why: "uid 0 owns it on the host and needs no capability to write it"}})
		}
	}
}

// grants are the paths that were asked for.
func (b *builder) grants() error {
	for _, g := range b.req.Grants {
		p := hostfs.Abs(g.Path, b.Dir)
		if b.Dir == "" && p != g.Path {
			return deletedDir(g.By + " " + Quote(g.Path))
		}
		r, err := b.host.Walk(p)
		if err != nil {
			return b.missing(g, r.Path, err)
		}
		if err := b.grantable(g, r); err != nil {
			return err
		}
		why := "asked for read-only"
		switch g.Access {
		case binds.ReadWrite:
			why = "asked for writable"
		case binds.Device:
			why = "asked for as a device"
		}
		b.links(r.Links, binds.Reason{By: g.By, Why: "a link on the way to " + Quote(r.Path)})
		b.add(binds.Mount{Kind: g.Access, Source: r.Path, Target: r.Path, Reason: binds.Reason{By: g.By, Why: why}})
	}
	return nil
}

// visible says whether path p means inside what it means on the host.
func (b *builder) visible(p string) bool {
	r, err := b.host.Walk(p)
	if err != nil {
		return false
	}
	for _, l := range r.Links {
		if !b.present(l.Path) {
			return false
		}
	}
	return b.present(r.Path)
}

// present is visible for a path without links.
func (b *builder) present(p string) bool {
	m, ok := binds.Cover(b.plan.Mounts, p)
	switch {
	case ok && m.Kind.Bind():
		return true
	case ok && m.Kind == binds.Proc:
		return !processDir(p)
	case ok && m.Target == p:
		return m.Kind != binds.Dir && (m.Kind != binds.Tmpfs || p == Tmp || p == "/dev/shm")
	case ok && m.Kind == binds.Dev:
		return standardDevice(p)
	}
	return p == "/" || p == "/var/run" || p == "/var/tmp"
}

// processDir says whether p is or lies in the directory of a process, which means another one inside, or none.
func processDir(p string) bool {
	return len(p) > len("/proc/") && p[len("/proc/")] >= '0' && p[len("/proc/")] <= '9'
}

// standardDevice says whether bubblewrap's --dev makes p.
func standardDevice(p string) bool {
	switch p {
	case "/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx", "/dev/pts",
		"/dev/console", "/dev/fd", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/core", "/dev/shm":
		return true
	}
	return hostfs.Within(p, "/dev/pts")
}

// Quote prints a path or word so that every byte can be seen and a plain one stays plain.
func Quote(s string) string {
	q := strconv.Quote(s)
	if q == `"`+s+`"` && s != "" {
		plain := true
		for i := 0; i < len(s); i++ {
			if s[i] == ' ' || s[i] == '\'' {
				plain = false
			}
		}
		if plain {
			return s
		}
	}
	return q
}

func sortVars(vs []Var) {
	slices.SortFunc(vs, func(a, b Var) int { return strings.Compare(a.Name, b.Name) })
}

func isChar(fi fs.FileInfo) bool { return fi.Mode()&fs.ModeCharDevice != 0 }

// Seal writes the plan into the files by which the cage tells what it is. The plan must not be changed afterwards.
func (p *Plan) Seal() {
	sealed, grants := p.JSON(), p.grants()
	for i := range p.Mounts {
		switch p.Mounts[i].Target {
		case File:
			p.Mounts[i].Data = sealed
		case GrantsFile:
			p.Mounts[i].Data = grants
		}
	}
}

// Getenv returns the value of the first variable called name in environ.
func Getenv(environ []string, name string) string { return lookup(environ, name) }
