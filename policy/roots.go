package policy

import (
	"path"
	"slices"
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
	".config/sops", ".config/age", ".kaggle/kaggle.json", ".config/wandb", ".ngc", ".claude/.credentials.json",
	".codex/auth.json", ".gemini", ".config/github-copilot", ".config/google-chrome", ".config/chromium",
	".config/microsoft-edge", ".config/BraveSoftware", ".config/vivaldi", ".config/opera", ".mozilla",
	".bash_history", ".zsh_history", ".python_history", ".history",
}

// tokenFiles are the credential roots below a home that lie in the middle of what a run needs: models. A directory that
// holds them may be granted without them, see [Roots.Subtract].
var tokenFiles = []string{
	".cache/huggingface/token", ".cache/huggingface/stored_tokens", ".huggingface/token", ".modelscope/credentials",
}

// startFiles are what shells read when they start, where people write keys. None may be granted itself; but a directory
// that they lead to by a link is a checkout of settings, which may be.
var startFiles = []string{
	".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin",
	".config/fish", ".env", ".envrc",
}

// named are variables whose value is a file that holds credentials, or a directory in which some do, below. Of what is
// not there, or is not what it should be, nothing is refused: GNUPGHOME=/ must not make everything a credential. Such a
// file may lie in the checkout that the run is about, so it is subtracted and does not make its directory forbidden.
var named = [...]struct{ variable, below string }{
	{"HF_TOKEN_PATH", ""}, {"HF_HOME", "token stored_tokens"}, {"MODELSCOPE_CREDENTIALS_PATH", ""},
	{"MODELSCOPE_CREDENTIALS_PATH", "git_token session user"}, // a file to some, a directory to others
	{"AWS_SHARED_CREDENTIALS_FILE", ""}, {"AWS_CONFIG_FILE", ""}, {"AWS_WEB_IDENTITY_TOKEN_FILE", ""},
	{"GOOGLE_APPLICATION_CREDENTIALS", ""}, {"BOTO_CONFIG", ""}, {"OCI_CLI_CONFIG_FILE", ""},
	{"CLOUDSDK_CONFIG", "credentials.db access_tokens.db legacy_credentials application_default_credentials.json"},
	{"AZURE_CONFIG_DIR", "msal_token_cache.json msal_token_cache.bin accessTokens.json service_principal_entries.json"},
	{"KUBECONFIG", ""}, {"DOCKER_CONFIG", "config.json"}, {"REGISTRY_AUTH_FILE", ""}, {"NETRC", ""},
	{"NPM_CONFIG_USERCONFIG", ""}, {"npm_config_userconfig", ""}, {"CARGO_HOME", "credentials credentials.toml"},
	{"GRADLE_USER_HOME", "gradle.properties"}, {"COMPOSER_HOME", "auth.json"}, {"TF_CLI_CONFIG_FILE", ""}, {"RCLONE_CONFIG", ""},
	{"PGPASSFILE", ""}, {"SOPS_AGE_KEY_FILE", ""}, {"GNUPGHOME", "private-keys-v1.d secring.gpg"},
	{"GH_CONFIG_DIR", "hosts.yml"}, {"KAGGLE_CONFIG_DIR", "kaggle.json"}, {"CODEX_HOME", "auth.json"},
	{"CLAUDE_CONFIG_DIR", ".credentials.json"},
	{"HISTFILE", ""}, {"XDG_RUNTIME_DIR", "containers/auth.json bus gnupg keyring systemd"},
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
	kind rootKind
}

type rootKind uint8

const (
	credential rootKind = iota
	tokenFile           // can be subtracted from a grant that holds it
	namedFile           // the same, and from what is shown without being granted
	startFile           // by itself only
)

