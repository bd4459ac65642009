package sandtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const dirVar = "SELFCAGE_TEST_DIR"

// WorkDir makes a directory that is neither below /tmp nor below the home, since a cage treats both as special, and
// removes it at the end. Its path has no symlinks. It is made in $SELFCAGE_TEST_DIR, else in /var/tmp, which a cage
// replaces by a link to /tmp: a test must pass in both.
func WorkDir(t testing.TB) string {
	t.Helper()
	Need(t, Disk)
	base, err := disk()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(base, "selfcage-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("WorkDir: %v", err)
		}
	})
	return dir
}

// checkDisk makes a directory and removes it: that it exists does not mean that we may.
func checkDisk() error {
	base, err := disk()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(base, "selfcage-test-")
	if err != nil {
		return err
	}
	return os.Remove(dir)
}

// disk is the directory for WorkDir, with its symlinks resolved.
func disk() (string, error) {
	base := os.Getenv(dirVar)
	if base == "" {
		base = "/var/tmp"
	}
	real, err := filepath.EvalSymlinks(base)
	if err != nil {
		return "", err
	}
	if real, err = filepath.Abs(real); err != nil {
		return "", err
	}
	for _, special := range []string{"/tmp", os.Getenv("HOME")} {
		if special, err := filepath.EvalSymlinks(special); err == nil && within(real, special) {
			return "", fmt.Errorf("%s is below %s; set %s to another place", base, special, dirVar)
		}
	}
	return real, nil
}

// within reports whether path is dir or below it. Both are clean. The root does not count: the home of a container's
// user may be /, and everything is below that.
func within(path, dir string) bool {
	return dir != "/" && dir != "" && (path == dir || strings.HasPrefix(path, dir+"/"))
}

const userVar = "SELFCAGE_TEST_USER"

// Account is a user of this machine.
type Account struct {
	Name string
	UID  uint32
	GID  uint32
	Home string
}

// OrdinaryUser returns the user whom a test that runs as root can run commands as: the one that $SELFCAGE_TEST_USER
// names, else the one with the lowest uid from 1000 on who owns a home. Otherwise the test is skipped.
func OrdinaryUser(t testing.TB) Account {
	t.Helper()
	Need(t, Root, User)
	a, err := ordinary()
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// WorkDir is a [WorkDir] that the user owns.
func (a Account) WorkDir(t testing.TB) string {
	t.Helper()
	dir := WorkDir(t)
	if err := os.Chown(dir, int(a.UID), int(a.GID)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Env is a small environment for the user's commands.
func (a Account) Env() []string {
	return []string{"HOME=" + a.Home, "USER=" + a.Name, "LOGNAME=" + a.Name, "PATH=/usr/local/bin:/usr/bin:/bin"}
}

func checkUser() error {
	_, err := ordinary()
	return err
}

func ordinary() (Account, error) {
	text, err := os.ReadFile("/etc/passwd")
	if err != nil {
		return Account{}, err
	}
	return choose(parsePasswd(string(text)), os.Getenv(userVar), ownsHome)
}

var errNoUser = errors.New("no user with a uid from 1000 on owns a home")

// choose takes the named account, or else the lowest uid that fits.
func choose(accounts []Account, name string, ownsHome func(Account) bool) (Account, error) {
	var best *Account
	for _, a := range accounts {
		switch {
		case name != "" && a.Name == name && a.UID != 0:
			return a, nil
		case name != "" || a.UID < 1000 || a.UID >= 65534 || !ownsHome(a):
		case best == nil || a.UID < best.UID:
			best = &a
		}
	}
	switch {
	case best != nil:
		return *best, nil
	case name != "":
		return Account{}, fmt.Errorf("%s: %q is no ordinary user", userVar, name)
	}
	return Account{}, errNoUser
}
