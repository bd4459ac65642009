package plan

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/selfcage/selfcage/binds"
	"github.com/selfcage/selfcage/internal/hostfs"
	"github.com/selfcage/selfcage/internal/refusal"
)

// at is the mount that shows p in a plan.
func at(p *Plan, path string) string {
	m, ok := binds.Cover(p.Mounts, path)
	if !ok {
		return "nothing"
	}
	s := m.Kind.String() + " " + m.Target
	if m.Kind == binds.Symlink {
		s += " -> " + m.Source
	}
	return s
}

// refused returns the refusal of a start that must be refused.
func refused(t *testing.T, s start) *refusal.Error {
	t.Helper()
	p, err := Build(s.Facts, s.Request)
	if err == nil {
		t.Errorf("%s in %q was not refused:\n%s", s.Exe.Path, s.Dir, p.Explain())
		return &refusal.Error{}
	}
	r, ok := err.(*refusal.Error)
	if !ok {
		t.Fatalf("%v is a %T", err, err)
	}
	if r.ExitStatus() != 125 || r.What == "" || r.Cause == "" || r.Hint == "" {
		t.Errorf("refusal without a part: %+v", r)
	}
	return r
}

// By which name the program is started again: argv[0] where that leads to the same file inside, else its path.
func TestCommand(t *testing.T) {
	const usual = "PATH=/usr/local/bin:/usr/bin:/bin"
	for _, tt := range []struct {
		name, exe, argv0, dir string
		env                   []string
		want                  string
	}{
		{"found in PATH", "/usr/local/bin/demo", "demo", "/home/ada/src/demo", []string{usual}, "demo"},
		{"found in PATH by a link", "/usr/bin/dash", "sh", "/", []string{usual}, "sh"},
		{"by a link of alternatives", "/usr/bin/mawk", "awk", "/", []string{usual}, "awk"},
		{"through the merged-usr link", "/usr/bin/dash", "dash", "/", []string{"PATH=/bin"}, "dash"},
		{"in no directory of PATH", "/usr/local/bin/demo", "demo", "/", []string{"PATH=/usr/bin"}, "/usr/local/bin/demo"},
		{"no PATH", "/usr/local/bin/demo", "demo", "/", []string{"PATH="}, "/usr/local/bin/demo"},
		{"a login shell", "/usr/bin/bash", "-bash", "/", []string{usual}, "/usr/bin/bash"},
		{"argv[0] is another name", "/usr/local/bin/demo", "worker: idle", "/", []string{usual}, "/usr/local/bin/demo"},
		{"empty argv[0]", "/usr/local/bin/demo", "", "/", []string{usual}, "/usr/local/bin/demo"},
		{"PATH with slashes at the end", "/usr/local/bin/demo", "demo", "/", []string{"PATH=/none/:/usr/local/bin//"}, "demo"},
		{"what cannot be executed is passed over", "/usr/local/bin/demo", "demo", "/", []string{"PATH=/usr/share:/usr/local/bin"}, "demo"},

		{"another one first in PATH, visible", "/usr/bin/tool", "tool", "/home/ada/src/demo", []string{"PATH=/home/ada/src/demo:/usr/bin"}, "/usr/bin/tool"},
		{"another one first in PATH, below the home", "/usr/bin/tool", "tool", "/home/ada/src/demo", []string{"PATH=/home/ada/bin:/usr/bin"}, "/usr/bin/tool"},
		{"another one first, in the working directory", "/usr/bin/tool", "tool", "/home/ada/src/demo", []string{"PATH=.:/usr/bin"}, "/usr/bin/tool"},
		{"another one first, in an empty entry", "/usr/bin/tool", "tool", "/home/ada/src/demo", []string{"PATH=:/usr/bin"}, "/usr/bin/tool"},
		{"itself in the working directory", "/home/ada/src/demo/tool", "tool", "/home/ada/src/demo", []string{"PATH=.:/usr/bin"}, "tool"},

		{"absolute", "/usr/local/bin/demo", "/usr/local/bin/demo", "/", []string{usual}, "/usr/local/bin/demo"},
		{"absolute by a link", "/usr/bin/dash", "/bin/sh", "/", []string{usual}, "/bin/sh"},
		{"relative", "/home/ada/src/demo/demo", "./demo", "/home/ada/src/demo", []string{usual}, "./demo"},
		{"relative, up", "/home/ada/src/demo/demo", "../demo", "/home/ada/src/demo/out", []string{usual}, "../demo"},
		{"relative, up and up", "/usr/bin/tool", "../../../../usr/bin/tool", "/home/ada/src/demo", []string{usual}, "../../../../usr/bin/tool"},
		// /home/ada/Downloads is not inside, so nobody could pass it.
		{"up from what is not visible", "/home/ada/src/demo/demo", "../../Downloads/../src/demo/demo", "/home/ada/src/demo", []string{usual}, "/home/ada/src/demo/demo"},
		{"a link of its own", "/home/ada/src/demo/demo", "/home/ada/bin/demo-next", "/", []string{usual}, "/home/ada/bin/demo-next"},
		{"relative to another directory", "/home/ada/src/demo/demo", "./demo", "/home/ada/src/demo/out", []string{usual}, "/home/ada/src/demo/demo"},
		{"a name of another file", "/usr/bin/tool", "/usr/bin/env", "/", []string{usual}, "/usr/bin/tool"},
		{"below /tmp", "/tmp/go-build1234/b001/exe/demo", "/tmp/go-build1234/b001/exe/demo", "/", []string{usual}, "/tmp/go-build1234/b001/exe/demo"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := on(t, "debian12", tt.exe, tt.dir, tt.argv0).env(tt.env...)
			p := build(t, s)
			if p.Command != tt.want {
				t.Errorf("Command = %q, want %q", p.Command, tt.want)
			}
			if p.Args[0] != tt.argv0 {
				t.Errorf("Args[0] = %q, want %q as it was spelled", p.Args[0], tt.argv0)
			}
			if got := at(p, tt.exe); !strings.HasPrefix(got, "ro /") {
				t.Errorf("the executable is shown by %s", got)
			}
			if got := lookUp(p, tt.want); got != tt.exe {
				t.Errorf("inside, %q is %q, want %q\n%s", tt.want, got, tt.exe, p.Explain())
			}
		})
	}
	// Nobody's command line has no name, but execve takes it.
	s := on(t, "debian12", "/usr/local/bin/demo", "/")
	if p := build(t, s); p.Command != "/usr/local/bin/demo" || p.Operands() != nil {
		t.Errorf("without arguments: %q, %q", p.Command, p.Operands())
	}
}

