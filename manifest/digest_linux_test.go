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
)

func none(string) bool { return false }

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

// What selfcage itself or git writes there makes no difference, nor does what the cage hides.
func TestDirectoryLeavesOut(t *testing.T) {
	dir := project(t)
	sum := sumOf(t, dir)
	put(t, dir, ".git/index", "x")
	put(t, dir, "sub/r.json", "{\"version\":12,\n\"state\":\"ended\"}")
	if sumOf(t, dir) != sum {
		t.Error(".git or a report changes the digest")
	}
	put(t, dir, "sub/s.json", `{"version":1,"status":"`)
	if sumOf(t, dir) == sum {
		t.Error("what only looks like a report is left out")
	}
	must(t, os.Remove(filepath.Join(dir, "sub/s.json")))
	put(t, dir, "sub/secret/token", "x")
	hidden, _, _, err := soon().directory(dir, func(rel string) bool { return rel == "sub/secret" })
	if err != nil || hidden != sum {
		t.Errorf("what is hidden changes the digest: %v", err)
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
	put(t, dir, "p/.git/HEAD", "ref: refs/heads/x\n")
	put(t, dir, "p/.git/refs/heads/x", id)
	if got := commit(hostfs.OS{}, dir+"/p"); got != id {
		t.Errorf("it is %q", got)
	}
}
