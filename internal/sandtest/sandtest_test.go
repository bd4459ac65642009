package sandtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// recorder is a test that remembers how Need ended it.
type recorder struct {
	testing.TB
	skipped, failed string
}

func (r *recorder) Helper() {}

func (r *recorder) Skipf(format string, args ...any) {
	r.skipped = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Fatal(args ...any) {
	r.failed = fmt.Sprint(args...)
	runtime.Goexit()
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.failed = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func record(t *testing.T, f func(testing.TB)) *recorder {
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(r)
	}()
	<-done
	return r
}

// pretend replaces the answer of one check.
func pretend(t *testing.T, f Feature, err error) {
	old := checks[f]
	checks[f] = func() error { return err }
	t.Cleanup(func() { checks[f] = old })
}

func TestNeed(t *testing.T) {
	pretend(t, Tmux, errors.New("burnt down"))
	pretend(t, Git, nil)
	for _, tt := range []struct {
		require  string
		features []Feature
		skipped  string
		failed   string
	}{
		{"", []Feature{Git}, "", ""},
		{"", []Feature{Git, Tmux}, "needs tmux: burnt down", ""},
		{"git", []Feature{Git, Tmux}, "needs tmux: burnt down", ""},
		{"git, tmux", []Feature{Git, Tmux}, "", "burnt down"},
		{"all", []Feature{Tmux}, "", "burnt down"},
		{"tmuxx", []Feature{Git}, "", `no feature "tmuxx"; there are all, bwrap, `},
		{"", []Feature{"warp"}, "", "BUG(sandtest)"},
		{"all", []Feature{Tool("no-such")}, "needs tool:no-such: no-such is not installed", ""},
		{"git,tool:no-such", []Feature{Tool("no-such")}, "", "no-such is not installed"},
		{"tool:no-such", []Feature{Git, Tool("neither")}, "needs tool:neither: neither is not installed", ""},
		{"tool:", []Feature{Git}, "", `no feature "tool:"`},
	} {
		t.Setenv(requireVar, tt.require)
		r := record(t, func(t testing.TB) { Need(t, tt.features...) })
		if r.skipped != tt.skipped {
			t.Errorf("require %q, need %v: skipped %q, want %q", tt.require, tt.features, r.skipped, tt.skipped)
		}
		if (r.failed == "") != (tt.failed == "") || !strings.Contains(r.failed, tt.failed) {
			t.Errorf("require %q, need %v: failed %q, want %q", tt.require, tt.features, r.failed, tt.failed)
		}
	}
}

// A run is either root's or an ordinary user's, so "all" can mean neither, but a name of its own still counts.
func TestRequireAll(t *testing.T) {
	required, err := parseRequire("root,all")
	if err != nil {
		t.Fatal(err)
	}
	for f := range checks {
		if want := f != Ordinary; required[f] != want {
			t.Errorf("%s: required %v, want %v", f, required[f], want)
		}
	}
}

// Whatever the machine is, a check must come back, and say why when it says no.
func TestChecks(t *testing.T) {
	for _, name := range featureNames() {
		err := checks[Feature(name)]()
		if err != nil && err.Error() == "" {
			t.Errorf("%s: missing without a reason", name)
		}
		if Have(Feature(name)) != (err == nil) {
			t.Errorf("%s: Have and its check disagree", name)
		}
		t.Logf("%s: %v", name, err)
	}
	if Have("warp") {
		t.Error("has a feature that there is not")
	}
	if Have(Root) == Have(Ordinary) {
		t.Error("must be either root or ordinary")
	}
}

// SELFCAGE_TEST_REQUIRE names what the machine has: this test is where a wrong claim shows first.
func TestRequired(t *testing.T) {
	required, err := parseRequire(os.Getenv(requireVar))
	if err != nil {
		t.Fatal(err)
	}
	for f, yes := range required {
		if yes {
			Need(t, f)
		}
	}
}

func TestTry(t *testing.T) {
	if err := try(filepath.Join(t.TempDir(), "absent")); err == nil {
		t.Error("an absent command worked")
	}
	if runtime.GOOS == "windows" {
		return
	}
	err := try("/bin/sh", "-c", "echo first >&2; echo second >&2; exit 3")
	if err == nil || !strings.HasSuffix(err.Error(), "exit status 3: first") {
		t.Errorf("got %v", err)
	}
}

func TestWorkDir(t *testing.T) {
	var dir string
	t.Run("use", func(t *testing.T) {
		dir = WorkDir(t)
		if within(dir, "/tmp") || within(dir, os.Getenv("HOME")) {
			t.Errorf("%s is below /tmp or the home", dir)
		}
		if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
			t.Error(err)
		}
	})
	if dir == "" {
		return // skipped
	}
	if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there: %v", dir, err)
	}
}

func TestDiskRefuses(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(home, link); err != nil {
		t.Skip(err)
	}
	for _, dir := range []string{home, link, filepath.Join(home, "absent")} {
		t.Setenv(dirVar, dir)
		if got, err := disk(); err == nil {
			t.Errorf("%s: got %s, want an error", dir, got)
		}
	}
}

func TestWithin(t *testing.T) {
	for _, tt := range []struct {
		path, dir string
		want      bool
	}{
		{"/tmp", "/tmp", true},
		{"/tmp/a", "/tmp", true},
		{"/tmpx", "/tmp", false},
		{"/var/tmp", "/tmp", false},
		{"/var/tmp", "/", false},
		{"/var/tmp", "", false},
	} {
		if got := within(tt.path, tt.dir); got != tt.want {
			t.Errorf("within(%q, %q) = %v", tt.path, tt.dir, got)
		}
	}
}

const passwd = `root:x:0:0:root:/root:/bin/bash
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
# a comment
+::::::
broken:x:ten:10::/:/bin/sh
later:x:1005:1005::/home/later:/bin/sh
homeless:x:1000:1000::/home/absent:/bin/sh
first:x:1001:100:First User,,,:/home/first:/bin/sh
www-data:x:33:33::/home/www:/bin/sh`

func TestParsePasswd(t *testing.T) {
	accounts := parsePasswd(passwd)
	var names []string
	for _, a := range accounts {
		names = append(names, a.Name)
	}
	want := []string{"root", "nobody", "later", "homeless", "first", "www-data"}
	if !slices.Equal(names, want) {
		t.Fatalf("got %q, want %q", names, want)
	}
	if got, want := accounts[4], (Account{"first", 1001, 100, "/home/first"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestChoose(t *testing.T) {
	owns := func(a Account) bool { return a.Home != "/home/absent" && a.Home != "/nonexistent" }
	for _, tt := range []struct{ name, want string }{
		{"", "first"},
		{"later", "later"},
		{"www-data", "www-data"}, // who names one knows why
		{"root", ""},
		{"stranger", ""},
	} {
		got, err := choose(parsePasswd(passwd), tt.name, owns)
		if got.Name != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("choose(%q) = %q, %v, want %q", tt.name, got.Name, err, tt.want)
		}
	}
	if _, err := choose(nil, "", owns); !errors.Is(err, errNoUser) {
		t.Errorf("no accounts: got %v", err)
	}
}
