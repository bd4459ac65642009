package cli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/selfcage/selfcage/internal/sandtest"
)

// Case 43 (promptdriven/pdd PR#2071): the status is the command's own, a death by signal is one, and the four statuses of
// ours each have a text.
func TestStatuses(t *testing.T) {
	s := newSite(t, nil)
	for _, n := range []int{0, 1, 7, 124, 255} {
		s.run("--", "sh", "-c", "exit "+strconv.Itoa(n)).is(n).silent()
	}
	// 125 to 127 of the command's own come without our text.
	for _, n := range []int{125, 126, 127, 139} {
		s.run("--", "sh", "-c", "exit "+strconv.Itoa(n)).is(n).silent()
	}
	for _, sig := range []syscall.Signal{syscall.SIGSEGV, syscall.SIGKILL, syscall.SIGTERM, syscall.SIGUSR1} {
		r := s.run("--report", "r.json", "--", "sh", "-c", "kill -"+strconv.Itoa(int(sig))+" $$")
		if told := kernelAtLeast(t, 6, 15); told && r.signal != sig || !told && r.status != 128+int(sig) {
			t.Errorf("signal %d: status %d, signal %d", sig, r.status, r.signal)
		}
		if report := read(t, s.path("r.json")); kernelAtLeast(t, 6, 15) && !strings.Contains(report, `"signal":`+strconv.Itoa(int(sig))) {
			t.Errorf("the report does not name signal %d: %s", sig, report)
		}
	}
	s.run("--", "/no/such").is(127).says("command not found, /no/such", "hint: ")
	s.run("--", "no-such").is(127).says("command not found, no-such")
	s.run("--", "/etc/passwd").is(126).says("cannot execute, /etc/passwd, permission denied")
	s.run("--", "/usr/bin").is(126).says("cannot execute, /usr/bin")
	s.run("--write", "/no/such", "--", "true").is(125).says("/no/such")
	// What a shell would run: the first in PATH that can be.
	s.write("p1/tool", "#!/bin/sh\necho first\n", 0o644)
	s.write("p2/tool", "#!/bin/sh\necho second\n", 0o755)
	s.setenv("PATH="+s.path("p1")+":"+s.path("p2")+":/usr/bin").run("--", "tool").ok().prints("second\n")
	s.setenv("PATH="+s.path("p1")+":/usr/bin").run("--", "tool").is(126).says("permission denied")
}

func kernelAtLeast(t testing.TB, major, minor int) bool {
	t.Helper()
	v := strings.FieldsFunc(read(t, "/proc/sys/kernel/osrelease"), func(c rune) bool { return c < '0' || c > '9' })
	a, _ := strconv.Atoi(v[0])
	b, _ := strconv.Atoi(v[1])
	return a > major || a == major && b >= minor
}

// Scripts: without a first line they are the shell's, as execvp has it; with an interpreter that is not visible the
// message names that, and not the script, as the kernel does.
func TestScriptsOfTheUser(t *testing.T) {
	s := newSite(t, nil)
	s.write("plain", "echo $# $0 \"$2\"\n", 0o755)
	s.run("--", "./plain", "a", "b c").ok().prints("2 ./plain b c\n")
	s.write("python", "#!/opt/none/python -u\n", 0o755)
	s.run("--", "./python").is(126).says("cannot execute, ./python", "its interpreter /opt/none/python does not exist inside")
	interp := s.write(s.root+"/interp/run", "#!/bin/sh\necho interpreted \"$1\"\n", 0o755)
	s.write("mine", "#!"+interp+"\n", 0o755)
	s.command(s.path("mine")).ok().prints("interpreted " + s.path("mine") + "\n")
	// The command's own interpreter comes along, and no other.
	s.run("--", "./mine").ok().silent().prints("interpreted ./mine\n")
	s.run("--", "sh", "-c", "./mine").is(127).says("./mine: not found")
	s.run("--read", filepath.Dir(interp), "--", "sh", "-c", "./mine").ok().prints("interpreted ./mine\n")
}

