package plan

import (
	"bytes"
	"io/fs"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/selfcage/selfcage/binds"
)

// link adds a link to the host of a start.
func link(s start, name, text string) {
	s.Host.(fstest.MapFS)[name] = &fstest.MapFile{Data: []byte(text), Mode: fs.ModeSymlink | 0o777}
}

func TestGrants(t *testing.T) {
	at := func(p *Plan, path string) string { return at(p, path) }
	for _, tt := range []struct {
		name                string
		read, write, device []string
		want                map[string]string
	}{
		{"a directory", []string{"/srv/data"}, nil, nil, map[string]string{"/srv/data": "ro /srv/data"}},
		{"a file", nil, []string{"/home/ada/notes.txt"}, nil, map[string]string{"/home/ada/notes.txt": "rw /home/ada/notes.txt", "/home/ada": "nothing"}},
		{"a name with a colon", []string{"/home/ada/colon:name"}, nil, nil, map[string]string{"/home/ada/colon:name": "ro /home/ada/colon:name"}},
		{"relative", []string{"../../Downloads"}, nil, nil, map[string]string{"/home/ada/Downloads": "ro /home/ada/Downloads"}},
		{"a device", nil, nil, []string{"/dev/fuse"}, map[string]string{"/dev/fuse": "device /dev/fuse", "/dev/kvm": "dev /dev"}},
		{"a device that is there anyway", nil, nil, []string{"/dev/zero"}, map[string]string{"/dev/zero": "device /dev/zero"}},
		{"shared temporary files", nil, []string{"/tmp"}, nil, map[string]string{"/tmp": "rw /tmp", "/tmp/work": "rw /tmp", "/var/tmp": "link /var/tmp -> /tmp"}},
		{"a directory in /tmp", nil, []string{"/tmp/work"}, nil, map[string]string{"/tmp/work": "rw /tmp/work", "/tmp/x": "tmpfs /tmp"}},
		{"the other temporary files", nil, []string{"/var/tmp"}, nil, map[string]string{"/var/tmp/big": "rw /var/tmp", "/tmp": "tmpfs /tmp"}},
		{"a directory in them", nil, []string{"/var/tmp/big"}, nil, map[string]string{"/var/tmp/big": "rw /var/tmp/big", "/var/tmp": "tmpfs /var/tmp"}},
		{"shared memory", nil, []string{"/dev/shm"}, nil, map[string]string{"/dev/shm/job": "rw /dev/shm"}},
		{"a file of the system that is copied otherwise", []string{"/etc/hosts"}, nil, nil, map[string]string{"/etc/hosts": "ro /etc/hosts"}},
		{"passwd, which is made up otherwise", []string{"/etc/passwd"}, nil, nil, map[string]string{"/etc/passwd": "ro /etc/passwd"}},
		{"a directory with such a file", []string{"/etc/default"}, nil, nil, map[string]string{"/etc/default/locale": "ro /etc/default"}},
		{"in a directory of the system", nil, []string{"/usr/local/bin"}, nil, map[string]string{"/usr/local/bin/demo": "rw /usr/local/bin", "/usr/bin": "ro /usr"}},
		{"through a link of alternatives", []string{"/usr/bin/awk"}, nil, nil, map[string]string{"/usr/bin/mawk": "ro /usr"}},
		{"the parent is a link", []string{"/bin/bash"}, nil, nil, map[string]string{"/usr/bin/bash": "ro /usr", "/bin": "link /bin -> usr/bin"}},
		{"the parent is a link outside of the system", nil, []string{"/home/ada/src/linked/out"}, nil, map[string]string{
			"/home/ada/src/demo/out": "rw /home/ada/src/demo/out", "/home/ada/src/linked": "link /home/ada/src/linked -> demo"}},
		{"in /run", []string{"/var/run/user/1000"}, nil, nil, map[string]string{"/run/user/1000": "ro /run/user/1000", "/var/run": "link /var/run -> /run"}},
		{"below the working directory's checkout", nil, []string{"out"}, nil, map[string]string{
			"/home/ada/src/demo/out": "rw /home/ada/src/demo/out", "/home/ada/src/demo": "ro /home/ada/src/demo"}},
		{"a directory that only looks like credentials", []string{"/home/ada/.sshfoo"}, nil, nil, map[string]string{"/home/ada/.sshfoo": "ro /home/ada/.sshfoo"}},
		{"/var, but for what is private", []string{"/var/lib"}, nil, nil, map[string]string{"/var/lib": "ro /var/lib"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := on(t, "debian12", "/usr/local/bin/demo", "/home/ada/src/demo", "demo").read(tt.read...).write(tt.write...).device(tt.device...)
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

func TestGrantsRefused(t *testing.T) {
	read := func(s start, p string) start { return s.read(p) }
	write := func(s start, p string) start { return s.write(p) }
	device := func(s start, p string) start { return s.device(p) }
	byVar := func(s start, p string) start { return s.grant(binds.ReadOnly, "DEMO_SANDBOX_READABLE", []string{p}) }
	for _, tt := range []struct {
		name  string
		grant func(start, string) start
		path  string
		cause string
		hint  string
	}{
		{"missing", read, "/srv/none", "/srv/none does not exist", "create it first, or leave it out"},
		{"missing, to write", write, "/srv/none/x", "/srv/none does not exist", "a grant never creates what it names"},
		{"missing, relative", read, "none", "/home/ada/src/demo/none does not exist", "create it"},
		{"a link that leads nowhere", read, "/home/ada/dangling", "/home/ada/nowhere does not exist", "create it"},
		{"half of a name with a colon", byVar, "/home/ada/colon", "does not exist", "a path that holds ':'"},
		{"not so for a flag", read, "/home/ada/colon", "does not exist", ""},
		{"a loop", read, "/home/ada/loop", "too many levels of symbolic links", ""},
		{"below a file", read, "/etc/hosts/x", "/etc/hosts: not a directory", ""},
		{"a file with a slash", read, "/etc/hosts/", "/etc/hosts: not a directory", ""},
		{"a directory as a device", device, "/dev/shm", "not a character device", "name the device's own node"},
		{"a file as a device", device, "/etc/hosts", "not a character device", "name the device's own node"},
		{"a missing device", device, "/dev/kfd", "/dev/kfd does not exist", ""},
		{"a device as a file", read, "/dev/fuse", "it is a device", "use --device"},
		{"a device as a file, to write", write, "/dev/null", "it is a device", "use --device"},
		{"/proc", read, "/proc", "the cage has its own", "below it by its own name"},
		{"in /proc", write, "/proc/sys/kernel", "the cage has its own", ""},
		{"/dev", read, "/dev", "the cage has its own", "a device by --device"},
		{"/run", read, "/run", "the cage has its own", ""},
		{"/run by its other name", read, "/var/run", "the cage has its own", ""},
		{"the home", read, "/home/ada", "it is the home", "narrowest"},
		{"the home, relative", write, "../..", "it is the home", "narrowest"},
		{"above the home", read, "/home", "lies below it", "narrowest"},
		{"the root", read, "/", "lies below it", "narrowest"},
		{"/etc", read, "/etc", "broad root", "narrowest"},
		{"a credential root", read, "/home/ada/.ssh", "/home/ada/.ssh holds credentials", "narrowest"},
		{"in a credential root", read, "/home/ada/.ssh/id_ed25519", "/home/ada/.ssh holds credentials", ""},
		{"what holds one", read, "/home/ada/.config", "/home/ada/.config/gh", ""},
		{"a credential root by a link", read, "/home/ada/src/keys", "/home/ada/.ssh holds credentials", ""},
		{"where a credential root that is a link leads", read, "/vol/gcloud", "/home/ada/.gcloud leads to it", ""},
		{"what holds that", read, "/vol", "it holds credentials (/home/ada/.gcloud)", ""},
		{"a host key", read, "/etc/ssh/ssh_host_ed25519_key", "/etc/ssh holds credentials", ""},
		{"private keys", read, "/etc/ssl", "/etc/ssl/private", ""},
		{"the docker socket", write, "/var/run/docker.sock", "docker.sock holds credentials", ""},
		{"/var, which leads to it", read, "/var", "docker.sock", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := tt.grant(on(t, "debian12", "/usr/local/bin/demo", "/home/ada/src/demo", "demo"), tt.path)
			link(s, "home/ada/dangling", "nowhere")
			link(s, "home/ada/loop", "loop")
			link(s, "home/ada/src/keys", "../.ssh")
			link(s, "home/ada/.gcloud", "/vol/gcloud")
			s.Host.(fstest.MapFS)["vol/gcloud/token"] = &fstest.MapFile{}
			p, err := Build(s.Facts, s.Request)
			if err == nil {
				t.Fatalf("not refused:\n%s", p.Explain())
			}
			r := refusedAs(t, err)
			if !strings.Contains(r.Cause, tt.cause) || !strings.Contains(r.Hint, tt.hint) {
				t.Errorf("cause %q, hint %q\nwant %q, %q", r.Cause, r.Hint, tt.cause, tt.hint)
			}
			by := s.Grants[0].By
			if !strings.Contains(r.What, by) || !strings.Contains(r.Object, Quote(tt.path)) {
				t.Errorf("%v does not name %s %s", r, by, tt.path)
			}
			if strings.Contains(r.Hint, "':'") != (by[0] != '-' && tt.cause == "does not exist") {
				t.Errorf("hint about colons: %q for %s", r.Hint, by)
			}
		})
	}
}

// The home by a link, on a host where that is how it is spelled.
func TestGrantsHomeByLink(t *testing.T) {
	for _, tt := range []struct{ path, cause string }{
		{"/home/kim", "it is the home"},
		{"/vol/home/kim", "it is the home"},
		{"/vol/home", "lies below it"},
		{"/vol", "lies below it"},
		{"/home/kim/.ssh", "/home/kim/.ssh holds"},
		{"/vol/home/kim/.ssh", "/home/kim/.ssh"},
		{"/vol/keys/kim", "leads to it"},
		{"/vol/keys", "holds credentials"},
	} {
		s := on(t, "cluster", "/usr/bin/bash", "/vol/home/kim/sim", "bash").read(tt.path)
		if r := refused(t, s); !strings.Contains(r.Cause, tt.cause) {
			t.Errorf("%s: %v, want %q", tt.path, r, tt.cause)
		}
	}
	s := on(t, "cluster", "/usr/bin/bash", "/vol/home/kim/sim", "bash").read("/home/kim/data/run1")
	sound(t, s, build(t, s))
}

// What a nested request is compared with says the same as the plan.
func TestParseGrants(t *testing.T) {
	for _, s := range goldens(t) {
		p := build(t, s)
		g, ok := ParseGrants(p.grants())
		if !ok || g.ShareNet != p.Namespaces.ShareNet || len(g.Mounts) != len(p.Mounts) || g.Mode != s.Mode || g.Clean != s.Clean ||
			g.Tmp != s.TmpSize || !cmp.Equal(g.Policies, s.Policies, cmpopts.EquateEmpty()) {
			t.Fatalf("%s: %v, %+v", s.name, ok, g)
		}
		for i, m := range p.Mounts {
			if g.Mounts[i].Kind != m.Kind || g.Mounts[i].Target != m.Target {
				t.Errorf("%s: mount %d is %v, want %s %s", s.name, i, g.Mounts[i], m.Kind, m.Target)
			}
		}
		// One that is cut off anywhere is none: what is missing might be what confines.
		whole := p.grants()
		for n := range whole {
			if g, ok := ParseGrants(whole[:n]); ok {
				t.Fatalf("%s: the first %d of %d bytes are read as %+v", s.name, n, len(whole), g)
			}
		}
	}
	p := Plan{Mode: "enforced", Clean: true, Policies: []string{"/p\n\xff q"}, Mounts: []binds.Mount{
		{Kind: binds.Tmpfs, Target: Tmp, Size: 1 << 40}, {Kind: binds.ReadOnly, Target: "/a b\n\xff ro"}}}
	want := Grants{Mode: "enforced", Clean: true, Tmp: 1 << 40, Policies: p.Policies, Mounts: []binds.Mount{
		{Kind: binds.Tmpfs, Target: Tmp}, {Kind: binds.ReadOnly, Target: "/a b\n\xff ro"}}}
	if g, ok := ParseGrants(p.grants()); !ok || !cmp.Equal(want, g) {
		t.Errorf("odd names: %v, %s", ok, cmp.Diff(want, g))
	}
	const head = "network own\x00environment clean\x00mode x\x00tmp 0\x00"
	if _, ok := ParseGrants([]byte(head + "end\x00")); !ok {
		t.Errorf("ParseGrants(%q) is refused", head)
	}
	for _, bad := range []string{"", "\x00", "end\x00", "\x00end\x00", "network own\x00end\x00", "{}", head, head + "end", head + "end\x00x", head + "\x00end\x00",
		strings.Replace(head, "own", "none", 1) + "end\x00", strings.Replace(head, "network", "net", 1) + "end\x00",
		strings.Replace(head, "clean", "dirty", 1) + "end\x00", strings.Replace(head, "mode x", "mode", 1) + "end\x00",
		strings.Replace(head, "tmp 0", "tmp 00", 1) + "end\x00", strings.Replace(head, "tmp 0", "tmp -1", 1) + "end\x00", strings.Replace(head, "tmp 0", "tmp", 1) + "end\x00",
		head + "ro /a\x00policy /p\x00end\x00", head + "xx /a\x00end\x00", head + "ro\x00end\x00", head + "ro a\x00end\x00", head + "policy p\x00end\x00"} {
		if g, ok := ParseGrants([]byte(bad)); ok || g.Mounts != nil || g.Policies != nil || g.ShareNet {
			t.Errorf("ParseGrants(%q) = %+v, %v", bad, g, ok)
		}
	}
}

// Whatever is read as grants is written as the same bytes: nothing is skipped or guessed.
func FuzzParseGrants(f *testing.F) {
	for _, s := range goldens(f) {
		f.Add(build(f, s).grants())
	}
	f.Add([]byte("network own\x00environment clean\x00mode x\x00tmp 5\x00policy /p\x00tmpfs /tmp\x00ro /a b\x00end\x00"))
	f.Add([]byte("network own"))
	f.Fuzz(func(t *testing.T, data []byte) {
		g, ok := ParseGrants(data)
		if !ok {
			if !cmp.Equal(g, Grants{}) {
				t.Errorf("refused, and yet %+v", g)
			}
			return
		}
		p := Plan{Namespaces: Namespaces{ShareNet: g.ShareNet}, Mode: g.Mode, Clean: g.Clean, Policies: g.Policies, Mounts: g.Mounts}
		want := data
		for i, m := range p.Mounts { // the size is not told of a mount
			if m.Kind == binds.Tmpfs && m.Target == Tmp {
				p.Mounts[i].Size, g.Tmp = g.Tmp, 0
				break
			}
		}
		if g.Tmp != 0 {
			want = bytes.Replace(data, []byte("tmp "+strconv.FormatInt(g.Tmp, 10)), []byte("tmp 0"), 1)
		}
		if diff := cmp.Diff(want, p.grants()); !bytes.Equal(want, p.grants()) {
			t.Errorf("written again (-read +written):\n%s", diff)
		}
	})
}

// Uid 0 may read everybody's files: no account's home is granted or shown to it by itself, nor what is named like a
// place for credentials.
func TestRootAndOtherHomes(t *testing.T) {
	for _, dir := range []string{"/home/ada", "/home/ada/.ssh"} {
		s := on(t, "debian12", "/usr/local/bin/demo", dir, "demo").env("HOME=/root")
		s.UID, s.GID = 0, 0
		if got := at(build(t, s), dir); got != "dir "+dir {
			t.Errorf("working directory %s is shown by %s", dir, got)
		}
		s = on(t, "debian12", "/usr/local/bin/demo", "/", "demo").env("HOME=/root").write(dir)
		s.UID, s.GID = 0, 0
		if r := refused(t, s); !strings.Contains(r.Cause, "holds credentials") {
			t.Errorf("--write %s: %v", dir, r)
		}
	}
}
