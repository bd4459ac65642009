package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/selfcage/selfcage/internal/sandtest"
)

// H18, H19, L14, L17, hosts.md 1: only what is granted writable is, and what is written there is on the host. The home, other checkouts
// and what lies beside a grant are not there at all.
func TestOnlyGrants(t *testing.T) {
	s := newSite(t, nil)
	s.write("src/main.c", "int main;\n", 0o644)
	s.mkdir("out")
	s.write(filepath.Join(s.root, "other/secret"), "another checkout\n", 0o644)
	s.run("--write", "out", "--", "sh", "-c", `cat src/main.c && echo result >out/result`).ok().prints("int main;\n")
	if got := read(t, s.path("out/result")); got != "result\n" {
		t.Errorf("the result on the host is %q", got)
	}
	for _, place := range []string{"beside", "src/new", "src/main.c", "/usr/new", "/etc/new", "/new", "/dev/new", "/run/new", "/var/new", s.root + "/new"} {
		r := s.run("--write", "out", "--", "sh", "-c", `echo lost >"$1"`, "sh", place).says("Read-only file system")
		if r.status == 0 {
			t.Errorf("writing %s: status 0", place)
		}
	}
	if exists(s.path("beside")) || read(t, s.path("src/main.c")) != "int main;\n" {
		t.Error("it was written on the host")
	}
	r := s.run("--", "sh", "-c", `ls -A "$1" "$2" "$3/other" "$1/.ssh" /root /home; cat "$1/.ssh/id_test"; ls -A ~`, "sh", s.home, filepath.Dir(s.home), s.root)
	r.hasNot(homeSecret, "id_test\n", "secret").says("cannot access '" + s.home)
	for _, hidden := range []string{s.home, s.home + "/.ssh/id_test", s.root + "/other", "/etc/shadow", "/etc/ssl/private", "/etc/ssh", "/root", "/home", "/boot", "/opt"} {
		if s.run("--", "test", "-e", hidden).status == 0 {
			t.Errorf("%s is visible", hidden)
		}
	}
}

// H17: the same without a grant. The working directory itself is read-only unless granted.
func TestWorkDirReadOnly(t *testing.T) {
	s := newSite(t, nil)
	s.write("f", "f\n", 0o644)
	for _, cmd := range []string{"echo x >>f", "rm -f f", "mv f g", "chmod 777 f", "ln f g", "mkdir d", "touch -d 2001-01-01 f"} {
		if r := s.run("--", "sh", "-c", cmd).says("Read-only file system"); r.status == 0 {
			t.Errorf("%s: status 0", cmd)
		}
	}
	s.run("--write", ".", "--", "sh", "-c", "echo x >>f && mv f g && mkdir d && cat g").ok().prints("f\nx\n")
	if !exists(s.path("g")) || !exists(s.path("d")) {
		t.Error("what was granted was not written on the host")
	}
}

// H16: ROCm and Mesa find devices through /sys. It is there, and read-only with all that is mounted below it.
func TestSys(t *testing.T) {
	s := newSite(t, nil)
	s.run("--", "sh", "-c", `ls /sys/class/net /sys/class/tty /sys/devices/system/cpu`).ok().has("lo\n", "cpu0\n")
	r := s.run("--", "sh", "-c", `mkdir /sys/fs/cgroup/selfcage-test; echo 1 >/sys/fs/cgroup/cgroup.procs; grep -c " /sys[^ ]* rw" /proc/self/mountinfo`)
	if r.out != "0\n" || strings.Count(r.err, "Read-only file system") != 2 {
		t.Errorf("writable mounts: %s%s", r.out, r.err)
	}
}

