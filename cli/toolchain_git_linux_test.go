package cli_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/selfcage/selfcage/internal/sandtest"
)

// gitState is what git knows of a repository; without its parts elsewhere it says that there is none, or other things.
const gitState = `git status --porcelain=v2 --branch && git log --all --format="%H %an <%ae> %s" && git rev-parse --show-toplevel --git-common-dir --absolute-git-dir && git submodule status --recursive && git cat-file -p HEAD:f && git diff --stat && git fsck --no-dangling 2>&1`

// hosts.md 8, toolchains.md: a worktree, a submodule and a borrowed object store are the same repository inside.
func TestToolchainGitLayouts(t *testing.T) {
	sandtest.Need(t, sandtest.Git)
	s := newSite(t, nil).plant()
	s.write(s.home+"/.gitconfig", "[user]\n\tname = A U Thor\n\temail = author@example.com\n[protocol \"file\"]\n\tallow = always\n", 0o644)
	s.at(s.root).sh(`set -e
mkdir src && cd src
git init -q -b main sub && (cd sub && echo s >f && git add f && git commit -qm "of sub")
git init -q -b main main && cd main
echo m >f && git add f && git commit -qm "of main"
git submodule -q add "$PWD/../sub" mod && git commit -qm "with a submodule"
git worktree add -q -b topic ../tree
(cd ../tree && git submodule -q update --init)
cd .. && git clone -q --shared main borrowed && git clone -q --reference main --no-local main again && git clone -q --shared borrowed twice
mkdir main/deep tree/deep
echo changed >>tree/f; echo new >main/untracked
`).ok()
	for _, dir := range []string{"main", "main/deep", "main/mod", "tree", "tree/deep", "tree/mod", "borrowed", "again", "twice"} {
		e := s.at(s.root + "/src/" + dir)
		out := e.same("--", "sh", "-c", gitState)
		if !strings.Contains(out, " A U Thor <author@example.com> of ") {
			t.Errorf("%s: %q", dir, out)
		}
		e.noSecrets()
	}
	s.at(s.root+"/src/tree").readOnly(s.root+"/src/main/.git", s.root+"/src/main/.git/objects")
	// In a checkout that is granted commits are made, by their author.
	e := s.at(s.root + "/src/borrowed")
	e.run("--write", ".", "--", "sh", "-c", `git config user.name; git config user.email; echo x >>f && git commit -qam inside && git log -1 --format="%an <%ae> %cn %s"`).
		ok().silent().prints("A U Thor\nauthor@example.com\nA U Thor <author@example.com> A U Thor inside\n")
	if out := e.sh("git log -1 --format='%an %s'; git status --porcelain").ok().out; out != "A U Thor inside\n" {
		t.Errorf("on the host: %q", out)
	}
}

// hosts.md 9: who the author is, what git trusts and ignores come along; credentials in the same files do not.
func TestToolchainGitConfig(t *testing.T) {
	sandtest.Need(t, sandtest.Git)
	s := newSite(t, nil).plant()
	s.sh("git init -q -b main . && echo a >a && git add a && git -c user.name=x -c user.email=x@y commit -qm first && touch seen ignored.tmp").ok()
	s.write(s.home+"/.gitconfig", `[user]
	name = "A \"U\" Thor"
	email = author@example.com ; a comment
	signingkey = ABCD
[core]
	excludesFile = ~/.gitignore_global
	hooksPath = `+s.home+`/.githooks
[alias]
	st = status --porcelain
	long = log \
		--oneline
[credential]
	helper = "!echo password=`+homeSecret+`"
[credential "https://example.com"]
	username = somebody
[http]
	extraHeader = "Authorization: `+homeSecret+`"
[url "https://somebody:`+homeSecret+`@example.com/"]
	insteadOf = https://example.com/
[include]
	path = more.inc
[includeIf "gitdir:`+s.root+`/"]
	path = ~/here.inc
[includeIf "gitdir:/elsewhere/"]
	path = ~/there.inc
[safe]
	directory = *
`, 0o644)
	s.write(s.home+"/more.inc", "[pull]\n\trebase = true\n[credential]\n\thelper = "+homeSecret+"\n", 0o644)
	s.write(s.home+"/here.inc", "[user]\n\temail = here@example.com\n", 0o644)
	s.write(s.home+"/there.inc", "[user]\n\temail = there@example.com\n", 0o644)
	s.write(s.home+"/.gitignore_global", "*.tmp\n", 0o644)
	s.write(s.home+"/.githooks/pre-commit", "#!/bin/sh\necho the hook >&2\n", 0o755)
	for _, key := range []string{"user.name", "user.email", "alias.st", "alias.long", "pull.rebase", "safe.directory", "core.hooksPath"} {
		s.same("--", "git", "config", key)
	}
	if out := s.same("--", "git", "st"); out != "?? seen\n" {
		t.Errorf("%q", out)
	}
	r := s.run("--", "sh", "-c", `git config --list; cat ~/.gitconfig; ls -a ~ "$1"; cat "$1/.gitconfig" "$1/more.inc" "$1/.git-credentials"; env`, "sh", s.home)
	r.hasNot(homeSecret, "password=", "username", "there@").has("here@example.com", "pull.rebase=true")
	s.run("--write", ".", "--", "git", "commit", "--allow-empty", "-qm", "x").ok().says("the hook")
	s.noSecrets()
	if os.Getuid() == 0 { // somebody else's repository, as on shared trees
		must(t, filepath.WalkDir(s.dir, func(p string, _ os.DirEntry, err error) error { return os.Lchown(p, 4711, 4711) }))
		s.same("--", "git", "log", "--format=%H")
	}
	// XDG's place, alone.
	must(t, os.Remove(s.home+"/.gitconfig"))
	s.write(s.home+"/.config/git/config", "[user]\n\tname = By XDG\n[safe]\n\tdirectory = *\n", 0o644)
	s.write(s.home+"/.config/git/ignore", "seen\n*.tmp\n", 0o644)
	for _, e := range []*site{s, s.setenv("XDG_CONFIG_HOME=" + s.home + "/.config")} {
		e.same("--", "git", "config", "user.name")
		if out := e.same("--", "git", "status", "--porcelain"); out != "" {
			t.Errorf("%q", out)
		}
	}
}

