// Package plan makes the complete cage as one value: every mount, variable and descriptor with the reason for it.
//
// Build is a function of what was asked (Request) and what the host is (Facts). It has no clock, no environment and
// no file system but the fs.FS in Facts: the same input gives the same plan to the byte. Argv, Explain and the JSON
// form are functions of the plan alone.
package plan

import (
	"io/fs"

	"github.com/selfcage/selfcage/binds"
	"github.com/selfcage/selfcage/env"
	"github.com/selfcage/selfcage/policy"
)

// Places inside every cage.
const (
	Home       = "/run/selfcage/home"      // not below /home: a tmpfs there would hide an interpreter that lives in the real one
	File       = "/run/selfcage/plan.json" // a mount of its own: its being there proves to a process that it is inside
	GrantsFile = "/run/selfcage/grants"    // what a nested request is compared with
	Tmp        = "/tmp"                    // short, since a Unix socket's path has 108 bytes
)

// Grant is one path of the host that was asked for.
type Grant struct {
	Path   string     // absolute, or relative to Facts.Dir; as it was spelled
	Access binds.Kind // ReadOnly, ReadWrite or Device; means nothing in Request.Hide and Request.Protect
	By     string     // "--write", "SANDBOX_READABLE"
}

// Cache is a tool's own cache that was asked for, by the tool's name.
type Cache struct{ Name, By string }

// Missing is a part of such a cache that is to be made on the host before the start, empty and for the caller alone.
type Missing struct {
	Path   string // without links
	IsDir  bool   // with the directories above it; otherwise a file
	Data   string // content of the file
	Reason binds.Reason
}

// Request is what was asked for.
type Request struct {
	Name    string // of the host program, for messages
	Prefix  string // of its variables, "SANDBOX_"
	Grants  []Grant
	Caches  []Cache
	NoNet   bool
	Allow   []string // names of variables to let through although they would be dropped
	Secret  []string // names of secrets to let through
	Rewrite []Var    // variables that get another value inside, since their paths were relative
	Filter  []byte   // seccomp program, as struct sock_filter[]
	Runs    string   // a command that the program executes inside: it must be the one it would be outside

	Mode     string            // how it was asked to be confined, for nested requests and reports
	Clean    bool              // the environment starts from nothing (env.Rules.Clean)
	SmallSys bool              // only the part of /sys that runtimes need, not all of it
	Hide     []Grant           // not visible, whatever is granted
	Protect  []Grant           // read-only inside a writable grant
	Confined []policy.Confined // grants that must not lead out of a directory
	TmpSize  int64             // of the private /tmp in bytes; 0 is the kernel's default
	Policies []string          // the policy files in force, absolute, for nested requests
}

// Facts is what Build may know of the host and of this start.
type Facts struct {
	Host     fs.FS    // the host's root directory; must have Lstat and ReadLink
	Args     []string // the command line; Args[0] as the caller spelled it
	Operands int      // index in Args from which on words are the program's own, for notes about paths
	Env      []string
	Dir      string // working directory without links; "" when it is gone
	Exe      Exe
	UID, GID int
	Outside  []Namespace // the caller's own namespaces: Word is what /proc/self/ns says
}

// Exe is the running executable.
type Exe struct {
	Path   string // where it lies, or lay
	Intact bool   // the file at Path is the one that runs
	Data   []byte // its content, when not Intact
}

// Var is one variable of the environment inside.
type Var struct {
	Name, Value string
	Reason      binds.Reason
}

// FD is a descriptor above 2 that stays open, under its number.
type FD struct {
	N      int
	Reason binds.Reason
}

// Omission is something that was left out, and why.
type Omission struct{ What, Why string }

// Attempt is something that must fail inside, and that would work, or find something, outside.
type Attempt struct {
	Op     string // "open" for the path Object by any means, "write" in the directory Object, "connect" to the address Object
	Object string
	Why    string
}

// Same is a program that was looked up outside: inside, the first of Paths that is an executable file must be the file ID.
type Same struct {
	Paths []string
	ID    binds.ID
}

// Namespaces says what is shared with the host; the zero value is the strictest. The user, mount, pid, ipc and uts
// namespaces are always the cage's own.
type Namespaces struct {
	ShareNet    bool
	ShareCgroup bool
}

// Plan is a complete cage.
type Plan struct {
	Name       string
	Mounts     []binds.Mount // in the order in which they are made
	Env        []Var         // the whole environment, sorted by name
	Dropped    []env.Dropped // variables that were left out
	Namespaces Namespaces
	Outside    []Namespace // the namespaces outside, by which a process inside can tell that it has its own
	FDs        []FD
	Filter     []byte    // seccomp program
	Dir        string    // working directory inside, as the caller spells it
	Command    string    // what is executed: argv[0] where that finds the program inside, else its path
	Executes   string    // the command that the program is there to execute, if that is all it does
	Program    binds.ID  // the file that runs, where it is not a copy
	Same       []Same    // programs that must be the same inside
	Args       []string  // the command line, Args[0] as the caller spelled it
	Create     []Missing // what must be there before the cage can be made as it is planned
	Remove     []Missing // likewise, and is removed again when the cage has ended: see Placeholder
	Mode       string    // how it was asked to be confined
	Clean      bool      // the environment starts from nothing
	Policies   []string  // the policy files in force
	Checkouts  []string  // roots of checkouts whose git directory the run can write, sorted
	Attempts   []Attempt // what a process inside must fail at
	Omitted    []Omission
	Notes      []string // for standard error, unless quiet
}
