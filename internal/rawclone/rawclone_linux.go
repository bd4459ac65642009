//go:build linux && (amd64 || arm64)

package rawclone

import (
	"runtime"
	"syscall"
	"unsafe"
)

// Supported says whether this build has the package's functions.
const Supported = true

// sigaction is the kernel's struct sigaction on 64-bit architectures with SA_RESTORER.
type sigaction struct{ handler, flags, restorer, mask uintptr }

// The two dispositions that need no handler.
const (
	sigDefault = 0
	sigIgnore  = 1
)

const sigsetSize = 8

// Disposition says how a signal is handled now.
func Disposition(sig int) (ignored, handled bool) {
	var sa sigaction
	syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(sig), 0, uintptr(unsafe.Pointer(&sa)), sigsetSize, 0, 0)
	return sa.handler == sigIgnore, sa.handler > sigIgnore
}

// Default gives a signal its default action, whatever the Go runtime believes.
func Default(sig int) { setAction(sig, &sigaction{handler: sigDefault}) }

func setAction(sig int, sa *sigaction) {
	syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(sa)), 0, sigsetSize, 0, 0)
}

// Ignore makes a signal be ignored, which survives an exec.
func Ignore(sig int) { setAction(sig, &sigaction{handler: sigIgnore}) }

// SetMask sets the calling thread's signal mask (bit n-1 is signal n) and returns the one before. The caller must be
// locked to its thread.
func SetMask(mask uint64) (old uint64) {
	const setmask = 2
	syscall.RawSyscall6(syscall.SYS_RT_SIGPROCMASK, setmask, uintptr(unsafe.Pointer(&mask)), uintptr(unsafe.Pointer(&old)), sigsetSize, 0, 0)
	return old
}

// Stacks of the two children. Globals, since they must neither move nor be freed while a child lives. The children
// call nothing, so that a page is plenty.
var witnessStack, execStack [4096]byte

func top(stack *[4096]byte) uintptr { return (uintptr(unsafe.Pointer(stack)) + 4096) &^ 15 }

// What the witness reads and writes while it lives.
var (
	witnessSet  = ^uint64(0)
	witnessInfo [16]uint64 // siginfo_t
)

// Signal is what is known of a signal that came: the beginning of its siginfo_t. The same signal of the same sender to
// a whole group is the same to each member.
type Signal struct {
	Number int32
	errno  int32
	Code   int32 // how it was sent
	_      int32
	Sender int32 // process id, where a process sent it
}

// A mark is a signal that only we send: its number is the last one that the kernel takes from a queue, so that a
// witness who writes it has written all signals that it got before.
var mark = Signal{Number: 64, errno: 0x53434147, Code: -1} // SI_QUEUE; the errno is 0 in everybody else's

// Witness starts a child that writes a Signal for each signal it gets to descriptor w, as long as the calling thread
// lives. It keeps no other descriptor. At most one may exist. The caller must be locked to its thread.
func Witness(w int) (pid int, err error) {
	old := SetMask(^uint64(0))
	r := cloneWitness(top(&witnessStack), uintptr(unsafe.Pointer(&witnessSet)), uintptr(unsafe.Pointer(&witnessInfo)), uintptr(w), uintptr(syscall.Getpid()))
	SetMask(old)
	return result(r)
}

// Mark makes the witness write a mark, after all signals that it got before.
func Mark(witness int) error {
	info := [7]Signal{mark} // a siginfo_t has 128 bytes
	_, _, errno := syscall.RawSyscall(syscall.SYS_RT_SIGQUEUEINFO, uintptr(witness), uintptr(mark.Number), uintptr(unsafe.Pointer(&info)))
	if errno != 0 {
		return errno
	}
	return nil
}

// Mark reports whether what the witness wrote is a mark.
func (s Signal) Mark() bool { return s == mark }

