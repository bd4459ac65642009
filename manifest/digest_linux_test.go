package manifest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/selfcage/selfcage/internal/hostfs"
	"github.com/selfcage/selfcage/plan"
)

func none(string, fs.FileInfo) bool { return false }

func soon() reader { return reader{until: time.Now().Add(time.Minute)} }

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	p := filepath.Join(dir, name)
	must(t, os.MkdirAll(filepath.Dir(p), 0o755))
	must(t, os.WriteFile(p, []byte(text), 0o644))
	must(t, os.Chmod(p, 0o644))
}

// project is a directory of several kinds of files.
func project(t *testing.T, order ...string) string {
	t.Helper()
	dir := t.TempDir()
	texts := map[string]string{"a": "1", "sub/b": "2", "sub/c d\n": "", "sub/deep/e": "3"}
	if len(order) == 0 {
		order = []string{"a", "sub/b", "sub/c d\n", "sub/deep/e"}
	}
	for _, name := range order {
		put(t, dir, name, texts[name])
	}
	must(t, os.Symlink("a", filepath.Join(dir, "link")))
	must(t, syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o644))
	return dir
}

func sumOf(t *testing.T, dir string) string {
	t.Helper()
	sum, _, _, err := soon().directory(dir, none)
	must(t, err)
	return sum
}

// Two copies of a directory have one digest, in whatever order they were made; each change makes another one. A pipe is not
// waited for.
func TestDirectory(t *testing.T) {
	dir := project(t)
	sum, files, size, err := soon().directory(dir, none)
	if err != nil || len(sum) != 64 || files != 8 || size != 3 {
		t.Fatalf("%q, %d files, %d bytes, %v", sum, files, size, err)
	}
	if other := sumOf(t, project(t, "sub/deep/e", "sub/c d\n", "sub/b", "a")); other != sum {
		t.Error("a copy has another digest")
	}
	if one, other := (&tree{lines: []string{"a", "b"}}), (&tree{lines: []string{"b", "a"}}); one.digest() != other.digest() {
		t.Error("the order counts")
	}
	for name, change := range map[string]func(dir string) error{
		"content":  func(d string) error { put(t, d, "sub/b", "9"); return nil },
		"name":     func(d string) error { return os.Rename(filepath.Join(d, "a"), filepath.Join(d, "z")) },
		"mode":     func(d string) error { return os.Chmod(filepath.Join(d, "a"), 0o755) },
		"dir mode": func(d string) error { return os.Chmod(filepath.Join(d, "sub"), 0o700) },
		"more":     func(d string) error { put(t, d, "sub/deep/f", ""); return nil },
		"less":     func(d string) error { return os.Remove(filepath.Join(d, "sub/c d\n")) },
		"empty":    func(d string) error { return os.Mkdir(filepath.Join(d, "new"), 0o755) },
		"moved":    func(d string) error { return os.Rename(filepath.Join(d, "sub/deep/e"), filepath.Join(d, "sub/e")) },
		"link": func(d string) error {
			must(t, os.Remove(filepath.Join(d, "link")))
			return os.Symlink("sub/b", filepath.Join(d, "link"))
		},
		"a file for the pipe": func(d string) error {
			must(t, os.Remove(filepath.Join(d, "fifo")))
			put(t, d, "fifo", "")
			return nil
		},
	} {
		d := project(t)
		must(t, change(d))
		if sumOf(t, d) == sum {
			t.Errorf("%s: the digest is the same", name)
		}
	}
}

// What the cage hides makes no difference, nor does what git writes beside the commit, which is told. What only looks like a
// report of selfcage does: it could hide a change behind a few bytes.
func TestDirectoryLeavesOut(t *testing.T) {
	dir := project(t)
	sum := sumOf(t, dir)
	put(t, dir, "sub/r.json", "{\"version\":12,\n\"state\":\"ended\"}")
	if sumOf(t, dir) == sum {
		t.Error("what looks like a report is left out")
	}
	must(t, os.Remove(filepath.Join(dir, "sub/r.json")))
	put(t, dir, "sub/secret/token", "x")
	hidden, _, _, err := soon().directory(dir, func(rel string, _ fs.FileInfo) bool { return rel == "sub/secret" })
	if err != nil || hidden != sum {
		t.Errorf("what is hidden changes the digest: %v", err)
	}
	must(t, os.RemoveAll(filepath.Join(dir, "sub/secret")))
	id := strings.Repeat("0123456789abcdef", 3)[:40]
	put(t, dir, ".git/HEAD", "ref: refs/heads/x\n")
	unborn := sumOf(t, dir)
	put(t, dir, ".git/index", "x")
	if unborn == sum || sumOf(t, dir) == unborn {
		t.Error("a repository whose commit is not known is left out")
	}
	put(t, dir, ".git/refs/heads/x", id)
	if sumOf(t, dir) != sum {
		t.Error("the git directory whose commit is told beside the digest changes it")
	}
	// One further down is told by its commit.
	put(t, dir, "sub/.git/HEAD", id)
	nested := sumOf(t, dir)
	put(t, dir, "sub/.git/index", "x")
	if nested == sum || sumOf(t, dir) != nested {
		t.Error("the commit of a repository in it is not in the digest, or more of it")
	}
	put(t, dir, "sub/.git/HEAD", strings.Repeat("f", 40))
	if sumOf(t, dir) == nested {
		t.Error("another commit of a repository in it is the same digest")
	}
	put(t, dir, "sub/deep/.git", "gitdir: ../elsewhere")
	withFile := sumOf(t, dir)
	put(t, dir, "sub/deep/.git", "gitdir: ../elsewhere2")
	if sumOf(t, dir) == withFile {
		t.Error("a file .git is left out")
	}
	// One whose HEAD is a pipe that nobody writes to tells no commit, and nobody waits for one.
	must(t, os.MkdirAll(filepath.Join(dir, "pipe/.git"), 0o755))
	must(t, syscall.Mkfifo(filepath.Join(dir, "pipe/.git/HEAD"), 0o644))
	sumOf(t, dir)
}