// NewRoots looks for the credential roots of a host. homes are the caller's home by all its names; getenv looks up the
// caller's variables, which may say that a credential lies elsewhere. resolve looks at the host: the path without links
// that another one leads to, if it exists; one that ends in '/' only where a directory is.
func NewRoots(homes []string, getenv func(string) string, resolve func(string) (string, bool)) *Roots {
	r := &Roots{homes: homes, roots: make([]root, 0, (len(homes)+1)*len(credentials)+len(systemCredentials))}
	s := search{r, getenv, resolve}
	for kind, list := range [...][]string{credential: credentials, tokenFile: tokenFiles, namedFile: nil, startFile: startFiles} {
		for _, h := range homes {
			for _, c := range list {
				s.add(h+"/"+c, rootKind(kind))
			}
		}
		s.moved(list, rootKind(kind))
	}
	for _, c := range systemCredentials {
		s.add(c, credential)
	}
	for _, n := range named {
		value := getenv(n.variable)
		for n.variable == "KUBECONFIG" && strings.Contains(value, ":") { // a list
			var first string
			first, value, _ = strings.Cut(value, ":")
			s.named(first, n.below)
		}
		s.named(value, n.below)
	}
	return r
}

// search looks for the credential roots of a host.
type search struct {
	*Roots
	getenv  func(string) string
	resolve func(string) (string, bool)
}

// add adds p, be it there or not.
func (s search) add(p string, kind rootKind) {
	real, ok := s.resolve(p)
	if !ok || real == "/dev/null" { // .bash_history, for those who want none
		real = ""
	}
	s.roots = append(s.roots, root{p, real, kind})
}

// there adds p if it is there.
func (s search) there(p string, kind rootKind) {
	if _, ok := s.resolve(p); ok {
		s.add(p, kind)
	}
}

// named adds the credentials that the value of a variable leads to.
func (s search) named(value, below string) {
	if !strings.HasPrefix(value, "/") {
		return
	}
	value = path.Clean(value)
	for name := range strings.FieldsSeq(below) {
		s.there(path.Join(value, name), namedFile)
	}
	if _, directory := s.resolve(value + "/"); below == "" && !directory && !s.absurd(value) {
		s.there(value, namedFile)
	}
}

// absurd says whether p is no place of one credential, whatever says so.
func (r *Roots) absurd(p string) bool {
	return slices.Contains(broad, p) || slices.ContainsFunc(r.homes, func(h string) bool { return hostfs.Within(h, p) })
}

// moved adds what the variables of the XDG base directories have moved out of the home.
func (s search) moved(list []string, kind rootKind) {
	for _, x := range [...]struct{ prefix, variable string }{
		{".config/", "XDG_CONFIG_HOME"}, {".cache/", "XDG_CACHE_HOME"}, {".local/share/", "XDG_DATA_HOME"},
	} {
		dir := s.getenv(x.variable)
		for _, c := range list {
			if rest, ok := strings.CutPrefix(c, x.prefix); ok && strings.HasPrefix(dir, "/") {
				s.there(path.Join(dir, rest), kind)
			}
		}
	}
}

// Forbidden says whether a grant of the clean absolute path p is refused whoever asks, and why: p is a credential root,
// lies in one or holds one that exists; p is a home, above one, or another broad root. What is not refused may still hold
// token files and what a variable names: whoever shows p must take them out of it with [Roots.Subtract].
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
	return r.holdsCredentials(p, true)
}

// Subtract returns the credentials that lie in p although p may be shown, as they are spelled and without links, sorted:
// each must be hidden where p is. They are files or directories.
func (r *Roots) Subtract(p string) []string {
	var inside []string
	for _, c := range r.roots {
		if c.kind != tokenFile && c.kind != namedFile || c.real == "" {
			continue
		}
		for _, at := range [...]string{c.path, c.real} {
			if at != p && hostfs.Within(at, p) {
				inside = append(inside, at)
			}
		}
	}
	slices.Sort(inside)
	return slices.Compact(inside)
}

// TooBroad is Forbidden for what nobody asked for: the working directory. It says yes to more, token files among it.
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
	return r.holdsCredentials(p, false)
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

func (r *Roots) holdsCredentials(p string, subtract bool) (string, bool) {
	for _, c := range r.roots {
		switch {
		case hostfs.Within(p, c.path):
			return c.path + " holds credentials, which are never granted", true
		case c.real == "":
		case hostfs.Within(p, c.real):
			return c.path + " leads to it and holds credentials, which are never granted", true
		case c.kind == startFile, c.kind == namedFile, c.kind == tokenFile && subtract:
		case hostfs.Within(c.path, p), hostfs.Within(c.real, p):
			return "it holds credentials (" + c.path + "), which are never granted", true
		}
	}
	if namedPrivate(p) {
		return "a directory of that name holds credentials, which are never granted", true
	}
	return "", false
}
