package plan

import (
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/selfcage/selfcage/binds"
	"github.com/selfcage/selfcage/internal/hostfs"
	"github.com/selfcage/selfcage/internal/refusal"
)

// protect keeps paths read-only that lie in something writable: what was asked for, and what of a checkout makes the host
// run a command later (docs/decisions/0007-protect.md).
func (b *builder) protect() error {
	for _, g := range inOrderOfPath(b.req.Protect) {
		note, err := b.protectAsked(g)
		if err != nil {
			return err
		}
		if note != "" && g.By != "report" { // whose file nobody asked to protect
			b.note(g.By + " " + Quote(g.Path) + ": " + note)
		}
	}
	if err := b.protectStore(); err != nil {
		return err
	}
	return b.protectRepositories()
}

const (
	standsFor   = "it does not exist, an empty one stands for it"
	notWritable = "nothing of it is writable, so there is nothing to protect"
	notThere    = "there is no such path, and nothing is writable where it would be, so nothing is protected"
)

// protectAsked protects one path that was asked for, against any grant. note says what became of it, where that is not what it
// seems to be.
func (b *builder) protectAsked(g Grant) (note string, err error) {
	p := hostfs.Abs(g.Path, b.Dir)
	if b.Dir == "" && p != g.Path {
		return "", deletedDir(g.By + " " + Quote(g.Path))
	}
	why := binds.Reason{By: g.By, Why: "asked for to stay read-only"}
	r, err := b.real.Walk(p)
	if err := b.confined(g, p, r, err); err != nil {
		return "", err
	}
	before, stands := b.protections(), len(b.plan.Remove)
	nothing := notWritable
	switch {
	case b.hiddenBy(r.Path) != nil:
		return "", nil // which is read-only too
	case err != nil && pattern(g.Path):
		return "", noPattern("cannot protect", g, r.Path)
	case errors.Is(err, fs.ErrNotExist) && !dotted(clean(p)):
		b.protectMissing(p, g, why)
		nothing = notThere
	case err != nil:
		return "", &refusal.Error{What: "cannot protect", Object: g.By + " " + Quote(g.Path), Cause: Quote(r.Path) + ": " + refusal.Cause(err), Hint: "check the path", Err: err}
	default:
		b.protectFound(r, g, why)
	}
	switch {
	case len(b.plan.Remove) > stands:
		return standsFor, nil
	case b.protections() == before && !b.askedAbove(g, r.Path):
		return nothing, nil
	}
	return "", nil
}

// protectFound protects what is there.
func (b *builder) protectFound(r hostfs.Resolved, g Grant, why binds.Reason) {
	b.overrule(r.Path, g)
	for _, l := range r.Links {
		b.linkNote(l.Path)
	}
	if data := b.standIn(r.Path, r.Info.IsDir()); b.ours(r.Path, r.Info, r.Info.IsDir(), data) {
		b.placeholder(r.Path, r.Info.IsDir(), data, "/", why)
		return
	}
	b.readOnly(r.Path, "/", why)
}

// protections grows with each thing that is done to keep something read-only.
func (b *builder) protections() int { return len(b.plan.Mounts) + len(b.overruled) }

// askedAbove says whether path p, which g names, lies in something else that was asked for to be protected.
func (b *builder) askedAbove(g Grant, p string) bool {
	return slices.ContainsFunc(b.req.Protect, func(other Grant) bool {
		r, err := b.real.Walk(hostfs.Abs(other.Path, b.Dir))
		return err == nil && other != g && hostfs.Within(p, r.Path)
	})
}

// pattern says whether path p looks as if a shell should have made several of it.
func pattern(p string) bool { return strings.ContainsAny(p, "*?[") }

// noPattern is the refusal of one that names nothing: hide and protect would do nothing, and nobody would see that.
func noPattern(what string, g Grant, at string) error {
	return &refusal.Error{What: what, Object: g.By + " " + Quote(g.Path), Cause: Quote(at) + " does not exist",
		Hint: "a path is taken as it is, there are no patterns: name the directory, or each path", Err: fs.ErrNotExist}
}

// overrule makes what was granted at or in p read-only.
func (b *builder) overrule(p string, g Grant) {
	for i := range b.plan.Mounts {
		m := &b.plan.Mounts[i]
		if m.Kind == binds.ReadWrite && hostfs.Within(m.Source, p) {
			b.overruled = append(b.overruled, Omission{m.Target, m.Reason.By + " asks for it writable, and " + g.By + " keeps it read-only"})
			m.Kind, m.Reason.Why = binds.ReadOnly, m.Reason.Why+"; read-only by "+g.By
		}
	}
}

// protectMissing protects path p, which does not exist: the first name on the way that is missing cannot be made.
func (b *builder) protectMissing(p string, g Grant, why binds.Reason) {
	name := clean(p)
	above := hostfs.Parent(name)
	dir, err := b.real.Walk(above)
	for err != nil && above != "/" {
		above = hostfs.Parent(above)
		dir, err = b.real.Walk(above)
	}
	at, _ := b.real.Walk(name)
	for _, l := range at.Links {
		b.linkNote(l.Path)
	}
	rest := strings.TrimPrefix(name[len(above):], "/")
	whole := hostfs.Join(dir.Path, rest)
	b.overrule(whole, g)
	if b.inOurs(at.Path, why) {
		return
	}
	missing := at.Path
	for b.willBe(missing) && hostfs.Within(whole, missing) {
		if missing == whole {
			b.readOnly(missing, "/", why)
			return
		}
		next, _, _ := strings.Cut(whole[len(missing)+1:], "/")
		missing += "/" + next
	}
	// A file stands for what is called so, an empty directory for what it would lie in.
	isDir := missing != whole || strings.HasSuffix(p, "/")
	b.placeholder(missing, isDir, b.standIn(missing, isDir), "/", why)
}

