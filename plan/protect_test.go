package plan

import (
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/selfcage/selfcage/binds"
)

// repository adds a git directory to the host of a start, with what git init makes.
func repository(s start, name, config string) {
	for _, d := range []string{"objects", "refs"} {
		dir(s, name+"/"+d)
	}
	file(s, name+"/HEAD", "ref: refs/heads/main\n")
	file(s, name+"/config", config)
	file(s, name+"/hooks/pre-commit.sample", "x")
}

// shown lists what is at paths: "ro", "rw" by a mount of its own is "rw!".
func shown(p *Plan, paths ...string) map[string]string {
	got := map[string]string{}
	for _, path := range paths {
		m, ok := binds.Cover(p.Mounts, path)
		got[path] = "-"
		if ok {
			got[path] = m.Kind.String()
		}
		if m.Kind == binds.ReadWrite && m.Target == path && m.Own {
			got[path] += "!"
		}
	}
	return got
}

func removed(p *Plan) (list []string) {
	for _, m := range p.Remove {
		list = append(list, m.kind()+" "+m.Path+" "+strconv.Quote(m.Data))
	}
	slices.Sort(list)
	return list
}

const proj = "/home/ada/proj"

func inProject(t *testing.T) start {
	t.Helper()
	s := on(t, "debian12", "/usr/local/bin/demo", proj, "demo")
	repository(s, "home/ada/proj/.git", "[core]\n\tbare = false\n")
	file(s, "home/ada/proj/main.go", "x")
	return s
}

// Case 21: what does not exist cannot be made, and is listed to be removed again.
func TestProtectCheckout(t *testing.T) {
	s := inProject(t).write(".")
	p := build(t, s)
	sound(t, s, p)
	want := map[string]string{proj: "rw", proj + "/main.go": "rw", proj + "/.git": "rw!", proj + "/.git/HEAD": "rw", proj + "/.git/config": "ro",
		proj + "/.git/hooks/pre-commit": "ro", proj + "/.git/config.worktree": "ro", proj + "/.git/commondir": "ro", proj + "/.git/config.lock": "rw"}
	if diff := cmp.Diff(want, shown(p, keys(want)...)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"directory " + proj + `/.git/modules ""`, "file " + proj + `/.git/commondir ".\n"`, "file " + proj + `/.git/config.worktree ""`}, removed(p)); diff != "" {
		t.Errorf("removed (-want +got):\n%s", diff)
	}
	// Without hooks their directory is one of them.
	host := s.Host.(fstest.MapFS)
	delete(host, "home/ada/proj/.git/hooks/pre-commit.sample")
	if got := removed(build(t, s)); !slices.Contains(got, "directory "+proj+`/.git/hooks ""`) {
		t.Errorf("hooks that are missing: %q", got)
	}
	// What another run has made there is in its plan too, what somebody else has made is not.
	for _, tt := range []struct {
		file fstest.MapFile
		ours bool
	}{
		{fstest.MapFile{Data: []byte(".\n"), Mode: fs.ModeSticky | 0o444, ModTime: time.Unix(0, 0)}, true},
		{fstest.MapFile{Data: []byte("..\n"), Mode: fs.ModeSticky | 0o444, ModTime: time.Unix(0, 0)}, false},
		{fstest.MapFile{Data: []byte(".\n"), Mode: 0o644}, false},
	} {
		host["home/ada/proj/.git/commondir"] = &tt.file
		p := build(t, s)
		if got := slices.Contains(removed(p), "file "+proj+`/.git/commondir ".\n"`); got != tt.ours {
			t.Errorf("%+v: removed is %v", tt.file, got)
		}
		if got := at(p, proj+"/.git/commondir"); got != "ro "+proj+"/.git/commondir" {
			t.Errorf("%+v: shown by %s", tt.file, got)
		}
	}
}

func keys(m map[string]string) (list []string) {
	for k := range m {
		list = append(list, k)
	}
	return list
}

