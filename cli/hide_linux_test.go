package cli_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/selfcage/selfcage/internal/sandtest"
)

// hiddenText is in what is hidden. No run may print it.
const hiddenText = "the text that is hidden"

// look prints all that can be read of paths, of what they hold and of it by way of /proc, and tries to put something there.
const look = `
for p; do
	cat "$p" "/proc/self/root$p" "/proc/1/root$p" 2>/dev/null
	(cd "$p" 2>/dev/null && ls -A . && cat ./* 2>/dev/null)
	[ -L "$p" ] || chmod 755 "$p" 2>/dev/null
	for f in "$p" "$p/made"; do (echo x >"$f") 2>/dev/null && echo "WRITTEN $f"; done
	ln "$p" hard 2>/dev/null && cat hard && rm hard
	[ -L "$p" ] || { mv -T "$p" "$p.away" 2>/dev/null && echo "MOVED $p"; rm -rf "$p" 2>/dev/null; }
	umount -l "$p" 2>/dev/null; cat "$p" "$p"/* 2>/dev/null
done
grep -rsF "hidden" "$@" "/proc/self/cwd/"
find "$@" -type f -size +0 2>/dev/null
echo looked`

// seesNothing makes sure that of paths nothing can be read, listed, changed or uncovered, with flags.
func (s *site) seesNothing(flags []string, paths ...string) {
	s.t.Helper()
	words := append(slices.Clone(flags), "--", "sh", "-c", look, "sh")
	s.run(append(words, paths...)...).hasNot(hiddenText).ok().prints("looked\n")
}

// What is hidden cannot be read by any name, whatever else is granted, and nothing of it is made or changed on the host.
func TestHideContent(t *testing.T) {
	s := newSite(t, nil)
	s.write("d/secret", hiddenText, 0o644)
	s.write("d/keys/deep/key", hiddenText, 0o644)
	s.write("d/open", "open\n", 0o644)
	s.link("d/secret", s.path("l-file"))
	s.link("d/keys", s.path("l-dir"))
	s.link("d", s.path("l-up"))
	names := []string{s.path("d/secret"), s.path("d/keys"), s.path("d/keys/deep/key"), s.path("d/keys/deep"), s.path("l-file"), s.path("l-dir"), s.path("l-up/secret"), s.path("l-up/keys")}
	before := s.digest("d")
	s.run("--", "cat", "d/secret", "d/keys/deep/key").ok().has(hiddenText)
	grants := [][]string{{"--write", "."}, {"--read", s.dir, "--write", "l-up/"}, nil, {"--read", "d"}, {"--read", "l-file", "--write", "d", "--read", "d/keys"}}
	for i, hide := range [][]string{{"d/secret", "d/keys"}, {"l-file", "l-dir"}, {"l-up/secret", s.path("l-up/keys") + "/"}} {
		flags := []string{"--hide", hide[0], "--hide", hide[1]}
		for _, grants := range grants[:len(grants)-2*i] { // by whichever name it is hidden
			s.seesNothing(append(slices.Clone(flags), grants...), names...)
			s.run(slices.Concat(flags, grants, []string{"--", "cat", "d/open"})...).ok().prints("open\n")
			s.unchanged(before, "d")
		}
	}
	// In a listing there is something empty.
	s.run("--write", ".", "--hide", "d/secret", "--hide", "d/keys", "--", "sh", "-c", "ls -A d; stat -c %s d/secret; ls -A d/keys | wc -l").ok().prints("keys\nopen\nsecret\n0\n0\n")
	// What is granted and hidden is not there, and explain says who asked for what.
	s.run("--hide", "/mnt", "--", "true").ok().silent()
	s.selfcage("explain", "--read", "d/secret", "--hide", "d/secret").ok().has("hidden by --hide, though --read asks for it")
	s.selfcage("explain", "--write", ".", "--hide", "d/keys").ok().has("empty: hidden by --hide").hasNot(hiddenText)
	// One that is missing is said to be, and is not made.
	s.run("--write", ".", "--hide", "d/none", "--", "ls", "-A", "d").ok().prints("keys\nopen\nsecret\n")
	s.selfcage("explain", "--write", ".", "--hide", "d/none").ok().has("there is nothing of that name to hide (--hide)")
	s.unchanged(before, "d")
}

