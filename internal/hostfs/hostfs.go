// Package hostfs looks at a host through an fs.FS: it resolves a path one component at a time and says which symbolic
// links it met, since each of them must exist inside a cage for the path to keep its meaning there.
//
// All paths are absolute and slash separated; they are bytes and need not be UTF-8.
package hostfs

import (
	"errors"
	"io/fs"
	"strings"
	"time"
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
	walks map[string]walked
	lists map[string]listing
}

type walked struct {
	r   Resolved
	err error
}

type listing struct {
	entries []fs.DirEntry // sorted by name
	err     error
}

type stat struct {
	fi  fs.FileInfo
	err error
}

// New returns a view of the host whose root directory is fsys. fsys must have ReadLink and Lstat (fs.ReadLinkFS).
func New(fsys fs.FS) *View {
	return &View{
		fsys: fsys, stats: make(map[string]stat, 512), links: make(map[string]string, 64),
		walks: make(map[string]walked, 512), lists: make(map[string]listing, 64),
	}
}

func rel(p string) string {
	if p == "/" {
		return "."
	}
	return p[1:]
}

// Lstat describes the file at p, which must be clean, without following a link in its last component. Of a link in a
// directory that was read only its kind is told.
func (v *View) Lstat(p string) (fs.FileInfo, error) {
	s, ok := v.stats[p]
	if !ok {
		if list, known := v.lists[Parent(p)]; known && list.err == nil && p != "/" {
			if e := list.find(base(p)); e != nil && e.Type() == fs.ModeSymlink {
				return linkInfo(e.Name()), nil
			}
		}
		s.fi, s.err = fs.Lstat(v.fsys, rel(p))
		v.stats[p] = s
	}
	return s.fi, s.err
}

// ReadDir lists the directory at p, which must be without links, sorted by name: nothing where it cannot be read.
func (v *View) ReadDir(p string) []fs.DirEntry {
	list, ok := v.lists[p]
	if !ok {
		list.entries, list.err = fs.ReadDir(v.fsys, rel(p))
		v.lists[p] = list
	}
	return list.entries
}

// Has says whether the directory at p, which must be without links, lists name, be it a link that leads nowhere. One
// reading of a directory answers many such questions.
func (v *View) Has(p, name string) bool { return listing{entries: v.ReadDir(p)}.find(name) != nil }

// Unlisted says whether the directory of p, a path without links but the last, was read and did not list it. Where file
// systems are mounted when they are first used, that is no proof: only for files that nobody named may it save the question.
func (v *View) Unlisted(p string) bool {
	list, known := v.lists[Parent(p)]
	return known && list.err == nil && list.find(base(p)) == nil
}

// find returns the entry called name, nil where there is none.
func (l listing) find(name string) fs.DirEntry {
	lo, hi := 0, len(l.entries)
	for lo < hi {
		if mid := (lo + hi) / 2; l.entries[mid].Name() < name {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo < len(l.entries) && l.entries[lo].Name() == name {
		return l.entries[lo]
	}
	return nil
}

// linkInfo describes a symbolic link of which the directory has told the name.
type linkInfo string

func (l linkInfo) Name() string       { return string(l) }
func (l linkInfo) Size() int64        { return 0 }
func (l linkInfo) Mode() fs.FileMode  { return fs.ModeSymlink | 0o777 }
func (l linkInfo) ModTime() time.Time { return time.Time{} }
func (l linkInfo) IsDir() bool        { return false }
func (l linkInfo) Sys() any           { return nil }

func base(p string) string { return p[strings.LastIndexByte(p, '/')+1:] }

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
func (v *View) Walk(p string) (Resolved, error) {
	if w, ok := v.walks[p]; ok {
		return w.r, w.err
	}
	r, err, ok := v.step(p)
	if !ok {
		r, err = v.walk(p)
	}
	v.walks[p] = walked{r, err}
	return r, err
}

// step resolves p from its directory, if its last component is not a link: most of many paths lie in one directory.
func (v *View) step(p string) (r Resolved, err error, ok bool) {
	i := strings.LastIndexByte(p, '/')
	if i <= 0 || p[0] != '/' || p[i-1] == '/' {
		return r, nil, false
	}
	name := p[i+1:]
	if name == "" || name == "." || name == ".." {
		return r, nil, false
	}
	dir, err := v.Walk(p[:i])
	if err != nil {
		return Resolved{Path: dir.Path, Links: behind(dir.Links, name)}, err, true
	}
	if !dir.Info.IsDir() {
		return Resolved{Path: dir.Path, Links: behind(dir.Links, name)}, ErrNotDir, true
	}
	real := p
	if dir.Path != p[:i] {
		real = Join(dir.Path, name)
	}
	fi, err := v.Lstat(real)
	if err == nil && fi.Mode()&fs.ModeSymlink != 0 {
		return r, nil, false
	}
	return Resolved{Path: real, Links: behind(dir.Links, name), Info: fi}, err, true
}

// behind is ls for a path that goes on with name.
func behind(ls []Link, name string) []Link {
	if len(ls) == 0 {
		return nil
	}
	longer := make([]Link, len(ls))
	for i, l := range ls {
		if l.Rest != "" {
			l.Rest += "/"
		}
		l.Rest += name
		longer[i] = l
	}
	return longer
}

func (v *View) walk(p string) (r Resolved, err error) {
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