// Case 14 (DavHau/nix-portable#75), hosts.md 7: the home and the checkout are reached through a link. Both spellings lead to the
// same files, the working directory keeps the caller's, and what is written under either lands on the host.
func TestSymlinkedHome(t *testing.T) {
	s := newSite(t, nil)
	must(t, makeHome(s.path("vol/home/u")))
	s.write("vol/home/u/src/f", "source\n", 0o644)
	s.mkdir("vol/home/u/src/out")
	s.mkdir("h")
	must(t, os.Symlink(s.path("vol/home"), s.path("h/home")))
	link, real := s.path("h/home/u/src"), s.path("vol/home/u/src")
	e := s.at(link).setenv("HOME="+s.path("h/home/u"), "PWD="+link)
	e.run("--write", link+"/out", "--", "sh", "-c", `pwd; /bin/pwd -P; echo "$PWD"; cat "$1/f" "$2/f"; echo 1 >"$1/out/a"; echo 2 >"$2/out/b"`, "sh", link, real).
		ok().silent().prints(link + "\n" + real + "\n" + link + "\nsource\nsource\n")
	for _, f := range []string{"out/a", "out/b"} {
		if !exists(filepath.Join(real, f)) {
			t.Errorf("%s was not written on the host", f)
		}
	}
	r := e.run("--", "sh", "-c", `ls -A "$1/.." ; cat "$1/../.ssh/id_test" "$2/../.ssh/id_test"; echo x >"$1/new"`, "sh", link, real)
	r.hasNot(homeSecret, ".ssh\n").says("Read-only file system")
	// The home itself, by either name, is never a grant.
	for _, h := range []string{s.path("h/home/u"), s.path("vol/home/u"), s.path("h/home"), s.path("vol")} {
		e.run("--write", h, "--", "echo", "ran").refused("--write", "home")
	}
}

// A root that is granted by a link is there by both names, the link as a link.
func TestSymlinkedGrant(t *testing.T) {
	s := newSite(t, nil)
	real := s.write(s.root+"/store/v2/f", "data\n", 0o644)
	must(t, os.Symlink("v2", s.root+"/store/latest"))
	must(t, os.Symlink("store/latest", s.root+"/data"))
	s.run("--read", s.root+"/data", "--", "sh", "-c", `cat "$1/data/f" "$1/store/latest/f" "$1/store/v2/f"; readlink "$1/data" "$1/store/latest"; ls "$1/store"`, "sh", s.root).
		ok().silent().prints("data\ndata\ndata\nstore/latest\nv2\nlatest\nv2\n")
	if r := s.run("--read", s.root+"/data", "--", "sh", "-c", `echo x >"$1/data/f"`, "sh", s.root).says("Read-only file system"); r.status == 0 {
		t.Error("writable")
	}
	s.run("--write", s.root+"/data", "--", "sh", "-c", `echo more >"$1/data/f"`, "sh", s.root).ok()
	if got := read(t, real); got != "more\n" {
		t.Errorf("on the host: %q", got)
	}
}

// Case 16 (FerroxLabs/wayland-core PR#148, omnigent-ai/omnigent#5938): a writable path that is not there. One rule: the
// start is refused, naming it, and nothing is made. A grant of a file never makes a directory of that name.
func TestMissingWritable(t *testing.T) {
	s := newSite(t, nil)
	for _, p := range []string{"new", "gone/new", "report.json"} {
		for _, r := range []*result{
			s.run("--write", s.path(p), "--", "sh", "-c", `mkdir -p "$1"; echo ran`, "sh", s.path(p)),
			s.run("--write", p, "--", "echo", "ran"),
			s.setenv("SANDBOX_WRITABLE="+p).run("--", "echo", "ran"),
		} {
			r.refused(s.path(strings.TrimSuffix(p, "/new")), "does not exist", "create it first")
		}
	}
	s.run("--read", "new", "--", "echo", "ran").refused("--read", s.path("new"), "does not exist")
	if entries, _ := os.ReadDir(s.dir); len(entries) > 0 {
		t.Errorf("something was made: %v", entries)
	}
	f := s.write("report.json", "old\n", 0o644)
	r := s.run("--write", f, "--", "sh", "-c", `echo new >report.json; echo other >beside`).says("Read-only file system")
	if got := read(t, f); got != "new\n" || r.status == 0 || exists(s.path("beside")) {
		t.Errorf("status %d, the file holds %q", r.status, got)
	}
}

