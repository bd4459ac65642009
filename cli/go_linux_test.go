package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/selfcage/selfcage/internal/sandtest"
)

// The tests here start the go command, so TestOrdinaryUser leaves them out: the sources and the module cache may be
// where that user cannot read them. Their names begin with TestGo.

// build makes the program of a package of this module, with the site's owner as its owner.
func (s *site) build(name string) string {
	s.t.Helper()
	sandtest.Need(s.t, sandtest.Go)
	out := filepath.Join(s.root, filepath.Base(name)+".bin")
	goCommand(s.t, nil, "build", "-o", out, "github.com/selfcage/selfcage/"+name)
	return out
}

// goCommand runs the go command below /tmp, where everybody's go run and go test put their programs.
func goCommand(t testing.TB, environ []string, args ...string) string {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Env = append(append(os.Environ(), "GOTMPDIR=", "TMPDIR=/tmp"), environ...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("go %q: %v\n%s%s", args, err, out.String(), errs.String())
	}
	return out.String() + errs.String()
}

// The command as it is released, not the test binary: both do the same.
func TestGoCommand(t *testing.T) {
	s := newSite(t, nil)
	bin := s.build("cmd/selfcage")
	s.command(bin, "run", "--quiet", "--", "sh", "-c", `echo "$@"; exit 3`, "sh", "a", "b c").is(3).silent().prints("a b c\n")
	s.command(bin, "run", "--quiet", "--", "touch", "f").is(1).says("Read-only file system")
	s.command(bin, "run", "--mode", "bwarp", "--", "echo", "ran").refused("bwarp")
	// More words than bubblewrap takes: the first stage inside has no command line yet.
	s.sh(`exec "$0" run --quiet -- sh -c 'echo $# $1' sh $(seq 1 20000)`+"\n", "x").is(127)
	s.command(append([]string{bin, "run", "--quiet", "--", "sh", "-c", "echo $#", "sh"}, strings.Fields(strings.Repeat("w ", 20000))...)...).
		ok().silent().prints("20000\n")
	s.command(bin, "--help").ok().has("explain", "doctor")
	s.command(bin, "version").ok().has("selfcage ")
	s.command(bin, "status").is(1).prints("not in a cage\n")
}

// Case 29 (paiml/bashrs#340): go run puts the program where a cage has a place of its own. It is there all the same.
func TestGoRun(t *testing.T) {
	sandtest.Need(t, sandtest.Cage, sandtest.Go)
	outside, err := os.Readlink("/proc/self/ns/pid")
	must(t, err)
	dir, err := os.Getwd()
	must(t, err)
	const program = "github.com/selfcage/selfcage/examples/minimal"
	bare := strings.Split(goCommand(t, []string{"MINIMAL_SANDBOX_MODE="}, "run", program, "a", "b c"), "\n")
	caged := strings.Split(goCommand(t, []string{"MINIMAL_SANDBOX_MODE=bwrap", "MINIMAL_SANDBOX_QUIET=1"}, "run", program, "a", "b c"), "\n")
	if bare[0] != outside || caged[0] == outside || !strings.HasPrefix(caged[0], "pid:[") {
		t.Errorf("pid namespace %s bare, %s caged, %s outside", bare[0], caged[0], outside)
	}
	name := regexp.MustCompile(`(/go-build.*|/[0-9a-f]+-d)/minimal$`) // below /tmp, since Go 1.24 also in the build cache
	for _, out := range [][]string{bare, caged} {
		if out[1] != dir || !name.MatchString(out[2]) || strings.Join(out[3:], "\n") != "a\nb c\n" {
			t.Errorf("%q", out)
		}
	}
}

