package hostfs

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// tree is a host whose names may be any bytes, as the kernel's may; fstest.MapFS wants UTF-8. A value that begins with
// "-> " is a link, one that ends with '/' a directory, "!" refuses to be looked at. It counts how often it is asked.
type tree struct {
	files map[string]string
	asked map[string]int
}

func (f tree) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
}

func (f tree) ReadFile(name string) ([]byte, error) { return []byte(f.files[name]), nil }

func (f tree) Lstat(name string) (fs.FileInfo, error) {
	if f.asked != nil {
		f.asked[name]++
	}
	text, ok := f.files[name]
	switch {
	case strings.HasPrefix(text, "-> "):
		return info{name, fs.ModeSymlink | 0o777}, nil
	case name == "." || strings.HasSuffix(text, "/"):
		return info{name, fs.ModeDir | 0o755}, nil
	case !ok:
		return nil, &fs.PathError{Op: "lstat", Path: name, Err: fs.ErrNotExist}
	case text == "!":
		return nil, &fs.PathError{Op: "lstat", Path: name, Err: fs.ErrPermission}
	}
	return info{name, 0o644}, nil
}

func (f tree) ReadLink(name string) (string, error) {
	if f.asked != nil {
		f.asked["readlink "+name]++
	}
	text, ok := strings.CutPrefix(f.files[name], "-> ")
	if !ok {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: fs.ErrInvalid}
	}
	return text, nil
}

type info struct {
	name string
	mode fs.FileMode
}

func (i info) Name() string       { return i.name[strings.LastIndexByte(i.name, '/')+1:] }
func (i info) Size() int64        { return 0 }
func (i info) Mode() fs.FileMode  { return i.mode }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) IsDir() bool        { return i.mode.IsDir() }
func (i info) Sys() any           { return nil }

func host() *View {
	files := map[string]string{
		"usr": "/", "usr/bin": "/", "usr/bin/env": "x", "usr/bin/sh": "-> dash", "usr/bin/dash": "x",
		"usr/share": "/", "usr/share/doc": "/",
		"bin": "-> usr/bin", "sh": "-> /bin/sh", "abs": "-> /usr/share", "self": "-> self", "a": "-> b", "b": "-> a",
		"dangling": "-> nowhere/at/all", "slash": "-> usr/bin/", "fileslash": "-> usr/bin/env/", "up": "-> ../../usr",
		"deep": "/", "deep/er": "-> ../usr/share/doc", "filelink": "-> usr/bin/env", "dots": "-> ./usr/.././usr//bin", "empty": "-> ",
		"root": "-> /", "secret": "!", "secret/x": "x", "to-secret": "-> secret/x",
		"odd\xff": "/", "odd\xff/\xfe": "-> \xfd", "odd\xff/\xfd": "x", "odd\xff/new\nline": "x",
	}
	for i := range 42 { // chain0 -> chain1 -> ... -> chain42, a file
		files[fmt.Sprintf("chain%d", i)] = fmt.Sprintf("-> chain%d", i+1)
	}
	files["chain42"] = "x"
	return New(tree{files: files})
}

