package report

import (
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/selfcage/selfcage/internal/sandtest"
	"github.com/selfcage/selfcage/plan"
)

func hows(as ...plan.Attempt) (got []string) {
	for _, tried := range Try(as) {
		got = append(got, tried.How)
	}
	return got
}

// Issue 4 item 5: attempts are made in earnest, and leave nothing where they work.
func TestTry(t *testing.T) {
	dir := sandtest.WorkDir(t) // on a file system that has O_TMPFILE, perhaps
	file := filepath.Join(dir, "f")
	if err := os.WriteFile(file, nil, 0o000); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("gone", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	got := hows(plan.Attempt{Op: "open", Object: file}, plan.Attempt{Op: "open", Object: filepath.Join(dir, "link")},
		plan.Attempt{Op: "open", Object: filepath.Join(dir, "none")}, plan.Attempt{Op: "open", Object: file + "/x"},
		plan.Attempt{Op: "write", Object: filepath.Join(dir, "none")}, plan.Attempt{Op: "write", Object: file},
		plan.Attempt{Op: "execute", Object: file})
	// A file whose content may not be read is there all the same, and so is a link that leads nowhere.
	want := []string{Worked, Worked, "ENOENT", "ENOTDIR", "ENOENT", "ENOTDIR", "E22"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got := hows(plan.Attempt{Op: "write", Object: dir}); got[0] != Worked && got[0] != "EOPNOTSUPP" {
		t.Errorf("write: %q", got)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("left: %v %v", entries, err)
	}
}

// A connection is asked for without a word to anybody.
func TestTryConnect(t *testing.T) {
	c, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Skip("no loopback: ", err)
	}
	defer c.Close()
	got := hows(plan.Attempt{Op: "connect", Object: c.LocalAddr().String()}, plan.Attempt{Op: "connect", Object: "localhost:53"}, plan.Attempt{Op: "connect", Object: "255.255.255.255:53"})
	if diff := cmp.Diff([]string{Worked, "E22", "EACCES"}, got); diff != "" { // broadcast needs a socket option
		t.Errorf("(-want +got)\n%s", diff)
	}
	_ = c.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	if n, from, err := c.ReadFrom(make([]byte, 1)); err == nil {
		t.Errorf("%d bytes were sent by %v", n, from)
	}
}
