package policy

import (
	"strings"

	"github.com/selfcage/selfcage/internal/hostfs"
)

// credentials are the credential roots below a home: files and directories that must never be granted, neither they
// nor something in them nor a directory that holds one.
var credentials = []string{
	".ssh", ".gnupg", ".aws", ".azure", ".gcloud", ".config/gcloud", ".kube", ".docker", ".config/containers/auth.json",
	".git-credentials", ".config/git/credentials", ".netrc", ".npmrc", ".yarnrc.yml", ".bunfig.toml",
	".config/bun/bunfig.toml", ".pypirc", ".config/pip/pip.conf", ".cargo/credentials", ".cargo/credentials.toml",
	".gem/credentials", ".m2/settings.xml", ".m2/settings-security.xml", ".gradle/gradle.properties",
	".terraform.d", ".terraformrc", ".vault-token", ".config/gh", ".config/glab-cli", ".config/hub", ".config/op", ".op",
	".1password", ".password-store", ".local/share/keyrings", ".local/share/kwalletd", ".pki", ".credentials", ".secrets",
	".keys", ".config/rclone", ".s3cfg", ".boto", ".oci", ".databrickscfg", ".snowflake", ".pgpass", ".my.cnf",
	".config/sops", ".config/age", ".cache/huggingface/token", ".cache/huggingface/stored_tokens", ".huggingface/token",
	".modelscope/credentials", ".kaggle/kaggle.json", ".config/wandb", ".ngc", ".claude/.credentials.json",
	".codex/auth.json", ".gemini", ".config/github-copilot", ".config/google-chrome", ".config/chromium",
	".config/microsoft-edge", ".config/BraveSoftware", ".config/vivaldi", ".config/opera", ".mozilla",
	".bash_history", ".zsh_history", ".python_history", ".history",
}

// systemCredentials are the same for the host itself.
var systemCredentials = []string{
	"/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/sudoers.d", "/etc/ssl/private", "/etc/pki/tls/private", "/etc/ssh",
	"/run/docker.sock", "/run/docker", "/run/containerd", "/run/podman", "/run/crio", "/run/secrets",
	"/var/run/docker.sock", "/var/run/docker", "/var/run/containerd", "/var/run/podman", "/var/run/crio", "/var/run/secrets",
}

// broad are directories that hold everybody's or the host's own affairs.
var broad = []string{"/", "/etc", "/root", "/boot", "/home", "/var", "/run", "/var/run", "/mnt", "/media", "/srv"}

// Roots are the credential roots of one host, by which it judges what may be shown. A credential root that is a link, as
// dotfile managers make them, is one at both ends.
type Roots struct {
	homes []string
	roots []root
}

type root struct {
	path string
	real string // without links, "" where there is none
}

// NewRoots looks for the credential roots of a host. homes are the caller's home by all its names. resolve looks at the
// host: the path without links that another one leads to, if it exists.
func NewRoots(homes []string, resolve func(string) (string, bool)) *Roots {
	r := &Roots{homes, make([]root, 0, len(homes)*len(credentials)+len(systemCredentials))}
	add := func(p string) {
		real, ok := resolve(p)
		if !ok || real == "/dev/null" { // .bash_history, for those who want none
			real = ""
		}
		r.roots = append(r.roots, root{p, real})
	}
	for _, h := range homes {
		for _, c := range credentials {
			add(h + "/" + c)
		}
	}
	for _, c := range systemCredentials {
		add(c)
	}
	return r
}

// Forbidden says whether a grant of the clean absolute path p is refused whoever asks, and why: p is a credential root,
// lies in one or holds one that exists; p is a home, above one, or another broad root.
func (r *Roots) Forbidden(p string) (why string, fatal bool) {
	for _, h := range r.homes {
		if h == p {
			return "it is the home, which holds credentials", true
		}
		if hostfs.Within(h, p) {
			return "the home, which holds credentials, lies below it", true
		}
	}
	for _, b := range broad[:5] {
		if p == b {
			return "it is a broad root that holds more than a run can need", true
		}
	}
	return r.holdsCredentials(p)
}

// TooBroad is Forbidden for what nobody asked for: the working directory. It says yes to more.
func (r *Roots) TooBroad(p string) (why string, hidden bool) {
	for _, h := range r.homes {
		switch {
		case p == h:
			return "it is the home", true
		case hostfs.Within(h, p):
			return "the home lies below it", true
		}
	}
	for _, b := range broad {
		if p == b {
			return "it holds more than a run can need", true
		}
	}
	return r.holdsCredentials(p)
}

// privateNames are directories that hold credentials whoever's home they lie in.
var privateNames = [...]string{".ssh", ".gnupg", ".aws", ".kube", ".password-store"}

func namedPrivate(p string) bool {
	for rest := p; rest != ""; {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		for _, n := range privateNames {
			if name == n {
				return true
			}
		}
	}
	return false
}

func (r *Roots) holdsCredentials(p string) (string, bool) {
	for _, c := range r.roots {
		switch {
		case hostfs.Within(p, c.path):
			return c.path + " holds credentials, which are never granted", true
		case c.real == "":
		case hostfs.Within(p, c.real):
			return c.path + " leads to it and holds credentials, which are never granted", true
		case hostfs.Within(c.path, p), hostfs.Within(c.real, p):
			return "it holds credentials (" + c.path + "), which are never granted", true
		}
	}
	if namedPrivate(p) {
		return "a directory of that name holds credentials, which are never granted", true
	}
	return "", false
}
