package probe

import (
	"os"
	"syscall"

	"github.com/selfcage/selfcage/policy"
)

const errNotDir = syscall.ENOTDIR

// Bwrap returns the path of the bubblewrap that may make a cage, without links: the one that explicit names, else
// /usr/bin/bwrap, else NixOS's. It must be a regular file that root owns (or the caller, when explicit names it) and
// that nobody else can write or replace. Errors are *refusal.Error.
func Bwrap(explicit policy.Entry) (string, error) {
	j := judge{files: osFiles{}, caller: uint32(os.Geteuid()), overflow: overflowRoot, install: install}
	return j.find(explicit)
}

func install() string {
	for _, p := range []string{"/etc/os-release", "/usr/lib/os-release"} {
		if data, err := os.ReadFile(p); err == nil {
			return installHint(string(data))
		}
	}
	return installHint("")
}

// overflowRoot is the uid that the kernel shows for root's files in a user namespace that does not map uid 0.
func overflowRoot() (uint32, bool) {
	return overflowUID(readFile("/proc/self/uid_map"), readFile("/proc/sys/kernel/overflowuid"))
}

type osFiles struct{}

func (osFiles) lstat(p string) (node, error) {
	fi, err := os.Lstat(p)
	if err != nil {
		return node{}, err
	}
	st := fi.Sys().(*syscall.Stat_t)
	return node{fi.Mode(), st.Uid}, nil
}

func (osFiles) readlink(p string) (string, error) { return os.Readlink(p) }

// access(2) asks for the real uid, which is the effective one too: a setuid host program is not supported.
func (osFiles) executable(p string) bool { return syscall.Access(p, 1) == nil }
func (osFiles) writable(p string) bool   { return syscall.Access(p, 2) == nil }
