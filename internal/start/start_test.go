package start

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/selfcage/selfcage/binds"
	"github.com/selfcage/selfcage/internal/launch"
	"github.com/selfcage/selfcage/internal/refusal"
	"github.com/selfcage/selfcage/plan"
	"github.com/selfcage/selfcage/policy"
)

func refused(t *testing.T, err error, parts ...string) {
	t.Helper()
	var e *refusal.Error
	if !errors.As(err, &e) {
		t.Fatalf("%v is no refusal", err)
	}
	if e.ExitStatus() != refusal.CannotCage || e.Hint == "" {
		t.Errorf("status %d, hint %q", e.ExitStatus(), e.Hint)
	}
	for _, p := range parts {
		if !strings.Contains(e.Error()+"\n"+e.Hint, p) {
			t.Errorf("%q does not say %q", e.Error(), p)
		}
	}
}

// Design 2: flag, variable, Options for what is one value; lists add up.
func TestSettings(t *testing.T) {
	entry := func(v, by string) policy.Entry { return policy.Entry{Value: v, By: by} }
	p := Program{
		Name:    "hyperloom",
		Flags:   policy.Settings{Mode: entry("bwrap", "--mode"), Writable: []policy.Entry{entry("f", "--write")}},
		Options: policy.Settings{Mode: entry("off", "Options.Mode"), Network: entry(" NONE ", "Options.Network"), Quiet: entry("1", "Options.Quiet"), Writable: []policy.Entry{entry("o", "Options.Writable")}},
	}
	s, err := p.Asked([]string{"HYPERLOOM_SANDBOX_MODE=off", "HYPERLOOM_SANDBOX_QUIET=0", "HYPERLOOM_SANDBOX_WRITABLE=e1:e2", "SANDBOX_NETWORK=shared"})
	if err != nil {
		t.Fatal(err)
	}
	got := []any{s.Mode, s.Network, s.Quiet}
	want := []any{entry("bwrap", "--mode"), entry("none", "Options.Network"), entry("0", "HYPERLOOM_SANDBOX_QUIET")}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	var all []string
	for _, e := range s.Writable {
		all = append(all, e.Value)
	}
	if len(all) != 4 || !strings.Contains(strings.Join(all, " "), "/e1 /") {
		t.Errorf("writable %v", all)
	}
	_, err = p.Asked([]string{"HYPERLOOM_SANDBOX_MODE=nonsense"})
	refused(t, err, "HYPERLOOM_SANDBOX_MODE", "nonsense")
	p.Options.Mode.Value = "nonsense"
	_, err = p.Asked(nil)
	refused(t, err, "Options.Mode", "nonsense")
}

func TestLabel(t *testing.T) {
	if a, b := (Program{}).Label(), (Program{Name: "hyperloom"}).Label(); a != "selfcage" || b != "hyperloom" {
		t.Errorf("%q, %q", a, b)
	}
}

// H3: off is when nobody asked, and when somebody said so.
func TestOff(t *testing.T) {
	for _, tt := range []struct {
		mode, policy string
		want         bool
	}{{"", "", true}, {"off", "", true}, {"off", "p.toml", true}, {"", "p.toml", false}, {"bwrap", "", false}, {"disabled", "", false}} {
		eff := policy.Effective{Settings: policy.Settings{Mode: policy.Entry{Value: tt.mode}}, InForce: tt.policy != ""}
		if got := Off(eff); got != tt.want {
			t.Errorf("mode %q, policy %q: off is %v", tt.mode, tt.policy, got)
		}
	}
}

// Enter returns without a word where nobody asked, and with the reason where the request cannot be met. A marker that
// is not ours does not reach what the program starts.
func TestEnter(t *testing.T) {
	for _, name := range []string{"MODE", "POLICY", "WRITABLE", "GPU"} {
		t.Setenv("ENTERTEST_SANDBOX_"+name, "")
	}
	p := Program{Name: "entertest"}
	t.Setenv(launch.StartVar, "3:0:-1")
	if err := p.Enter(); err != nil {
		t.Errorf("nobody asked: %v", err)
	}
	if v, ok := os.LookupEnv(launch.StartVar); ok {
		t.Errorf("%s is still %q", launch.StartVar, v)
	}
	t.Setenv("ENTERTEST_SANDBOX_WRITEABLE", "x")
	t.Setenv("ENTERTEST_SANDBOX_MODE", "off")
	if err := p.Enter(); err != nil {
		t.Errorf("off: %v", err)
	}
	t.Setenv("ENTERTEST_SANDBOX_MODE", "bwrap")
	refused(t, p.Enter(), "misspelt variable, ENTERTEST_SANDBOX_WRITEABLE")
	t.Setenv("ENTERTEST_SANDBOX_WRITEABLE", "")
	t.Setenv("ENTERTEST_SANDBOX_GPU", "all")
	refused(t, p.Enter(), "gpu all", "ENTERTEST_SANDBOX_GPU")
	t.Setenv("ENTERTEST_SANDBOX_GPU", "")
	t.Setenv("ENTERTEST_SANDBOX_SECRET", "NOT_SET_ANYWHERE")
	refused(t, p.Enter(), "NOT_SET_ANYWHERE", "not set")
	t.Setenv("ENTERTEST_SANDBOX_SECRET", "")
	t.Setenv("ENTERTEST_SANDBOX_BWRAP", "/nonexistent/bwrap")
	refused(t, p.Enter(), "/nonexistent")
	t.Setenv("ENTERTEST_SANDBOX_MODE", "landlock")
	refused(t, p.Enter(), "mode landlock", "ENTERTEST_SANDBOX_MODE")
	// With a report, the refusal is in it.
	file := filepath.Join(t.TempDir(), "r.json")
	t.Setenv("ENTERTEST_SANDBOX_REPORT", file)
	refused(t, p.Enter(), "mode landlock")
	if data, err := os.ReadFile(file); err != nil || !strings.Contains(string(data), "mode landlock") {
		t.Errorf("the report: %v %s", err, data)
	}
	t.Setenv("ENTERTEST_SANDBOX_REPORT", file+"/none")
	refused(t, p.Enter(), "cannot write the report")
}

