package plan

import (
	"errors"
	"io/fs"
	"strconv"
	"strings"

	"github.com/selfcage/selfcage/binds"
	"github.com/selfcage/selfcage/internal/hostfs"
	"github.com/selfcage/selfcage/internal/refusal"
	"github.com/selfcage/selfcage/policy"
	"github.com/selfcage/selfcage/toolchain"
)

func deletedDir(object string) error {
	return &refusal.Error{
		What: "cannot use the working directory", Object: object, Cause: "it was deleted",
		Hint: "change to a directory that exists", Err: fs.ErrNotExist,
	}
}

// workDir makes the working directory visible, read-only unless it was granted, and decides how it is spelled.
func (b *builder) workDir() error {
	if b.Dir == "" {
		return deletedDir("")
	}
	if err := b.showWorkDir(); err != nil {
		return err
	}
	b.plan.Dir = b.Dir
	// The caller's own spelling, where it is the same directory: pwd -L and whatever records $PWD agree with outside.
	if pwd := b.getenv("PWD"); len(pwd) > 0 && pwd[0] == '/' && pwd != b.Dir && clean(pwd) == pwd && !dotted(pwd) {
		r, err := b.host.Walk(pwd)
		if err == nil && r.Path == b.Dir {
			if _, whole := b.links(r.Links, binds.Reason{By: "working directory", Why: "a link on the way to it, by the caller's spelling"}); whole {
				b.plan.Dir = pwd
			}
		}
	}
	return nil
}

func (b *builder) showWorkDir() error {
	dir := b.Dir
	if dir == "/" {
		return nil
	}
	shown := b.bound(dir)
	if !shown {
		if privatePlace(dir) || hostfs.Within(dir, "/proc") || hostfs.Within(dir, "/dev") && !hostfs.Within(dir, "/dev/shm") {
			return &refusal.Error{
				What: "cannot use the working directory", Object: Quote(dir), Cause: "the cage has its own in that place",
				Hint: "change to a directory below it or to another one, or grant it with --write .",
			}
		}
		if why, hidden := b.tooMuch(dir); hidden {
			b.add(binds.Mount{Kind: binds.Dir, Target: dir, Perm: 0o755, Reason: binds.Reason{
				By: "working directory", Why: "only what is granted below it, and read-only: " + why}})
			b.note("the working directory " + Quote(dir) + " is read-only inside and shows only what is granted below it: " + why +
				"; work in a directory below it, or grant paths in it")
			return nil
		}
	}
	b.checkout(dir)
	return nil
}

// bound says whether a bind shows p.
func (b *builder) bound(p string) bool {
	m, ok := binds.Cover(b.plan.Mounts, p)
	return ok && m.Kind.Bind()
}

// checkout makes the version-controlled checkout visible that dir is part of, or dir by itself. Where only dir was
// granted the rest of its checkout is read-only: a git that finds no repository, or a go build without its go.mod,
// would quietly do something else.
func (b *builder) checkout(dir string) {
	root, extra := toolchain.Checkout(b.host, dir)
	if _, hidden := b.tooMuch(root); hidden || privatePlace(root) || !b.ownCheckout(root) {
		root = dir // /tmp/.git may be anybody's
	}
	if fi, err := b.host.Lstat(hostfs.Join(root, ".git")); err == nil && !fi.IsDir() && len(extra) == 0 {
		b.note(Quote(hostfs.Join(root, ".git")) + " names a git directory that is none or does not name it back, and is not shown")
	}
	b.checkoutRoot = root
	why := "read-only unless granted"
	if root != dir {
		why = "the checkout it belongs to, read-only unless granted"
	}
	if !b.bound(root) {
		b.add(binds.Mount{Kind: binds.ReadOnly, Source: root, Target: root, Reason: binds.Reason{By: "working directory", Why: why}})
	}
	for _, r := range extra {
		if why, hidden := b.tooMuch(r.Path); hidden || privatePlace(r.Path) {
			b.omit(r.Path, "the git directory that .git names: "+why)
			continue
		}
		why := binds.Reason{By: "working directory", Why: "the git directory of this worktree: without it git finds no repository"}
		b.links(r.Links, why)
		if !b.bound(r.Path) {
			b.add(binds.Mount{Kind: binds.ReadOnly, Source: r.Path, Target: r.Path, Reason: why})
		}
		if at, _ := binds.Cover(b.plan.Mounts, dir); at.Kind == binds.ReadWrite {
			if m, ok := binds.Cover(b.plan.Mounts, r.Path); ok && m.Kind == binds.ReadOnly {
				_, write := b.remedy()
				b.note("git cannot write here: this worktree's git directory is read-only; " + write + " " + Quote(r.Path) + " would grant it")
			}
		}
	}
}