// Read empties a pipe that the witness or the handler of Catch writes to; r must not block. open is false when no
// writer is left.
func Read(r int) (sigs []Signal, open bool) {
	var buf [64]Signal
	for {
		n, err := syscall.Read(r, unsafe.Slice((*byte)(unsafe.Pointer(&buf)), unsafe.Sizeof(buf)))
		if err == syscall.EINTR {
			continue
		}
		if n <= 0 {
			return sigs, err == syscall.EAGAIN
		}
		sigs = append(sigs, buf[:n/int(unsafe.Sizeof(mark))]...)
		if n < int(unsafe.Sizeof(buf)) {
			return sigs, true
		}
	}
}

// execArgs is what the child of Exec reads. The assembly knows its layout.
type execArgs struct {
	ignore, dfl       *uintptr // signals to ignore and to set to default, ended by 0
	ignoreAct, dflAct *sigaction
	mask              *uint64
	path              *byte
	argv, envv        **byte
	errno             uintptr // set by a child whose exec failed
}

// Exec starts path as a child that ignores the signals in ignore from its first instruction. All other signals have
// their default action or, where they are ignored in the caller, stay ignored. Descriptors without close-on-exec are
// inherited. It returns once the child has executed path or failed to.
func Exec(path string, argv, envv []string, ignore []int) (pid int, err error) {
	p, err := syscall.BytePtrFromString(path)
	if err != nil {
		return 0, err
	}
	av, err := syscall.SlicePtrFromStrings(argv)
	if err != nil {
		return 0, err
	}
	ev, err := syscall.SlicePtrFromStrings(envv)
	if err != nil {
		return 0, err
	}
	ign, dfl := dispositions(ignore)
	mask := ^uint64(0)
	a := &execArgs{&ign[0], &dfl[0], &sigaction{handler: sigIgnore}, &sigaction{}, &mask, p, &av[0], &ev[0], 0}
	syscall.ForkLock.Lock()
	mask = SetMask(^uint64(0))
	r := vforkExec(top(&execStack), uintptr(unsafe.Pointer(a)))
	SetMask(mask)
	syscall.ForkLock.Unlock()
	runtime.KeepAlive(a)
	pid, err = result(r)
	if err == nil && a.errno != 0 {
		for {
			if _, e := syscall.Wait4(pid, nil, 0, nil); e != syscall.EINTR {
				break
			}
		}
		return 0, syscall.Errno(-a.errno)
	}
	return pid, err
}

// dispositions returns the two lists of execArgs. Handlers must not survive into the child's instructions before its
// exec, since they are Go code.
func dispositions(ignore []int) (ign, dfl []uintptr) {
	var skip uint64
	for _, s := range ignore {
		ign = append(ign, uintptr(s))
		skip |= 1 << (s - 1)
	}
	for s := 1; s <= 64; s++ {
		if _, handled := Disposition(s); handled && skip>>(s-1)&1 == 0 {
			dfl = append(dfl, uintptr(s))
		}
	}
	return append(ign, 0), append(dfl, 0)
}

func result(r uintptr) (int, error) {
	if e := -int(r); e > 0 && e < 4096 {
		return 0, syscall.Errno(e)
	}
	return int(r), nil
}

var catchFD int32

// Catch makes a Signal be written to descriptor fd for each of sigs that comes, from now on and in place of whatever the Go runtime did with it. fd must be the same in every call, and not block.
func Catch(fd int, sigs ...int) {
	const siginfo, onstack, restart = 0x4, 0x08000000, 0x10000000
	catchFD = int32(fd)
	handler, restorer := handlerPCs()
	sa := &sigaction{handler: handler, flags: siginfo | onstack | restart, mask: ^uintptr(0)}
	if restorer != 0 {
		const haveRestorer = 0x04000000
		sa.flags |= haveRestorer
		sa.restorer = restorer
	}
	for _, s := range sigs {
		setAction(s, sa)
	}
}

// In assembly.

func cloneWitness(stack, set, info, w, ppid uintptr) (pid uintptr)
func vforkExec(stack, args uintptr) (pid uintptr)
func handlerPCs() (handler, restorer uintptr)
