package cli_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/selfcage/selfcage/internal/sandtest"
)

// gitSite is a site whose project is a checkout with a hook and two commits.
func gitSite(t testing.TB) *site {
	t.Helper()
	sandtest.Need(t, sandtest.Bwrap, sandtest.Cage, sandtest.Git)
	s := newSite(t, nil).setenv("GIT_AUTHOR_DATE=2026-01-02T03:04:05Z", "GIT_COMMITTER_DATE=2026-01-02T03:04:05Z")
	s.write(s.home+"/.gitconfig", "[user]\n\tname = A U Thor\n\temail = author@example.com\n[protocol \"file\"]\n\tallow = always\n", 0o644)
	s.sh(`git init -q -b main --template= . && echo one >f && git add f && git commit -qm one && echo two >>f && git commit -qam two`).ok()
	s.write(".git/hooks/pre-commit", "#!/bin/sh\nexit 0\n", 0o755)
	return s
}

// digest is all that lies at paths, below the project directory where they are relative, but for times: a run may come and go
// in a directory.
func (s *site) digest(paths ...string) (list []string) {
	s.t.Helper()
	for _, root := range paths {
		if !filepath.IsAbs(root) {
			root = s.path(root)
		}
		must(s.t, filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
			if err != nil {
				if p == root {
					list = append(list, p+" missing")
					return nil
				}
				return err
			}
			fi, err := d.Info()
			if err != nil {
				return err
			}
			text := ""
			switch {
			case d.Type() == fs.ModeSymlink:
				text, err = os.Readlink(p)
			case d.Type().IsRegular():
				var data []byte
				data, err = os.ReadFile(p)
				text = string(data)
			}
			list = append(list, fmt.Sprintf("%s %v %q", p, fi.Mode(), text))
			return err
		}))
	}
	return list
}

// unchanged fails the test unless paths are as they were.
func (s *site) unchanged(before []string, paths ...string) {
	s.t.Helper()
	if diff := cmp.Diff(before, s.digest(paths...)); diff != "" {
		s.t.Errorf("changed (-before +after):\n%s", diff)
	}
}

// attacks tries all that puts other content at each path, and prints one line for each attempt: "refused" with what the kernel
// said, or "DONE". The paths may be of files, of directories, or missing.
const attacks = `
try() { [ ! -e away ] || rm -rf away; if out=$("$@" 2>&1); then echo "DONE: $*"; else echo "refused: $* : $(printf %s "$out" | tr '\n' ' ')"; fi; }
put() { echo evil >"$1"; }
add() { echo evil >>"$1"; }
mkdir -p evil-dir && echo evil >evil-file && echo evil >evil-dir/pre-commit
for p; do
	if [ -d "$p" ]; then
		try put "$p/new"
		try mkdir "$p/newdir"
		try ln -s "$PWD/evil-file" "$p/newlink"
		for f in "$p"/*; do [ ! -f "$f" ] || { try put "$f"; try rm -f "$f"; try mv -f evil-file "$f"; try ln -f evil-file "$f"; try chmod 777 "$f"; }; done
		try cp evil-file "$p/copied"
		try rmdir "$p"
	else
		try put "$p"
		try add "$p"
		try truncate -s 1 "$p"
		try cp --remove-destination evil-file "$p"
		try sed -i s/./x/ "$p"
	fi
	try rm -rf "$p"
	try mv -fT "$p" away
	try mv -fT evil-file "$p"
	try mv -fT evil-dir "$p"
	try mv -fT --backup=simple evil-file "$p"
	try ln -f evil-file "$p"
	try ln -sfnT evil-dir "$p"
	beside=$(dirname "$p")/evil-beside
	if cp evil-file "$beside" 2>/dev/null; then try mv -fT "$beside" "$p"; try ln -f "$beside" "$p"; rm -f "$beside"; fi
	try mkdir "$p"
	try mkfifo "$p"
	try chmod 777 "$p"
	try touch -d 2001-01-01 "$p"
done
echo attempted`

