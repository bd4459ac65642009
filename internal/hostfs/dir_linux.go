package hostfs

import (
	"encoding/binary"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
)

// ReadDir lists the named directory, sorted. Like ReadFile it goes around package os.
func (OS) ReadDir(name string) ([]fs.DirEntry, error) {
	dir := abs(name)
	fail := func(op string, err error) ([]fs.DirEntry, error) {
		return nil, &fs.PathError{Op: op, Path: dir, Err: err}
	}
	fd, err := open(dir, syscall.O_DIRECTORY)
	if err != nil {
		return fail("open", err)
	}
	defer syscall.Close(fd)
	var list []fs.DirEntry
	buf := make([]byte, 8<<10)
	for {
		n, err := syscall.ReadDirent(fd, buf)
		switch {
		case err == syscall.EINTR:
			continue
		case err != nil:
			return fail("readdirent", err)
		case n == 0:
			slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
			return list, nil
		}
		if list, err = parseDirents(list, dir, buf[:n]); err != nil {
			return fail("readdirent", err)
		}
	}
}

// parseDirents reads records of struct linux_dirent64: inode and offset of 8 bytes each, 2 of length, 1 of type, the name.
func parseDirents(list []fs.DirEntry, dir string, buf []byte) ([]fs.DirEntry, error) {
	const head = 19
	for len(buf) > 0 {
		if len(buf) < head {
			return list, syscall.EIO
		}
		length := int(binary.NativeEndian.Uint16(buf[16:]))
		if length < head || length > len(buf) {
			return list, syscall.EIO
		}
		inode := binary.NativeEndian.Uint64(buf)
		kind, raw := buf[18], buf[head:length]
		buf = buf[length:]
		if i := slices.Index(raw, 0); i >= 0 {
			raw = raw[:i]
		}
		if name := string(raw); name != "." && name != ".." && inode != 0 { // 0: a deleted one, on some file systems
			e := entry{dir, name, modes[kind&15]}
			if kind == syscall.DT_UNKNOWN { // some file systems do not say
				fi, err := e.Info()
				if err != nil {
					continue // gone since
				}
				e.mode = fi.Mode().Type()
			}
			list = append(list, e)
		}
	}
	return list, nil
}

// modes are the types of directory entries, by DT_REG and the like.
var modes = [16]fs.FileMode{
	syscall.DT_FIFO: fs.ModeNamedPipe, syscall.DT_CHR: fs.ModeDevice | fs.ModeCharDevice, syscall.DT_DIR: fs.ModeDir,
	syscall.DT_BLK: fs.ModeDevice, syscall.DT_LNK: fs.ModeSymlink, syscall.DT_SOCK: fs.ModeSocket,
}

type entry struct {
	dir, name string
	mode      fs.FileMode
}

func (e entry) Name() string               { return e.name }
func (e entry) IsDir() bool                { return e.mode.IsDir() }
func (e entry) Type() fs.FileMode          { return e.mode }
func (e entry) Info() (fs.FileInfo, error) { return os.Lstat(Join(e.dir, e.name)) }
