package plan

import (
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// shut is a host on which nothing in some directories can be looked at, as after chmod 000.
type shut struct {
	fstest.MapFS
	dirs []string
}

func (f shut) denied(op, name string, itself bool) error {
	for _, d := range f.dirs {
		if strings.HasPrefix(name, d+"/") || itself && name == d {
			return &fs.PathError{Op: op, Path: name, Err: fs.ErrPermission}
		}
	}
	return nil
}

func (f shut) Open(name string) (fs.File, error) {
	if err := f.denied("open", name, true); err != nil {
		return nil, err
	}
	return f.MapFS.Open(name)
}

func (f shut) Lstat(name string) (fs.FileInfo, error) {
	if err := f.denied("lstat", name, false); err != nil {
		return nil, err
	}
	return f.MapFS.Lstat(name)
}

func (f shut) ReadDir(name string) ([]fs.DirEntry, error) {
	if err := f.denied("open", name, true); err != nil {
		return nil, err
	}
	return f.MapFS.ReadDir(name)
}

func (f shut) ReadFile(name string) ([]byte, error) {
	if err := f.denied("open", name, true); err != nil {
		return nil, err
	}
	return f.MapFS.ReadFile(name)
}

// shut makes directories of the project unreadable.
func (s start) shut(dirs ...string) start {
	for i := range dirs {
		if dirs[i][0] != '/' {
			dirs[i] = proj + "/" + dirs[i]
		}
		dirs[i] = dirs[i][1:]
	}
	s.Host = shut{s.Host.(fstest.MapFS), dirs}
	return s
}

// Case 21, R14: what an earlier run made unreadable does not count as missing.
func TestProtectUnreadable(t *testing.T) {
	for _, tt := range []struct {
		dir, named string
		ok         bool
	}{
		{".git", ".git/", false},
		{".hg", ".hg/", false},
		{".git/modules", ".git/modules", false},
		{".git/worktrees", ".git/worktrees", false},
		{".git/modules/lib", ".git/modules/lib/", false},
		{"tools/sub", "tools/sub/hooks", false},
		{"a/wt", "a/wt/.git", false},
		{"scripts/x", "scripts/x/", false},
		{"vendored", "vendored/.git", false},
		{"/srv/elsewhere", "", true}, // nothing of it is writable
	} {
		s := inProject(t).write(".")
		file(s, "home/ada/proj/.git/config", "[core]\nhooksPath = tools/sub/hooks\n")
		file(s, "home/ada/proj/tools/sub/hooks/pre-commit", "x")
		file(s, "home/ada/proj/.hg/hgrc", "")
		repository(s, "home/ada/proj/.git/modules/lib", "")
		file(s, "home/ada/proj/.git/worktrees/wt/gitdir", proj+"/a/wt/.git\n")
		file(s, "home/ada/proj/a/wt/.git", "gitdir: ../../.git/worktrees/wt\n")
		link(s, "home/ada/proj/.git/hooks/pre-push", "../../scripts/x/hook")
		file(s, "home/ada/proj/scripts/x/hook", "x")
		repository(s, "home/ada/proj/vendored/.git", "")
		repository(s, "srv/elsewhere/.git", "")
		s = s.shut(tt.dir)
		if tt.ok {
			build(t, s)
			continue
		}
		r := refused(t, s)
		if r.What != "cannot protect" || !strings.HasPrefix(r.Object, proj+"/"+tt.named) || !strings.Contains(r.Hint, "chmod u+rx") {
			t.Errorf("%s: %v; %s", tt.dir, r, r.Hint)
		}
	}
}

// Case 21: hiding what the protection is derived from takes away none of it.
func TestProtectHidden(t *testing.T) {
	for _, hide := range []string{".git/config", ".git/HEAD", ".git/hooks", "/home/ada/.gitconfig", ".git/worktrees/wt/HEAD"} {
		s := inProject(t).write(".").hide(hide)
		file(s, "home/ada/.gitconfig", "[core]\nhooksPath = userhooks\n")
		file(s, "home/ada/proj/userhooks/pre-commit", "x")
		file(s, "home/ada/proj/tools/cfg", "")
		if hide != "/home/ada/.gitconfig" {
			file(s, "home/ada/proj/.git/config", "[include]\npath = ../tools/cfg\n")
		} else {
			file(s, "home/ada/proj/tools/x", "")
		}
		for name, data := range map[string]string{"HEAD": "x", "commondir": "../..\n", "gitdir": "/x/.git\n"} {
			file(s, "home/ada/proj/.git/worktrees/wt/"+name, data)
		}
		p := build(t, s)
		sound(t, s, p)
		want := map[string]string{proj + "/userhooks/pre-commit": "ro", proj + "/.git/config.worktree": "ro", proj + "/.git": "rw!",
			proj + "/.git/worktrees/wt/commondir": "ro", proj + "/.git/commondir": "ro"}
		if hide != "/home/ada/.gitconfig" {
			want[proj+"/tools/cfg"] = "ro"
		}
		if diff := cmp.Diff(want, shown(p, keys(want)...)); diff != "" {
			t.Errorf("--hide %s (-want +got):\n%s", hide, diff)
		}
	}
}

// A run cannot make a checkout look like a linked worktree, nor a git directory like something else, for the next one.
func TestProtectDisguised(t *testing.T) {
	for _, commondir := range []string{"", ".\n", "/none\n"} {
		s := inProject(t).write(".")
		file(s, "home/ada/proj/.git/gitdir", "\n")
		if commondir != "" {
			file(s, "home/ada/proj/.git/commondir", commondir)
		}
		want := map[string]string{proj + "/.git/config": "ro", proj + "/.git/hooks/x": "ro"}
		if diff := cmp.Diff(want, shown(build(t, s), keys(want)...)); diff != "" {
			t.Errorf("with gitdir, commondir %q (-want +got):\n%s", commondir, diff)
		}
	}
	for _, moved := range [][]string{{"HEAD"}, {"objects"}, {"HEAD", "objects", "refs"}} {
		s := inProject(t).write(".", "/srv/git")
		const config = "[core]\nrepositoryformatversion = 0\n"
		for _, at := range []string{"home/ada/proj/.git/modules/lib", "srv/git/b.git"} {
			repository(s, at, config)
			for _, name := range moved {
				delete(s.Host.(fstest.MapFS), at+"/"+name)
			}
		}
		file(s, "home/ada/proj/.git/worktrees/wt/commondir", "../..\n")
		want := map[string]string{proj + "/.git/modules/lib/config": "ro", "/srv/git/b.git/config": "ro", "/srv/git/b.git/hooks/x": "ro",
			proj + "/.git/worktrees/wt/gitdir": "ro", proj + "/.git/worktrees/wt/commondir": "ro"}
		if diff := cmp.Diff(want, shown(build(t, s), keys(want)...)); diff != "" {
			t.Errorf("without %v (-want +got):\n%s", moved, diff)
		}
	}
}

// R36, R14: what is hidden, or a token, stays where the next run looks for it.
func TestHidePinned(t *testing.T) {
	s := inProject(t).write(".", "/data").hide("x/y/sec")
	file(s, "home/ada/proj/x/y/sec", "x")
	file(s, "data/m/hub/f", "x")
	file(s, "data/m/huggingface/token", "x")
	file(s, "data/huggingface/hub/f", "x")
	file(s, "data/huggingface/token", "x")
	p := build(t, s)
	sound(t, s, p)
	want := map[string]string{proj + "/x": "rw!", proj + "/x/y": "rw!", proj + "/x/y/sec": "sealed", proj + "/x/y/f": "rw",
		"/data/huggingface": "rw!", "/data/huggingface/hub": "rw!", "/data/huggingface/token": "sealed", "/data/m": "rw"}
	if diff := cmp.Diff(want, shown(p, keys(want)...)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestHideUnreadable(t *testing.T) {
	s := inProject(t).write(".").hide("x/sec")
	file(s, "home/ada/proj/x/sec", "x")
	if r := refused(t, s.shut("x")); r.What != "cannot hide" || r.Object != "--hide x/sec" {
		t.Errorf("%v", r)
	}
	for _, tt := range []struct{ write, shut, named string }{
		{"/home/ada/.cache/huggingface", "/home/ada/.cache/huggingface", "/home/ada/.cache/huggingface/"},
		{"/data", "/data/huggingface", "/data/huggingface/"},
	} {
		s = inProject(t).write(tt.write)
		file(s, tt.shut[1:]+"/token", "x")
		file(s, tt.shut[1:]+"/hub/f", "x")
		// What looks for repositories refuses it first where it is writable.
		s = s.shut(tt.shut)
		if r := refused(t, s); !strings.Contains(r.Object, tt.named) {
			t.Errorf("%+v: %v", tt, r)
		}
		s.Grants = nil
		if r := refused(t, s.read(tt.write)); r.What != "cannot hide" || !strings.Contains(r.Object, "the token "+tt.named) {
			t.Errorf("%+v, read: %v", tt, r)
		}
	}
}

// R38: wherever a start may look for what was approved.
func TestStoresAreProtected(t *testing.T) {
	s := inProject(t).env("HOME=/srv/h", "XDG_STATE_HOME=/srv/state").write("/srv/h/.local", "/srv/state", "/home/ada/.local")
	dir(s, "srv/h/.local/state/x")
	dir(s, "srv/state/x")
	dir(s, "home/ada/.local/state/x")
	var got []string
	for _, m := range removed(build(t, s)) {
		if strings.Contains(m, "selfcage") {
			got = append(got, m)
		}
	}
	want := []string{`directory /home/ada/.local/state/selfcage ""`, `directory /srv/h/.local/state/selfcage ""`, `directory /srv/state/selfcage ""`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// once is a host that says which files were read.
type once struct {
	fstest.MapFS
	read *[]string
}

func (f once) ReadFile(name string) ([]byte, error) {
	*f.read = append(*f.read, name)
	return f.MapFS.ReadFile(name)
}

// A file that holds a path is not read where it is far too long for one.
func TestProtectHugePointer(t *testing.T) {
	s := inProject(t).write(".")
	const wt = "home/ada/proj/.git/worktrees/wt/"
	file(s, wt+"HEAD", "x")
	file(s, wt+"commondir", "../..\n")
	file(s, wt+"gitdir", strings.Repeat("x", maxPointer+1))
	var read []string
	s.Host = once{s.Host.(fstest.MapFS), &read}
	build(t, s)
	if slices.Contains(read, wt+"gitdir") || !slices.Contains(read, wt+"commondir") {
		t.Errorf("read %q", read)
	}
}

// An empty commondir would break git on the host while the run lasts.
func TestProtectCommonDirAsked(t *testing.T) {
	s := inProject(t).write(".").protect(".git/commondir", "sub/commondir")
	dir(s, "home/ada/proj/sub")
	got := removed(build(t, s))
	for _, want := range []string{"file " + proj + `/.git/commondir ".\n"`, "file " + proj + `/sub/commondir ""`} {
		if !slices.Contains(got, want) {
			t.Errorf("no %s in %q", want, got)
		}
	}
}

// git follows ten levels of includes.
func TestProtectIncludes(t *testing.T) {
	s := inProject(t).write(".")
	file(s, "home/ada/proj/.git/config", "[include]\npath = ../inc/1\n")
	for i := 1; i <= 12; i++ {
		file(s, "home/ada/proj/inc/"+strconv.Itoa(i), "[include]\npath = "+strconv.Itoa(i+1)+"\npath = "+strconv.Itoa(i)+"\n")
	}
	file(s, "home/ada/proj/inc/10", "[core]\nhooksPath = deep\n[include]\npath = 11\n")
	file(s, "home/ada/proj/deep/pre-commit", "x")
	p := build(t, s)
	want := map[string]string{proj + "/inc/10": "ro", proj + "/inc/11": "ro", proj + "/inc/12": "rw", proj + "/deep/pre-commit": "ro"}
	if diff := cmp.Diff(want, shown(p, keys(want)...)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
