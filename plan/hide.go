package plan

import (
	"cmp"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/selfcage/selfcage/binds"
	"github.com/selfcage/selfcage/internal/hostfs"
	"github.com/selfcage/selfcage/internal/refusal"
)

// hidden is a path that must not be visible, whatever shows it.
type hidden struct {
	path string // without links
	by   string
	why  string
	dir  bool
}

// hide looks up what is to be hidden and blinds the builder: no later step finds it on the host, so none shows it by
// itself. cover deals with what comes along in a directory.
func (b *builder) hide() error {
	for _, g := range inOrderOfPath(b.req.Hide) {
		h, err := b.toHide(g)
		if err != nil {
			return err
		}
		if h != nil {
			b.hidden = append(b.hidden, *h)
		}
	}
	if len(b.hidden) == 0 {
		return nil
	}
	slices.SortStableFunc(b.hidden, func(a, b hidden) int { return strings.Compare(a.path, b.path) })
	b.hidden = slices.CompactFunc(b.hidden, func(a, b hidden) bool { return a.path == b.path })
	b.host = hostfs.New(b.sight())
	return nil
}

// sight is the host's file system without what is hidden.
func (b *builder) sight() fs.FS {
	if len(b.hidden) == 0 {
		return b.Host
	}
	return blind{b.Host, b.hidden}
}

// inOrderOfPath sorts what was asked for: whoever asks first must not matter.
func inOrderOfPath(gs []Grant) []Grant {
	return slices.SortedStableFunc(slices.Values(gs), func(a, b Grant) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.By, b.By))
	})
}

// toHide looks one path up: what it leads to is hidden, and so a link to it leads nowhere. nil: there is nothing.
func (b *builder) toHide(g Grant) (*hidden, error) {
	p := hostfs.Abs(g.Path, b.Dir)
	if b.Dir == "" && p != g.Path {
		return nil, deletedDir(g.By + " " + Quote(g.Path))
	}
	r, err := b.real.Walk(p)
	if err := b.confined(g, p, r, err); err != nil {
		return nil, err
	}
	switch {
	case err != nil && pattern(g.Path):
		return nil, noPattern("cannot hide", g, r.Path)
	case !absentPath(err):
		return nil, unreadable("cannot hide", g.By+" "+Quote(g.Path), err)
	case err != nil:
		b.omit(g.Path, "there is nothing of that name to hide ("+g.By+"); made later it would be visible where its directory is")
		b.note(g.By + " " + Quote(g.Path) + ": " + nothingHidden)
		return nil, nil
	}
	h := hidden{path: r.Path, by: g.By, why: "hidden by " + g.By, dir: r.Info.IsDir()}
	if what, need := b.needed(h.path); need != "" {
		return nil, &refusal.Error{What: "cannot hide what the run needs", Object: g.By + " " + Quote(g.Path),
			Cause: what + " " + Quote(need) + " is or lies in it", Hint: "hide a narrower path"}
	}
	return &h, nil
}

const nothingHidden = "there is no such path, so nothing is hidden; made later it would be visible"

// needed names something at or below p without which there is no run.
func (b *builder) needed(p string) (what, need string) {
	if b.Exe.Intact && hostfs.Within(b.Exe.Path, p) {
		return "the program", b.Exe.Path
	}
	if b.Dir != "" && hostfs.Within(b.Dir, p) {
		return "the working directory", b.Dir
	}
	for _, own := range [...]string{"/proc", "/dev", "/dev/shm", Tmp, "/etc", "/run/selfcage"} {
		if hostfs.Within(own, p) {
			return "the cage's own", own
		}
	}
	if standardDevice(p) {
		return "the cage's own", p
	}
	for _, dir := range runtimeDirs {
		if r, err := b.real.Walk(dir.path); err == nil && hostfs.Within(r.Path, p) {
			return "the system runtime", dir.path
		}
	}
	return "", ""
}

// hiddenBy returns what hides one of paths, each of which is without links.
func (b *builder) hiddenBy(paths ...string) *hidden {
	for i := range b.hidden {
		for _, p := range paths {
			if hostfs.Within(p, b.hidden[i].path) {
				return &b.hidden[i]
			}
		}
	}
	return nil
}

// hiddenOn is hiddenBy for all that a path leads through.
func (b *builder) hiddenOn(r hostfs.Resolved) *hidden {
	paths := []string{r.Path}
	for _, l := range r.Links {
		paths = append(paths, l.Path)
	}
	return b.hiddenBy(paths...)
}

