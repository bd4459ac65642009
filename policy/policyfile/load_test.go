package policyfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/selfcage/selfcage/internal/refusal"
	"github.com/selfcage/selfcage/policy"
)

// tree writes files below a directory of its own and returns it.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		p := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(p), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// loadError is the error of Load, with dir written as D.
func loadError(t *testing.T, dir, name string) (object, cause, hint string) {
	t.Helper()
	f, err := Load(filepath.Join(dir, name), opts)
	var r *refusal.Error
	if !errors.As(err, &r) {
		t.Fatalf("%s: the error is %v, the policy\n%s", name, err, dump(f))
	}
	if len(f.Files) > 0 || len(f.Said) > 0 {
		t.Errorf("%s: a policy comes with the error:\n%s", name, dump(f))
	}
	short := func(s string) string { return strings.ReplaceAll(s, dir, "D") }
	return short(r.Object), short(r.Cause), r.Hint
}

func TestExtends(t *testing.T) {
	dir := tree(t, map[string]string{
		"child.toml": `extends = ["sub/base.json", "late.toml"]
mode = "bwrap"
read_paths = ["/child", "/both"]
network = { egress = true, hosts = ["child"] }
limits = { pids = 1 }
protect = ["/child"]
[narrow]
devices = []
`,
		"sub/base.json": `{"extends": "../root.toml", "mode": "auto", "read_paths": ["/base", "/both"], "write_paths": ["/base"],
"tmp": "1G", "note": "base", "report": "/base", "gpu": "all", "npu": ["n"], "cache": ["go"], "env_allowlist": ["A"], "hide": ["/h"],
"network": {"egress": true, "hosts": ["base"]}, "limits": {"pids": 2, "cpu": 2, "memory": "2G"}}`,
		"late.toml": "limits.cpu = 3\ndevices = ['/dev/fuse']\nread_paths = ['/late']\nnote = 'late'",
		"root.toml": "tmp = 7\nenv_allowlist = ['A', 'B']\n[narrow]\nread_paths = ['/x']",
	})
	f, err := Load(filepath.Join(dir, "child.toml"), opts)
	if err != nil {
		t.Fatal(err)
	}
	f.Said = nil
	want := `mode      bwrap (policy D/child.toml:2)
network   egress (policy D/child.toml:4)
host      child (policy D/child.toml:4)
host      base (policy D/sub/base.json:3)
read      /child (policy D/child.toml:3)
read      /both (policy D/child.toml:3)
read      /late (policy D/late.toml:3)
read      /base (policy D/sub/base.json:1)
write     /base (policy D/sub/base.json:1)
device    /dev/fuse (policy D/late.toml:2)
gpu       all (policy D/sub/base.json:2)
npu       n (policy D/sub/base.json:2)
cache     go (policy D/sub/base.json:2)
env       A (policy D/sub/base.json:2)
env       B (policy D/root.toml:2)
limit     pids=1 (policy D/child.toml:5)
limit     cpu=3 (policy D/late.toml:1)
limit     memory=2G (policy D/sub/base.json:3)
report    /base (policy D/sub/base.json:2)
hide      /h (policy D/sub/base.json:2)
protect   /child (policy D/child.toml:6)
tmp       1G (policy D/sub/base.json:2)
note      late (policy D/late.toml:4)
narrow
	said      devices (policy D/child.toml:8)
narrow
	said      read_paths (policy D/root.toml:4)
	read      /x (policy D/root.toml:4)
`
	diff(t, want, strings.ReplaceAll(filepath.ToSlash(dump(f)), filepath.ToSlash(dir), "D"))
	var files []string
	for _, p := range f.Files {
		files = append(files, strings.TrimPrefix(filepath.ToSlash(p), filepath.ToSlash(dir)))
	}
	diff(t, []string{"/child.toml", "/late.toml", "/sub/base.json", "/root.toml"}, files)
}