// Case 17 (containers/bubblewrap#413): mount points that the host does not have (the home, the plan, links on the way to
// a grant) are made in the cage, never on the host.
func TestMountPointsNotOnHost(t *testing.T) {
	s := newSite(t, nil)
	s.write(s.root+"/deep/a/b/f", "f\n", 0o644)
	must(t, os.Symlink("a/b", s.root+"/deep/link"))
	before := s.sh(`find "$1" | sort; ls -d /run/selfcage /opt/* 2>&1`, s.root).out
	s.mkdir("w/sub")
	s.run("--read", s.root+"/deep/link", "--write", "w/sub", "--read", "w", "--", "sh", "-c", `ls -d ~ "$1/deep/link/f"; touch w/sub/x`, "sh", s.root).
		ok().prints("/run/selfcage/home\n" + s.root + "/deep/link/f\n")
	must(t, os.RemoveAll(s.path("w")))
	if after := s.sh(`find "$1" | sort; ls -d /run/selfcage /opt/* 2>&1`, s.root).out; after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

// Case 18 (anthropics/claude-code#50781, openai/codex#19786): overlapping grants mean the same in every order and
// spelling. H21: so does what explain prints.
func TestGrantOrder(t *testing.T) {
	s := newSite(t, nil)
	s.mkdir("p/ro/rw")
	s.write("p/ro/f", "a\n", 0o644)
	grants := [][2]string{{"--write", s.path("p")}, {"--read", s.path("p/ro")}, {"--write", s.path("p/ro/rw")}}
	spellings := []func(string) string{
		func(p string) string { return p },
		func(p string) string { return p + "/" },
		func(p string) string { return strings.ReplaceAll(p, "/", "//") },
		func(p string) string { return p + "/../" + filepath.Base(p) + "/." },
	}
	explained := ""
	for _, order := range [][3]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		for _, spell := range spellings {
			var flags []string
			for _, i := range order {
				flags = append(flags, grants[i][0], spell(grants[i][1]))
			}
			r := s.run(append(flags, "--", "sh", "-c", `cd p; echo 1 >x; echo 1 >ro/rw/y; echo 1 >ro/f; echo 1 >ro/new; rm ro/rw/y x`)...)
			if r.says("cannot create ro/f: Read-only", "cannot create ro/new: Read-only"); strings.Count(r.err, "\n") != 2 {
				t.Errorf("%v: %s", flags, r.err)
			}
			text := s.selfcage(append([]string{"explain"}, flags...)...).ok().out
			if explained != "" && text != explained {
				t.Errorf("%v: explain differs:\n%s\n%s", flags, text, explained)
			}
			explained = text
		}
	}
	if read(t, s.path("p/ro/f")) != "a\n" {
		t.Error("the protected file was changed")
	}
	for _, g := range []string{"  rw          " + s.path("p") + " ", "  ro          " + s.path("p/ro") + " ", "  rw          " + s.path("p/ro/rw") + " "} {
		if !strings.Contains(explained, g) {
			t.Errorf("explain has no line %q:\n%s", g, explained)
		}
	}
	// Both read and write: writable, whatever comes first.
	for _, flags := range [][]string{{"--read", "p/ro", "--write", "p/ro"}, {"--write", "p/ro/", "--read", s.path("p/ro")}} {
		s.run(append(flags, "--", "sh", "-c", "echo b >p/ro/f")...).ok()
	}
}

// Case 25 (NixOS/nixpkgs#101942, firejail#64): space, newline, quote and a byte that is not UTF-8, in a flag, a variable,
// the working directory, explain and the report.
func TestOddBytes(t *testing.T) {
	s := newSite(t, nil)
	d := s.mkdir("a b\nc\xff\"'$x\\")
	shown := `"` + s.dir + `/a b\nc\xff\"'$x\\"`
	for i, e := range []*site{s, s.setenv("SANDBOX_WRITABLE=" + d), s.at(d)} {
		flags := [][]string{{"--write", d}, nil, {"--write", "."}}[i]
		f := filepath.Join(d, fmt.Sprint("f", i))
		e.run(append(flags, "--", "sh", "-c", `echo 1 >"$1" && pwd -P`, "sh", f)...).ok().silent().prints(e.dir + "\n")
		if !exists(f) {
			t.Errorf("%d: not on the host", i)
		}
	}
	if names, _ := os.ReadDir(s.dir); len(names) != 1 {
		t.Errorf("something else was made: %v", names)
	}
	r := s.selfcage("explain", "--write", d).ok()
	n := 0
	for _, line := range strings.Split(r.out, "\n") {
		if strings.Contains(line, "asked for writable") {
			n++
			if !strings.Contains(line, "rw") || !strings.Contains(line, shown) {
				t.Errorf("explain: %s", line)
			}
		}
	}
	if n != 1 || strings.Contains(r.out, "\xff") {
		t.Errorf("%d lines of explain:\n%s", n, r.out)
	}
	s.run("--write", d+"/no\xfe", "--", "echo", "ran").refused(`/no\xfe"`).hasNot("\xfe")
}

