package start

import (
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/selfcage/selfcage/internal/hostfs"
	"github.com/selfcage/selfcage/internal/refusal"
	"github.com/selfcage/selfcage/plan"
)

// Facts looks at this process and its host.
func Facts(environ []string) (plan.Facts, error) {
	f := plan.Facts{Host: hostfs.OS{}, Args: os.Args, Env: environ, Dir: workDir(), UID: os.Getuid(), GID: os.Getgid()}
	for _, n := range plan.NamespaceFiles {
		if text, err := os.Readlink("/proc/self/ns/" + n.Word); err == nil {
			f.Outside = append(f.Outside, plan.Namespace{Name: n.Name, Word: text})
		}
	}
	if f.UID != os.Geteuid() || f.GID != os.Getegid() {
		return f, &refusal.Error{
			What: "cannot make the cage", Cause: "the program runs with another user's rights (setuid or setgid)",
			Hint: "start it as the user it should run as",
		}
	}
	exe, err := executable()
	f.Exe = exe
	return f, err
}

// workDir is the working directory without links, as the kernel knows it; empty when it was deleted or cannot be
// reached from the root.
func workDir() string {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Getcwd(buf)
	if err != nil || n < 2 || buf[0] != '/' {
		return ""
	}
	return string(buf[:n-1])
}

// executable says where the running program lies and whether that file is still the one that runs.
func executable() (plan.Exe, error) {
	const self = "/proc/self/exe"
	path, err := os.Readlink(self)
	if err != nil {
		return plan.Exe{}, &refusal.Error{What: "cannot find the running program", Object: self, Cause: err.Error(), Hint: "mount /proc", Err: err}
	}
	var runs, lies unix.Stat_t
	if err := unix.Stat(self, &runs); err != nil {
		return plan.Exe{}, &refusal.Error{What: "cannot look at the running program", Object: self, Cause: err.Error(), Hint: "mount /proc", Err: err}
	}
	same := func(p string) bool {
		return unix.Lstat(p, &lies) == nil && lies.Dev == runs.Dev && lies.Ino == runs.Ino
	}
	if same(path) {
		return plan.Exe{Path: path, Intact: true}, nil
	}
	path = strings.TrimSuffix(path, " (deleted)")
	if same(path) {
		return plan.Exe{Path: path, Intact: true}, nil
	}
	// On an overlay the two can differ in device for one and the same file; the content decides then. Reading it is
	// needed anyway.
	data, err := os.ReadFile(self)
	if err != nil {
		if e, ok := err.(*os.PathError); ok && e.Err == syscall.EACCES {
			return plan.Exe{Path: path}, nil
		}
		return plan.Exe{}, &refusal.Error{What: "cannot read the running program", Object: self, Cause: err.Error(), Err: err}
	}
	return plan.Exe{Path: path, Data: data}, nil
}

// executablePath is by what this program can be executed once more: its path, so that ps and pkill know its name, or
// what the kernel has of it where that is another file by now.
func executablePath() string {
	if exe, err := executable(); err == nil && exe.Intact {
		return exe.Path
	}
	return "/proc/self/exe"
}