// The command is found in PATH as outside, though its directory is not visible: ~/bin is in most people's.
func TestCommandFromHome(t *testing.T) {
	s := newSite(t, nil)
	s.write(s.home+"/bin/tool", "#!/bin/sh\necho mine \"$@\"\nls \"$HOME\"\n", 0o755)
	s.write(s.home+"/bin/other", "#!/bin/sh\necho other\n", 0o755)
	must(t, os.Symlink("tool", s.home+"/bin/alias"))
	e := s.setenv("PATH=" + s.home + "/bin:" + cleanPath)
	e.run("--", "tool", "a").ok().prints("mine a\n")
	e.run("--", s.home+"/bin/tool").ok().prints("mine\n")
	e.run("--", "alias").ok().prints("mine\n")
	r := e.run("--", "sh", "-c", `ls -A "$1" "$1/.ssh"`, "sh", s.home).hasNot(homeSecret, "id_test")
	if r.status == 0 {
		t.Errorf("the home is visible: %s", r.out)
	}
	// A wrapper in front of the system's program of that name must not be skipped silently.
	s.write(s.home+"/bin/ls", "#!/bin/sh\necho wrapper\n", 0o755)
	e.run("--", "ls").ok().prints("wrapper\n")
}

// Case 44 (navikt/cplt PR#329): what the caller has open is not open inside, be it a file or a directory that leads
// out. 0, 1 and 2 work.
func TestDescriptors(t *testing.T) {
	s := newSite(t, nil)
	s.write(s.root+"/secret", "secret\n", 0o644)
	r := s.sh(`exec 8<"$HOME" 9<../secret 10>"$HOME/out" 42<../secret
		selfcage run --quiet -- bash -c 'cat <&9; ls /proc/self/fd/8/..; echo x >&10; sh -c "ls /proc/\$\$/fd; :"'`)
	r.prints("0\n1\n2\n").hasNot("secret")
	r.says("9: Bad file descriptor", "10: Bad file descriptor", "/proc/self/fd/8/..")
	// None of ours either: pipes, memory files, sockets.
	if s.run("--", "sh", "-c", `ls -l /proc/$$/fd /proc/1/fd`).hasNot("memfd", "socket").status != 0 {
		t.Log("/proc/1/fd cannot be read")
	}
	s.in = strings.NewReader("from stdin\n")
	s.run("--", "sh", "-c", "cat; echo err >&2").ok().prints("from stdin\n").says("err\n")
	// A descriptor that an argument names is what the argument means.
	s.sh(`selfcage run --quiet -- cat <(echo substituted)`).ok().silent().prints("substituted\n")
	s.sh(`exec 7<../secret; selfcage run --quiet -- cat /dev/fd/7`).ok().prints("secret\n")
}

