package plan

import (
	"cmp"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/selfcage/selfcage/binds"
	"github.com/selfcage/selfcage/internal/hostfs"
	"github.com/selfcage/selfcage/internal/refusal"
	"github.com/selfcage/selfcage/policy"
)

// builder collects a plan. Each step adds mounts; none takes away what another one shows.
type builder struct {
	Facts
	checkoutRoot string   // of the working directory
	others       []string // homes of all accounts, where the caller is uid 0
	req          Request
	host         *hostfs.View // without what is hidden
	real         *hostfs.View // with it
	hidden       []hidden
	overruled    []Omission // grants that hide and protect take away
	homes        []string   // the caller's real home by every name it has
	writes       []Grant    // writable, by their paths without links
	pins         []Var      // variables of tools whose data is not below the cage's HOME
	toolEnv      []string   // what the run will know of Env, and where tools are
	private      *policy.Roots
	blocked      error // what must be protected or hidden and cannot be looked at
	plan         Plan
}

func newBuilder(f Facts, r Request) *builder {
	b := &builder{Facts: f, req: r, host: hostfs.New(f.Host)}
	b.real = b.host
	b.homes = b.findHomes()
	return b
}

// Build makes the plan for a request on a host. Its errors are *refusal.Error.
func Build(f Facts, r Request) (*Plan, error) {
	b := newBuilder(f, r)
	b.plan.Name = r.Name
	b.plan.Mode, b.plan.Clean, b.plan.Policies = r.Mode, r.Clean, r.Policies
	b.plan.Args = f.Args
	b.plan.Executes = r.Runs
	b.plan.Filter = r.Filter
	b.plan.Outside = f.Outside
	for _, step := range []func() error{b.hide, b.variables} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	b.runtime()
	b.accounts()
	b.add(private(r.TmpSize)...)
	if f.UID == 0 {
		b.kernelSettings()
	}
	b.plan.Namespaces = Namespaces{ShareNet: !r.NoNet, ShareCgroup: b.host.Exists("/sys/fs/cgroup")}
	b.descriptors()
	// The program comes after all that may show another one by its name.
	for _, step := range []func() error{b.grants, b.caches, b.workDir, b.toolchains, b.searchPath, b.runs, b.protect, b.program, b.environment} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	b.add(varNames(b.plan.Mounts, r.TmpSize)...)
	b.beside()
	if err := b.cover(); err != nil {
		return nil, err
	}
	// Its data is the plan itself, which the start fills in.
	b.add(binds.Mount{Kind: binds.Sealed, Target: File, Perm: 0o444, Reason: binds.Reason{By: base, Why: "tells a process that it is inside, and in what"}},
		binds.Mount{Kind: binds.File, Target: GrantsFile, Perm: 0o444, Reason: binds.Reason{By: base, Why: "a request made inside is compared with it"}})
	ms, err := binds.Arrange(b.plan.Mounts)
	if err != nil {
		return nil, &refusal.Error{What: "the grants contradict each other", Cause: err.Error(), Hint: "grant one of the two"}
	}
	b.plan.Mounts = ms
	b.identify()
	b.fewMounts()
	b.attempts()
	slices.SortFunc(b.overruled, func(a, b Omission) int { return cmp.Or(strings.Compare(a.What, b.What), strings.Compare(a.Why, b.Why)) })
	b.plan.Omitted = append(b.plan.Omitted, b.overruled...)
	slices.SortFunc(b.plan.Remove, func(a, b Missing) int { return strings.Compare(a.Path, b.Path) })
	b.notes()
	return &b.plan, nil
}

func (b *builder) add(ms ...binds.Mount) { b.plan.Mounts = append(b.plan.Mounts, ms...) }

func (b *builder) omit(what, why string) {
	b.plan.Omitted = append(b.plan.Omitted, Omission{what, why})
}

// links makes the links on the way to a file, each with its own text. One of them may not be possible, since the cage
// has something of its own in its place: then whole is false, and from alias on the way leads nowhere inside.
func (b *builder) links(ls []hostfs.Link, why binds.Reason) (alias string, whole bool) {
	for _, l := range ls {
		if b.broken(l) {
			return clean(l.Path + "/" + l.Rest), false
		}
		if l.Path != "/var/run" && l.Path != "/var/tmp" { // which the cage makes by itself
			b.add(binds.Mount{Kind: binds.Symlink, Source: l.Text, Target: l.Path, Reason: why})
		}
	}
	return "", true
}

