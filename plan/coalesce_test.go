package plan

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
)

// Neighbours become one mount where nothing else lies beside them, and only there.
func TestCoalesce(t *testing.T) {
	file := &fstest.MapFile{Data: []byte("x"), Mode: 0o755}
	link := func(text string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte(text), Mode: fs.ModeSymlink | 0o777}
	}
	for _, tt := range []struct {
		name   string
		add    fstest.MapFS
		path   string // before what is in PATH already
		dir    string
		joined bool
	}{
		{"all in PATH", nil, "", "/opt", true},
		{"a file beside them", fstest.MapFS{"opt/README": file}, "", "/opt", false},
		{"a directory beside them", fstest.MapFS{"opt/private/notes": file}, "", "/opt", false},
		{"an empty directory beside them", fstest.MapFS{"opt/empty": {Mode: fs.ModeDir | 0o755}}, "", "/opt", false},
		{"a link that nobody names", fstest.MapFS{"opt/latest": link("pkg9")}, "", "/opt", false},
		{"a link out of them", fstest.MapFS{"opt/mine": link("/home/u/letters")}, "", "/opt", false},
		{"a link that PATH names", fstest.MapFS{"opt/latest": link("pkg9")}, "/opt/latest/bin", "/opt", true},
		{"in a home", fstest.MapFS{"home/u/t/a/bin/x": file, "home/u/t/b/bin/x": file, "home/u/t/c/bin/x": file,
			"home/u/t/a/lib/x": file, "home/u/t/b/lib/x": file, "home/u/t/c/lib/x": file},
			"/home/u/t/a/bin:/home/u/t/b/bin:/home/u/t/c/bin", "/home/u/t", false},
		{"elsewhere", fstest.MapFS{"srv/t/a/bin/x": file, "srv/t/b/bin/x": file, "srv/t/c/bin/x": file,
			"srv/t/a/lib/x": file, "srv/t/b/lib/x": file, "srv/t/c/lib/x": file}, "/srv/t/a/bin:/srv/t/b/bin:/srv/t/c/bin", "/srv/t", true},
		{"two keep their reasons", fstest.MapFS{"srv/t/a/bin/x": file, "srv/t/b/bin/x": file, "srv/t/a/lib/x": file,
			"srv/t/b/lib/x": file}, "/srv/t/a/bin:/srv/t/b/bin", "/srv/t", false},
		{"a directory with credentials", fstest.MapFS{"srv/.ssh/a/bin/x": file, "srv/.ssh/b/bin/x": file, "srv/.ssh/c/bin/x": file},
			"/srv/.ssh/a/bin:/srv/.ssh/b/bin:/srv/.ssh/c/bin", "/srv/.ssh", false},
		{"a home that holds nothing else", fstest.MapFS{"srv/h/a/bin/x": file, "srv/h/b/bin/x": file, "srv/h/c/bin/x": file,
			"srv/h/a/lib/x": file, "srv/h/b/lib/x": file, "srv/h/c/lib/x": file}, "/srv/h/a/bin:/srv/h/b/bin:/srv/h/c/bin", "/srv/h", false},
		{"the other temporary files", fstest.MapFS{"var/tmp/a/bin/x": file, "var/tmp/b/bin/x": file, "var/tmp/c/bin/x": file},
			"/var/tmp/a/bin:/var/tmp/b/bin:/var/tmp/c/bin", "/var/tmp", false},
		{"shared temporary files", fstest.MapFS{"tmp/a/bin/x": file, "tmp/b/bin/x": file, "tmp/c/bin/x": file},
			"/tmp/a/bin:/tmp/b/bin:/tmp/c/bin", "/tmp", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := developer(t, 1000)
			host := s.Host.(fstest.MapFS)
			for p, f := range tt.add {
				host[p] = f
			}
			if tt.path != "" {
				s = s.env("PATH=" + tt.path + ":" + lookup(s.Env, "PATH"))
			}
			if tt.dir == "/srv/h" {
				s = s.env("HOME=/srv/h")
			}
			if tt.dir == "/var/tmp" {
				for p := range host {
					if strings.HasPrefix(p, "var/tmp/big") {
						delete(host, p)
					}
				}
			}
			p := build(t, s)
			sound(t, s, p)
			m := at(p, tt.dir+"/anything")
			if (m == "ro "+tt.dir) != tt.joined {
				t.Errorf("%s: %s\n%s", tt.dir, m, p.Explain())
			}
			if tt.joined && !strings.Contains(p.Explain(), "so are all of its entries: ") {
				t.Error("no reason")
			}
			// Each directory of PATH is there, whichever way.
			for dir := range strings.SplitSeq(value(p, "PATH"), ":") {
				if strings.Contains(dir, ".ssh") {
					continue
				}
				if f, ok := host[strings.TrimPrefix(dir, "/")+"/x"]; ok && f != nil && at(p, dir+"/x") == "nothing" {
					t.Errorf("%s is not visible", dir)
				}
			}
		})
	}
}

// What is hidden in one of them stays hidden, and what may be written stays writable.
func TestCoalesceKeeps(t *testing.T) {
	s := developer(t, 1000)
	s.Host.(fstest.MapFS)["opt/pkg9/.npmrc"] = &fstest.MapFile{Data: []byte("//r/:_authToken=t\n"), Mode: 0o644}
	s.Host.(fstest.MapFS)["opt/pkg10/out/x"] = &fstest.MapFile{Data: []byte("x"), Mode: 0o644}
	p := build(t, s.write("/opt/pkg10/out"))
	sound(t, s, p)
	for path, want := range map[string]string{
		"/opt/pkg9/bin/tool": "ro /opt", "/opt/pkg9/.npmrc": "sealed /opt/pkg9/.npmrc", "/opt/pkg10/out/x": "rw /opt/pkg10/out", "/opt/pkg10/lib": "ro /opt",
	} {
		if got := at(p, path); got != want {
			t.Errorf("%s is shown by %s, want %s", path, got, want)
		}
	}
}
