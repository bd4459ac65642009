package start

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/selfcage/selfcage/policy"
)

func TestFacts(t *testing.T) {
	f, err := Facts([]string{"A=b"})
	if err != nil {
		t.Fatal(err)
	}
	dir, _ := os.Getwd()
	exe, _ := os.Executable()
	if f.Dir != dir || f.Exe.Path != exe || !f.Exe.Intact || f.Exe.Data != nil || f.UID != os.Getuid() || len(f.Env) != 1 {
		t.Errorf("dir %q, exe %+v, uid %d, env %q", f.Dir, f.Exe, f.UID, f.Env)
	}
	seen := map[string]bool{}
	for _, n := range f.Outside {
		seen[n.Name] = strings.Contains(n.Word, ":[")
	}
	for _, name := range []string{"user", "mount", "pid", "ipc", "uts", "network"} {
		if !seen[name] {
			t.Errorf("no %s namespace in %v", name, f.Outside)
		}
	}
}

// Case 28: the kernel's word on the working directory, not $PWD's. One that was deleted has no name.
func TestWorkDirOfKernel(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	odd := filepath.Join(dir, "o d\n\xff")
	link := filepath.Join(dir, "link")
	if err := os.Mkdir(odd, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(odd, link); err != nil {
		t.Fatal(err)
	}
	t.Chdir(link)
	if got := workDir(); got != odd {
		t.Errorf("%q, want %q", got, odd)
	}
	if err := os.Remove(odd); err != nil {
		t.Fatal(err)
	}
	if got := workDir(); got != "" {
		t.Errorf("deleted: %q", got)
	}
	s := policy.Settings{}
	_, err = Program{}.Plan(policy.Effective{Settings: s}, os.Environ())
	refused(t, err, "the working directory", "deleted")
}

// The plan of this process is the same each time, and holds its own data.
func TestPlanFor(t *testing.T) {
	dir := t.TempDir()
	s := policy.Settings{Writable: []policy.Entry{{Value: dir, By: "--write"}}, Network: policy.Entry{Value: "none", By: "x"}}
	p := Program{Name: "some program"}
	a, err := p.PlanFor(policy.Effective{Settings: s}, []string{"PATH=/usr/bin", "HOME=/nonexistent"}, []string{"prog", "x"})
	if err != nil {
		t.Fatal(err)
	}
	b, err := p.PlanFor(policy.Effective{Settings: s}, []string{"PATH=/usr/bin", "HOME=/nonexistent"}, []string{"prog", "x"})
	if err != nil || a.Explain() != b.Explain() {
		t.Errorf("not the same: %v", err)
	}
	if a.Name != "some program" || a.Namespaces.ShareNet || len(a.Filter) == 0 || !strings.Contains(a.Explain(), "--write: asked for writable") {
		t.Errorf("%s", a.Explain())
	}
}