// Case 27 (netblue30/firejail#4633, containers/bubblewrap#703): long command lines and environments are as outside.
func TestLongCommandLine(t *testing.T) {
	s := newSite(t, nil)
	count := func(n int) []string {
		words := []string{"sh", "-c", `echo $# "$1" "${80000}" ${#2}`, "sh", "first", strings.Repeat("x", 131000)}
		for i := 3; i <= n; i++ {
			words = append(words, strconv.Itoa(i))
		}
		return words
	}
	words := count(80000)
	want := s.command(append([]string{"/bin/sh"}, words[1:]...)...).ok().out
	if want != "80000 first 80000 131000\n" {
		t.Fatalf("outside: %q", want)
	}
	s.run(append([]string{"--"}, words...)...).ok().silent().prints(want)
	// The 200,000 of the report need more than the usual stack outside, too.
	if r := s.sh(`ulimit -s 65536 && sh -c 'echo $#' sh $(seq 1 200000)`); r.status == 0 {
		s.sh(`ulimit -s 65536 && selfcage run --quiet -- sh -c 'echo $#' sh $(seq 1 200000)`).ok().silent().prints(r.out)
	}
	big := *s
	for i := range 8 {
		big.env = append(big.env[:len(big.env):len(big.env)], "BIG"+strconv.Itoa(i)+"="+strings.Repeat("y", 125000))
	}
	big.run("--", "sh", "-c", `echo ${#BIG0} ${#BIG7}`).ok().silent().prints("125000 125000\n")
	many := *s
	for i := range 5000 {
		many.env = append(many.env, "V"+strconv.Itoa(i)+"=value "+strconv.Itoa(i))
	}
	many.run("--", "sh", "-c", `echo $V0, $V4999; env | grep -c ^V`).ok().silent().prints("value 0, value 4999\n5000\n")
	// So close to the limit that what is added inside does not fit: as outside or an error that says so.
	r := s.sh(`a=(); for ((i = 0; i < 15; i++)); do printf -v w '%0131000d' 0; a+=("$w"); done
		selfcage run --quiet -- sh -c 'echo $#' sh "${a[@]}"`)
	if r.status == 0 {
		r.prints("15\n")
	} else if (r.status != 125 && r.status != 126) || !strings.Contains(r.err, "rgument list too long") {
		t.Errorf("status %d: %.200s", r.status, r.err)
	}
}

// Case 37 (openai/codex#19132): the executable is deleted, replaced or never had a path. The same image runs, never
// another one, or the start is refused.
func TestExecutableGone(t *testing.T) {
	s := newSite(t, nil)
	const usual = `exec -a selfcage /proc/self/fd/7 run --quiet -- echo right`
	for name, script := range map[string]string{
		"deleted":  `cp ../bin/selfcage h; exec 7<h; rm h; ` + usual,
		"replaced": `cp ../bin/selfcage h; exec 7<h; printf '#!/bin/sh\necho wrong\n' >w; chmod 755 w; mv w h; ` + usual,
		"renamed":  `cp ../bin/selfcage h; exec 7<h; mv h h2; ` + usual,
		"link":     `ln -sf ../bin/selfcage l; exec -a selfcage ./l run --quiet -- echo right`,
		"hidden":   `mkdir -p ../hidden; cp ../bin/selfcage ../hidden/other; exec -a selfcage ../hidden/other run --quiet -- echo right`,
	} {
		if r := s.sh(script); r.status != 0 || r.out != "right\n" {
			t.Errorf("%s: status %d, %q, %s", name, r.status, r.out, r.err)
		}
	}
	if sandtest.Have(sandtest.Python) {
		s.command("/usr/bin/env", "python3", "-c", `
import os
fd = os.memfd_create("image", 0)
os.write(fd, open("../bin/selfcage", "rb").read())
os.execve(fd, ["selfcage", "run", "--quiet", "--", "echo", "right"], os.environ)`).ok().prints("right\n")
	}
}

// Case 29: a program below /tmp runs, and what lies beside it there is neither visible nor can be written.
func TestExecutableBelowTmp(t *testing.T) {
	s := newSite(t, nil)
	tmp, err := os.MkdirTemp("/tmp", "selfcage-test-")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(tmp) })
	must(t, os.Mkdir(tmp+"/exe", 0o755))
	must(t, os.WriteFile(tmp+"/exe/beside", nil, 0o666))
	copyFile(t, s.bin+"/selfcage", tmp+"/exe/selfcage", 0o755)
	r := s.command(tmp+"/exe/selfcage", "run", "--quiet", "--", "sh", "-c", `find /tmp -mindepth 1; touch "$1/exe/new" "$1/new"; touch /tmp/mine`, "sh", tmp)
	r.ok().prints(tmp + "\n" + tmp + "/exe\n" + tmp + "/exe/selfcage\n")
	if strings.Count(r.err, "Read-only file system") != 2 || exists(tmp+"/exe/new") || exists("/tmp/mine") {
		t.Errorf("%s", r.err)
	}
}

