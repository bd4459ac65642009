package seccomp

// What a filter returns, from linux/seccomp.h. An errno is or-ed to retErrno.
const (
	retKill  = 0x80000000 // SECCOMP_RET_KILL_PROCESS
	retErrno = 0x00050000 // SECCOMP_RET_ERRNO
	retAllow = 0x7fff0000 // SECCOMP_RET_ALLOW

	eperm  = 1
	enosys = 38
)

// Offsets in struct seccomp_data, from linux/seccomp.h. An argument has 64 bits, its low half first on little endian.
const (
	offNr      = 0
	offArch    = 4
	offArg0Low = 16
	offArg1Low = 16 + 1*8
)

// Requests of ioctl, from asm-generic/ioctls.h.
const (
	tiocsti   = 0x5412 // pushes input into the terminal: the shell outside runs it when we have ended
	tioclinux = 0x541c // the same on a Linux console, by selecting and pasting (CVE-2023-28100, Flatpak)
)

// cloneNewCgroup is CLONE_NEWCGROUP of linux/sched.h.
const cloneNewCgroup = 0x02000000

// x32: the bit that marks calls of amd64's x32 ABI, __X32_SYSCALL_BIT in asm/unistd.h. The architecture word is amd64's own.
const x32Bit = 0x40000000

// keep is the program of the Keep profile.
//
// Numbers are compared before arguments are read: what is decided by number and architecture alone, which is every call but
// ioctl, the kernel decides once and remembers in a bitmap (since 5.11), so it costs nothing afterwards.
func keep(a arch) program {
	p := program{load(offArch)}
	// A 32-bit program has other numbers for all this. There is no errno for it to fall back on: it cannot run.
	p.returnUnless(equal, a.audit, retKill)

	p = append(p, load(offNr))
	if a.x32 {
		// -1 is what a tracer sets to skip a call whose result it has put in place already; an errno would replace that.
		p.returnIf(equal, ^uint32(0), retAllow)
		p.returnIf(atLeast, x32Bit, retErrno|enosys) // as a kernel without x32 does
	}
	// The session keyring is the one of the shell outside, with what is in it (Kerberos tickets, file system keys), and a
	// user namespace does not take it away. ENOSYS is what a kernel without CONFIG_KEYS says, so whoever uses keyrings has a
	// way on without them: runc goes on after an ENOSYS and stops at an EPERM.
	p.returnIf(equal, a.addKey, retErrno|enosys)
	p.returnIf(equal, a.requestKey, retErrno|enosys)
	p.returnIf(equal, a.keyctl, retErrno|enosys)
	// Opens any inode of a mounted file system by its number, hidden or not ("shocker"). EPERM is what everybody without
	// CAP_DAC_READ_SEARCH gets.
	p.returnIf(equal, a.openByHandleAt, retErrno|eperm)
	// clone3 hides its flags behind a pointer. ENOSYS is what kernels before 5.3 say, and every C library then uses clone.
	p.returnIf(equal, a.clone3, retErrno|enosys)
	p.skipUnless(a.clone, a.unshare, 4)
	// The host's control groups would be writable through a cgroup namespace in a user namespace of the program's own:
	// mounted afresh, cgroup.kill ends processes outside. A read-only /sys does not stop that.
	p.returnIfSet(offArg0Low, cloneNewCgroup, retErrno|eperm)
	p = append(p, instruction{op: ret, k: retAllow})
	p.returnUnless(equal, a.ioctl, retAllow)

	// Only the low half: the request is an unsigned int, and the kernel drops the rest.
	p = append(p, load(offArg1Low))
	p.returnIf(equal, tiocsti, retErrno|eperm)
	p.returnIf(equal, tioclinux, retErrno|eperm)
	return append(p, instruction{op: ret, k: retAllow})
}

// program grows by conditions that return at once. So each jump is over the one instruction after it, and no offset has to be
// counted.
type program []instruction

// instruction is struct sock_filter of linux/filter.h.
type instruction struct {
	op     uint16
	jt, jf uint8 // how many instructions to skip when the condition holds, and when not
	k      uint32
}

// The operations that are needed, from linux/bpf_common.h.
const (
	loadWord = 0x20 // BPF_LD | BPF_W | BPF_ABS
	equal    = 0x15 // BPF_JMP | BPF_JEQ | BPF_K
	atLeast  = 0x35 // BPF_JMP | BPF_JGE | BPF_K
	anySet   = 0x45 // BPF_JMP | BPF_JSET | BPF_K
	ret      = 0x06 // BPF_RET | BPF_K
)

func load(offset uint32) instruction { return instruction{op: loadWord, k: offset} }

// skipUnless jumps over the next n instructions unless the number is one of two.
func (p *program) skipUnless(one, other uint32, n uint8) {
	*p = append(*p, instruction{op: equal, jt: 1, k: one}, instruction{op: equal, jf: n, k: other})
}

// returnIfSet loads a word and returns if one of the bits is set in it.
func (p *program) returnIfSet(offset, bits, result uint32) {
	*p = append(*p, load(offset), instruction{op: anySet, jf: 1, k: bits}, instruction{op: ret, k: result})
}

func (p *program) returnIf(cond uint16, val, result uint32) {
	*p = append(*p, instruction{op: cond, jf: 1, k: val}, instruction{op: ret, k: result})
}

func (p *program) returnUnless(cond uint16, val, result uint32) {
	*p = append(*p, instruction{op: cond, jt: 1, k: val}, instruction{op: ret, k: result})
}
