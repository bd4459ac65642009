//go:build linux && (amd64 || arm64)

package launch

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/selfcage/selfcage/binds"
	"github.com/selfcage/selfcage/plan"
)

// Point 1 of the design: nothing of the environment can be read in a process list, and no descriptor but these is
// bwrap's.
func TestCommand(t *testing.T) {
	s := &supervisor{plan: &plan.Plan{
		Env: []plan.Var{{Name: "SECRET", Value: "hunter2"}, {Name: "EMPTY"}}, Dir: "/", Command: "/bin/prog", Args: []string{"prog", "-x", ""},
	}}
	s.ignored = bit(hup)
	cmd, files, err := s.command(77)
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll(files)
	if len(files) != 1 {
		t.Fatalf("files %v", files)
	}
	want := []string{"bwrap", "--args", fmt.Sprint(files[0]), "--", "/bin/prog", "-x", ""}
	if d := cmp.Diff(want, cmd); d != "" {
		t.Errorf("command (-want +got):\n%s", d)
	}
	options := strings.Split(readFD(t, files[0]), "\x00")
	for _, want := range []string{"--setenv\nSECRET\nhunter2\n", "--setenv\nEMPTY\n\n", "--setenv\n" + StartVar + "\n77:1:-1\n", "--clearenv\n", "--die-with-parent\n"} {
		if all := strings.Join(options, "\n"); !strings.Contains(all, want) {
			t.Errorf("no %q in the options:\n%s", want, all)
		}
	}
}

// Case 27: bwrap refuses more than 9000 words.
func TestCommandLong(t *testing.T) {
	args := append([]string{"prog"}, make([]string, 20000)...)
	var vars []plan.Var
	for i := range 5000 {
		vars = append(vars, plan.Var{Name: fmt.Sprintf("A%d", i), Value: "x"})
	}
	vars = append(vars, plan.Var{Name: "LD_LIBRARY_PATH", Value: "/opt/lib"}, plan.Var{Name: "PATH", Value: "/opt/bin"}, plan.Var{Name: "Z", Value: "z"})
	s := &supervisor{plan: &plan.Plan{Env: vars, Dir: "/", Command: "prog", Args: args}}
	cmd, files, err := s.command(77)
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll(files)
	if len(files) != 2 || len(cmd) != 5 || cmd[4] != "prog" {
		t.Fatalf("files %v, command %q", files, cmd)
	}
	options := strings.Split(readFD(t, files[1]), "\x00")
	if n := len(options) + len(cmd); n > 9000 {
		t.Errorf("%d words", n)
	}
	all := strings.Join(options, "\n")
	// Without them the program is not found, or not its libraries, and it gets no chance to fetch the rest.
	for _, want := range []string{"--setenv\nPATH\n/opt/bin\n", "--setenv\nLD_LIBRARY_PATH\n/opt/lib\n", fmt.Sprintf("--setenv\n%s\n77:0:%d\n", StartVar, files[0])} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in the options", want)
		}
	}
	argv, environ, ok := splitWords([]byte(readFD(t, files[0])))
	if !ok || len(argv) != len(args) || len(environ) != len(vars) || argv[0] != "prog" || environ[5002] != "Z=z" {
		t.Errorf("%d arguments, %d variables", len(argv), len(environ))
	}
}

func readFD(t *testing.T, fd int) string {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, st.Size)
	if _, err := unix.Pread(fd, b, 0); err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestMemoryFile(t *testing.T) {
	fd, err := memoryFile("test", []byte("content"))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if got := readFD(t, fd); got != "content" {
		t.Errorf("content %q", got)
	}
	if at, _ := unix.Seek(fd, 0, 1); at != 0 {
		t.Errorf("bwrap would begin at %d", at)
	}
	if _, err := unix.Pwrite(fd, []byte("x"), 0); err != unix.EPERM {
		t.Errorf("write: %v", err)
	}
	if err := unix.Ftruncate(fd, 0); err != unix.EPERM {
		t.Errorf("truncate: %v", err)
	}
	if flags, _ := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); flags&unix.FD_CLOEXEC != 0 {
		t.Error("bwrap would not get it")
	}
}