// lookUp does what execvp does inside of the cage, on a host that is made of the plan's mounts.
func lookUp(p *Plan, name string) string {
	in := inside{p}
	if strings.Contains(name, "/") {
		return in.walk(absolute(name, p.Dir))
	}
	for _, dir := range strings.Split(value(p, "PATH"), ":") {
		if file := in.walk(absolute(dir, p.Dir) + "/" + name); in.executable(file) {
			return file
		}
	}
	return ""
}

func absolute(p, dir string) string {
	if strings.HasPrefix(p, "/") {
		return p
	}
	return dir + "/" + p
}

func value(p *Plan, name string) string {
	for _, v := range p.Env {
		if v.Name == name {
			return v.Value
		}
	}
	return ""
}

// inside is the file system that a process in the cage sees: an independent reading of a plan's mounts, whose sources
// are the fake host debian12.
type inside struct{ p *Plan }

var debian fstest.MapFS

// lstat says what is at a path without links on the way: "dir", "file", "-> text", or "".
func (in inside) lstat(path string) string {
	for _, m := range in.p.Mounts {
		if m.Kind == binds.RemountRO {
			continue
		}
		if m.Target == path {
			switch m.Kind {
			case binds.Symlink:
				return "-> " + m.Source
			case binds.File, binds.Sealed:
				return "file"
			case binds.Dir, binds.Tmpfs, binds.Proc, binds.Dev:
				return "dir"
			}
		}
	}
	if m, ok := binds.Cover(in.p.Mounts, path); ok && m.Kind.Bind() {
		fi, err := debian.Lstat((m.Source + strings.TrimPrefix(path, m.Target))[1:])
		switch {
		case err != nil:
		case fi.Mode()&fs.ModeSymlink != 0:
			text, _ := debian.ReadLink((m.Source + strings.TrimPrefix(path, m.Target))[1:])
			return "-> " + text
		case fi.IsDir():
			return "dir"
		default:
			return "file"
		}
	}
	for _, m := range in.p.Mounts { // parents are made
		if strings.HasPrefix(m.Target, path+"/") || path == "" || path == "/" {
			return "dir"
		}
	}
	return ""
}

// walk resolves a path inside, "" when it leads nowhere.
func (in inside) walk(path string) string {
	at, links := "", 0
	for rest := path; rest != ""; {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		switch name {
		case "", ".":
			continue
		case "..":
			at = at[:max(strings.LastIndexByte(at, '/'), 0)]
			continue
		}
		what := in.lstat(at + "/" + name)
		text, link := strings.CutPrefix(what, "-> ")
		switch {
		case what == "" || links > 40 || what == "file" && rest != "":
			return ""
		case link:
			links++
			if strings.HasPrefix(text, "/") {
				at = ""
			}
			rest = text + "/" + rest
			rest = strings.TrimSuffix(rest, "/")
		default:
			at += "/" + name
		}
	}
	return at
}

