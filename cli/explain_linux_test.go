package cli_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/selfcage/selfcage/internal/sandtest"
)

// H20, H21: every line of explain has its reason, and the same request gives the same bytes.
func TestExplainReasons(t *testing.T) {
	s := newSite(t, nil)
	s.mkdir("w")
	args := []string{"explain", "--write", "w", "--read", "/usr/share", "--device", "/dev/full", "--network", "none", "--", "sh", "-c", "true"}
	r := s.setenv("A_TOKEN=hunter2").selfcage(args...).ok()
	if again := s.setenv("A_TOKEN=hunter2").selfcage(args...).ok().out; again != r.out {
		t.Errorf("explain differs from one time to the next:\n%s\n%s", r.out, again)
	}
	files, environment, found := strings.Cut(r.out, "\nenvironment\n")
	_, files, _ = strings.Cut(files, "\nfiles, in the order in which they are mounted\n")
	lines := strings.Split(strings.TrimSuffix(files, "\n"), "\n")
	reason := regexp.MustCompile(`^  [a-z-]+ +/.*  [A-Za-z/ -]+: .+$`)
	for _, line := range lines {
		if !reason.MatchString(line) {
			t.Errorf("no reason: %q", line)
		}
	}
	if !found || len(lines) < 30 {
		t.Errorf("%d mounts:\n%s", len(lines), r.out)
	}
	for _, want := range []string{"--write: asked for writable", "--device: asked for as a device", "none but a loopback of its own", "ROCm and Mesa"} {
		if !strings.Contains(r.out, want) {
			t.Errorf("explain does not say %q", want)
		}
	}
	if !regexp.MustCompile(`(?m)^  drop  A_TOKEN +secret shape: ends in _TOKEN$`).MatchString(environment) {
		t.Errorf("the dropped variable is not there with its rule:\n%s", environment)
	}
	if !regexp.MustCompile(`(?m)^  keep  HOME +base: `).MatchString(environment) {
		t.Errorf("HOME is not there with its reason:\n%s", environment)
	}
}

// H21, H28: each hop to the interpreter of a uv environment is a line of its own with its reason: the environment, the alias
// that its python goes through, the distribution that the alias leads to, the tree of an editable install.
func TestExplainHops(t *testing.T) {
	s := newSite(t, nil).plant()
	store := s.home + "/.local/share/uv/python"
	py := s.python(store + "/cpython-3.99.2-linux")
	s.python(store + "/cpython-3.99.1-linux")
	s.link("cpython-3.99.2-linux", store+"/cpython-3.99-linux")
	alias := store + "/cpython-3.99-linux"
	v := s.venv(s.root+"/venv", alias, py.version, "home = "+alias+"/bin\nuv = 0.9\n")
	s.write(s.root+"/src/tree/pyproject.toml", "[project]\n", 0o644)
	pth := s.write(v+"/lib/python"+py.version+"/site-packages/_tree.pth", s.root+"/src/tree\n", 0o644)
	look := "import os; print(os.readlink('" + alias + "'), *map(os.path.isdir, ['" + py.dir + "', '" + v + "', '" + s.root + "/src/tree']))"
	s.write(v+"/bin/app", "#!"+v+"/bin/python\n"+look+"\n", 0o755)
	s.link(v+"/bin/app", s.home+"/.local/bin/app")
	const (
		interpreter = "toolchain/venv: the interpreter of the virtual environment: without it there is none, or silently that of /usr"
		command     = "toolchain/command: what is run"
		inPath      = "toolchain/path: PATH names it: were it missing, the next entry's program would run, and nobody would know"
	)
	named := "toolchain/path: where a name of " + s.home + "/.local/bin leads"
	for _, tt := range []struct {
		e         *site
		cmd       []string
		env, base string // why the environment and the interpreter are there
		more      []string
	}{
		{s.path0(v + "/bin"), []string{"python", "-c", look}, inPath, interpreter, nil},
		{s.setenv("VIRTUAL_ENV=" + v), []string{v + "/bin/python", "-c", look}, "toolchain/python: VIRTUAL_ENV names it", interpreter, nil},
		{s, []string{v + "/bin/python3", "-c", look}, command, command, nil},
		{s.path0(s.home + "/.local/bin"), []string{"app"}, named, interpreter, []string{"ro " + s.home + "/.local/bin " + inPath}},
	} {
		r := tt.e.selfcage(append([]string{"explain", "--"}, tt.cmd...)...).ok().silent()
		var lines []string
		for _, l := range strings.Split(r.out, "\n") {
			lines = append(lines, strings.Join(strings.Fields(l), " "))
		}
		for _, h := range append([]string{
			"ro " + v + " " + tt.env,
			"link " + alias + " -> cpython-3.99.2-linux " + tt.base,
			"ro " + py.dir + " " + tt.base,
			"ro " + s.root + "/src/tree toolchain/venv: " + pth + " names it: without it another copy is imported, or none",
		}, tt.more...) {
			if !slices.Contains(lines, h) {
				t.Errorf("%q: explain has no line\n%s\n%s", tt.cmd, h, r.out)
			}
		}
		r.out = strings.ReplaceAll(r.out, "  open   "+s.home+"/.ssh ", "") // which is tried inside, and must fail
		r.hasNot("cpython-3.99.1", homeSecret, s.home+"/.ssh", s.home+"/letters")
		// What is said is what is there.
		tt.e.run(append([]string{"--"}, tt.cmd...)...).ok().silent().prints("cpython-3.99.2-linux True True True\n")
		tt.e.noSecrets()
	}
}