func TestWalk(t *testing.T) {
	view := host()
	for _, tt := range []struct {
		path, want string
		links      string // path=text, separated by spaces
		err        error
	}{
		{"/", "/", "", nil},
		{"", "/", "", nil},
		{"/usr/bin/env", "/usr/bin/env", "", nil},
		{"//usr///bin/./env", "/usr/bin/env", "", nil},
		{"/usr/bin/", "/usr/bin", "", nil},
		{"/usr/bin/.", "/usr/bin", "", nil},
		{"/usr/../usr/bin/..", "/usr", "", nil},
		{"/../../usr", "/usr", "", nil},
		{"/bin/env", "/usr/bin/env", "/bin=usr/bin", nil},
		{"/bin/", "/usr/bin", "/bin=usr/bin", nil},
		{"/bin/sh", "/usr/bin/dash", "/bin=usr/bin /usr/bin/sh=dash", nil},
		{"/sh", "/usr/bin/dash", "/sh=/bin/sh /bin=usr/bin /usr/bin/sh=dash", nil},
		{"/slash", "/usr/bin", "/slash=usr/bin/", nil},
		{"/up/bin", "/usr/bin", "/up=../../usr", nil},
		{"/dots/env", "/usr/bin/env", "/dots=./usr/.././usr//bin", nil},
		{"/root/usr", "/usr", "/root=/", nil},
		// ".." is taken from where the link led, not from where it lies.
		{"/bin/../share", "/usr/share", "/bin=usr/bin", nil},
		{"/deep/er/..", "/usr/share", "/deep/er=../usr/share/doc", nil},
		{"/abs/../bin/env", "/usr/bin/env", "/abs=/usr/share", nil},
		// A file ends a path.
		{"/usr/bin/env/", "/usr/bin/env", "", ErrNotDir},
		{"/usr/bin/env/..", "/usr/bin/env", "", ErrNotDir},
		{"/usr/bin/env/x", "/usr/bin/env", "", ErrNotDir},
		{"/filelink", "/usr/bin/env", "/filelink=usr/bin/env", nil},
		{"/filelink/", "/usr/bin/env", "/filelink=usr/bin/env", ErrNotDir},
		{"/fileslash", "/usr/bin/env", "/fileslash=usr/bin/env/", ErrNotDir},
		// What is not there.
		{"/none", "/none", "", fs.ErrNotExist},
		{"/none/..", "/none", "", fs.ErrNotExist},
		{"/usr/none/bin", "/usr/none", "", fs.ErrNotExist},
		{"/dangling", "/nowhere", "/dangling=nowhere/at/all", fs.ErrNotExist},
		{"/bin/none", "/usr/bin/none", "/bin=usr/bin", fs.ErrNotExist},
		{"/empty", "/empty", "", fs.ErrNotExist},
		{"/secret/x", "/secret", "", fs.ErrPermission},
		{"/to-secret", "/secret", "/to-secret=secret/x", fs.ErrPermission},
		// Bytes are bytes.
		{"/odd\xff/\xfe", "/odd\xff/\xfd", "/odd\xff/\xfe=\xfd", nil},
		{"/odd\xff/new\nline", "/odd\xff/new\nline", "", nil},
		{"/odd\xff/\xfc", "/odd\xff/\xfc", "", fs.ErrNotExist},
	} {
		r, err := view.Walk(tt.path)
		var links []string
		for _, l := range r.Links {
			links = append(links, l.Path+"="+l.Text)
		}
		if r.Path != tt.want || strings.Join(links, " ") != tt.links || !errors.Is(err, tt.err) {
			t.Errorf("Walk(%q) = %q by %q, %v\nwant %q by %q, %v", tt.path, r.Path, links, err, tt.want, tt.links, tt.err)
		}
		if (r.Info != nil) != (err == nil) {
			t.Errorf("Walk(%q) has info %v with error %v", tt.path, r.Info, err)
		}
	}
}

// 40 links are followed, as by Linux, and not one more.
func TestWalkLoops(t *testing.T) {
	view := host()
	for path, want := range map[string]int{"/chain2": 40, "/chain41": 1, "/chain1": -1, "/chain0": -1, "/self": -1, "/a": -1, "/a/x": -1} {
		r, err := view.Walk(path)
		switch {
		case want < 0 && (err != ErrLoop || len(r.Links) != maxLinks):
			t.Errorf("Walk(%s): %d links, %v, want %v after %d", path, len(r.Links), err, ErrLoop, maxLinks)
		case want >= 0 && (err != nil || len(r.Links) != want):
			t.Errorf("Walk(%s): %d links, %v, want %d", path, len(r.Links), err, want)
		}
	}
}

// One start sees one state, and asks for nothing twice.
func TestViewRemembers(t *testing.T) {
	f := tree{files: map[string]string{"bin": "-> usr", "usr": "/", "usr/x": "x"}, asked: map[string]int{}}
	view := New(f)
	for range 3 {
		if !view.Exists("/bin/x") || view.Exists("/bin/y") {
			t.Fatal("wrong answer")
		}
		delete(f.files, "usr/x")
	}
	for name, n := range f.asked {
		if n != 1 {
			t.Errorf("%s was asked for %d times", name, n)
		}
	}
}

