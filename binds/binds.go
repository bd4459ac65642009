// Package binds is the vocabulary of a cage's file system: mounts with the reason for each, and the one order in
// which they can be made without hiding one another.
//
// Everything here is pure: no file is looked at and nothing is mounted.
package binds

import "io/fs"

// Kind says what a mount is.
type Kind uint8

// The kinds of mounts. Symlink, Dir and File are made in the mount that holds them, all others are mounts of their own.
const (
	ReadOnly  Kind = iota + 1 // bind of Source, recursive, read-only
	ReadWrite                 // bind of Source, recursive, writable
	Device                    // bind of one device node, which opens (a plain bind is nodev)
	Tmpfs                     // fresh tmpfs of Size bytes with mode Perm
	Proc                      // fresh procfs
	Dev                       // fresh /dev with the standard nodes and pts
	Dir                       // directory with mode Perm
	Symlink                   // symbolic link, Source is its text
	File                      // a copy of Data with mode Perm
	Sealed                    // a copy of Data that is a read-only mount of its own
	RemountRO                 // the mount at Target becomes read-only, what is mounted below it does not
)

var kindNames = [...]string{"unknown", "ro", "rw", "device", "tmpfs", "proc", "dev", "dir", "link", "file", "sealed", "remount-ro"}

// String is the word that explain and JSON use.
func (k Kind) String() string {
	if int(k) >= len(kindNames) {
		k = 0
	}
	return kindNames[k]
}

// ParseKind is the inverse of Kind.String.
func ParseKind(s string) (Kind, bool) {
	for i, n := range kindNames {
		if i > 0 && n == s {
			return Kind(i), true
		}
	}
	return 0, false
}

// Bind says whether the mount shows files of the host.
func (k Kind) Bind() bool { return k == ReadOnly || k == ReadWrite || k == Device }

// Mounts says whether making it is a mount(2): Symlink, Dir and File only write into the mount that holds them.
func (k Kind) Mounts() bool { return k != Symlink && k != Dir && k != File }

// Reason says who asked for something and what breaks without it.
type Reason struct {
	By  string // the rule that asked: "base", "program", "--write", "SANDBOX_READABLE"
	Why string // what it is for, or what breaks without it
}

// Mount is one operation on the file system of the cage.
type Mount struct {
	Kind   Kind
	Source string      // path on the host; for Symlink the link's text; for File what it is a copy of, if anything
	Target string      // absolute clean path inside
	Data   []byte      // File, Sealed
	Perm   fs.FileMode // Dir, File, Sealed, Tmpfs
	Size   int64       // Tmpfs: bytes; 0 is the kernel's default, half of the memory
	Own    bool        // a bind that is made although its parent gives the same: a mount point cannot be renamed or replaced
	Reason Reason
	ID     ID // of a bind's Source when the plan was made, where it is known
}

// ID tells one file of a host from all others. The zero ID is not known.
type ID struct{ Dev, Ino uint64 }