// ownCheckout says whether the version control directory in root belongs to the caller or to root: one that somebody else
// made in a directory that all can write would decide what is shown. It is what git's safe.directory asks.
func (b *builder) ownCheckout(root string) bool {
	for _, vcs := range toolchain.Marks {
		if fi, err := b.host.Lstat(hostfs.Join(root, vcs)); err == nil {
			if _, _, uid, ok := hostfs.Identity(fi); ok && uid != 0 && int(uid) != b.UID && b.UID != 0 {
				return false
			}
		}
	}
	return true
}

// privatePlace says whether the cage has a directory of its own at p.
func privatePlace(p string) bool {
	switch p {
	case "/tmp", "/var/tmp", "/dev/shm", "/run", "/var/run", "/proc", "/dev":
		return true
	}
	return false
}

// tooMuch says why directory p is not shown by itself, without having been granted: it is the home, above it, a
// directory of the system's, or holds credentials.
func (b *builder) tooMuch(p string) (why string, hidden bool) {
	if b.somebodysHome(p) {
		return "it is somebody's home", true
	}
	return b.credentials().TooBroad(p)
}

// somebodysHome says whether p is the home of any account: uid 0 may read everybody's files.
func (b *builder) somebodysHome(p string) bool {
	if b.UID != 0 {
		return false
	}
	if b.others == nil {
		b.others = append([]string{}, homesOf(b.readEtc("passwd"))...)
	}
	return holds(b.others, p)
}

// credentials are the credential roots of this host.
func (b *builder) credentials() *policy.Roots {
	if b.private == nil {
		for _, h := range b.homes {
			if r, err := b.real.Walk(h); err == nil {
				b.real.ReadDir(r.Path) // some eighty names are asked for
			}
		}
		b.private = policy.NewRoots(b.homes, b.getenv, func(p string) (string, bool) {
			p, directory := strings.CutSuffix(p, "/")
			for _, h := range b.homes {
				if rest, ok := strings.CutPrefix(p, h+"/"); ok {
					if top, _, _ := strings.Cut(rest, "/"); b.real.Unlisted(h + "/" + top) {
						return "", false
					}
				}
			}
			r, err := b.real.Walk(p)
			return r.Path, err == nil && (!directory || r.Info.IsDir())
		})
	}
	return b.private
}

// findHomes returns the caller's home as HOME and the account have it, as spelled and without links.
func (b *builder) findHomes() (homes []string) {
	seen := func(p string) bool {
		for _, h := range homes {
			if h == p {
				return true
			}
		}
		return false
	}
	for _, h := range []string{b.getenv("HOME"), b.account().home} {
		if len(h) < 2 || h[0] != '/' {
			continue
		}
		r, err := b.host.Walk(h)
		for _, p := range []string{clean(h), r.Path} {
			if (err == nil || p != r.Path) && p != "/" && !seen(p) {
				homes = append(homes, p)
			}
		}
	}
	return homes
}

