package plan

import (
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/selfcage/selfcage/binds"
	"github.com/selfcage/selfcage/policy"
)

func (s start) hide(paths ...string) start {
	for _, p := range paths {
		s.Hide = append(s.Hide[:len(s.Hide):len(s.Hide)], Grant{Path: p, By: "--hide"})
	}
	return s
}

func (s start) protect(paths ...string) start {
	for _, p := range paths {
		s.Protect = append(s.Protect[:len(s.Protect):len(s.Protect)], Grant{Path: p, By: "--protect"})
	}
	return s
}

// file adds a file to the host of a start.
func file(s start, name, data string) {
	s.Host.(fstest.MapFS)[name] = &fstest.MapFile{Data: []byte(data), Mode: 0o644}
}

func dir(s start, name string) {
	s.Host.(fstest.MapFS)[name] = &fstest.MapFile{Mode: fs.ModeDir | 0o755}
}

func omitted(p *Plan, what string) string {
	for _, o := range p.Omitted {
		if o.What == what {
			return o.Why
		}
	}
	return ""
}

// What is hidden is not there or empty, whatever shows its surroundings.
func TestHide(t *testing.T) {
	for _, tt := range []struct {
		name  string
		start func(start) start
		hide  []string
		want  map[string]string
	}{
		{"a file in a readable directory", func(s start) start { return s.read("/srv/data") }, []string{"/srv/data/set.bin"},
			map[string]string{"/srv/data/set.bin": "sealed /srv/data/set.bin", "/srv/data": "ro /srv/data"}},
		{"a file in a writable directory", func(s start) start { return s.write("/srv/data") }, []string{"/srv/data/set.bin"},
			map[string]string{"/srv/data/set.bin": "sealed /srv/data/set.bin", "/srv/data": "rw /srv/data"}},
		{"a directory", func(s start) start { return s.write("/srv") }, []string{"/srv/data/"},
			map[string]string{"/srv/data/set.bin": "tmpfs /srv/data", "/srv/www": "rw /srv"}},
		{"a file in the working directory, relative", nil, []string{".env"},
			map[string]string{"/home/ada/src/demo/.env": "sealed /home/ada/src/demo/.env", "/home/ada/src/demo/main.go": "ro /home/ada/src/demo"}},
		{"what is granted itself", func(s start) start { return s.read("/srv/data") }, []string{"/srv/data"}, map[string]string{"/srv/data": "nothing"}},
		{"one in another", func(s start) start { return s.read("/srv") }, []string{"/srv/data/set.bin", "/srv/data"},
			map[string]string{"/srv/data/set.bin": "tmpfs /srv/data"}},
		{"a file of the system that is copied", nil, []string{"/etc/hosts"}, map[string]string{"/etc/hosts": "dir /etc"}},
		{"a file that is made up", nil, []string{"/etc/passwd"}, map[string]string{"/etc/passwd": "dir /etc"}},
		{"a directory of the system", nil, []string{"/etc/fonts"}, map[string]string{"/etc/fonts/fonts.conf": "dir /etc"}},
		{"in /usr", nil, []string{"/usr/share/zoneinfo"}, map[string]string{"/usr/share/zoneinfo/Europe/Berlin": "tmpfs /usr/share/zoneinfo", "/usr/share/x": "ro /usr"}},
		{"/sys", nil, []string{"/sys"}, map[string]string{"/sys/class": "nothing"}},
		{"in /proc", nil, []string{"/proc/sys/kernel"}, map[string]string{"/proc/sys/kernel/core_pattern": "tmpfs /proc/sys/kernel", "/proc/1": "proc /proc"}},
		{"through a link", func(s start) start { return s.read("/home/ada/src/demo") }, []string{"/home/ada/src/linked/out"},
			map[string]string{"/home/ada/src/demo/out": "tmpfs /home/ada/src/demo/out"}},
		{"through a link at the end", func(s start) start { return s.read("/srv") }, []string{"/srv/link"},
			map[string]string{"/srv/data/set.bin": "tmpfs /srv/data", "/srv/link": "ro /srv"}},
		{"a link that would be made", func(s start) start { return s.read("/home/ada/src/linked/out") }, []string{"/etc/localtime"},
			map[string]string{"/etc/localtime": "dir /etc", "/usr/share/zoneinfo/Europe/Berlin": "sealed /usr/share/zoneinfo/Europe/Berlin"}},
		{"what a tool needs", func(s start) start { return s.env("PATH=/home/ada/bin:/usr/bin") }, []string{"/home/ada/bin/tool"},
			map[string]string{"/home/ada/bin/tool": "sealed /home/ada/bin/tool", "/home/ada/bin/demo": "ro /home/ada/bin"}},
		{"what is not shown anyway", nil, []string{"/srv/www", "/home/eve", "/tmp/work"}, map[string]string{"/srv/www": "nothing", "/tmp/work": "tmpfs /tmp"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := on(t, "debian12", "/usr/local/bin/demo", "/home/ada/src/demo", "demo").hide(tt.hide...)
			if tt.start != nil {
				s = tt.start(s)
			}
			link(s, "srv/link", "data")
			p := build(t, s)
			sound(t, s, p)
			for path, want := range tt.want {
				if got := at(p, path); got != want {
					t.Errorf("%s is shown by %s, want %s\n%s", path, got, want, p.Explain())
				}
			}
			for _, m := range p.Mounts {
				if m.Reason.By == "--hide" && (len(m.Data) > 0 || m.Kind == binds.Tmpfs && (m.Perm != 0o555 || m.Size != emptySize || !p.remounted(m.Target))) {
					t.Errorf("%s is not empty and read-only: %+v", m.Target, m)
				}
			}
		})
	}
}