// Case 25, the list variable: a path with a ':' cannot be named there. It is refused, with the way out, and never are its
// halves granted.
func TestColon(t *testing.T) {
	s := newSite(t, nil)
	whole, left, right := s.mkdir("x:y"), s.mkdir("x"), s.mkdir("y")
	try := []string{"--", "sh", "-c", `touch "$1/f" "$2/f" "$3/f"`, "sh", whole, left, right}
	s.setenv("SANDBOX_WRITABLE="+whole).run(try...).refused("SANDBOX_WRITABLE", "x:y", "split at each ':'", "--write")
	must(t, os.Remove(right))
	must(t, os.Remove(whole))
	s.setenv("SANDBOX_WRITABLE="+whole).run(try...).refused("SANDBOX_WRITABLE", s.path("y"), "':'", "--write")
	s.mkdir("x:y")
	s.mkdir("y")
	r := s.run(append([]string{"--write", whole}, try...)...)
	if !exists(whole+"/f") || exists(left+"/f") || exists(right+"/f") || r.status == 0 {
		t.Errorf("status %d: %s", r.status, r.err)
	}
	// Two that are meant.
	s.setenv("SANDBOX_WRITABLE="+left+"::y:").run("--", "touch", "x/g", "y/g").ok().silent()
	// A relative element in a directory with ':' would change its meaning inside.
	s.at(s.mkdir("x:y/sub")).setenv("SANDBOX_READABLE=.").run("--", "echo", "ran").refused("SANDBOX_READABLE", "contains ':'", "--read")
}

// H18, design 2: relative elements mean the same for a grandchild in another directory.
func TestListRewritten(t *testing.T) {
	s := newSite(t, nil)
	s.mkdir("a")
	s.mkdir("b")
	s.setenv("SANDBOX_WRITABLE=a:"+s.path("b")).run("--", "sh", "-c", `cd /; echo "$SANDBOX_WRITABLE"; selfcage run -- touch "$1/a/f"`, "sh", s.dir).
		ok().silent().prints(s.path("a") + ":" + s.path("b") + "\n")
	if !exists(s.path("a/f")) {
		t.Error("not written")
	}
}

// Case 28 (containers/bubblewrap#291), hosts.md 5 and 6: a working directory that is gone, hidden or in a private place never becomes
// another one silently.
func TestWorkDir(t *testing.T) {
	s := newSite(t, nil)
	// a: deleted
	r := s.sh(`mkdir g; cd g; rmdir ../g; selfcage run -- pwd`)
	r.refused("the working directory", "deleted", "hint: ")
	r = s.sh(`mkdir g; cd g; rmdir ../g; selfcage run --write . -- pwd`)
	r.refused("--write", "deleted")
	// b: in no grant; it is there, read-only
	d := s.mkdir("d")
	s.at(d).run("--", "sh", "-c", "pwd; touch f").is(1).prints(d + "\n").says("Read-only file system")
	// c: below a private place
	tmp, err := os.MkdirTemp("/tmp", "selfcage-test-")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(tmp) })
	must(t, os.WriteFile(tmp+"/in", []byte("in\n"), 0o644))
	r = s.at(tmp).run("--", "sh", "-c", "cat in; pwd; echo 1 >out; ls /tmp")
	r.prints("in\n" + tmp + "\n" + filepath.Base(tmp) + "\n").says("Read-only file system")
	s.at(tmp).run("--write", ".", "--", "sh", "-c", "echo 1 >out").ok()
	if read(t, tmp+"/out") != "1\n" {
		t.Error("not on the host")
	}
	// the private places themselves
	for _, p := range []string{"/tmp", "/var/tmp", "/dev/shm", "/run", "/proc"} {
		s.at(p).run("--", "pwd").refused("the working directory", p, "hint: ")
	}
	// The home: it exists, empty and read-only, and a note says so. --quiet silences that.
	e := s.at(s.home)
	e.selfcage("run", "--", "sh", "-c", "pwd; ls -A; touch x").is(1).prints(s.home+"\n").
		says("note: the working directory "+s.home+" is read-only inside", "it is the home", "Read-only file system")
	e.run("--", "pwd").ok().silent().prints(s.home + "\n")
	s.at(s.home+"/.ssh").selfcage("run", "--", "ls", "-A").ok().prints("").says("credentials")
	s.at("/").run("--", "pwd").ok().silent().prints("/\n")
}

