package seccomp

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"golang.org/x/net/bpf"

	"github.com/selfcage/selfcage/internal/refusal"
)

const (
	auditI386  = 0x40000003
	auditAmd64 = 0xc000003e
	auditArm   = 0x40000028
	auditArm64 = 0xc00000b7
)

// call is a struct seccomp_data.
type call struct {
	arch uint32
	nr   uint32
	args [6]uint64
}

// packet is the call as the VM must see it: x/net/bpf loads big endian, as from a network, where the kernel loads its own
// order. So each 32-bit field is written big endian at the place where it has it on little endian.
func (c call) packet() []byte {
	p := make([]byte, 64)
	binary.BigEndian.PutUint32(p[0:], c.nr)
	binary.BigEndian.PutUint32(p[4:], c.arch)
	binary.BigEndian.PutUint64(p[8:], 0x5412_0000_5412) // the instruction pointer must not matter
	for i, a := range c.args {
		binary.BigEndian.PutUint32(p[16+8*i:], uint32(a))
		binary.BigEndian.PutUint32(p[20+8*i:], uint32(a>>32))
	}
	return p
}

func TestKeep(t *testing.T) {
	tests := []struct {
		goarch string
		name   string
		call   call
		want   uint32
	}{
		{"amd64", "read", call{arch: auditAmd64, nr: 0}, retAllow},
		{"amd64", "getpid", call{arch: auditAmd64, nr: 39}, retAllow},
		{"amd64", "openat", call{arch: auditAmd64, nr: 257}, retAllow},
		{"amd64", "clone3", call{arch: auditAmd64, nr: 435}, retErrno | enosys},
		{"amd64", "clone", call{arch: auditAmd64, nr: 56, args: [6]uint64{17}}, retAllow},
		{"amd64", "clone, a user namespace", call{arch: auditAmd64, nr: 56, args: [6]uint64{0x10000000 | 17}}, retAllow},
		{"amd64", "clone, a cgroup namespace", call{arch: auditAmd64, nr: 56, args: [6]uint64{0x02000000 | 0x10000000}}, retErrno | eperm},
		{"amd64", "unshare, a mount namespace", call{arch: auditAmd64, nr: 272, args: [6]uint64{0x00020000}}, retAllow},
		{"amd64", "unshare, a cgroup namespace", call{arch: auditAmd64, nr: 272, args: [6]uint64{1<<40 | 0x02000000}}, retErrno | eperm},
		{"amd64", "another call with that number", call{arch: auditAmd64, nr: 1, args: [6]uint64{0x02000000}}, retAllow},
		{"arm64", "clone, a cgroup namespace", call{arch: auditArm64, nr: 220, args: [6]uint64{0x02000000}}, retErrno | eperm},
		{"arm64", "clone", call{arch: auditArm64, nr: 220, args: [6]uint64{17}}, retAllow},
		{"arm64", "unshare, a cgroup namespace", call{arch: auditArm64, nr: 97, args: [6]uint64{0x02000000}}, retErrno | eperm},
		{"amd64", "io_uring_setup", call{arch: auditAmd64, nr: 425}, retAllow},
		{"amd64", "name_to_handle_at", call{arch: auditAmd64, nr: 303}, retAllow},
		{"amd64", "no such call", call{arch: auditAmd64, nr: 0x3fffffff}, retAllow},
		{"amd64", "a skipped call", call{arch: auditAmd64, nr: 0xffffffff}, retAllow},
		{"amd64", "x32 read", call{arch: auditAmd64, nr: 0x40000000}, retErrno | enosys},
		{"amd64", "x32 ioctl", call{arch: auditAmd64, nr: 0x40000000 | 514, args: [6]uint64{0, 0x5412}}, retErrno | enosys},
		{"amd64", "x32, highest", call{arch: auditAmd64, nr: 0xfffffffe}, retErrno | enosys},
		{"amd64", "i386 read", call{arch: auditI386, nr: 3}, retKill},
		{"amd64", "i386 ioctl", call{arch: auditI386, nr: 54, args: [6]uint64{0, 0x5412}}, retKill},
		{"amd64", "i386 with the number of getpid", call{arch: auditI386, nr: 39}, retKill},
		{"amd64", "arm64", call{arch: auditArm64, nr: 39}, retKill},
		{"amd64", "no architecture", call{nr: 39}, retKill},
		{"amd64", "add_key", call{arch: auditAmd64, nr: 248}, retErrno | enosys},
		{"amd64", "request_key", call{arch: auditAmd64, nr: 249}, retErrno | enosys},
		{"amd64", "keyctl", call{arch: auditAmd64, nr: 250}, retErrno | enosys},
		{"amd64", "open_by_handle_at", call{arch: auditAmd64, nr: 304}, retErrno | eperm},
		{"amd64", "TCGETS", call{arch: auditAmd64, nr: 16, args: [6]uint64{0, 0x5401}}, retAllow},
		{"amd64", "TIOCGWINSZ", call{arch: auditAmd64, nr: 16, args: [6]uint64{0, 0x5413}}, retAllow},
		{"amd64", "TIOCSTI", call{arch: auditAmd64, nr: 16, args: [6]uint64{0, 0x5412}}, retErrno | eperm},
		{"amd64", "TIOCSTI, high bit", call{arch: auditAmd64, nr: 16, args: [6]uint64{0, 1<<32 | 0x5412}}, retErrno | eperm},
		{"amd64", "TIOCSTI, all high", call{arch: auditAmd64, nr: 16, args: [6]uint64{0, 0xffffffff_00005412}}, retErrno | eperm},
		{"amd64", "TIOCSTI, negative", call{arch: auditAmd64, nr: 16, args: [6]uint64{0, 0x8000_0000_0000_5412}}, retErrno | eperm},
		{"amd64", "TIOCLINUX", call{arch: auditAmd64, nr: 16, args: [6]uint64{0, 0x541c}}, retErrno | eperm},
		{"amd64", "TIOCLINUX, high bit", call{arch: auditAmd64, nr: 16, args: [6]uint64{0, 1<<32 | 0x541c}}, retErrno | eperm},
		{"amd64", "0x5412 in the high half", call{arch: auditAmd64, nr: 16, args: [6]uint64{0, 0x5412 << 32}}, retAllow},
		{"amd64", "0x5412 in another argument", call{arch: auditAmd64, nr: 16, args: [6]uint64{0x5412, 0x5401, 0x5412}}, retAllow},
		{"amd64", "0x15412", call{arch: auditAmd64, nr: 16, args: [6]uint64{0, 0x15412}}, retAllow},
		{"amd64", "another call with 0x5412", call{arch: auditAmd64, nr: 1, args: [6]uint64{0, 0x5412}}, retAllow},
		{"amd64", "arm64's ioctl number", call{arch: auditAmd64, nr: 29, args: [6]uint64{0, 0x5412}}, retAllow},

		{"arm64", "read", call{arch: auditArm64, nr: 63}, retAllow},
		{"arm64", "getpid", call{arch: auditArm64, nr: 172}, retAllow},
		{"arm64", "openat", call{arch: auditArm64, nr: 56}, retAllow},
		{"arm64", "a skipped call", call{arch: auditArm64, nr: 0xffffffff}, retAllow},
		{"arm64", "no x32 here", call{arch: auditArm64, nr: 0x40000000}, retAllow},
		{"arm64", "32-bit arm", call{arch: auditArm, nr: 54, args: [6]uint64{0, 0x5412}}, retKill},
		{"arm64", "amd64", call{arch: auditAmd64, nr: 172}, retKill},
		{"arm64", "add_key", call{arch: auditArm64, nr: 217}, retErrno | enosys},
		{"arm64", "request_key", call{arch: auditArm64, nr: 218}, retErrno | enosys},
		{"arm64", "keyctl", call{arch: auditArm64, nr: 219}, retErrno | enosys},
		{"arm64", "open_by_handle_at", call{arch: auditArm64, nr: 265}, retErrno | eperm},
		{"arm64", "TCGETS", call{arch: auditArm64, nr: 29, args: [6]uint64{0, 0x5401}}, retAllow},
		{"arm64", "TIOCSTI", call{arch: auditArm64, nr: 29, args: [6]uint64{0, 0x5412}}, retErrno | eperm},
		{"arm64", "TIOCSTI, high bit", call{arch: auditArm64, nr: 29, args: [6]uint64{0, 1<<32 | 0x5412}}, retErrno | eperm},
		{"arm64", "TIOCLINUX", call{arch: auditArm64, nr: 29, args: [6]uint64{0, 0x541c}}, retErrno | eperm},
		{"arm64", "amd64's ioctl number", call{arch: auditArm64, nr: 16, args: [6]uint64{0, 0x5412}}, retAllow},
	}
	for _, tt := range tests {
		t.Run(tt.goarch+"/"+tt.name, func(t *testing.T) {
			if got := interpret(t, tt.goarch, tt.call); got != tt.want {
				t.Errorf("got %#x, want %#x", got, tt.want)
			}
		})
	}
}

