package report

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/selfcage/selfcage/probe"
)

// LookAtHost reads what the kernel says of the host. Nothing is started.
func LookAtHost() Host {
	h := Host{Container: probe.Container(), LandlockABI: landlockABI()}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		h.Kernel, h.Machine = unix.ByteSliceToString(u.Release[:]), unix.ByteSliceToString(u.Machine[:])
	}
	h.UserNamespaces = sysctls{
		maximum:  sysctl("user/max_user_namespaces"),
		clone:    sysctl("kernel/unprivileged_userns_clone"),
		apparmor: sysctl("kernel/apparmor_restrict_unprivileged_userns"),
	}.userNamespaces(os.Geteuid() == 0)
	return h
}

func sysctl(name string) string {
	data, _ := os.ReadFile("/proc/sys/" + name)
	return strings.TrimSpace(string(data))
}

// landlockABI asks for the version (landlock_create_ruleset(2)): 0 where Landlock is not built in or not switched on,
// -1 where a filter answers in its place.
func landlockABI() int {
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	switch errno {
	case 0:
		return int(abi)
	case unix.ENOSYS, unix.EOPNOTSUPP:
		return 0
	}
	return -1
}