func TestReadFile(t *testing.T) {
	view := New(fstest.MapFS{
		"etc/os-release":     {Data: []byte("../usr/lib/os-release"), Mode: fs.ModeSymlink},
		"usr/lib/os-release": {Data: []byte("ID=test\n")},
	})
	if data, err := view.ReadFile("/etc/os-release"); string(data) != "ID=test\n" || err != nil {
		t.Errorf("got %q, %v", data, err)
	}
	if _, err := view.ReadFile("/etc/none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

func TestPaths(t *testing.T) {
	for _, tt := range []struct {
		p, dir string
		want   bool
	}{
		{"/a", "/a", true}, {"/a/b", "/a", true}, {"/ab", "/a", false}, {"/a", "/a/b", false}, {"/a", "/", true}, {"/", "/", true}, {"/", "/a", false},
	} {
		if got := Within(tt.p, tt.dir); got != tt.want {
			t.Errorf("Within(%q, %q) = %v", tt.p, tt.dir, got)
		}
	}
	for p, want := range map[string]string{"/": "/", "/a": "/", "/a/b": "/a", "/a/b/c": "/a/b"} {
		if got := Parent(p); got != want {
			t.Errorf("Parent(%q) = %q, want %q", p, got, want)
		}
		if p != "/" && Join(want, p[strings.LastIndexByte(p, '/')+1:]) != p {
			t.Errorf("Join does not undo Parent for %q", p)
		}
	}
	for _, tt := range []struct{ p, dir, want string }{
		{"/a", "/w", "/a"}, {"a", "/w", "/w/a"}, {"a", "/", "/a"}, {"../a", "/w", "/w/../a"}, {".", "/w", "/w/."},
	} {
		if got := Abs(tt.p, tt.dir); got != tt.want {
			t.Errorf("Abs(%q, %q) = %q, want %q", tt.p, tt.dir, got, tt.want)
		}
	}
}

// What Walk says of this host is what the kernel does, for every path over a few names.
func TestOS(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Skip("this file system does not take what Linux has: ", err)
		}
	}
	must(os.MkdirAll(filepath.Join(dir, "d", "e"), 0o755))
	must(os.WriteFile(filepath.Join(dir, "f"), []byte("content"), 0o644))
	must(os.WriteFile(filepath.Join(dir, "d", "bad\xff"), nil, 0o644))
	for name, text := range map[string]string{
		"l": "d", "lf": "f", "ls": "d/", "lfs": "f/", "d/up": "..", "d/abs": dir + "/d/e", "loop": "loop", "gone": "nowhere", "d/e/x": "../../lf",
	} {
		must(os.Symlink(text, filepath.Join(dir, name)))
	}
	names := []string{"d", "e", "f", "l", "lf", "ls", "lfs", "up", "abs", "loop", "gone", "x", "..", ".", "", "bad\xff"}
	view := New(OS{})
	var paths []string
	for _, a := range names {
		for _, b := range names {
			for _, c := range names {
				paths = append(paths, dir+"/"+a+"/"+b+"/"+c)
			}
		}
		paths = append(paths, dir+"/"+a)
	}
	for _, p := range paths {
		want, wantErr := os.Stat(p)
		r, err := view.Walk(p)
		if (err == nil) != (wantErr == nil) || errors.Is(err, fs.ErrNotExist) != errors.Is(wantErr, fs.ErrNotExist) {
			t.Errorf("Walk(%q): %v, the kernel says %v", p, err, wantErr)
			continue
		}
		if err != nil {
			continue
		}
		if !os.SameFile(want, r.Info) {
			t.Errorf("Walk(%q) = %q, which is another file", p, r.Path)
		}
		if real, err := filepath.EvalSymlinks(strings.TrimRight(p, "/")); err == nil && real != r.Path {
			t.Errorf("Walk(%q) = %q, want %q", p, r.Path, real)
		}
	}
	if data, err := view.ReadFile(dir + "/lf"); string(data) != "content" || err != nil {
		t.Errorf("ReadFile = %q, %v", data, err)
	}
	entries, err := OS{}.ReadDir(strings.TrimPrefix(dir, "/") + "/d")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if diff := cmp.Diff([]string{"abs", "bad\xff", "e", "up"}, got); diff != "" {
		t.Errorf("ReadDir (-want +got):\n%s", diff)
	}
	if !slices.IsSorted(got) {
		t.Errorf("ReadDir is not sorted: %q", got)
	}
	if f, err := (OS{}).Open("."); err != nil {
		t.Error(err)
	} else {
		f.Close()
	}
	if fi, err := (OS{}).Lstat("."); err != nil || !fi.IsDir() {
		t.Errorf("Lstat of the root: %v, %v", fi, err)
	}
}

