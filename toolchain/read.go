package toolchain

import (
	"io"
	"io/fs"
	"strings"

	"github.com/selfcage/selfcage/internal/hostfs"
)

const maxSmall = 1 << 16

// small returns the content of a small regular file, "" where it is none.
func (f *finder) small(p string) (string, bool) { return f.upTo(p, maxSmall) }

func (f *finder) upTo(p string, limit int64) (string, bool) {
	if p == "" || f.View.Unlisted(p) {
		return "", false
	}
	r, err := f.walk(p)
	if err != nil || !r.Info.Mode().IsRegular() || r.Info.Size() > limit {
		return "", false
	}
	text, ok := f.texts[r.Path] // go's settings are asked for by each of their names
	if !ok {
		data, err := f.View.ReadFile(r.Path)
		if err != nil {
			return "", false
		}
		text = string(data)
		f.texts[r.Path] = text
	}
	return text, true
}

func rel(p string) string { return p[1:] }

func (f *finder) walk(p string) (hostfs.Resolved, error) { return f.View.Walk(p) }

// is says whether p leads to a file.
func (f *finder) is(p string) bool {
	if f.View.Unlisted(p) {
		return false
	}
	_, err := f.walk(p)
	return err == nil
}

// readDir lists a directory that is free of links, nothing where it cannot be read.
func (f *finder) readDir(p string) []fs.DirEntry { return f.View.ReadDir(p) }

// has says whether directory dir, which is free of links, has a file called name, which may be a link that leads nowhere.
func (f *finder) has(dir, name string) bool { return f.View.Has(dir, name) }

// entries lists the directory that p leads to, nothing where there is none.
func (f *finder) entries(p string) (real string, list []fs.DirEntry) {
	if p == "" {
		return "", nil
	}
	r, err := f.walk(p)
	if err != nil || !r.Info.IsDir() {
		return r.Path, nil
	}
	return r.Path, f.readDir(r.Path)
}

func isLink(e fs.DirEntry) bool { return e.Type()&fs.ModeSymlink != 0 }

// open opens the regular file at p, which is free of links, to read parts of it.
func (f *finder) open(p string) (r io.ReaderAt, done func() error, ok bool) {
	if fi, err := f.View.Lstat(p); err != nil || !fi.Mode().IsRegular() {
		return nil, nil, false // opening a fifo would wait
	}
	file, err := f.FS.Open(rel(p))
	if err != nil {
		return nil, nil, false
	}
	if r, ok = file.(io.ReaderAt); !ok {
		file.Close()
		return nil, nil, false
	}
	return r, file.Close, true
}

// lines returns each line without space around it.
func lines(text string) (list []string) {
	for l := range strings.SplitSeq(text, "\n") {
		if l = strings.TrimSpace(l); l != "" {
			list = append(list, l)
		}
	}
	return list
}

// setting returns the value of a key in a file of "key = value" lines, unquoted.
func setting(text, key string) string {
	for _, l := range lines(text) {
		k, v, ok := strings.Cut(l, "=")
		if ok && strings.EqualFold(strings.TrimSpace(k), key) {
			return unquote(strings.TrimSpace(v))
		}
	}
	return ""
}

func unquote(s string) string {
	if len(s) > 1 && (s[0] == '"' || s[0] == '\'') {
		if end := strings.IndexByte(s[1:], s[0]); end >= 0 {
			return s[1 : 1+end]
		}
	}
	return s
}

// above returns the directories from the working directory to the root, nearest first.
func (f *finder) above() (dirs []string) {
	if f.Dir == "" {
		return nil
	}
	for d := f.Dir; ; d = hostfs.Parent(d) {
		dirs = append(dirs, d)
		if d == "/" {
			return dirs
		}
	}
}

// upward shows the nearest of the named files at or above the working directory, or all of them. A tool that does not
// find its file takes another version of itself without a word.
func (f *finder) upward(why string, all bool, names ...string) (found []string) {
	for _, d := range f.above() {
		for _, n := range names {
			p := hostfs.Join(d, n)
			if !f.named(p) {
				continue
			}
			if data, ok := f.small(p); !ok || settings(n) && !f.there(p) && holdsSecret(data) {
				f.note(p + " is not visible inside: it looks as if it held a secret")
				continue
			}
			if _, ok := f.tree(p, why); ok {
				if found = append(found, p); !all {
					return found
				}
			}
		}
	}
	return found
}

// named says whether p is a file that may be shown for its name: a link must not show a letter by the name of .nvmrc.
func (f *finder) named(p string) bool {
	r, err := f.walk(p)
	return err == nil && r.Info.Mode().IsRegular() && (len(r.Links) == 0 || base(r.Path) == base(p) || f.there(p))
}

func base(p string) string { return p[strings.LastIndexByte(p, '/')+1:] }

// settings says whether a file of that name may hold more than versions and names of packages.
func settings(name string) bool {
	return strings.Contains(name, "config") || strings.Contains(name, "mise")
}

// clean resolves "." and ".." by the text alone, for what git, go and cargo clean that way too.
func clean(p string) string {
	var parts []string
	for s := range strings.SplitSeq(p, "/") {
		switch s {
		case "", ".":
		case "..":
			if len(parts) > 0 {
				parts = parts[:len(parts)-1]
			}
		default:
			parts = append(parts, s)
		}
	}
	return "/" + strings.Join(parts, "/")
}

// resolve makes p absolute against dir and free of "..", which it takes as the kernel does: from where links led. What
// comes after the last ".." keeps its links: a python is told by them which environment it belongs to.
func (f *finder) resolve(p, dir string) string {
	p = hostfs.Abs(p, dir)
	for !usable(p) {
		before, rest, ok := cutUp(p)
		if !ok {
			return p
		}
		r, err := f.walk(before)
		if err != nil || !r.Info.IsDir() {
			return p // which leads nowhere
		}
		p = hostfs.Parent(r.Path) + rest
		if r.Path == "/" || strings.HasPrefix(p, "//") {
			p = "/" + strings.TrimLeft(rest, "/")
		}
	}
	return p
}

// cutUp cuts an absolute path around its first "..".
func cutUp(p string) (before, rest string, ok bool) {
	for at := 0; at < len(p); {
		i := strings.Index(p[at:], "/..")
		if i < 0 {
			return "", "", false
		}
		i += at
		if rest = p[i+len("/.."):]; rest == "" || rest[0] == '/' {
			if before = p[:i]; before == "" {
				before = "/"
			}
			return before, rest, true
		}
		at = i + 1
	}
	return "", "", false
}
