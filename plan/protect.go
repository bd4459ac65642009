package plan

import (
	"errors"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/selfcage/selfcage/binds"
	"github.com/selfcage/selfcage/internal/hostfs"
	"github.com/selfcage/selfcage/internal/refusal"
	"github.com/selfcage/selfcage/toolchain"
)

// protect keeps paths read-only that lie in something writable: what was asked for, and what of a checkout makes the host
// run a command later (docs/decisions/0007-protect.md).
func (b *builder) protect() error {
	for _, g := range inOrderOfPath(b.req.Protect) {
		if err := b.protectAsked(g); err != nil {
			return err
		}
	}
	if err := b.protectStore(); err != nil {
		return err
	}
	roots, dirs := b.checkouts()
	p := protector{b, make(map[string]bool)}
	for _, root := range roots {
		p.checkout(root)
	}
	for _, dir := range dirs {
		p.gitDir(dir, 0)
		p.hooksPath(dir, "")
	}
	return nil
}

// protectAsked protects one path that was asked for, against any grant.
func (b *builder) protectAsked(g Grant) error {
	p := hostfs.Abs(g.Path, b.Dir)
	if b.Dir == "" && p != g.Path {
		return deletedDir(g.By + " " + Quote(g.Path))
	}
	why := binds.Reason{By: g.By, Why: "asked for to stay read-only"}
	r, err := b.real.Walk(p)
	switch {
	case b.hiddenBy(r.Path) != nil:
		return nil // which is read-only too
	case errors.Is(err, fs.ErrNotExist) && !dotted(clean(p)):
		b.protectMissing(p, g, why)
		return nil
	case err != nil:
		return &refusal.Error{What: "cannot protect", Object: g.By + " " + Quote(g.Path), Cause: Quote(r.Path) + ": " + cause(err), Hint: "check the path", Err: err}
	}
	b.overrule(r.Path, g)
	for _, l := range r.Links {
		b.linkNote(l.Path)
	}
	if b.ours(r.Path, r.Info, r.Info.IsDir(), "") {
		b.placeholder(r.Path, r.Info.IsDir(), "", "/", why)
		return nil
	}
	b.readOnly(r.Path, "/", why)
	return nil
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
	b.placeholder(missing, missing != whole || strings.HasSuffix(p, "/"), "", "/", why)
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
		b.add(binds.Mount{Kind: binds.ReadOnly, Source: p, Target: at, Reason: why})
	}
	b.pin(hostfs.Parent(p), top, why)
}

