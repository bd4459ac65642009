package start

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/selfcage/selfcage/binds"
	"github.com/selfcage/selfcage/plan"
)

// protected is a plan with a placeholder of each kind in dir.
func protected(dir string) *plan.Plan {
	pl := &plan.Plan{Remove: []plan.Missing{
		{Path: filepath.Join(dir, "hooks"), IsDir: true},
		{Path: filepath.Join(dir, "commondir"), Data: ".\n"},
		{Path: filepath.Join(dir, "config.worktree")},
	}}
	for _, m := range pl.Remove {
		pl.Mounts = append(pl.Mounts, binds.Mount{Kind: binds.ReadOnly, Source: m.Path, Target: m.Path})
	}
	return pl
}

func holds(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != len(want) {
		t.Fatalf("got %v, want %v", entries, want)
	}
	for i, e := range entries {
		if e.Name() != want[i] {
			t.Errorf("got %v, want %v", entries, want)
		}
	}
}

var all = []string{"commondir", "config.worktree", "hooks"}

// Case 21: what is there only to be mounted over goes when the last run has ended that needs it.
func TestPlaceholders(t *testing.T) {
	dir := t.TempDir()
	one, two := protected(dir), protected(dir)
	first, err := holdAll(one)
	if err != nil {
		t.Fatal(err)
	}
	holds(t, dir, all...)
	for _, m := range one.Mounts {
		if m.ID == (binds.ID{}) {
			t.Errorf("%s: the plan does not know which file that is", m.Source)
		}
	}
	second, err := holdAll(two)
	if err != nil {
		t.Fatal(err)
	}
	if two.Mounts[0].ID != one.Mounts[0].ID {
		t.Error("two runs hold different files")
	}
	first()
	holds(t, dir, all...)
	second()
	holds(t, dir)
}

// What a killed run has left is taken over and removed.
func TestPlaceholdersLeft(t *testing.T) {
	dir := t.TempDir()
	if _, err := holdAll(protected(dir)); err != nil { // never released; the locks of a killed process are gone
		t.Fatal(err)
	}
	left := t.TempDir()
	for _, name := range all { // a copy that nobody holds
		fi, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(left, name)
		if fi.IsDir() {
			err = os.Mkdir(to, 0o755)
		} else {
			var data []byte
			if data, err = os.ReadFile(filepath.Join(dir, name)); err == nil {
				err = os.WriteFile(to, data, 0o644)
			}
		}
		if err == nil {
			err = os.Chmod(to, fi.Mode())
		}
		if err == nil {
			err = os.Chtimes(to, fi.ModTime(), fi.ModTime())
		}
		if err != nil {
			t.Fatal(err)
		}
		if fi, err = os.Stat(to); err != nil || !plan.Placeholder(fi) {
			t.Errorf("%s is no placeholder: %v", to, fi.Mode())
		}
	}
	release, err := holdAll(protected(left))
	if err != nil {
		t.Fatal(err)
	}
	release()
	holds(t, left)
}

// What is somebody's stays: an empty file of the user's own, and a placeholder that was written to.
func TestPlaceholdersOfOthers(t *testing.T) {
	dir := t.TempDir()
	own := filepath.Join(dir, "config.worktree")
	if err := os.WriteFile(own, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	// Put there since the plan was made: the plan has no idea what it is.
	if _, err := holdAll(protected(dir)); err == nil || !strings.Contains(err.Error(), "something else was put there") {
		t.Errorf("%v", err)
	}
	holds(t, dir, "config.worktree")
	if err := os.Remove(own); err != nil {
		t.Fatal(err)
	}
	release, err := holdAll(protected(dir))
	if err != nil {
		t.Fatal(err)
	}
	holds(t, dir, all...)
	if err := os.Chmod(filepath.Join(dir, "commondir"), 0o644); err == nil {
		err = os.WriteFile(filepath.Join(dir, "commondir"), []byte("elsewhere\n"), 0o644)
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "hooks", "x"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	release()
	holds(t, dir, "commondir", "hooks")
}

// A link in the place of the directory leads nowhere, and one in the place of the file is not followed.
func TestPlaceholdersThroughLinks(t *testing.T) {
	dir, victim := t.TempDir(), t.TempDir()
	if err := os.Symlink(victim, filepath.Join(dir, "git")); err != nil {
		t.Fatal(err)
	}
	if _, err := holdAll(protected(filepath.Join(dir, "git"))); err == nil {
		t.Error("made in the directory that a link leads to")
	}
	holds(t, victim)
	for _, name := range all {
		if err := os.Symlink(filepath.Join(victim, name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := holdAll(protected(dir)); err == nil || !strings.Contains(err.Error(), "something else was put there") {
		t.Errorf("%v", err)
	}
	holds(t, victim)
}

// Whoever can read a placeholder can lock it; a start does not wait for ever.
func TestPlaceholderHeld(t *testing.T) {
	dir := t.TempDir()
	if _, err := holdAll(protected(dir)); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(filepath.Join(dir, "commondir"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	done := make(chan error, 1)
	go func() { done <- share(int(f.Fd())) }() // a shared one is no hindrance
	if err := <-done; err != nil {
		t.Error(err)
	}
	other, err := os.Create(filepath.Join(t.TempDir(), "x"))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := unix.Flock(int(other.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	again, err := os.Open(other.Name())
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if err := share(int(again.Fd())); err != errHeld {
		t.Errorf("%v", err)
	}
}

// Many runs at once: at each moment all hold the same file, and in the end there is none.
func TestPlaceholdersAtOnce(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				pl := protected(dir)
				release, err := holdAll(pl)
				if err != nil {
					t.Error(err)
					return
				}
				time.Sleep(100 * time.Microsecond)
				for _, m := range pl.Mounts {
					fi, err := os.Lstat(m.Source)
					if err != nil || !plan.Placeholder(fi) {
						t.Errorf("%s: %v", m.Source, err)
					}
				}
				release()
			}
		})
	}
	wg.Wait()
	holds(t, dir)
}
