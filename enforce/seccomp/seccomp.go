// Package seccomp makes the system call filter of a cage, in the form that the kernel and bubblewrap's --seccomp read.
//
// The filter is put together here and not by a library: go-seccomp-bpf compares 64 bits of an argument of which the kernel
// uses 32, so TIOCSTI|1<<32 passes (CVE-2019-10063 was that in Flatpak), and lets a foreign architecture through;
// libseccomp needs cgo; golang.org/x/net/bpf, by which the tests check every instruction, brings fmt into each host program.
//
// # Limitations
//
// A filter sees numbers, not what a pointer points to. It cannot tell paths, and it can be no stronger than its list: what
// is not named here is allowed.
//
// The package is pure, the same on every system; nothing is loaded here.
package seccomp

import (
	"strconv"

	"github.com/selfcage/selfcage/internal/refusal"
)

// Profile says what a filter refuses.
type Profile uint8

// Keep changes no result of an ordinary program. It stops what would leave the cage by way of the terminal (TIOCSTI,
// TIOCLINUX), of the kernel's keyrings, of a file handle or of a new cgroup namespace, and the two doors around a filter by number: calls of another
// architecture and of the x32 ABI.
const Keep Profile = 1

func (p Profile) String() string {
	if p == Keep {
		return "keep"
	}
	return "profile " + strconv.Itoa(int(p))
}

// Filter returns the program of a profile for an architecture (a GOARCH): the bytes of struct sock_filter[] from
// linux/filter.h. The same arguments give the same bytes.
//
// Any profile or architecture that is not known is a *refusal.Error, never an empty filter.
func Filter(p Profile, goarch string) ([]byte, error) {
	a, ok := archOf(goarch)
	if !ok {
		return nil, &refusal.Error{What: "cannot make the system call filter", Object: goarch,
			Cause: "its system call numbers are not known, only those of amd64 and arm64"}
	}
	if p != Keep {
		return nil, &refusal.Error{What: "cannot make the system call filter", Object: p.String(), Cause: "no such profile"}
	}
	return keep(a).bytes(), nil
}

// bytes turns instructions into the kernel's form. Both architectures are little endian.
func (p program) bytes() []byte {
	out := make([]byte, 0, 8*len(p))
	for _, ins := range p {
		op, k := ins.op, ins.k
		out = append(out, byte(op), byte(op>>8), ins.jt, ins.jf, byte(k), byte(k>>8), byte(k>>16), byte(k>>24))
	}
	return out
}
