package plan

import (
	"errors"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/selfcage/selfcage/binds"
	"github.com/selfcage/selfcage/internal/hostfs"
	"github.com/selfcage/selfcage/toolchain"
)

// Of a directory maxLook entries are looked at, of what is found maxCheckouts checkouts and maxGitDirs worktrees or submodules
// of one repository are protected, to the maxDepth-th submodule of a submodule: each costs some mounts.
const (
	maxLook      = 5000
	maxCheckouts = 200
	maxGitDirs   = 64
	maxDepth     = 3
)

// What is read of git's files: bytes of a configuration, bytes of a file that holds a path, and as git itself does it files
// that a configuration includes, one in the other.
const (
	maxConfig   = 1 << 20
	maxPointer  = 16 << 10
	maxIncludes = 10
)

// protectRepositories protects what of a repository makes the host run a command.
func (b *builder) protectRepositories() error {
	roots, dirs := b.checkouts()
	p := protector{builder: b, done: make(map[string]bool)}
	if len(roots)+len(dirs) > 0 {
		p.user = p.userHooks()
	}
	for _, root := range roots {
		p.checkout(root)
	}
	for _, dir := range dirs {
		p.gitDir(dir, 0)
		top := dir // of a bare repository hooks run in it
		if strings.HasSuffix(dir, "/.git") {
			top = ""
		}
		p.hooks(dir, top)
	}
	slices.Sort(b.plan.Checkouts)
	b.plan.Checkouts = slices.Compact(b.plan.Checkouts)
	return b.blocked
}

// checkouts returns the roots of checkouts that a writable grant may concern, and git directories without one.
func (b *builder) checkouts() (roots, gitDirs []string) {
	add := func(list *[]string, p string) {
		if p != "" && p != "/" && !slices.Contains(*list, p) {
			*list = append(*list, p)
		}
	}
	for _, g := range inOrderOfPath(b.writes) {
		fi := b.look(g.Path)
		if fi == nil {
			continue
		}
		for up := g.Path; up != "/"; up = hostfs.Parent(up) {
			if b.isGitDir(up) {
				add(&gitDirs, up)
				break
			}
		}
		switch {
		case !fi.IsDir():
			add(&roots, b.checkoutOf(hostfs.Parent(g.Path)))
		case b.isGitDir(g.Path):
		default:
			add(&roots, b.checkoutOf(g.Path))
			children, bare := b.children(g)
			for _, child := range children {
				add(&roots, child)
			}
			for _, child := range bare {
				add(&gitDirs, child)
			}
		}
	}
	if len(b.writes) > 0 {
		add(&roots, b.checkoutRoot)
	}
	return roots, gitDirs
}

func (b *builder) checkoutOf(dir string) string {
	for up := dir; up != "/"; up = hostfs.Parent(up) {
		if !b.real.Unlisted(up + "/.git") {
			b.look(up + "/.git") // or what cannot be looked at would count as no checkout
		}
	}
	root, _ := toolchain.Checkout(b.real, dir)
	return root
}

// children are the checkouts and the bare repositories directly in a granted directory.
func (b *builder) children(g Grant) (roots, bare []string) {
	looked := 0
	limit := func(what string) {
		b.note("only the first " + what + " in " + Quote(g.Path) + " (" + g.By + ") were looked at for hooks and configuration to protect")
	}
	for _, e := range b.list(g.Path) {
		if !e.IsDir() || e.Name() == ".git" || e.Name() == ".hg" {
			continue
		}
		if looked++; looked > maxLook {
			limit(strconv.Itoa(maxLook) + " directories")
			break
		}
		child := hostfs.Join(g.Path, e.Name())
		switch {
		case b.look(child+"/.git") != nil, b.look(child+"/.hg") != nil:
			roots = append(roots, child)
		case b.isGitDir(child):
			bare = append(bare, child)
		default:
			continue
		}
		if n := len(roots) + len(bare); n > maxCheckouts {
			limit(strconv.Itoa(maxCheckouts) + " repositories")
			return roots[:min(len(roots), maxCheckouts)], bare
		}
	}
	return roots, bare
}

// isGitDir says whether git takes dir for a git directory (is_git_directory in its setup.c), or would once a run has moved
// back what an earlier one moved away: what is protected in one, its configuration, cannot be moved.
func (b *builder) isGitDir(dir string) bool {
	has := func(name string) bool { return b.look(hostfs.Join(dir, name)) != nil }
	switch head, config := has("HEAD"), b.hasFile(dir, "config"); {
	case !head && !config:
		return false
	case head && has("commondir"), has("objects") && has("refs"):
		return true
	default:
		return config && b.configuresRepository(hostfs.Join(dir, "config"))
	}
}

