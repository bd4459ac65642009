package seccomp

// arch is what a filter must know of an architecture: its AUDIT_ARCH word from linux/audit.h, and its system call numbers.
type arch struct {
	audit uint32
	x32   bool // the architecture word has a second ABI behind it

	ioctl          uint32
	addKey         uint32
	requestKey     uint32
	keyctl         uint32
	openByHandleAt uint32
	clone          uint32
	clone3         uint32
	unshare        uint32
}

// archOf returns the numbers of a GOARCH. They are those of arch/x86/entry/syscalls/syscall_64.tbl and
// include/uapi/asm-generic/unistd.h in Linux, compared with golang.org/x/sys/unix v0.30.0.
func archOf(goarch string) (arch, bool) {
	switch goarch {
	case "amd64":
		return arch{audit: 0xc000003e, x32: true,
			ioctl: 16, addKey: 248, requestKey: 249, keyctl: 250, openByHandleAt: 304, clone: 56, clone3: 435, unshare: 272}, true
	case "arm64":
		return arch{audit: 0xc00000b7,
			ioctl: 29, addKey: 217, requestKey: 218, keyctl: 219, openByHandleAt: 265, clone: 220, clone3: 435, unshare: 97}, true
	}
	return arch{}, false
}
