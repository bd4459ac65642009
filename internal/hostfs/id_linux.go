package hostfs

import (
	"io/fs"
	"syscall"
)

// Identity returns the device and inode of a file, and its owner, as far as its file system tells.
func Identity(fi fs.FileInfo) (dev, ino uint64, uid uint32, ok bool) {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, 0, false
	}
	return uint64(st.Dev), st.Ino, st.Uid, true
}
