package plan

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/selfcage/selfcage/binds"
)

func TestEnvironment(t *testing.T) {
	for _, tt := range []struct {
		name string
		env  []string
		want map[string]string // the value inside; "-" for none
	}{
		{"what is the cage's own", nil, map[string]string{"HOME": "/run/selfcage/home", "TMPDIR": "/tmp", "PWD": "/srv/data", "XDG_CACHE_HOME": "-", "TMP": "-"}},
		{"a TMPDIR that is too long for sockets", []string{"TMPDIR=/tmp/" + strings.Repeat("x", 90)}, map[string]string{"TMPDIR": "/tmp"}},
		{"its relatives, where they are set", []string{"TMP=/x", "TEMP=/y", "TEMPDIR=/z"}, map[string]string{"TMP": "/tmp", "TEMP": "/tmp", "TEMPDIR": "/tmp"}},
		{"XDG, where it is set", []string{"XDG_CACHE_HOME=/home/ada/.cache", "XDG_RUNTIME_DIR=/run/user/1000", "XDG_DATA_HOME=/home/ada/.local/share", "XDG_CONFIG_HOME=/c", "XDG_STATE_HOME=/s"},
			map[string]string{"XDG_CACHE_HOME": Home + "/.cache", "XDG_RUNTIME_DIR": Home + "/.run", "XDG_DATA_HOME": Home + "/.local/share", "XDG_CONFIG_HOME": Home + "/.config", "XDG_STATE_HOME": Home + "/.local/state"}},
		{"XDG, where it is empty", []string{"XDG_CACHE_HOME="}, map[string]string{"XDG_CACHE_HOME": ""}},
		{"a PATH", []string{"PATH=/usr/bin"}, map[string]string{"PATH": "/usr/bin"}},
		{"no PATH", []string{"PATH="}, map[string]string{"PATH": "/usr/local/bin:/usr/bin:/bin"}},
		{"secrets go, the rest stays", []string{"AWS_SESSION_TOKEN=x", "LD_LIBRARY_PATH=/opt/lib", "MAKEFLAGS=-j4", "EMPTY="}, map[string]string{"AWS_SESSION_TOKEN": "-", "LD_LIBRARY_PATH": "/opt/lib", "MAKEFLAGS": "-j4", "EMPTY": ""}},
		{"a socket that is not visible", []string{"SSH_AUTH_SOCK=/run/user/1000/agent"}, map[string]string{"SSH_AUTH_SOCK": "-"}},
		{"a library that is visible", []string{"LD_PRELOAD=/usr/lib/os-release"}, map[string]string{"LD_PRELOAD": "/usr/lib/os-release"}},
		{"a library that is not there", []string{"LD_PRELOAD=/home/ada/none.so"}, map[string]string{"LD_PRELOAD": "-"}},
		{"one twice: the first counts", []string{"A=1", "A=2"}, map[string]string{"A": "1"}},
		{"bytes are bytes", []string{"A=\xff\n"}, map[string]string{"A": "\xff\n"}},
	} {
		s := on(t, "debian12", "/usr/local/bin/demo", "/srv/data", "demo").env(tt.env...)
		p := build(t, s)
		sound(t, s, p)
		got := map[string]string{}
		for name := range tt.want {
			got[name] = "-"
		}
		for _, kv := range p.Environ() {
			if k, v, _ := strings.Cut(kv, "="); got[k] == "-" {
				got[k] = v
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
		for _, v := range p.Env {
			if v.Reason.By == "" || v.Reason.Why == "" {
				t.Errorf("%s: %s has no reason", tt.name, v.Name)
			}
		}
		// Neither explain nor the published plan holds a value.
		s.Env = append(s.Env, "HARMLESS=v4lue")
		p = build(t, s)
		if text := p.Explain() + string(p.JSON()); strings.Contains(text, "v4lue") {
			t.Errorf("%s: a value is printed", tt.name)
		}
	}
}

func TestRewrite(t *testing.T) {
	s := on(t, "debian12", "/usr/local/bin/demo", "/srv/data", "demo").env("DEMO_SANDBOX_READABLE=x:/y")
	s.Rewrite = []Var{{"DEMO_SANDBOX_READABLE", "/srv/data/x:/y", binds.Reason{By: "base", Why: "its relative paths are made absolute"}}}
	if got := value(build(t, s), "DEMO_SANDBOX_READABLE"); got != "/srv/data/x:/y" {
		t.Errorf("got %q", got)
	}
}

// A secret that is asked for as if it were none is refused; the refusal is env's own.
func TestSecretsRefused(t *testing.T) {
	s := on(t, "debian12", "/usr/local/bin/demo", "/srv/data", "demo").env("GITHUB_TOKEN=ghp_x")
	s.Allow = []string{"GITHUB_TOKEN"}
	if r := refused(t, s); !strings.Contains(r.Hint, "--secret GITHUB_TOKEN") {
		t.Errorf("%v, hint %q", r, r.Hint)
	}
	s.Allow, s.Secret = nil, []string{"GITHUB_TOKEN"}
	if got := value(build(t, s), "GITHUB_TOKEN"); got != "ghp_x" {
		t.Errorf("--secret passes %q", got)
	}
}

// passwd and group name the caller, root and nobody, and the caller always has a name (case 11).
func TestAccounts(t *testing.T) {
	const (
		root     = "root:x:0:0:root:/root:/bin/sh\n"
		nobody   = "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
		hostFile = "root:x:0:0:root:/root:/bin/bash\nada:x:1000:1000:Ada:/home/ada:/bin/bash\neve:x:1001:1001::/home/eve:/bin/zsh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
		groups   = "root:x:0:\nada:x:1000:eve\nnogroup:x:65534:\n"
	)
	for _, tt := range []struct {
		name           string
		passwd, groups string
		uid, gid       int
		env            []string
		wantPasswd     string
		wantGroup      string
		made           bool // the entry is made up
	}{
		{"an ordinary one", hostFile, groups, 1000, 1000, nil,
			root + "ada:x:1000:1000:Ada:/run/selfcage/home:/bin/bash\n" + nobody, "root:x:0:\nada:x:1000:\nnogroup:x:65534:\n", false},
		{"a shell that is not there", hostFile, groups, 1001, 1000, nil,
			root + "eve:x:1001:1000::/run/selfcage/home:/bin/sh\n" + nobody, "root:x:0:\nada:x:1000:\nnogroup:x:65534:\n", false},
		{"root", hostFile, groups, 0, 0, nil, "root:x:0:0:root:/run/selfcage/home:/bin/bash\n" + nobody, "root:x:0:\nnogroup:x:65534:\n", false},
		{"nobody", hostFile, groups, 65534, 65534, nil, root + "nobody:x:65534:65534:nobody:/run/selfcage/home:/bin/sh\n", "root:x:0:\nnogroup:x:65534:\n", false},
		{"no entry, USER", hostFile, groups, 5000, 5000, []string{"USER=kim"}, root + "kim:x:5000:5000::/run/selfcage/home:/bin/sh\n" + nobody, "root:x:0:\nkim:x:5000:\nnogroup:x:65534:\n", true},
		{"no entry, LOGNAME", hostFile, groups, 5000, 1000, []string{"LOGNAME=kim"}, root + "kim:x:5000:1000::/run/selfcage/home:/bin/sh\n" + nobody, "root:x:0:\nada:x:1000:\nnogroup:x:65534:\n", true},
		{"no entry, no name", hostFile, groups, 5000, 5000, nil, root + "user:x:5000:5000::/run/selfcage/home:/bin/sh\n" + nobody, "root:x:0:\nuser:x:5000:\nnogroup:x:65534:\n", true},
		{"no files at all", "", "", 5000, 5000, []string{"USER=kim"}, root + "kim:x:5000:5000::/run/selfcage/home:/bin/sh\n" + nobody, "root:x:0:\nkim:x:5000:\nnogroup:x:65534:\n", true},
		{"a domain's name", "", "", 5000, 5000, []string{`USER=CORP\kim@ex.org`}, root + `CORP\kim@ex.org:x:5000:5000::/run/selfcage/home:/bin/sh` + "\n" + nobody, "root:x:0:\n" + `CORP\kim@ex.org:x:5000:` + "\nnogroup:x:65534:\n", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := on(t, "debian12", "/usr/local/bin/demo", "/srv/data", "demo")
			s.Env = append([]string{"HOME=/home/ada"}, tt.env...)
			s.UID, s.GID = tt.uid, tt.gid
			host := s.Host.(fstest.MapFS)
			delete(host, "etc/passwd")
			delete(host, "etc/group")
			if tt.passwd != "" {
				host["etc/passwd"] = &fstest.MapFile{Data: []byte(tt.passwd)}
				host["etc/group"] = &fstest.MapFile{Data: []byte(tt.groups)}
			}
			p := build(t, s)
			for path, want := range map[string]string{"/etc/passwd": tt.wantPasswd, "/etc/group": tt.wantGroup} {
				m, _ := binds.Cover(p.Mounts, path)
				if diff := cmp.Diff(want, string(m.Data)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", path, diff)
				}
				if path == "/etc/passwd" && strings.Contains(m.Reason.Why, "one is made from USER") != tt.made {
					t.Errorf("reason %q", m.Reason.Why)
				}
			}
		})
	}
	// What USER says must not forge another line, another account or an option of NIS.
	for _, user := range []string{"", "a:x:0:0", "a\nroot:x:0:0", "a b", "a/b", "root", "nobody", "+kim", "-kim", "#5000", "a\tb", "a\x00b"} {
		s := on(t, "debian12", "/usr/local/bin/demo", "/srv/data", "demo").env("USER=" + user)
		s.UID, s.GID = 5000, 5000
		m, _ := binds.Cover(build(t, s).Mounts, "/etc/passwd")
		if !strings.Contains(string(m.Data), "\nuser:x:5000:5000:") {
			t.Errorf("USER=%q gives\n%s", user, m.Data)
		}
	}
}

// A program that is told of a file which it will not see, or writes a result where it will not last, is warned about.
func TestNotes(t *testing.T) {
	const (
		grant  = "; DEMO_SANDBOX_READABLE or DEMO_SANDBOX_WRITABLE would grant it"
		hidden = "names a file that is not visible inside" + grant
		lost   = "lies in a place that ends with the cage; DEMO_SANDBOX_WRITABLE of its directory would keep it"
	)
	for _, tt := range []struct{ arg, want string }{
		{"/tmp/work/in.txt", "names a file that is not visible inside, and what is written there ends with the cage" + grant},
		{"/tmp/out.json", lost},
		{"--out=/tmp/out.json", lost},
		{"-o=/tmp/work/none", lost},
		{"/var/tmp/out", lost},
		{"/dev/shm/out", lost},
		{"/home/ada/notes.txt", hidden},
		{"--in=/home/ada/notes.txt", hidden},
		{"../../notes.txt", hidden},
		{"./main.go", ""},
		{"main.go", ""},
		{"/home/ada/src/linked/main.go", hidden}, // by a name that is not there inside
		{"/usr/bin/env", ""},
		{"/bin/sh", ""},
		{"/etc/hosts", ""},
		{"/etc/shadow", "names a file that is not visible inside; it cannot be granted: /etc/shadow holds credentials, which are never granted"},
		{"/proc/sys/kernel", ""},
		{"/proc/4711", "names a directory that is not visible inside"},
		{"/dev/null", ""},
		{"/dev/fuse", "names a file that is not visible inside; DEMO_SANDBOX_DEVICE would grant it"},
		{"/", ""},
		{"/tmp", ""},
		{"/srv/none", ""},
		{"-v", ""},
		{"--", ""},
		{"", ""},
		{"a/b\nc", ""},
		{"https://example.org/x", ""},
		{strings.Repeat("/x", 3000), ""},
	} {
		s := on(t, "debian12", "/usr/local/bin/demo", "/home/ada/src/demo", "demo", tt.arg).env("PATH=/usr/bin")
		want := []string(nil)
		if tt.want != "" {
			want = []string{"argument 1 " + Quote(tt.arg) + " " + tt.want}
		}
		if diff := cmp.Diff(want, build(t, s).Notes); diff != "" {
			t.Errorf("%.60q (-want +got):\n%s", tt.arg, diff)
		}
	}
	// The cage's own options are no arguments of the program.
	s := on(t, "debian12", "/usr/local/bin/demo", "/", "demo", "--report", "/tmp/r", "--", "/tmp/x").env("PATH=/usr/bin")
	s.Operands = 4
	if got := build(t, s).Notes; len(got) != 1 || !strings.HasPrefix(got[0], "argument 4 /tmp/x ") {
		t.Errorf("got %q", got)
	}
}

// A list of files that a shell made does not fill the screen, nor the start's time.
func TestNotesAreFew(t *testing.T) {
	args := []string{"demo"}
	for i := range 5000 {
		args = append(args, fmt.Sprintf("/tmp/%d", i))
	}
	s := on(t, "debian12", "/usr/local/bin/demo", "/", args...).env("PATH=/usr/bin")
	notes := build(t, s).Notes
	if len(notes) != maxNotes+1 || notes[maxNotes] != "and 1992 more arguments like these" {
		t.Errorf("%d notes, the last is %q", len(notes), notes[len(notes)-1])
	}
}

// What PATH names by a link into something visible is found inside, as on NixOS; what it names elsewhere has a note.
func TestSearchPath(t *testing.T) {
	s := on(t, "nixos", "/nix/store/zz0d-demo-1.2/bin/demo", "/home/eelco/src/flake", "demo")
	p := build(t, s)
	for path, want := range map[string]string{
		"/run/current-system": "link /run/current-system -> /nix/store/c1ty-nixos-system-thuis-24.05",
		"/run/wrappers/bin":   "link /run/wrappers/bin -> /run/wrappers/wrappers.Xy3kQ",
		"/run/opengl-driver":  "dir /run",
		"/nix/var":            "nothing",
	} {
		if got := at(p, path); got != want {
			t.Errorf("%s is shown by %s, want %s", path, got, want)
		}
	}
	b := builder{Facts: s.Facts, req: s.Request, plan: *p}
	b.host = hostOf(s)
	for _, dir := range []string{"/run/current-system/sw/bin/git", "/home/eelco/.nix-profile/bin/demo", "/etc/profiles/per-user/eelco/bin", "/bin/sh", "/usr/bin/env"} {
		if !b.visible(dir) {
			t.Errorf("%s is not visible", dir)
		}
	}
	if got := strings.Join(p.Notes, "\n"); strings.Contains(got, "/run/") {
		t.Errorf("notes %q", got)
	}
	// A link in PATH opens nothing.
	s = on(t, "debian12", "/usr/local/bin/demo", "/", "demo").env("PATH=/home/ada/keys:/usr/bin")
	link(s, "home/ada/keys", "/home/ada/.ssh")
	p = build(t, s)
	if got := at(p, "/home/ada/.ssh") + ", " + at(p, "/home/ada/keys"); got != "nothing, nothing" {
		t.Errorf("PATH opened %s", got)
	}
}

func TestNamespaces(t *testing.T) {
	s := on(t, "debian12", "/usr/local/bin/demo", "/", "demo")
	for _, tt := range []struct {
		noNet, cgroup bool
		want          []string
		without       []string
	}{
		{false, true, nil, []string{"--unshare-net", "--unshare-cgroup"}},
		{true, true, []string{"--unshare-net"}, []string{"--unshare-cgroup"}},
		{false, false, []string{"--unshare-cgroup"}, []string{"--unshare-net"}},
	} {
		s.NoNet = tt.noNet
		if !tt.cgroup {
			delete(s.Host.(fstest.MapFS), "sys/fs/cgroup")
		}
		p := build(t, s)
		argv := " " + strings.Join(p.Argv(func(int) int { return 9 }), " ") + " "
		for _, w := range append(tt.want, "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--die-with-parent", "--cap-drop ALL", "--clearenv") {
			if !strings.Contains(argv, " "+w+" ") {
				t.Errorf("%+v: no %s", tt, w)
			}
		}
		for _, w := range tt.without {
			if strings.Contains(argv, " "+w+" ") {
				t.Errorf("%+v: %s", tt, w)
			}
		}
		if got := at(p, "/etc/resolv.conf"); (got == "dir /etc") != tt.noNet {
			t.Errorf("%+v: resolv.conf is shown by %s", tt, got)
		}
	}
}

func TestQuote(t *testing.T) {
	for s, want := range map[string]string{
		"/a": "/a", "": `""`, "a b": `"a b"`, "a'b": `"a'b"`, "a\"b": `"a\"b"`, "a\nb": `"a\nb"`, "\xff": `"\xff"`, "ä": "ä", "a\\b": `"a\\b"`, "\x1b[31m": `"\x1b[31m"`,
	} {
		if got := Quote(s); got != want {
			t.Errorf("Quote(%q) = %s, want %s", s, got, want)
		}
	}
}