// Case 29, go test with a TestMain that calls Init: the same build runs inside, its directory cannot be written, and
// nothing else of /tmp is there.
func TestGoTest(t *testing.T) {
	sandtest.Need(t, sandtest.Cage, sandtest.Go)
	dir := sandtest.WorkDir(t)
	code := filepath.Join(dir, "cage_test.go")
	must(t, os.WriteFile(code, []byte(cagedTest), 0o644))
	wd, err := os.Getwd()
	must(t, err)
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(wd, "../examples/minimal/cage_test.go"): code}})
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o644))
	mark, err := os.CreateTemp("/tmp", "selfcage-test-")
	must(t, err)
	mark.Close()
	t.Cleanup(func() { os.Remove(mark.Name()) })
	out := goCommand(t, []string{"MINIMAL_SANDBOX_MODE=bwrap", "MINIMAL_SANDBOX_QUIET=1"},
		"test", "-count=1", "-v", "-overlay", filepath.Join(dir, "overlay.json"), "github.com/selfcage/selfcage/examples/minimal")
	m := regexp.MustCompile(`(?m)^outside ([0-9a-f]{64})\n(?:.*\n)*?inside true ([0-9a-f]{64})\nbeside: (.*)\ntmp: (.*)$`).FindStringSubmatch(out)
	if m == nil || !strings.Contains(out, "--- PASS: TestInside") {
		t.Fatal(out)
	}
	if m[1] != m[2] || !strings.HasSuffix(m[3], "read-only file system") || !regexp.MustCompile(`^\[go-build\d+\] <nil>$`).MatchString(m[4]) {
		t.Errorf("%q", m[1:])
	}
}

const cagedTest = `package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/selfcage/selfcage/reexec"
)

func sum() string {
	data, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(data))
}

func TestMain(m *testing.M) {
	if !reexec.Inside() {
		fmt.Println("outside", sum())
	}
	reexec.Init(reexec.Options{Name: "minimal"})
	os.Exit(m.Run())
}

func TestInside(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	entries, err := os.ReadDir("/tmp")
	for _, e := range entries {
		names = append(names, e.Name())
	}
	fmt.Println("inside", reexec.Inside(), sum())
	fmt.Println("beside:", os.WriteFile(filepath.Join(filepath.Dir(exe), "new"), nil, 0o600))
	fmt.Println("tmp:", names, err)
}
`

// The examples run in a cage as they do without.
func TestGoExamples(t *testing.T) {
	s := newSite(t, nil)
	minimal := s.build("examples/minimal")
	outside := s.command("/usr/bin/readlink", "/proc/self/ns/pid").ok().out
	for _, tt := range []struct {
		mode  string
		caged bool
	}{{"", false}, {"off", false}, {"bwrap", true}} {
		r := s.setenv("MINIMAL_SANDBOX_MODE="+tt.mode, "MINIMAL_SANDBOX_QUIET=1", "SANDBOX_MODE=bwarp").command(minimal, "x y", "\xff").ok().silent()
		ns, rest, _ := strings.Cut(r.out, "\n")
		if (ns+"\n" != outside) != tt.caged || rest != s.dir+"\nminimal.bin\nx y\n\xff\n" {
			t.Errorf("mode %q: %q", tt.mode, r.out)
		}
	}
	s.setenv("MINIMAL_SANDBOX_MODE=bwarp").command(minimal).refused("minimal: sandbox: ", "MINIMAL_SANDBOX_MODE", "bwarp")
	s.selfcage("run", "--quiet", "--read", minimal, "--", minimal, "z").ok().has(s.dir+"\n", "z\n")

	sandtest.Need(t, sandtest.CC)
	sweep := s.build("examples/sweep")
	table := regexp.MustCompile(`(?m)^compiler: .*\n(.*\n)*.*-O2`)
	for _, mode := range []string{"off", "bwrap"} {
		r := s.setenv("SANDBOX_MODE="+mode).command(sweep, "-see", "-home", s.home, "-runs", "1", "-depth", "0").ok()
		if !table.MatchString(r.out) {
			t.Errorf("mode %s: no table:\n%s", mode, r.out)
		}
		r.has("sources", s.dir)
		if mode == "bwrap" {
			r.has("home        "+s.home+": 0 entries, no .ssh", "read-only")
		} else {
			r.has("1 entry, .ssh is visible", "writable")
		}
	}
}