// However a path is resolved, from its directory or from the root, and whatever was listed before: the result is the same.
func TestWalkByDirectory(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	names := []string{"a", "b", "c", "d", "..", ".", ""}
	path := func(n int) string {
		p := ""
		for range 1 + rnd.IntN(n) {
			p += "/" + names[rnd.IntN(len(names))]
		}
		return p
	}
	resolved, links, listed := 0, 0, 0
	for range 100 {
		fsys := fstest.MapFS{"a/b/c/d": {}, "b/c": {Mode: fs.ModeDir | 0o755}}
		for range 6 {
			at := strings.TrimPrefix(clean(path(3)), "/")
			if _, taken := fsys[at]; taken || at == "" || at == "b" || strings.HasPrefix("a/b/c/d/", at+"/") {
				continue
			}
			text := path(4)
			if rnd.IntN(2) == 0 {
				text = text[1:]
			}
			if text != "" {
				fsys[at] = &fstest.MapFile{Data: []byte(text), Mode: fs.ModeSymlink | 0o777}
			}
		}
		v := New(fsys)
		for range 40 {
			p := path(6)
			if r, err := v.Walk(p); err == nil && r.Info.IsDir() && rnd.IntN(3) == 0 {
				v.ReadDir(r.Path)
				listed++
			}
			got, gotErr := v.Walk(p)
			want, wantErr := New(fsys).walk(p)
			same := got.Path == want.Path && slices.Equal(tidy(got.Links), tidy(want.Links)) && (gotErr == nil) == (wantErr == nil) &&
				errors.Is(gotErr, fs.ErrNotExist) == errors.Is(wantErr, fs.ErrNotExist) && errors.Is(gotErr, ErrNotDir) == errors.Is(wantErr, ErrNotDir)
			if !same || gotErr == nil && got.Info.Mode() != want.Info.Mode() {
				t.Fatalf("%q in %v:\ngot  %+v, %v\nwant %+v, %v", p, fsys, got, gotErr, want, wantErr)
			}
			if gotErr == nil {
				resolved++
				links += len(got.Links)
			}
		}
	}
	if resolved < 500 || links < 200 || listed < 100 {
		t.Errorf("too few to say anything: %d paths, %d links, %d listings", resolved, links, listed)
	}
}

// tidy leaves out slashes in what is behind a link that mean nothing.
func tidy(ls []Link) (out []Link) {
	for _, l := range ls {
		l.Rest = strings.Join(strings.FieldsFunc(l.Rest, func(r rune) bool { return r == '/' }), "/")
		out = append(out, l)
	}
	return out
}

func clean(p string) string { return path.Clean("/" + p) }

// What a directory says by being read is not asked for again.
func TestReadDirAnswers(t *testing.T) {
	fsys := &counted{FS: fstest.MapFS{"d/file": {}, "d/link": {Data: []byte("file"), Mode: fs.ModeSymlink}}}
	v := New(fsys)
	if len(v.ReadDir("/d")) != 2 || !v.Has("/d", "link") || v.Has("/d", "absent") || len(v.ReadDir("/absent")) != 0 {
		t.Error("not as it is")
	}
	fsys.lstats = 0
	if !v.Unlisted("/d/absent") || v.Unlisted("/d/link") || v.Unlisted("/absent/x") || v.Unlisted("/unread/x") {
		t.Error("what is listed and what is not")
	}
	if fi, err := v.Lstat("/d/link"); err != nil || fi.Mode().Type() != fs.ModeSymlink || fi.Name() != "link" {
		t.Error(fi, err)
	}
	if fsys.lstats != 0 {
		t.Errorf("%d questions", fsys.lstats)
	}
	if _, err := v.Lstat("/d/absent"); !errors.Is(err, fs.ErrNotExist) || fsys.lstats != 1 {
		t.Error("an automounter has what it does not list")
	}
}

type counted struct {
	fs.FS
	lstats int
}

func (c *counted) Lstat(name string) (fs.FileInfo, error) { c.lstats++; return fs.Lstat(c.FS, name) }
func (c *counted) ReadLink(name string) (string, error)   { return fs.ReadLink(c.FS, name) }
