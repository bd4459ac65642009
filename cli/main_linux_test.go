package cli_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/selfcage/selfcage/cli"
	"github.com/selfcage/selfcage/cli/run"
	"github.com/selfcage/selfcage/internal/sandtest"
)

// cleanPath is the PATH of every run: what a user's or a CI's own has in it is none of a test's business.
const cleanPath = "/usr/local/bin:/usr/bin:/bin"

// The test binary is the command, too: under any name but the one that go test gives it, it does what cmd/selfcage does.
func TestMain(m *testing.M) {
	if !strings.HasSuffix(os.Args[0], ".test") {
		run.Main(os.Args)
		os.Exit(cli.Main(os.Args[1:], os.Stdout, os.Stderr))
	}
	// Go's own archive is unpacked into a directory that few have in their PATH.
	os.Setenv("PATH", cleanPath+":/usr/sbin:/sbin:"+os.Getenv("PATH")+":/usr/local/go/bin")
	status := m.Run()
	if builtCommand != "" {
		os.RemoveAll(filepath.Dir(builtCommand))
	}
	os.Exit(status)
}

// The race detector makes each of some thousand starts several times slower, and the supervisor is tested with it in
// reexec. With it, the command is a build of its own.
var (
	raceDetector bool
	builtCommand string // "" before it is built
)

// commandVar names the command for the tests that TestOrdinaryUser starts: that user may not have the sources.
const commandVar = "SELFCAGE_TEST_COMMAND"

// docs is the directory of the published schemas: the sources are not where TestOrdinaryUser runs.
func docs() string {
	if os.Getenv(commandVar) != "" {
		return "testdata/docs"
	}
	return "../docs"
}

// theCommand is the path of the program that the tests run.
func theCommand(t testing.TB) string {
	t.Helper()
	if p := os.Getenv(commandVar); p != "" {
		return p
	}
	if !raceDetector {
		exe, err := os.Executable()
		must(t, err)
		return exe
	}
	if builtCommand == "" {
		dir, err := os.MkdirTemp("", "selfcage-command")
		must(t, err)
		builtCommand = filepath.Join(dir, "selfcage")
		if out, err := exec.Command("go", "build", "-o", builtCommand, "../cmd/selfcage").CombinedOutput(); err != nil {
			t.Fatalf("go build: %v\n%s", err, out)
		}
	}
	return builtCommand
}

// TestScripts runs testdata/scripts: one behaviour each, headed by its reason.
func TestScripts(t *testing.T) {
	root := sandtest.WorkDir(t)
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	bin := install(t, root)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/scripts",
		WorkdirRoot:         root,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			home := filepath.Join(root, "home-"+filepath.Base(e.WorkDir))
			if err := makeHome(home); err != nil {
				return err
			}
			e.Vars = append(baseEnv(bin, home), "WORK="+e.WorkDir)
			e.Values["t"] = e.T()
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"need":   need,
			"status": status,
		},
	})
}

// need skips the script where one of the features of sandtest is missing.
func need(ts *testscript.TestScript, neg bool, args []string) {
	t, ok := ts.Value("t").(testing.TB)
	if neg || !ok {
		ts.Fatalf("usage: need FEATURE...")
	}
	for _, a := range args {
		sandtest.Need(t, sandtest.Feature(a))
	}
}

// status runs a command that must end with exactly this exit status.
func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N CMD [ARG...]")
	}
	err := ts.Exec(args[1], args[2:]...)
	if got := code(err); got != args[0] {
		ts.Fatalf("status %s, want %s", got, args[0])
	}
}

func code(err error) string {
	var ee *exec.ExitError
	switch {
	case err == nil:
		return "0"
	case errors.As(err, &ee) && ee.ExitCode() >= 0:
		return strconv.Itoa(ee.ExitCode())
	}
	return err.Error()
}