// refusalText is what the kernel, or the tool on its behalf, says of a path that is a read-only mount. Of what stands for
// something missing it may say first that the mode does not allow it.
var refusalText = regexp.MustCompile(`Read-only file system|Device or resource busy|File exists|cannot overwrite|Invalid cross-device link|(config\.worktree|commondir|missing|new|hgrc|hgrc-not-shared)'?( for writing)?: Permission denied`)

// attack runs attacks on paths in the cage, in the project directory, and fails the test where one of them succeeded. An
// attack that is refused for another reason than the mount proves nothing.
func (s *site) attack(flags []string, paths ...string) {
	s.t.Helper()
	words := append(slices.Clone(flags), "--", "bash", "-c", attacks, "bash")
	s.attempted(s.run(append(words, paths...)...).ok().out)
}

func (s *site) attempted(out string) {
	s.t.Helper()
	n := 0
	for line := range strings.Lines(out) {
		switch {
		case strings.HasPrefix(line, "DONE"):
			s.t.Errorf("%s", line)
		case strings.HasPrefix(line, "refused"):
			if n++; !refusalText.MatchString(line) {
				s.t.Errorf("not by the mount: %s", line)
			}
		}
	}
	if n < 15 || !strings.HasSuffix(out, "attempted\n") {
		s.t.Errorf("%d attempts:\n%s", n, out)
	}
}

