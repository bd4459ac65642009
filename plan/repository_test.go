package plan

import (
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/selfcage/selfcage/binds"
)

// said is s with a path that a policy file lists as writable.
func (s start) said(paths ...string) start {
	for _, p := range paths {
		s.Grants = append(s.Grants[:len(s.Grants):len(s.Grants)], Grant{p, binds.ReadWrite, "policy /etc/p.toml:3"})
	}
	return s
}

// Case 21: only who starts the run may lift the protection. A policy or a recipe may lie in the checkout.
func TestProtectAgainstPolicies(t *testing.T) {
	for _, tt := range []struct {
		name   string
		start  func(start) start
		want   map[string]string
		noted  []string
		others bool // there are more notes
	}{
		{"the configuration, in a grant", func(s start) start { return s.write(".").said(".git/config") }, map[string]string{".git/config": "ro", ".git/HEAD": "rw"}, []string{".git/config"}, false},
		{"the configuration alone", func(s start) start { return s.said(".git/config") }, map[string]string{".git/config": "ro", ".git/HEAD": "ro"}, []string{".git/config"}, false},
		{"a hook", func(s start) start { return s.said(".", ".git/hooks/pre-commit.sample") }, map[string]string{".git/hooks/pre-commit.sample": "ro", "main.go": "rw"},
			[]string{".git/hooks/pre-commit.sample"}, false},
		{"the hooks", func(s start) start { return s.said(".git/hooks") }, map[string]string{".git/hooks/x": "ro"}, []string{".git/hooks"}, false},
		{"modules and what is in it", func(s start) start { return s.said(".git/modules", ".git/modules/junk", ".git/modules/lib") },
			map[string]string{".git/modules/new": "ro", ".git/modules/junk/x": "ro", ".git/modules/lib/HEAD": "rw", ".git/modules/lib/config": "ro"}, []string{".git/modules", ".git/modules/junk"}, false},
		{"what is named by the configuration", func(s start) start { return s.said("tools", "tools/hooks", "tools/cfg") },
			map[string]string{"tools/hooks/pre-commit": "ro", "tools/cfg": "ro", "tools/x": "rw"}, []string{"tools/hooks", "tools/cfg"}, false},
		{"Mercurial's", func(s start) start { return s.said(".hg/hgrc") }, map[string]string{".hg/hgrc": "ro"}, []string{".hg/hgrc"}, false},
		{"by both", func(s start) start {
			return s.said(".git/config").grant(binds.ReadWrite, "--write", []string{".git/config"})
		}, map[string]string{".git/config": "rw"}, nil, false},
		{"of a bare repository", func(s start) start { return s.said("/srv/b.git/config") }, map[string]string{"/srv/b.git/config": "ro"}, []string{"/srv/b.git/config"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := inProject(t)
			file(s, "home/ada/proj/.git/config", "[core]\nhooksPath = tools/hooks\n[include]\npath = ../tools/cfg\n")
			file(s, "home/ada/proj/tools/hooks/pre-commit", "x")
			file(s, "home/ada/proj/tools/cfg", "")
			file(s, "home/ada/proj/.hg/hgrc", "")
			file(s, "home/ada/proj/.git/modules/junk/x", "")
			repository(s, "home/ada/proj/.git/modules/lib", "")
			repository(s, "srv/b.git", "")
			s = tt.start(s)
			p := build(t, s)
			sound(t, s, p)
			for name, want := range tt.want {
				if name[0] != '/' {
					name = proj + "/" + name
				}
				if m, _ := binds.Cover(p.Mounts, name); m.Kind.String() != want {
					t.Errorf("%s is %s, want %s\n%s", name, m.Kind, want, p.Explain())
				}
			}
			n := 0
			for _, note := range p.Notes {
				if strings.HasPrefix(note, "policy /etc/p.toml:3 lists ") {
					n++
				}
			}
			if n != len(tt.noted) {
				t.Errorf("notes %q, want %d of them", p.Notes, len(tt.noted))
			}
			for _, name := range tt.noted {
				if name[0] != '/' {
					name = proj + "/" + name
				}
				if !noted(p, "lists "+name+" as writable, and it stays read-only") || !noted(p, "; DEMO_SANDBOX_WRITABLE "+name+" would grant it") {
					t.Errorf("notes %q, want one of %s", p.Notes, name)
				}
			}
		})
	}
}

