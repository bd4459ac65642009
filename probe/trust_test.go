package probe

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/selfcage/selfcage/internal/refusal"
	"github.com/selfcage/selfcage/policy"
)

const (
	me    = 1001
	other = 1002
)

// fakeFiles is a host: its nodes, the text of its links, and how often it was asked.
type fakeFiles struct {
	nodes map[string]node
	links map[string]string
	write map[string]bool
	calls int
}

func (f *fakeFiles) lstat(p string) (node, error) {
	f.calls++
	n, ok := f.nodes[p]
	if !ok {
		return node{}, fs.ErrNotExist
	}
	return n, nil
}
func (f *fakeFiles) readlink(p string) (string, error) { f.calls++; return f.links[p], nil }
func (f *fakeFiles) executable(p string) bool          { f.calls++; return f.nodes[p].mode&0o100 != 0 }
func (f *fakeFiles) writable(p string) bool            { f.calls++; return f.write[p] }

const dir, link, sticky = fs.ModeDir | 0o755, fs.ModeSymlink | 0o777, fs.ModeDir | fs.ModeSticky | 0o777

// host1 is a usual host with some homes and a NixOS store.
func host1() *fakeFiles {
	return &fakeFiles{
		nodes: map[string]node{
			"/": {dir, 0}, "/usr": {dir, 0}, "/usr/bin": {dir, 0}, usual: {0o755, 0},
			"/home": {dir, 0}, "/home/me": {dir, me}, "/home/me/bwrap": {0o755, me}, "/home/me/loose": {0o775, me},
			"/home/me/data": {0o644, me}, "/home/me/dir": {dir, me}, "/home/me/link": {link, me}, "/home/me/loop": {link, me},
			"/home/me/up": {link, me}, "/home/me/out": {link, me},
			"/home/me/open": {fs.ModeDir | 0o777, me}, "/home/me/open/bwrap": {0o755, 0},
			"/home/other": {dir, other}, "/home/other/bwrap": {0o755, other}, "/home/other/roots": {0o755, 0},
			"/tmp": {sticky, 0}, "/tmp/bwrap": {0o755, me}, "/tmp/theirs": {link, other},
			"/run": {dir, 0}, "/run/current-system": {link, 0}, "/run/fifo": {fs.ModeNamedPipe | 0o755, 0},
			"/nix": {dir, 0}, "/nix/store": {fs.ModeDir | fs.ModeSticky | 0o775, 0}, "/nix/store/s": {fs.ModeDir | 0o555, 0},
			"/nix/store/s/sw": {fs.ModeDir | 0o555, 0}, "/nix/store/s/sw/bin": {fs.ModeDir | 0o555, 0},
			"/nix/store/s/sw/bin/bwrap": {link, 0}, "/nix/store/b": {fs.ModeDir | 0o555, 0}, "/nix/store/b/bwrap": {0o555, 0},
		},
		links: map[string]string{
			"/home/me/link": "bwrap", "/home/me/loop": "loop", "/home/me/up": "../me/dir/../bwrap", "/home/me/out": "/home/other/bwrap",
			"/tmp/theirs": "/usr/bin/bwrap", "/run/current-system": "/nix/store/s", "/nix/store/s/sw/bin/bwrap": "/nix/store/b/bwrap",
		},
	}
}

