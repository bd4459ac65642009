package policy

import (
	"slices"
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

// Seeds R14, R16 and R36: both directions, by name and behind every link, and each error says why.
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
		why, fatal := NewRoots(tt.homes, unset, world).Forbidden(tt.path)
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
		why, hidden := NewRoots(u, unset, world).TooBroad(path)
		if hidden != (want != "") || !strings.Contains(why, want) {
			t.Errorf("TooBroad(%q) = %q, %v, want %q", path, why, hidden, want)
		}
	}
	// What is refused when it is asked for is never shown when nobody asked.
	for _, p := range []string{"/", "/etc", "/root", "/boot", "/home", "/home/u", "/home/u/.ssh", "/vol/keys", "/home/u/.config", "/etc/ssl"} {
		_, fatal := NewRoots(u, unset, world).Forbidden(p)
		_, hidden := NewRoots(u, unset, world).TooBroad(p)
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
	for _, c := range slices.Concat(credentials, tokenFiles, startFiles) {
		if !clean(c) || c[0] == '/' {
			t.Errorf("%q is not relative to the home and clean", c)
		}
	}
	for _, n := range named {
		for below := range strings.FieldsSeq(n.below) {
			if !clean(below) || below[0] == '/' {
				t.Errorf("%s: %q is not relative and clean", n.variable, below)
			}
		}
	}
	for _, c := range append(append([]string(nil), systemCredentials...), broad...) {
		if c != "/" && !clean(c) || c[0] != '/' {
			t.Errorf("%q is not absolute and clean", c)
		}
	}
}

func unset(string) string { return "" }

// moved is a host where variables say where credentials lie. Names that end in '/' are asked whether they are directories.
func moved(p string) (string, bool) {
	if p == "/link/hf/token" {
		return "/vol/hf/token", true
	}
	switch strings.TrimSuffix(p, "/") {
	case "/", "/home/u", "/work", "/link", "/link/hf", "/vol/hf", "/k8s", "/gpg", "/gpg/private-keys-v1.d", "/docker", "/home/u/.cache/huggingface",
		"/home/u/.modelscope", "/home/u/.modelscope/credentials", "/ms", "/etc", "/run/user/7", "/xdg/gh":
		return strings.TrimSuffix(p, "/"), true
	case "/keys/hf", "/keys/ms", "/ms/session", "/k8s/a", "/k8s/b", "/docker/config.json", "/keys/pg", "/keys/aws", "/keys/gcp", "/keys/netrc", "/keys/npmrc",
		"/cargo/credentials.toml", "/home/u/.cache/huggingface/token", "/home/u/.cache/huggingface/stored_tokens", "/vol/hf/token",
		"/run/user/7/containers/auth.json", "/run/user/7/bus", "/home/u/dots/bashrc", "/home/u/.envrc":
		return p, !strings.HasSuffix(p, "/")
	case "/home/u/.bashrc":
		return "/home/u/dots/bashrc", true
	}
	return "", false
}

