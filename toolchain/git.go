package toolchain

import (
	"strings"

	"github.com/selfcage/selfcage/internal/hostfs"
)

// git shows what the repository of the working directory has elsewhere: the git directory of a worktree or submodule,
// and the object stores that it borrows from.
func (f *finder) git() {
	if f.Dir == "" || f.Dir == "/" {
		return
	}
	root, extra := Checkout(f.View, f.Dir)
	for _, g := range extra {
		f.tree(g.Path, "the git directory of "+root+": without it git finds no repository")
		f.alternates(g.Path+"/objects", 0)
	}
	if len(extra) == 0 {
		f.alternates(hostfs.Join(root, ".git")+"/objects", 0)
	}
}

// alternates shows the object stores that a repository borrows from (git clone --shared or --reference). The file is the
// repository's own word, so what it names must look like an object store.
func (f *finder) alternates(objects string, depth int) {
	text, ok := f.small(objects + "/info/alternates")
	if !ok || depth > 5 { // git's own limit
		return
	}
	for _, l := range lines(text) {
		if l[0] == '#' {
			continue
		}
		p := f.resolve(unquote(l), objects)
		r, err := f.walk(p)
		if err != nil || !r.Info.IsDir() || !f.exists(p, "pack") && !f.exists(p, "info") {
			continue
		}
		if _, ok := f.tree(p, "git borrows objects from it: without it commits cannot be read"); ok {
			f.alternates(r.Path, depth+1)
		}
	}
}

// gitSections are the sections of a git configuration that say how git behaves. Those that hold credentials or name
// programs which ask for them are not among them: credential, http, url, sendemail, the names of forges.
var gitSections = [...]string{"user", "mailmap", "author", "committer", "safe", "core", "init", "pull", "push", "fetch", "merge", "rebase",
	"rerere", "diff", "color", "column", "commit", "tag", "branch", "log", "format", "status", "grep", "blame", "alias", "advice",
	"i18n", "filter", "submodule", "feature", "index", "pack", "gc", "maintenance", "protocol", "apply", "stash", "interactive", "difftool", "mergetool", "gpg"}

// gitConfig carries the caller's git settings by a copy without secrets. As variables they would override the
// repository's own settings; as a file in HOME they come where they belong.
func (f *finder) gitConfig() {
	if f.env["GIT_CONFIG_GLOBAL"] != "" {
		if text, ok := f.small(f.env["GIT_CONFIG_GLOBAL"]); ok && !holdsSecret(text) {
			f.tree(f.env["GIT_CONFIG_GLOBAL"], "git's settings")
		}
		return
	}
	var b strings.Builder
	for _, p := range [...]string{f.config("git/config"), f.inHome(".gitconfig")} {
		f.copyGitConfig(&b, p, 0)
	}
	if b.Len() > 0 {
		f.out.Files = append(f.out.Files, File{Name: ".gitconfig", Data: []byte(b.String()), By: f.by,
			Why: "who the author is, what git trusts and how it behaves; without credentials"})
	}
	const why = "git's list of ignored files: without it others are untracked"
	for _, name := range [...]string{"ignore", "attributes"} {
		if p := f.config("git/" + name); p != "" && f.is(p) {
			f.atHome(p, ".config/git/"+name, why)
		}
	}
}

func (f *finder) copyGitConfig(b *strings.Builder, p string, depth int) {
	text, ok := f.small(p)
	if !ok || depth > 4 {
		return
	}
	section, keep, include := "", false, false
	continued, skip := false, false
	for l := range strings.SplitSeq(text, "\n") {
		l = strings.TrimRight(l, "\r")
		t := strings.TrimSpace(l)
		if continued {
			continued = strings.HasSuffix(l, `\`)
			if !skip {
				b.WriteString(l + "\n")
			}
			continue
		}
		if strings.HasPrefix(t, "[") {
			end := strings.LastIndexByte(t, ']')
			if end < 0 {
				return // git would refuse it
			}
			section = t[1:end]
			name, _, _ := strings.Cut(section, " ")
			name, _, _ = strings.Cut(strings.ToLower(name), ".")
			keep = contains(gitSections[:], name) && !holdsSecret(t)
			include = name == "include" || name == "includeif" && f.included(section)
			if keep {
				b.WriteString(t[:end+1] + "\n")
			}
			if t = strings.TrimSpace(t[end+1:]); t == "" {
				continue
			}
			l = "\t" + t
		}
		key, value, _ := strings.Cut(t, "=")
		key, value = strings.ToLower(strings.TrimSpace(key)), strings.TrimSpace(value)
		continued, skip = strings.HasSuffix(l, `\`), true
		switch {
		case t == "" || t[0] == '#' || t[0] == ';':
			continued = false
		case include && key == "path":
			f.copyGitConfig(b, f.gitPath(unquote(value), p), depth+1)
		case !keep || holdsSecret(value) || key == "askpass" || key == "sshcommand" || key == "gitproxy" || key == "fsmonitor":
		case gitPathKey(key) && strings.HasPrefix(unquote(value), "~/"):
			// HOME is another one inside.
			p := f.inHome(unquote(value)[2:])
			if _, ok := f.tree(p, "git's "+key+", which the settings name"); ok {
				b.WriteString("\t" + key + " = \"" + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(p) + "\"\n")
			}
		case gitPathKey(key) && strings.HasPrefix(unquote(value), "/"):
			f.tree(unquote(value), "git's "+key+", which the settings name")
			skip = false
			b.WriteString(l + "\n")
		default:
			skip = false
			b.WriteString(l + "\n")
		}
	}
}

// gitPathKey says whether the value of a key is the path of something that git reads. A missing one is no error for it: files
// that were ignored are then untracked, and hooks do not run.
func gitPathKey(key string) bool {
	switch key {
	case "excludesfile", "attributesfile", "hookspath", "templatedir", "template", "allowedsignersfile", "ignorerevsfile", "mailmap":
		return true
	}
	return false
}

// gitPath is a path of a git configuration file.
func (f *finder) gitPath(p, file string) string {
	if rest, ok := strings.CutPrefix(p, "~/"); ok {
		return f.inHome(rest)
	}
	return clean(hostfs.Abs(p, hostfs.Parent(file)))
}

// included says whether includeIf "gitdir:PATH" applies, where PATH is a directory without a pattern in it.
func (f *finder) included(section string) bool {
	_, cond, _ := strings.Cut(section, " ")
	cond = unquote(strings.TrimSpace(cond))
	p, ok := strings.CutPrefix(cond, "gitdir:")
	if !ok {
		if p, ok = strings.CutPrefix(cond, "gitdir/i:"); !ok {
			return false
		}
	}
	p = strings.TrimSuffix(p, "**")
	if rest, ok := strings.CutPrefix(p, "~/"); ok {
		p = f.inHome(rest)
	}
	if !strings.HasPrefix(p, "/") || f.Dir == "" {
		return false
	}
	dir := strings.TrimRight(p, "/")
	if r, err := f.walk(dir); err == nil {
		dir = r.Path
	}
	root, _ := Checkout(f.View, f.Dir)
	if strings.HasSuffix(p, "/") {
		return hostfs.Within(hostfs.Join(root, ".git"), dir) && f.exists(root, ".git")
	}
	return hostfs.Join(root, ".git") == dir
}