// TestOrdinaryUser is everything again, as the user for whom it is made: most of what can go wrong with mounts does so
// for one of the two only.
func TestOrdinaryUser(t *testing.T) {
	sandtest.Need(t, sandtest.Root, sandtest.User)
	u := sandtest.OrdinaryUser(t)
	dir := u.WorkDir(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	copyFile(t, exe, filepath.Join(dir, "cli.test"), 0o755)
	copyFile(t, theCommand(t), filepath.Join(dir, "selfcage"), 0o755)
	if err := os.CopyFS(filepath.Join(dir, "testdata"), os.DirFS("testdata")); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(dir, "testdata/docs"), os.DirFS("../docs")); err != nil {
		t.Fatal(err)
	}
	args := []string{"-test.skip=^(TestOrdinaryUser|TestGo.*|TestToolchain.*|TestTrade.*)$", "-test.v=" + map[bool]string{true: "true", false: "false"}[testing.Verbose()]}
	if d, ok := t.Deadline(); ok {
		args = append(args, "-test.timeout="+time.Until(d).String())
	}
	cmd := exec.Command(filepath.Join(dir, "cli.test"), args...)
	cmd.Dir = dir
	cmd.SysProcAttr = u.Attr()
	cmd.Env = append(u.Env(), commandVar+"="+filepath.Join(dir, "selfcage"))
	if v := os.Getenv("SELFCAGE_TEST_REQUIRE"); v != "" {
		cmd.Env = append(cmd.Env, "SELFCAGE_TEST_REQUIRE="+strings.ReplaceAll(v, "root", ""))
	}
	if os.Getenv("SELFCAGE_TEST_DIR") != "" { // root's is not the user's to write
		cmd.Env = append(cmd.Env, "SELFCAGE_TEST_DIR="+dir)
	}
	if v := os.Getenv("LANG"); v != "" {
		cmd.Env = append(cmd.Env, "LANG="+v)
	}
	out, err := cmd.CombinedOutput()
	if err != nil || testing.Verbose() {
		t.Logf("as %s:\n%s", u.Name, out)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// site is a place to run selfcage from: a project directory, a home with a secret in it, and a small environment.
type site struct {
	t    testing.TB
	root string // holds what follows
	bin  string // a directory with selfcage in it, first in PATH
	home string
	dir  string // where commands run
	env  []string
	as   *syscall.SysProcAttr
	in   io.Reader

	staged []string // what sets up a mount namespace as root and then runs the command as the user
}

// newSite makes a site that the caller owns, or u when there is one.
func newSite(t testing.TB, u *sandtest.Account) *site {
	t.Helper()
	sandtest.Need(t, sandtest.Cage)
	s := &site{t: t}
	if u == nil {
		s.root = sandtest.WorkDir(t)
	} else {
		s.root = u.WorkDir(t)
		s.as = u.Attr()
	}
	must(t, os.Chmod(s.root, 0o755))
	s.bin = install(t, s.root)
	s.home, s.dir = filepath.Join(s.root, "home"), filepath.Join(s.root, "proj")
	must(t, makeHome(s.home))
	must(t, os.Mkdir(s.dir, 0o755))
	if u != nil {
		s.chown(*u, s.root)
	}
	s.env = baseEnv(s.bin, s.home)
	return s
}

func (s *site) chown(u sandtest.Account, dir string) {
	must(s.t, filepath.WalkDir(dir, func(p string, _ os.DirEntry, err error) error {
		if err == nil {
			err = os.Lchown(p, int(u.UID), int(u.GID))
		}
		return err
	}))
}

func install(t testing.TB, root string) (dir string) {
	t.Helper()
	dir = filepath.Join(root, "bin")
	must(t, os.Mkdir(dir, 0o755))
	copyFile(t, theCommand(t), filepath.Join(dir, "selfcage"), 0o755)
	return dir
}

// homeSecret is what a cage must never show.
const homeSecret = "the key of this home"

func makeHome(home string) error {
	if err := os.MkdirAll(filepath.Join(home, ".ssh"), 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(home, ".ssh/id_test"), []byte(homeSecret+"\n"), 0o600)
}

// baseEnv is what every run starts with. The directory of selfcage is in PATH; the cage is granted only the file.
func baseEnv(bin, home string) []string {
	return []string{"PATH=" + bin + ":" + cleanPath, "HOME=" + home, "USER=somebody", "LOGNAME=somebody", "LANG=C.UTF-8"}
}

// result is how a command ended.
type result struct {
	t      testing.TB
	args   []string
	out    string
	err    string
	status int // -1 for a signal
	signal syscall.Signal
}

// selfcage runs the command with args.
func (s *site) selfcage(args ...string) *result {
	s.t.Helper()
	return s.command(append([]string{filepath.Join(s.bin, "selfcage")}, args...)...)
}

// run runs CMD in a cage without start notes; flags come before "--" in words.
func (s *site) run(words ...string) *result {
	s.t.Helper()
	return s.selfcage(append([]string{"run", "--quiet"}, words...)...)
}

// sh is a shell that runs outside, for what only a shell can set up: redirections, exec -a, ulimit.
func (s *site) sh(script string, args ...string) *result {
	s.t.Helper()
	return s.command(append([]string{"/bin/bash", "-c", script, "bash"}, args...)...)
}

func (s *site) cmd(words ...string) *exec.Cmd {
	words = append(slices.Clone(s.staged), words...)
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Args[0] = filepath.Base(words[0])
	cmd.Dir = s.dir
	cmd.Env = append(slices.Clone(s.env), "PWD="+s.dir)
	if hasName(s.env, "PWD") {
		cmd.Env = slices.Clone(s.env)
	}
	if s.staged == nil {
		cmd.SysProcAttr = s.as
	}
	cmd.Stdin = s.in
	return cmd
}

func (s *site) command(words ...string) *result {
	s.t.Helper()
	cmd := s.cmd(words...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var ee *exec.ExitError
	if err != nil && !errors.As(err, &ee) {
		s.t.Fatalf("%q: %v", words, err)
	}
	r := &result{t: s.t, args: words, out: out.String(), err: errs.String(), status: cmd.ProcessState.ExitCode()}
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		r.signal = ws.Signal()
	}
	return r
}

func (s *site) setenv(vars ...string) *site {
	c := *s
	c.env = append(slices.Clone(s.env), vars...)
	return &c
}

// at is the site with another working directory.
func (s *site) at(dir string) *site {
	c := *s
	c.dir = dir
	return &c
}

// path joins names below the project directory.
func (s *site) path(names ...string) string {
	return filepath.Join(append([]string{s.dir}, names...)...)
}

func (s *site) mkdir(names ...string) string {
	s.t.Helper()
	p := s.path(names...)
	must(s.t, os.MkdirAll(p, 0o755))
	s.own(p)
	return p
}

func (s *site) write(name, content string, mode os.FileMode) string {
	s.t.Helper()
	p := name
	if !filepath.IsAbs(p) {
		p = s.path(name)
	}
	must(s.t, os.MkdirAll(filepath.Dir(p), 0o755))
	must(s.t, os.WriteFile(p, []byte(content), mode))
	must(s.t, os.Chmod(p, mode))
	s.own(p)
	return p
}

// own gives what root made below the project to the user of the site.
func (s *site) own(p string) {
	if s.as == nil {
		return
	}
	c := s.as.Credential
	for ; strings.HasPrefix(p, s.root); p = filepath.Dir(p) {
		must(s.t, os.Lchown(p, int(c.Uid), int(c.Gid)))
	}
}

// ok fails the test unless the command ended with status 0.
func (r *result) ok() *result { r.t.Helper(); return r.is(0) }

func (r *result) is(status int) *result {
	r.t.Helper()
	if r.status != status {
		r.t.Fatalf("%q:\nstatus %d (%v), want %d\nstdout: %s\nstderr: %s", r.args, r.status, r.signal, status, r.out, r.err)
	}
	return r
}

// refused fails the test unless nothing was run, with status 125 and a message that holds every part.
func (r *result) refused(parts ...string) *result {
	r.t.Helper()
	r.is(125)
	if r.out != "" {
		r.t.Fatalf("%q: refused, and printed %q on standard output", r.args, r.out)
	}
	return r.says(parts...)
}

// says looks for parts on standard error.
func (r *result) says(parts ...string) *result {
	r.t.Helper()
	for _, p := range parts {
		if !strings.Contains(r.err, p) {
			r.t.Fatalf("%q: standard error does not say %q:\n%s", r.args, p, r.err)
		}
	}
	return r
}

// silent fails the test when there is anything on standard error.
func (r *result) silent() *result {
	r.t.Helper()
	if r.err != "" {
		r.t.Fatalf("%q: standard error: %s", r.args, r.err)
	}
	return r
}

// prints compares standard output.
func (r *result) prints(want string) *result {
	r.t.Helper()
	if r.out != want {
		r.t.Fatalf("%q:\nprinted %q\nwant    %q\nstderr: %s", r.args, r.out, want, r.err)
	}
	return r
}

// has looks for parts on standard output, hasNot makes sure that they are on neither output.
func (r *result) has(parts ...string) *result {
	r.t.Helper()
	for _, p := range parts {
		if !strings.Contains(r.out, p) {
			r.t.Fatalf("%q: standard output does not hold %q:\n%s\nstderr: %s", r.args, p, r.out, r.err)
		}
	}
	return r
}

func (r *result) hasNot(parts ...string) *result {
	r.t.Helper()
	for _, p := range parts {
		if strings.Contains(r.out+r.err, p) {
			r.t.Fatalf("%q: the output holds %q:\n%s\nstderr: %s", r.args, p, r.out, r.err)
		}
	}
	return r
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, p string) string {
	t.Helper()
	data, err := os.ReadFile(p)
	must(t, err)
	return string(data)
}

func exists(p string) bool {
	_, err := os.Lstat(p)
	return err == nil
}

func copyFile(t testing.TB, from, to string, mode os.FileMode) {
	t.Helper()
	data, err := os.ReadFile(from)
	must(t, err)
	must(t, os.WriteFile(to, data, mode))
	must(t, os.Chmod(to, mode))
}

func hasName(environ []string, name string) bool {
	return slices.ContainsFunc(environ, func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
}