// Only the report of this very run is left out, by whichever name it is found.
func TestOwnReport(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "r.json", "x")
	put(t, dir, "other.json", "x")
	run := func(args ...string) *plan.Plan {
		return &plan.Plan{Name: "selfcage", Executes: "true", Args: append([]string{"selfcage", "run"}, append(args, "--", "true", "--report", dir+"/other.json")...)}
	}
	for name, tt := range map[string]struct {
		plan *plan.Plan
		env  string
		want string
	}{
		"a flag":                   {run("--report", dir+"/r.json"), "", "r.json"},
		"a flag before a variable": {run("--report="+dir+"/r.json", "--read", "/x"), "SANDBOX_REPORT=" + dir + "/other.json", "r.json"},
		"a variable":               {run(), "SANDBOX_REPORT=" + dir + "/r.json", "r.json"},
		"of a host program":        {&plan.Plan{Name: "tool", Args: []string{"tool", "run", "--report", dir + "/other.json"}}, "TOOL_SANDBOX_REPORT=" + dir + "/r.json", "r.json"},
		"none":                     {run(), "", ""},
		"standard error":           {run("--report", "-"), "", ""},
		"not there":                {run("--report", dir+"/absent"), "", ""},
	} {
		got := ""
		if fi := ownReport(tt.plan, []string{tt.env}); fi != nil {
			got = fi.Name()
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// Too much, too slow or exchanged: no digest, with the reason, and the look ends.
func TestNoDigest(t *testing.T) {
	dir := t.TempDir()
	big := filepath.Join(dir, "big")
	f, err := os.Create(big)
	must(t, err)
	must(t, f.Truncate(maxTree+1))
	must(t, f.Close())
	if _, _, _, err := soon().directory(dir, none); !errors.Is(err, errLarge) {
		t.Errorf("64 MiB and one byte: %v", err)
	}
	fi, err := os.Lstat(big)
	must(t, err)
	if _, err := soon().path(big, fi, maxFile); !errors.Is(err, errLarge) {
		t.Errorf("a large file: %v", err)
	}
	late := reader{until: time.Now().Add(-time.Second)}
	small := filepath.Join(t.TempDir(), "small")
	put(t, filepath.Dir(small), "small", "x")
	fi, err = os.Lstat(small)
	must(t, err)
	if _, err := late.path(small, fi, maxFile); !errors.Is(err, errLate) {
		t.Errorf("too late: %v", err)
	}
	if sum, err := soon().path(small, fi, maxFile); err != nil || sum != digest([]byte("x")) {
		t.Errorf("%q, %v", sum, err)
	}
	put(t, filepath.Dir(small), "other", "secret")
	must(t, os.Rename(filepath.Join(filepath.Dir(small), "other"), small))
	if _, err := soon().path(small, fi, maxFile); !errors.Is(err, errChanged) {
		t.Errorf("exchanged: %v", err)
	}
	many := t.TempDir()
	for i := range maxEntries + 1 {
		put(t, many, strconv.Itoa(i), "")
	}
	if _, _, _, err := soon().directory(many, none); !errors.Is(err, errLarge) {
		t.Errorf("one file too many: %v", err)
	}
	must(t, os.Remove(filepath.Join(many, "0")))
	if _, n, _, err := soon().directory(many, none); err != nil || n != maxEntries {
		t.Errorf("as many as are read: %d, %v", n, err)
	}
	for err, want := range map[error]string{
		errLarge: "larger than", errLate: "no time", errChanged: "exchanged", errOther: "no regular file",
		fs.ErrPermission: "it may not be read", fs.ErrNotExist: "it is not there", errors.New("x"): "it cannot be read",
	} {
		if why := noDigest(err); !strings.Contains(why, want) {
			t.Errorf("%v: %s", err, why)
		}
	}
}

// What HEAD names must lie in the repository: the file system itself would follow it anywhere.
func TestCommitStaysInside(t *testing.T) {
	dir := t.TempDir()
	id := strings.Repeat("0123456789abcdef", 3)[:40]
	put(t, dir, "other", id)
	put(t, dir, "p/.git/HEAD", "ref: ../../other\n")
	if got := commit(hostfs.OS{}, dir+"/p"); got != "" {
		t.Errorf("it is %q", got)
	}
	must(t, os.Remove(dir+"/p/.git/HEAD"))
	must(t, syscall.Mkfifo(dir+"/p/.git/HEAD", 0o644)) // which nobody writes to
	if got := commit(hostfs.OS{}, dir+"/p"); got != "" {
		t.Errorf("it is %q", got)
	}
	must(t, os.Remove(dir+"/p/.git/HEAD"))
	put(t, dir, "p/.git/HEAD", "ref: refs/heads/x\n")
	put(t, dir, "p/.git/refs/heads/x", id)
	if got := commit(hostfs.OS{}, dir+"/p"); got != id {
		t.Errorf("it is %q", got)
	}
}