// hiddenGrant says whether a grant is left out, since the same path is to be hidden. One below such a path contradicts it.
func (b *builder) hiddenGrant(g Grant, p string) (out bool, err error) {
	if len(b.hidden) == 0 {
		return false, nil
	}
	at, err := b.real.Walk(p)
	h := b.hiddenOn(at)
	switch {
	case h == nil:
		return false, nil
	case h.path == at.Path && err == nil:
		b.overruled = append(b.overruled, Omission{g.Path, "hidden by " + h.by + ", though " + g.By + " asks for it"})
		return true, nil
	}
	return false, &refusal.Error{What: "cannot grant " + g.By, Object: Quote(g.Path), Cause: "it lies below " + Quote(h.path) + ", which " + h.by + " hides",
		Hint: "hide a narrower path, or leave one of the two out"}
}

// cover puts something empty over each hidden path that a mount shows, and over credentials in a directory that could be
// granted without them.
func (b *builder) cover() error {
	kept := b.plan.Mounts[:0]
	for _, m := range b.plan.Mounts {
		if h := b.hiddenBy(m.Target); h != nil && m.Kind != binds.RemountRO {
			b.omit(m.Target, h.why)
			continue
		}
		if h := b.hiddenBy(m.Source); h != nil && (m.Kind.Bind() || m.Kind == binds.File) {
			b.omit(m.Target, h.why)
			continue
		}
		kept = append(kept, m)
	}
	b.plan.Mounts = kept
	tokens, err := b.tokens()
	if err != nil {
		return err
	}
	for _, h := range append(b.hidden, tokens...) {
		places := b.shownAt(h.path)
		for _, at := range places {
			b.coverAt(at, h)
		}
		if len(places) > 0 { // else a run could move it to where the next one does not look
			b.pin(hostfs.Parent(h.path), "/", binds.Reason{By: h.by})
		}
	}
	return nil
}

func (b *builder) coverAt(target string, h hidden) {
	why := binds.Reason{By: h.by, Why: "empty: " + h.why}
	if !h.dir {
		b.add(binds.Mount{Kind: binds.Sealed, Target: target, Data: []byte{}, Perm: 0o444, Reason: why})
		return
	}
	b.add(binds.Mount{Kind: binds.Tmpfs, Target: target, Perm: 0o555, Size: emptySize, Reason: why},
		binds.Mount{Kind: binds.RemountRO, Target: target, Reason: why})
}

// emptySize is the smallest tmpfs: one page.
const emptySize = 4096

// shownAt returns the places inside at which path p of the host, which is without links, is visible.
func (b *builder) shownAt(p string) (targets []string) {
	for _, m := range b.plan.Mounts {
		at := ""
		switch {
		case m.Kind.Bind() && hostfs.Within(p, m.Source):
			at = clean(m.Target + p[len(m.Source):])
			if m.Source == "/" {
				at = clean(m.Target + p)
			}
		case m.Kind == binds.Proc && hostfs.Within(p, m.Target) && !processDir(p):
			at = p
		default:
			continue
		}
		if over, ok := binds.Cover(b.plan.Mounts, at); ok && over.Target == m.Target && over.Kind == m.Kind && !holds(targets, at) {
			targets = append(targets, at)
		}
	}
	return targets
}

// tokens are the credentials in directories that are shown, which may be granted without them.
func (b *builder) tokens() (hs []hidden, err error) {
	for _, m := range b.plan.Mounts {
		if !m.Kind.Bind() || m.Reason.By == base {
			continue
		}
		there, missing := b.tokensIn(m)
		for _, p := range slices.Concat(there, missing) {
			if err := b.seen(p, m.Reason.By); err != nil {
				return nil, err
			}
		}
		for _, p := range missing {
			if o := (Omission{p, "a token that is not there: written while the run lasts it would be visible by " + m.Reason.By}); !slices.Contains(b.plan.Omitted, o) {
				b.plan.Omitted = append(b.plan.Omitted, o)
			}
		}
		for _, p := range there {
			r, err := b.real.Walk(p)
			if err != nil {
				continue
			}
			h := hidden{path: r.Path, by: m.Reason.By, why: "it holds a token, which is never granted", dir: r.Info.IsDir()}
			if !slices.Contains(hs, h) {
				hs = append(hs, h)
			}
		}
	}
	return hs, nil
}

// seen refuses a candidate for a token that cannot be looked at, in what is the caller's own: the run may make it readable.
func (b *builder) seen(p, by string) error {
	r, err := b.real.Walk(p)
	if absentPath(err) || errors.Is(err, hostfs.ErrLoop) {
		return nil
	}
	if _, own := b.denies(r.Path); !own {
		return nil
	}
	return unreadable("cannot hide", "the token "+Quote(p)+" in what "+by+" shows", err)
}