// Issue 4, item 1: what makes git run a command stays as it is, whatever is tried, and what lies beside it can be written.
func TestProtectAttacks(t *testing.T) {
	s := gitSite(t)
	s.write(".husky/_/pre-commit", "#!/bin/sh\nexit 0\n", 0o755)
	s.write(".husky/keep", "x\n", 0o644)
	s.write("tools/git.inc", "[alias]\n\tx = status\n", 0o644)
	s.sh(`git config core.hooksPath .husky/_ && git config include.path ../tools/git.inc && mkdir sub && echo kept >sub/f`).ok()
	protected := []string{".git/hooks/pre-commit", ".git/hooks", ".git/config", ".git/config.worktree", ".git/commondir", ".husky/_", ".husky/_/pre-commit", "tools/git.inc"}
	before := s.digest(".git", ".husky", "tools")
	s.attack([]string{"--write", "."}, protected...)
	s.unchanged(before, ".git", ".husky", "tools")
	// What they lie in cannot be renamed or removed; a write beside them is nobody's business.
	r := s.run("--write", ".", "--", "bash", "-c", `rm -rf away; mkdir -p evil-dir; for d in .git .husky tools; do mv $d away; mv -T evil-dir $d; ln -sfnT evil-dir $d; rm -rf $d; rmdir $d; ls -d $d; done
rm -rf .git/refs/heads/../../ORIG_HEAD; echo ok >.git/description; echo ok >tools/beside; echo ok >.husky/beside; echo ok >sub/f; mv sub sub2; echo done`).ok()
	r.has("done").says("cannot move '.git' to 'away'", "cannot move 'tools' to 'away'", "cannot move '.husky' to 'away'", "resource busy")
	for name, want := range map[string]string{"tools/beside": "ok\n", "sub2/f": "ok\n", ".husky/_/pre-commit": "#!/bin/sh\nexit 0\n"} {
		if got := read(t, s.path(name)); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// Where there are no hooks at all, none can be made, and a missing directory of core.hooksPath neither.
func TestProtectMissing(t *testing.T) {
	s := gitSite(t)
	s.sh(`rm -rf .git/hooks && git config core.hooksPath .husky/_`).ok()
	s.write(".hg/requires", "store\n", 0o644)
	before := s.digest(".")
	s.attack([]string{"--write", "."}, ".git/hooks", ".git/commondir", ".husky", ".hg/hgrc", ".hg/hgrc-not-shared", ".hg/requires")
	r := s.run("--write", ".", "--", "sh", "-c", `mkdir -p .husky/_ && echo made; echo x >.git/hooks/pre-commit && echo made; ls -A .git/hooks .husky; rm -rf evil-file evil-dir`)
	r.hasNot("made\n", "pre-commit\n").says(".husky/_", ".git/hooks/pre-commit: Read-only file system")
	s.unchanged(before, ".")
}

// git itself works in the cage as it does outside: the same answers, the same commits, the same refs.
func TestProtectGitWorks(t *testing.T) {
	s := gitSite(t)
	s.sh(`git clone -q . ../other && cd ../other && git checkout -q -b far && echo far >far && git add far && git commit -qm far`).ok()
	s.write(".gitignore", "evil-*\n", 0o644)
	const work = `git status --short --branch; echo three >>f; echo new >g; git add f g; git diff --cached --stat; git commit -qm three; git log --format="%H %s"
git checkout -q -b topic; echo t >t; git add t; git commit -qm topic; git checkout -q main; echo m >m; git add m; git commit -qm on-main
echo dirty >>f; git stash -q; git status --short; git stash pop -q; git diff --stat; git checkout -q f
git tag v1; git tag -a v2 -m annotated; git fetch -q ../other far && git log -1 --format=%s FETCH_HEAD
git merge -q --no-edit topic; git checkout -q -b rebased v1; echo r >r; git add r; git commit -qm r; git rebase -q main; git log --format="%H %P %s"
git checkout -q main; git worktree add -q wt rebased; git -C wt status --short --branch; (cd wt && echo w >w && git add w && git commit -qm w && git log -1 --format="%H %s")
git worktree list --porcelain; git worktree remove wt; git gc -q; git fsck --no-dangling; git reflog --format="%H %gs"; git for-each-ref; git submodule status; git cherry-pick FETCH_HEAD >/dev/null; git revert --no-edit HEAD >/dev/null; git reset -q --hard HEAD~1; git log --format=%s; git show-ref; git blame -s f; git clean -ndx`
	s.sh(`cp -a . ../copy`).ok()
	outside := s.sh(work).ok()
	refs := s.sh(`git for-each-ref && git status --porcelain --ignored && cat .git/config`).ok().out
	s.sh(`rm -rf ../proj/* .git .gitignore && cp -a ../copy/. . && ls -A .git | sort >../before`).ok()
	inside := s.run("--write", ".", "--read", "../other", "--", "bash", "-c", work).ok()
	if diff := cmp.Diff(outside.out, inside.out); diff != "" || !strings.Contains(outside.out, "refs/tags/v2") {
		t.Errorf("git says (-outside +inside):\n%s", diff)
	}
	if diff := cmp.Diff(outside.err, inside.err); diff != "" {
		t.Errorf("on standard error (-outside +inside):\n%s", diff)
	}
	if got := s.sh(`git for-each-ref && git status --porcelain --ignored && cat .git/config; ls .git/commondir .git/config.worktree 2>/dev/null; true`).ok().out; got != refs {
		t.Errorf("the repository: (-outside +inside):\n%s", cmp.Diff(refs, got))
	}
}

// What changes the configuration fails with git's own message, and works where the operator grants it by its name.
func TestProtectGitConfig(t *testing.T) {
	s := gitSite(t)
	before := s.digest(".git/config")
	for _, words := range [][]string{{"git", "config", "x.y", "z"}, {"git", "remote", "add", "origin", "/x"}, {"git", "config", "--unset", "core.bare"}} {
		if r := s.run(append([]string{"--write", ".", "--"}, words...)...); r.status == 0 || !strings.Contains(r.err, "could not write config file") {
			t.Errorf("%q: %d %s", words, r.status, r.err)
		}
	}
	s.unchanged(before, ".git/config")
	s.run("--write", ".", "--write", ".git/config", "--", "git", "config", "x.y", "z").ok().silent()
	if got := s.sh("git config x.y").ok().out; got != "z\n" {
		t.Errorf("%q", got)
	}
	s.attack([]string{"--write", ".", "--write", ".git/config"}, ".git/hooks", ".git/commondir")
	// One who grants less than that still cannot.
	s.run("--write", ".", "--write", ".git/config", "--protect", ".git/config", "--", "git", "config", "x.y", "w").is(4).says("could not write config file")
}

// While the run lasts git works on the host, and so do other runs: what stands for commondir says what git would do anyway.
func TestProtectHostWorks(t *testing.T) {
	s := gitSite(t)
	report := `git status --short --branch; git log --format=%s; git rev-parse --show-toplevel HEAD; git stash list; git worktree list; git branch -a`
	before := s.sh(report).ok().out
	r := s.begin("run", "--quiet", "--write", ".", "--", "sh", "-c", "echo up; read x; git log --format=%s; cat h")
	r.line("up")
	if !exists(s.path(".git/commondir")) {
		t.Fatal("nothing stands for commondir: the test shows nothing")
	}
	if got := s.sh(report).ok().silent().out; got != before {
		t.Errorf("%s", cmp.Diff(before, got))
	}
	s.sh(`echo h >h && git add h && git commit -qm from-host && git stash list && git checkout -q -b host && git worktree add -q ../hwt && git -C ../hwt status --short && git gc -q && git worktree remove ../hwt && git fsck --no-dangling`).ok().silent()
	fmt.Fprintln(r.in)
	if got := r.ends(); got != "from-host\ntwo\none\nh\n" {
		t.Errorf("inside: %q", got)
	}
	if exists(s.path(".git/commondir")) || exists(s.path(".git/config.worktree")) {
		t.Error("something is left")
	}
}

// Case 19: anthropic-experimental/sandbox-runtime#98, safedep/pmg PR#445. Where .git is a file the run starts, git works, and the
// file stays; what it leads to is protected where that can be written.
func TestProtectPointers(t *testing.T) {
	s := gitSite(t)
	s.at(s.root).sh(`set -e
git init -q -b main --template= lib && (cd lib && echo l >l && git add l && git commit -qm lib)
cd proj && git submodule -q add ../lib lib && git submodule -q add ../lib third/deep && git commit -qm sub && git worktree add -q ../wt && git worktree add -q ../wt2`).ok()
	files := []string{".git/config", ".git/hooks", ".git/worktrees", ".git/modules", "lib/.git", "third/deep/.git", s.root + "/wt/.git", s.root + "/wt2/.git"}
	before := s.digest(files...)
	for _, dir := range []string{s.root + "/wt", s.path("lib"), s.path("third/deep")} {
		e := s.at(dir)
		e.run("--write", ".", "--", "true").ok()
		out := e.run("--write", ".", "--", "sh", "-c", "git status --porcelain --branch && git log -1 --format=%s && git rev-parse --absolute-git-dir").ok().out
		if want := e.sh("git status --porcelain --branch && git log -1 --format=%s && git rev-parse --absolute-git-dir").ok().out; out != want {
			t.Errorf("%s: %s", dir, cmp.Diff(want, out))
		}
		e.attack([]string{"--write", "."}, ".git")
		s.unchanged(before, files...)
		e.sh("rm -rf evil-dir evil-file").ok()
	}
	// The main checkout with everything.
	m := ".git/modules/lib"
	all := []string{"lib/.git", "third/deep/.git", "../wt/.git", m + "/config", m + "/hooks", m + "/commondir", m + "/config.worktree", ".git/worktrees/wt/gitdir", ".git/worktrees/wt/commondir",
		".git/worktrees/wt2/config.worktree", ".git/config", ".git/hooks"}
	s.attack([]string{"--write", ".", "--write", "../wt"}, all...)
	s.unchanged(before, files...)
	r := s.run("--write", ".", "--write", "../wt", "--", "bash", "-c", `for d in .git/modules .git/modules/lib .git/worktrees .git/worktrees/wt lib third third/deep; do mkdir -p $d.evil; mv -T $d $d.away; mv -T $d.evil $d; rmdir $d.evil; done 2>&1 | grep -c "cannot move\|cannot stat"
cd lib && echo more >>l && git commit -qam more && git log -1 --format=%s && cd ../../wt && echo w >w && git add w && git commit -qm in-wt && git log -1 --format=%s`).ok()
	r.prints("14\nmore\nin-wt\n")
	s.unchanged(before[:len(s.digest(".git/config", ".git/hooks"))], ".git/config", ".git/hooks")
	if got := s.sh("git -C lib log -1 --format=%s; git -C ../wt log -1 --format=%s; git -C ../wt2 status --short --branch").ok().out; got != "more\nin-wt\n## wt2\n" {
		t.Errorf("on the host: %q", got)
	}
	// By --write of all that holds them, from elsewhere.
	s.mkdir("../elsewhere")
	s.at(s.root+"/elsewhere").attack([]string{"--write", ".", "--write", s.dir, "--write", s.root + "/wt"}, s.path(".git/hooks"), s.root+"/wt/.git", s.path("lib/.git"))
}

// Case 21: anthropics/claude-code#17087, #26722; openai/codex PR#17734. Nothing is left of what exists only to be mounted over,
// however the run ends.
func TestProtectLeavesNothing(t *testing.T) {
	s := gitSite(t)
	s.sh(`rm -rf .git/hooks; mkdir -p .git/info; echo ignored >.git/info/exclude; echo x >ignored; echo x >untracked`).ok()
	state := func() []string {
		return append(s.digest("."), s.sh("git -c core.checkStat=minimal status --porcelain --ignored").ok().out)
	}
	state() // git refreshes its index
	before := state()
	check := func(how string) {
		t.Helper()
		if diff := cmp.Diff(before, state()); diff != "" {
			t.Errorf("%s (-before +after):\n%s", how, diff)
		}
	}
	flags := []string{"--write", ".", "--protect", "a/b/c", "--protect", "new"}
	run := func(words ...string) *result { return s.run(append(slices.Clone(flags), words...)...) }
	run("--", "ls", ".git/commondir", ".git/hooks", "new", "a").ok()
	check("a normal end")
	run("--", "sh", "-c", "exit 3").is(3)
	check("a status")
	run("--", "no-such-command").is(127)
	check("no command")
	run("--bwrap", s.stub("0.9.0", noUserNS), "--", "true").refused()
	run("--bwrap", s.stub("0.9.0", `kill -9 $$`), "--", "true").refused()
	run("--bwrap", s.stub("0.9.0", `exit 0`), "--", "true").refused()
	check("a start that failed")
	run("--read", s.root+"/absent", "--", "true").refused()
	s.selfcage("explain", "--write", ".", "--protect", "new").ok()
	check("a refusal, and explain")
	run("--mode", "auto", "--bwrap", s.stub("0.9.0", noUserNS), "--", "sh", "-c", "ls .git/commondir .git/hooks new").is(2).hasNot("\nnew\n")
	check("a run without a cage")
	if r := run("--", "sh", "-c", "kill -9 $$"); r.signal != syscall.SIGKILL {
		t.Errorf("status %d, signal %v", r.status, r.signal)
	}
	check("a signal")
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		if signal.Ignored(sig) {
			continue // these tests run under nohup, and what they start ignores it as well
		}
		r := s.beginProtected(flags, "echo up; read x; echo no")
		must(t, r.cmd.Process.Signal(sig))
		r.ends()
		check(sig.String())
	}
	slow := s.stub("0.9.0", `echo up; exec sleep 20`)
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		r := s.begin(slices.Concat([]string{"run", "--quiet", "--bwrap", slow}, flags, []string{"--", "true"})...)
		r.line("up")
		must(t, r.cmd.Process.Signal(sig))
		r.ends()
		check(sig.String() + " while it starts")
	}
	// A killed supervisor cannot, and the next run does.
	r := s.beginProtected(flags, "echo up; read x; echo no")
	must(t, r.cmd.Process.Kill())
	r.ends()
	if !exists(s.path(".git/commondir")) {
		t.Error("a killed supervisor has cleaned up: the test shows nothing")
	}
	if got := s.sh("git status --porcelain && git log -1 --format=%s").ok().out; !strings.HasSuffix(got, "two\n") {
		t.Errorf("git on the host: %q", got)
	}
	s.attack(flags, ".git/hooks", ".git/commondir", "new")
	s.sh("rm -rf evil-dir evil-file").ok()
	check("the run after a kill")
}

