package launch

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// allSeals keep a file in memory as it is, for ever.
const allSeals = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE

// memoryFile returns an inherited descriptor of a sealed file in memory, to be read from its start.
func memoryFile(name string, content []byte) (int, error) {
	fd, err := unix.MemfdCreate("selfcage "+name, unix.MFD_ALLOW_SEALING)
	if err != nil {
		return -1, os.NewSyscallError("memfd_create", err)
	}
	for off := 0; off < len(content); {
		n, err := unix.Pwrite(fd, content[off:], int64(off))
		if err != nil && !errors.Is(err, unix.EINTR) {
			unix.Close(fd)
			return -1, os.NewSyscallError("write", err)
		}
		off += max(n, 0)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, allSeals); err != nil {
		unix.Close(fd)
		return -1, os.NewSyscallError("seal", err)
	}
	return fd, nil
}
