package plan

import (
	"io/fs"
	"syscall"
	"testing"
	"testing/fstest"
)

// Where this user can make nothing, the program inside can neither, and nothing must stand in its place.
func TestProtectOthersCheckout(t *testing.T) {
	for _, tt := range []struct {
		uid, owner int
		mode       fs.FileMode
		want       int
	}{
		{1000, 1000, 0o755, 3},
		{1000, 0, 0o755, 0},
		{1000, 0, 0o777, 3},
		{1000, 0, 0o775, 3}, // perhaps it is the caller's group
		{0, 1000, 0o755, 3},
	} {
		s := inProject(t).write(".")
		s.UID = tt.uid
		s.Host.(fstest.MapFS)["home/ada/proj/.git"] = &fstest.MapFile{Mode: fs.ModeDir | tt.mode, Sys: &syscall.Stat_t{Uid: uint32(tt.owner)}}
		p := build(t, s)
		if got := removed(p); len(got) != tt.want {
			t.Errorf("%+v: %q", tt, got)
		}
		if got := at(p, proj+"/.git/config"); got != "ro "+proj+"/.git/config" {
			t.Errorf("%+v: config is shown by %s", tt, got)
		}
	}
}

// What somebody else has made unreadable the run cannot make readable.
func TestProtectOthersUnreadable(t *testing.T) {
	for _, owner := range []uint32{1000, 0} {
		s := inProject(t).write(".")
		dir(s, "home/ada/proj/other/x")
		s.Host.(fstest.MapFS)["home/ada/proj/other"] = &fstest.MapFile{Mode: fs.ModeDir, Sys: &syscall.Stat_t{Uid: owner}}
		if s = s.shut("other"); owner == 0 {
			build(t, s)
		} else if r := refused(t, s); r.What != "cannot protect" {
			t.Errorf("%v", r)
		}
	}
}