// standIn is what a placeholder at path p holds: an empty commondir in a git directory would break git on the host.
func (b *builder) standIn(p string, isDir bool) string {
	if dir, ok := strings.CutSuffix(p, "/commondir"); ok && !isDir && b.isGitDir(dir) {
		return commonDirHere
	}
	return ""
}

// willBe says whether p, which is missing, is made before the cage is.
func (b *builder) willBe(p string) bool {
	for _, m := range b.plan.Create {
		if hostfs.Within(m.Path, p) {
			return true
		}
	}
	return false
}

// linkNote tells of a link that the run can replace: nothing can be mounted over one.
func (b *builder) linkNote(p string) {
	note := Quote(p) + " is a link in a writable directory, which the run can replace: what it leads to is protected, the link is not"
	if len(b.writableAt(p)) > 0 && !holds(b.plan.Notes, note) {
		b.note(note)
	}
}

// writableAt returns the places at which path p of the host can be written inside.
func (b *builder) writableAt(p string) (targets []string) {
	for _, at := range b.shownAt(p) {
		if m, ok := binds.Cover(b.plan.Mounts, at); ok && m.Kind == binds.ReadWrite {
			targets = append(targets, at)
		}
	}
	return targets
}

// readOnly mounts path p of the host over itself, read-only, where it can be written. The directories on the way to it,
// below top, become mounts of their own: what can be renamed can be replaced.
func (b *builder) readOnly(p, top string, why binds.Reason) {
	for _, at := range b.writableAt(p) {
		b.unpin(at)
		b.add(binds.Mount{Kind: binds.ReadOnly, Source: p, Target: at, Reason: why})
	}
	b.pin(hostfs.Parent(p), top, why)
}

const pinned = "writable, but it cannot be renamed: something in it is protected"

// unpin takes away what pin has made of target: writable is stronger.
func (b *builder) unpin(target string) {
	b.plan.Mounts = slices.DeleteFunc(b.plan.Mounts, func(m binds.Mount) bool { return m.Target == target && m.Reason.Why == pinned })
}

// pin makes directory p, and those above it below top, mounts of their own where they are writable.
func (b *builder) pin(p, top string, why binds.Reason) {
	for ; hostfs.Within(p, top) && p != "/"; p = hostfs.Parent(p) {
		for _, at := range b.writableAt(p) {
			if b.keepOwn(at) {
				continue
			}
			b.add(binds.Mount{Kind: binds.ReadWrite, Source: p, Target: at, Own: true, Reason: binds.Reason{By: why.By, Why: pinned}})
		}
	}
}

// keepOwn makes the writable mount at target, if there is one, stay a mount of its own.
func (b *builder) keepOwn(target string) (found bool) {
	for i := range b.plan.Mounts {
		if m := &b.plan.Mounts[i]; m.Target == target && m.Kind == binds.ReadWrite {
			m.Own, found = true, true
		}
	}
	return found
}

// placeholder makes path p, which does not exist, something that is and stays as it is while the cage lasts. One that
// another run has made is as good.
func (b *builder) placeholder(p string, isDir bool, data, top string, why binds.Reason) {
	if len(b.writableAt(p)) == 0 || b.hiddenBy(p) != nil || !b.mayMake(hostfs.Parent(p)) {
		return
	}
	why.Why += "; it does not exist, so something empty stands for it while the run lasts"
	b.plan.Remove = append(b.plan.Remove, Missing{Path: p, IsDir: isDir, Data: data, Reason: why})
	b.readOnly(p, top, why)
}

// inOurs says whether path p, which is missing, would lie in a directory that another run has made as a placeholder: that one
// then stands for p as well. Something made in it would keep it from being removed.
func (b *builder) inOurs(p string, why binds.Reason) bool {
	dir := hostfs.Parent(p)
	fi, err := b.real.Lstat(dir)
	if err != nil || !b.ours(dir, fi, true, "") {
		return false
	}
	b.placeholder(dir, true, "", "/", why)
	return true
}

// mayMake says whether the caller may be able to make something in directory dir: otherwise the run is not either.
func (b *builder) mayMake(dir string) bool {
	fi, err := b.real.Lstat(dir)
	if err != nil {
		return b.willBe(dir)
	}
	_, _, uid, ok := hostfs.Identity(fi)
	return !ok || b.UID == 0 || int(uid) == b.UID || fi.Mode().Perm()&0o022 != 0
}

// ours says whether what is at p was made as a placeholder, by another run that still needs it or was killed.
func (b *builder) ours(p string, fi fs.FileInfo, isDir bool, data string) bool {
	switch {
	case fi.IsDir() != isDir || !Placeholder(fi):
		return false
	case isDir:
		return len(b.real.ReadDir(p)) == 0
	case fi.Size() != int64(len(data)):
		return false
	}
	text, err := b.real.ReadFile(p)
	return err == nil && string(text) == data
}