// Case 37: a binary that may be executed and not read. Its path can be bound; deleted, it cannot be copied.
func TestExecutableUnreadable(t *testing.T) {
	s := newSite(t, nil)
	s.sh(`cp ../bin/selfcage h && chmod 0111 h && exec -a selfcage ./h run --quiet -- echo right`).ok().prints("right\n")
	sandtest.Need(t, sandtest.Ordinary) // root reads it all the same
	r := s.sh(`rm -f h; cp ../bin/selfcage h && exec 7<h && chmod 0111 h && rm h && exec -a selfcage /proc/self/fd/7 run --quiet -- echo ran`)
	r.refused("cannot start the program again", "cannot be read", "hint: ")
}

// hosts.md 17: what a program inside asks for is compared with the cage: less or the same goes on, more is refused.
func TestNested(t *testing.T) {
	s := newSite(t, nil)
	s.mkdir("w/sub")
	s.write("f", "f\n", 0o644)
	in := func(words ...string) *result {
		t.Helper()
		return s.run(append([]string{"--write", "w", "--device", "/dev/full", "--", "selfcage", "run"}, words...)...)
	}
	in("--", "sh", "-c", "echo nested; readlink /proc/self/ns/pid").ok().silent().has("nested\npid:[")
	for _, flags := range [][]string{
		{"--write", "w"}, {"--write", "w/sub"}, {"--read", "w"}, {"--read", "f"}, {"--read", "/usr/share"}, {"--read", "/etc/hostname"},
		{"--network", "shared"}, {"--device", "/dev/full"}, {"--device", "/dev/zero"}, {"--mode", "bwrap"}, {"--write", "/tmp"},
	} {
		in(append(flags, "--", "echo", "nested")...).ok().silent().prints("nested\n")
	}
	for _, flags := range [][]string{
		{"--write", "."}, {"--write", "f"}, {"--write", "/usr"}, {"--read", s.home}, {"--read", s.root + "/none"}, {"--network", "none"},
		{"--device", "/dev/kmsg"}, {"--device", "/dev/none"}, {"--write", s.root}, {"--write", "/dev"},
	} {
		in(append(flags, "--", "echo", "ran")...).refused("cannot make another cage inside this one", flags[0], "hint: ")
	}
	in("--mode", "landlock", "--", "echo", "ran").refused("mode landlock")
	in("--gpu", "all", "--", "echo", "ran").refused("gpu all")
	in("--secret", "NONE", "--", "echo", "ran").refused("NONE", "not set")
	in("--report", "w/r.json", "--", "echo", "nested").ok().prints("nested\n").says("no report is written inside a cage")
	in("--mode", "off", "--", "readlink", "/proc/1/comm").says("one cannot leave")
	in("--mode", "off", "--quiet", "--", "echo", "nested").ok().silent().prints("nested\n")
	// What the variables asked for once is inherited and is the same inside, from any directory.
	s.setenv("SANDBOX_MODE=bwrap", "SANDBOX_WRITABLE=w", "SANDBOX_REPORT=w/r.json").
		selfcage("run", "--quiet", "--", "sh", "-c", "cd /usr && selfcage run -- echo nested").ok().silent().prints("nested\n")
	// Made inside, in a place that ends with the cage, it can be written as long as the cage is there.
	s.run("--", "sh", "-c", "mkdir /tmp/d && selfcage run --write /tmp/d -- touch /tmp/d/f && ls /tmp/d").ok().silent().prints("f\n")
	// A cage without a network does not get one.
	sandtest.Need(t, sandtest.NetNS)
	s.run("--network", "none", "--", "selfcage", "run", "--network", "shared", "--", "echo", "ran").refused("--network", "the cage has no network")
	s.run("--network", "none", "--", "selfcage", "run", "--network", "none", "--", "echo", "nested").ok().prints("nested\n")
}

