//go:build linux && (amd64 || arm64)

package reexec_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/selfcage/selfcage/internal/sandtest"
)

// both runs a command caged and without a cage and wants the same of it.
func both(t *testing.T, make func() *exec.Cmd) result {
	t.Helper()
	bare, caged := run(t, env(make(), "SANDBOX_MODE=off")), run(t, make())
	if caged != bare {
		t.Errorf("in the cage %+v, without %+v", caged, bare)
	}
	return caged
}

// Point 8: a program that looks at the name it was started by behaves as outside.
func TestName(t *testing.T) {
	eachUser(t, func(t *testing.T, u user) {
		dir := u.dir(t)
		if err := os.MkdirAll(dir+"/bin", 0o755); err != nil {
			t.Fatal(err)
		}
		for name, target := range map[string]string{"link": hostPath(t), "bin/tool": "../link"} {
			if err := os.Symlink(target, dir+"/"+name); err != nil {
				t.Fatal(err)
			}
		}
		for _, tt := range []struct{ name, path, argv0 string }{
			{"by its path", hostPath(t), hostPath(t)},
			{"by a link", dir + "/link", dir + "/link"},
			{"by a link to a link", dir + "/bin/tool", dir + "/bin/tool"},
			{"by PATH", hostPath(t), "host"},
			{"by a link in PATH", dir + "/bin/tool", "tool"},
			{"relative", dir + "/link", "./link"},
			{"relative, below", dir + "/bin/tool", "bin/tool"},
			{"a login shell", hostPath(t), "-host"},
			{"a name that is no file", hostPath(t), "something else\n\xff"},
			{"empty", hostPath(t), ""},
			{"longer than a path", hostPath(t), strings.Repeat("x", 100000)},
		} {
			make := func(verb string) func() *exec.Cmd {
				return func() *exec.Cmd {
					cmd := env(u.command(t, verb), "PATH="+dir+"/bin:"+hostDir+":/usr/bin:/bin")
					cmd.Path, cmd.Args[0], cmd.Dir = tt.path, tt.argv0, dir
					return cmd
				}
			}
			t.Run(tt.name, func(t *testing.T) {
				r := run(t, make("cmdline")())
				if got, _, _ := strings.Cut(r.out, "\n"); got != strconv.Quote(tt.argv0) {
					t.Errorf("os.Args[0] is %.200s, want %.200q\n%s", got, tt.argv0, r.err)
				}
				if !strings.HasPrefix(tt.name, "a ") && len(tt.argv0) < 1000 && tt.argv0 != "" {
					both(t, make("cmdline")) // with what ps shows
				}
			})
		}
	})
}

// Case 27: whatever the kernel takes without a cage, it takes with one.
func TestBigCommandLines(t *testing.T) {
	eachUser(t, func(t *testing.T, u user) {
		many := make([]string, 200000)
		for i := range many {
			many[i] = strconv.Itoa(i % 10) // ten bytes each with its pointer: more is too long for the kernel
		}
		var vars, bigVars []string
		for i := range 5000 {
			vars = append(vars, fmt.Sprintf("A%d=%d", i, i))
		}
		for i := range 10 {
			bigVars = append(bigVars, fmt.Sprintf("BIG%d=%s", i, strings.Repeat("y", 100000)))
		}
		for _, tt := range []struct {
			name string
			args []string
			vars []string
		}{
			{"200,000 arguments", many, nil},
			{"5,000 variables", nil, vars},
			{"both", many, vars},
			{"1 MB of environment", nil, bigVars},
			{"one long argument", []string{strings.Repeat("x", 131000)}, nil},
			{"about as many words as bwrap takes", many[:7990], nil},
			{"empty arguments", []string{"", "a", ""}, []string{"EMPTY="}},
			{"bytes", []string{"\xff\xfe", "a\nb", "\x01 \"'"}, []string{"BYTES=\xff\n\x01"}},
			{"like options of ours", []string{"--", "--bind", "/", "/", "--args", "3"}, []string{"--bind=/"}},
		} {
			t.Run(tt.name, func(t *testing.T) {
				for _, byPath := range []bool{false, true} {
					r := both(t, func() *exec.Cmd {
						cmd := env(u.command(t, append([]string{"args"}, tt.args...)...), append(tt.vars, "PATH="+hostDir+":/usr/bin:/bin")...)
						if byPath {
							cmd.Args[0] = "host"
						}
						return cmd
					})
					if !strings.HasPrefix(r.out, strconv.Itoa(len(tt.args)+1)+" ") {
						t.Errorf("got %.300q, %.300q", r.out, r.err)
					}
				}
			})
		}
		t.Run("what ps shows", func(t *testing.T) {
			for _, argv0 := range []string{hostPath(t), "host"} {
				both(t, func() *exec.Cmd {
					cmd := env(u.command(t, append([]string{"cmdline"}, many...)...), "PATH="+hostDir+":/usr/bin:/bin")
					cmd.Args[0] = argv0
					return cmd
				})
			}
		})
	})
}