// What a tool's own look-up, a cache or a copy would show is hidden as well.
func TestHideFromEveryDoor(t *testing.T) {
	s := newSite(t, nil)
	s.write(s.home+"/.gitconfig", "[user]\n\tname = "+hiddenText+"\n", 0o644)
	s.write(s.home+"/.cache/pip/http/answer", hiddenText, 0o644)
	s.write(s.home+"/.cache/pip/wheels/w", "wheel\n", 0o644)
	s.write("lib/m.py", hiddenText, 0o644)
	e := s.setenv("PYTHONPATH="+s.path("lib"), "PATH="+s.path("lib")+":"+s.bin+":"+cleanPath)
	e.run("--cache", "pip", "--", "cat", s.home+"/.cache/pip/http/answer", s.path("lib/m.py")).ok().has(hiddenText)
	e.run("--", "sh", "-c", "cat ~/.gitconfig").ok().has(hiddenText)
	flags := []string{"--cache", "pip", "--hide", s.home + "/.cache/pip/http", "--hide", s.home + "/.gitconfig", "--hide", "lib"}
	e.seesNothing(flags, s.home+"/.cache/pip/http", s.home+"/.gitconfig", s.path("lib"))
	e.run(append(flags, "--", "sh", "-c", "ls -A ~ | grep git; git config user.name; echo looked")...).ok().prints("looked\n")
	e.run(append(flags, "--", "cat", s.home+"/.cache/pip/wheels/w")...).ok().prints("wheel\n")
	if got := read(t, s.home+"/.cache/pip/http/answer"); got != hiddenText {
		t.Errorf("on the host: %q", got)
	}
	e.run("--cache", "pip", "--hide", s.home+"/.cache", "--", "echo", "ran").refused("--cache", "--hide", s.home+"/.cache")
	// A descriptor that is open already, and the working directory by its other name, lead nowhere either.
	s.write("a/k", hiddenText, 0o644)
	s.link("a", s.path("b"))
	s.at(s.path("b")).run("--write", "..", "--hide", "k", "--", "sh", "-c", "cat k ./k ../a/k ../b/k /proc/self/cwd/k; echo looked").ok().prints("looked\n")
}

// What the run cannot do without, and a grant below, contradict --hide: both are named and nothing runs.
func TestHideContradictions(t *testing.T) {
	s := newSite(t, nil)
	s.write("d/f", "x", 0o644)
	s.write("tool", "#!/bin/sh\necho ran\n", 0o755)
	for _, tt := range []struct {
		words []string
		names []string
	}{
		{[]string{"--hide", "d", "--read", "d/f"}, []string{"--read, d/f", s.path("d"), "--hide"}},
		{[]string{"--hide", "d", "--write", "d/f"}, []string{"--write, d/f", s.path("d"), "--hide"}},
		{[]string{"--hide", s.bin}, []string{"--hide", "the program", s.bin + "/selfcage"}},
		{[]string{"--hide", s.bin + "/selfcage"}, []string{"--hide", "the program"}},
		{[]string{"--hide", "."}, []string{"the working directory", s.dir}},
		{[]string{"--hide", s.root}, []string{s.root, "is or lies in it"}},
		{[]string{"--hide", "/usr"}, []string{"--hide /usr", "the system runtime"}},
		{[]string{"--hide", "/bin"}, []string{"--hide /bin", "the system runtime"}},
		{[]string{"--hide", "/etc"}, []string{"--hide /etc", "the cage's own"}},
		{[]string{"--hide", "/proc"}, []string{"--hide /proc"}},
		{[]string{"--hide", "/tmp"}, []string{"--hide /tmp"}},
		{[]string{"--hide", "/"}, []string{"--hide /,"}},
	} {
		s.run(append(tt.words, "--", "echo", "ran")...).refused(tt.names...)
	}
	s.run("--hide", "tool", "--", "./tool").refused("--hide", s.path("tool"), "the command", "./tool")
	s.run("--hide", "tool", "--", "echo", "ran").ok().prints("ran\n")
	s.setenv("PATH="+s.dir+":"+s.bin+":"+cleanPath).run("--hide", "tool", "--", "tool").refused("--hide", s.path("tool"), "the command")
}

