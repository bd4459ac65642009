//go:build linux && (amd64 || arm64)

package launch

import (
	"errors"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/selfcage/selfcage/binds"
	"github.com/selfcage/selfcage/plan"
)

// rootOf opens the root directory that process pid sees. A process that may not be looked at, since its program cannot be
// read or it is gone, has none, and nothing is claimed then.
func rootOf(pid int) (fd int, ok bool) {
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/root", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	return fd, err == nil
}

// sameFiles looks through the root of process pid: is each bind the file that the plan means?
func sameFiles(ms []binds.Mount, pid int) error {
	root, ok := rootOf(pid)
	if !ok {
		return nil
	}
	defer unix.Close(root)
	for _, m := range ms {
		if m.ID == (binds.ID{}) {
			if m.Kind.Bind() && m.Reason.By == "protect" {
				return errors.New(m.Target + ": it is not known which file that is") // a placeholder that nobody holds
			}
			continue
		}
		var st unix.Stat_t
		if err := unix.Fstatat(root, m.Target[1:], &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return errors.New(m.Target + ", asked for by " + m.Reason.By + ": " + err.Error())
		}
		if uint64(st.Dev) != m.ID.Dev || st.Ino != m.ID.Ino {
			return errors.New(m.Target + ", asked for by " + m.Reason.By + ", is another file than when the plan was made")
		}
	}
	return nil
}

// sameProgram says whether process pid runs the file that the plan means: by its name it may be another build of the same
// program, which answers as this one does.
func sameProgram(want binds.ID, pid int) error {
	var st unix.Stat_t
	if want == (binds.ID{}) || unix.Stat("/proc/"+strconv.Itoa(pid)+"/exe", &st) != nil {
		return nil
	}
	if got := (binds.ID{Dev: uint64(st.Dev), Ino: st.Ino}); got != want {
		return errors.New("another file than outside was started by the name of this program")
	}
	return nil
}

// sameCommands looks programs up as process pid will: is each the file that it is outside?
func sameCommands(list []plan.Same, pid int) error {
	if len(list) == 0 {
		return nil
	}
	root, ok := rootOf(pid)
	if !ok {
		return nil
	}
	defer unix.Close(root)
	for _, want := range list {
		if err := sameCommand(want, root); err != nil {
			return err
		}
	}
	return nil
}

func sameCommand(want plan.Same, root int) error {
	for _, p := range want.Paths {
		id, ok, err := executableAt(root, p)
		switch {
		case err == unix.ENOSYS || err == unix.EPERM || err == unix.EAGAIN: // before Linux 5.6, or where a filter forbids it
			return nil
		case ok && id == want.ID:
			return nil
		case ok:
			return errors.New("another " + p + " would run than outside")
		}
	}
	return errors.New(want.Paths[len(want.Paths)-1] + " would run outside, and is not there inside")
}

// manyTimes is some milliseconds' worth of look-ups.
const manyTimes = 10000

// executableAt resolves p with root for its root, links included, and identifies the executable file that it leads to.
func executableAt(root int, p string) (id binds.ID, ok bool, err error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS}
	fd, err := unix.Openat2(root, p, &how)
	// While anything on the machine is being mounted or renamed, the kernel cannot tell where ".." leads, and says so.
	for i := 0; (err == unix.EAGAIN || err == unix.EINTR) && i < manyTimes; i++ {
		fd, err = unix.Openat2(root, p, &how)
	}
	if err != nil {
		return id, false, err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return id, false, err
	}
	return binds.ID{Dev: uint64(st.Dev), Ino: st.Ino}, st.Mode&unix.S_IFMT == unix.S_IFREG && st.Mode&0o111 != 0, nil
}
