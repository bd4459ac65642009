package policyfile

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/selfcage/selfcage/internal/refusal"
)

func fd(n uintptr) string { return strconv.Itoa(int(n)) }

// A pipe that nobody writes to, a device or a socket does not keep the start waiting, whoever names it.
func TestNoRegularFile(t *testing.T) {
	dir := tree(t, map[string]string{"a.toml": "extends = 'fifo'", "b.toml": "mode = 'bwrap'"})
	if err := syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if _, err := w.WriteString("mode = 'bwrap'\n"); err != nil {
		t.Fatal(err)
	}
	pipe, hint := "it is a pipe, and a policy is a regular file", "save it in a file; what a pipe or <(COMMAND) gives is not read"
	for name, cause := range map[string]string{
		filepath.Join(dir, "fifo"):           pipe,
		filepath.Join(dir, "a.toml"):         `cannot extend "` + dir + `/fifo": ` + pipe,
		"/dev/fd/" + fd(r.Fd()):              pipe,
		"/dev/null":                          "it is a device or a socket, and a policy is a regular file",
		filepath.Join(dir, "a.toml", "fifo"): "not a directory",
	} {
		got := make(chan error, 1)
		go func() {
			_, err := Load(name, opts)
			got <- err
		}()
		select {
		case err := <-got:
			var r *refusal.Error
			if !errors.As(err, &r) || r.Cause != cause || (cause == pipe && r.Hint != hint) {
				t.Errorf("%s: %v, hint %v", name, err, r)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%s: it waits", name)
		}
	}
	// A regular file by way of a descriptor is one.
	f, err := os.Open(filepath.Join(dir, "b.toml"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if p, err := Load("/dev/fd/"+fd(f.Fd()), opts); err != nil || p.Settings.Mode.Value != "bwrap" {
		t.Errorf("%v, %v", p, err)
	}
}
