package plan

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
)

func TestCaches(t *testing.T) {
	ask := func(s start, names ...string) start {
		for _, n := range names {
			s.Caches = append(s.Caches, Cache{n, "--cache"})
		}
		return s
	}
	demo := on(t, "debian12", "/usr/local/bin/demo", "/srv/data", "demo")

	// What is there is bound, nothing beside it, and the tool is told.
	s := ask(demo, "go", "go")
	p := build(t, s)
	sound(t, s, p)
	if at(p, "/home/ada/.cache/go-build") != "rw /home/ada/.cache/go-build" || at(p, "/home/ada/.cache/pip") != "nothing" ||
		value(p, "GOCACHE") != "/home/ada/.cache/go-build" || len(p.Create) != 0 {
		t.Errorf("%s\n%v", p.Explain(), p.Create)
	}
	// What is not there is to be made, and is planned as if it were.
	s = ask(demo, "pip", "cargo")
	p = build(t, s)
	var made []string
	for _, m := range p.Create {
		made = append(made, m.kind()+" "+m.Path)
		if m.Reason.By == "" || m.Reason.Why == "" || at(p, m.Path) != "rw "+m.Path {
			t.Errorf("%+v: %s", m, at(p, m.Path))
		}
	}
	want := "directory /home/ada/.cache/pip, directory /home/ada/.cargo/registry, directory /home/ada/.cargo/git, file /home/ada/.cargo/.package-cache"
	if got := strings.Join(made, ", "); got != want {
		t.Errorf("made: %s\nwant: %s", got, want)
	}
	if at(p, "/home/ada/.cargo") != "nothing" || value(p, "CARGO_HOME") != "/home/ada/.cargo" || value(p, "PIP_CACHE_DIR") != "/home/ada/.cache/pip" {
		t.Error(p.Explain())
	}
	for _, part := range []string{"made on the host first", "/home/ada/.cache/pip", "--cache pip: pip's wheels"} {
		if !strings.Contains(p.Explain(), part) {
			t.Errorf("explain does not say %q", part)
		}
	}
	if script := p.Script("/usr/bin/bwrap", nil); !strings.Contains(script, "mkdir -p /home/ada/.cache/pip") {
		t.Error(script)
	}
	if !strings.Contains(string(p.JSON()), `{"kind":"file","path":"/home/ada/.cargo/.package-cache","by":"--cache cargo"`) {
		t.Error(string(p.JSON()))
	}
	// By a link that leads to another disk.
	s = ask(demo.env("PIP_CACHE_DIR=/home/ada/src/linked/deep/pip"), "pip")
	p = build(t, s)
	if len(p.Create) != 1 || p.Create[0].Path != "/home/ada/src/demo/deep/pip" || at(p, "/home/ada/src/linked") != "link /home/ada/src/linked -> demo" {
		t.Errorf("%v\n%s", p.Create, p.Explain())
	}
}

func TestCachesRefused(t *testing.T) {
	demo := on(t, "debian12", "/usr/local/bin/demo", "/srv/data", "demo")
	demo.Host.(fstest.MapFS)["srv/data/out"] = &fstest.MapFile{Data: []byte("/home/ada/Downloads"), Mode: fs.ModeSymlink | 0o777}
	demo.Host.(fstest.MapFS)["srv/data/cargo/.package-cache"] = &fstest.MapFile{Data: []byte("/home/ada/notes.txt"), Mode: fs.ModeSymlink | 0o777}
	demo.Host.(fstest.MapFS)["srv/dangling"] = &fstest.MapFile{Data: []byte("nowhere"), Mode: fs.ModeSymlink | 0o777}
	for _, tt := range []struct {
		name, env, cache string
		want             []string
	}{
		{"unknown", "", "g\x1bo", []string{`"g\x1bo"`, "known are go, gomod, cargo", "--write"}},
		{"no home", "HOME=", "pip", []string{"--cache pip", "PIP_CACHE_DIR"}},
		{"relative", "UV_CACHE_DIR=x", "uv", []string{"--cache uv", "UV_CACHE_DIR", "absolute"}},
		{"the home", "GOCACHE=/home/ada", "go", []string{"--cache go", "/home/ada"}},
		{"everything", "GOCACHE=/", "go", []string{"--cache go"}},
		{"credentials", "GOCACHE=/home/ada/.ssh/go", "go", []string{"--cache go", ".ssh"}},
		{"credentials that are there", "GOCACHE=/home/ada/.aws", "go", []string{"--cache go", ".aws"}},
		{"a file", "GOCACHE=/home/ada/notes.txt", "go", []string{"/home/ada/notes.txt", "not a directory"}},
		{"below a file", "GOCACHE=/home/ada/notes.txt/x", "go", []string{"not a directory"}},
		{"through nothing", "GOCACHE=/srv/dangling/x", "go", []string{"/srv/dangling", "leads nowhere"}},
		{"a link of the tree", "GOCACHE=/srv/data/out/go", "go", []string{"leads out of it", "/home/ada/Downloads"}},
		{"a link of the tree, which is there", "GOCACHE=/srv/data/out", "go", []string{"leads out of it", "/home/ada/Downloads"}},
		{"a lock file that is a link", "CARGO_HOME=/srv/data/cargo", "cargo", []string{".package-cache", "a link", "/home/ada/notes.txt"}},
		{"the kernel's", "GOCACHE=/proc/x", "go", []string{"--cache go"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := demo
			if tt.env != "" {
				s = s.env(tt.env)
			}
			if tt.name == "no home" { // the account has one
				delete(s.Host.(fstest.MapFS), "etc/passwd")
			}
			s.Caches = []Cache{{tt.cache, "--cache"}}
			r := refused(t, s)
			for _, w := range tt.want {
				if !strings.Contains(r.Error()+r.Hint, w) {
					t.Errorf("%v; hint %q: no %q", r, r.Hint, w)
				}
			}
		})
	}
}