// beginProtected starts a script that says "up" first, and waits for it.
func (s *site) beginProtected(flags []string, script string) *running {
	s.t.Helper()
	r := s.begin(slices.Concat([]string{"run", "--quiet"}, flags, []string{"--", "bash", "-c", script, "bash", ".git/hooks", ".git/commondir", ".husky", "a"})...)
	r.line("up")
	return r
}

// Case 21: with two runs and with eight at once, whichever ends first, what the others need is there until they end.
func TestProtectAtOnce(t *testing.T) {
	s := gitSite(t)
	s.sh(`rm -rf .git/hooks; git config core.hooksPath .husky/_`).ok()
	before := s.digest(".")
	flags := []string{"--write", ".", "--protect", "a/b/c"}
	for _, n := range []int{2, 8} {
		for _, last := range []int{0, n - 1} {
			var runs []*running
			for range n {
				runs = append(runs, s.beginProtected(flags, "echo up; read x; "+attacks))
			}
			stays := runs[last]
			for i, r := range runs {
				if i != last {
					must(t, r.cmd.Process.Signal(syscall.SIGTERM))
				}
			}
			for i, r := range runs {
				if i != last {
					r.ends()
				}
			}
			if !exists(s.path(".git/commondir")) {
				t.Errorf("%d runs: gone while one of them lasts", n)
			}
			fmt.Fprintln(stays.in)
			s.attempted(stays.ends())
			s.sh("rm -rf evil-dir evil-file away").ok()
			s.unchanged(before, ".")
		}
	}
}