// R14, R16, R36, H19: a grant of, into or above a place of credentials is refused, by whatever name, with the reason.
func TestCredentialRoots(t *testing.T) {
	s := newSite(t, nil)
	must(t, os.Symlink(s.home+"/.ssh", s.path("keys")))
	must(t, os.Symlink(s.home, s.path("me")))
	s.write(s.home+"/.config/gh/hosts.yml", "x\n", 0o600)
	s.write(s.home+"/.netrc", "x\n", 0o600)
	s.write(s.home+"/work/f", "fine\n", 0o644)
	for p, why := range map[string]string{
		s.home + "/.ssh":           "credentials",
		s.home + "//.ssh/":         "credentials",
		s.home + "/work/../.ssh":   "credentials",
		s.home + "/.ssh/id_test":   "credentials",
		"keys":                     "credentials",
		"keys/id_test":             "credentials",
		"me/.ssh":                  "credentials",
		s.home + "/.netrc":         "credentials",
		s.home + "/.config/gh":     "credentials",
		s.home + "/.config":        "holds credentials (" + s.home + "/.config/gh)",
		s.home:                     "it is the home",
		"me":                       "it is the home",
		s.root:                     "the home, which holds credentials, lies below it",
		s.root + "/proj/..":        "the home, which holds credentials, lies below it",
		"/":                        "",
		"/etc":                     "broad root",
		"/etc/shadow":              "credentials",
		"/root":                    "",
		"/boot":                    "",
		"/proc":                    "the cage has its own",
		"/proc/self/root/etc":      "",
		"/run":                     "",
		"/dev":                     "the cage has its own",
		"/dev/null":                "--device",
		"/run/selfcage-none/../..": "",
	} {
		for _, flag := range []string{"--read", "--write"} {
			r := s.run(flag, p, "--", "echo", "ran")
			if strings.Contains(p, "none") || p == "/boot" && !exists(p) {
				r.is(125)
				continue
			}
			r.refused("cannot grant "+flag, why, "hint: ")
		}
	}
	s.setenv("SANDBOX_WRITABLE="+s.home+"/.ssh").run("--", "echo", "ran").refused("SANDBOX_WRITABLE", "credentials")
	// What is beside them can be granted, and no more than that is there.
	r := s.run("--read", s.home+"/work", "--", "sh", "-c", `cat "$1/work/f"; ls -A "$1"`, "sh", s.home).ok()
	r.prints("fine\nwork\n")
}

// A grant is recursive, and so is its being read-only: what is mounted below it comes along, and cannot be written.
func TestReadOnlyIsRecursive(t *testing.T) {
	s := newStage(t, `
		mount -t tmpfs none "$W/proj/data/sub"
		mkdir -m 0777 "$W/proj/data/sub/open"
		echo nested >"$W/proj/data/sub/open/f"
		chmod 0666 "$W/proj/data/sub/open/f"
	`)
	s.mkdir("data/sub")
	s.command("/bin/sh", "-c", "echo outside >data/sub/open/new && cat data/sub/open/new").ok().prints("outside\n")
	for _, flags := range [][]string{nil, {"--read", s.path("data")}} {
		r := s.run(append(flags, "--", "sh", "-c", `cat data/sub/open/f; echo x >data/sub/open/f; echo x >data/sub/open/new`)...)
		r.prints("nested\n")
		if r.status == 0 || strings.Count(r.err, "Read-only file system") != 2 {
			t.Errorf("%v: status %d: %s", flags, r.status, r.err)
		}
	}
	s.run("--write", "data", "--", "sh", "-c", `echo x >data/sub/open/f && cat data/sub/open/f`).ok().prints("x\n")
}