// The JSON form is for programs: it parses, also where a path is not UTF-8, and holds no value of a variable.
func TestExplainJSON(t *testing.T) {
	s := newSite(t, nil)
	odd := s.mkdir("odd\xff")
	r := s.setenv("PLAIN=visible-value").selfcage("explain", "--format", "json", "--write", odd, "--", "true").ok().silent()
	var doc struct {
		Version    int
		Namespaces map[string]string
		Mounts     []struct {
			Kind, By, Why string
			Target        any
		}
		Env []struct{ Name, By, Why string }
	}
	if err := json.Unmarshal([]byte(r.out), &doc); err != nil {
		t.Fatalf("%v:\n%s", err, r.out)
	}
	bytes := false
	for _, m := range doc.Mounts {
		if m.Kind == "" || m.By == "" || m.Why == "" {
			t.Errorf("incomplete: %+v", m)
		}
		if _, ok := m.Target.(map[string]any); ok && m.Kind == "rw" {
			bytes = true
		}
	}
	if !bytes || doc.Version != 1 || doc.Namespaces["pid"] != "own" || len(doc.Env) < 5 {
		t.Errorf("bytes %v, version %d, namespaces %v, %d variables", bytes, doc.Version, doc.Namespaces, len(doc.Env))
	}
	r.hasNot("visible-value", "\xff")
	s.selfcage("explain", "--format", "yaml").is(125).says("unknown format", "yaml", "text, json, argv")
	// What comes after the flags is the command's own.
	s.selfcage("explain", "ls", "--format", "json").ok().has("cage of selfcage")
	s.selfcage("explain", "--wirte", "x").is(125).says("--wirte", "did you mean --write?")
}

