package cli_test

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

type document struct {
	State        string
	Mode, Engine string
	Inside       bool
	Declared     map[string]any
	Planned      struct {
		Version  int
		Mounts   []struct{ Kind, Target, By string }
		Env      []struct{ Name string }
		Attempts []struct{ Op, Object string }
	}
	Enforced    []struct{ Control, Planned, Observed, State string }
	NotEnforced []struct{ What, Why string } `json:"not_enforced"`
	Scrubbed    struct {
		Level         string
		Kept, Dropped []struct{ Name, Rule string }
	}
	Host   struct{ Kernel string }
	Result map[string]any
}

// parse reads a report, and holds it to the published schema (issue 4 item 5).
func parse(t testing.TB, data string) (d document) {
	t.Helper()
	schema, err := jsonschema.NewCompiler().Compile(filepath.Join(docs(), "report.schema.json"))
	must(t, err)
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(data)))
	if err == nil {
		err = schema.Validate(v)
	}
	if err != nil {
		t.Fatalf("%v in\n%s", err, data)
	}
	must(t, json.Unmarshal([]byte(data), &d))
	return d
}

// R42, design 9: declared is what was asked, planned what was made of it, enforced what was seen.
func TestReport(t *testing.T) {
	s := newSite(t, nil)
	s.mkdir("w")
	s.setenv("SANDBOX_READABLE=/usr/share").run("--write", "w", "--report", "r.json", "--", "sh", "-c", "exit 3").is(3).silent()
	d := parse(t, read(t, s.path("r.json")))
	if d.State != "ended" || d.Engine != "bwrap" || d.Mode != "bwrap" || d.Result["status"] != 3.0 || len(d.NotEnforced) != 0 || d.Host.Kernel == "" {
		t.Errorf("state %q, engine %q, mode %q, result %v, not enforced %v, host %v", d.State, d.Engine, d.Mode, d.Result, d.NotEnforced, d.Host)
	}
	text, _ := json.Marshal(d.Declared)
	want := `{"mode":{"by":"the default of run","value":"bwrap"},"quiet":{"by":"--quiet","value":"1"},"readable":[{"by":"SANDBOX_READABLE","value":"/usr/share"}],` +
		`"report":{"by":"--report","value":"` + s.path("r.json") + `"},"writable":[{"by":"--write","value":"` + s.path("w") + `"}]}`
	if string(text) != want {
		t.Errorf("declared %s\nwant     %s", text, want)
	}
	planned := false
	for _, m := range d.Planned.Mounts {
		planned = planned || m.Kind == "rw" && m.Target == s.path("w") && m.By == "--write"
	}
	seen := false
	for _, c := range d.Enforced {
		if c.State != "as planned" || !strings.HasPrefix(c.Observed, c.Planned) {
			t.Errorf("%+v", c)
		}
		seen = seen || c.Control == "mount "+s.path("w") && c.Observed == "writable"
	}
	if !planned || !seen || len(d.Enforced) < 20 {
		t.Errorf("planned %v, seen %v, %d controls", planned, seen, len(d.Enforced))
	}
	info, err := os.Stat(s.path("r.json"))
	must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	left, _ := filepath.Glob(s.path(".*"))
	if len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// It is written also when there is no run, with the cause; also for what this version cannot do.
func TestReportOfRefusal(t *testing.T) {
	s := newSite(t, nil)
	stub := s.stub("0.9.0", noUserNS)
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"grant":       {[]string{"--write", "none"}, s.path("none")},
		"unsupported": {[]string{"--gpu", "all"}, "gpu all"},
		"bwrap":       {[]string{"--bwrap", stub}, "setting up uid map"},
		"secret":      {[]string{"--secret", "NONE"}, "NONE"},
		"no bwrap":    {[]string{"--bwrap", s.path("none")}, "not there"},
	} {
		must(t, os.RemoveAll(s.path("r.json")))
		s.run(append(tt.args, "--report", "r.json", "--", "echo", "ran")...).refused(tt.want)
		text := read(t, s.path("r.json"))
		d := parse(t, text)
		if d.State != "refused" || d.Result["status"] != 125.0 || !strings.Contains(text, tt.want) || len(d.Enforced) != 0 {
			t.Errorf("%s: state %q, result %v, enforced %v", name, d.State, d.Result, d.Enforced)
		}
	}
	s.setenv("SANDBOX_WRITEABLE=x").run("--report", "r.json", "--", "echo", "ran").refused("SANDBOX_WRITEABLE")
	if d := parse(t, read(t, s.path("r.json"))); d.Result["object"] != "SANDBOX_WRITEABLE" {
		t.Errorf("%v", d.Result)
	}
}

