package toolchain

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/selfcage/selfcage/internal/fakehost"
	"github.com/selfcage/selfcage/internal/hostfs"
)

func TestCheckout(t *testing.T) {
	host := hostfs.New(fakehost.Load(t, "worktree"))
	for _, tt := range []struct {
		name, dir, root string
		extra           []string // with " by " and the links on the way
	}{
		{"plain", "/data/w/main", "/data/w/main", nil},
		{"deep in a plain one", "/data/w/main/.git/worktrees/wt/logs", "/data/w/main", nil},
		{"mercurial", "/data/w/hg", "/data/w/hg", nil},
		{"jujutsu", "/data/w/jj", "/data/w/jj", nil},
		{"subversion", "/data/w/svn/trunk", "/data/w/svn/trunk", nil},
		{"above a checkout", "/data/w/svn", "/data/w/svn", nil},
		{"none", "/data/w/plain/sub/dir", "/data/w/plain/sub/dir", nil},
		{"the root", "/", "/", nil},
		{"worktree, named through a link", "/data/w/wt/cmd/deep", "/data/w/wt",
			[]string{"/data/w/main/.git/worktrees/wt by /w", "/data/w/main/.git"}},
		{"submodule, relative", "/data/w/main/lib/src", "/data/w/main/lib", []string{"/data/w/main/.git/modules/lib"}},
		{"a link, which the repository does not know of", "/data/w/linkedgit", "/data/w/linkedgit", nil},
		{"a link that leads nowhere", "/data/w/danglinggit", "/data/w/danglinggit", nil},
		{"too long for a pointer", "/data/w/garbage", "/data/w/garbage", nil},
		{"empty", "/data/w/empty", "/data/w/empty", nil},
		{"text", "/data/w/text", "/data/w/text", nil},
		{"the home is one", "/home/u/proj/sub", "/home/u", nil},
		{"a pointer to the root", "/data/w/evil/root", "/data/w/evil/root", nil},
		{"a pointer to what is no repository", "/data/w/evil/dir", "/data/w/evil/dir", nil},
		{"a pointer to a home that is a checkout", "/data/w/evil/home", "/data/w/evil/home", nil},
	} {
		root, dirs := Checkout(host, tt.dir)
		var extra []string
		for _, d := range dirs {
			s := d.Path
			for _, l := range d.Links {
				s += " by " + l.Path
			}
			extra = append(extra, s)
			if !d.Info.IsDir() {
				t.Errorf("%s: %s is no directory", tt.name, d.Path)
			}
		}
		if root != tt.root || !cmp.Equal(extra, tt.extra) {
			t.Errorf("%s: Checkout(%s) = %s, %q\nwant %s, %q", tt.name, tt.dir, root, extra, tt.root, tt.extra)
		}
	}
}

// What git itself reads of a pointer: one space, then every byte up to the line's end.
func TestPointer(t *testing.T) {
	for _, tt := range []struct {
		text string
		want string // "" for none
	}{
		{"gitdir: /repo", "/repo"},
		{"gitdir: /repo\n", "/repo"},
		{"gitdir: /repo\r\n", "/repo"},
		{"gitdir: ../repo\n", "/repo"},
		{"gitdir: /with space \n", "/with space "},
		{"gitdir: /repo/\n", "/repo"},
		{"gitdir:/repo\n", ""},
		{"gitdir:  /repo\n", ""},
		{"Gitdir: /repo\n", ""},
		{" gitdir: /repo\n", ""},
		{"gitdir: \n", ""},
		{"gitdir: /repo\nmore", ""},
		{"gitdir: /repo/HEAD\n", ""},
		{"gitdir: /nothing\n", ""},
		{"gitdir: /headless\n", ""},
		{"gitdir: " + strings.Repeat("/", 1<<14) + "repo", ""},
	} {
		host := hostfs.New(fstest.MapFS{
			"w/.git": {Data: []byte(tt.text)}, "repo/HEAD": {}, "repo/gitdir": {Data: []byte("/w/.git\n")}, "with space /gitdir": {Data: []byte("../w/.git\n")}, "repo/objects/x": {}, "repo/refs/x": {},
			"with space /HEAD": {}, "with space /objects/x": {}, "with space /refs/x": {}, "headless/objects/x": {}, "headless/refs/x": {},
		})
		root, extra := Checkout(host, "/w")
		got := ""
		for _, e := range extra {
			got += e.Path
		}
		if root != "/w" || got != tt.want {
			t.Errorf("%.40q gives %s, %q, want %q", tt.text, root, got, tt.want)
		}
	}
}

// A pointer file or a commondir that is no ordinary file is not opened: a fifo would block the start.
func TestPointerOfOddKind(t *testing.T) {
	for _, mode := range []fs.FileMode{fs.ModeNamedPipe, fs.ModeSocket, fs.ModeDevice | fs.ModeCharDevice} {
		host := hostfs.New(fstest.MapFS{"w/.git": {Data: []byte("gitdir: /repo"), Mode: mode}, "repo/HEAD": {}, "repo/objects/x": {}, "repo/refs/x": {}})
		if root, extra := Checkout(host, "/w"); root != "/w" || extra != nil {
			t.Errorf("%v: %s, %v", mode, root, extra)
		}
	}
}
