package hostfs

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"testing/iotest"
)

// ReadDir and Open go around package os; what they say must be the same.
func TestReadDirLikeOS(t *testing.T) {
	dir := t.TempDir()
	for i := range 2000 { // more than one buffer
		if err := os.WriteFile(filepath.Join(dir, "a long name for a file "+strconv.Itoa(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_ = syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600)
	_ = os.Symlink("nowhere", filepath.Join(dir, "link"))
	for _, d := range []string{dir, t.TempDir(), "/", "/dev", "/usr/bin", "/proc/self", "/sys", filepath.Join(dir, "absent"), "/proc/version"} {
		want, wantErr := os.ReadDir(d)
		got, err := OS{}.ReadDir(rel(d))
		if (err == nil) != (wantErr == nil) || errors.Is(err, fs.ErrNotExist) != errors.Is(wantErr, fs.ErrNotExist) {
			t.Errorf("%s: %v, package os says %v", d, err, wantErr)
		}
		if !slices.EqualFunc(got, want, func(a, b fs.DirEntry) bool {
			return a.Name() == b.Name() && a.Type() == b.Type() && a.IsDir() == b.IsDir()
		}) {
			t.Errorf("%s: %d entries, package os has %d, or others", d, len(got), len(want))
		}
		if len(got) > 0 {
			if fi, err := got[0].Info(); err != nil || fi.Name() != got[0].Name() {
				t.Errorf("%s: Info: %v", d, err)
			}
		}
	}
}

func TestOpenLikeOS(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789"), 1000)
	p := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(p, content, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := OS{}.Open(rel(p))
	if err != nil {
		t.Fatal(err)
	}
	if err := iotest.TestReader(struct {
		io.Reader
		io.ReaderAt
	}{f, f.(io.ReaderAt)}, content); err != nil {
		t.Error(err)
	}
	head := make([]byte, 20)
	if n, err := f.(io.ReaderAt).ReadAt(head, int64(len(content)-5)); n != 5 || err != io.EOF || string(head[:n]) != "56789" {
		t.Errorf("at the end: %d, %v, %q", n, err, head)
	}
	if fi, err := f.Stat(); err != nil || fi.Size() != int64(len(content)) {
		t.Errorf("Stat: %v", err)
	}
	if f.Close() != nil || f.Close() == nil {
		t.Error("Close")
	}
	if _, err := (OS{}).Open(rel(p) + "x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("absent: %v", err)
	}
	if d, err := (OS{}).Open("."); err != nil {
		t.Error(err)
	} else if _, err := d.Read(head); err == nil {
		t.Error("a directory was read")
	}
}

// What the kernel says is believed, but never read past its end.
func FuzzParseDirents(f *testing.F) {
	record := make([]byte, 24)
	record[0], record[16], record[18], record[19] = 1, 24, syscall.DT_REG, 'x'
	f.Add(record)
	f.Fuzz(func(t *testing.T, buf []byte) {
		list, _ := parseDirents(nil, "/absent", buf)
		for _, e := range list {
			if e.Name() == "." || e.Name() == ".." || len(e.Name()) > len(buf) {
				t.Errorf("%q", e.Name())
			}
		}
	})
}