// Case 21: in a directory without git there is nothing to be mounted over, and nothing is made.
func TestProtectPlainDirectory(t *testing.T) {
	s := newSite(t, nil)
	for _, words := range [][]string{{"--write", s.dir}, {"--write", "."}, {"--write", ".", "--protect", "missing"}, {"--write", ".", "--protect", "a/b/"}} {
		s.run(append(words, "--", "true")...).ok()
		if got := s.digest("."); len(got) != 1 {
			t.Errorf("%q left %q", words, got)
		}
	}
	// An odd name is a name (case 25).
	odd := s.mkdir("a b\nc\xff\"'$x")
	s.at(odd).run("--write", ".", "--protect", "d\n e", "--", "sh", "-c", `echo x >"$1"; [ ! -s "$1" ] && echo protected; echo y >f`, "sh", "d\n e").ok().prints("protected\n")
	if got := s.digest(odd); len(got) != 2 {
		t.Errorf("%q", got)
	}
}

// --protect: a file, a directory and what is missing stay as they are against every grant; the rest of the directory does not.
func TestProtectAsked(t *testing.T) {
	s := newSite(t, nil)
	s.write("d/file", "kept\n", 0o644)
	s.write("d/dir/in/f", "kept\n", 0o644)
	s.write("d/free", "old\n", 0o644)
	s.link("d/dir", s.path("link"))
	protect := []string{"--protect", "d/file", "--protect", "d/dir", "--protect", "d/missing", "--protect", "e/missing/"}
	before := s.digest("d/file", "d/dir", "d/missing", "e")
	for _, write := range [][]string{{"--write", "."}, {"--write", ".", "--write", "d/file", "--write", "d/dir/in"}, {"--write", "d", "--write", "d/dir/in/f", "--write", "."}} {
		s.attack(slices.Concat(write, protect), "d/file", "d/dir", "d/dir/in", "d/dir/in/f", "d/missing", "e")
		s.sh("rm -rf evil-dir evil-file away").ok()
		s.unchanged(before, "d/file", "d/dir", "d/missing", "e")
	}
	s.run(slices.Concat([]string{"--write", "."}, protect, []string{"--", "sh", "-c", `echo new >d/free; echo new >d/more; cat d/file d/dir/in/f; mv d away || echo stays`})...).ok().prints("kept\nkept\nstays\n")
	if got := read(t, s.path("d/free")) + read(t, s.path("d/more")); got != "new\nnew\n" {
		t.Errorf("%q", got)
	}
	// Through a link: what it leads to, and a note says that the link itself can be replaced.
	r := s.selfcage("run", "--write", ".", "--protect", "link/in/f", "--", "sh", "-c", `echo x >d/dir/in/f; echo x >link/in/f; echo new >d/dir/beside; cat link/in/f`).ok().prints("kept\n")
	r.says(s.path("link") + " is a link in a writable directory")
	// Not in a writable place: nothing to do, and no error.
	s.run("--protect", "d", "--protect", "/usr/bin", "--protect", "/nonexistent", "--", "cat", "d/file").ok().silent().prints("kept\n")
	s.run("--write", ".", "--protect", "d/file/x", "--", "echo", "ran").refused("--protect d/file/x", "not a directory")
	// Where the grant itself is protected it is read-only, and explain and the report say why.
	s.run("--write", ".", "--protect", ".", "--", "sh", "-c", "echo x >d/free").is(2).says("Read-only file system")
	s.selfcage("explain", "--write", ".", "--protect", "d").ok().has("asked for to stay read-only")
}