// Case 30 (anthropic-experimental/sandbox-runtime#213, ray-project/ray#7945), hosts.md 23: TMPDIR is short inside, whatever it is
// outside, since the path of a Unix socket has 108 bytes. H24: it can be written.
func TestLongTMPDIR(t *testing.T) {
	s := newSite(t, nil)
	long, err := os.MkdirTemp("/tmp", strings.Repeat("x", 90))
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(long) })
	e := s.setenv("TMPDIR="+long, "TMP="+long)
	e.run("--", "sh", "-c", `echo "$TMPDIR" "$TMP"; mktemp; ls -A /tmp | wc -l`).ok().has("/tmp /tmp\n/tmp/tmp.", "\n1\n")
	s.setenv("TMPDIR=/nowhere").run("--", "sh", "-c", `echo "$TMPDIR"; touch "$TMPDIR/f"`).ok().silent().prints("/tmp\n")
	sandtest.Need(t, sandtest.Python)
	e.run("--", "python3", "-c", `import multiprocessing.managers as m; x = m.SyncManager(); x.start(); print("ok")`).ok().prints("ok\n")
}

// Case 31 (pytorch/pytorch#58386): shared memory is there, large and private.
func TestSharedMemory(t *testing.T) {
	sandtest.Need(t, sandtest.Python)
	s := newSite(t, nil)
	const name = "selfcage-test-shm"
	s.run("--", "python3", "-c", `
import multiprocessing as m, os
from multiprocessing import shared_memory as s
m.Lock()
x = s.SharedMemory(create=True, size=200 << 20)
x.buf[-1] = 1
x.close(); x.unlink()
open("/dev/shm/`+name+`", "w").close()
v = os.statvfs("/dev/shm")
half = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
print("ok", v.f_blocks * v.f_frsize >= half * 0.95, os.listdir("/dev/shm"))`).ok().prints("ok True ['" + name + "']\n")
	if exists("/dev/shm/" + name) {
		t.Error("it is on the host")
	}
	s.selfcage("explain").ok().has("/dev/shm (half of the memory)")
}

// H24, H25, L19, hosts.md 22: places of its own for HOME and temporary files, HOME not below /home; they end with the cage.
func TestPrivatePlaces(t *testing.T) {
	s := newSite(t, nil)
	f, err := os.CreateTemp("/tmp", "selfcage-test-")
	must(t, err)
	f.Close()
	t.Cleanup(func() { os.Remove(f.Name()) })
	r := s.setenv("XDG_CACHE_HOME="+s.home+"/.cache", "XDG_RUNTIME_DIR=/run/user/1").run("--", "sh", "-c", `
		echo "$HOME" "$XDG_CACHE_HOME" "$XDG_RUNTIME_DIR" "$XDG_DATA_HOME"
		touch ~/f /tmp/selfcage-inside /var/tmp/g /dev/shm/h && mkdir -p "$XDG_CACHE_HOME" && stat -c %a ~ "$XDG_RUNTIME_DIR"
		ls -A /tmp | grep selfcage; awk '$2 == "/run/selfcage/home" {print $3}' /proc/mounts`)
	r.ok().prints("/run/selfcage/home /run/selfcage/home/.cache /run/selfcage/home/.run \n700\n700\nselfcage-inside\ntmpfs\n")
	if exists("/tmp/selfcage-inside") || exists("/var/tmp/g") || exists("/dev/shm/h") || exists("/run/selfcage") {
		t.Error("something is left on the host")
	}
	s.run("--", "ls", "-A", "/tmp", "/run/selfcage/home").ok().hasNot("selfcage-inside", "\nf\n")
}

