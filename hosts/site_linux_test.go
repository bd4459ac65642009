package hosts

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/selfcage/selfcage/internal/sandtest"
)

// site is a place where one host program does its job: a project directory, a home with a secret in it, and a small
// environment.
type site struct {
	t    *testing.T
	host *host
	root string // holds what follows; neither below /tmp nor below the home
	home string
	dir  string
	env  []string

	settings []string // of caged runs, without the prefix: "WRITABLE=/x"
}

// homeSecret is what a cage must never show.
const homeSecret = "the key of this home"

// newSite builds the host program, or skips the test where it was not chosen.
func newSite(t *testing.T, name string) *site {
	t.Helper()
	sandtest.Need(t, sandtest.Cage)
	h := choose(t, name)
	told, err := goEnv()
	must(t, err)
	h.program(t)
	root := sandtest.WorkDir(t)
	s := &site{t: t, host: h, root: root, home: filepath.Join(root, "home"), dir: filepath.Join(root, "proj")}
	s.write(filepath.Join(s.home, ".ssh/id_test"), homeSecret+"\n")
	// Otherwise each bare go leaves another one behind, which may write to the home while it is being removed.
	s.write(filepath.Join(s.home, ".config/go/telemetry/mode"), "off\n")
	must(t, os.Mkdir(s.dir, 0o755))
	s.env = []string{
		"PATH=" + filepath.Join(told["GOROOT"], "bin") + ":/usr/local/bin:/usr/bin:/bin",
		"HOME=" + s.home, "USER=somebody", "LOGNAME=somebody", "LANG=C.UTF-8", "TERM=xterm", "PWD=" + s.dir,
	}
	for name, value := range told {
		if name != "GOROOT" {
			s.env = append(s.env, name+"="+value)
		}
	}
	return s
}

// write makes a file, below the project directory unless name is absolute, and returns its path.
func (s *site) write(name, content string) string {
	s.t.Helper()
	if !filepath.IsAbs(name) {
		name = filepath.Join(s.dir, name)
	}
	must(s.t, os.MkdirAll(filepath.Dir(name), 0o755))
	must(s.t, os.WriteFile(name, []byte(content), 0o600))
	return name
}

// set is the site with more variables.
func (s *site) set(vars ...string) *site {
	c := *s
	c.env = append(slices.Clone(s.env), vars...)
	return &c
}