// Seeds R14 and R36: credentials are found where variables say that they lie, and each error says why.
func TestNamedRoots(t *testing.T) {
	u := []string{"/home/u"}
	for _, tt := range []struct{ variable, value, path, want string }{
		{"HF_TOKEN_PATH", "/keys/hf", "/keys/hf", "/keys/hf holds credentials"},
		{"HF_HOME", "/link/hf", "/link/hf/token", "/link/hf/token holds credentials"},
		{"HF_HOME", "/link/hf", "/vol/hf/token", "/link/hf/token leads to it"},
		{"HF_HOME", "/link/hf/", "/link/hf/token", "/link/hf/token holds credentials"},
		{"HF_HOME", "/link/hf", "/link/hf/hub", ""},
		{"MODELSCOPE_CREDENTIALS_PATH", "/keys/ms", "/keys/ms", "/keys/ms holds"},
		{"MODELSCOPE_CREDENTIALS_PATH", "/ms", "/ms/session", "/ms/session holds"},
		{"MODELSCOPE_CREDENTIALS_PATH", "/ms", "/ms", "- /ms/session"},
		{"AWS_SHARED_CREDENTIALS_FILE", "/keys/aws", "/keys/aws", "/keys/aws holds"},
		{"AWS_SHARED_CREDENTIALS_FILE", "/keys/aws", "/keys", "- /keys/aws"},
		{"GOOGLE_APPLICATION_CREDENTIALS", "/keys/gcp", "/keys", "- /keys/gcp"},
		{"PGPASSFILE", "/keys/pg", "/keys/pg", "/keys/pg holds"},
		{"NETRC", "/keys/netrc", "/keys/netrc", "/keys/netrc holds"},
		{"NPM_CONFIG_USERCONFIG", "/keys/npmrc", "/keys/npmrc", "/keys/npmrc holds"},
		{"npm_config_userconfig", "/keys/npmrc", "/keys/npmrc", "/keys/npmrc holds"},
		{"KUBECONFIG", "/k8s/a:/k8s/none::/k8s/b", "/k8s/b", "/k8s/b holds"},
		{"KUBECONFIG", "/k8s/a:/k8s/b", "/k8s", "- /k8s/a /k8s/b"},
		{"KUBECONFIG", "/k8s/a:/k8s/none", "/k8s/none", ""},
		{"DOCKER_CONFIG", "/docker", "/docker", "- /docker/config.json"},
		{"CARGO_HOME", "/cargo", "/cargo", "- /cargo/credentials.toml"},
		{"CARGO_HOME", "/cargo", "/cargo/registry", ""},
		{"GNUPGHOME", "/gpg", "/gpg/private-keys-v1.d/k", "/gpg/private-keys-v1.d holds"},
		{"XDG_RUNTIME_DIR", "/run/user/7", "/run/user/7/containers", "- /run/user/7/containers/auth.json"},
		{"XDG_RUNTIME_DIR", "/run/user/7", "/run/user/7/bus", "/run/user/7/bus holds"},
		{"XDG_RUNTIME_DIR", "/run/user/7", "/run/user/7/wayland-0", ""},
		{"XDG_CONFIG_HOME", "/xdg", "/xdg/gh/hosts.yml", "/xdg/gh holds"},
		{"XDG_CONFIG_HOME", "/xdg", "/xdg", "it holds credentials (/xdg/gh)"},
		// What is absurd, or is not there, makes nothing a credential.
		{"HF_TOKEN_PATH", "/", "/work", ""},
		{"HF_TOKEN_PATH", "/work", "/work", ""},
		{"HF_TOKEN_PATH", "/work", "/work/x", ""},
		{"HF_TOKEN_PATH", "/home/u", "/home/u/src", ""},
		{"HF_TOKEN_PATH", "keys/hf", "/keys/hf", ""},
		{"HF_TOKEN_PATH", "/nowhere", "/nowhere", ""},
		{"AWS_SHARED_CREDENTIALS_FILE", "/etc", "/etc/hosts", ""},
		{"GNUPGHOME", "/work", "/work", ""},
		{"KUBECONFIG", "/", "/usr", ""},
	} {
		getenv := func(name string) string {
			if name == tt.variable {
				return tt.value
			}
			return ""
		}
		r := NewRoots(u, getenv, moved)
		why, fatal := r.Forbidden(tt.path)
		if hidden, ok := strings.CutPrefix(tt.want, "- "); ok { // in what may be shown
			if _, broad := r.TooBroad(tt.path); fatal || broad || strings.Join(r.Subtract(tt.path), " ") != hidden {
				t.Errorf("%s=%s: Subtract(%q) = %q, want %q; %s, %v", tt.variable, tt.value, tt.path, r.Subtract(tt.path), hidden, why, broad)
			}
			continue
		}
		if fatal != (tt.want != "") || !strings.Contains(why, tt.want) {
			t.Errorf("%s=%s: Forbidden(%q) = %q, %v, want %q", tt.variable, tt.value, tt.path, why, fatal, tt.want)
		}
	}
}

// Even where all is said to be a file, no variable makes a credential of the home or of all.
func TestAbsurdRoots(t *testing.T) {
	files := func(p string) (string, bool) { return p, !strings.HasSuffix(p, "/") }
	for _, value := range []string{"/", "//", "/home/u", "/home/u/.", "/home", "/etc", "/root", "/var", "/srv/"} {
		getenv := func(name string) string {
			if name == "NETRC" || name == "KUBECONFIG" {
				return value
			}
			return ""
		}
		r := NewRoots([]string{"/home/u"}, getenv, files)
		for _, path := range []string{"/home/u/src", "/usr", "/etc/hosts", "/srv/www", "/var/lib/x"} {
			if why, fatal := r.Forbidden(path); fatal {
				t.Errorf("NETRC=%s: Forbidden(%q): %s", value, path, why)
			}
		}
	}
}