// Signals after such a start are as after any other.
func TestBigCommandLineDispositions(t *testing.T) {
	u := ordinary(t)
	many := make([]string, 10000)
	for _, prelude := range []string{"", "trap '' HUP INT TSTP USR1"} {
		both(t, func() *exec.Cmd {
			return shellFirst(u.command(t, append([]string{"dispositions"}, many...)...), prelude)
		})
	}
}

// Point 8: nothing of the start is left for descendants.
func TestNothingLeft(t *testing.T) {
	eachUser(t, func(t *testing.T, u user) {
		for _, extra := range [][]string{nil, make([]string, 10000)} {
			r := run(t, u.command(t, append([]string{"sh", `env; cat /proc/self/environ | tr '\0' '\n'; ls -l /proc/$$/fd; sh -c env`, "sh"}, extra...)...))
			if r.status != "exit 0" || strings.Contains(r.out, "SELFCAGE") || !strings.Contains(r.out, "HOME=") {
				t.Errorf("got %+v", r)
			}
			// Case 44: 0, 1, 2 and no other.
			var fds []string
			for _, m := range regexp.MustCompile(`(\d+) -> `).FindAllStringSubmatch(r.out, -1) {
				fds = append(fds, m[1])
			}
			if d := cmp.Diff([]string{"0", "1", "2"}, fds); d != "" {
				t.Errorf("descriptors (-want +got):\n%s%s", d, r.out)
			}
		}
	})
}

