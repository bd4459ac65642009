package probe

import (
	"slices"
	"strings"
	"testing"

	"github.com/selfcage/selfcage/binds"
	"github.com/selfcage/selfcage/plan"
)

// fakeBwrap answers as bubblewrap 0.8.0 would, and fails with a line where refuse finds one in the arguments.
type fakeBwrap struct {
	help   []string // options; nil lists all
	refuse func(args []string) string
	runs   [][]string
	data   [][][]byte
}

func (f *fakeBwrap) run(args []string, data [][]byte) result {
	f.runs, f.data = append(f.runs, args), append(f.data, data)
	switch {
	case args[0] == "--version":
		return result{out: "bubblewrap 0.8.0\n"}
	case args[0] == "--help":
		help := f.help
		if help == nil {
			help = neededBy(everyOption())
		}
		return result{out: "usage: bwrap\n    " + strings.Join(help, " X   text\n    ") + "\n"}
	}
	if f.refuse != nil {
		if line := f.refuse(args); line != "" {
			return result{status: 1, err: line + "\n"}
		}
	}
	command, end := args[len(args)-1], "Not a directory"
	if command != nowhere {
		end = tooLong
	}
	return result{status: 1, err: "bwrap: execvp " + command + ": " + end + "\n"}
}

func with(words ...string) func([]string) string {
	return func(args []string) string {
		for i := range args {
			if i+len(words) <= len(args) && slices.Equal(args[i:i+len(words)], words) {
				return "bwrap: refused"
			}
		}
		return ""
	}
}

func samplePlan() *plan.Plan {
	by := func(s string) binds.Reason { return binds.Reason{By: s} }
	return &plan.Plan{
		Env:    []plan.Var{{Name: "PATH", Value: "/usr/bin"}, {Name: "TOKEN", Value: "hunter2"}},
		Filter: allowAll(), Dir: "/work", Command: "prog", Args: []string{"prog"},
		Mounts: []binds.Mount{
			{Kind: binds.ReadOnly, Source: "/usr", Target: "/usr", Reason: by("base")},
			{Kind: binds.File, Target: "/etc/passwd", Data: []byte("accounts"), Perm: 0o444, Reason: by("base")},
			{Kind: binds.Symlink, Source: "--usr/bin", Target: "/bin", Reason: by("base")},
			{Kind: binds.Proc, Target: "/proc", Reason: by("base")},
			{Kind: binds.Dev, Target: "/dev", Reason: by("base")},
			{Kind: binds.Tmpfs, Target: "/tmp", Perm: 0o1777, Reason: by("base")},
			{Kind: binds.ReadOnly, Source: "/data", Target: "/data", Reason: by("--read")},
			{Kind: binds.ReadWrite, Source: "/out", Target: "/out", Reason: by("--write")},
			{Kind: binds.RemountRO, Target: "/", Reason: by("base")},
		},
	}
}

func TestBisect(t *testing.T) {
	for _, c := range []struct {
		name   string
		bwrap  fakeBwrap
		step   step
		target string // of the mount
	}{
		{"everything works", fakeBwrap{}, "", ""},
		{"options", fakeBwrap{help: []string{"--help", "--ro-bind"}}, stepOptions, ""},
		{"a --help without options is no answer", fakeBwrap{help: []string{"?"}}, "", ""},
		{"user", fakeBwrap{refuse: with("--unshare-user")}, stepUser, ""},
		{"pid", fakeBwrap{refuse: with("--unshare-pid")}, stepPID, ""},
		{"ipc", fakeBwrap{refuse: with("--unshare-ipc")}, stepIPC, ""},
		{"uts", fakeBwrap{refuse: with("--unshare-uts")}, stepUTS, ""},
		{"cgroup", fakeBwrap{refuse: with("--unshare-cgroup")}, stepCgroup, ""},
		{"net", fakeBwrap{refuse: with("--unshare-net")}, stepNet, ""},
		{"proc", fakeBwrap{refuse: with("--proc", "/proc")}, stepProc, ""},
		{"dev", fakeBwrap{refuse: with("--dev", "/dev")}, stepDev, ""},
		{"first mount", fakeBwrap{refuse: with("--ro-bind", "/usr", "/usr")}, stepMounts, "/usr"},
		{"a mount", fakeBwrap{refuse: with("--ro-bind", "/data", "/data")}, stepMounts, "/data"},
		{"last mount", fakeBwrap{refuse: with("--remount-ro", "/")}, stepMounts, "/"},
		{"what every mount needs", fakeBwrap{refuse: with("--clearenv")}, stepMounts, ""},
		{"seccomp", fakeBwrap{refuse: with("--seccomp")}, stepSeccomp, ""},
		{"directory", fakeBwrap{refuse: with("--chdir", "/work")}, stepDir, ""},
		{"command", fakeBwrap{refuse: with("prog")}, stepCommand, ""},
		{"interpreter", fakeBwrap{refuse: with("/lib/ld.so")}, stepInterpret, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := bisect(c.bwrap.run, samplePlan(), observations{interp: "/lib/ld.so"})
			if o.finding.step != c.step {
				t.Fatalf("step %q, want %q", o.finding.step, c.step)
			}
			if got := o.mount; (got == nil) != (c.target == "") || got != nil && got.Target != c.target {
				t.Errorf("mount %+v, want %q", got, c.target)
			}
			if c.step != "" && c.step != stepOptions && o.finding.line != "bwrap: refused" {
				t.Errorf("line %q", o.finding.line)
			}
			if len(c.bwrap.runs) > 20 {
				t.Errorf("%d runs", len(c.bwrap.runs))
			}
			for _, args := range c.bwrap.runs {
				if line := strings.Join(args, " "); strings.Contains(line, "hunter2") || strings.Contains(line, "--setenv") {
					t.Errorf("a variable's value on a command line: %s", line)
				}
				if i := slices.Index(args, "--unshare-user"); i < 0 && args[0] != "--version" && args[0] != "--help" {
					t.Errorf("a step without a user namespace: %s", args)
				}
			}
			for _, ds := range c.bwrap.data {
				for _, d := range ds {
					if strings.Contains(string(d), "hunter2") {
						t.Errorf("a value that no step needs was given to one")
					}
				}
			}
		})
	}
}

// A command that is there may not be started: the only end that counts as good is the one that the padding causes.
func TestTheCommandNeverRuns(t *testing.T) {
	var b fakeBwrap
	bisect(b.run, samplePlan(), observations{})
	last := len(b.runs) - 1
	args, data := b.runs[last], b.data[last]
	if args[len(args)-1] != "prog" || args[len(args)-3] != "--args" || len(data) == 0 {
		t.Fatalf("%q", args)
	}
	if pad := data[len(data)-1]; len(pad) < 32*4096 {
		t.Errorf("padding of %d bytes: execve would take it", len(pad))
	}
	for _, r := range []result{{}, {status: 1}, {err: "bwrap: execvp prog: Not a directory\n"}, {status: 3, err: "the program's own words\n"}} {
		if _, bad := failed(stepCommand, r, "prog", tooLong); !bad {
			t.Errorf("%+v counts as good", r)
		}
	}
}

func TestNeededBy(t *testing.T) {
	got := neededBy(samplePlan())
	for _, o := range got {
		if strings.Contains(o, "usr") {
			t.Errorf("%q is a link's text, not an option", o)
		}
	}
	for _, o := range []string{"--perms", "--setenv", "--ro-bind", "--seccomp", "--unshare-net", "--args"} {
		if !slices.Contains(got, o) {
			t.Errorf("%s is not among %q", o, got)
		}
	}
}