// tokensIn are the credentials in what m shows, and those that tools would write there.
func (b *builder) tokensIn(m binds.Mount) (there, missing []string) {
	there, missing = b.credentials().Subtract(m.Source), b.credentials().FutureTokens(m.Source)
	if strings.HasPrefix(m.Reason.By, "toolchain/") {
		return there, missing // software
	}
	add := func(list *[]string, p string) {
		if !slices.Contains(*list, p) {
			*list = append(*list, p)
		}
	}
	for _, c := range modelCaches {
		for _, below := range c.below {
			dir, err := b.real.Walk(m.Source + below)
			if err != nil || !dir.Info.IsDir() {
				if !absentPath(err) {
					add(&missing, dir.Path)
				}
				continue
			}
			var absent []string
			n := len(there)
			if !slices.ContainsFunc(c.beside, func(name string) bool { return b.isDir(dir.Path + "/" + name) }) {
				for _, name := range c.tokens {
					if p := dir.Path + "/" + name; !absentPath(b.walkError(p)) {
						add(&missing, p)
					}
				}
				continue
			}
			for _, name := range c.tokens {
				if p := dir.Path + "/" + name; b.real.Exists(p) {
					add(&there, p)
				} else {
					absent = append(absent, p)
				}
			}
			if len(there) > n {
				for _, name := range c.beside { // by which the next run knows that there are tokens
					if fi := b.look(dir.Path + "/" + name); fi != nil && fi.IsDir() {
						b.pin(dir.Path+"/"+name, dir.Path, binds.Reason{By: m.Reason.By})
					}
				}
			}
			if len(there) > n || strings.HasSuffix(dir.Path, "/"+c.name) {
				for _, p := range absent {
					add(&missing, p)
				}
			}
		}
	}
	return there, missing
}

func (b *builder) walkError(p string) error {
	_, err := b.real.Walk(p)
	return err
}

func (b *builder) isDir(p string) bool {
	r, err := b.real.Walk(p)
	return err == nil && r.Info.IsDir()
}

// modelCaches are caches of models that may lie anywhere: beside what they hold there are tokens.
var modelCaches = [...]struct {
	name          string
	below, beside []string
	tokens        []string
}{
	{"huggingface", []string{"", "/huggingface", "/.cache/huggingface"}, []string{"hub", "datasets"}, []string{"token", "stored_tokens"}},
	{"modelscope", []string{"", "/modelscope", "/.cache/modelscope"}, []string{"hub"}, []string{"credentials"}},
}

// blind is a host without what is hidden.
type blind struct {
	fs.FS
	hidden []hidden
}

func (f blind) gone(op, name string) error {
	p := "/" + name
	if name == "." {
		return nil
	}
	for _, h := range f.hidden {
		if hostfs.Within(p, h.path) {
			return &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
		}
	}
	return nil
}

func (f blind) Open(name string) (fs.File, error) {
	if err := f.gone("open", name); err != nil {
		return nil, err
	}
	return f.FS.Open(name)
}

func (f blind) Lstat(name string) (fs.FileInfo, error) {
	if err := f.gone("lstat", name); err != nil {
		return nil, err
	}
	return fs.Lstat(f.FS, name)
}

func (f blind) ReadLink(name string) (string, error) {
	if err := f.gone("readlink", name); err != nil {
		return "", err
	}
	return fs.ReadLink(f.FS, name)
}

func (f blind) ReadFile(name string) ([]byte, error) {
	if err := f.gone("open", name); err != nil {
		return nil, err
	}
	return fs.ReadFile(f.FS, name)
}

func (f blind) ReadDir(name string) ([]fs.DirEntry, error) {
	if err := f.gone("open", name); err != nil {
		return nil, err
	}
	entries, err := fs.ReadDir(f.FS, name)
	return slices.DeleteFunc(slices.Clone(entries), func(e fs.DirEntry) bool {
		return f.gone("lstat", strings.TrimPrefix(name+"/", "./")+e.Name()) != nil
	}), err
}

// confined refuses what leads out of the directory that it was said to be in. r and err are what a look at g's absolute path p
// found, and must be what is used: who can write a directory on the way can change what another look finds.
func (b *builder) confined(g Grant, p string, r hostfs.Resolved, err error) error {
	p = clean(p)
	for _, c := range b.req.Confined {
		if clean(c.Path) != p {
			continue
		}
		for at := p; errors.Is(err, fs.ErrNotExist) && at != "/" && !dotted(p); {
			at = hostfs.Parent(at) // what is not there yet lies where its directory does
			if r, err = b.real.Walk(at); err == nil {
				r.Path = clean(r.Path + p[len(at):])
			}
		}
		root, rootErr := b.real.Walk(c.Root)
		if err == nil && (rootErr != nil || !hostfs.Within(r.Path, root.Path)) {
			return &refusal.Error{What: "cannot use " + g.By, Object: Quote(g.Path), Cause: "it leads out of " + Quote(c.Root) + ", to " + Quote(r.Path),
				Hint: "name what it leads to by a path of its own, if it is meant"}
		}
	}
	return nil
}
