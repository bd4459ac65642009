package report

import (
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/selfcage/selfcage/plan"
)

// Try attempts what must fail, and changes nothing where it does not: a file is looked up and not read, what is made in
// a directory has no name and is gone at once, and nothing is sent.
func Try(as []plan.Attempt) []Tried {
	ts := make([]Tried, 0, len(as))
	for _, a := range as {
		err := attempt(a)
		for err == unix.EINTR {
			err = attempt(a)
		}
		ts = append(ts, result(a, howOf(err)))
	}
	return ts
}

func attempt(a plan.Attempt) error {
	switch a.Op {
	case "open":
		return opens(a.Object, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC)
	case "write":
		return opens(a.Object, unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC)
	case "connect":
		return connects(a.Object)
	}
	return unix.EINVAL
}

func opens(p string, flags int) error {
	fd, err := unix.Open(p, flags, 0o600)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// connects asks for a route only: connect(2) of a datagram socket sends nothing.
func connects(address string) error {
	to, ok := parseIPv4(address)
	if !ok {
		return unix.EINVAL
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Connect(fd, &unix.SockaddrInet4{Port: to.port, Addr: to.addr})
}

// howOf names the errors that prove something. The others are numbers: x/sys's table of names is 9 KB in every program.
func howOf(err error) string {
	switch err {
	case nil:
		return Worked
	case unix.EACCES:
		return "EACCES"
	case unix.EPERM:
		return "EPERM"
	case unix.ENOENT:
		return "ENOENT"
	case unix.ENOTDIR:
		return "ENOTDIR"
	case unix.EROFS:
		return "EROFS"
	case unix.ENETUNREACH:
		return "ENETUNREACH"
	case unix.EHOSTUNREACH:
		return "EHOSTUNREACH"
	case unix.ENETDOWN:
		return "ENETDOWN"
	case unix.EAFNOSUPPORT:
		return "EAFNOSUPPORT"
	case unix.EOPNOTSUPP:
		return "EOPNOTSUPP"
	case unix.ELOOP:
		return "ELOOP"
	}
	if errno, ok := err.(unix.Errno); ok {
		return "E" + strconv.Itoa(int(errno))
	}
	return "E0"
}