// Every number and every architecture bit: nothing but the calls on the list is refused, and nothing foreign gets through.
func TestKeepEveryNumber(t *testing.T) {
	for _, goarch := range []string{"amd64", "arm64"} {
		a, _ := archOf(goarch)
		vm := newVM(t, goarch)
		for nr := uint32(0); nr < 1024; nr++ {
			want := uint32(retAllow)
			switch nr {
			case a.addKey, a.requestKey, a.keyctl, a.clone3:
				want = retErrno | enosys
			case a.openByHandleAt:
				want = retErrno | eperm
			}
			if got := run(t, vm, call{arch: a.audit, nr: nr}); got != want {
				t.Errorf("%s: call %d: got %#x, want %#x", goarch, nr, got, want)
			}
		}
		for bit := range 32 {
			if got := run(t, vm, call{arch: a.audit ^ 1<<bit, nr: 39}); got != retKill {
				t.Errorf("%s: architecture bit %d flipped: got %#x, want the process killed", goarch, bit, got)
			}
		}
	}
}

// What the kernel asks of a program in seccomp_check_filter and bpf_check_classic, and what its bitmap of allowed calls can
// follow (seccomp_is_const_allow): loads of aligned words, jumps on equal and greater-or-equal, returns.
func TestForm(t *testing.T) {
	for _, goarch := range []string{"amd64", "arm64"} {
		b, err := Filter(Keep, goarch)
		if err != nil {
			t.Fatal(err)
		}
		if len(b)%8 != 0 || len(b) > 32*8 {
			t.Errorf("%s: %d bytes; want a multiple of 8 and a short program", goarch, len(b))
		}
		for i := 0; i < len(b); i += 8 {
			op, k := binary.LittleEndian.Uint16(b[i:]), binary.LittleEndian.Uint32(b[i+4:])
			switch op {
			case 0x20: // BPF_LD|BPF_W|BPF_ABS
				if k%4 != 0 || k >= 64 {
					t.Errorf("%s: instruction %d loads at %d", goarch, i/8, k)
				}
			case 0x15, 0x35, 0x45, 0x06: // BPF_JMP|BPF_JEQ, BPF_JGE, BPF_JSET, BPF_RET|BPF_K
			default:
				t.Errorf("%s: instruction %d has code %#x", goarch, i/8, op)
			}
		}
		again, _ := Filter(Keep, goarch)
		if string(again) != string(b) {
			t.Errorf("%s: not the same bytes twice", goarch)
		}
	}
}

