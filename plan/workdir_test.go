package plan

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/selfcage/selfcage/binds"
)

// What the working directory may be, rule by rule (design.md, section 4, point 6).
func TestWorkDir(t *testing.T) {
	for _, tt := range []struct {
		name, dir string
		write     []string
		read      []string
		show      string // what shows it
		note      string // part of a note; empty: none
	}{
		{"the cage's own root", "/", nil, nil, "nothing", ""},
		{"of the system", "/usr/share", nil, nil, "ro /usr", ""},
		{"in a checkout", "/home/ada/src/demo", nil, nil, "ro /home/ada/src/demo", ""},
		{"deep in a checkout", "/home/ada/src/demo/cmd", nil, nil, "ro /home/ada/src/demo", ""},
		{"by itself", "/srv/data", nil, nil, "ro /srv/data", ""},
		{"granted", "/srv/data", []string{"/srv/data"}, nil, "rw /srv/data", ""},
		{"granted as .", "/srv/data", []string{"."}, nil, "rw /srv/data", ""},
		{"below a grant", "/home/ada/src/demo/cmd", []string{"/home/ada/src"}, nil, "rw /home/ada/src", ""},
		{"in a checkout, granted itself", "/home/ada/src/demo/out", []string{"."}, nil, "rw /home/ada/src/demo/out", ""},
		{"below /tmp", "/tmp/work", nil, nil, "ro /tmp/work", ""},
		{"below /tmp, granted", "/tmp/work", []string{"."}, nil, "rw /tmp/work", ""},
		{"below /var/tmp", "/var/tmp/big", nil, nil, "ro /var/tmp/big", ""},
		{"below /dev/shm", "/dev/shm/job", nil, nil, "ro /dev/shm/job", ""},
		{"below /run", "/run/user/1000", nil, nil, "ro /run/user/1000", ""},
		{"/tmp, granted", "/tmp", []string{"/tmp"}, nil, "rw /tmp", ""},
		{"/var/tmp, granted", "/var/tmp", []string{"."}, nil, "rw /var/tmp", ""},
		{"/dev/shm, granted", "/dev/shm", []string{"."}, nil, "rw /dev/shm", ""},
		{"the home", "/home/ada", nil, nil, "dir /home/ada", "it is the home"},
		{"above the home", "/home", nil, nil, "dir /home", "the home lies below it"},
		{"a broad root", "/srv", nil, nil, "dir /srv", "holds more than a run can need"},
		{"a broad root, granted", "/srv", nil, []string{"/srv"}, "ro /srv", ""},
		{"/etc, which shows the allowlist", "/etc", nil, nil, "dir /etc", "holds more than a run can need"},
		{"/var", "/var", nil, nil, "dir /var", "holds more than a run can need"},
		{"a credential root", "/home/ada/.ssh", nil, nil, "dir /home/ada/.ssh", "/home/ada/.ssh holds credentials"},
		{"what holds one", "/home/ada/.config", nil, nil, "dir /home/ada/.config", "/home/ada/.config/gh"},
		{"a name that begins like one", "/home/ada/.sshfoo", nil, nil, "ro /home/ada/.sshfoo", ""},
		{"/etc/ssl, which holds private keys", "/etc/ssl", nil, nil, "dir /etc/ssl", "/etc/ssl/private"},
		{"somebody else's", "/home/eve", nil, nil, "ro /home/eve", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := on(t, "debian12", "/usr/local/bin/demo", tt.dir, "demo").write(tt.write...).read(tt.read...).env("PATH=/usr/bin")
			p := build(t, s)
			sound(t, s, p)
			if got := at(p, tt.dir); got != tt.show {
				t.Errorf("shown by %s, want %s", got, tt.show)
			}
			if p.Dir != tt.dir {
				t.Errorf("Dir = %q, want %q", p.Dir, tt.dir)
			}
			notes := strings.Join(p.Notes, "\n")
			if (notes != "") != (tt.note != "") || !strings.Contains(notes, tt.note) {
				t.Errorf("notes %q, want %q", notes, tt.note)
			}
		})
	}
}