// A child that closes the network leaves none of the hosts open that its base had named.
func TestExtendsCloses(t *testing.T) {
	dir := tree(t, map[string]string{
		"child.toml": "extends = 'base.toml'\nnetwork = {}",
		"base.toml":  "network = {egress = true, hosts = ['a']}",
		"open.toml":  "extends = 'closed.toml'\nnetwork = {egress = true, hosts = ['a']}", "closed.toml": "network = {egress = false}",
		"silent.toml": "extends = 'base.toml'",
	})
	for name, want := range map[string]string{"child.toml": "none 0", "open.toml": "egress 1", "silent.toml": "egress 1"} {
		f, err := Load(filepath.Join(dir, name), opts)
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Settings.Network.Value + " " + strconv.Itoa(len(f.Settings.Hosts)); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// Absolute names, tokens, and two ways to the same base are fine.
func TestExtendsNames(t *testing.T) {
	dir := tree(t, map[string]string{
		"a.toml": "extends = ['{base_dir}/b.toml', 'c.toml', './sub/../c.toml']", "b.toml": "extends = 'd.toml'", "c.toml": "extends = 'd.toml'",
		"d.toml": "read_paths = ['/d']", "e.toml": "extends = " + strconv.Quote(filepath.ToSlash(t.TempDir())+"/nowhere.toml"),
	})
	f, err := Load(filepath.Join(dir, "a.toml"), Options{Tokens: map[string]string{"base_dir": filepath.ToSlash(dir)}})
	if err != nil {
		t.Fatal(err)
	}
	diff(t, []policy.Entry{{Value: "/d", By: "policy " + dir + "/d.toml:1"}}, f.Settings.Readable)
	if _, cause, _ := loadError(t, dir, "e.toml"); !strings.Contains(cause, "nowhere.toml") || !strings.HasSuffix(cause, "no such file or directory") {
		t.Errorf("%s", cause)
	}
}

func TestExtendsErrors(t *testing.T) {
	files := map[string]string{
		"self.toml": "# x\nextends = 'self.toml'",
		"a.toml":    "extends = 'b.toml'", "b.toml": "extends = [\n 'c.json']", "c.json": `{"extends": "link.toml"}`,
		"missing.toml": "mode = 'off'\nextends = ['fine.toml', 'sub/nowhere.toml']", "fine.toml": "mode = 'off'",
		"bad.toml": "extends = 'worse.toml'", "worse.toml": "\nmod = 1",
		"hollow.toml": "extends = 'empty.toml'", "empty.toml": "",
		"token.toml": "extends = '{nope}/x'", "dir.toml": "extends = '.'",
		"long0.toml": "extends = 'long1.toml'", "bomb0.toml": "extends = ['bomb1.toml', './bomb1.toml', './/bomb1.toml']",
	}
	for i := 1; i < 20; i++ {
		n, next := strconv.Itoa(i), strconv.Itoa(i+1)
		files["long"+n+".toml"] = "extends = 'long" + next + ".toml'"
		files["bomb"+n+".toml"] = "extends = ['bomb" + next + ".toml', './bomb" + next + ".toml']"
	}
	files["bomb4.toml"] = "extends = ['fine.toml', './fine.toml', './/fine.toml']"
	dir := tree(t, files)
	if err := os.Symlink("a.toml", filepath.Join(dir, "link.toml")); err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, object, cause, hint string }{
		{"self.toml", "D/self.toml:2:11", `cannot extend "D/self.toml": it extends itself: D/self.toml -> D/self.toml`, "leave out one extends of the circle"},
		{"a.toml", "D/c.json:1:13", `cannot extend "D/link.toml": it extends itself: D/a.toml -> D/b.toml -> D/c.json -> D/link.toml`, "leave out one extends of the circle"},
		{"missing.toml", "D/missing.toml:2:25", `cannot extend "D/sub/nowhere.toml": no such file or directory`, "a policy that cannot be read grants nothing and is never skipped"},
		{"bad.toml", "D/worse.toml:2:1", `unknown key "mod"`, "did you mean mode?"},
		{"hollow.toml", "D/empty.toml", "it is empty", emptyIs},
		{"token.toml", "D/token.toml:1:11", `unknown token "{nope}"`, "did you mean {home}?"},
		{"dir.toml", "D/dir.toml:1:11", `cannot extend "D": is a directory`, "a policy that cannot be read grants nothing and is never skipped"},
	}
	for _, tt := range tests {
		object, cause, hint := loadError(t, dir, tt.name)
		if object != tt.object || cause != tt.cause || hint != tt.hint {
			t.Errorf("%s\n got %s: %s\n\t%s\nwant %s: %s\n\t%s", tt.name, object, cause, hint, tt.object, tt.cause, tt.hint)
		}
	}
	if object, cause, _ := loadError(t, dir, "long0.toml"); object != "D/long15.toml:1:11" || !strings.Contains(cause, "more than 16 files extend one another: D/long0.toml -> ") {
		t.Errorf("%s: %s", object, cause)
	}
	if _, cause, _ := loadError(t, dir, "bomb0.toml"); !strings.HasSuffix(cause, "more than 64 files are extended") {
		t.Error(cause)
	}
}

// A file that is not there, is a directory, or may not be read: errors, never defaults.
func TestUnreadable(t *testing.T) {
	dir := tree(t, map[string]string{"secret.toml": "mode = 'off'", "empty.toml": "\n", "comments": "# nothing\n"})
	for name, want := range map[string]string{
		"nowhere.toml": `"D/nowhere.toml", no such file or directory`, "": `"D", is a directory`,
		"secret.toml/x": `"D/secret.toml/x", not a directory`, "empty.toml": "D/empty.toml, it is empty",
		"comments": "D/comments, nothing but comments is in it",
	} {
		object, cause, _ := loadError(t, dir, name)
		if got := object + ", " + cause; got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	_, err := Load(filepath.Join(dir, "nowhere.toml"), opts)
	if !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), "cannot read the policy, ") {
		t.Errorf("%v", err)
	}
	if runtime.GOOS == "linux" { // it never ends
		if _, cause, _ := loadError(t, "/dev", "zero"); cause != "it is a device or a socket, and a policy is a regular file" {
			t.Errorf("/dev/zero: %s", cause)
		}
	}
	if err := os.Chmod(filepath.Join(dir, "secret.toml"), 0); err != nil {
		t.Fatal(err)
	}
	f, err := Load(filepath.Join(dir, "secret.toml"), opts)
	if os.Getuid() == 0 { // who may read everything
		if err != nil || f.Settings.Mode.Value != "off" {
			t.Errorf("as root: %v", err)
		}
	} else if !errors.Is(err, fs.ErrPermission) {
		t.Errorf("the error is %v", err)
	}
}