// Case 44: what a shell left open stays outside, whatever it is. What an argument names comes along.
func TestDescriptors(t *testing.T) {
	eachUser(t, func(t *testing.T, u user) {
		dir := u.dir(t)
		if err := os.WriteFile(dir+"/secret", []byte("the secret\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		open := "exec 3<" + dir + "/secret 8<" + dir + " 9</ 7<" + dir + "/secret"
		list := `for f in /proc/self/fd/*; do readlink "$f"; done; ls /proc/self/fd/8/.. ; cat <&9; true`
		r := run(t, shellFirst(u.command(t, "sh", list), open))
		if r.status != "exit 0" || strings.Contains(r.out, dir) || strings.Contains(r.out, "secret") {
			t.Errorf("got %+v", r)
		}
		r = run(t, shellFirst(u.command(t, "sh", `cat "$1"; cat <&3; ls /proc/$$/fd`, "sh", "/dev/fd/7", "--in=/proc/self/fd/3"), open))
		if r.status != "exit 0" || r.out != "the secret\nthe secret\n0\n1\n2\n3\n7\n" {
			t.Errorf("named: got %+v", r)
		}
		// A descriptor that is not open must not become one of ours.
		r = run(t, u.command(t, "sh", `for f in 3 4 5 6 7 8 9 10 11; do readlink /proc/$$/fd/$f; done`, "sh", "/dev/fd/4", "/dev/fd/5", "/dev/fd/6", "/dev/fd/7", "/dev/fd/8", "/dev/fd/9"))
		if r.out != "" {
			t.Errorf("not open: got %+v", r)
		}
	})
}

// What is closed outside is what the Go runtime makes of that: /dev/null.
func TestClosedStandardStreams(t *testing.T) {
	eachUser(t, func(t *testing.T, u user) {
		for set := range 8 {
			var closed []string
			for fd := range 3 {
				if set>>fd&1 != 0 {
					closed = append(closed, fmt.Sprintf("%d<&-", fd))
				}
			}
			file := u.dir(t) + "/result"
			cmd := shellFirst(u.command(t, "sh", `for f in 0 1 2; do readlink /proc/$$/fd/$f; done >"$1"; exit 5`, "sh", file), "")
			cmd.Args[2] = `exec "$0" "$@" ` + strings.Join(closed, " ")
			env(cmd, "SANDBOX_WRITABLE="+filepath.Dir(file))
			r := run(t, cmd)
			if r.status != "exit 5" || r.out+r.err != "" {
				t.Errorf("closed %q: %+v", closed, r)
			}
			text, err := os.ReadFile(file)
			lines := strings.Split(string(text), "\n")
			if err != nil || len(lines) != 4 {
				t.Errorf("closed %q: %v, %q", closed, err, text)
				continue
			}
			for fd := range 3 {
				if closed := set>>fd&1 != 0; fd != 1 && closed != (lines[fd] == "/dev/null") {
					t.Errorf("closed %v: descriptor %d is %s", closed, fd, lines[fd])
				}
			}
		}
	})
}

// Case 44: a lock ends with the run, even when the program left a child behind.
func TestLock(t *testing.T) {
	u := ordinary(t)
	dir := u.dir(t)
	if err := os.WriteFile(dir+"/lock", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	r := run(t, shellFirst(u.command(t, "sh", "sleep "+token()+" & exit 3"), "exec 9<"+dir+"/lock; flock -n 9"))
	if r.status != "exit 3" {
		t.Errorf("got %+v", r)
	}
	f, err := os.Open(dir + "/lock")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		t.Error(err)
	}
}

// A make inside takes its turns from the one outside: two jobs run at the same time, and no more.
func TestJobserver(t *testing.T) {
	u := ordinary(t)
	dir := u.dir(t)
	// Each job says when it begins, and ends when both have begun, or gives up.
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(dir+"/"+name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("Makefile", "all:\n\t+@"+hostPath(t)+" exec make -s -f inner.mk\n")
	write("inner.mk", `all: a b
a b:
	@touch began-$@; i=0; while [ ! -e began-a -o ! -e began-b ]; do i=$$((i+1)); [ $$i -lt 600 ] || exit 1; sleep 0.05; done; echo $@ done
`)
	cmd := u.command(t)
	cmd.Path, cmd.Args, cmd.Dir = "/usr/bin/make", []string{"make", "-s", "-j2"}, dir
	r := run(t, env(cmd, "SANDBOX_WRITABLE="+dir))
	if r.status != "exit 0" || !strings.Contains(r.out, "a done\n") || !strings.Contains(r.out, "b done\n") || r.err != "" {
		t.Errorf("got %+v", r)
	}
}

// Case 7, hosts.md 16: a variable says nothing. The mount does.
func TestMarker(t *testing.T) {
	eachUser(t, func(t *testing.T, u user) {
		bare, err := os.Readlink("/proc/self/ns/mnt")
		if err != nil {
			t.Fatal(err)
		}
		inside := func(r result) {
			t.Helper()
			if r.status != "exit 0" || !strings.HasPrefix(r.out, "true ") || strings.Contains(r.out, bare) {
				t.Errorf("got %+v", r)
			}
		}
		for _, marker := range []string{"3:0:-1", "4:0:5", "", "1", "0:0:-1", "x"} {
			inside(run(t, env(u.command(t, "where"), "SELFCAGE_START="+marker)))
			// It must not reach what an unconfined program starts, which might believe it.
			if r := run(t, env(u.command(t, "where"), "SELFCAGE_START="+marker, "SANDBOX_MODE=off")); r.out != "false "+bare+"\n" {
				t.Errorf("off: got %+v", r)
			}
		}
		// The environment of a process inside, replayed outside: a child's, and the program's own with the marker in it.
		for _, script := range []string{"env -0", "cat /proc/$$/environ"} {
			r := run(t, u.command(t, "sh", script))
			cmd := u.command(t, "where")
			cmd.Env = strings.Split(strings.TrimSuffix(r.out, "\x00"), "\x00")
			inside(run(t, cmd))
		}
		// A file in that place is no mount of ours: only root can make one, and nobody inside can remove it.
		r := run(t, u.command(t, "sh", "rm -f /run/selfcage/plan.json; umount /run/selfcage/plan.json; echo >/run/selfcage/plan.json; cat /run/selfcage/plan.json | head -c1"))
		if r.out != "{" {
			t.Errorf("got %+v", r)
		}
	})
}

// hosts.md 17: a start inside goes on in the same cage. It cannot be widened, and off cannot leave it.
func TestNested(t *testing.T) {
	eachUser(t, func(t *testing.T, u user) {
		self := hostPath(t)
		granted, other := u.dir(t), u.dir(t)
		for _, tt := range []struct{ name, script, status, out, err string }{
			{"the same", `readlink /proc/self/ns/mnt; "$0" where`, "exit 0", "", ""},
			{"deeper", `readlink /proc/self/ns/mnt; "$0" sh '"$0" where' "$0"`, "exit 0", "", ""},
			{"off", `readlink /proc/self/ns/mnt; SANDBOX_MODE=off "$0" where`, "exit 0", "", "stays in force"},
			{"what the cage has", `readlink /proc/self/ns/mnt; SANDBOX_WRITABLE=` + granted + ` "$0" where`, "exit 0", "", ""},
			{"a path more", `SANDBOX_WRITABLE=` + other + ` "$0" sh "echo ran"`, "exit 125", "", other},
			{"a path more to read", `SANDBOX_READABLE=` + other + ` "$0" sh "echo ran"`, "exit 125", "", other},
			{"no network", `SANDBOX_NETWORK=none "$0" sh "echo ran"`, "exit 125", "", "network"},
			{"a wrong mode", `SANDBOX_MODE=bwarp "$0" sh "echo ran"`, "exit 125", "", "bwarp"},
			{"a marker by hand", `SELFCAGE_START=3:0:-1 "$0" sh "echo ran"`, "exit 125", "", "sandbox"},
			{"a marker by hand that is none", `SELFCAGE_START=1 "$0" sh "echo ran"`, "exit 125", "", "sandbox"},
		} {
			t.Run(tt.name, func(t *testing.T) {
				cmd := env(u.command(t, "sh", tt.script, self), "SANDBOX_WRITABLE="+granted)
				r := run(t, cmd)
				if r.status != tt.status || !strings.Contains(r.err, tt.err) || tt.err == "" && r.err != "" {
					t.Errorf("got %+v", r)
				}
				if tt.status == "exit 0" {
					lines := strings.Split(r.out, "\n")
					if len(lines) != 3 || lines[1] != "true "+lines[0] {
						t.Errorf("not in the same cage: %+v", r)
					}
				} else if r.out != "" {
					t.Errorf("it ran: %+v", r)
				}
			})
		}
	})
}

// Cases 29 and 37: it is the same program that runs inside, wherever it lies, and even if the file has been deleted or
// replaced by another build.
func TestSameProgram(t *testing.T) {
	eachUser(t, func(t *testing.T, u user) {
		sum := run(t, env(u.command(t, "self"), "SANDBOX_MODE=off")).out
		want := result{status: "exit 0", out: strings.Replace(sum, "false", "true", 1)}
		inTmp, err := os.MkdirTemp("/tmp", "selfcage-test-")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(inTmp)
		u.own(t, inTmp)
		for _, dir := range []string{u.dir(t), inTmp} {
			prog := dir + "/prog"
			fresh := func(mode os.FileMode) {
				t.Helper()
				_ = os.Remove(prog)
				if err := copyFile(hostPath(t), prog, mode); err != nil {
					t.Fatal(err)
				}
			}
			command := func() *exec.Cmd {
				cmd := u.command(t, "self")
				cmd.Path, cmd.Args[0] = prog, prog
				return cmd
			}
			t.Run("in "+filepath.Dir(dir), func(t *testing.T) {
				fresh(0o755)
				if r := run(t, command()); r != want {
					t.Errorf("got %+v", r)
				}
			})
			// The shell has the program open when it is changed, and executes what it has open.
			for name, change := range map[string]string{
				"deleted":                     "rm -f " + prog,
				"replaced by another build":   "rm -f " + prog + "; cp /bin/true " + prog,
				"replaced by a rename":        "cp /bin/true " + prog + ".new; mv -f " + prog + ".new " + prog,
				"in a directory that is gone": "mkdir " + dir + "/d; mv " + prog + " " + dir + "/d/prog; rm -r " + dir + "/d",
			} {
				t.Run(name+" in "+filepath.Dir(dir), func(t *testing.T) {
					fresh(0o755)
					cmd := shellFirst(command(), "")
					// Deleting is a matter for whoever owns the directory.
					cmd.Args[2] = `exec 7<"$0"; ` + change + `; exec /proc/self/fd/7 "$@"`
					if r := run(t, cmd); r != want {
						t.Errorf("got %+v", r)
					}
				})
			}
			t.Run("not readable in "+filepath.Dir(dir), func(t *testing.T) {
				fresh(0o111)
				r := run(t, command())
				if r.status == "exit 125" { // a clear refusal is as good
					refused(t, r, prog, "\nhint: ")
				} else if r.status != "exit 0" && r.status != "exit 98" || !strings.HasPrefix(r.out+"true", "true") {
					t.Errorf("got %+v", r)
				}
			})
		}
		t.Run("in memory", func(t *testing.T) {
			content, err := os.ReadFile(hostPath(t))
			if err != nil {
				t.Fatal(err)
			}
			fd, err := unix.MemfdCreate("prog", 0)
			if err != nil {
				t.Fatal(err)
			}
			f := os.NewFile(uintptr(fd), "prog")
			defer f.Close()
			if _, err := f.Write(content); err != nil {
				t.Fatal(err)
			}
			cmd := u.command(t, "self")
			cmd.ExtraFiles = []*os.File{f}
			cmd.Path = "/bin/sh"
			cmd.Args = []string{"sh", "-c", "exec /proc/self/fd/3 self"}
			if err := os.Chmod("/proc/self/fd/"+strconv.Itoa(fd), 0o755); err != nil {
				t.Fatal(err)
			}
			if r := run(t, cmd); r != want {
				t.Errorf("got %+v", r)
			}
		})
	})
}

// Case 29: go run always puts the program below /tmp. One of the two has the line in main, the other imports auto.
func TestGoRun(t *testing.T) {
	sandtest.Need(t, sandtest.Cage, sandtest.Go)
	for _, prog := range []string{"./testdata/gorun", "./testdata/autorun"} {
		// Into the cache first, which may take its time.
		if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", os.DevNull, prog).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		cmd := exec.Command("go", "run", "-buildvcs=false", prog, "one", "two words")
		cmd.Env = append(os.Environ(), "SANDBOX_MODE=bwrap")
		r := run(t, cmd)
		if r.status != "exit 1" || r.out != "inside true [one two words]\n" || !strings.HasSuffix(r.err, "exit status 7\n") {
			t.Errorf("%s: got %+v", prog, r)
		}
	}
}

// Design point 13: what the program leaves running ends with it.
func TestLeftBehind(t *testing.T) {
	eachUser(t, func(t *testing.T, u user) {
		tok := token()
		script := fmt.Sprintf("sleep %s & setsid nohup sleep %[1]s >/dev/null 2>&1 & (setsid sh -c 'trap \"\" TERM HUP; sleep %[1]s' &); echo done; exit 6", tok)
		if r := run(t, u.command(t, "sh", script)); r.status != "exit 6" || r.out != "done\n" {
			t.Errorf("got %+v", r)
		}
		wantGone(t, tok)
	})
}

// H1 and H3: whose variables count is up to the name, and a variable is stronger than what the source says.
func TestOptions(t *testing.T) {
	u := ordinary(t)
	for _, tt := range []struct {
		name   string
		vars   []string
		inside bool
	}{
		{"the program's own variable", []string{nameVar + "=hyperloom", "HYPERLOOM_SANDBOX_MODE=bwrap"}, true},
		{"another program's variable", []string{nameVar + "=hyperloom", "SANDBOX_MODE=bwrap"}, false},
		{"in the source", []string{modeVar + "=bwrap"}, true},
		{"in the source, and switched off", []string{modeVar + "=bwrap", "SANDBOX_MODE=off"}, false},
	} {
		r := run(t, env(u.command(t, "where"), append([]string{"SANDBOX_MODE="}, tt.vars...)...))
		if r.status != "exit 0" || !strings.HasPrefix(r.out, fmt.Sprint(tt.inside, " ")) || r.err != "" {
			t.Errorf("%s: got %+v", tt.name, r)
		}
	}
	r := run(t, env(u.command(t, "where"), "SANDBOX_MODE=", modeVar+"=bwarp"))
	refused(t, r, "bwarp")
}

// Root inside is nobody: no capability, and the kernel's settings cannot be written. What is written back is what was
// read, so that a failure of this test changes nothing.
func TestRootIsPowerless(t *testing.T) {
	sandtest.Need(t, sandtest.Cage, sandtest.Root)
	const script = `
grep CapEff /proc/self/status
grep CapPrm /proc/self/status
grep CapBnd /proc/self/status
grep NoNewPrivs /proc/self/status
for f in /proc/sys/kernel/panic /proc/sys/vm/swappiness /proc/sys/kernel/core_pattern /proc/sys/fs/file-max; do
	v=$(cat $f) || echo "cannot read $f"
	echo "$v" 2>/dev/null >$f && echo "wrote $f"
done
for f in /proc/sysrq-trigger /proc/irq /sys/kernel/mm /sys/power/state /dev/mem /dev/kmsg /proc/kcore; do
	[ ! -f $f -o ! -w $f ] || (: >>$f) 2>/dev/null && [ -f $f ] && (: >>$f) 2>/dev/null && echo "opened $f for writing"
done
mount -t tmpfs none /mnt 2>/dev/null && echo mounted
mknod /tmp/null c 1 3 2>/dev/null && echo made a device
mount -o remount,rw / 2>/dev/null && echo remounted
chroot / true 2>/dev/null && echo chroot
exit 0`
	r := run(t, user{}.command(t, "sh", script))
	want := "CapEff:\t0000000000000000\nCapPrm:\t0000000000000000\nCapBnd:\t0000000000000000\nNoNewPrivs:\t1\n"
	if r.status != "exit 0" || r.out != want {
		t.Errorf("got %+v", r)
	}
}

// A setuid program gives nothing inside.
func TestSetuid(t *testing.T) {
	u := ordinary(t)
	r := run(t, u.command(t, "sh", "id -u; sudo -n id -u 2>/dev/null; su -c 'id -u' </dev/null 2>/dev/null; true"))
	if lines := strings.Fields(r.out); len(lines) != 1 || lines[0] == "0" {
		t.Errorf("got %+v", r)
	}
}

// What is passed on to bwrap cannot be read by others: no variable is on a command line or in an environment.
func TestNoValuesInProcessLists(t *testing.T) {
	u := ordinary(t)
	secret := "value-" + token()
	h := start(t, env(u.command(t, "handle", "15"), "HARMLESS="+secret))
	h.expect("ready")
	f := h.family()
	for _, pid := range []int{f.bwrap, f.init} {
		for _, name := range []string{"cmdline", "environ"} {
			text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/" + name)
			if os.IsPermission(err) {
				continue
			}
			if err != nil || bytes.Contains(text, []byte(secret)) || name == "environ" && (!bytes.HasPrefix(text, []byte("SELFCAGE_START=")) || bytes.Count(text, []byte{0}) != 1) {
				t.Errorf("%s of %d: %q, %v", name, pid, text, err)
			}
		}
	}
	h.kill(syscall.SIGTERM)
	h.wantStatus("exit 9")
}