// isPartOfOne says the same of a directory in worktrees or modules, which holds nothing else.
func (b *builder) isPartOfOne(dir string) bool {
	return b.hasFile(dir, "HEAD") || b.hasFile(dir, "config") || b.hasFile(dir, "commondir") || b.hasFile(dir, "gitdir") || b.isGitDir(dir)
}

func (b *builder) hasFile(dir, name string) bool {
	fi := b.look(hostfs.Join(dir, name))
	return fi != nil && !fi.IsDir()
}

// configuresRepository says whether a configuration has what git init writes into that of a repository.
func (b *builder) configuresRepository(file string) bool {
	text, ok := b.text(file, maxConfig)
	return ok && slices.ContainsFunc(gitSettings(text), func(s gitSetting) bool {
		return s.key == "core.repositoryformatversion" || s.key == "core.bare"
	})
}

const (
	insideRuns = "its hooks and configuration run commands"
	configRuns = "git runs commands that it names"
	hooksRun   = "git runs the hooks in it"
	pointerWhy = "it says where the git directory is, whose hooks and configuration run commands"
)

// protector protects what makes git or Mercurial run a command, in the repositories that a writable grant concerns.
type protector struct {
	*builder
	done map[string]bool
	user []string // directories of hooks that the user's own configuration names, as it has them
}

// protected is the reason for all of it.
func protected(why string) binds.Reason { return binds.Reason{By: "protect", Why: why} }

// checkout protects the checkout at root.
func (p protector) checkout(root string) {
	dot := hostfs.Join(root, ".git")
	common := dot
	fi := p.look(dot)
	switch {
	case fi == nil:
	case fi.IsDir():
		p.gitDir(dot, 0)
		p.breakable(root, dot)
	case fi.Mode()&fs.ModeSymlink != 0:
		p.linkNote(dot)
		r, err := p.real.Walk(dot)
		p.block(r.Path, err)
		if err == nil && r.Info.IsDir() {
			p.gitDir(r.Path, 0)
			p.breakable(root, r.Path)
			common = r.Path
		}
	default:
		p.existing(dot, fi, pointerWhy)
		_, extra := toolchain.Checkout(p.real, root)
		for _, r := range extra {
			p.gitDir(r.Path, 0)
			common = r.Path // the last is the one with the configuration
		}
	}
	if fi != nil {
		p.hooks(common, root)
	}
	hg := hostfs.Join(root, ".hg")
	if fi := p.look(hg); fi != nil && fi.IsDir() && p.concerned(hg) {
		p.mercurial(hg)
	}
}

// breakable notes a checkout whose git directory the run can make useless: git then takes the top of the checkout for a bare
// repository, if it looks like one.
func (p protector) breakable(root, gitDir string) {
	if len(p.writableAt(gitDir)) > 0 {
		p.plan.Checkouts = append(p.plan.Checkouts, root)
	}
}

// concerned says whether something of directory dir can be written, or could if policies decided that.
func (p protector) concerned(dir string) bool {
	return len(p.writableAt(dir)) > 0 || slices.ContainsFunc(p.writes, func(g Grant) bool { return fromPolicy(g.By) && hostfs.Within(g.Path, dir) })
}

// fromPolicy says whether a file said so that may lie in the checkout itself, and not whoever started the run.
func fromPolicy(by string) bool { return strings.HasPrefix(by, "policy ") }

// mercurial protects the files of a .hg that hold settings, and those that say that there are more of them elsewhere.
func (p protector) mercurial(hg string) {
	const named = "Mercurial runs the hooks that it names"
	p.part(hg, "hgrc", false, "", named)
	p.part(hg, "hgrc-not-shared", false, "", named) // read whether or not something is shared
	p.part(hg, "requires", false, "", "with it Mercurial reads the settings of another repository")
	if fi := p.look(hg + "/sharedpath"); fi != nil {
		p.existing(hg+"/sharedpath", fi, "it says where the other repository is")
	}
}

// gitDir protects a git directory. A mount of its own cannot be renamed, and so not be replaced by another one.
func (p protector) gitDir(dir string, depth int) {
	if p.done[dir] || depth > maxDepth || !p.concerned(dir) {
		return
	}
	p.done[dir] = true
	linked := p.isLinked(dir)
	if linked || p.ofWorktree(dir) {
		p.part(dir, "gitdir", false, "", "it says where the work tree is")
	}
	if !linked {
		p.part(dir, "config", false, "", configRuns)
		p.part(dir, "hooks", true, "", hooksRun)
	}
	p.part(dir, "config.worktree", false, "", configRuns)
	p.commonDir(dir)
	p.worktrees(dir, depth)
	p.submodules(dir, depth)
}