func TestFilterRefuses(t *testing.T) {
	tests := []struct {
		p      Profile
		goarch string
		want   string
	}{
		{Keep, "386", "386"},
		{Keep, "riscv64", "riscv64"},
		{Keep, "", "numbers are not known"},
		{Keep, "AMD64", "AMD64"},
		{0, "amd64", "profile 0, no such profile"},
		{Keep + 1, "arm64", "profile 2, no such profile"},
	}
	for _, tt := range tests {
		b, err := Filter(tt.p, tt.goarch)
		var refused *refusal.Error
		if !errors.As(err, &refused) || b != nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Filter(%v, %q) = %d bytes, %v; want a refusal with %q", tt.p, tt.goarch, len(b), err, tt.want)
		}
	}
	if got := Keep.String(); got != "keep" {
		t.Errorf("Keep is called %q", got)
	}
}

func interpret(t *testing.T, goarch string, c call) uint32 {
	t.Helper()
	return run(t, newVM(t, goarch), c)
}

// newVM interprets the bytes that Filter returns, not what they were made from.
func newVM(t *testing.T, goarch string) *bpf.VM {
	t.Helper()
	b, err := Filter(Keep, goarch)
	if err != nil {
		t.Fatal(err)
	}
	var raw []bpf.RawInstruction
	for i := 0; i < len(b); i += 8 {
		raw = append(raw, bpf.RawInstruction{Op: binary.LittleEndian.Uint16(b[i:]), Jt: b[i+2], Jf: b[i+3],
			K: binary.LittleEndian.Uint32(b[i+4:])})
	}
	program, ok := bpf.Disassemble(raw)
	if !ok {
		t.Fatal("the program has instructions that x/net/bpf does not know")
	}
	vm, err := bpf.NewVM(program)
	if err != nil {
		t.Fatal(err)
	}
	return vm
}

func run(t *testing.T, vm *bpf.VM, c call) uint32 {
	t.Helper()
	got, err := vm.Run(c.packet())
	if err != nil {
		t.Fatal(err)
	}
	return uint32(got)
}
