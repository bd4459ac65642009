package env

import "strings"

// hidden returns the rule by which a variable names something that is not visible inside, or "".
//
// Only variables whose target somebody else made are looked at. A socket that the program itself is going to make, a log
// file, a search path with missing entries: these work, or fail with a message of their own.
func (s *scrubber) hidden(name, value string) string {
	switch name {
	case "TMPDIR", "TMP", "TEMP", "XDG_RUNTIME_DIR":
		// A compiler whose TMPDIR is missing dies of SIGSEGV (ROCm's), or "creating work dir: stat" (go).
		return s.gone("a directory", value)
	case "SSH_AGENT_PID":
		if sock, ok := s.get("SSH_AUTH_SOCK"); ok && s.gone("", sock) != "" {
			return "belongs to SSH_AUTH_SOCK, which is not visible"
		}
		return ""
	case "KUBECONFIG":
		return s.allGone("a file with credentials", strings.Split(value, ":"))
	}
	if paths, ok := s.sockets(name, value); ok {
		return s.allGone("a socket", paths)
	}
	if s.rules.Clean {
		if rule := s.hiddenListed(name, value); rule != "" {
			return rule
		}
	}
	upper := strings.ToUpper(name)
	switch upper[strings.LastIndexByte(upper, '_')+1:] {
	case "CREDENTIAL", "CREDENTIALS":
		return s.gone("a file with credentials", value)
	case "FILE", "PATH":
		if inCredentialRoot(value) {
			return "names a file with credentials"
		}
	}
	if pointer(upper) {
		return s.gone("a file with credentials", value)
	}
	return ""
}

// hiddenListed is hidden for what the clean level lets through by name and the plan need not make visible. The scrubbed
// level has no such rule: there these reach the run with their targets.
func (s *scrubber) hiddenListed(name, value string) string {
	switch name {
	case "SHELL": // vim, tmux and make's $(shell) execute it
		return s.gone("a program", value)
	case "SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO", "PIP_CERT",
		"AWS_CA_BUNDLE":
		return s.gone("a certificate file", value)
	case "SSL_CERT_DIR":
		return s.allGone("a certificate directory", strings.Split(value, ":"))
	}
	return ""
}

// sockets returns the paths of the sockets that a variable names, any of which will do; one that is not absolute is
// reached some other way. ok is false for a variable that names no socket.
func (s *scrubber) sockets(name, value string) (paths []string, ok bool) {
	switch name {
	case "SSH_AUTH_SOCK", "GNOME_KEYRING_CONTROL", "NOTIFY_SOCKET", "SWAYSOCK", "I3SOCK", "NVIM", "NVIM_LISTEN_ADDRESS",
		"VSCODE_IPC_HOOK_CLI", "VSCODE_GIT_IPC_HANDLE", "WEZTERM_UNIX_SOCKET", "ALACRITTY_SOCKET", "CONTAINERD_ADDRESS":
		return []string{value}, true
	case "TMUX": // path,pid,session
		path, _, _ := strings.Cut(value, ",")
		return []string{path}, true
	case "GPG_AGENT_INFO": // path:pid:protocol
		path, _, _ := strings.Cut(value, ":")
		return []string{path}, true
	case "DBUS_SESSION_BUS_ADDRESS", "DBUS_SYSTEM_BUS_ADDRESS", "DBUS_STARTER_ADDRESS", "AT_SPI_BUS_ADDRESS":
		return busPaths(value), true
	case "DOCKER_HOST", "CONTAINER_HOST", "BUILDKIT_HOST", "PULSE_SERVER", "KITTY_LISTEN_ON", "NIX_REMOTE":
		path, found := strings.CutPrefix(value, "unix:")
		if !found {
			return []string{value}, name == "PULSE_SERVER"
		}
		return []string{"/" + strings.TrimLeft(path, "/")}, strings.HasPrefix(path, "/") // not unix:@abstract
	case "DISPLAY":
		return []string{displayPath(value)}, true
	case "WAYLAND_DISPLAY":
		if dir, _ := s.get("XDG_RUNTIME_DIR"); dir != "" && value[0] != '/' {
			value = dir + "/" + value
		}
		return []string{value}, true
	case "SESSION_MANAGER": // local/host:@/tmp/.ICE-unix/1,unix/host:/tmp/.ICE-unix/1
		for _, a := range strings.Split(value, ",") {
			path := a[strings.LastIndexByte(a, ':')+1:]
			paths = append(paths, strings.TrimPrefix(path, "@"))
		}
		return paths, true
	}
	return nil, false
}