func (in inside) executable(path string) bool {
	if path == "" || in.lstat(path) != "file" {
		return false
	}
	fi, err := debian.Lstat(path[1:])
	return err == nil && fi.Mode()&0o111 != 0
}

// Without the links the plans above would be wrong in ways that the look-up must see.
func TestLookUpSees(t *testing.T) {
	p := build(t, on(t, "debian12", "/usr/bin/dash", "/", "/bin/sh"))
	p.Mounts = append([]binds.Mount(nil), p.Mounts...)
	for i, m := range p.Mounts {
		if m.Target == "/bin" {
			p.Mounts = append(p.Mounts[:i], p.Mounts[i+1:]...)
			break
		}
	}
	if got := lookUp(p, "/bin/sh"); got != "" {
		t.Errorf("without /bin, /bin/sh is %q", got)
	}
}

// An executable that was deleted or replaced runs as a copy, and never in a place where it would be written to the host
// or be mistaken for what is there now.
func TestProgramCopy(t *testing.T) {
	for _, tt := range []struct {
		name, exe, dir, want string
		write                []string
	}{
		{"its directory is not shown", "/home/ada/opt/gone", "/home/ada/src/demo", "/home/ada/opt/gone", nil},
		{"in a directory of PATH", "/home/ada/bin/gone", "/home/ada/src/demo", "/run/selfcage/program/gone", nil},
		{"below /tmp", "/tmp/go-build9/exe/demo", "/", "/tmp/go-build9/exe/demo", nil},
		{"a memfd", "/memfd:demo", "/", "/memfd:demo", nil},
		{"in the working directory", "/home/ada/src/demo/old", "/home/ada/src/demo", "/run/selfcage/program/old", nil},
		{"in the checkout", "/home/ada/src/demo/old", "/home/ada/src/demo/out", "/run/selfcage/program/old", nil},
		{"in a grant", "/srv/data/old", "/", "/run/selfcage/program/old", []string{"/srv/data"}},
		{"in /usr", "/usr/bin/old", "/", "/run/selfcage/program/old", nil},
		{"another file is there now", "/home/ada/bin/demo", "/", "/run/selfcage/program/demo", nil},
		{"a link is there now", "/home/ada/src/linked/old", "/", "/run/selfcage/program/old", nil},
		{"called like our own files", "/usr/bin/grants", "/", "/run/selfcage/program/grants", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := on(t, "debian12", tt.exe, tt.dir, "./old").write(tt.write...)
			s.Exe = Exe{Path: tt.exe, Data: []byte("old build")}
			p := build(t, s)
			m, _ := binds.Cover(p.Mounts, tt.want)
			if p.Command != tt.want || m.Kind != binds.File || m.Target != tt.want || string(m.Data) != "old build" || m.Perm&0o111 == 0 {
				t.Errorf("Command = %q, want %q, shown by %s", p.Command, tt.want, at(p, tt.want))
			}
			if !strings.Contains(m.Reason.Why, "9 bytes") {
				t.Errorf("the size is not said: %q", m.Reason.Why)
			}
			sound(t, s, p)
		})
	}
	s := on(t, "debian12", "/home/ada/bin/gone", "/", "gone")
	s.Exe = Exe{Path: "/home/ada/bin/gone"}
	if r := refused(t, s); !strings.Contains(r.Cause, "cannot be read") {
		t.Errorf("deleted and unreadable: %v", r)
	}
}

// What run is there to run is looked up as outside and made visible, or another program of that name would run.
func TestRuns(t *testing.T) {
	for _, tt := range []struct{ name, runs, dir, show string }{
		{"in PATH, in the home", "tool", "/", "ro /home/ada/bin"},
		{"by path", "/home/ada/bin/tool", "/", "ro /home/ada/bin"},
		{"relative", "./tool", "/home/ada/src/demo", "ro /home/ada/src/demo"},
		{"by a link", "demo-next", "/", "ro /home/ada/src/demo"},
		{"of the system", "env", "/", "ro /usr"},
		{"not executable", "/usr/bin/notexec", "/", "ro /usr"},
		{"nowhere", "none", "/", "nothing"},
	} {
		s := on(t, "debian12", "/usr/local/bin/demo", tt.dir, "demo")
		s.Runs = tt.runs
		p := build(t, s)
		path := map[string]string{"tool": "/home/ada/bin/tool", "demo-next": "/home/ada/src/demo/demo", "env": "/usr/bin/env", "./tool": "/home/ada/src/demo/tool"}[tt.runs]
		if path == "" {
			path = tt.runs
		}
		if got := at(p, path); got != tt.show {
			t.Errorf("%s: %s is shown by %s, want %s", tt.name, tt.runs, got, tt.show)
		}
		if tt.name == "by a link" && at(p, "/home/ada/bin/demo-next") != "ro /home/ada/bin" {
			t.Errorf("the link to it: %s", at(p, "/home/ada/bin/demo-next"))
		}
		sound(t, s, p)
	}
}