func TestRewrite(t *testing.T) {
	for _, tt := range []struct {
		environ string
		dir     string
		want    string
	}{
		{"P_WRITABLE=", "/d", ""},
		{"P_WRITABLE=/a:/b", "/d", ""},
		{"P_WRITABLE=:/a:", "/d", ""},
		{"P_WRITABLE=a:/b::../c", "/d", "P_WRITABLE=/d/a:/b::/d/../c"},
		{"P_READABLE=.", "/", "P_READABLE=/."},
		{"P_READABLE=a\xff", "/d\n", "P_READABLE=/d\n/a\xff"},
		{"P_DEVICE=a", "/d", ""},
		{"OTHER_WRITABLE=a", "/d", ""},
	} {
		vars, err := rewrite("P_", []string{tt.environ}, tt.dir)
		got := ""
		for _, v := range vars {
			got += v.Name + "=" + v.Value
		}
		if err != nil || got != tt.want {
			t.Errorf("%q in %q: %q, %v; want %q", tt.environ, tt.dir, got, err, tt.want)
		}
	}
	_, err := rewrite("P_", []string{"P_READABLE=a"}, "/x:y")
	refused(t, err, "P_READABLE", "/x:y", "--read")
	if _, err := rewrite("P_", []string{"P_READABLE=/a"}, "/x:y"); err != nil {
		t.Errorf("an absolute path in a directory with ':': %v", err)
	}
}

// Case 25: a path with ':' in a list variable is never taken for two without a word.
func TestOneOrTwo(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b", "c:d", "e:f:g", "h:"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for list, refuse := range map[string]string{
		"":                           "",
		"a:b":                        "",
		":a::b:":                     "",
		"c":                          "",
		"h:":                         "", // the element h, and an empty one
		dir + "/a:" + dir + "/b":     "",
		"c:d":                        "c:d",
		dir + "/c:d":                 dir + "/c:d",
		"a:c:d:b":                    "c:d",
		"e:f:g":                      "e:f:g",
		dir + "/a:" + dir + "/e:f:g": dir + "/e:f:g",
	} {
		for _, suffix := range []string{"READABLE", "WRITABLE"} {
			err := oneOrTwo("P_", []string{"P_" + suffix + "=" + list}, dir)
			if refuse == "" {
				if err != nil {
					t.Errorf("%q: %v", list, err)
				}
				continue
			}
			refused(t, err, "P_"+suffix, plan.Quote(refuse)+" is a path that exists", map[string]string{"READABLE": "--read", "WRITABLE": "--write"}[suffix])
		}
	}
}

// What explain says of a start that failed in this process.
func TestExplainStep(t *testing.T) {
	cause := errors.New("no more descriptors")
	e := explain("/usr/bin/bwrap", nil, &launch.Failure{Step: "socketpair", Err: cause})
	if !errors.Is(e, cause) || !strings.Contains(e.Error(), "cannot make the cage, socketpair, no more descriptors; nothing was run") {
		t.Errorf("%v", e)
	}
}

func TestRemounted(t *testing.T) {
	ms := []binds.Mount{{Kind: binds.Tmpfs, Target: "/a"}, {Kind: binds.RemountRO, Target: "/a"}, {Kind: binds.Tmpfs, Target: "/b"}}
	if !remounted(ms, "/a") || remounted(ms, "/b") {
		t.Errorf("/a %v, /b %v", remounted(ms, "/a"), remounted(ms, "/b"))
	}
}

