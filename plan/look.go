package plan

import (
	"errors"
	"io/fs"

	"github.com/selfcage/selfcage/internal/hostfs"
	"github.com/selfcage/selfcage/internal/refusal"
)

// absentPath says whether err means that there is no such path, rather than that it cannot be looked at.
func absentPath(err error) bool {
	return err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, hostfs.ErrNotDir) || refusal.Cause(err) == hostfs.ErrNotDir.Error()
}

// look describes what is at path p, which is without links: nil where there is nothing. What cannot be looked at blocks.
func (b *builder) look(p string) fs.FileInfo {
	fi, err := b.real.Lstat(p)
	if err != nil {
		b.block(p, err)
		return nil
	}
	return fi
}

// list lists directory p.
func (b *builder) list(p string) []fs.DirEntry {
	entries := b.real.ReadDir(p)
	if len(entries) == 0 && p != "/" {
		_, err := fs.ReadDir(b.Host, p[1:])
		b.block(p, err)
	}
	return entries
}

// text reads a file that p leads to, of up to so many bytes. A longer one is not read.
func (b *builder) text(p string, limit int64) (text string, ok bool) {
	r, err := b.real.Walk(p)
	if err != nil || !r.Info.Mode().IsRegular() || r.Info.Size() > limit {
		b.block(r.Path, err)
		return "", false
	}
	data, err := b.real.ReadFile(r.Path)
	b.block(r.Path, err)
	return string(data), err == nil
}

// block refuses the start where path p could not be looked at, err says why, and the run could make it readable again: an
// earlier run may have taken the permission away, so that this one does not find what must be protected.
func (b *builder) block(p string, err error) {
	if b.blocked != nil || absentPath(err) || errors.Is(err, hostfs.ErrLoop) {
		return
	}
	if at, own := b.denies(p); own && len(b.writableAt(at)) > 0 {
		b.blocked = unreadable("cannot protect", Quote(p), err)
	}
}

func unreadable(what, object string, err error) error {
	return &refusal.Error{What: what, Object: object, Cause: "it cannot be looked at: " + refusal.Cause(err),
		Hint: "make it readable (chmod u+rx), or grant a narrower directory", Err: err}
}

// denies returns the last on the way to path p that can be looked at, which is what denies a look at p, and whether it is the
// caller's own: they can change its permissions.
func (b *builder) denies(p string) (at string, own bool) {
	for at = p; at != "/"; at = hostfs.Parent(at) {
		if fi, err := b.real.Lstat(at); err == nil {
			_, _, uid, ok := hostfs.Identity(fi)
			return at, !ok || int(uid) == b.UID
		}
	}
	return at, false
}