func TestDescriptors(t *testing.T) {
	for _, tt := range []struct {
		name string
		args []string
		env  []string
		want string
	}{
		{"none", []string{"a", "/dev/null"}, nil, ""},
		{"process substitution", []string{"/dev/fd/63", "/dev/fd/62"}, nil, "63:arguments 62:arguments"},
		{"in a word", []string{"--in=/dev/fd/9", "@/proc/self/fd/8"}, nil, "9:arguments 8:arguments"},
		{"two in a word", []string{"/dev/fd/4,/dev/fd/5"}, nil, "4:arguments 5:arguments"},
		{"once", []string{"/dev/fd/7", "/proc/self/fd/7"}, nil, "7:arguments"},
		{"the standard ones stay anyway", []string{"/dev/fd/0", "/dev/fd/1", "/dev/fd/2"}, nil, ""},
		{"what lies beside a descriptor is not asked for", []string{"/dev/fd/7/..", "/proc/self/fd/8/x"}, nil, ""},
		{"no number", []string{"/dev/fd/", "/dev/fd/x", "/proc/self/fd/-3", "/dev/fd/99999999999999999999"}, nil, ""},
		{"make 4.2", nil, []string{"MAKEFLAGS= -j4 --jobserver-auth=3,4 -- X=1"}, "3:MAKEFLAGS 4:MAKEFLAGS"},
		{"make before 4.2", nil, []string{"MAKEFLAGS= --jobserver-fds=5,6 -j"}, "5:MAKEFLAGS 6:MAKEFLAGS"},
		{"a jobserver that make closed", nil, []string{"MAKEFLAGS= --jobserver-auth=-2,-2"}, ""},
		{"a jobserver that is a fifo", nil, []string{"MAKEFLAGS= --jobserver-auth=fifo:/tmp/GMfifo1"}, ""},
		{"PMI", nil, []string{"PMI_FD=11", "PMI_RANK=0"}, "11:PMI_FD"},
		{"PMI, no number", nil, []string{"PMI_FD=x"}, ""},
	} {
		s := on(t, "debian12", "/usr/local/bin/demo", "/", append([]string{"/dev/fd/99"}, tt.args...)...).env(tt.env...)
		var got []string
		for _, f := range build(t, s).FDs {
			got = append(got, fmt.Sprintf("%d:%s", f.N, f.Reason.By))
			if f.Reason.Why == "" {
				t.Errorf("%s: descriptor %d without a reason", tt.name, f.N)
			}
		}
		if diff := cmp.Diff(tt.want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// A variable opens a fifo for make, and nothing else: what may be written is for grants to say.
func TestJobserverFifo(t *testing.T) {
	for _, tt := range []struct{ path, want string }{
		{"/tmp/GMfifo7", "rw /tmp/GMfifo7"},
		{"/tmp/work/in.txt", "tmpfs /tmp"},
		{"/home/ada/.ssh", "nothing"},
		{"/", "nothing"},
		{"tmp/GMfifo7", "tmpfs /tmp"},
		{"/tmp/none", "tmpfs /tmp"},
	} {
		s := on(t, "debian12", "/usr/local/bin/demo", "/", "demo").env("MAKEFLAGS= -j --jobserver-auth=fifo:" + tt.path)
		s.Host.(fstest.MapFS)["tmp/GMfifo7"] = &fstest.MapFile{Mode: fs.ModeNamedPipe | 0o600}
		if got := at(build(t, s), absolute(tt.path, "")); got != tt.want {
			t.Errorf("%s is shown by %s, want %s", tt.path, got, tt.want)
		}
	}
}

// refusedAs is err as the refusal that it must be.
func refusedAs(t *testing.T, err error) *refusal.Error {
	t.Helper()
	r, ok := err.(*refusal.Error)
	if !ok {
		t.Fatalf("%v is a %T", err, err)
	}
	return r
}

func hostOf(s start) *hostfs.View { return hostfs.New(s.Host) }
