package policyfile

import (
	"slices"
	"strings"

	"github.com/selfcage/selfcage/policy"
)

// known are the tokens that every policy may use: what each is, and where a value comes from where there is none.
var known = []struct{ name, what, from string }{
	{"exe_dir", "the directory of the program that the run starts, without links",
		"it is the directory of the program that the run starts"},
	{"model_dir", "whoever starts the run says", given},
	{"scratch_dir", "whoever starts the run says", given},
	{"hf_cache", "the Hugging Face cache: HF_HOME, else huggingface in XDG_CACHE_HOME or in ~/.cache", "set HF_HOME, or HOME"},
	{"cwd", "the working directory", "it is the working directory, which cannot be found"},
	{"home", "the home, as HOME says", "set HOME"},
	{"repo", "the top of the version control checkout that the working directory lies in",
		"run in a version control checkout, or write the path in full"},
}

const given = "pass --define NAME=PATH, or let the host program give it in Options.Tokens"

// path is the path that n says, its token replaced by the value.
func (d *decoder) path(n *node) (string, error) {
	s := n.text
	switch {
	case s[0] == '~':
		return "", d.tilde(n)
	case s[0] == '{':
		return d.expand(n)
	case s[0] != '/':
		return "", d.fail(n.at, "the path "+quote(s)+" is relative", "write it in full, or begin it with a token such as {cwd}, {repo} or {home}")
	}
	return s, d.plain(n, s)
}

func (d *decoder) tilde(n *node) error {
	hint := "~ means the home only to a shell"
	if rest := n.text[1:]; rest == "" || rest[0] == '/' {
		hint = "write " + quote("{home}"+rest)
	}
	return d.fail(n.at, "the path "+quote(n.text)+" begins with ~", hint)
}

// expand replaces the token that the path of n begins with.
func (d *decoder) expand(n *node) (string, error) {
	name, rest, ok := strings.Cut(n.text[1:], "}")
	if !ok {
		return "", d.fail(n.at, "the path "+quote(n.text)+" begins with { and has no }", "a token is written {NAME}")
	}
	value, from, err := d.token(n, name)
	if err != nil {
		return "", err
	}
	switch {
	case rest != "" && rest[0] != '/':
		return "", d.fail(n.at, "after the token {"+name+"} comes neither / nor the end of the path", "")
	case value == "":
		return "", d.fail(n.at, "the token {"+name+"} has no value here", from)
	case value[0] != '/' || strings.IndexByte(value, 0) >= 0:
		return "", d.fail(n.at, "the value of the token {"+name+"} is no absolute path: "+quote(value), from)
	}
	if value == "/" && rest != "" {
		value = ""
	}
	return value + rest, d.plain(n, rest)
}

// token returns the value of a token, and where one comes from that has none.
func (d *decoder) token(n *node, name string) (value, from string, err error) {
	var names []string
	for _, k := range known {
		if k.name == name {
			return d.tokens[name], k.from, nil
		}
		names = append(names, k.name)
	}
	if value, ok := d.tokens[name]; ok {
		return value, given, nil
	}
	for t := range d.tokens {
		if !slices.Contains(names, t) {
			names = append(names, t)
		}
	}
	slices.Sort(names)
	hint := "known are {" + strings.Join(names, "}, {") + "}"
	if near := policy.Nearest(name, names); near != "" {
		hint = "did you mean {" + near + "}?"
	}
	return "", "", d.fail(n.at, "unknown token "+quote("{"+name+"}"), hint)
}

// plain refuses what would make a path another one than it looks like: ".." (behind a link it is elsewhere), and a token
// where none is replaced.
func (d *decoder) plain(n *node, s string) error {
	if slices.Contains(strings.Split(s, "/"), "..") {
		return d.fail(n.at, "the path "+quote(n.text)+` has a ".." in it`, "write where it leads")
	}
	for rest := s; ; {
		_, after, ok := strings.Cut(rest, "{")
		if !ok {
			return nil
		}
		name, _, closed := strings.Cut(after, "}")
		if closed && isWord(name) {
			return d.fail(n.at, "the token "+quote("{"+name+"}")+" is not at the beginning of its path",
				"a token is an absolute path, so only / and more can follow it")
		}
		rest = after
	}
}

// isWord tells whether s could be the name of a token.
func isWord(s string) bool {
	return s != "" && strings.Trim(strings.ToLower(s), "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
}