// Issue 4 item 5, R42: what must fail is attempted in the cage before the program goes on, and the variables that it
// begins with are looked at. The report names what was kept and dropped.
func TestReportOfAttempts(t *testing.T) {
	s := newSite(t, nil)
	s.write(s.home+"/.netrc", homeSecret, 0o600)
	s.setenv("A_TOKEN=hunter2", "HARMLESS=1").run("--network", "none", "--report", "r.json", "--", "true").ok().silent()
	text := read(t, s.path("r.json"))
	d := parse(t, text)
	observed := make(map[string]string)
	for _, c := range d.Enforced {
		observed[c.Control] = c.Observed
		if c.State != "as planned" {
			t.Errorf("%+v", c)
		}
	}
	for _, a := range d.Planned.Attempts {
		if !strings.HasPrefix(observed[a.Op+" "+a.Object], "refused (E") {
			t.Errorf("%v was not attempted: %q", a, observed)
		}
	}
	if len(d.Planned.Attempts) == 0 || observed["write /usr"] == "" || observed["environment"] != "only what is kept" {
		t.Errorf("attempts %v, observed %q", d.Planned.Attempts, observed)
	}
	rules := make(map[string]string)
	for _, v := range append(d.Scrubbed.Kept, d.Scrubbed.Dropped...) {
		rules[v.Name] = v.Rule
	}
	if d.Scrubbed.Level != "scrubbed" || rules["A_TOKEN"] != "secret shape: ends in _TOKEN" || rules["HARMLESS"] != "not secret" || strings.Contains(text, "hunter2") {
		t.Errorf("level %q, rules %q", d.Scrubbed.Level, rules)
	}
}

// R7, R42, R43: modes without a cage have the same shape, and say of everything that was declared that nothing enforces
// it.
func TestReportWithoutCage(t *testing.T) {
	s := newSite(t, nil)
	s.mkdir("w")
	for mode, more := range map[string]bool{"scrubbed_only": false, "disabled": true} {
		s.setenv("A_TOKEN=hunter2").run("--mode", mode, "--write", s.path("w"), "--network", "none", "--report", "r.json", "--", "true").ok()
		text := read(t, s.path("r.json"))
		d := parse(t, text)
		why := make(map[string]string)
		for _, l := range d.NotEnforced {
			why[l.What] = l.Why
		}
		for _, what := range []string{"files", "network", "writable " + s.path("w"), "network none"} {
			if !strings.Contains(why[what], "mode "+mode) {
				t.Errorf("%s, %s: %q", mode, what, why[what])
			}
		}
		if d.State != "handed over" || d.Engine != "none" || len(d.Planned.Mounts) != 0 || (why["environment"] != "") != more || strings.Contains(text, "hunter2") {
			t.Errorf("%s: %s", mode, text)
		}
		for _, c := range d.Enforced {
			if c.Control != "environment" {
				t.Errorf("%s: %+v", mode, c)
			}
		}
	}
}

// R41, R43: status inside has the shape of the report, and finds the same.
func TestStatusIsReport(t *testing.T) {
	s := newSite(t, nil)
	for _, mode := range []string{"bwrap", "enforced"} {
		statusIsReport(t, s.setenv("A_TOKEN=hunter2"), mode)
	}
}

func statusIsReport(t *testing.T, s *site, mode string) {
	t.Helper()
	d := parse(t, s.run("--mode", mode, "--read", "/usr/share", "--report", "r.json", "--", "selfcage", "status", "--format", "json").ok().out)
	outside := parse(t, read(t, s.path("r.json")))
	if !d.Inside || d.State != "started" || d.Engine != "bwrap" || d.Mode != mode || outside.Mode != mode || len(d.NotEnforced) != 0 || len(d.Declared) != 0 {
		t.Errorf("%+v", d)
	}
	seen := make(map[string]string)
	for _, c := range d.Enforced {
		seen[c.Control] = c.Observed
	}
	for _, c := range outside.Enforced {
		if c.Control != "environment" && seen[c.Control] != c.Observed {
			t.Errorf("%s: outside %q, inside %q", c.Control, c.Observed, seen[c.Control])
		}
	}
	if len(seen) != len(outside.Enforced)-1 || len(d.Planned.Mounts) != len(outside.Planned.Mounts) {
		t.Errorf("%d controls inside, %d outside", len(seen), len(outside.Enforced))
	}
	inside, _ := json.Marshal(d.Scrubbed)
	if whole, _ := json.Marshal(outside.Scrubbed); string(inside) != string(whole) || len(d.Scrubbed.Dropped) == 0 {
		t.Errorf("variables inside  %s\noutside %s", inside, whole)
	}
}