func TestTrust(t *testing.T) {
	set := func(p string, n node) func(*fakeFiles) { return func(f *fakeFiles) { f.nodes[p] = n } }
	del := func(p string) func(*fakeFiles) { return func(f *fakeFiles) { delete(f.nodes, p) } }
	unmapRoot := func(f *fakeFiles) {
		for p, n := range f.nodes {
			if n.uid != me {
				f.nodes[p] = node{n.mode, 65534}
			}
		}
	}
	for _, c := range []struct {
		name     string
		explicit string
		change   func(*fakeFiles)
		overflow bool
		want     string
		err      string
		hint     string
	}{
		{name: "the usual one", want: usual},
		{name: "NixOS: links into the store, which is sticky", change: del(usual), want: "/nix/store/b/bwrap"},
		{name: "a store entry that is not root's", change: func(f *fakeFiles) { del(usual)(f); set("/nix/store/b", node{dir, other})(f) }, err: "/nix/store has mode 1775"},
		{name: "none", change: func(f *fakeFiles) { del(usual)(f); del("/run/current-system")(f) }, err: "bubblewrap, not installed: neither /usr/bin/bwrap nor", hint: "INSTALL, or name a trusted one with --bwrap"},
		{name: "setuid root", change: set(usual, node{fs.ModeSetuid | 0o755, 0}), want: usual},
		{name: "a usual one that somebody owns is not passed over", change: set(usual, node{0o755, other}), err: "owned by uid 1002, mode 0755", hint: "reinstall it as root"},
		{name: "a usual one that the caller owns is not enough", change: set(usual, node{0o755, me}), err: "owned by uid 1001", hint: "reinstall"},
		{name: "a usual one that the group may write", change: set(usual, node{0o775, 0}), err: "mode 0775 lets others write it", hint: "chmod go-w /usr/bin/bwrap"},
		{name: "a usual one in an open directory", change: set("/usr/bin", node{fs.ModeDir | 0o777, 0}), err: "its directory /usr/bin has mode 0777, so others can replace it", hint: "chmod go-w /usr/bin"},
		{name: "a usual one for a group only, which is not ours", change: set(usual, node{0o050, 0}), err: "not executable by this user: mode 0050", hint: "chmod +x"},
		{name: "a usual one for root and a group, which is ours", change: set(usual, node{0o750, 0}), want: usual},

		{name: "explicit, the caller's own", explicit: "/home/me/bwrap", want: "/home/me/bwrap"},
		{name: "explicit, root's", explicit: usual, want: usual},
		{name: "explicit, by a link: without it", explicit: "/home/me/link", want: "/home/me/bwrap"},
		{name: "explicit, by a link upwards", explicit: "/home/me/up", want: "/home/me/bwrap"},
		{name: "explicit, with needless dots", explicit: "/home//me/./dir/../bwrap", want: "/home/me/bwrap"},
		{name: "explicit, in a sticky directory", explicit: "/tmp/bwrap", want: "/tmp/bwrap"},
		{name: "explicit, by somebody's link in a sticky directory", explicit: "/tmp/theirs", err: "its directory /tmp has mode 1777"},
		{name: "explicit, by a link to somebody's", explicit: "/home/me/out", err: "its directory /home/other is owned by uid 1002"},
		{name: "explicit, relative", explicit: "bwrap", err: "--bwrap bwrap, not an absolute path", hint: "/usr/bin/bwrap"},
		{name: "explicit, missing", explicit: "/home/me/nope", err: "--bwrap /home/me/nope, not there", hint: "INSTALL, or correct the path"},
		{name: "explicit, a directory missing", explicit: "/home/nobody/bwrap", err: "/home/nobody is not there"},
		{name: "explicit, below a file", explicit: "/home/me/bwrap/x", err: "/home/me/bwrap is not a directory"},
		{name: "explicit, a loop", explicit: "/home/me/loop", err: "a link in a loop"},
		{name: "explicit, a directory", explicit: "/home/me/dir", err: "not a regular file but a directory"},
		{name: "explicit, a pipe", explicit: "/run/fifo", err: "not a regular file but a pipe"},
		{name: "explicit, not executable", explicit: "/home/me/data", err: "not executable by this user: mode 0644"},
		{name: "explicit, the group may write it", explicit: "/home/me/loose", err: "mode 0775 lets others write it", hint: "chmod go-w /home/me/loose"},
		{name: "explicit, somebody else's", explicit: "/home/other/bwrap", err: "owned by uid 1002, who can replace it", hint: "root or you (uid 1001)"},
		{name: "explicit, root's in somebody's directory", explicit: "/home/other/roots", err: "/home/other is owned by uid 1002"},
		{name: "explicit, root's in an open directory", explicit: "/home/me/open/bwrap", err: "its directory /home/me/open has mode 0777"},

		{name: "root is not mapped", change: unmapRoot, overflow: true, want: usual},
		{name: "root is not mapped, and the file can be written", overflow: true, err: "not trusted: owned by uid 65534",
			change: func(f *fakeFiles) { unmapRoot(f); f.write = map[string]bool{usual: true} }},
		{name: "the overflow uid where root is mapped", change: set(usual, node{0o755, 65534}), err: "owned by uid 65534"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := host1()
			if c.change != nil {
				c.change(f)
			}
			j := judge{files: f, caller: me, install: func() string { return "INSTALL" },
				overflow: func() (uint32, bool) { return 65534, c.overflow }}
			got, err := j.find(policy.Entry{Value: c.explicit, By: "--bwrap"})
			if c.err == "" {
				if err != nil || got != c.want {
					t.Fatalf("%q, %v; want %q", got, err, c.want)
				}
				return
			}
			var e *refusal.Error
			if !errors.As(err, &e) || got != "" {
				t.Fatalf("%q, %v; want a refusal", got, err)
			}
			if !strings.Contains(e.Error(), c.err) || !strings.Contains(e.Hint, c.hint) || e.Hint == "" || e.ExitStatus() != 125 {
				t.Errorf("%q, hint %q; want %q, hint %q", e, e.Hint, c.err, c.hint)
			}
			if !strings.Contains(e.Error(), "refusing to run unconfined") {
				t.Errorf("%q does not say that nothing was run", e)
			}
		})
	}
}

// Every start in a cage pays for this.
func TestTrustIsCheap(t *testing.T) {
	f := host1()
	j := judge{files: f, caller: me}
	if _, err := j.find(policy.Entry{}); err != nil || f.calls != 2 {
		t.Errorf("%d look-ups, %v; want 2", f.calls, err)
	}
}

func TestInstallHint(t *testing.T) {
	for in, want := range map[string]string{
		"":            "install the distribution's bubblewrap package",
		"ID=debian\n": "apt-get install bubblewrap",
		"NAME=x\nID=linuxmint\nID_LIKE=\"ubuntu debian\"\n": "apt-get install bubblewrap",
		"ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n":    "dnf install bubblewrap",
		"ID=alpine": "apk add bubblewrap",
		"ID=arch":   "pacman -S bubblewrap",
		"ID=\"opensuse-tumbleweed\"\nID_LIKE=\"opensuse suse\"": "zypper install bubblewrap",
		"ID=nixos": "add pkgs.bubblewrap to environment.systemPackages",
	} {
		if got := installHint(in); got != want {
			t.Errorf("installHint(%q) = %q, want %q", in, got, want)
		}
	}
}