// What cannot be made mode by mode: a git directory that its owner may not write now could be made writable by the run. One that is
// somebody else's could not, and stays as it is.
func TestProtectUnwritable(t *testing.T) {
	s := gitSite(t)
	must(t, os.Chmod(s.path(".git"), 0o555))
	t.Cleanup(func() { os.Chmod(s.path(".git"), 0o755) })
	before := s.digest(".git")
	r := s.run("--write", ".", "--", "sh", "-c", "chmod 755 .git; echo evil >.git/commondir || echo refused")
	if os.Getuid() == 0 {
		r.ok().prints("refused\n")
		must(t, os.Chmod(s.path(".git"), 0o555))
	} else {
		r.refused("cannot protect", s.path(".git")+"/commondir", "hint: make "+s.path(".git")+" writable")
	}
	s.unchanged(before, ".git")
}

func TestProtectSomebodyElses(t *testing.T) {
	sandtest.Need(t, sandtest.Root, sandtest.User, sandtest.Bwrap, sandtest.Cage)
	u := sandtest.OrdinaryUser(t)
	s := newSite(t, &u)
	for _, name := range []string{".git/HEAD", ".git/config", ".git/objects/x", ".git/refs/x"} {
		s.write(name, "x\n", 0o644)
	}
	for _, name := range []string{".git", ".git/HEAD", ".git/config", ".git/objects", ".git/refs"} {
		must(t, os.Lchown(s.path(name), 0, 0))
	}
	before := s.digest(".git")
	s.run("--write", ".", "--", "sh", "-c", "chmod 755 .git; echo evil >.git/commondir || echo evil >.git/config || echo f >f && echo done").ok().has("done").says("Permission denied")
	s.unchanged(before, ".git")
	if got := read(t, s.path("f")); got != "f\n" {
		t.Errorf("%q", got)
	}
}