// A place that cannot be written is an error before anything runs, and "-" is standard error.
func TestReportPlace(t *testing.T) {
	s := newSite(t, nil)
	s.mkdir("dir")
	must(t, os.Symlink("none/x", s.path("dangling")))
	for _, p := range []string{"none/r.json", "dir", "/dev/null", "/proc/r.json", "/sys/r.json", "dangling", "dir/"} {
		s.run("--report", p, "--write", "dir", "--", "touch", "dir/ran").refused("cannot write the report", "--report ", strings.TrimSuffix(p, "/"), "hint: ")
	}
	s.setenv("SANDBOX_REPORT=none/r.json").run("--", "echo", "ran").refused("SANDBOX_REPORT")
	if exists(s.path("dir/ran")) {
		t.Error("the command was run")
	}
	if fi, err := os.Stat("/dev/null"); err != nil || fi.Mode()&os.ModeCharDevice == 0 {
		t.Fatal("/dev/null was replaced")
	}
	r := s.run("--report", "-", "--", "echo", "out").ok().prints("out\n")
	if d := parse(t, r.err); d.State != "ended" {
		t.Errorf("state %q", d.State)
	}
	// By a link it goes to where the link leads.
	s.write("real.json", "{\"version\":1}\n", 0o644)
	s.write("letter", "Dear Ada\n", 0o644)
	s.run("--report", "letter", "--", "true").refused("it is there and is no report")
	must(t, os.Symlink("real.json", s.path("link.json")))
	s.run("--report", "link.json", "--", "true").ok()
	if fi, err := os.Lstat(s.path("link.json")); err != nil || fi.Mode()&os.ModeSymlink == 0 {
		t.Error("the link was replaced")
	}
	parse(t, read(t, s.path("real.json")))
}

// Who reads it while it is written sees the old one or the new one, whole.
func TestReportAtomic(t *testing.T) {
	s := newSite(t, nil)
	s.run("--report", "r.json", "--", "true").ok()
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(200 * time.Microsecond):
			}
			data, err := os.ReadFile(s.path("r.json"))
			if err != nil || !json.Valid(data) {
				t.Errorf("%v: %d bytes, not whole", err, len(data))
				return
			}
		}
	})
	for range 10 {
		s.run("--report", "r.json", "--", "true").ok()
	}
	close(stop)
	wg.Wait()
}

// The report of a run that is killed says that it began; the one before does not stand for it.
func TestReportOfKilledRun(t *testing.T) {
	s := newSite(t, nil)
	s.run("--report", "r.json", "--", "sh", "-c", "exit 4").is(4)
	b := s.begin("run", "--quiet", "--report", "r.json", "--", "sh", "-c", "echo ready; sleep 60")
	b.line("ready")
	must(t, b.cmd.Process.Kill())
	b.ends()
	if d := parse(t, read(t, s.path("r.json"))); d.State != "started" || len(d.Result) != 0 {
		t.Errorf("%v", d.Result)
	}
	if names := s.sh("ls -A").ok().out; names != "r.json\n" {
		t.Errorf("left: %s", names)
	}
}

// What the program leaves running ends with it, and is named. The supervisor looks in the moment between the end of the
// program and that of the cage, so on a busy machine it may come too late: one of several must be seen.
func TestLeftRunning(t *testing.T) {
	s := newSite(t, nil)
	named := false
	for range 20 {
		r := s.selfcage("run", "--", "sh", "-c", "sleep 61 & sleep 0.1; echo done").ok().prints("done\n")
		if named = strings.Contains(r.err, "note: still ran when the program ended, and was ended: sleep"); named {
			break
		}
	}
	if !named {
		t.Error("not once in 20 runs was it named")
	}
	s.run("--", "sh", "-c", "sleep 61 & sleep 0.1; echo done").ok().silent()
	b := s.begin("run", "--quiet", "--", "cat")
	_, err := io.WriteString(b.in, "through\n")
	must(t, err)
	b.line("through")
	must(t, b.in.Close())
	if rest := b.ends(); rest != "" {
		t.Errorf("%q", rest)
	}
}

// What runs inside cannot write its own report in place of ours.
func TestReportIsNotForged(t *testing.T) {
	s := newSite(t, nil)
	s.run("--write", ".", "--report", "r.json", "--", "sh", "-c", `echo '{"version":2}' >r.json; rm -f r.json; mv r.json r2; echo '{"version":2,"state":"forged"}' >x && mv x r.json; echo done; exit 4`).is(4).has("done").says("r.json")
	if d := parse(t, read(t, s.path("r.json"))); d.State != "ended" || d.Result["status"] != 4.0 {
		t.Errorf("%+v", d)
	}
}
