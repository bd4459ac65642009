// Package hostfs looks at a host through an fs.FS: it resolves a path one component at a time and says which symbolic
// links it met, since each of them must exist inside a cage for the path to keep its meaning there.
//
// All paths are absolute and slash separated; they are bytes and need not be UTF-8.
package hostfs

import (
	"errors"
	"io/fs"
	"strings"
)

// Link is one symbolic link on the way to a file.
type Link struct {
	Path string // where the link lies; no component before the last is itself a link
	Text string // what it says, unchanged
	Rest string // of the path, behind the link
}

// maxLinks is the limit of Linux itself (MAXSYMLINKS in linux/namei.h).
const maxLinks = 40

// ErrLoop is returned for a path with more than 40 links.
var ErrLoop = errors.New("too many levels of symbolic links")

// ErrNotDir is returned for a path that goes on after a file, be it with a slash or "..".
var ErrNotDir = errors.New("not a directory")

// View is a host with a memory: no path is asked for twice, so that one start sees one state and asks little.
type View struct {
	fsys  fs.FS
	stats map[string]stat
	links map[string]string
}

type stat struct {
	fi  fs.FileInfo
	err error
}

// New returns a view of the host whose root directory is fsys. fsys must have ReadLink and Lstat (fs.ReadLinkFS).
func New(fsys fs.FS) *View {
	return &View{fsys: fsys, stats: make(map[string]stat, 128), links: make(map[string]string, 32)}
}

func rel(p string) string {
	if p == "/" {
		return "."
	}
	return p[1:]
}

// Lstat describes the file at p, which must be clean, without following a link in its last component.
func (v *View) Lstat(p string) (fs.FileInfo, error) {
	s, ok := v.stats[p]
	if !ok {
		s.fi, s.err = fs.Lstat(v.fsys, rel(p))
		v.stats[p] = s
	}
	return s.fi, s.err
}

// ReadLink returns the text of the link at p.
func (v *View) ReadLink(p string) (string, error) {
	if t, ok := v.links[p]; ok {
		return t, nil
	}
	t, err := fs.ReadLink(v.fsys, rel(p))
	if err == nil {
		v.links[p] = t
	}
	return t, err
}

// ReadFile returns the content of the file that p resolves to.
func (v *View) ReadFile(p string) ([]byte, error) {
	r, err := v.Walk(p)
	if err != nil {
		return nil, err
	}
	return fs.ReadFile(v.fsys, rel(r.Path))
}

// Exists says whether p resolves to a file. A path that cannot be looked at does not exist for us.
func (v *View) Exists(p string) bool {
	_, err := v.Walk(p)
	return err == nil
}

// Resolved is what a path leads to.
type Resolved struct {
	Path  string      // without links
	Links []Link      // met on the way, in that order
	Info  fs.FileInfo // of Path
}

// Walk resolves p as the kernel does: component by component, following links, with ".." taken from where a link led.
// On an error, Resolved.Path is the component that could not be looked at and Links are those met before it.
func (v *View) Walk(p string) (r Resolved, err error) {
	r.Path = "/"
	for rest, more := p, true; more; {
		var name string
		name, rest, more = strings.Cut(rest, "/") // more: name must lead to a directory
		switch name {
		case "", ".":
			continue
		case "..":
			r.Path = Parent(r.Path)
			continue
		}
		next := Join(r.Path, name)
		fi, err := v.Lstat(next)
		if err != nil {
			r.Path = next
			return r, err
		}
		if fi.Mode()&fs.ModeSymlink == 0 {
			r.Path = next
			if more && !fi.IsDir() {
				return r, ErrNotDir
			}
			continue
		}
		text, err := v.ReadLink(next)
		switch {
		case err == nil && len(r.Links) >= maxLinks:
			err = ErrLoop
		case err == nil && text == "":
			err = fs.ErrNotExist // Linux makes no such link, but others do
		}
		if err != nil {
			r.Path = next
			return r, err
		}
		r.Links = append(r.Links, Link{next, text, rest})
		if strings.HasPrefix(text, "/") {
			r.Path = "/"
		}
		if more {
			text += "/" + rest
		}
		rest, more = text, true
	}
	r.Info, err = v.Lstat(r.Path)
	return r, err
}

// Join appends one component to a clean path.
func Join(dir, name string) string {
	if dir == "/" {
		return "/" + name
	}
	return dir + "/" + name
}

// Parent is the directory that holds p; the parent of "/" is "/".
func Parent(p string) string {
	if i := strings.LastIndexByte(p, '/'); i > 0 {
		return p[:i]
	}
	return "/"
}

// Within says whether clean path p is dir or lies below it.
func Within(p, dir string) bool {
	return p == dir || dir == "/" || len(p) > len(dir) && p[len(dir)] == '/' && p[:len(dir)] == dir
}

// Abs makes p absolute against the working directory dir without resolving anything.
func Abs(p, dir string) string {
	if strings.HasPrefix(p, "/") {
		return p
	}
	return Join(dir, p)
}