// Nothing of it where nothing is writable, and an operator who grants a part by its name gets it.
func TestProtectOnlyWhereWritable(t *testing.T) {
	plain := inProject(t)
	for _, s := range []start{plain, plain.read("."), plain.read(".git").write("."), plain.write("/srv/data"), plain.write("main.go")} {
		p := build(t, s)
		if len(p.Remove) > 0 || strings.Contains(p.Explain(), "protect:") {
			t.Errorf("%+v: something is protected:\n%s", s.Grants, p.Explain())
		}
	}
	for _, tt := range []struct {
		write []string
		want  map[string]string
	}{
		{[]string{".", ".git/config"}, map[string]string{"config": "rw", "hooks": "ro", "commondir": "ro"}},
		{[]string{".", ".git/hooks"}, map[string]string{"config": "ro", "hooks/x": "rw", "hooks": "rw"}},
		{[]string{".", ".git/hooks/pre-commit.sample"}, map[string]string{"config": "ro", "hooks/x": "ro", "hooks/pre-commit.sample": "rw"}},
		{[]string{".git"}, map[string]string{"config": "ro", "hooks": "ro", "commondir": "ro", "HEAD": "rw"}},
		{[]string{".git/config"}, map[string]string{"config": "rw", "hooks": "ro", "HEAD": "ro"}},
		{[]string{".", ".git"}, map[string]string{"config": "ro", "hooks": "ro"}},
		{[]string{".git", "."}, map[string]string{"config": "ro", "hooks": "ro"}},
	} {
		s := plain.write(tt.write...)
		p := build(t, s)
		sound(t, s, p)
		for name, want := range tt.want {
			if m, _ := binds.Cover(p.Mounts, proj+"/.git/"+name); m.Kind.String() != want {
				t.Errorf("--write %q: %s is %s, want %s", tt.write, name, m.Kind, want)
			}
		}
		if why := omitted(p, proj+"/.git/config"); (tt.want["config"] == "rw") != (why == "not protected: it was granted by its own name") && tt.want["hooks"] == "ro" && tt.write[0] == "." {
			t.Errorf("--write %q: left out of the protection: %q", tt.write, why)
		}
		if m, _ := binds.Cover(p.Mounts, proj+"/.git"); tt.want["hooks"] == "ro" && m.Kind == binds.ReadWrite && m.Target != proj+"/.git" {
			t.Errorf("--write %q: .git can be renamed, and so replaced", tt.write)
		}
		// No placeholder in a place that was granted by itself.
		for _, m := range p.Remove {
			if slices.Contains(tt.write, strings.TrimPrefix(m.Path, proj+"/")) {
				t.Errorf("--write %q: %s is a placeholder", tt.write, m.Path)
			}
		}
	}
	// --protect wins over any grant.
	for _, write := range [][]string{{".", ".git/config"}, {".git/config", "."}, {".git/config"}} {
		for _, protect := range []string{".git/config", ".git", "."} {
			p := build(t, plain.write(write...).protect(protect))
			if m, _ := binds.Cover(p.Mounts, proj+"/.git/config"); m.Kind != binds.ReadOnly {
				t.Errorf("--write %q --protect %s: %s", write, protect, m.Kind)
			}
		}
	}
}

