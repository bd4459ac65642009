package manifest

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/selfcage/selfcage/binds"
	"github.com/selfcage/selfcage/plan"
	"github.com/selfcage/selfcage/toolchain/elfhdr"
)

// aPlan is a plan of a cage over dir, with something of each kind.
func aPlan(t *testing.T, dir string) *plan.Plan {
	t.Helper()
	put(t, dir, "proj/in", "data")
	put(t, dir, "proj/secret/token", "hidden")
	put(t, dir, "proj/out/old", "x")
	put(t, dir, "go/VERSION", "go1.22\n")
	put(t, dir, "cache/x", "x")
	put(t, dir, "go/bin/go", "a program")
	put(t, dir, "invisible/go", "another")
	for _, p := range []string{"go/bin/go", "invisible/go"} {
		must(t, os.Chmod(filepath.Join(dir, p), 0o755))
	}
	put(t, dir, "unseen", "x")
	put(t, dir, "script", "#!/bin/sh\n")
	must(t, os.Chmod(filepath.Join(dir, "script"), 0o755))
	bind := func(kind binds.Kind, p, by string) binds.Mount {
		return binds.Mount{Kind: kind, Source: p, Target: p, Reason: binds.Reason{By: by}}
	}
	return &plan.Plan{
		Name: "x", Dir: dir + "/proj", Executes: dir + "/script",
		Args: []string{"selfcage", "run", "--read", dir + "/script", "--report", "out/old", "--", dir + "/script", "in", "--data=../proj/in", "../unseen", "secret/token", "word"},
		Same: []plan.Same{{Paths: []string{dir + "/script"}}},
		Mounts: []binds.Mount{
			bind(binds.ReadOnly, "/usr", "base"),
			bind(binds.ReadOnly, dir+"/proj", "working directory"),
			bind(binds.ReadWrite, dir+"/proj/out", "--write"),
			{Kind: binds.Sealed, Target: dir + "/proj/secret/token", Data: []byte{}, Reason: binds.Reason{By: "hide"}},
			bind(binds.ReadWrite, dir+"/cache", "--cache go"),
			bind(binds.ReadOnly, dir+"/go", "toolchain/go"),
			{Kind: binds.File, Target: "/etc/x", Data: []byte("copy"), Reason: binds.Reason{By: "base"}},
			{Kind: binds.File, Target: "/run/selfcage/grants", Data: []byte("g"), Reason: binds.Reason{By: "base"}},
			bind(binds.Device, "/dev/null", "--device"),
			{Kind: binds.Tmpfs, Target: "/tmp", Reason: binds.Reason{By: "base"}},
		},
		Env: []plan.Var{{Name: "PATH", Value: "a-value-of-a-variable:" + dir + "/invisible:" + dir + "/go/bin"}, {Name: "B"}, {Name: "A"}},
	}
}