// Case 11 (DavHau/nix-portable#134): the caller has a name inside.
func TestAccount(t *testing.T) {
	s := newSite(t, nil)
	name := strings.TrimSpace(s.command("/usr/bin/id", "-un").ok().out)
	group := strings.TrimSpace(s.command("/usr/bin/id", "-gn").ok().out)
	r := s.run("--", "sh", "-c", `whoami && id -gn && getent passwd $(id -u) | cut -d: -f1,6 && getent group $(id -g) | cut -d: -f1 && cut -d: -f1 /etc/passwd`).ok()
	names := "root\n" + name + "\nnobody\n"
	if name == "root" {
		names = "root\nnobody\n"
	}
	r.prints(name + "\n" + group + "\n" + name + ":/run/selfcage/home\n" + group + "\n" + names)
	if sandtest.Have(sandtest.Python) {
		s.run("--", "python3", "-c", `import getpass, pwd, os; print(getpass.getuser(), pwd.getpwuid(os.getuid()).pw_name, os.path.expanduser("~"))`).
			ok().prints("somebody " + name + " /run/selfcage/home\n") // getuser reads LOGNAME first, as outside
	}
}

// Case 11, where the account comes from a directory service: the host's passwd does not have it.
func TestAccountElsewhere(t *testing.T) {
	s := newStage(t, `
		grep -v "^[^:]*:[^:]*:$uid:" /etc/passwd >"$W/passwd"
		mount --bind "$W/passwd" /etc/passwd
	`)
	s.command("/usr/bin/whoami").is(1)
	s.run("--", "sh", "-c", `whoami && getent passwd $(id -u) | cut -d: -f1,6 && getent group $(id -g) | wc -l`).
		ok().prints("somebody\nsomebody:/run/selfcage/home\n1\n")
	s.selfcage("explain").ok().has("one is made from USER")
}

// Case 10 (Naxdy/nix-bwrapper#23): resolv.conf is a link, or a chain of them, into a place that is not visible. It can be
// read by its name and by the resolved one, and nothing else of that place is there.
func TestResolvConf(t *testing.T) {
	for _, tt := range []struct{ name, links, file string }{
		{"systemd", "/etc/resolv.conf>../run/systemd/resolve/stub-resolv.conf", "/run/systemd/resolve/stub-resolv.conf"},
		{"two steps", "/etc/resolv.conf>/run/resolvconf/resolv.conf /run/resolvconf/resolv.conf>../systemd/resolve/stub", "/run/systemd/resolve/stub"},
		{"NetworkManager", "/etc/resolv.conf>/var/run/NetworkManager/resolv.conf", "/run/NetworkManager/resolv.conf"},
		{"WSL", "/etc/resolv.conf>/mnt/wsl/resolv.conf", "/mnt/wsl/resolv.conf"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			script := `
				mount -t tmpfs none /run; mount -t tmpfs none /mnt
				[ -d "$W/etc" ] || cp -a /etc "$W/etc"
				rm -f "$W/etc/resolv.conf"; mount --bind "$W/etc" /etc
				echo hidden >/run/hidden; mkdir -p $(dirname ` + tt.file + `); echo beside >$(dirname ` + tt.file + `)/beside
				echo nameserver 192.0.2.1 >` + tt.file + `
				`
			for _, l := range strings.Fields(tt.links) {
				from, to, _ := strings.Cut(l, ">")
				script += "mkdir -p $(dirname " + from + "); ln -s " + to + " " + from + "\n"
			}
			s := newStage(t, script)
			s.command("/bin/cat", "/etc/resolv.conf").ok().prints("nameserver 192.0.2.1\n")
			s.run("--network", "shared", "--", "sh", "-c", `cat /etc/resolv.conf "$1"; find /run /mnt -path /run/selfcage -prune -o ! -type d -print 2>/dev/null | grep -c .`, "sh", tt.file).
				has("nameserver 192.0.2.1\nnameserver 192.0.2.1\n").hasNot("hidden", "beside")
			r := s.run("--", "sh", "-c", `ls $(dirname "$1") /run`, "sh", tt.file).ok().hasNot("hidden", "beside")
			r.has(filepath.Base(tt.file))
			s.run("--network", "none", "--", "sh", "-c", `ls "$1"; echo started`, "sh", tt.file).ok().prints("started\n")
			s.selfcage("doctor").ok().has("/etc/resolv.conf", "leads to "+tt.file)
		})
	}
	t.Run("dangling", func(t *testing.T) {
		s := newStage(t, `
			mount -t tmpfs none /run
			[ -d "$W/etc" ] || cp -a /etc "$W/etc"
			ln -sfn ../run/systemd/resolve/stub-resolv.conf "$W/etc/resolv.conf"; mount --bind "$W/etc" /etc
		`)
		s.run("--", "echo", "started").ok().prints("started\n")
		s.selfcage("doctor").ok().has("warning", "/etc/resolv.conf", "leads nowhere")
		s.selfcage("explain").ok().has("left out", "/etc/resolv.conf")
	})
}

