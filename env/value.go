package env

import "strings"

// secretValue says what kind of secret a value looks like, or "". It takes time linear in the length: an environment may
// hold a value of 128 KiB, the kernel's MAX_ARG_STRLEN.
func secretValue(v string) string {
	if len(v) < 8 {
		return "" // shorter than any form below
	}
	if privateKey(v) {
		return "a private key"
	}
	if urlPassword(v) {
		return "a URL with a password"
	}
	if dsnPassword(v) {
		return "a data source name with a password"
	}
	if strings.Contains(v, "AccountKey=") || strings.Contains(v, "SharedAccessKey=") {
		return "a connection string with its key"
	}
	// The path is the whole credential: whoever knows it may post.
	if strings.Contains(v, "hooks.slack.com/services/T") || strings.Contains(v, "discord.com/api/webhooks/") {
		return "a webhook with its key"
	}
	if _, key, ok := strings.Cut(v, "otpauth"); ok && oneTimeKey(key) {
		return "a key of one-time passwords"
	}
	start := true // a token starts where no word is under way; so each run is looked at once, and all is linear
	for i := 0; i < len(v); i++ {
		if start {
			if what := tokenAt(v[i:]); what != "" {
				return what
			}
		}
		start = !isWide(v[i])
	}
	return ""
}

// token is the form of an access token: a prefix and a run of characters.
type token struct {
	prefix string
	what   string
	set    func(byte) bool
	min    int
	exact  bool // the run has min characters, not more
	mixed  bool // and more than one of upper case, lower case and digits: random, not a word
}

// tokens, by name. Forms and lengths are those of the vendors' secret scanning patterns; lengths are least
// ones, since vendors lengthen their tokens.
var tokens = [...]token{
	{prefix: "AKIA", what: "an AWS access key", set: isUpperDigit, min: 16, exact: true},
	{prefix: "ASIA", what: "an AWS access key", set: isUpperDigit, min: 16, exact: true},
	{prefix: "AIza", what: "a Google API key", set: isWide, min: 35},
	{prefix: "AGE-SECRET-KEY-1", what: "an age identity", set: isUpperDigit, min: 50},
	{prefix: "dckr_pat_", what: "a Docker token", set: isWide, min: 20},
	{prefix: "dop_v1_", what: "a DigitalOcean token", set: isAlnum, min: 60},
	{prefix: "ghp_", what: "a GitHub token", set: isAlnum, min: 36},
	{prefix: "gho_", what: "a GitHub token", set: isAlnum, min: 36},
	{prefix: "ghu_", what: "a GitHub token", set: isAlnum, min: 36},
	{prefix: "ghs_", what: "a GitHub token", set: isAlnum, min: 36},
	{prefix: "ghr_", what: "a GitHub token", set: isAlnum, min: 36},
	{prefix: "github_pat_", what: "a GitHub token", set: isWide, min: 36},
	{prefix: "glpat-", what: "a GitLab token", set: isWide, min: 20},
	{prefix: "gldt-", what: "a GitLab token", set: isWide, min: 20},
	{prefix: "glrt-", what: "a GitLab token", set: isWide, min: 20},
	{prefix: "gsk_", what: "a Groq key", set: isAlnum, min: 40},
	{prefix: "hf_", what: "a Hugging Face token", set: isAlnum, min: 30, mixed: true},
	{prefix: "hvs.", what: "a Vault token", set: isWide, min: 24},
	{prefix: "npm_", what: "an npm token", set: isAlnum, min: 36},
	{prefix: "nvapi-", what: "an NVIDIA key", set: isWide, min: 40},
	{prefix: "ops_eyJ", what: "a 1Password token", set: isWide, min: 40},
	{prefix: "pypi-AgE", what: "a PyPI token", set: isWide, min: 40},
	{prefix: "rk_live_", what: "a Stripe key", set: isAlnum, min: 20},
	{prefix: "sk_live_", what: "a Stripe key", set: isAlnum, min: 20},
	{prefix: "sk-ant-", what: "an Anthropic key", set: isWide, min: 20},
	{prefix: "sk-proj-", what: "an OpenAI key", set: isWide, min: 20},
	{prefix: "sk-svcacct-", what: "an OpenAI key", set: isWide, min: 20},
	{prefix: "sk-admin-", what: "an OpenAI key", set: isWide, min: 20},
	{prefix: "sk-or-v1-", what: "an OpenRouter key", set: isAlnum, min: 40},
	{prefix: "sk-", what: "an API key", set: isAlnum, min: 20, mixed: true}, // not sk-learn-contrib-…
	{prefix: "tskey-", what: "a Tailscale key", set: isWide, min: 20},
	{prefix: "xoxa-", what: "a Slack token", set: isWide, min: 10},
	{prefix: "xoxb-", what: "a Slack token", set: isWide, min: 10},
	{prefix: "xoxp-", what: "a Slack token", set: isWide, min: 10},
	{prefix: "xoxr-", what: "a Slack token", set: isWide, min: 10},
	{prefix: "xoxs-", what: "a Slack token", set: isWide, min: 10},
	{prefix: "xapp-", what: "a Slack token", set: isWide, min: 20},
}

