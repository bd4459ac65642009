//go:build unix

package hostfs

import (
	"io"
	"io/fs"
	"os"
	"syscall"
)

// ReadFile returns the content of the named file. It goes around package os, whose files each start the runtime's
// network poller: a start reads some twenty small ones, and those system calls would be most of it.
func (OS) ReadFile(name string) ([]byte, error) {
	fail := func(op string, err error) ([]byte, error) {
		return nil, &fs.PathError{Op: op, Path: abs(name), Err: err}
	}
	fd, err := open(abs(name), 0)
	if err != nil {
		return fail("open", err)
	}
	defer syscall.Close(fd)
	var buf []byte
	for {
		if len(buf) == cap(buf) {
			more := max(4096, len(buf))
			var st syscall.Stat_t
			if len(buf) == 4096 && syscall.Fstat(fd, &st) == nil && st.Size > 4096 && st.Size < 1<<24 {
				more = int(st.Size) - len(buf) + 1 // and one to see that this was all
			}
			buf = append(make([]byte, 0, len(buf)+more), buf...)
		}
		n, err := syscall.Read(fd, buf[len(buf):cap(buf)])
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return fail("read", err)
		case n == 0:
			return buf, nil
		default:
			buf = buf[:len(buf)+n]
		}
	}
}

func open(name string, flags int) (fd int, err error) {
	for {
		fd, err = syscall.Open(name, syscall.O_RDONLY|syscall.O_CLOEXEC|syscall.O_NONBLOCK|flags, 0)
		if err != syscall.EINTR {
			return fd, err
		}
	}
}

// Open opens the named file for reading, around package os as ReadFile does.
func (OS) Open(name string) (fs.File, error) {
	fd, err := open(abs(name), 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: abs(name), Err: err}
	}
	return &file{abs(name), fd}, nil
}

// file is an open file. Like one of package os it must be closed once only.
type file struct {
	name string
	fd   int
}

// Stat describes the file that has the name now: package syscall has no FileInfo of a descriptor.
func (f *file) Stat() (fs.FileInfo, error) { return os.Stat(f.name) }

func (f *file) Read(p []byte) (int, error) {
	return f.read("read", p, func() (int, error) { return syscall.Read(f.fd, p) })
}

// ReadAt reads from a place, for programs of which only the head is needed.
func (f *file) ReadAt(p []byte, off int64) (done int, err error) {
	for done < len(p) {
		n, err := f.read("pread", p[done:], func() (int, error) { return syscall.Pread(f.fd, p[done:], off+int64(done)) })
		if done += n; err != nil {
			return done, err
		}
	}
	return done, nil
}

func (f *file) read(op string, p []byte, read func() (int, error)) (int, error) {
	for {
		n, err := read()
		switch {
		case err == syscall.EINTR:
			continue
		case err != nil:
			return 0, &fs.PathError{Op: op, Path: f.name, Err: err}
		case n == 0 && len(p) > 0:
			return 0, io.EOF
		}
		return n, nil
	}
}

func (f *file) Close() error {
	fd := f.fd
	if f.fd = -1; fd < 0 {
		return &fs.PathError{Op: "close", Path: f.name, Err: fs.ErrClosed}
	}
	return syscall.Close(fd)
}