// commonDir protects the file that says in which directory the configuration and the hooks are. Where git finds one it looks
// neither at core.worktree nor at core.bare; a submodule's work tree is where git would look anyway.
func (p protector) commonDir(dir string) {
	sets := ""
	for _, s := range p.settings(dir + "/config") {
		switch {
		case s.key == "core.worktree" && !strings.Contains(dir, "/.git/modules/"):
			sets = "core.worktree"
		case s.key == "core.bare" && !slices.Contains([]string{"", "0", "no", "off", "false"}, strings.ToLower(s.value)):
			sets = "core.bare"
		}
	}
	at := dir + "/commondir"
	if _, err := p.real.Lstat(at); err != nil && sets != "" {
		if len(p.writableAt(at)) > 0 && p.mayMake(dir) {
			p.note(Quote(at) + " is not protected, since " + Quote(dir+"/config") + " sets " + sets +
				": the run can make it and so name another configuration")
		}
		return
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

// isLinked says whether dir is the git directory of a linked worktree, whose configuration and hooks are elsewhere. A run can
// make a file gitdir in any git directory: what counts is where commondir leads, which is protected.
func (p protector) isLinked(dir string) bool {
	if !p.hasFile(dir, "gitdir") {
		return false
	}
	text, ok := p.text(dir+"/commondir", maxPointer)
	if !ok {
		return false
	}
	r, err := p.real.Walk(hostfs.Abs(strings.TrimRight(text, "\r\n"), dir))
	return err == nil && r.Path != dir && p.isGitDir(r.Path)
}

// ofWorktree says whether dir lies where a repository has the git directories of its linked worktrees.
func (p protector) ofWorktree(dir string) bool {
	above := hostfs.Parent(dir)
	return strings.HasSuffix(above, "/worktrees") && (p.done[hostfs.Parent(above)] || p.isGitDir(hostfs.Parent(above)))
}

// worktrees protects the git directories of the worktrees that are linked to the repository in dir.
func (p protector) worktrees(dir string, depth int) {
	at := dir + "/worktrees"
	subs, all := p.gitDirsIn(at, 0)
	if !all {
		p.tooMany(at)
		if !p.explicit(at) {
			p.keep(at, p.pinTop(dir), insideRuns)
		}
	}
	for _, sub := range subs {
		p.gitDir(sub, depth+1)
		p.pin(sub, dir, protected(insideRuns)) // it may have been met before dir was
		p.pointer(sub)
	}
}

// submodules protects the git directories in dir/modules, and that none is added: git would take it for that of a submodule
// which is not cloned yet.
func (p protector) submodules(dir string, depth int) {
	at := dir + "/modules"
	if p.look(at) == nil && p.isLinked(dir) {
		return // with one that is empty, git worktree remove says that there are submodules
	}
	subs, all := p.gitDirsIn(at, 4) // a submodule may be called lib/name
	one := all && (depth < maxDepth || len(subs) == 0)
	if !one {
		p.tooMany(at)
	}
	switch {
	case p.explicit(at):
		p.part(dir, "modules", true, "", "")
	case !one:
		p.part(dir, "modules", true, "", submoduleWhy)
	default:
		for _, sub := range subs {
			for _, target := range p.writableAt(sub) {
				if !p.keepOwn(target) {
					p.add(binds.Mount{Kind: binds.ReadWrite, Source: sub, Target: target, Own: true, Reason: protected("writable, in a directory that is not")})
				}
			}
		}
		p.overrulePolicies(at, submoduleWhy, func(path string) bool {
			return hostfs.Within(path, at) && !slices.ContainsFunc(subs, func(sub string) bool { return hostfs.Within(path, sub) })
		})
		p.part(dir, "modules", true, "", submoduleWhy)
	}
	for _, sub := range subs {
		p.gitDir(sub, depth+1)
		p.pin(sub, dir, protected(insideRuns))
		p.pointer(sub)
		p.hooks(sub, "")
	}
}

const submoduleWhy = "git would take one that is made in it for that of a submodule"

// tooMany tells of a directory of git directories that are not protected each.
func (p protector) tooMany(at string) {
	switch {
	case len(p.writableAt(at)) == 0:
	case p.explicit(at):
		p.note("only the first " + strconv.Itoa(maxGitDirs) + " of " + Quote(at) + " are protected")
	default:
		p.note(Quote(at) + " is read-only with all that is in it, since it holds more than " + strconv.Itoa(maxGitDirs) +
			" git directories or some too deep: git cannot write there")
	}
}

// gitDirsIn returns the git directories in directory at, or so many directories below it. all is false where there are more than
// are to be protected each.
func (p protector) gitDirsIn(at string, below int) (dirs []string, all bool) {
	if fi := p.look(at); fi == nil || !fi.IsDir() {
		return nil, true
	}
	looked := 0
	var look func(at string, below int) bool
	look = func(at string, below int) bool {
		for _, e := range p.list(at) {
			if !e.IsDir() {
				continue
			}
			sub := at + "/" + e.Name()
			switch looked++; {
			case looked > maxLook:
				return false
			case p.isPartOfOne(sub):
				if len(dirs) == maxGitDirs {
					return false
				}
				dirs = append(dirs, sub)
			case below > 0 && !look(sub, below-1):
				return false
			}
		}
		return true
	}
	all = look(at, below)
	return dirs, all
}

// pointer protects the file .git that leads to the git directory dir of a linked worktree or a submodule, however deep in the
// grant it lies, with the directories on the way: git status in what holds a submodule runs git in it.
func (p protector) pointer(dir string) {
	at := ""
	if text, ok := p.text(dir+"/gitdir", maxPointer); ok && (p.isLinked(dir) || p.ofWorktree(dir)) {
		at = p.pathSetting(strings.TrimRight(text, "\r\n"), dir)
	}
	for _, s := range p.settings(dir + "/config") {
		if s.key == "core.worktree" {
			at = p.pathSetting(s.value, dir) + "/.git"
		}
	}
	r, err := p.real.Walk(at)
	p.block(r.Path, err)
	if err == nil && r.Info.Mode().IsRegular() && strings.HasSuffix(r.Path, "/.git") && !p.explicit(r.Path) {
		p.keep(r.Path, "/", pointerWhy)
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
	default:
		p.block(at, err)
	}
}

// existing protects what is there.
func (p protector) existing(at string, fi fs.FileInfo, why string) {
	if p.explicit(at) || p.hiddenBy(at) != nil {
		return
	}
	if fi.Mode()&fs.ModeSymlink == 0 {
		p.keep(at, p.pinTop(at), why)
		return
	}
	p.linkNote(at)
	r, err := p.real.Walk(at)
	p.block(r.Path, err)
	if err == nil && !p.explicit(r.Path) && p.hiddenBy(r.Path) == nil {
		top := p.pinTop(r.Path)
		if top == r.Path {
			top = "/" // it lies in no git directory: all on the way can be renamed
		}
		p.keep(r.Path, top, why)
	}
}

// keep makes what is at path at read-only, also where a policy asks for it writable.
func (p protector) keep(at, top, why string) {
	p.overrulePolicies(at, why, func(path string) bool { return path == at || hostfs.Parent(path) == at && !p.isGitDir(path) })
	p.readOnly(at, top, protected(why))
}

// overrulePolicies makes read-only what policies grant of the paths that are meant, and says what would grant it.
func (p protector) overrulePolicies(at, why string, meant func(path string) bool) {
	_, write := p.remedy()
	for i := range p.plan.Mounts {
		m := &p.plan.Mounts[i]
		if m.Kind != binds.ReadWrite || !fromPolicy(m.Reason.By) || !meant(m.Source) || p.explicit(m.Source) {
			continue
		}
		note := m.Reason.By + " lists " + Quote(m.Source) + " as writable, and it stays read-only, since "
		if m.Source != at {
			note += "of " + Quote(at) + " "
		}
		note += why + "; " + write + " " + Quote(m.Source) + " would grant it"
		if !holds(p.plan.Notes, note) {
			p.note(note)
		}
		m.Kind, m.Reason.Why = binds.ReadOnly, m.Reason.Why+"; read-only, since "+why
	}
}

// explicit says whether whoever started the run granted exactly this path, to be written.
func (p protector) explicit(at string) bool {
	return slices.ContainsFunc(p.writes, func(g Grant) bool { return g.Path == at && !fromPolicy(g.By) })
}

// settings are those of a git configuration file and what it includes, each of which is protected.
func (p protector) settings(file string) (list []gitSetting) {
	files, met := []string{file}, map[string]bool{}
	for depth := 0; len(files) > 0 && depth <= maxIncludes; depth++ {
		var included []string
		for _, file := range files {
			r, err := p.real.Walk(file)
			if err != nil || met[r.Path] {
				p.block(r.Path, err)
				continue
			}
			met[r.Path] = true
			text, _ := p.text(r.Path, maxConfig)
			for _, s := range gitSettings(text) {
				list = append(list, s)
				if s.key != "include.path" && !(strings.HasPrefix(s.key, "includeif.") && strings.HasSuffix(s.key, ".path")) {
					continue
				}
				if at := p.pathSetting(s.value, hostfs.Parent(r.Path)); at != "" {
					p.namedPath(at, false, "git's configuration includes it")
					included = append(included, at)
				}
			}
		}
		files = included
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

// hooks protects what the configuration in git directory dir names, for the work tree at root: the configuration says where
// that is, where root is "". What is a link in dir may lead to something writable although dir is not.
func (p protector) hooks(dir, root string) {
	for _, name := range []string{"config", "config.worktree", "hooks"} {
		if fi, err := p.real.Lstat(dir + "/" + name); err == nil && fi.Mode()&fs.ModeSymlink != 0 {
			p.existing(dir+"/"+name, fi, map[bool]string{true: hooksRun, false: configRuns}[name == "hooks"])
		}
	}
	p.linkedHooks(dir + "/hooks")
	settings := append(p.settings(dir+"/config"), p.settings(dir+"/config.worktree")...)
	var paths []string
	for _, s := range settings {
		switch s.key {
		case "core.worktree":
			r, err := p.real.Walk(p.pathSetting(s.value, dir))
			p.block(r.Path, err)
			if err == nil && root == "" {
				root = r.Path
			}
		case "core.hookspath":
			paths = append(paths, s.value)
		}
	}
	if len(paths) == 0 {
		paths = p.user
	}
	for _, value := range paths {
		if at := p.pathSetting(value, root); at != "" {
			p.namedPath(at, true, hooksRun+", by core.hooksPath")
			p.linkedHooks(at)
		}
	}
}

// userHooks are the values of core.hooksPath in the configurations that git reads in each repository.
func (p protector) userHooks() (values []string) {
	files := []string{"/etc/gitconfig"}
	config := p.getenv("XDG_CONFIG_HOME")
	if len(p.homes) > 0 {
		if config == "" {
			config = p.homes[0] + "/.config"
		}
		files = append(files, p.homes[0]+"/.gitconfig")
	}
	if strings.HasPrefix(config, "/") {
		files = append(files, config+"/git/config")
	}
	for _, file := range files {
		for _, s := range p.settings(file) {
			if s.key == "core.hookspath" {
				values = append(values, s.value)
			}
		}
	}
	return values
}

// linkedHooks protects the files that links in a directory of hooks lead to.
func (p protector) linkedHooks(dir string) {
	d, err := p.real.Walk(dir)
	p.block(d.Path, err)
	if err != nil || !d.Info.IsDir() {
		return
	}
	n := 0
	for _, e := range p.list(d.Path) {
		if e.Type()&fs.ModeSymlink == 0 {
			continue
		}
		hook := hostfs.Join(d.Path, e.Name())
		if n++; n > maxGitDirs {
			p.note("only the first " + strconv.Itoa(maxGitDirs) + " links in " + Quote(d.Path) + " were looked at for hooks to protect")
			return
		}
		r, err := p.real.Walk(hook)
		switch {
		case err != nil && p.explicit(r.Path):
		case err != nil:
			p.block(r.Path, err)
			if errors.Is(err, fs.ErrNotExist) && len(p.writableAt(r.Path)) > 0 {
				p.note(Quote(hook) + " leads to " + Quote(r.Path) + ", which does not exist: the run can make it, and git would run it as a hook")
			}
		case r.Info.Mode().IsRegular() && !p.explicit(r.Path):
			p.keep(r.Path, "/", "git runs it, by "+Quote(hook))
		}
		for _, l := range r.Links {
			p.linkNote(l.Path)
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
		p.keep(r.Path, "/", why)
	case errors.Is(err, hostfs.ErrNotDir):
		p.keep(r.Path, "/", why) // a file, which the run could exchange for a directory
	case !errors.Is(err, fs.ErrNotExist):
		p.block(r.Path, err)
	case p.inOurs(r.Path, protected(why)):
	case hostfs.Parent(clean(at)) == hostfs.Parent(r.Path):
		p.placeholder(r.Path, isDir, "", "/", protected(why))
	default:
		p.placeholder(r.Path, true, "", "/", protected(why))
	}
}