// The argv form, pasted into bash, is the same cage: the same files, variables and result, also with odd bytes.
func TestExplainArgv(t *testing.T) {
	s := newSite(t, nil)
	s.write("f", "here\n", 0o644)
	odd := s.mkdir("o d\n\xff'$x")
	const look = `cat f; echo "$1"; ls -a / /etc /run /dev /usr /var /home "$2" 2>&1; cat /etc/passwd /etc/os-release; echo r >"$3/r"
		cut -d' ' -f5,6 /proc/self/mountinfo; env | grep -av '^_=\|^SHLVL='`
	flags := []string{"--write", odd, "--secret", "S_TOKEN"}
	command := []string{"--", "sh", "-c", look, "sh", "a\n\xfe'b", s.home, odd}
	e := s.setenv("S_TOKEN=pass me", "D_TOKEN=hunter2", "ODD=q'\n\xfd\\$(x)", "EMPTY=")
	want := e.run(slices.Concat(flags, command)...).ok().silent().out
	if !strings.Contains(want, "here\n") || !strings.Contains(want, "S_TOKEN=pass me\n") || !strings.Contains(want, "cannot access '/home'") {
		t.Fatalf("run: %s", want)
	}
	must(t, os.Remove(odd+"/r"))
	script := e.selfcage(slices.Concat([]string{"explain", "--format", "argv"}, flags, command)...).ok().hasNot("hunter2").out
	got := s.command("/bin/bash", "-c", script).ok().silent().out
	// bubblewrap's own pid 1 is all that run has besides.
	if sorted(got) != sorted(want) {
		t.Errorf("pasted:\n%s\nrun:\n%s", got, want)
	}
	if !exists(odd + "/r") {
		t.Error("the pasted command did not write on the host")
	}
	// As people paste it.
	s.sh(`bash -c "$(selfcage explain --format argv -- sh -c 'cat /etc/os-release; ls /home; env')"`).
		ok().has("ID=", "HOME=/run/selfcage/home\n").says("cannot access '/home'")
	s.sh(`eval "$(selfcage explain --format argv --network none -- sh -c 'selfcage status; cat /proc/net/dev')"`).ok().
		has("inside the cage", "as planned", "lo:").hasNot("differs", "eth0")
}

