//go:build unix

package hostfs

import (
	"io/fs"
	"syscall"
)

// ReadFile returns the content of the named file. It goes around package os, whose files each start the runtime's
// network poller: a start reads some twenty small ones, and those system calls would be most of it.
func (OS) ReadFile(name string) ([]byte, error) {
	fail := func(op string, err error) ([]byte, error) {
		return nil, &fs.PathError{Op: op, Path: abs(name), Err: err}
	}
	fd, err := open(abs(name))
	if err != nil {
		return fail("open", err)
	}
	defer syscall.Close(fd)
	var buf []byte
	for {
		if len(buf) == cap(buf) {
			buf = append(buf, make([]byte, max(4096, len(buf)))...)[:len(buf)]
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

func open(name string) (fd int, err error) {
	for {
		fd, err = syscall.Open(name, syscall.O_RDONLY|syscall.O_CLOEXEC|syscall.O_NONBLOCK, 0)
		if err != syscall.EINTR {
			return fd, err
		}
	}
}
