package policy

import (
	"strings"
	"testing"
)

// world resolves what exists on a small host: home/u with credentials, some of them links.
func world(p string) (string, bool) {
	links := map[string]string{
		"/home/u/.kube": "/vol/keys/kube", "/home/u/.bash_history": "/dev/null", "/var/run/docker.sock": "/run/docker.sock",
		"/home/u/.netrc": "/home/u/dotfiles/netrc", "/real/u/.netrc": "/home/u/dotfiles/netrc",
	}
	if real, ok := links[p]; ok {
		return real, true
	}
	switch p {
	case "/home/u/.ssh", "/home/u/.config/gh", "/etc/shadow", "/etc/ssl/private", "/run/docker.sock", "/root/.ssh", "/real/u/.aws":
		return p, true
	}
	return "", false
}

func TestForbidden(t *testing.T) {
	u := []string{"/home/u"}
	for _, tt := range []struct {
		path  string
		homes []string
		want  string // part of why; empty: may be granted
	}{
		{"/home/u", u, "it is the home"},
		{"/home", u, "lies below it"},
		{"/", u, "lies below it"},
		{"/", nil, "broad root"},
		{"/home", nil, "broad root"},
		{"/etc", u, "broad root"},
		{"/boot", u, "broad root"},
		{"/boot/grub", u, ""},
		{"/srv", u, ""},
		{"/var", nil, "/run/docker.sock"}, // by its other name
		{"/opt", u, ""},
		// A credential root, what is in it, what holds it.
		{"/home/u/.ssh", u, "/home/u/.ssh holds credentials"},
		{"/home/u/.ssh/id_rsa", u, "/home/u/.ssh holds credentials"},
		{"/home/u/.config", u, "it holds credentials (/home/u/.config/gh)"},
		{"/home/u/.config/gh/hosts.yml", u, "/home/u/.config/gh holds"},
		{"/home/u/.aws", u, "/home/u/.aws holds"}, // also when it is not there yet
		{"/home/u/.aws/credentials", u, "/home/u/.aws holds"},
		{"/etc/ssl", u, "it holds credentials (/etc/ssl/private)"},
		{"/etc/ssl/private/x", u, "/etc/ssl/private holds"},
		{"/etc/shadow", u, "/etc/shadow holds"},
		{"/run/docker.sock", u, "/run/docker.sock holds"},
		{"/var/run/docker.sock", u, "/var/run/docker.sock holds"},
		{"/etc/ssh/ssh_config", u, "/etc/ssh holds"},
		// Only what exists makes the directory above forbidden.
		{"/home/u/.cargo", u, ""},
		{"/home/u/.cargo/credentials.toml", u, "/home/u/.cargo/credentials.toml holds"},
		{"/home/u/.cargo/registry", u, ""},
		{"/etc/pki", u, ""},
		// Names that only begin the same.
		{"/home/u/.sshfoo", u, ""},
		{"/home/u/.ssh2/x", u, ""},
		{"/home/u/.configs", u, ""},
		{"/home/u2/.ssh", u, "a directory of that name"}, // somebody else's: as uid 0 its permissions guard nothing
		{"/home/uu", u, ""},
		{"/etc/shadow-", u, ""},
		{"/etcetera", u, ""},
		{"/home/u/src", u, ""},
		// A credential root that is a link is one at both ends.
		{"/vol/keys/kube", u, "/home/u/.kube leads to it"},
		{"/vol/keys/kube/config", u, "/home/u/.kube leads to it"},
		{"/vol/keys", u, "it holds credentials (/home/u/.kube)"},
		{"/vol", u, "it holds credentials (/home/u/.kube)"},
		{"/vol/keys2", u, ""},
		{"/home/u/dotfiles", u, "it holds credentials (/home/u/.netrc)"},
		{"/home/u/dotfiles/netrc", u, "/home/u/.netrc leads to it"},
		{"/home/u/dotfiles/vimrc", u, ""},
		{"/dev/null", u, ""}, // a history that nobody wants
		{"/dev", u, ""},
		// The home by two names.
		{"/real/u", []string{"/home/u", "/real/u"}, "it is the home"},
		{"/real/u/.aws", []string{"/home/u", "/real/u"}, "/real/u/.aws holds"},
		{"/real", []string{"/home/u", "/real/u"}, "lies below it"},
		{"/real/u/src", []string{"/home/u", "/real/u"}, ""},
		// /root is refused to everybody, but for another reason where it is the caller's own.
		{"/root", u, "broad root"},
		{"/root", []string{"/root"}, "it is the home"},
		{"/root/x", []string{"/root"}, ""},
		{"/root/x", u, ""},
		{"/root/.ssh", []string{"/root"}, "/root/.ssh holds"},
	} {
		why, fatal := NewRoots(tt.homes, world).Forbidden(tt.path)
		if fatal != (tt.want != "") || !strings.Contains(why, tt.want) {
			t.Errorf("Forbidden(%q, %q) = %q, %v, want %q", tt.path, tt.homes, why, fatal, tt.want)
		}
	}
}

func TestTooBroad(t *testing.T) {
	u := []string{"/home/u"}
	for path, want := range map[string]string{
		"/":    "lies below it",
		"/etc": "more than a run", "/root": "more than a run", "/boot": "more than a run", "/var": "more than a run",
		"/run": "more than a run", "/var/run": "more than a run", "/mnt": "more than a run", "/media": "more than a run",
		"/srv": "more than a run", "/home": "lies below it", "/home/u": "it is the home",
		"/home/u/.ssh": "holds", "/home/u/dotfiles": "holds", "/etc/ssl": "holds",
		"/home/u/src": "", "/srv/www": "", "/opt": "", "/usr": "", "/var/lib/x": "", "/etc/nginx": "", "/mnt/disk": "", "/home/u2": "",
	} {
		why, hidden := NewRoots(u, world).TooBroad(path)
		if hidden != (want != "") || !strings.Contains(why, want) {
			t.Errorf("TooBroad(%q) = %q, %v, want %q", path, why, hidden, want)
		}
	}
	// What is refused when it is asked for is never shown when nobody asked.
	for _, p := range []string{"/", "/etc", "/root", "/boot", "/home", "/home/u", "/home/u/.ssh", "/vol/keys", "/home/u/.config", "/etc/ssl"} {
		_, fatal := NewRoots(u, world).Forbidden(p)
		_, hidden := NewRoots(u, world).TooBroad(p)
		if !fatal || !hidden {
			t.Errorf("%s: forbidden %v, too broad %v", p, fatal, hidden)
		}
	}
}

// The lists hold clean paths, relative to the home or absolute: anything else would match nothing, without a word.
func TestCredentialLists(t *testing.T) {
	clean := func(p string) bool {
		return p != "" && !strings.Contains(p, "//") && !strings.HasSuffix(p, "/") && !strings.Contains(p, "..") && strings.TrimSpace(p) == p
	}
	for _, c := range credentials {
		if !clean(c) || c[0] == '/' {
			t.Errorf("%q is not relative to the home and clean", c)
		}
	}
	for _, c := range append(append([]string(nil), systemCredentials...), broad...) {
		if c != "/" && !clean(c) || c[0] != '/' {
			t.Errorf("%q is not absolute and clean", c)
		}
	}
}