// H32, hosts.md 21: the network is the host's unless told otherwise; none is a loopback of its own.
func TestNetwork(t *testing.T) {
	sandtest.Need(t, sandtest.NetNS)
	s := newSite(t, nil)
	port := serve(t, "host's service\n")
	ask := []string{"--", "bash", "-c", `exec 3<>/dev/tcp/127.0.0.1/$1 && cat <&3`, "bash", port}
	s.run(ask...).ok().prints("host's service\n")
	s.run(append([]string{"--network", "shared"}, ask...)...).ok().prints("host's service\n")
	for _, r := range []*result{
		s.run(append([]string{"--network", "none"}, ask...)...),
		s.setenv("SANDBOX_NETWORK=none").run(ask...),
	} {
		if r.status == 0 || strings.Contains(r.out, "service") {
			t.Errorf("status %d: %s", r.status, r.out)
		}
		r.says("Connection refused")
	}
	s.run("--network", "none", "--", "sed", "-n", `s/^ *\([a-z0-9]*\):.*/\1/p`, "/proc/net/dev").ok().prints("lo\n")
	s.run("--network", "none", "--", "bash", "-c", `exec 3<>/dev/tcp/192.0.2.1/80`).is(1).says("Network is unreachable")
	if sandtest.Have(sandtest.Python) { // its own loopback works
		s.run("--network", "none", "--", "python3", "-c", `
import socket
l = socket.socket(); l.bind(("127.0.0.1", 0)); l.listen()
c = socket.create_connection(l.getsockname()); c.send(b"own"); a, _ = l.accept(); print(a.recv(9).decode())`).ok().prints("own\n")
	}
}

// A caged process has what a plain one has: the same files by the same names, not more output than its own.
func TestTransparent(t *testing.T) {
	s := newSite(t, nil)
	s.write("data", "x\n", 0o644)
	var big bytes.Buffer
	for i := range 200000 {
		big.WriteString(strconv.Itoa(i) + "\n")
	}
	s.write("big", big.String(), 0o644)
	s.run("--", "cat", "big").ok().silent().prints(big.String())
	s.run("--", "sh", "-c", `echo "$0" "$@"`, "", "*", "a  b", "--", "-x", "\xff").ok().silent().prints(" * a  b -- -x \xff\n")
	s.run("sh", "-c", "echo no dashes").ok().prints("no dashes\n")
	s.sh(`selfcage run --quiet -- yes | head -n 1`).ok().silent().prints("y\n")
	s.sh(`umask 027; selfcage run --quiet --write . -- sh -c 'umask; touch u; stat -c %a u'`).ok().prints("0027\n640\n")
	s.sh(`ulimit -n 77; selfcage run --quiet -- sh -c 'ulimit -n'`).ok().prints("77\n")
	s.sh(`nice -n 5 selfcage run --quiet -- nice`).ok().prints("5\n")
}
