package report

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/selfcage/selfcage/plan"
)

// observe reads what /proc says of a process, and compares its namespaces with those outside.
func observe(pid string, outside []plan.Namespace) (o Observed) {
	dir := "/proc/" + pid
	buf := make([]byte, 0, 16<<10)
	if data, ok := readProc(dir+"/status", buf); ok {
		o.Status = ParseStatus(data)
	}
	if data, ok := readProc(dir+"/mountinfo", buf); ok {
		o.Mounts = ParseMountInfo(data)
	}
	if pid == self {
		o.Late = true // whoever started this process may have given it more
	} else if data, ok := readProc(dir+"/environ", buf); ok {
		o.Names = parseNames(data)
	}
	o.Namespaces = make(map[string]string, len(plan.NamespaceFiles))
	for _, n := range plan.NamespaceFiles {
		its, err := os.Readlink(dir + "/ns/" + n.Word)
		for _, out := range outside {
			switch {
			case err != nil || out.Name != n.Name:
			case its == out.Word:
				o.Namespaces[n.Name] = "shared"
			default:
				o.Namespaces[n.Name] = "own"
			}
		}
	}
	return o
}

// readProc reads a file of /proc. os.ReadFile asks in small pieces, and the kernel makes all of a file for each.
func readProc(p string, buf []byte) (data string, ok bool) {
	fd, err := unix.Open(p, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", false
	}
	defer unix.Close(fd)
	for {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := unix.Read(fd, buf[len(buf):cap(buf)])
		switch {
		case err == unix.EINTR:
		case err != nil:
			return "", false
		case n == 0:
			return string(buf), true
		default:
			buf = buf[:len(buf)+n]
		}
	}
}

// closedDescriptors lists what this process inherited above 2 and the plan does not keep. What Go opens itself is
// closed on exec and does not count.
func closedDescriptors(p *plan.Plan) (fds []int) {
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil
	}
next:
	for _, n := range names {
		fd, err := strconv.Atoi(n.Name())
		if err != nil || fd <= 2 {
			continue
		}
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if err != nil || flags&unix.FD_CLOEXEC != 0 {
			continue
		}
		for _, kept := range p.FDs {
			if kept.N == fd {
				continue next
			}
		}
		fds = append(fds, fd)
	}
	return fds
}