// unset is the site without a variable.
func (s *site) unset(name string) *site {
	c := *s
	c.env = slices.DeleteFunc(slices.Clone(s.env), func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
	return &c
}

// cage is the site with other settings of caged runs.
func (s *site) cage(settings ...string) *site {
	c := *s
	c.settings = settings
	return &c
}

// command is the host program with or without a cage around it.
func (s *site) command(caged bool, args ...string) *exec.Cmd {
	cmd := exec.Command(s.host.path, args...)
	cmd.Dir = s.dir
	cmd.Env = slices.Clone(s.env)
	if caged {
		prefix := strings.ToUpper(s.host.name) + "_SANDBOX_"
		cmd.Env = append(cmd.Env, prefix+"MODE=bwrap", prefix+"REPORT="+s.report())
		for _, kv := range s.settings {
			cmd.Env = append(cmd.Env, prefix+kv)
		}
	}
	return cmd
}

func (s *site) report() string { return filepath.Join(s.root, "report.json") }

// result is how a run ended.
type result struct {
	t      *testing.T
	args   []string
	out    string
	err    string   // without the start notes
	notes  []string // start notes, without what begins each
	status int      // -1 for a signal
}

// bare runs the host program as it is.
func (s *site) bare(args ...string) *result {
	s.t.Helper()
	r := s.run(false, args)
	if len(r.notes) > 0 {
		s.t.Fatalf("%q: without a cage: %q", r.args, r.notes)
	}
	return r
}

// caged runs it in a cage, and makes sure that it was one.
func (s *site) caged(args ...string) *result {
	s.t.Helper()
	r := s.run(true, args)
	s.wasCaged(r.status)
	return r
}

// same does the job bare and caged: status, and both outputs but for the durations in them, must be equal. It returns
// the caged run.
func (s *site) same(args ...string) *result {
	s.t.Helper()
	bare, caged := s.bare(args...), s.caged(args...)
	caged.like(bare)
	return caged
}

func (s *site) run(caged bool, args []string) *result {
	s.t.Helper()
	cmd := s.command(caged, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var ee *exec.ExitError
	if err != nil && !errors.As(err, &ee) {
		s.t.Fatalf("%q: %v", cmd.Args, err)
	}
	r := &result{t: s.t, args: cmd.Args, out: out.String(), status: cmd.ProcessState.ExitCode()}
	for line := range strings.Lines(errs.String()) {
		note, ok := strings.CutPrefix(line, s.host.name+": sandbox: note: ")
		switch {
		case !ok:
			r.err += line
		case note == leftGo:
		default:
			r.notes = append(r.notes, strings.TrimSuffix(note, "\n"))
		}
	}
	return r
}

// leftGo is a note that may come whenever go ran in a HOME that is new to it: its telemetry starts another go, which
// outlives the first one.
const leftGo = "still ran when the program ended, and was ended: go\n"

// wasCaged reads what the supervisor observed of the cage, and removes it.
func (s *site) wasCaged(status int) {
	s.t.Helper()
	data, err := os.ReadFile(s.report())
	must(s.t, err)
	must(s.t, os.Remove(s.report()))
	var report struct {
		State    string
		Enforced []struct{ Control, Observed, State string }
		Result   struct{ Status int }
	}
	must(s.t, json.Unmarshal(data, &report))
	own := 0
	for _, c := range report.Enforced {
		if c.State != "as planned" {
			s.t.Errorf("%s: %+v", s.host.name, c)
		}
		if strings.HasSuffix(c.Control, " namespace") && c.Observed == "own" {
			own++
		}
	}
	if report.State != "ended" || report.Result.Status != status || own < 5 {
		s.t.Fatalf("%s ended with status %d, and the report says:\n%s", s.host.name, status, data)
	}
}

var duration = regexp.MustCompile(`\b[0-9.]+m?s\b`)

// like fails the test unless the run ended as another one did.
func (r *result) like(want *result) *result {
	r.t.Helper()
	plain := func(text string) string { return duration.ReplaceAllString(text, "N s") }
	if r.status != want.status || plain(r.out) != plain(want.out) || plain(r.err) != plain(want.err) {
		r.t.Fatalf("%q: caged\nstatus %d\nstdout: %s\nstderr: %s\nnotes: %q\nbare\nstatus %d\nstdout: %s\nstderr: %s",
			r.args, r.status, r.out, r.err, r.notes, want.status, want.out, want.err)
	}
	return r
}

func (r *result) is(status int) *result {
	r.t.Helper()
	if r.status != status {
		r.t.Fatalf("%q: status %d, want %d\nstdout: %s\nstderr: %s\nnotes: %q", r.args, r.status, status, r.out, r.err, r.notes)
	}
	return r
}

// has looks for parts on standard output, says on standard error, and lacks makes sure that they are on neither.
func (r *result) has(parts ...string) *result {
	r.t.Helper()
	for _, p := range parts {
		if !strings.Contains(r.out, p) {
			r.t.Fatalf("%q: standard output does not hold %q:\n%s\nstderr: %s\nnotes: %q", r.args, p, r.out, r.err, r.notes)
		}
	}
	return r
}

func (r *result) says(parts ...string) *result {
	r.t.Helper()
	for _, p := range parts {
		if !strings.Contains(r.err, p) {
			r.t.Fatalf("%q: standard error does not hold %q:\n%s\nstdout: %s\nnotes: %q", r.args, p, r.err, r.out, r.notes)
		}
	}
	return r
}

func (r *result) lacks(parts ...string) *result {
	r.t.Helper()
	for _, p := range parts {
		if strings.Contains(r.out+r.err, p) {
			r.t.Fatalf("%q: the output holds %q:\n%s%s", r.args, p, r.out, r.err)
		}
	}
	return r
}

// noted looks for a start note that holds all parts.
func (r *result) noted(parts ...string) *result {
	r.t.Helper()
	for _, n := range r.notes {
		if !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(n, p) }) {
			return r
		}
	}
	r.t.Fatalf("%q: no start note holds %q: %q\nstdout: %s\nstderr: %s", r.args, parts, r.notes, r.out, r.err)
	return r
}

// justNoted is noted for a run that had no other note.
func (r *result) justNoted(parts ...string) *result {
	r.t.Helper()
	if len(r.notes) != 1 {
		r.t.Fatalf("%q: %q", r.args, r.notes)
	}
	return r.noted(parts...)
}

// quiet fails the test when there was any start note.
func (r *result) quiet() *result {
	r.t.Helper()
	if len(r.notes) > 0 {
		r.t.Fatalf("%q: %q", r.args, r.notes)
	}
	return r
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	must(t, err)
	return string(data)
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}