// What a run could see is there, and nothing that must not be: no value, no content, no argument that names no file.
func TestCollect(t *testing.T) {
	dir := t.TempDir()
	data := Collect(aPlan(t, dir), os.Getpid())
	for _, never := range []string{"a-value-of-a-variable", "hidden", "word", "unseen", `"data"`} {
		if bytes.Contains(data, []byte(never)) {
			t.Errorf("it holds %q", never)
		}
	}
	var d document
	must(t, json.Unmarshal(data, &d))
	inputs := map[text]input{}
	for _, in := range d.Inputs {
		inputs[in.Path] = in
	}
	p := text(dir) + "/proj"
	out, proj, in := inputs[p+"/out"], inputs[p], inputs[p+"/in"]
	if len(inputs) != 4 || len(d.Inputs) != 4 || out.By != "--write" || out.Files != 1 || len(out.SHA256) != 64 {
		t.Errorf("inputs %+v", d.Inputs)
	}
	// The two that are mounted over are not the working directory's own.
	if proj.Kind != "directory" || proj.Files != 2 || proj.Size != 4 {
		t.Errorf("working directory %+v", proj)
	}
	if in.By != "argument" || in.SHA256 != digest([]byte("data")) || in.Size != 4 {
		t.Errorf("argument %+v", in)
	}
	if c := inputs[text(dir)+"/cache"]; c.SHA256 != "" || !strings.HasPrefix(c.Why, "a cache: ") || c.Kind != "directory" {
		t.Errorf("cache %+v", c)
	}
	roles := map[string]program{}
	for _, p := range d.Programs {
		roles[p.Role] = p
	}
	if roles["command"].Path != text(dir)+"/script" || roles["command"].SHA256 != digest([]byte("#!/bin/sh\n")) || roles["interpreter"].SHA256 == "" ||
		len(roles["program"].SHA256) != 64 || roles["program"].ID == "" {
		t.Errorf("programs %+v", d.Programs)
	}
	if sh, err := os.Open("/bin/sh"); err == nil {
		defer sh.Close()
		if h, err := elfhdr.Read(sh); err == nil && h.Interp != "" && len(roles["loader"].SHA256) != 64 {
			t.Errorf("no loader %s among %+v", h.Interp, d.Programs)
		}
	}
	if libc, ok := roles["libc"]; ok && !strings.HasPrefix(libc.Says, "GNU C Library (") {
		t.Errorf("libc %+v", libc)
	}
	// The first go in PATH is not visible.
	want := []tool{{Name: "toolchain/go", Path: p[:len(p)-5] + "/go", Version: "go1.22", From: text(dir) + "/go/VERSION"},
		{Name: "go", Path: text(dir) + "/go/bin/go", Version: "go1.22", From: text(dir) + "/go/VERSION", SHA256: digest([]byte("a program"))}}
	if diff := cmp.Diff(want, d.Tools); diff != "" {
		t.Errorf("tools -want +got\n%s", diff)
	}
	if len(d.Devices) != 1 || d.Devices[0].Number != "1:3" {
		t.Errorf("devices %+v", d.Devices)
	}
	if v := d.Variables; len(v) != 3 || v[0] != "A" || v[2] != "PATH" {
		t.Errorf("variables %v", v)
	}
	for _, m := range d.Mounts {
		switch {
		case m.Kind == "ro" && m.ID == "":
			t.Errorf("no file: %+v", m)
		case m.Target == "/etc/x" && m.SHA256 != digest([]byte("copy")), m.Target == "/run/selfcage/grants" && m.SHA256 != "":
			t.Errorf("digest: %+v", m)
		}
	}
	if len(d.Mounts) != 10 || d.Facts["kernel"]["release"] == "" || d.Facts["kernel"]["architecture"] == "" {
		t.Errorf("%d mounts, kernel %v", len(d.Mounts), d.Facts["kernel"])
	}
}

// The same state gives the same bytes, for whatever process; a change of the state is what Diff tells.
func TestCollectAgain(t *testing.T) {
	dir := t.TempDir()
	p := aPlan(t, dir)
	first := Collect(p, os.Getpid())
	cat := exec.Command("cat")
	in, err := cat.StdinPipe()
	must(t, err)
	must(t, cat.Start())
	second := Collect(p, cat.Process.Pid)
	must(t, in.Close())
	must(t, cat.Wait())
	ds, err := Diff(first, second)
	must(t, err)
	for _, d := range ds {
		t.Errorf("%+v", d)
	}
	if again := Collect(p, os.Getpid()); !bytes.Equal(first, again) {
		t.Errorf("the bytes are others:\n%s\n%s", first, again)
	}
	put(t, dir, "proj/in", "DATA")
	ds, err = Diff(first, Collect(p, os.Getpid()))
	must(t, err)
	if len(ds) != 2 || ds[0].Item != dir+"/proj" || ds[1].Item != dir+"/proj/in" {
		t.Errorf("%+v", ds)
	}
	if gone := Collect(p, 1<<30); !strings.Contains(string(gone), `"/proc/PID/mountinfo is not there"`) {
		t.Errorf("of a process that is gone: %s", gone)
	}
}

// What the command works with is told from what run is told.
func TestOperands(t *testing.T) {
	for _, tt := range []struct{ executes, args, want string }{
		{"", "prog a -- b", "a -- b"},
		{"ls", "selfcage run ls -- x", "-- x"},
		{"ls", "selfcage run --read ls -- ls x", "x"},
		{"ls", "selfcage run --quiet ls x ls", "x ls"},
		{"ls", "selfcage run -- ls", ""},
	} {
		if got := strings.Join(operands(&plan.Plan{Executes: tt.executes, Args: strings.Fields(tt.args)}), " "); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.args, got, tt.want)
		}
	}
}