// L25, L26, case 49: a device is granted by its node, and opens. Without a grant it does not, nor by a plain grant.
func TestDevice(t *testing.T) {
	s := newSite(t, nil)
	s.run("--device", "/dev/full", "--", "sh", "-c", `head -c 3 /dev/full | od -An -tx1; echo x >/dev/full; echo done`).
		ok().prints(" 00 00 00\ndone\n").says("I/O error")
	s.run("--", "sh", "-c", `head -c 2 /dev/zero | od -An -tx1; echo x >/dev/null; ls /dev`).ok().has(" 00 00\n", "null\n", "zero\n").
		hasNot("kmsg", "mem\n", "loop-control")
	f := s.write("file", "x", 0o644)
	s.run("--device", f, "--", "echo", "ran").refused("--device", f, "not a character device")
	s.run("--device", s.dir, "--", "echo", "ran").refused("--device", "not a character device")
	s.run("--device", "/dev/none", "--", "echo", "ran").refused("--device", "/dev/none", "does not exist")
	s.setenv("SANDBOX_DEVICE=/dev/full,"+f).run("--", "echo", "ran").refused("SANDBOX_DEVICE", f)
}

// The same with a node that no cage has by itself, which only root can make.
func TestOwnDeviceNode(t *testing.T) {
	s := newStage(t, `
		mount -t tmpfs -o mode=0755 none "$W/proj/dev"
		mknod -m 0666 "$W/proj/dev/zero" c 1 5
	`)
	s.mkdir("dev")
	try := []string{"--", "sh", "-c", `head -c 2 dev/zero | od -An -tx1`}
	s.command("/bin/sh", "-c", try[3]).ok().prints(" 00 00\n")
	s.run(try...).says("Permission denied")
	s.run(append([]string{"--read", "dev"}, try...)...).says("Permission denied")
	s.run(append([]string{"--device", "dev/zero"}, try...)...).ok().silent().prints(" 00 00\n")
}

// Case 21 (anthropics/claude-code#17087): nothing is left in the project, after a normal end, a kill, or two at once.
func TestNothingLeftBehind(t *testing.T) {
	s := newSite(t, nil)
	empty := func(when string) {
		t.Helper()
		if names := s.sh("ls -A").ok().out; names != "" {
			t.Errorf("%s: %s", when, names)
		}
	}
	s.run("--write", ".", "--", "true").ok()
	empty("normal")
	s.run("--write", ".", "--read", s.root+"/bin", "--", "sh", "-c", "exit 3").is(3)
	empty("a failure")
	s.run("--write", ".", "--write", "none", "--", "true").is(125)
	empty("a refusal")
	// Two at once, one of which is killed. Its report, which says that it began, is what was asked for, and elsewhere.
	a, b := s.begin("run", "--quiet", "--write", ".", "--report", s.home+"/r.json", "--", "sh", "-c", "echo ready; sleep 60"),
		s.begin("run", "--quiet", "--write", ".", "--", "sh", "-c", "echo ready; read x; ls -A")
	a.line("ready")
	b.line("ready")
	must(t, a.cmd.Process.Kill())
	a.ends()
	empty("killed")
	a = s.begin("run", "--quiet", "--write", ".", "--", "sh", "-c", "echo ready; ls -A")
	a.line("ready")
	a.ends()
	must(t, b.in.Close())
	b.ends()
	empty("two at once")
}

// Case 19 (anthropic-experimental/sandbox-runtime#98): in a linked worktree .git is a file. H30: the repository is there.
func TestGitWorktree(t *testing.T) {
	sandtest.Need(t, sandtest.Git)
	s := newSite(t, nil)
	s.sh(`git init -q m && cd m && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m first && git worktree add -q ../wt`).ok()
	wt := s.at(s.path("wt"))
	for _, flags := range [][]string{{"--write", "."}, nil} {
		wt.run(append(flags, "--", "git", "status", "--short", "--branch")...).ok().silent().prints("## wt\n")
		wt.run(append(flags, "--", "git", "log", "--format=%s")...).ok().prints("first\n")
	}
	wt.run("--write", ".", "--", "sh", "-c", `echo x >new; git status --short`).ok().prints("?? new\n")
	if r := wt.run("--write", ".", "--", "sh", "-c", `echo x >../m/new`).says("Read-only file system"); r.status == 0 || exists(s.path("m/new")) {
		t.Error("the main checkout is writable")
	}
}