// What {NAME} stands for: the run's own places, what the host program says, and --define above all.
func TestTokens(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"repo/.git", "repo/sub", "bin", "elsewhere"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "elsewhere/engine"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../elsewhere/engine", filepath.Join(dir, "bin/engine")); err != nil {
		t.Fatal(err)
	}
	p := Program{Runs: "engine", Tokens: map[string]string{"model_dir": "/m", "scratch_dir": "/s"}}
	s := policy.Settings{Define: []policy.Entry{{Value: "scratch_dir=/mine"}, {Value: "scratch_dir=/weaker"}, {Value: "extra=/e"}}}
	environ := []string{"HOME=/home/u", "PATH=/nonexistent:" + dir + "/bin"}
	got := p.tokens(s, environ, dir+"/repo/sub")
	want := map[string]string{
		"cwd": dir + "/repo/sub", "repo": dir + "/repo", "home": "/home/u", "exe_dir": dir + "/elsewhere", "hf_cache": "/home/u/.cache/huggingface",
		"model_dir": "/m", "scratch_dir": "/mine", "extra": "/e",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for env, cache := range map[string]string{"HF_HOME=/hf": "/hf", "XDG_CACHE_HOME=/c": "/c/huggingface"} {
		if got := p.tokens(s, append(environ, env), dir)["hf_cache"]; got != cache {
			t.Errorf("%s: %s", env, got)
		}
	}
	// Outside of a checkout there is no {repo}, and with the directory gone no {cwd}: an error where a policy names one.
	for _, d := range []string{dir + "/bin", ""} {
		got := p.tokens(s, environ, d)
		if _, ok := got["repo"]; ok || got["cwd"] != d {
			t.Errorf("%q: %v", d, got)
		}
	}
	if got := (Program{Runs: "no-such-command"}).tokens(policy.Settings{}, environ, dir)["exe_dir"]; got != "" {
		t.Errorf("exe_dir of nothing is %q", got)
	}
}

// What a host program was not linked with is refused by name, never skipped.
func TestNotBuiltIn(t *testing.T) {
	env := []string{"P_SANDBOX_POLICY=/p.toml"}
	_, err := Program{Name: "p"}.Asked(env)
	refused(t, err, "P_SANDBOX_POLICY", "/p.toml", "Options.Policy: policyfile.Load")
	_, err = Program{Name: "p"}.Asked([]string{"P_SANDBOX_MODE=bwrap", "P_SANDBOX_RECIPE=/r.json"})
	refused(t, err, "P_SANDBOX_RECIPE", "Options.Policy")
	eff := policy.Effective{Settings: policy.Settings{Mode: policy.Entry{Value: "bwrap", By: "P_SANDBOX_MODE"}}}
	eff.Manifest, eff.Report = policy.Entry{Value: "1", By: "P_SANDBOX_MANIFEST"}, policy.Entry{Value: "r.json", By: "P_SANDBOX_REPORT"}
	refused(t, Program{Name: "p"}.Possible(eff, nil), "P_SANDBOX_MANIFEST", "Options.Manifest")
	eff.Report.Value = ""
	refused(t, Program{Name: "p"}.Possible(eff, nil), "nowhere to put the manifest", "P_SANDBOX_MANIFEST")
	eff.Manifest, eff.RequireApproved = policy.Entry{}, policy.Entry{Value: "1", By: "P_SANDBOX_REQUIRE_APPROVED"}
	refused(t, Program{Name: "p"}.Possible(eff, nil), "P_SANDBOX_REQUIRE_APPROVED", "no policy file")
	eff.Policy = policy.Entry{Value: "/p.toml"}
	refused(t, Program{Name: "p"}.Possible(eff, nil), "P_SANDBOX_REQUIRE_APPROVED", "Options.Approved")
}

// A policy that says off or disabled is not a way around what was approved; from a variable, the two contradict each other.
func TestOffAndApproved(t *testing.T) {
	approved := errors.New("wider")
	for _, mode := range []policy.Mode{policy.Off, policy.Disabled, policy.Bwrap} {
		p := Program{Name: "p",
			Load: func(path string, _ policy.FileOptions) (policy.File, error) {
				return policy.File{Settings: policy.Settings{Mode: policy.Entry{Value: string(mode), By: "policy /p.toml:1"}}, Files: []string{path}}, nil
			},
			Approved: func(string, policy.Settings) error { return approved },
		}
		eff, err := p.Asked([]string{"P_SANDBOX_POLICY=/p.toml", "P_SANDBOX_REQUIRE_APPROVED=1"})
		if err != nil {
			t.Fatal(err)
		}
		if Off(eff) {
			err = p.off(eff)
		} else {
			err = p.confine(eff, nil)
		}
		if err != approved {
			t.Errorf("%s: %v", mode, err)
		}
		if mode == policy.Bwrap {
			continue
		}
		_, err = p.Asked([]string{"P_SANDBOX_POLICY=/p.toml", "P_SANDBOX_REQUIRE_APPROVED=1", "P_SANDBOX_MODE=" + string(mode)})
		refused(t, err, "P_SANDBOX_REQUIRE_APPROVED", "does not even read the policy")
	}
}
