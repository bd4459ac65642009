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
	if data, err := os.ReadFile(dir + "/status"); err == nil {
		o.Status = ParseStatus(string(data))
	}
	if data, err := os.ReadFile(dir + "/mountinfo"); err == nil {
		o.Mounts = ParseMountInfo(string(data))
	}
	o.Namespaces = make(map[string]string)
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