// tokenAt says which token s begins with, or "".
func tokenAt(s string) string {
	switch s[0] {
	case 'e':
		if jwt(s) {
			return "a JSON web token"
		}
		return ""
	case 'a', 'A':
		if authorization(s) {
			return "an authorization header"
		}
	case 'd', 'g', 'h', 'n', 'o', 'p', 'r', 's', 't', 'x': // with A all that a prefix begins with; a test compares
	default:
		return ""
	}
	if len(s) < 2 {
		return ""
	}
	for i := range tokens {
		t := &tokens[i]
		if t.prefix[0] == s[0] && t.prefix[1] == s[1] && strings.HasPrefix(s, t.prefix) && t.fits(s[len(t.prefix):]) {
			return t.what
		}
	}
	return ""
}

// fits reports whether s begins with the run of characters that the token has after its prefix.
func (t *token) fits(s string) bool {
	n := run(s, t.set)
	if n < t.min || t.exact && (n > t.min || n < len(s) && isAlnum(s[n])) {
		return false
	}
	if !t.mixed {
		return true
	}
	var upper, lower, digit int
	for i := 0; i < n; i++ {
		switch c := s[i]; {
		case 'A' <= c && c <= 'Z':
			upper = 1
		case 'a' <= c && c <= 'z':
			lower = 1
		case '0' <= c && c <= '9':
			digit = 1
		}
	}
	return upper+lower+digit > 1
}

// jwt: two base64 JSON objects with a dot between; both begin with `{"`, which encodes to eyJ.
func jwt(s string) bool {
	if !strings.HasPrefix(s, "eyJ") {
		return false
	}
	n := run(s, isWide)
	if n < 12 || !strings.HasPrefix(s[n:], ".eyJ") {
		return false
	}
	return run(s[n+1:], isWide) >= 12
}

// authorization: a header in a list of headers, as in GIT_CONFIG_VALUE_0 or OTEL_EXPORTER_OTLP_HEADERS.
func authorization(s string) bool {
	const word = "authorization"
	if len(s) < len(word) || !strings.EqualFold(s[:len(word)], word) {
		return false
	}
	s = strings.TrimLeft(s[len(word):min(len(s), len(word)+32)], " \t:=\"'")
	n := run(s, isAlnum)
	switch strings.ToLower(s[:n]) {
	case "basic", "bearer", "token", "apikey":
	default:
		return false
	}
	s = strings.TrimPrefix(strings.TrimLeft(s[n:], " +"), "%20")
	return run(s, func(c byte) bool { return isAlnum(c) || strings.IndexByte("+/=_-.~", c) >= 0 }) >= 8
}

// privateKey: a PEM block that holds one. A certificate or a public key is none.
func privateKey(v string) bool {
	const begin = "-----BEGIN "
	for {
		_, rest, ok := strings.Cut(v, begin)
		if !ok {
			return false
		}
		if label, _, ok := strings.Cut(rest[:min(len(rest), 64)], "-----"); ok && strings.Contains(label, "PRIVATE KEY") {
			return true
		}
		v = rest
	}
}

// oneTimeKey: what follows otpauth in a key URI, otpauth://totp/name?secret=…, or in an export of several.
func oneTimeKey(rest string) bool {
	return strings.HasPrefix(rest, "://") && strings.Contains(rest, "secret=") ||
		strings.HasPrefix(rest, "-migration://") && strings.Contains(rest, "data=")
}

// urlPassword: scheme://user:password@host anywhere in v, with a password that is there and no placeholder.
func urlPassword(v string) bool {
	for {
		scheme, rest, ok := strings.Cut(v, "://")
		if !ok {
			return false
		}
		v = rest
		if scheme == "" || !isAlnum(scheme[len(scheme)-1]) {
			continue
		}
		// The authority ends at the latest where the next :// begins, so all rounds together are linear.
		authority := rest[:run(rest, func(c byte) bool { return c > ' ' && strings.IndexByte("/?#\"'`<>\\", c) < 0 })]
		at := strings.LastIndexByte(authority, '@')
		if at < 0 {
			continue
		}
		if _, password, ok := strings.Cut(authority[:at], ":"); ok && !placeholder(password) {
			return true
		}
	}
}

// placeholder: nothing, asterisks, or what a shell or a template would still fill in.
func placeholder(password string) bool {
	return strings.Trim(password, "*") == "" || strings.HasPrefix(password, "${") || strings.HasPrefix(password, "{")
}

// dsnPassword: user:password@tcp(host)/db, the form of Go's MySQL driver, which is no URL.
func dsnPassword(v string) bool {
	at := strings.Index(v, "@tcp(")
	if at < 0 {
		at = strings.Index(v, "@unix(")
	}
	if at < 0 {
		return false
	}
	from := strings.LastIndexAny(v[:at], " \t\n\"'/,;") + 1
	user, password, ok := strings.Cut(v[from:at], ":")
	return ok && user != "" && !placeholder(password)
}

// run is the length of the longest prefix of s whose bytes are all in set.
func run(s string, set func(byte) bool) int {
	for i := 0; i < len(s); i++ {
		if !set(s[i]) {
			return i
		}
	}
	return len(s)
}

func isAlnum(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

func isUpperDigit(c byte) bool { return '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' }

// isWide: the alphabet of base64url, which most tokens use.
func isWide(c byte) bool { return isAlnum(c) || c == '_' || c == '-' }