// A hook may be a link into the work tree: what git runs is what it leads to.
func TestProtectLinkedHooks(t *testing.T) {
	for _, write := range []string{".", "scripts"} {
		for _, hooksPath := range []bool{false, true} {
			s := inProject(t).write(write)
			dir, up := "home/ada/proj/.git/hooks", "../../"
			if hooksPath {
				file(s, "home/ada/proj/.git/config", "[core]\nhooksPath = githooks\n")
				dir, up = "home/ada/proj/githooks", "../"
			}
			link(s, dir+"/pre-commit", up+"scripts/deep/pc")
			link(s, dir+"/post-merge", up+"scripts/none")
			link(s, dir+"/pre-push", up+"data")
			file(s, "home/ada/proj/data/f", "x")
			link(s, dir+"/post-commit", up+"scripts/l")
			link(s, "home/ada/proj/scripts/l", "pcc")
			file(s, "home/ada/proj/scripts/deep/pc", "x")
			file(s, "home/ada/proj/scripts/pcc", "x")
			p := build(t, s)
			sound(t, s, p)
			want := map[string]string{proj + "/scripts/deep/pc": "ro", proj + "/scripts/deep": "rw!", proj + "/scripts/pcc": "ro", proj + "/scripts": "rw!", proj + "/scripts/x": "rw"}
			if write == "." {
				want[proj+"/data/x"] = "rw"
			}
			if diff := cmp.Diff(want, shown(p, keys(want)...)); diff != "" {
				t.Errorf("--write %s, core.hooksPath %v (-want +got):\n%s", write, hooksPath, diff)
			}
			for _, text := range []string{"/post-merge leads to " + proj + "/scripts/none, which does not exist", proj + "/scripts/l is a link in a writable directory"} {
				if !noted(p, text) {
					t.Errorf("--write %s, core.hooksPath %v: no %q in %q", write, hooksPath, text, p.Notes)
				}
			}
		}
	}
	// Named by the user's own configuration, and the whole directory by a link, in a git directory that is read-only.
	s := inProject(t).write("scripts", "user")
	delete(s.Host.(fstest.MapFS), "home/ada/proj/.git/hooks/pre-commit.sample")
	link(s, "home/ada/proj/.git/hooks", "../scripts/sub/hooks")
	link(s, "home/ada/proj/.git/config.worktree", "../scripts/cfg")
	file(s, "home/ada/proj/scripts/sub/hooks/pre-commit", "x")
	file(s, "home/ada/proj/scripts/cfg", "")
	file(s, "home/ada/proj/user/pre-commit", "x")
	file(s, "home/ada/.gitconfig", "[core]\nhooksPath = user\n")
	p := build(t, s)
	sound(t, s, p)
	want := map[string]string{proj + "/scripts/sub/hooks/pre-commit": "ro", proj + "/scripts/sub": "rw!", proj + "/scripts/cfg": "ro", proj + "/scripts/x": "rw", proj + "/.git/HEAD": "ro"}
	if m, _ := binds.Cover(p.Mounts, proj+"/user"); m.Kind != binds.ReadWrite {
		t.Errorf("granted by its own name, and %s", m.Kind)
	}
	if diff := cmp.Diff(want, shown(p, keys(want)...)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	s.Grants = nil
	if p = build(t, s.write(".")); at(p, proj+"/user/pre-commit") != "ro "+proj+"/user" {
		t.Errorf("shown by %s", at(p, proj+"/user/pre-commit"))
	}
}

// A directory that is pinned, since something in it is protected, can be protected itself later on.
func TestProtectPinned(t *testing.T) {
	for _, protect := range []bool{true, false} {
		s := inProject(t).write(".")
		file(s, "home/ada/proj/.git/config", "[core]\nhooksPath = tools/hooks\n")
		file(s, "home/ada/proj/tools/hooks/pre-commit", "x")
		if protect {
			s = s.protect("tools/hooks/pre-commit")
		} else {
			link(s, "home/ada/proj/.git/hooks/pre-push", "../../tools/hooks/pre-commit")
		}
		p := build(t, s)
		sound(t, s, p)
		want := map[string]string{proj + "/tools/hooks/new": "ro", proj + "/tools/hooks/pre-commit": "ro", proj + "/tools": "rw!"}
		if diff := cmp.Diff(want, shown(p, keys(want)...)); diff != "" {
			t.Errorf("--protect %v (-want +got):\n%s", protect, diff)
		}
	}
}

// What the run fills a directory with must not keep the next one from protecting what it finds.
func TestProtectLimits(t *testing.T) {
	s := on(t, "debian12", "/usr/local/bin/demo", "/srv/www", "demo").write("/srv")
	repository(s, "srv/z/.git", "")
	for i := range maxLook - 10 {
		dir(s, "srv/n"+strconv.Itoa(i))
	}
	p := build(t, s)
	if got := at(p, "/srv/z/.git/config"); got != "ro /srv/z/.git/config" || len(p.Notes) > 0 {
		t.Errorf("shown by %s, notes %q", got, p.Notes)
	}
	for i := range 20 {
		dir(s, "srv/o"+strconv.Itoa(i))
	}
	if p = build(t, s); !noted(p, "only the first 5000 directories in /srv (--write)") {
		t.Errorf("notes %q", p.Notes)
	}
	s = on(t, "debian12", "/usr/local/bin/demo", "/srv/www", "demo").write("/srv")
	for i := range maxCheckouts + 1 {
		dir(s, "srv/n"+strconv.Itoa(i)+"/.git")
	}
	if p = build(t, s); !noted(p, "only the first 200 repositories in /srv (--write)") {
		t.Errorf("notes %q", p.Notes)
	}
}

// Beyond a number of them the whole directory is read-only, and what is no git directory does not count.
func TestProtectManyGitDirs(t *testing.T) {
	for _, name := range []string{"worktrees", "modules"} {
		for _, n := range []int{maxGitDirs, maxGitDirs + 1} {
			s := inProject(t).write(".")
			top := "home/ada/proj/.git/" + name
			for i := range 200 {
				file(s, top+"/a"+strconv.Itoa(i)+"/index", "x")
				dir(s, top+"/b"+strconv.Itoa(i))
			}
			for i := range n {
				sub := top + "/s" + strconv.Itoa(i)
				if name == "modules" {
					repository(s, sub, "")
					continue
				}
				for f, data := range map[string]string{"HEAD": "ref: x\n", "commondir": "../..\n", "gitdir": "/x" + strconv.Itoa(i) + "/.git\n"} {
					file(s, sub+"/"+f, data)
				}
			}
			p := build(t, s)
			sound(t, s, p)
			head, last := at(p, "/"+top+"/s0/HEAD"), "/"+top+"/s"+strconv.Itoa(n-1)
			many := noted(p, top+" is read-only with all that is in it")
			switch {
			case n <= maxGitDirs && (head != "rw /"+top+"/s0" || at(p, last+"/commondir") != "ro "+last+"/commondir" || many):
				t.Errorf("%d %s: %s, %s, notes %q", n, name, head, at(p, last+"/commondir"), p.Notes)
			case n > maxGitDirs && (head != "ro /"+top || at(p, last+"/commondir") != "ro /"+top || !many):
				t.Errorf("%d %s: %s, %s, notes %q", n, name, head, at(p, last+"/commondir"), p.Notes)
			}
			// By its own name it is granted, and that not all is protected is told.
			s = s.grant(binds.ReadWrite, "--write", []string{".", ".git/" + name})
			if p = build(t, s); n > maxGitDirs != noted(p, "only the first 64 of /"+top+" are protected") || at(p, "/"+top+"/s0/config.worktree") != "ro /"+top+"/s0/config.worktree" {
				t.Errorf("%d %s, granted: %s, notes %q", n, name, at(p, "/"+top+"/s0/config.worktree"), p.Notes)
			}
		}
	}
}

// Case 19: a git directory that is laid into .git/modules would be that of a submodule which is not cloned yet.
func TestProtectNewSubmodules(t *testing.T) {
	s := inProject(t).write(".")
	modules := proj + "/.git/modules"
	for _, name := range []string{"lib", "third/party", "lib/modules/a", "lib/modules/a/modules/b", "lib/modules/a/modules/b/modules/c"} {
		repository(s, modules[1:]+"/"+name, "")
	}
	p := build(t, s)
	sound(t, s, p)
	want := map[string]string{"": "ro", "/new": "ro", "/third": "ro", "/third/new": "ro", "/third/party": "rw!", "/lib": "rw!", "/lib/HEAD": "rw", "/lib/config": "ro", "/lib/modules": "ro",
		"/lib/modules/a": "rw!", "/lib/modules/a/hooks": "ro", "/lib/modules/a/modules/b/HEAD": "rw", "/lib/modules/a/modules/b/config": "ro", "/lib/modules/a/modules/b/modules/c/HEAD": "ro",
		"/third/party/modules/x": "ro"}
	for name, access := range want {
		if got := shown(p, modules+name)[modules+name]; got != access {
			t.Errorf("%s is %s, want %s", name, got, access)
		}
	}
	if got := removed(p); !slices.Contains(got, "directory "+modules+`/third/party/modules ""`) || slices.Contains(got, "directory "+modules+`/lib/modules ""`) {
		t.Errorf("removed %q", got)
	}
	if !noted(p, "/lib/modules/a/modules/b/modules is read-only with all") {
		t.Errorf("notes %q", p.Notes)
	}
	p = build(t, s.grant(binds.ReadWrite, "--write", []string{".", ".git/modules"}))
	if got := shown(p, modules+"/new", modules+"/lib/config"); got[modules+"/new"] != "rw" || got[modules+"/lib/config"] != "ro" || omitted(p, modules) == "" {
		t.Errorf("granted by its own name: %v, left out %q", got, omitted(p, modules))
	}
	// In the git directory of a worktree nothing stands for it: git worktree remove would refuse.
	s = on(t, "worktree", "/usr/bin/demo", "/data/w/wt", "demo").write(".", "/data/w/main")
	if got := removed(build(t, s)); slices.ContainsFunc(got, func(r string) bool { return strings.Contains(r, "worktrees/wt/modules") }) {
		t.Errorf("removed %q", got)
	}
	dir(s, "data/w/main/.git/worktrees/wt/modules")
	if got := at(build(t, s), "/data/w/main/.git/worktrees/wt/modules/x"); got != "ro /data/w/main/.git/worktrees/wt/modules" {
		t.Errorf("shown by %s", got)
	}
}

// Bare repositories are found in a granted directory like checkouts. Where one says that it is bare, a commondir would make git
// ask no more for that.
func TestProtectBare(t *testing.T) {
	s := on(t, "debian12", "/usr/local/bin/demo", "/srv/www", "demo").write("/srv")
	repository(s, "srv/b.git", "[core]\n\tbare = true\n\thooksPath = h\n")
	repository(s, "srv/c", "")
	dir(s, "srv/b.git/h")
	file(s, "srv/no/HEAD", "x")
	p := build(t, s)
	sound(t, s, p)
	want := map[string]string{"/srv/b.git": "rw!", "/srv/b.git/config": "ro", "/srv/b.git/hooks/x": "ro", "/srv/b.git/HEAD": "rw", "/srv/b.git/commondir": "rw", "/srv/b.git/modules": "ro",
		"/srv/b.git/h": "ro", "/srv/c/config": "ro", "/srv/c/commondir": "ro", "/srv/no/config": "rw"}
	if diff := cmp.Diff(want, shown(p, keys(want)...)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if !noted(p, "/srv/b.git/commondir is not protected, since /srv/b.git/config sets core.bare") || noted(p, "/srv/c/") {
		t.Errorf("notes %q", p.Notes)
	}
	file(s, "srv/b.git/commondir", ".\n")
	if p = build(t, s); at(p, "/srv/b.git/commondir") != "ro /srv/b.git/commondir" || len(p.Notes) > 0 {
		t.Errorf("shown by %s, notes %q", at(p, "/srv/b.git/commondir"), p.Notes)
	}
}

// Where the run can break .git, git may take the checkout itself for a bare repository: whoever looks afterwards must know where.
func TestCheckouts(t *testing.T) {
	for _, tt := range []struct {
		start start
		want  []string
	}{
		{inProject(t), nil},
		{inProject(t).write("."), []string{proj}},
		{inProject(t).write(".git/objects"), nil},
		{inProject(t).write(".").protect(".git"), nil},
		{inProject(t).write(".", ".git"), []string{proj}},
		{on(t, "worktree", "/usr/bin/demo", "/data/w/wt", "demo").write("/data/w"), []string{"/data/w/linkedgit", "/data/w/main"}},
	} {
		if diff := cmp.Diff(tt.want, build(t, tt.start).Checkouts); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", tt.start.Grants, diff)
		}
	}
}

// flip is a host on which one link leads elsewhere each time it is read.
type flip struct {
	fstest.MapFS
	name  string
	texts []string
	n     *int
}

func (f flip) ReadLink(name string) (string, error) {
	if name != f.name {
		return fs.ReadLink(f.MapFS, name)
	}
	*f.n++
	return f.texts[*f.n%len(f.texts)], nil
}

// R14: what is judged is what is mounted, however often somebody exchanges a link between two looks.
func TestConfinedRace(t *testing.T) {
	for _, what := range []string{"grant", "protect"} {
		for first := range 4 {
			s := on(t, "debian12", "/usr/local/bin/demo", "/home/ada/src/demo", "demo").hide(".env")
			link(s, "srv/data/out", "in")
			file(s, "srv/data/in/x", "x")
			file(s, "srv/www/x", "x")
			n := first
			s.Host = flip{s.Host.(fstest.MapFS), "srv/data/out", []string{"in", "../www"}, &n}
			if s = s.write("/srv/data"); what == "grant" {
				s = s.write("/srv/data/out")
			} else {
				s = s.protect("/srv/data/out")
			}
			s.Confined = confinedTo("/srv/data/out", "/srv/data")
			p, err := Build(s.Facts, s.Request)
			if err != nil {
				if !strings.Contains(err.Error(), "leads out of /srv/data") {
					t.Errorf("%s: %v", what, err)
				}
				continue
			}
			for _, m := range p.Mounts {
				if strings.HasPrefix(m.Source, "/srv/www") {
					t.Errorf("%s, look %d: %s is mounted", what, first, m.Source)
				}
			}
		}
	}
}