func TestWorkDirRefused(t *testing.T) {
	for _, dir := range []string{"/tmp", "/var/tmp", "/dev/shm", "/run", "/proc", "/proc/4711", "/proc/sys/kernel", "/dev", "/dev/pts"} {
		r := refused(t, on(t, "debian12", "/usr/local/bin/demo", dir, "demo"))
		if !strings.Contains(r.Error(), dir) || !strings.Contains(r.Hint, "change to") {
			t.Errorf("%s: %v, hint %q", dir, r, r.Hint)
		}
	}
	s := on(t, "debian12", "/usr/local/bin/demo", "", "demo")
	if r := refused(t, s); !strings.Contains(r.Cause, "deleted") {
		t.Errorf("deleted: %v", r)
	}
	// A relative grant means nothing then, and the message names it.
	if r := refused(t, s.write("out")); !strings.Contains(r.Object, "--write out") {
		t.Errorf("deleted, with a relative grant: %v", r)
	}
}

// The caller's own spelling is kept where it leads to the same directory, inside too.
func TestWorkDirSpelling(t *testing.T) {
	for _, tt := range []struct{ name, host, dir, pwd, want string }{
		{"by a link of the host", "cluster", "/vol/home/kim/sim", "/home/kim/sim", "/home/kim/sim"},
		{"by two links", "cluster", "/vol/scratch1/kim/run1", "/home/kim/data/run1", "/home/kim/data/run1"},
		{"by /var/run", "debian12", "/run/user/1000", "/var/run/user/1000", "/var/run/user/1000"},
		{"by a link in the home", "debian12", "/home/ada/src/demo", "/home/ada/src/linked", "/home/ada/src/linked"},
		{"another directory", "debian12", "/srv/data", "/srv/www", "/srv/data"},
		{"not there", "debian12", "/srv/data", "/srv/gone", "/srv/data"},
		{"relative", "debian12", "/srv/data", "data", "/srv/data"},
		{"empty", "debian12", "/srv/data", "", "/srv/data"},
		{"a slash at the end", "debian12", "/srv/data", "/srv/data/", "/srv/data"},
		{"up from what is not visible", "debian12", "/srv/data", "/srv/www/../data", "/srv/data"},
		// Inside, these are another process's, or another place.
		{"through /proc", "debian12", "/srv/data", "/proc/self/cwd", "/srv/data"},
		{"by a /tmp that is a link", "cluster", "/local/tmp/job.77", "/tmp/job.77", "/local/tmp/job.77"},
	} {
		exe := map[string]string{"cluster": "/usr/bin/bash", "debian12": "/usr/local/bin/demo"}[tt.host]
		s := on(t, tt.host, exe, tt.dir, "demo").env("PWD=" + tt.pwd)
		if tt.host == "debian12" {
			link(s, "proc/4711/cwd", "/srv/data")
		}
		p := build(t, s)
		sound(t, s, p)
		if p.Dir != tt.want {
			t.Errorf("%s: Dir = %q, want %q", tt.name, p.Dir, tt.want)
		}
		if tt.host == "debian12" {
			if got := (inside{p}).walk(p.Dir); got != tt.dir {
				t.Errorf("%s: inside, %s is %q, want %q", tt.name, p.Dir, got, tt.dir)
			}
		}
	}
}