// toolchains.md B12: direnv remembers what is allowed by path and content, in HOME.
func TestToolchainDirenv(t *testing.T) {
	s := newSite(t, nil).plant()
	direnv := s.need("direnv")
	s.write(".envrc", "export FROM_ENVRC='of this project'\n", 0o644)
	s.mkdir("deep")
	s.command(direnv, "allow", s.dir).ok()
	for _, e := range []*site{s, s.at(s.path("deep")), s.setenv("XDG_DATA_HOME=" + s.home + "/.local/share")} {
		if out := e.same("--", "direnv", "exec", ".", "sh", "-c", `echo "$FROM_ENVRC"`); out != "of this project\n" {
			t.Errorf("%q", out)
		}
	}
	s.write(".envrc", "echo not allowed any more\n", 0o644)
	if r := s.run("--", "direnv", "exec", ".", "true"); r.status == 0 || !strings.Contains(r.err, "blocked") {
		t.Errorf("status %d: %s", r.status, r.err)
	}
	s.noSecrets()
}

// Issue 3, item 5: make's jobserver through a wrapper, by descriptors and by a fifo.
func TestToolchainMake(t *testing.T) {
	s := newSite(t, nil).plant()
	s.need("make")
	s.write("Makefile", "all:\n\t+selfcage run --quiet --write . -- $(MAKE) -f sub.mk\n", 0o644)
	// The four jobs wait for each other in pairs: with one job at a time the first would wait in vain.
	s.write("sub.mk", "all: a b\na b:\n\t@touch $@.here; for i in $$(seq 100); do if [ -e a.here ] && [ -e b.here ]; then echo both; exit; fi; sleep 0.05; done; echo alone\n.PHONY: all a b\n", 0o644)
	r := s.command("/usr/bin/make", "-s", "-j2").ok()
	if r.out != "both\nboth\n" || strings.Contains(r.err, "jobserver") {
		t.Errorf("%q %q", r.out, r.err)
	}
	s.setenv("MAKEFLAGS= -j2 --jobserver-auth=3,4").noSecrets()
}

// Issue 3, item 5: one rank of several gets what keeps Open MPI from shared memory between cages; everybody else does not, and who
// said otherwise is obeyed.
func TestToolchainRanks(t *testing.T) {
	s := newSite(t, nil).plant()
	show := []string{"--", "sh", "-c", `echo "$OMPI_MCA_btl $PMIX_MCA_gds $OMPI_COMM_WORLD_RANK $OMPI_COMM_WORLD_SIZE $PMIX_RANK"`}
	rank := s.setenv("OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2", "PMIX_RANK=1")
	rank.run(show...).ok().silent().prints("^vader hash 1 2 1\n")
	rank.setenv("OMPI_MCA_btl=tcp,self").run(show...).ok().prints("tcp,self hash 1 2 1\n")
	s.run(show...).ok().prints("    \n")
	s.setenv("OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=1").run(show...).ok().prints("  0 1 \n")
	rank.selfcage("explain").ok().has("OMPI_MCA_btl", "toolchain/launcher: one MPI rank of several")
	rank.noSecrets()
}