func sorted(s string) string {
	lines := strings.Split(s, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// status says what is observed: inside nothing differs from the plan, outside it says so and fails.
func TestStatus(t *testing.T) {
	s := newSite(t, nil)
	s.mkdir("w")
	s.selfcage("status").is(1).silent().prints("not in a cage\n")
	s.selfcage("status", "--format", "json").is(1).prints("{\"inside\":false}\n")
	for _, flags := range [][]string{nil, {"--write", "w", "--read", "/usr/share", "--device", "/dev/full", "--network", "none"}, {"--write", "."}} {
		if slices.Contains(flags, "none") && !sandtest.Have(sandtest.NetNS) {
			continue
		}
		r := s.run(append(flags, "--", "selfcage", "status")...).ok().silent()
		r.has("inside the cage of selfcage, engine bwrap", "mount namespace", "capabilities (CapEff)", "mount /tmp", "as planned").
			hasNot("differs", "not observed")
		r = s.run(append(flags, "--", "selfcage", "status", "--format", "json")...).ok().silent()
		var doc struct {
			Inside   bool
			Planned  struct{ Mounts []any }
			Enforced []struct{ Control, Planned, Observed, State string }
		}
		if err := json.Unmarshal([]byte(r.out), &doc); err != nil {
			t.Fatalf("%v:\n%s", err, r.out)
		}
		if !doc.Inside || len(doc.Planned.Mounts) < 20 || len(doc.Enforced) < 20 {
			t.Errorf("inside %v, %d mounts, %d controls", doc.Inside, len(doc.Planned.Mounts), len(doc.Enforced))
		}
		for _, c := range doc.Enforced {
			if c.State != "as planned" || c.Planned != c.Observed && !strings.HasPrefix(c.Observed, c.Planned+" (") {
				t.Errorf("%v: %+v", flags, c)
			}
		}
	}
}

// doctor says what this host can do, with the verdict as its status.
func TestDoctor(t *testing.T) {
	s := newSite(t, nil)
	sandtest.Need(t, sandtest.NetNS)
	s.selfcage("doctor").ok().silent().has("bubblewrap", "version", "user namespace", "fresh /proc", "seccomp filter", "mode bwrap").hasNot("refused")
	for mode, status := range map[string]int{"bwrap": 0, "off": 0, "landlock": 1, "auto": 0, "enforced": 0, "scrubbed_only": 0, "disabled": 0} {
		s.selfcage("doctor", "--mode", mode).is(status)
	}
	s.selfcage("doctor", "--mode", "bwarp").is(125).says(`--mode "bwarp"`, "did you mean bwrap?")
	var doc struct {
		Checks []struct {
			ID, State string
			Required  bool
		} `json:"host_checks"`
	}
	r := s.selfcage("doctor", "--format", "json").ok()
	if d := parse(t, r.out); d.State != "examined" || d.Engine != "undecided" || d.Host.Kernel == "" {
		t.Errorf("%s", r.out)
	}
	if err := json.Unmarshal([]byte(r.out), &doc); err != nil || len(doc.Checks) < 15 {
		t.Fatalf("%v: %d checks:\n%s", err, len(doc.Checks), r.out)
	}
	for _, row := range doc.Checks {
		if row.Required && row.State != "ok" {
			t.Errorf("%+v", row)
		}
	}
	s.setenv("SANDBOX_MODE=nonsense").selfcage("doctor").ok()
	s.run("--", "selfcage", "doctor").hasNot("panic")
}

// A word that kong does not know is answered as every other refusal.
func TestUnknownCommand(t *testing.T) {
	s := newSite(t, nil)
	s.selfcage("rum", "--", "true").is(125).says("selfcage: ", "rum", "hint: ")
	s.selfcage("doctor", "--nonsense").is(125).says("--nonsense")
}

// Seeds R17 to R19, case 65: a variable with a secret's name, shape or value is gone, in every place where a value could
// be seen. --secret passes one, --env never does. No value is ever printed.
func TestSecrets(t *testing.T) {
	s := newSite(t, nil)
	const secret = "hunter2-of-the-test"
	e := s.setenv("MYSQL_PWD="+secret, "GITHUB_TOKEN="+secret, "DATABASE_URL=postgres://u:"+secret+"@h/d",
		"PLAIN=ghp_0123456789abcdefghijklmnopqrstuvwxyz", "TOKENIZERS_PARALLELISM=false", "GIT_AUTHOR_NAME=a b", "COLORTERM=truecolor",
		"BASH_FUNC_f%%=() { echo f; }", "LONG="+strings.Repeat("z", 100000))
	const look = `for f in /proc/[0-9]*/environ /proc/[0-9]*/cmdline; do tr '\0' '\n' <$f; done 2>/dev/null; env; cat /run/selfcage/*.json /run/selfcage/grants`
	script := s.write("look", look, 0o755)
	r := e.run("--", "sh", script).hasNot(secret, "ghp_0123456789", "MYSQL_PWD=", "GITHUB_TOKEN=", "DATABASE_URL=", "PLAIN=")
	r.has("TOKENIZERS_PARALLELISM=false", "GIT_AUTHOR_NAME=a b", "COLORTERM=truecolor", "BASH_FUNC_f%%=() { echo f; }", "LONG=zzz")
	r = e.run("--secret", "GITHUB_TOKEN", "--report", "r.json", "--", "sh", "-c", `echo "$GITHUB_TOKEN"; env; for f in /proc/[0-9]*/cmdline; do tr '\0' '\n' <$f; done; tr '\0' '\n' </proc/1/environ`).ok()
	if n := strings.Count(r.out, secret); n != 2 { // the echo, and env
		t.Errorf("the secret is there %d times:\n%.2000s", n, r.out)
	}
	report := read(t, s.path("r.json"))
	if strings.Contains(report, secret) || !strings.Contains(report, "GITHUB_TOKEN") {
		t.Errorf("the report: %s", report)
	}
	e.setenv("SANDBOX_SECRET=MYSQL_PWD").run("--", "sh", "-c", `echo "$MYSQL_PWD,$GITHUB_TOKEN"`).ok().prints(secret + ",\n")
	e.run("--env", "GITHUB_TOKEN", "--", "echo", "ran").refused("GITHUB_TOKEN", "secret", "--secret GITHUB_TOKEN").hasNot(secret)
	e.run("--env", "PLAIN", "--", "echo", "ran").refused("PLAIN", "--secret PLAIN").hasNot("ghp_0")
	e.run("--env", "GITHUB_TOKEN="+secret, "--", "echo", "ran").refused("--env", "GITHUB_TOKEN", "not NAME=VALUE").hasNot(secret)
	e.run("--secret", "GITHUB_TOKEN="+secret, "--", "echo", "ran").refused("--secret").hasNot(secret)
	e.run("--secret", "NOT_SET", "--", "echo", "ran").refused("NOT_SET", "not set")
	e.run("--tokne="+secret, "--", "echo", "ran").refused("--tokne").hasNot(secret)
	for _, format := range []string{"text", "json", "argv"} {
		e.selfcage("explain", "--format", format, "--", "sh").ok().hasNot(secret, "ghp_0123456789")
	}
	e.selfcage("explain", "--secret", "GITHUB_TOKEN").ok().has("MYSQL_PWD", "secret name", "GITHUB_TOKEN").hasNot(secret)
	e.run("--write", "none", "--report", "-", "--", "true").is(125).hasNot(secret)
	e.selfcage("doctor").hasNot(secret)
}

// Case 65, the last part, hosts.md 22: what names something that is not visible goes, with a line in explain, before the loader
// complains in every process.
func TestPreload(t *testing.T) {
	s := newSite(t, nil)
	e := s.setenv("LD_PRELOAD=" + s.root + "/lib/none.so")
	r := e.run("--", "sh", "-c", `echo "[$LD_PRELOAD]"; ls / >/dev/null`).ok().prints("[]\n")
	if n := strings.Count(r.err, "ld.so"); n > 1 { // the test binary itself may be linked dynamically, outside
		t.Errorf("%d complaints of the loader:\n%s", n, r.err)
	}
	e.selfcage("explain").ok().has("LD_PRELOAD", "names a library that is not visible")
	s.setenv("SSH_AUTH_SOCK="+s.home+"/agent", "DISPLAY=:7").run("--", "sh", "-c", `echo "[$SSH_AUTH_SOCK$DISPLAY]"`).ok().prints("[]\n")
	s.setenv("DISPLAY=:7").run("--env", "DISPLAY", "--", "sh", "-c", `echo "[$DISPLAY]"`).ok().prints("[:7]\n")
}

// hosts.md 2 and 3: notes tell of arguments that mean something else inside; --quiet and SANDBOX_QUIET silence them.
func TestNotes(t *testing.T) {
	s := newSite(t, nil)
	hidden := s.write(s.root+"/elsewhere/data.csv", "1\n", 0o644)
	s.write("in", "2\n", 0o644)
	out := "/tmp/selfcage-test-result-that-is-not-there"
	args := []string{"--", "sh", "-c", `cat "$1"; echo "$2" "$3" "$4"`, "sh", hidden, "--out=" + out, "in", s.path("in")}
	r := s.selfcage(append([]string{"run"}, args...)...).ok()
	r.says(hidden+" names a file that is not visible inside", "; --read or --write would grant it",
		"--out="+out+" lies in a place that ends with the cage", "cat: "+hidden+": No such file")
	for _, line := range strings.Split(r.err, "\n") {
		if strings.HasSuffix(line, " in") || strings.Contains(line, s.path("in")) {
			t.Errorf("a note about what is visible: %s", line)
		}
	}
	s.run(args...).ok().hasNot("note:")
	s.setenv("SANDBOX_QUIET=1").selfcage(append([]string{"run"}, args...)...).ok().hasNot("note:")
	s.selfcage(append([]string{"explain"}, args...)...).ok().has("notes\n", hidden+" names a file that is not visible inside")
	s.selfcage(slices.Concat([]string{"run", "--read", hidden}, args)...).ok().has("1\n").hasNot(hidden + " names")
}