// R36: a Hugging Face or ModelScope cache is granted without its tokens, wherever it lies; the tokens themselves never are.
func TestHideTokens(t *testing.T) {
	s := newSite(t, nil)
	moved := s.root + "/models/hf"
	for _, dir := range []string{s.home + "/.cache/huggingface", s.home + "/.modelscope", moved} {
		s.write(dir+"/hub/models--x/snapshots/1/weights", "weights\n", 0o644)
		for _, name := range map[bool][]string{true: {"token", "stored_tokens"}, false: {"credentials/git_token", "credentials/session"}}[!strings.HasSuffix(dir, "modelscope")] {
			s.write(filepath.Join(dir, name), hiddenText, 0o600)
		}
	}
	hf, ms := s.home+"/.cache/huggingface", s.home+"/.modelscope"
	elsewhere := s.setenv("HF_HOME=" + moved)
	for _, tt := range []struct {
		s      *site
		dir    string
		tokens []string
	}{
		{s, hf, []string{hf + "/token", hf + "/stored_tokens"}},
		{s, ms, []string{ms + "/credentials"}},
		{elsewhere, moved, []string{moved + "/token", moved + "/stored_tokens"}},
	} {
		before := s.digest(tt.dir)
		for _, flag := range []string{"--read", "--write"} {
			tt.s.seesNothing([]string{flag, tt.dir}, tt.tokens...)
			tt.s.run(flag, tt.dir, "--", "sh", "-c", `cat "$1/hub/models--x/snapshots/1/weights"; grep -rsF hidden "$1"; stat -c %s "$1/token" 2>/dev/null; true`, "sh", tt.dir).
				ok().hasNot(hiddenText).has("weights\n")
			s.unchanged(before, tt.dir)
		}
		tt.s.run("--write", tt.dir, "--", "sh", "-c", `echo new >"$1/hub/new"`, "sh", tt.dir).ok()
		if got := read(t, tt.dir+"/hub/new"); got != "new\n" {
			t.Errorf("%s: %q", tt.dir, got)
		}
		for _, token := range tt.tokens {
			for _, flag := range []string{"--read", "--write"} {
				tt.s.run(flag, token, "--", "echo", "ran").refused(token, "credentials")
			}
		}
	}
	// By a policy's token, and by the name of a link.
	elsewhere.write("p.toml", "mode = \"bwrap\"\nread_paths = ['{hf_cache}']\n", 0o644)
	elsewhere.run("--policy", "p.toml", "--", "sh", "-c", `cat "$1"/hub/*/*/*/weights; cat "$1/token"`, "sh", moved).ok().prints("weights\n")
	s.link(hf, s.path("models"))
	s.seesNothing([]string{"--read", "models"}, s.path("models/token"), hf+"/token")
	// Without token files there is nothing to cover, nothing is made, and one that may come is told of.
	must(t, os.Remove(hf+"/token"))
	must(t, os.Remove(hf+"/stored_tokens"))
	before := s.digest(hf)
	s.run("--write", hf, "--", "ls", "-A", hf).ok().prints("hub\n")
	s.unchanged(before, hf)
	s.selfcage("explain", "--read", hf).ok().has(hf+"/token", "written while the run lasts it would be visible")
}

// Issue 4, item 1: the size of /tmp is what was asked for, and one that is no size is refused.
func TestHideTmpSize(t *testing.T) {
	s := newSite(t, nil)
	r := s.run("--tmp-size", "1M", "--", "sh", "-c", `df -B1 --output=size /tmp | tail -1; head -c 500000 /dev/zero >/tmp/fits && echo fits; head -c 2000000 /dev/zero >/tmp/big || echo full; stat -c %s /tmp/big`)
	r.ok().says("No space left on device")
	f := strings.Fields(r.out)
	if len(f) != 4 || f[0] != "1048576" || f[1] != "fits" || f[2] != "full" {
		t.Fatalf("%q", r.out)
	}
	if n, err := strconv.Atoi(f[3]); err != nil || n > 1<<20 {
		t.Errorf("%d bytes fit", n)
	}
	s.run("--tmp-size", "4M", "--", "sh", "-c", "head -c 2000000 /dev/zero >/tmp/big && echo fits").ok().prints("fits\n")
	s.write("p.toml", "mode = \"bwrap\"\ntmp = \"1M\"\n", 0o644)
	s.run("--policy", "p.toml", "--", "sh", "-c", "df -B1 --output=size /tmp | tail -1; head -c 2000000 /dev/zero >/tmp/big").is(1).has("1048576")
	s.write("q.json", `{"tmp": "2M"}`, 0o644)
	s.run("--policy", "p.toml", "--recipe", "q.json", "--", "echo", "ran").refused("q.json:1", "1M")
	for _, size := range []string{"0", "-1", "1X", "1.5M", "M", "nonsense", "99999999999T", "1 M"} {
		s.run("--tmp-size", size, "--", "echo", "ran").refused("--tmp-size", size)
	}
}

// A run that is killed leaves nothing of what it hid (case 21).
func TestHideLeavesNothing(t *testing.T) {
	sandtest.Need(t, sandtest.Bwrap, sandtest.Cage)
	s := newSite(t, nil)
	s.write("d/secret", hiddenText, 0o644)
	s.write("d/keys/key", hiddenText, 0o644)
	before := s.digest("d")
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		r := s.begin("run", "--quiet", "--write", ".", "--hide", "d/secret", "--hide", "d/keys", "--hide", "d/none", "--", "sh", "-c", "echo up; read x")
		r.line("up")
		s.unchanged(before, "d")
		must(t, r.cmd.Process.Signal(sig))
		r.ends()
		s.unchanged(before, "d")
	}
}