// git finds its repository, whatever form it has, and no pointer file opens what nobody granted.
func TestWorkDirCheckout(t *testing.T) {
	for _, tt := range []struct {
		name, dir string
		write     []string
		want      map[string]string
	}{
		{"worktree", "/data/w/wt", nil, map[string]string{
			"/data/w/wt": "ro /data/w/wt", "/data/w/main/.git/worktrees/wt": "ro /data/w/main/.git", "/w": "link /w -> /data/w", "/data/w/main": "nothing"}},
		{"worktree, writable", "/data/w/wt", []string{"."}, map[string]string{
			"/data/w/wt/.git": "ro /data/w/wt/.git", "/data/w/wt/cmd": "rw /data/w/wt", "/data/w/main/.git": "ro /data/w/main/.git", "/w": "link /w -> /data/w"}},
		{"worktree and its repository, writable", "/data/w/wt", []string{".", "/data/w/main"}, map[string]string{
			"/data/w/wt": "rw /data/w/wt", "/data/w/main/.git/worktrees/wt": "rw /data/w/main/.git/worktrees/wt", "/data/w/main/x": "rw /data/w/main"}},
		{"submodule", "/data/w/main/lib/src", nil, map[string]string{
			"/data/w/main/lib": "ro /data/w/main/lib", "/data/w/main/.git/modules/lib": "ro /data/w/main/.git/modules/lib", "/data/w/main/.git/HEAD": "nothing"}},
		{"a link", "/data/w/linkedgit", nil, map[string]string{
			"/data/w/linkedgit/.git": "ro /data/w/linkedgit", "/data/w/store/linked.git": "nothing"}},
		{"a pointer to a credential root", "/data/w/evil/ssh", nil, map[string]string{
			"/data/w/evil/ssh": "ro /data/w/evil/ssh", "/home/u/.ssh": "nothing"}},
		{"a pointer to the root", "/data/w/evil/root", nil, map[string]string{"/data/w/evil/root": "ro /data/w/evil/root", "/data": "nothing"}},
		{"a pointer to the home", "/data/w/evil/home", nil, map[string]string{"/home/u": "nothing"}},
		{"the home is a checkout", "/home/u/proj/sub", nil, map[string]string{"/home/u/proj/sub": "ro /home/u/proj/sub", "/home/u/proj": "nothing"}},
		{"/tmp is a checkout", "/tmp/loose", nil, map[string]string{"/tmp/loose": "ro /tmp/loose", "/tmp": "tmpfs /tmp", "/tmp/.git": "tmpfs /tmp"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := on(t, "worktree", "/usr/bin/demo", tt.dir, "demo").write(tt.write...)
			p := build(t, s)
			sound(t, s, p)
			for path, want := range tt.want {
				if got := at(p, path); got != want {
					t.Errorf("%s is shown by %s, want %s", path, got, want)
				}
			}
		})
	}
}

// A host whose /var is a link has a directory there inside, and grants below it still work by both names.
func TestPrivatePlaceIsALink(t *testing.T) {
	s := on(t, "debian12", "/usr/local/bin/demo", "/srv/data", "demo").write("/var/lib")
	host := s.Host.(fstest.MapFS)
	for name, f := range host {
		if rest, ok := strings.CutPrefix(name, "var/"); ok {
			delete(host, name)
			host["srv/var/"+rest] = f
		}
	}
	link(s, "var", "srv/var")
	p := build(t, s)
	sound(t, s, p)
	for path, want := range map[string]string{"/var/lib": "rw /var/lib", "/srv/var/lib": "rw /srv/var/lib", "/var": "dir /var"} {
		if got := at(p, path); got != want {
			t.Errorf("%s is shown by %s, want %s", path, got, want)
		}
	}
	if m, _ := binds.Cover(p.Mounts, "/var/lib"); m.Source != "/srv/var/lib" {
		t.Errorf("/var/lib comes from %s", m.Source)
	}
	// The place itself.
	c := on(t, "cluster", "/usr/bin/bash", "/vol/home/kim/sim", "bash").write("/tmp")
	p = build(t, c)
	sound(t, c, p)
	if m, _ := binds.Cover(p.Mounts, "/tmp/x"); m.Kind != binds.ReadWrite || m.Source != "/local/tmp" {
		t.Errorf("--write /tmp, which is a link: %s from %s", at(p, "/tmp/x"), m.Source)
	}
}