func TestHideOmissions(t *testing.T) {
	s := on(t, "debian12", "/usr/local/bin/demo", "/home/ada/src/demo", "demo").hide("/srv/none", "/etc/hosts", "/srv/data").read("/srv/data")
	p := build(t, s)
	for what, want := range map[string]string{
		"/srv/none":  "there is nothing of that name to hide (--hide); made later it would be visible",
		"/etc/hosts": "hidden by --hide", "/srv/data": "hidden by --hide, though --read asks for it",
	} {
		if got := omitted(p, what); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
}

// Hiding what the run cannot do without, and a grant below what is hidden, are contradictions.
func TestHideRefused(t *testing.T) {
	for _, tt := range []struct {
		name, hide string
		change     func(*start)
		names      []string // all of which the message must name
	}{
		{"the program", "/usr/local/bin/demo", nil, []string{"the program", "/usr/local/bin/demo"}},
		{"above the program", "/usr/local", nil, []string{"the program", "/usr/local/bin/demo"}},
		{"by a link to it", "/srv/link", nil, []string{"the program", "/usr/local/bin/demo"}},
		{"the working directory", ".", nil, []string{"the working directory", "/home/ada/src/demo"}},
		{"above the working directory", "/home/ada/src", nil, []string{"the working directory", "/home/ada/src/demo"}},
		{"the root", "/", nil, []string{"is or lies in it"}},
		{"/usr", "/usr", func(s *start) { s.Exe.Path = "/home/ada/bin/demo" }, []string{"the system runtime", "/usr"}},
		{"a directory that a link of the system leads to", "/usr/lib64", nil, []string{"the system runtime", "/lib64"}},
		{"/proc", "/proc", nil, []string{"the cage's own", "/proc"}},
		{"a standard device", "/dev/null", nil, []string{"the cage's own", "/dev/null"}},
		{"/etc", "/etc", nil, []string{"the cage's own", "/etc"}},
		{"the command", "/home/ada/bin/tool", func(s *start) { s.Runs = "tool" }, []string{"the command", "/home/ada/bin/tool"}},
		{"the command by its path", "/home/ada/src/demo/tool", func(s *start) { s.Runs = "./tool" }, []string{"the command", "./tool", "/home/ada/src/demo/tool"}},
		{"the command, though another one of that name follows in PATH", "/home/ada/bin", func(s *start) { s.Runs = "tool" }, []string{"the command", "/home/ada/bin/tool"}},
		{"the command by a link in it", "/srv/www", func(s *start) { s.Runs = "/srv/www/t"; link(*s, "srv/www/t", "/usr/bin/tool") }, []string{"the command", "/srv/www/t", "--hide"}},
		{"the command by a way through it", "/srv/www", func(s *start) { s.Runs = "/srv/www/../t"; link(*s, "srv/t", "/usr/bin/tool") }, []string{"the command", "/srv/www/../t"}},
		{"a grant below", "/srv", func(s *start) { *s = s.read("/srv/data") }, []string{"--read", "/srv/data", "/srv", "--hide"}},
		{"a grant below, through a link", "/srv/data", func(s *start) { *s = s.write("/srv/l/set.bin"); link(*s, "srv/l", "data") }, []string{"--write", "--hide"}},
		{"a cache below", "/home/ada/.cache", func(s *start) { s.Caches = []Cache{{"go", "--cache"}} }, []string{"--cache", "--hide", "/home/ada/.cache"}},
		{"a cache that is missing below", "/home/ada/.cache", func(s *start) { s.Caches = []Cache{{"pip", "--cache"}} }, []string{"--cache", "--hide", "/home/ada/.cache"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := on(t, "debian12", "/usr/local/bin/demo", "/home/ada/src/demo", "demo").hide(tt.hide)
			link(s, "srv/link", "/usr/local/bin/demo")
			if tt.change != nil {
				tt.change(&s)
			}
			r := refused(t, s)
			for _, n := range tt.names {
				if !strings.Contains(r.Error()+r.Hint, n) {
					t.Errorf("%v does not name %s", r, n)
				}
			}
		})
	}
}

// What the toolchain finder copies or follows is not hidden from the run only.
func TestHideFromTools(t *testing.T) {
	s := on(t, "debian12", "/usr/local/bin/demo", "/home/ada/src/demo", "demo")
	file(s, "home/ada/.gitconfig", "[user]\nname = Ada\n")
	if got := at(build(t, s), Home+"/.gitconfig"); got != "file "+Home+"/.gitconfig" {
		t.Fatalf("shown by %s", got)
	}
	if got := at(build(t, s.hide("/home/ada/.gitconfig")), Home+"/.gitconfig"); got != "tmpfs "+Home {
		t.Errorf("a copy is shown by %s", got)
	}
	// A credential root is one also when it is hidden: what holds it is not granted.
	s = s.hide("/home/ada/.config/gh").read("/home/ada/.config")
	if r := refused(t, s); !strings.Contains(r.Cause, "/home/ada/.config/gh") {
		t.Errorf("%v", r)
	}
}

// R36: a Hugging Face cache can be granted; the token in it is covered, and one that may come is told of.
func TestSubtractTokens(t *testing.T) {
	for _, access := range []binds.Kind{binds.ReadOnly, binds.ReadWrite} {
		s := on(t, "debian12", "/usr/local/bin/demo", "/home/ada/src/demo", "demo").grant(access, "--x", []string{"/home/ada/.cache/huggingface"})
		file(s, "home/ada/.cache/huggingface/hub/m", "x")
		file(s, "home/ada/.cache/huggingface/token", "hf_secret")
		p := build(t, s)
		sound(t, s, p)
		if got := at(p, "/home/ada/.cache/huggingface/token"); got != "sealed /home/ada/.cache/huggingface/token" {
			t.Errorf("the token is shown by %s", got)
		}
		if got := at(p, "/home/ada/.cache/huggingface/hub/m"); got != access.String()+" /home/ada/.cache/huggingface" {
			t.Errorf("a model is shown by %s", got)
		}
		if got := omitted(p, "/home/ada/.cache/huggingface/stored_tokens"); !strings.Contains(got, "--x") {
			t.Errorf("nothing is said of stored_tokens: %q", got)
		}
	}
}

// R14: what was said to be in a directory must not lead out of it.
func TestConfined(t *testing.T) {
	for _, tt := range []struct {
		path, root string
		refused    bool
	}{
		{"/srv/data/set.bin", "/srv/data", false},
		{"/srv/data/set.bin", "/srv/inside", false}, // a link to it
		{"/srv/inside/set.bin", "/srv/inside", false},
		{"/srv/data/out", "/srv/data", true},
		{"/srv/data/out", "/srv", false},
		{"/srv/data/set.bin", "/srv/none", true},
		{"/srv//data/./out", "/srv/data", true},
		{"/srv/data/new", "/srv/data", false},
		{"/srv/data/out/new", "/srv/data", true},
	} {
		for _, what := range []string{"grant", "hide", "protect"} {
			s := on(t, "debian12", "/usr/local/bin/demo", "/home/ada/src/demo", "demo")
			link(s, "srv/inside", "data")
			link(s, "srv/data/out", "../www")
			switch what {
			case "grant":
				if strings.HasSuffix(tt.path, "new") {
					continue // missing, which is refused for itself
				}
				s = s.read(tt.path)
			case "hide":
				s = s.hide(tt.path)
			case "protect":
				s = s.protect(tt.path)
			}
			s.Confined = []policy.Confined{{Path: clean(tt.path), Root: tt.root}, {Path: "/other", Root: "/nowhere"}}
			_, err := Build(s.Facts, s.Request)
			if (err != nil) != tt.refused {
				t.Errorf("%s %s in %s: %v", what, tt.path, tt.root, err)
			} else if err != nil && !strings.Contains(err.Error(), "leads out of "+tt.root) {
				t.Errorf("%v does not name %s", err, tt.root)
			}
			if _, checked := Check(s.Facts, s.Request); (checked != nil) != tt.refused {
				t.Errorf("Check: %s %s in %s: %v", what, tt.path, tt.root, checked)
			}
		}
	}
}

func confinedTo(path, root string) []policy.Confined {
	return []policy.Confined{{Path: path, Root: root}}
}

// What hides or protects nothing is told, and a pattern, which names nothing, is refused.
func TestNothingToHide(t *testing.T) {
	s := on(t, "debian12", "/usr/local/bin/demo", "/home/ada/src/demo", "demo").write("out")
	dir(s, "home/ada/src/demo/out/sub")
	for _, tt := range []struct {
		start start
		want  string // of the note; "" for none
	}{
		{s.hide("keyz"), "--hide keyz: there is no such path, so nothing is hidden; made later it would be visible"},
		{s.hide("main.go/x"), "--hide main.go/x: there is no such path, so nothing is hidden; made later it would be visible"},
		{s.hide(".env"), ""},
		{s.protect("main.go"), "--protect main.go: " + notWritable},
		{s.protect("nothing"), "--protect nothing: " + notThere},
		{s.protect("out/new"), "--protect out/new: " + standsFor},
		{s.protect("out/sub"), ""},
		{s.protect("out"), ""},
		{s.protect("out", "out/sub"), ""},
		{s.protect("."), ""},
		{s.protect("out/sub").hide("out/sub"), ""},
	} {
		p := build(t, tt.start)
		if tt.want == "" && len(p.Notes) > 0 || tt.want != "" && !slices.Equal(p.Notes, []string{tt.want}) {
			t.Errorf("hide %v, protect %v: notes %q, want %q", tt.start.Hide, tt.start.Protect, p.Notes, tt.want)
		}
	}
	report := s
	report.Protect = []Grant{{Path: "main.go", By: "report"}}
	if p := build(t, report); len(p.Notes) > 0 {
		t.Errorf("notes %q", p.Notes)
	}
	file(s, "home/ada/src/demo/[a].txt", "x")
	if p := build(t, s.hide("[a].txt")); len(p.Notes) > 0 {
		t.Errorf("a file of that name: %q", p.Notes)
	}
	for _, s := range []start{s.hide("*.pem"), s.hide("k?y"), s.protect("out/[ab]"), s.protect("*/x"), s.hide("main.go/*")} {
		r := refused(t, s)
		if !strings.Contains(r.Hint, "there are no patterns") || !strings.Contains(r.Error(), "--") {
			t.Errorf("%v; %s", r, r.Hint)
		}
		if _, err := Check(s.Facts, s.Request); err == nil || !strings.Contains(err.Error(), r.Error()) {
			t.Errorf("Check: %v, want %v", err, r)
		}
	}
}

// R36: a cache of models that no variable names, known by what is in it.
func TestSubtractTokensAnywhere(t *testing.T) {
	for _, tt := range []struct {
		grant         string
		files         []string
		covered, told []string
	}{
		{"/data/hf", []string{"hub/m", "token"}, []string{"/data/hf/token"}, []string{"/data/hf/stored_tokens"}},
		{"/data/hf", []string{"datasets/m", "stored_tokens"}, []string{"/data/hf/stored_tokens"}, []string{"/data/hf/token"}},
		{"/data", []string{"huggingface/hub/m", "huggingface/token"}, nil, nil}, // not a child of what was granted
		{"/data/hf", []string{"huggingface/hub/m", "huggingface/token"}, []string{"/data/hf/huggingface/token"}, []string{"/data/hf/huggingface/stored_tokens"}},
		{"/data/hf", []string{".cache/huggingface/hub/m", ".cache/huggingface/token"}, []string{"/data/hf/.cache/huggingface/token"}, []string{"/data/hf/.cache/huggingface/stored_tokens"}},
		{"/data/hf", []string{"huggingface/hub/m"}, nil, []string{"/data/hf/huggingface/token", "/data/hf/huggingface/stored_tokens"}},
		{"/data/hf", []string{"hub/m"}, nil, nil}, // may be anything
		{"/data/hf", []string{"token"}, nil, nil},
		{"/data/hf", []string{"hub/m", "credentials/session"}, []string{"/data/hf/credentials/session"}, nil},
		{"/data/hf", []string{"modelscope/hub/m", "modelscope/credentials/x"}, []string{"/data/hf/modelscope/credentials/x"}, nil},
	} {
		for _, access := range []binds.Kind{binds.ReadOnly, binds.ReadWrite} {
			s := on(t, "debian12", "/usr/local/bin/demo", "/home/ada/src/demo", "demo").grant(access, "--x", []string{tt.grant})
			dir(s, "data/hf")
			for _, name := range tt.files {
				file(s, "data/hf/"+name, "x")
			}
			p := build(t, s)
			sound(t, s, p)
			var covered, told []string
			for _, name := range tt.files {
				if m, _ := binds.Cover(p.Mounts, "/data/hf/"+name); m.Kind == binds.Sealed || m.Kind == binds.Tmpfs {
					covered = append(covered, "/data/hf/"+name)
				}
			}
			for _, o := range p.Omitted {
				if strings.HasPrefix(o.What, "/data/") {
					told = append(told, o.What)
				}
			}
			if diff := cmp.Diff([][]string{tt.covered, tt.told}, [][]string{covered, told}); diff != "" {
				t.Errorf("%s with %v (-want +got):\n%s", tt.grant, tt.files, diff)
			}
			rows, err := Check(s.Facts, s.Request)
			if err != nil || (len(tt.covered) > 0) != strings.Contains(rows[0].Note, "without /data/hf/") {
				t.Errorf("Check: %v, %+v", err, rows)
			}
		}
	}
}