// busPaths returns one path per address of a D-Bus address list, "" for an address that is no path.
func busPaths(list string) (paths []string) {
	for _, address := range strings.Split(list, ";") {
		options, unix := strings.CutPrefix(address, "unix:")
		path := ""
		for _, option := range strings.Split(options, ",") {
			if p, ok := strings.CutPrefix(option, "path="); ok && unix {
				path = unescape(p)
			}
		}
		if address != "" {
			paths = append(paths, path)
		}
	}
	return paths
}

// unescape undoes the %XX of a D-Bus address. What is no escape stays as it is.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			hi, lo := hex(s[i+1]), hex(s[i+2])
			if hi >= 0 && lo >= 0 {
				b.WriteByte(byte(hi<<4 | lo))
				i += 2
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func hex(c byte) int {
	if i := strings.IndexByte("0123456789abcdef", c); i >= 0 {
		return i
	}
	if i := strings.IndexByte("ABCDEF", c); i >= 0 {
		return 10 + i
	}
	return -1
}

// displayPath is the socket of a local X display, "" for one that is reached over TCP (localhost:10.0 under ssh -X). The
// server has an abstract socket too; who relies on that says --env DISPLAY.
func displayPath(display string) string {
	colon := strings.LastIndexByte(display, ':')
	if colon < 0 {
		return ""
	}
	host, number := display[:colon], display[colon+1:]
	if strings.HasPrefix(host, "/") {
		return host // XQuartz: the name of the socket
	}
	n := run(number, func(c byte) bool { return '0' <= c && c <= '9' })
	if n == 0 || host != "" && host != "unix" && !strings.HasPrefix(host, "unix/") {
		return ""
	}
	return "/tmp/.X11-unix/X" + number[:n]
}

// gone is the rule that drops a variable which names this path, or "". A relative path is not judged.
func (s *scrubber) gone(what, path string) string {
	if !strings.HasPrefix(path, "/") || s.visible(path) {
		return ""
	}
	return "names " + what + " that is not visible"
}

// allGone is gone for a list of which one path is enough.
func (s *scrubber) allGone(what string, paths []string) (rule string) {
	for _, p := range paths {
		if rule = s.gone(what, p); rule == "" {
			return ""
		}
	}
	return rule
}

// preload removes the libraries that are not visible from LD_PRELOAD or LD_AUDIT: the loader goes on without them, but
// says so on the standard error of every process. An entry with a $ (as in $LIB) is the loader's to expand.
func (s *scrubber) preload(rule, value string) (newValue, keep, drop string) {
	entries := strings.FieldsFunc(value, func(r rune) bool { return r == ':' || r == ' ' })
	var left []string
	for _, e := range entries {
		if strings.Contains(e, "$") || s.gone("", e) == "" {
			left = append(left, e)
		}
	}
	switch {
	case len(left) == len(entries):
		return value, rule, ""
	case len(left) == 0:
		return "", "", "names a library that is not visible"
	}
	return strings.Join(left, ":"), rule + rulePartly, ""
}

// inCredentialRoot reports whether an absolute path lies where credentials are kept. These are the clear cases; which
// paths may be granted is the business of package policy.
func inCredentialRoot(path string) bool {
	if !strings.HasPrefix(path, "/") || strings.Contains(path, ":") {
		return false
	}
	if strings.HasPrefix(path, "/run/secrets/") || strings.HasPrefix(path, "/var/run/secrets/") {
		return true
	}
	for _, root := range credentialRoots {
		if strings.Contains(path+"/", root) {
			return true
		}
	}
	return false
}

var credentialRoots = [...]string{"/.ssh/", "/.gnupg/", "/.aws/", "/.azure/", "/.kube/", "/.config/gcloud/", "/.config/gh/",
	"/.docker/config.json/", "/.git-credentials/", "/.netrc/", "/.pgpass/", "/.vault-token/", "/.password-store/"}