// broken says whether a link of the host cannot be one inside.
func (b *builder) broken(l hostfs.Link) bool {
	if l.Path == "/var/run" || l.Path == "/var/tmp" {
		r, err := b.host.Walk(l.Path)
		return err != nil || r.Path != "/run" && r.Path != Tmp
	}
	return ownPlace(l.Path)
}

// ownPlace says whether the cage makes p for itself, whatever the host has there.
func ownPlace(p string) bool {
	switch p {
	case "/etc", "/run", "/var", "/dev", Tmp:
		return true
	}
	return hostfs.Within(p, "/proc") || hostfs.Within(p, "/run/selfcage") || standardDevice(p)
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
	if !b.req.SmallSys {
		b.optional("/sys", "ROCm and Mesa find devices through it: without it there are none, and no message")
		return
	}
	if b.host.Exists("/sys") {
		b.add(binds.Mount{Kind: binds.Dir, Target: "/sys", Perm: 0o755, Reason: binds.Reason{By: base, Why: "holds what follows; bwrap by itself would make it 0700"}})
	}
	for _, e := range smallSys {
		b.optional(e.path, e.why)
	}
	b.omit("/sys", "the rest of it describes the host's devices, network and firmware, and programs for devices that were not granted")
}

// optional makes a part of the system runtime visible, if the host has it.
func (b *builder) optional(p, text string) {
	why := binds.Reason{By: base, Why: text}
	r, err := b.host.Walk(p)
	if err != nil {
		b.omit(p, b.absent(p, r))
		return
	}
	b.links(r.Links, why)
	if p == "/etc/gitconfig" && b.holdsLogin(r) {
		b.omit(p, "it holds a login")
		return
	}
	if data, ok := b.smallFile(r, maxCopy); ok {
		b.add(binds.Mount{Kind: binds.File, Source: r.Path, Target: r.Path, Data: data, Perm: 0o444, Reason: why})
		return
	}
	b.add(binds.Mount{Kind: binds.ReadOnly, Source: r.Path, Target: r.Path, Reason: why})
}

// holdsLogin says whether a git configuration has a password in a URL or a header that logs in, as CI images have it.
func (b *builder) holdsLogin(r hostfs.Resolved) bool {
	data, err := b.host.ReadFile(r.Path)
	if err != nil {
		return true
	}
	text := strings.ToLower(string(data))
	_, rest, url := strings.Cut(text, "://")
	return strings.Contains(text, "extraheader") || url && strings.Contains(rest, "@")
}

// absent says why a path of the runtime could not be resolved.
func (b *builder) absent(p string, r hostfs.Resolved) string {
	if h := b.hiddenBy(p, r.Path); h != nil {
		return "hidden by " + h.by
	}
	if len(r.Links) > 0 {
		return "a link that leads nowhere on this host"
	}
	return "not on this host"
}

// live is optional for a file that may change while the program runs, so that a copy will not do.
func (b *builder) live(p, text string) {
	r, err := b.host.Walk(p)
	if err != nil {
		b.omit(p, b.absent(p, r))
		return
	}
	why := binds.Reason{By: base, Why: text}
	b.links(r.Links, why)
	b.add(binds.Mount{Kind: binds.ReadOnly, Source: r.Path, Target: r.Path, Reason: why})
}

// maxCopy is the size up to which a file of the runtime is copied instead of bound: writing a few pages costs less than a
// mount, and what bwrap does for each mount grows with their number (docs/decisions/0003-copies.md).
const maxCopy = 8 << 10

// smallFile returns the content of a file of the runtime that is worth a copy: small, readable, and not in a directory
// that is visible anyway.
func (b *builder) smallFile(r hostfs.Resolved, limit int64) ([]byte, bool) {
	if !r.Info.Mode().IsRegular() || r.Info.Size() > limit || b.bound(r.Path) {
		return nil, false
	}
	data, err := b.host.ReadFile(r.Path)
	return data, err == nil && int64(len(data)) <= limit
}