// missing is the refusal of a grant whose path cannot be looked at; at is where the look-up stopped.
func (b *builder) missing(g Grant, at string, err error) error {
	e := &refusal.Error{What: "cannot grant " + g.By, Object: Quote(g.Path), Err: err}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.Cause = Quote(at) + " does not exist"
		e.Hint = "create it first, or leave it out"
		switch {
		case strings.HasPrefix(g.Path, "~"), strings.Contains(g.Path+"/", "/~/"):
			e.Hint = "~ means the home only to a shell, and not behind a = or a quote: write the path in full"
		case strings.ContainsAny(g.Path, "*?["):
			e.Hint = "a path is taken as it is, there are no patterns: name the directory, or each path"
		case g.Access == binds.ReadWrite:
			e.Hint = "create it first (mkdir -p for a directory, touch for a file): a grant never creates what it names"
		}
	case errors.Is(err, fs.ErrPermission):
		e.Cause = Quote(at) + " cannot be looked at: permission denied"
		e.Hint = "check the permissions of the directories on the way"
	default:
		e.Cause = Quote(at) + ": " + refusal.Cause(err)
		e.Hint = "check the path"
	}
	if g.Access != binds.Device && g.By != "" && g.By[0] != '-' && !strings.HasPrefix(g.By, "policy ") && !strings.HasPrefix(g.By, "Options.") {
		e.Hint += "; a path that holds ':' can be granted by --read and --write only, not by a variable"
	}
	return e
}

// grantable refuses what must never be granted, whoever asks.
func (b *builder) grantable(g Grant, r hostfs.Resolved) error {
	refuse := func(why, hint string) error {
		return &refusal.Error{What: "cannot grant " + g.By, Object: Quote(g.Path), Cause: why, Hint: hint}
	}
	if g.Access == binds.Device {
		if !isChar(r.Info) {
			return refuse("it is not a character device", "name the device's own node")
		}
		return nil
	}
	if r.Info.Mode()&fs.ModeDevice != 0 {
		return refuse("it is a device: a plain bind of it cannot be opened", "use --device")
	}
	return b.grantablePath(g, r.Path)
}

// grantablePath is grantable for what may not be there yet.
func (b *builder) grantablePath(g Grant, p string) error {
	refuse := func(why, hint string) error {
		return &refusal.Error{What: "cannot grant " + g.By, Object: Quote(g.Path), Cause: why, Hint: hint}
	}
	switch {
	case hostfs.Within(p, "/proc"), p == "/dev", p == "/run", hostfs.Within(p, "/run/selfcage"):
		return refuse("the cage has its own in that place", "grant a path below it by its own name, a device by --device")
	}
	if b.somebodysHome(p) {
		return refuse("it is somebody's home, which holds credentials", "grant the narrowest directory that is needed and holds no credentials")
	}
	for _, spelled := range []string{clean(hostfs.Abs(g.Path, b.Dir)), p} {
		if why, fatal := b.credentials().Forbidden(spelled); fatal {
			return refuse(why, "grant the narrowest directory that is needed and holds no credentials")
		}
	}
	return nil
}

// clean removes doubled slashes, "." and a trailing slash; ".." stays, since what it means depends on links.
func clean(p string) string {
	out := make([]byte, 0, len(p))
	for i := 0; i < len(p); {
		j := i + 1
		for j < len(p) && p[j] != '/' {
			j++
		}
		if part := p[i:j]; part != "/" && part != "/." {
			out = append(out, part...)
		}
		i = j
	}
	if len(out) == 0 {
		return "/"
	}
	return string(out)
}

// homesOf lists the homes of people in a passwd file: those of accounts from uid 1000 on (UID_MIN of login.defs), and
// root's. The system's own accounts have directories like /usr and /var there, which are nobody's home.
func homesOf(passwd []byte) (homes []string) {
	for line := range strings.Lines(string(passwd)) {
		f := strings.Split(strings.TrimSpace(line), ":")
		if len(f) < 7 {
			continue
		}
		if uid, err := strconv.Atoi(f[2]); err == nil && (uid == 0 || uid >= 1000 && uid != overflow) {
			homes = append(homes, clean(f[5]))
		}
	}
	return homes
}