// What lies in a checkout is not the caller's word: no file of it gets letters shown, by whatever tool reads it.
func TestToolchainHostileTree(t *testing.T) {
	s := newSite(t, nil).plant()
	version, _ := s.systemPython()
	letters, letter, doc := s.home+"/letters", s.home+"/letters/a.txt", s.home+"/Documents/b.txt"
	site := s.path(".venv/lib/python"+version, "site-packages")
	s.write(".git/HEAD", "ref: refs/heads/main\n", 0o644)
	s.mkdir(".git/refs")
	s.write(".git/objects/info/alternates", letters+"\n"+s.home+"/.ssh\n", 0o644)
	s.write(".git/config", "[core]\n\texcludesFile = "+letter+"\n\tworktree = "+letters+"\n[include]\n\tpath = "+letter+"\n", 0o644)
	s.write(".venv/pyvenv.cfg", "home = "+letters+"\nexecutable = "+letter+"\nbase-prefix = "+s.home+"/Documents\n", 0o644)
	s.link("/usr/bin/python3", s.path(".venv/bin/python"))
	s.link(letters, s.path(".venv/bin/letters"))
	s.link(letter, s.path(".venv/bin/python3"))
	s.link(letters, s.path("venv"))
	s.write(site+"/a.pth", letters+"\n"+s.home+"\n"+s.home+"/.ssh\n"+doc+"\n", 0o644)
	s.link(letters, site+"/letters")
	s.write(s.path("tool"), "#!"+letter+"\n", 0o755)
	s.write(s.path("wrapper"), "#!/bin/sh\nexec "+letter+"\n", 0o755)
	for _, name := range []string{".python-version", ".nvmrc", ".node-version", ".tool-versions", "rust-toolchain", ".envrc", ".java-version",
		"go.sum", "go.work.sum", "package.json", "mise.toml", ".cargo/config.toml", "node_modules/x", ".pnp.cjs"} {
		s.link(letter, s.path(name))
	}
	s.link(letters, s.path("node_modules/letters"))
	s.link(letters, s.path("node_modules/@a/letters"))
	s.write("go.mod", "module x\n\nreplace y => "+letters+"\n\nreplace z => ../home/Documents\n", 0o644)
	s.write("go.work", "go 1.21\n\nuse "+letters+"\n", 0o644)
	s.write("Cargo.toml", "[dependencies]\nx = { path = \""+letters+"\" }\n", 0o644)
	s.write("rust-toolchain.toml", "[toolchain]\npath = \""+letters+"\"\n", 0o644)
	for _, tool := range []string{"go", "cargo", "node", "npm", "uv", "direnv", "java", "rustc"} {
		s.tool(s.root+"/tools/bin/"+tool, "x")
	}
	for _, d := range []string{".nvm", ".pyenv/shims", ".asdf/shims", ".local/share/mise/shims", ".volta/bin", ".cargo/bin", ".jenv/shims"} {
		s.tool(filepath.Join(s.home, d, "x"), "x")
	}
	e := s.path0(s.path(".venv/bin"), s.root+"/tools/bin", s.home+"/.pyenv/shims", s.home+"/.asdf/shims", s.home+"/.local/share/mise/shims",
		s.home+"/.volta/bin", s.home+"/.cargo/bin", s.home+"/.jenv/shims").setenv("NVM_DIR=" + s.home + "/.nvm")
	for _, cmd := range [][]string{{"sh"}, {"./tool"}, {"./wrapper"}, {"python"}, {"go"}, {"npm"}} {
		text := e.selfcage(append([]string{"explain", "--"}, cmd...)...).ok().out
		for _, l := range strings.Split(text, "\n") {
			if regexp.MustCompile(`^ +(ro|rw|dir) `).MatchString(l) && (strings.Contains(l, letters) || strings.Contains(l, "/Documents")) {
				t.Errorf("%q: %s", cmd, l)
			}
		}
	}
	e.noSecrets()
	s.noSecrets()
}

// hosts.md 1 to 3: an argument that names what is not there, and a result that ends with the cage.
func TestToolchainNotes(t *testing.T) {
	s := newSite(t, nil).plant()
	s.systemPython()
	input := s.write(s.root+"/other/input.txt", "x\n", 0o644)
	script := s.write("tool.py", "import sys\nprint(len(sys.argv))\n", 0o644)
	r := s.selfcage("run", "--", "python3", script, input, "--out=/tmp/result.xml", s.home+"/letters/a.txt").ok()
	r.says(input+" names a file that is not visible inside", "--out=/tmp/result.xml lies in a place that ends with the cage", s.home+"/letters/a.txt names a file")
	if strings.Contains(r.err, "tool.py") {
		t.Errorf("a note about what is visible:\n%s", r.err)
	}
	s.selfcage("run", "--read", input, "--", "cat", input).ok().prints("x\n").silent()
	s.noSecrets("--read", input)
}
