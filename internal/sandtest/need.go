// Package sandtest is for tests only. It says what a test needs of the machine, and gives it places and users to
// work with.
//
// A test that needs something says so first:
//
//	sandtest.Need(t, sandtest.Bwrap, sandtest.UserNS)
//
// Where it is missing the test is skipped, with the reason. Whoever knows that a machine has it sets
// SELFCAGE_TEST_REQUIRE to a comma separated list of features, or to "all" for everything but "root" and "ordinary":
// then a missing one is a failure, so that a test cannot stop running unnoticed. A program that was installed for the
// tests is a feature too, tool:NAME, as in tool:gdb.
package sandtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Feature is something that a test needs of the machine. Its text is its name in SELFCAGE_TEST_REQUIRE.
type Feature string

// The features. Each is found out by trying it, once in a process.
const (
	Bwrap    Feature = "bwrap"    // a bubblewrap where we look for one, and it answers
	UserNS   Feature = "userns"   // bubblewrap can make a user namespace
	Cage     Feature = "cage"     // ... and all other namespaces, mounts, /proc and /dev that a usual run has
	NetNS    Feature = "netns"    // ... and a network namespace with a loopback
	Landlock Feature = "landlock" // the kernel has Landlock and it is on
	Tiocsti  Feature = "tiocsti"  // the kernel lets a program push input into its terminal
	Root     Feature = "root"     // the test runs as uid 0
	Ordinary Feature = "ordinary" // the test does not run as uid 0
	User     Feature = "user"     // there is an ordinary user whom root can run commands as
	Disk     Feature = "disk"     // there is a place for WorkDir
	CC       Feature = "cc"       // a C compiler that makes programs which run
	Tmux     Feature = "tmux"
	Python   Feature = "python" // python3
	Perl     Feature = "perl"
	Git      Feature = "git"
	Sudo     Feature = "sudo" // sudo works without a password
	Go       Feature = "go"   // the go command, and the sources of this module around the test
	Nest     Feature = "nest" // a cage inside of what bubblewrap made
	Perf     Feature = "perf" // the perf command, and the kernel counts what one's own processes do
)

const toolPrefix = "tool:"

// Tool is the feature of a program being installed where [Program] finds it.
func Tool(name string) Feature { return Feature(toolPrefix + name) }

// Program is the path of an installed program. The caller's PATH is not asked: a test is about the system's.
func Program(name string) (string, error) {
	for _, dir := range []string{"/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/usr/local/go/bin"} {
		if p, err := exec.LookPath(dir + "/" + name); err == nil {
			return p, nil
		}
	}
	return "", errors.New(name + " is not installed")
}

// checks holds one function a feature: nil, or why the feature is missing.
var checks = map[Feature]func() error{
	Bwrap:    sync.OnceValue(checkBwrap),
	UserNS:   sync.OnceValue(checkUserNS),
	Cage:     sync.OnceValue(checkCage),
	NetNS:    sync.OnceValue(checkNetNS),
	Landlock: sync.OnceValue(checkLandlock),
	Tiocsti:  sync.OnceValue(checkTiocsti),
	Root:     checkRoot,
	Ordinary: checkOrdinary,
	User:     sync.OnceValue(checkUser),
	Disk:     sync.OnceValue(checkDisk),
	CC:       sync.OnceValue(checkCC),
	Tmux:     sync.OnceValue(checkTmux),
	Python:   sync.OnceValue(checkPython),
	Perl:     sync.OnceValue(checkPerl),
	Git:      sync.OnceValue(checkGit),
	Sudo:     sync.OnceValue(checkSudo),
	Go:       sync.OnceValue(checkGo),
	Nest:     sync.OnceValue(checkNest),
	Perf:     sync.OnceValue(checkPerf),
}

// checkOf is nil where there is no such feature.
func checkOf(f Feature) func() error {
	if name, ok := strings.CutPrefix(string(f), toolPrefix); ok && name != "" && !strings.Contains(name, "/") {
		return func() error { _, err := Program(name); return err }
	}
	return checks[f]
}

const requireVar = "SELFCAGE_TEST_REQUIRE"

// Need skips the test, or fails it where SELFCAGE_TEST_REQUIRE names the feature, at the first feature that is missing.
func Need(t testing.TB, features ...Feature) {
	t.Helper()
	required, err := parseRequire(os.Getenv(requireVar))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range features {
		check := checkOf(f)
		if check == nil {
			t.Fatalf("BUG(sandtest): no feature %q", f)
		}
		if err := check(); err != nil {
			missing(t, f, required[f], err)
		}
	}
}

func missing(t testing.TB, f Feature, required bool, why error) {
	t.Helper()
	if required {
		t.Fatalf("needs %s, and %s says that it is here: %v", f, requireVar, why)
	}
	t.Skipf("needs %s: %v", f, why)
}

// Have reports whether a feature is there, for a test that does more where it can.
func Have(f Feature) bool {
	check := checkOf(f)
	return check != nil && check() == nil
}

// parseRequire refuses a name that is none: a misspelt one would let tests be skipped again.
func parseRequire(list string) (map[Feature]bool, error) {
	required := map[Feature]bool{}
	for name := range strings.SplitSeq(list, ",") {
		f := Feature(strings.TrimSpace(name))
		switch {
		case f == "":
		case f == "all":
			for f := range checks {
				// A run is the one or the other.
				required[f] = required[f] || f != Root && f != Ordinary
			}
		case checkOf(f) == nil:
			return nil, fmt.Errorf("%s: no feature %q; there are all, %s and tool:NAME", requireVar, f, strings.Join(featureNames(), ", "))
		default:
			required[f] = true
		}
	}
	return required, nil
}

func featureNames() []string {
	var names []string
	for f := range checks {
		names = append(names, string(f))
	}
	slices.Sort(names)
	return names
}
