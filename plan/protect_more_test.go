package plan

import (
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Case 21: what stands for a missing directory may have been made by another run, that lasts or was killed. Nothing is made in
// it, or neither run could remove it.
func TestProtectInPlaceholder(t *testing.T) {
	for _, tt := range []struct{ name, config, protect string }{
		{"asked for", "", "new/x/y"},
		{"asked for, a directory", "", "new/x/"},
		{"by the configuration", "[core]\nhooksPath = new/_\n", "main.go"},
		{"by an include", "[include]\npath = ../new/cfg\n", "main.go"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := inProject(t).write(".").protect(tt.protect)
			file(s, "home/ada/proj/.git/config", tt.config)
			want := removed(build(t, s))
			if !slices.Contains(want, "directory "+proj+`/new ""`) {
				t.Fatalf("the first run makes %q", want)
			}
			s.Host.(fstest.MapFS)["home/ada/proj/new"] = &fstest.MapFile{Mode: fs.ModeDir | fs.ModeSticky | 0o755, ModTime: time.Unix(0, 0)}
			p := build(t, s)
			if diff := cmp.Diff(want, removed(p)); diff != "" {
				t.Errorf("the second run (-first +second):\n%s", diff)
			}
			if got := at(p, proj+"/new/_"); got != "ro "+proj+"/new" {
				t.Errorf("shown by %s", got)
			}
			// One that is not as it was made is the user's.
			file(s, "home/ada/proj/new/own", "x")
			if got := removed(build(t, s)); slices.Contains(got, "directory "+proj+`/new ""`) {
				t.Errorf("a directory with something in it: %q", got)
			}
		})
	}
}

// Mercurial reads settings from more than one file, and by two more it is told of others.
func TestProtectMercurial(t *testing.T) {
	s := on(t, "debian12", "/usr/local/bin/demo", proj, "demo").write(".")
	file(s, "home/ada/proj/.hg/requires", "dotencode\nstore\n")
	file(s, "home/ada/proj/.hg/dirstate", "x")
	p := build(t, s)
	sound(t, s, p)
	hg := proj + "/.hg"
	want := map[string]string{hg: "rw!", hg + "/hgrc": "ro", hg + "/hgrc-not-shared": "ro", hg + "/requires": "ro", hg + "/sharedpath": "rw", hg + "/dirstate": "rw"}
	if diff := cmp.Diff(want, shown(p, keys(want)...)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"file " + hg + `/hgrc ""`, "file " + hg + `/hgrc-not-shared ""`}, removed(p)); diff != "" {
		t.Errorf("removed (-want +got):\n%s", diff)
	}
	file(s, "home/ada/proj/.hg/sharedpath", "/srv/www/.hg\n")
	if got := at(build(t, s), hg+"/sharedpath"); got != "ro "+hg+"/sharedpath" {
		t.Errorf("shown by %s", got)
	}
}

// Case 19: the file .git of a submodule or a worktree is found by what the repository says of it, not by where it lies.
func TestProtectPointers(t *testing.T) {
	s := inProject(t).write(".")
	file(s, "home/ada/proj/third/lib/.git", "gitdir: ../../.git/modules/lib\n")
	repository(s, "home/ada/proj/.git/modules/lib", "[core]\n\tworktree = ../../../third/lib\n")
	file(s, "home/ada/proj/a/b/wt/.git", "gitdir: "+proj+"/.git/worktrees/wt\n")
	for name, text := range map[string]string{"HEAD": "ref: refs/heads/wt\n", "commondir": "../..\n", "gitdir": proj + "/a/b/wt/.git\n"} {
		file(s, "home/ada/proj/.git/worktrees/wt/"+name, text)
	}
	file(s, "home/ada/proj/.git/worktrees/odd/gitdir", proj+"/main.go\n")
	want := map[string]string{}
	for name, access := range map[string]string{"third/lib/.git": "ro", "third/lib": "rw!", "third": "rw!", "third/lib/f": "rw", "a/b/wt/.git": "ro", "a/b/wt": "rw!", "a": "rw!",
		"a/b/f": "rw", "main.go": "rw"} {
		want[proj+"/"+name] = access
	}
	p := build(t, s)
	sound(t, s, p)
	if diff := cmp.Diff(want, shown(p, keys(want)...)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := at(build(t, s.write("third/lib/.git")), proj+"/third/lib/.git"); strings.HasPrefix(got, "ro ") {
		t.Errorf("granted by its own name: shown by %s", got)
	}
}