// Seeds R14 and R36: a cache of models can be granted without the token files in it, and these never.
func TestSubtract(t *testing.T) {
	hf := func(name string) string {
		if name == "HF_HOME" {
			return "/link/hf"
		}
		return ""
	}
	r := NewRoots([]string{"/home/u"}, hf, moved)
	for path, want := range map[string]string{
		"/home/u/.cache/huggingface":        "/home/u/.cache/huggingface/stored_tokens /home/u/.cache/huggingface/token",
		"/home/u/.cache":                    "/home/u/.cache/huggingface/stored_tokens /home/u/.cache/huggingface/token",
		"/home/u/.cache/huggingface/hub":    "",
		"/home/u/.cache/huggingface/tokens": "",
		"/home/u/.modelscope":               "/home/u/.modelscope/credentials",
		"/link/hf":                          "/link/hf/token",
		"/vol/hf":                           "/vol/hf/token",
		"/work":                             "",
	} {
		if why, fatal := r.Forbidden(path); fatal {
			t.Errorf("%s is refused: %s", path, why)
		}
		if got := strings.Join(r.Subtract(path), " "); got != want {
			t.Errorf("Subtract(%q) = %q, want %q", path, got, want)
		}
		if _, hidden := r.TooBroad(path); hidden != (want != "" && strings.HasPrefix(path, "/home/u/")) {
			t.Errorf("TooBroad(%q) = %v", path, hidden)
		}
	}
	for _, path := range []string{"/home/u/.cache/huggingface/token", "/home/u/.modelscope/credentials/session", "/link/hf/token", "/vol/hf/token",
		"/home/u/.huggingface/token"} {
		if why, fatal := r.Forbidden(path); !fatal || !strings.Contains(why, "credentials") || len(r.Subtract(path)) > 0 {
			t.Errorf("%s: %q, %v, %q", path, why, fatal, r.Subtract(path))
		}
	}
	// A directory that also holds what is no token file stays refused.
	if why, fatal := NewRoots([]string{"/home/u"}, unset, world).Forbidden("/home/u/.config"); !fatal {
		t.Error(why)
	}
}

// Files that shells read are refused themselves, but a checkout of settings that they lead to is not.
func TestStartFiles(t *testing.T) {
	r := NewRoots([]string{"/home/u"}, unset, moved)
	for path, want := range map[string]bool{
		"/home/u/.bashrc": true, "/home/u/.zshenv": true, "/home/u/.envrc": true, "/home/u/.env": true, "/home/u/.config/fish/config.fish": true,
		"/home/u/dots/bashrc": true, "/home/u/dots": false, "/home/u/src/.envrc": false, "/home/u/.environment": false,
	} {
		if why, fatal := r.Forbidden(path); fatal != want {
			t.Errorf("Forbidden(%q) = %q, %v", path, why, fatal)
		}
	}
}

// Seed R16: broad roots, the home among them, by every name that the home has.
func TestBroadRoots(t *testing.T) {
	for _, tt := range []struct {
		path  string
		homes []string
		want  string
	}{
		{"/", nil, "broad root"}, {"/etc", nil, "broad root"}, {"/root", nil, "broad root"}, {"/boot", nil, "broad root"}, {"/home", nil, "broad root"},
		{"/root", []string{"/root"}, "it is the home, which holds credentials"},
		{"/home/u", []string{"/data/u", "/home/u"}, "it is the home"}, {"/data", []string{"/data/u"}, "the home, which holds credentials, lies below it"},
		{"/etc/nginx", nil, ""}, {"/root/models", []string{"/root"}, ""}, {"/usr", nil, ""}, {"/rootless", nil, ""},
	} {
		nothing := func(string) (string, bool) { return "", false }
		why, fatal := NewRoots(tt.homes, unset, nothing).Forbidden(tt.path)
		if fatal != (tt.want != "") || !strings.Contains(why, tt.want) {
			t.Errorf("Forbidden(%q) of %q = %q, %v, want %q", tt.path, tt.homes, why, fatal, tt.want)
		}
	}
}