// Case 44: only what the caller has handed over. Whatever else has such a number by now is our own.
func TestOpenDescriptors(t *testing.T) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer closeAll(p[:])
	setInherited(p[0])
	got := openDescriptors([]plan.FD{{N: p[0]}, {N: p[1]}, {N: 54321}})
	if d := cmp.Diff(p[:1], got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// The name of a process can hold any byte.
func TestProcessState(t *testing.T) {
	if state, parent := processState(os.Getpid()); state != 'R' && state != 'S' || parent != os.Getppid() {
		t.Errorf("state %c, parent %d, want %d", state, parent, os.Getppid())
	}
	if state, parent := processState(1 << 30); state != 'X' || parent != 0 {
		t.Errorf("nobody: state %c, parent %d", state, parent)
	}
}

// A bind that is another file than the plan means is noticed; one that is the same, or is not known, passes.
func TestSameFiles(t *testing.T) {
	dir := t.TempDir()
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		t.Fatal(err)
	}
	id := binds.ID{Dev: uint64(st.Dev), Ino: st.Ino}
	check := func(m binds.Mount) error { return sameFiles([]binds.Mount{m}, os.Getpid()) }
	if err := check(binds.Mount{Target: dir, ID: id}); err != nil {
		t.Error(err)
	}
	if err := check(binds.Mount{Target: dir}); err != nil {
		t.Error(err)
	}
	reason := binds.Reason{By: "--write"}
	if err := check(binds.Mount{Target: "/usr", ID: id, Reason: reason}); err == nil || !strings.Contains(err.Error(), "/usr, asked for by --write, is another file") {
		t.Errorf("another file: %v", err)
	}
	if err := check(binds.Mount{Target: dir + "/none", ID: id, Reason: reason}); err == nil {
		t.Error("a missing file passed")
	}
}

// A command that would be another file inside, or none, is noticed.
func TestSameCommand(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, mode os.FileMode) (string, binds.ID) {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte("x"), mode); err != nil {
			t.Fatal(err)
		}
		var st unix.Stat_t
		if err := unix.Lstat(p, &st); err != nil {
			t.Fatal(err)
		}
		return p, binds.ID{Dev: uint64(st.Dev), Ino: st.Ino}
	}
	first, firstID := file("first", 0o755)
	second, secondID := file("second", 0o755)
	plain, plainID := file("plain", 0o644)
	link := filepath.Join(dir, "link")
	if err := os.Symlink(second, link); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name  string
		paths []string
		id    binds.ID
		want  string
	}{
		{"the first", []string{first}, firstID, ""},
		{"behind one that is not there", []string{dir + "/none", first}, firstID, ""},
		{"behind one that is no program", []string{plain, dir, first}, firstID, ""},
		{"by a link", []string{link}, secondID, ""},
		{"another one comes first", []string{first, second}, secondID, "another " + first + " would run"},
		{"exchanged", []string{first}, secondID, "another " + first},
		{"gone", []string{dir + "/none"}, firstID, dir + "/none would run outside, and is not there"},
		{"no program any more", []string{plain}, plainID, "is not there"},
	} {
		err := sameCommands([]plan.Same{{Paths: []string{first}, ID: firstID}, {Paths: tt.paths, ID: tt.id}}, os.Getpid())
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

func TestSameProgram(t *testing.T) {
	var st unix.Stat_t
	if err := unix.Stat("/proc/self/exe", &st); err != nil {
		t.Fatal(err)
	}
	own := binds.ID{Dev: uint64(st.Dev), Ino: st.Ino}
	if err := sameProgram(own, os.Getpid()); err != nil {
		t.Error(err)
	}
	if err := sameProgram(binds.ID{}, os.Getpid()); err != nil { // a copy
		t.Error(err)
	}
	own.Ino++
	if err := sameProgram(own, os.Getpid()); err == nil {
		t.Error("another program passed")
	}
}

// Where a name goes through "..", the kernel gives up while something is being renamed anywhere.
func TestSameCommandAmongRenames(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(dir+"/a/b", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/x", []byte("x"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../../x", dir+"/a/b/link"); err != nil {
		t.Fatal(err)
	}
	var st unix.Stat_t
	if err := unix.Stat(dir+"/x", &st); err != nil {
		t.Fatal(err)
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		other := t.TempDir()
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				_ = os.Mkdir(other+"/1", 0o755)
				_ = os.Rename(other+"/1", other+"/2")
				_ = os.Remove(other + "/2")
			}
		}
	}()
	for range 3000 {
		if err := sameCommands([]plan.Same{{Paths: []string{dir + "/a/b/link"}, ID: binds.ID{Dev: uint64(st.Dev), Ino: st.Ino}}}, os.Getpid()); err != nil {
			t.Error(err)
			break
		}
	}
	close(stop)
	<-done
}