// Case 19: .git is a file in a worktree and in a submodule. What they lead to is protected where it is writable.
func TestProtectWorktrees(t *testing.T) {
	s := on(t, "worktree", "/usr/bin/demo", "/data/w/wt", "demo").write(".", "/data/w/main")
	p := build(t, s)
	sound(t, s, p)
	main := "/data/w/main/.git"
	want := map[string]string{
		"/data/w/wt": "rw!", "/data/w/wt/.git": "ro", "/data/w/main/lib/.git": "ro", main: "rw!", main + "/worktrees": "rw!", main + "/worktrees/wt": "rw!",
		main + "/worktrees/wt/gitdir": "ro", main + "/worktrees/wt/commondir": "ro", main + "/worktrees/wt/config.worktree": "ro",
		main + "/worktrees/wt/HEAD": "rw", main + "/worktrees/wt/hooks": "rw", main + "/modules": "ro", main + "/modules/new": "ro", main + "/modules/lib": "rw!",
		main + "/modules/lib/config": "ro", main + "/modules/lib/hooks": "ro", main + "/modules/lib/commondir": "ro", main + "/config": "ro",
	}
	if diff := cmp.Diff(want, shown(p, keys(want)...)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	// In whichever order they are met.
	s = on(t, "worktree", "/usr/bin/demo", "/data/w/aa", "demo").write("/data/w/aa", "/data/w/main")
	for name, data := range map[string]string{"HEAD": "x", "commondir": "../..\n", "gitdir": "/data/w/aa/.git\n"} {
		file(s, "data/w/main/.git/worktrees/aa/"+name, data)
	}
	file(s, "data/w/aa/.git", "gitdir: /data/w/main/.git/worktrees/aa\n")
	for name := range s.Host.(fstest.MapFS) {
		if strings.HasPrefix(name, "data/w/main/.git/worktrees/wt/") {
			delete(s.Host.(fstest.MapFS), name)
		}
	}
	want = map[string]string{main: "rw!", main + "/worktrees": "rw!", main + "/worktrees/aa": "rw!", main + "/worktrees/aa/gitdir": "ro"}
	if diff := cmp.Diff(want, shown(build(t, s), keys(want)...)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	// Only the worktree: its pointer, and nothing of the repository, which is read-only.
	p = build(t, on(t, "worktree", "/usr/bin/demo", "/data/w/wt", "demo").write("."))
	if len(p.Remove) > 0 || at(p, "/data/w/wt/.git") != "ro /data/w/wt/.git" || at(p, main+"/config") != "ro "+main {
		t.Errorf("removed %q\n%s", removed(p), p.Explain())
	}
	// A link cannot be covered: said, and what it leads to is protected where that is writable.
	p = build(t, on(t, "worktree", "/usr/bin/demo", "/data/w/linkedgit", "demo").write("/data/w/linkedgit", "/data/w/store"))
	if got := at(p, "/data/w/store/linked.git/hooks"); got != "ro /data/w/store/linked.git/hooks" {
		t.Errorf("hooks of a repository by a link are shown by %s", got)
	}
	if !noted(p, "/data/w/linkedgit/.git is a link in a writable directory") {
		t.Errorf("notes %q", p.Notes)
	}
}

func noted(p *Plan, text string) bool {
	return slices.ContainsFunc(p.Notes, func(n string) bool { return strings.Contains(n, text) })
}

// Checkouts in a granted directory, and around one.
func TestProtectNeighbours(t *testing.T) {
	s := on(t, "debian12", "/usr/local/bin/demo", "/srv/www", "demo").write("/srv")
	for _, r := range []string{"srv/a", "srv/b"} {
		repository(s, r+"/.git", "")
	}
	repository(s, "srv/deep/er/.git", "")
	dir(s, "srv/hg/.hg")
	file(s, "srv/hg2/.hg/hgrc", "")
	p := build(t, s)
	sound(t, s, p)
	want := map[string]string{"/srv/a/.git/config": "ro", "/srv/b/.git/hooks": "ro", "/srv/hg/.hg": "rw!", "/srv/hg/.hg/hgrc": "ro",
		"/srv/hg2/.hg/hgrc": "ro", "/srv/deep/er/.git/config": "rw"}
	if diff := cmp.Diff(want, shown(p, keys(want)...)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	// The checkout of the working directory, however deep.
	s.Dir = "/srv/deep/er"
	if got := at(build(t, s), "/srv/deep/er/.git/config"); got != "ro /srv/deep/er/.git/config" {
		t.Errorf("shown by %s", got)
	}
}

// What the configuration names is protected where it can be written; what git would do otherwise with it does not change.
func TestProtectNamed(t *testing.T) {
	for _, tt := range []struct {
		name, config string
		want         map[string]string
		note         string
	}{
		{"hooks elsewhere", "[core]\n\thooksPath = tools/hooks\n", map[string]string{"tools/hooks/pre-commit": "ro", "tools": "rw!", "tools/x": "rw", ".git/hooks": "ro"}, ""},
		{"hooks by a whole path", "[core]\nhookspath=\"/home/ada/proj/tools/hooks\" ; x\n", map[string]string{"tools/hooks/pre-commit": "ro"}, ""},
		{"hooks in the home", "[core]\nhooksPath = ~/proj/tools/hooks\n", map[string]string{"tools/hooks": "ro"}, ""},
		{"hooks that are not there", "[core]\nhooksPath = .husky/_\n", map[string]string{".husky": "ro", ".husky/_": "ro"}, ""},
		{"hooks outside", "[core]\nhooksPath = /srv/data\n", map[string]string{"tools/hooks": "rw"}, ""},
		{"an include", "[include]\n path = ../tools/cfg\n", map[string]string{"tools/cfg": "ro", "tools": "rw!", "tools/hooks": "ro"}, ""},
		{"an include with a condition", "[includeIf \"gitdir:~/Proj/\"]\n path = ../tools/cfg\n", map[string]string{"tools/cfg": "ro"}, ""},
		{"an include that is not there", "[include]\n path = extra\n", map[string]string{".git/extra": "ro"}, ""},
		{"another work tree", "[core]\n worktree = /srv/www\n", map[string]string{".git/commondir": "rw", ".git/config": "ro"}, "/.git/commondir is not protected"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := inProject(t).write(".")
			file(s, "home/ada/proj/.git/config", tt.config)
			file(s, "home/ada/proj/tools/hooks/pre-commit", "x")
			file(s, "home/ada/proj/tools/cfg", "[core]\nhooksPath = tools/hooks\n")
			p := build(t, s)
			sound(t, s, p)
			for name, want := range tt.want {
				if got := shown(p, proj+"/"+name)[proj+"/"+name]; got != want {
					t.Errorf("%s is %s, want %s", name, got, want)
				}
			}
			if tt.note != "" && !noted(p, tt.note) || tt.note == "" && len(p.Notes) > 0 {
				t.Errorf("notes %q, want %q", p.Notes, tt.note)
			}
		})
	}
}

// What was asked for stays as it is, with all that it lies in: what can be renamed can be replaced.
func TestProtectAsked(t *testing.T) {
	for _, tt := range []struct {
		name    string
		protect string
		want    map[string]string
		removed []string
	}{
		{"a file", "a/b/f", map[string]string{"a/b/f": "ro", "a/b": "rw!", "a": "rw!", "a/b/g": "rw"}, nil},
		{"a directory", "a/b/", map[string]string{"a/b/f": "ro", "a": "rw!", "a/g": "rw"}, nil},
		{"a file that is missing", "a/new", map[string]string{"a/new": "ro", "a": "rw!"}, []string{"file /home/ada/proj/a/new \"\""}},
		{"a directory that is missing", "a/new/", map[string]string{"a/new": "ro", "a": "rw!"}, []string{"directory /home/ada/proj/a/new \"\""}},
		{"in a directory that is missing", "new/x/y", map[string]string{"new": "ro", "new/x/y": "ro"}, []string{"directory /home/ada/proj/new \"\""}},
		{"through a link", "l/b/f", map[string]string{"a/b/f": "ro", "a/b": "rw!"}, nil},
		{"missing through a link", "l/b/new", map[string]string{"a/b/new": "ro", "a/b": "rw!"}, []string{"file /home/ada/proj/a/b/new \"\""}},
		{"a link that leads nowhere", "ld/x", map[string]string{"nowhere": "ro", "nowhere/x": "ro"}, []string{"directory /home/ada/proj/nowhere \"\""}},
		{"what is not writable", "/usr/bin", map[string]string{"a": "rw"}, nil},
		{"what is not visible", "/srv/none", map[string]string{"a": "rw"}, nil},
		{"the grant itself", "/home/ada/proj/.", map[string]string{"a": "ro", ".git/config": "ro"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := on(t, "debian12", "/usr/local/bin/demo", proj, "demo").write(".").protect(tt.protect)
			file(s, "home/ada/proj/a/b/f", "x")
			link(s, "home/ada/proj/l", "a")
			link(s, "home/ada/proj/ld", "nowhere")
			p := build(t, s)
			sound(t, s, p)
			for name, want := range tt.want {
				if got := shown(p, proj+"/"+name)[proj+"/"+name]; got != want {
					t.Errorf("%s is %s, want %s\n%s", name, got, want, p.Explain())
				}
			}
			if diff := cmp.Diff(tt.removed, removed(p)); diff != "" {
				t.Errorf("removed (-want +got):\n%s", diff)
			}
			if name, _, _ := strings.Cut(tt.protect, "/"); (name == "l" || name == "ld") != noted(p, proj+"/"+name+" is a link") {
				t.Errorf("notes %q", p.Notes)
			}
		})
	}
	s := on(t, "debian12", "/usr/local/bin/demo", proj, "demo").write(".").protect("a/new")
	s.Host.(fstest.MapFS)["home/ada/proj/a/new"] = &fstest.MapFile{Mode: fs.ModeSticky | 0o444, ModTime: time.Unix(0, 0)}
	if got := removed(build(t, s)); len(got) != 1 {
		t.Errorf("what another run has made is not held: %q", got)
	}
	s = on(t, "debian12", "/usr/local/bin/demo", proj, "demo").write(".").protect("a/b/f/x")
	file(s, "home/ada/proj/a/b/f", "x")
	if r := refused(t, s); !strings.Contains(r.Error(), "--protect a/b/f/x") || !strings.Contains(r.Cause, "not a directory") {
		t.Errorf("%v", r)
	}
}

// A cache that is made for the run is no exception.
func TestProtectCreated(t *testing.T) {
	for protect, want := range map[string]string{
		"/home/ada/.cache/pip": "ro /home/ada/.cache/pip", "/home/ada/.cache/pip/wheels": "rw /home/ada/.cache/pip", "/home/ada/.cache": "ro /home/ada/.cache/pip",
	} {
		s := on(t, "debian12", "/usr/local/bin/demo", proj, "demo").protect(protect)
		s.Caches = []Cache{{"pip", "--cache"}}
		dir(s, "home/ada/proj")
		p := build(t, s)
		if got := at(p, "/home/ada/.cache/pip"); got != want {
			t.Errorf("--protect %s: the cache is shown by %s, want %s", protect, got, want)
		}
		if got := at(p, protect+"/x"); !strings.HasPrefix(got, "ro ") && protect != "/home/ada/.cache" {
			t.Errorf("--protect %s: shown by %s", protect, got)
		}
	}
}

// The script of explain makes the placeholders and removes them.
func TestScriptRemoves(t *testing.T) {
	text := build(t, inProject(t).write(".")).Script("/usr/bin/bwrap", []string{"true"})
	for _, want := range []string{
		"made=()\n(set -C; printf '.\\n' >" + proj + "/.git/commondir) 2>/dev/null && made+=(" + proj + "/.git/commondir)\n" +
			"(set -C; printf '' >" + proj + "/.git/config.worktree) 2>/dev/null && made+=(" + proj + "/.git/config.worktree)\n" +
			"mkdir " + proj + "/.git/modules 2>/dev/null && made+=(" + proj + "/.git/modules)\nenv -i /usr/bin/bwrap",
		"\nstatus=$?; for made in",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// As git itself reads them (git config --list, 2.39).
func TestGitSettings(t *testing.T) {
	for text, want := range map[string][]gitSetting{
		"":                                     nil,
		"[core]\n\tbare = false\n":             {{"core.bare", "false"}},
		"[Core]BARE\n":                         {{"core.bare", "true"}},
		"[core] hooksPath = a b  # c\n":        {{"core.hookspath", "a b"}},
		"[core]\nhooksPath = \"a # b \" ; c\n": {{"core.hookspath", "a # b "}},
		"[core]\nhooksPath = a\\\n b\n":        {{"core.hookspath", "a b"}},
		"[core]\nhooksPath = \\\"a\\\\\\t\n":   {{"core.hookspath", "\"a\\\t"}},
		"[core]\r\nhooksPath = a\r\n":          {{"core.hookspath", "a"}},
		"# x\n; y\n[a \"B \\\"c\"] k = v\n":    {{"a.B \"c.k", "v"}},
		"[a.B]\nk-1 = v\n":                     {{"a.b.k-1", "v"}},
		"[a]\nk =\n[b]\nk = 2":                 {{"a.k", ""}, {"b.k", "2"}},
		"[a\nk = v\n":                          nil,
		"[a \"b\nk = v\n":                      nil,
		"[a]\n= v\nk = v\n":                    nil,
		"\ufeff[a]\nk = \"x\"y \"z\"\n":        {{"a.k", "xy z"}},
	} {
		if diff := cmp.Diff(want, gitSettings(text), cmp.AllowUnexported(gitSetting{})); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

func FuzzGitSettings(f *testing.F) {
	f.Add("[core \"a\\\"b\"]\n\thooksPath = \"x\" # y\n")
	f.Add("[a]\nk = \\")
	f.Fuzz(func(t *testing.T, text string) {
		for _, s := range gitSettings(text) {
			if !strings.Contains(s.key, ".") {
				t.Errorf("%q: key %q", text, s.key)
			}
		}
	})
}