// What bwrap does for a mount grows with their number, so beyond some number larger files are copied too.
const (
	manyMounts  = 40
	maxCopyMany = 1 << 20
)

// fewMounts copies files of the runtime that were to be bound, the smallest first, as long as there are too many mounts.
func (b *builder) fewMounts() {
	over := -manyMounts
	for _, m := range b.plan.Mounts {
		if m.Kind.Mounts() {
			over++
		}
	}
	if over <= 0 {
		return
	}
	type file struct {
		mount *binds.Mount
		size  int64
	}
	var files []file
	for i := range b.plan.Mounts {
		m := &b.plan.Mounts[i]
		if m.Kind == binds.ReadOnly && m.Reason.By == base && hostfs.Within(m.Target, "/etc") && m.Reason.Why != resolvConf.why {
			if fi, err := b.host.Lstat(m.Source); err == nil && fi.Mode().IsRegular() && fi.Size() <= maxCopyMany {
				files = append(files, file{m, fi.Size()})
			}
		}
	}
	slices.SortStableFunc(files, func(a, b file) int { return cmp.Compare(a.size, b.size) })
	for _, f := range files[:min(over, len(files))] {
		if data, err := b.host.ReadFile(f.mount.Source); err == nil && len(data) <= maxCopyMany {
			f.mount.Kind, f.mount.Data, f.mount.Perm = binds.File, data, 0o444
		}
	}
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
		why := "asked for read-only"
		switch g.Access {
		case binds.ReadWrite:
			why = "asked for writable"
		case binds.Device:
			why = "asked for as a device"
		}
		if out, err := b.hiddenGrant(g, p); err != nil {
			return err
		} else if out {
			continue
		}
		if err := b.grant(g, p, why); err != nil {
			return err
		}
		if r, _ := b.host.Walk(p); g.Access == binds.ReadWrite {
			b.writes = append(b.writes, Grant{r.Path, g.Access, g.By})
		}
	}
	return nil
}

// grant makes path p, which was asked for, visible with the links on the way to it.
func (b *builder) grant(g Grant, p, why string) error {
	r, err := b.host.Walk(p)
	if err != nil {
		return b.missing(g, r.Path, err)
	}
	if err := b.confined(g, p, r, nil); err != nil {
		return err
	}
	if err := b.grantable(g, r); err != nil {
		return err
	}
	b.granted(g, r, why)
	return nil
}

func (b *builder) granted(g Grant, r hostfs.Resolved, why string) {
	alias, whole := b.links(r.Links, binds.Reason{By: g.By, Why: "a link on the way to " + Quote(r.Path)})
	b.add(binds.Mount{Kind: g.Access, Source: r.Path, Target: r.Path, Reason: binds.Reason{By: g.By, Why: why}})
	if !whole && mountable(alias) {
		// /tmp is a link on this host and none inside: its name leads there by a bind of its own.
		b.add(binds.Mount{Kind: g.Access, Source: r.Path, Target: alias, Reason: binds.Reason{By: g.By, Why: why + ", by the name it was asked for"}})
	}
}

// mountable says whether something can be mounted at p, which is or lies in a place of the cage's own.
func mountable(p string) bool {
	return !dotted(p) && (hostfs.Within(p, Tmp) || hostfs.Within(p, "/run") || hostfs.Within(p, "/var") || hostfs.Within(p, "/dev/shm"))
}

// dotted says whether p has a ".." after a name: whether it can be followed depends on a directory that it only passes.
func dotted(p string) bool {
	for strings.HasPrefix(p, "../") {
		p = p[len("../"):]
	}
	return strings.Contains(p, "/../") || strings.HasSuffix(p, "/..")
}

// visible says whether path p means inside what it means on the host.
func (b *builder) visible(p string) bool {
	r, err := b.host.Walk(p)
	if err != nil {
		return false
	}
	for _, l := range r.Links {
		if b.broken(l) {
			alias := clean(l.Path + "/" + l.Rest)
			return mountable(alias) && b.bound(alias)
		}
		if !b.present(l.Path) {
			return false
		}
	}
	return b.present(r.Path)
}

// present is visible for a path without links.
func (b *builder) present(p string) bool {
	if b.hiddenBy(p) != nil {
		return false
	}
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