// pin makes directory p, and those above it below top, mounts of their own where they are writable.
func (b *builder) pin(p, top string, why binds.Reason) {
	for ; hostfs.Within(p, top) && p != "/"; p = hostfs.Parent(p) {
		for _, at := range b.writableAt(p) {
			if b.keepOwn(at) {
				continue
			}
			b.add(binds.Mount{Kind: binds.ReadWrite, Source: p, Target: at, Own: true, Reason: binds.Reason{By: why.By,
				Why: "writable, but it cannot be renamed: something in it is protected"}})
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

// maxLook is how many directories in a granted one are looked at for checkouts, maxGitDirs how many worktrees or submodules
// of one repository are protected: each costs some mounts.
const (
	maxLook    = 200
	maxGitDirs = 24
)

// checkouts returns the roots of checkouts that a writable grant may concern, and git directories without one.
func (b *builder) checkouts() (roots, gitDirs []string) {
	add := func(list *[]string, p string) {
		if p != "" && p != "/" && !slices.Contains(*list, p) {
			*list = append(*list, p)
		}
	}
	for _, g := range inOrderOfPath(b.writes) {
		fi, err := b.host.Lstat(g.Path)
		switch {
		case err != nil:
		case !fi.IsDir():
			add(&roots, b.checkoutOf(hostfs.Parent(g.Path)))
		case b.isGitDir(g.Path):
			add(&gitDirs, g.Path)
		default:
			add(&roots, b.checkoutOf(g.Path))
			for _, child := range b.children(g) {
				add(&roots, child)
			}
		}
	}
	if len(b.writes) > 0 {
		add(&roots, b.checkoutRoot)
	}
	return roots, gitDirs
}

func (b *builder) checkoutOf(dir string) string {
	root, _ := toolchain.Checkout(b.host, dir)
	return root
}

// children are the checkouts directly in a granted directory.
func (b *builder) children(g Grant) (roots []string) {
	looked := 0
	for _, e := range b.host.ReadDir(g.Path) {
		if !e.IsDir() || e.Name() == ".git" || e.Name() == ".hg" {
			continue
		}
		if looked++; looked > maxLook {
			b.note("only the first " + strconv.Itoa(maxLook) + " directories in " + Quote(g.Path) + " (" + g.By +
				") were looked at for checkouts whose hooks and configuration are protected")
			break
		}
		child := hostfs.Join(g.Path, e.Name())
		for _, vcs := range []string{".git", ".hg"} {
			if _, err := b.host.Lstat(child + "/" + vcs); err == nil {
				roots = append(roots, child)
				break
			}
		}
	}
	return roots
}

// isGitDir says whether git takes dir for a git directory (is_git_directory in its setup.c).
func (b *builder) isGitDir(dir string) bool {
	has := func(name string) bool { _, err := b.host.Lstat(hostfs.Join(dir, name)); return err == nil }
	return has("HEAD") && (has("commondir") || has("objects") && has("refs"))
}

const (
	insideRuns = "its hooks and configuration run commands"
	pointerWhy = "it says where the git directory is, whose hooks and configuration run commands"
)

// protector protects what makes git or Mercurial run a command, in the repositories that a writable grant concerns.
type protector struct {
	*builder
	done map[string]bool
}

// protected is the reason for all of it.
func protected(why string) binds.Reason { return binds.Reason{By: "protect", Why: why} }

// checkout protects the checkout at root.
func (p protector) checkout(root string) {
	dot := hostfs.Join(root, ".git")
	common := dot
	fi, err := p.host.Lstat(dot)
	switch {
	case err != nil:
	case fi.IsDir():
		p.gitDir(dot, 0)
	case fi.Mode()&fs.ModeSymlink != 0:
		p.linkNote(dot)
		if r, err := p.host.Walk(dot); err == nil && r.Info.IsDir() {
			p.gitDir(r.Path, 0)
			common = r.Path
		}
	default:
		p.existing(dot, fi, pointerWhy)
		_, extra := toolchain.Checkout(p.host, root)
		for _, r := range extra {
			p.gitDir(r.Path, 0)
			common = r.Path // the last is the one with the configuration
		}
	}
	if err == nil {
		p.hooksPath(common, root)
	}
	hg := hostfs.Join(root, ".hg")
	if fi, err := p.host.Lstat(hg); err == nil && fi.IsDir() && len(p.writableAt(hg)) > 0 {
		p.mercurial(hg)
	}
}

// mercurial protects the files of a .hg that hold settings, and those that say that there are more of them elsewhere.
func (p protector) mercurial(hg string) {
	const named = "Mercurial runs the hooks that it names"
	p.part(hg, "hgrc", false, "", named)
	p.part(hg, "hgrc-not-shared", false, "", named) // read whether or not something is shared
	p.part(hg, "requires", false, "", "with it Mercurial reads the settings of another repository")
	if fi, err := p.real.Lstat(hg + "/sharedpath"); err == nil {
		p.existing(hg+"/sharedpath", fi, "it says where the other repository is")
	}
}

// gitDir protects a git directory. A mount of its own cannot be renamed, and so not be replaced by another one.
func (p protector) gitDir(dir string, depth int) {
	if p.done[dir] || depth > 3 || len(p.writableAt(dir)) == 0 {
		return
	}
	p.done[dir] = true
	const named = "git runs commands that it names"
	if p.isLinked(dir) {
		p.part(dir, "gitdir", false, "", "it says where the work tree is")
	} else {
		p.part(dir, "config", false, "", named)
		p.part(dir, "hooks", true, "", "git runs the hooks in it")
	}
	p.part(dir, "config.worktree", false, "", named)
	p.commonDir(dir)
	p.each(dir, "worktrees", "gitdir", depth)
	p.each(dir, "modules", "HEAD", depth)
}

// commonDir protects the file that says in which directory the configuration and the hooks are. Where git finds one it does
// not look at core.worktree; a submodule's is where git would look anyway.
func (p protector) commonDir(dir string) {
	for _, s := range p.settings(dir+"/config", 0) {
		if s.key == "core.worktree" && !strings.Contains(dir, "/.git/modules/") {
			p.note(Quote(dir+"/commondir") + " is not protected, since " + Quote(dir+"/config") +
				" sets core.worktree: the run can make it and so name another configuration")
			return
		}
	}
	p.part(dir, "commondir", false, commonDirHere, "it says where the configuration and the hooks are")
}

// commonDirHere is what git does without a file commondir.
const commonDirHere = ".\n"

// pinTop is the git directory that dir is or lies in: from there on nothing on the way may be renamed.
func (p protector) pinTop(dir string) string {
	top := dir
	for up := dir; up != "/"; up = hostfs.Parent(up) {
		if p.done[up] {
			top = up
		}
	}
	return top
}

// isLinked says whether dir is the git directory of a linked worktree.
func (p protector) isLinked(dir string) bool {
	fi, err := p.host.Lstat(dir + "/gitdir")
	return err == nil && fi.Mode().IsRegular()
}

// each protects the git directories in dir/name, which are those that have a file called mark.
func (p protector) each(dir, name, mark string, depth int) {
	n := 0
	var look func(at string, deep int)
	look = func(at string, deep int) {
		for _, e := range p.host.ReadDir(at) {
			sub := at + "/" + e.Name()
			switch {
			case !e.IsDir():
			case n >= maxGitDirs:
				n++
				return
			case p.host.Has(sub, mark):
				n++
				p.gitDir(sub, depth+1)
				p.pin(sub, dir, protected(insideRuns)) // it may have been met before dir was
				p.pointer(sub)
				if name == "modules" {
					p.hooksPath(sub, "")
				}
			case deep < 2: // a submodule may be called lib/name
				look(sub, deep+1)
			}
		}
	}
	if fi, err := p.host.Lstat(dir + "/" + name); err == nil && fi.IsDir() {
		look(dir+"/"+name, 0)
	}
	if n > maxGitDirs {
		p.note("only the first " + strconv.Itoa(maxGitDirs) + " of " + Quote(dir+"/"+name) + " are protected")
	}
}

// pointer protects the file .git that leads to the git directory dir of a linked worktree or a submodule, however deep in the
// grant it lies, with the directories on the way: git status in what holds a submodule runs git in it.
func (p protector) pointer(dir string) {
	at := ""
	if text, err := p.host.ReadFile(dir + "/gitdir"); err == nil && p.isLinked(dir) {
		at = p.pathSetting(strings.TrimRight(string(text), "\r\n"), dir)
	}
	for _, s := range p.settings(dir+"/config", 0) {
		if s.key == "core.worktree" {
			at = p.pathSetting(s.value, dir) + "/.git"
		}
	}
	if r, err := p.host.Walk(at); err == nil && r.Info.Mode().IsRegular() && strings.HasSuffix(r.Path, "/.git") && !p.explicit(r.Path) {
		p.readOnly(r.Path, "/", protected(pointerWhy))
	}
}

// part protects one file or directory in a git directory, which may not be there.
func (p protector) part(dir, name string, isDir bool, data, why string) {
	at := dir + "/" + name
	if p.explicit(at) {
		p.omit(at, "not protected: it was granted by its own name")
		return
	}
	fi, err := p.real.Lstat(at)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		p.placeholder(at, isDir, data, p.pinTop(dir), protected(why))
	case err == nil && p.ours(at, fi, isDir, data):
		p.placeholder(at, isDir, data, p.pinTop(dir), protected(why))
	case err == nil:
		p.existing(at, fi, why)
	}
}

// existing protects what is there.
func (p protector) existing(at string, fi fs.FileInfo, why string) {
	if p.explicit(at) || p.hiddenBy(at) != nil {
		return
	}
	if fi.Mode()&fs.ModeSymlink == 0 {
		p.readOnly(at, p.pinTop(at), protected(why))
		return
	}
	p.linkNote(at)
	if r, err := p.host.Walk(at); err == nil && !p.explicit(r.Path) {
		p.readOnly(r.Path, p.pinTop(r.Path), protected(why))
	}
}

// explicit says whether the operator granted exactly this path, to be written.
func (p protector) explicit(at string) bool {
	return slices.ContainsFunc(p.writes, func(g Grant) bool { return g.Path == at })
}

// settings are those of a git configuration file and what it includes, each of which is protected.
func (p protector) settings(file string, depth int) (list []gitSetting) {
	r, err := p.host.Walk(file)
	if err != nil || !r.Info.Mode().IsRegular() || r.Info.Size() > 1<<20 || depth > 5 {
		return nil
	}
	text, err := p.host.ReadFile(r.Path)
	if err != nil {
		return nil
	}
	for _, s := range gitSettings(string(text)) {
		list = append(list, s)
		if s.key == "include.path" || strings.HasPrefix(s.key, "includeif.") && strings.HasSuffix(s.key, ".path") {
			if at := p.pathSetting(s.value, hostfs.Parent(r.Path)); at != "" {
				p.namedPath(at, false, "git's configuration includes it")
				list = append(list, p.settings(at, depth+1)...)
			}
		}
	}
	return list
}

// pathSetting makes a path of a git configuration absolute, "" where it cannot be known.
func (p protector) pathSetting(value, dir string) string {
	if rest, ok := strings.CutPrefix(value, "~/"); ok {
		if len(p.homes) == 0 {
			return ""
		}
		return p.homes[0] + "/" + rest
	}
	if value == "" || value[0] == '~' || value[0] == '%' || dir == "" && value[0] != '/' {
		return ""
	}
	return hostfs.Abs(value, dir)
}

// hooksPath protects the directory of hooks that the configuration in git directory dir names, for the work tree at root: the
// configuration says where that is, where root is "".
func (p protector) hooksPath(dir, root string) {
	settings := append(p.settings(dir+"/config", 0), p.settings(dir+"/config.worktree", 0)...)
	for _, s := range settings {
		if s.key == "core.worktree" && root == "" {
			if r, err := p.host.Walk(p.pathSetting(s.value, dir)); err == nil {
				root = r.Path
			}
		}
	}
	for _, s := range settings {
		if s.key == "core.hookspath" {
			if at := p.pathSetting(s.value, root); at != "" {
				p.namedPath(at, true, "git runs the hooks in it, by core.hooksPath")
			}
		}
	}
}

// namedPath protects what a configuration names, with the directories on the way to it.
func (p protector) namedPath(at string, isDir bool, why string) {
	r, err := p.real.Walk(at)
	if p.hiddenBy(r.Path) != nil || p.explicit(r.Path) {
		return
	}
	for _, l := range r.Links {
		p.linkNote(l.Path)
	}
	switch {
	case err == nil && p.ours(r.Path, r.Info, isDir, ""):
		p.placeholder(r.Path, isDir, "", "/", protected(why))
	case err == nil:
		p.readOnly(r.Path, "/", protected(why))
	case !errors.Is(err, fs.ErrNotExist), p.inOurs(r.Path, protected(why)):
	case hostfs.Parent(clean(at)) == hostfs.Parent(r.Path):
		p.placeholder(r.Path, isDir, "", "/", protected(why))
	default:
		p.placeholder(r.Path, true, "", "/", protected(why))
	}
}
