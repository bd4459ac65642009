// Package refusal holds the one shape that every refusal of ours has: what was refused, the object, the cause and the
// narrowest remedy, with the exit status that goes with it.
package refusal

import (
	"errors"
	"io/fs"
	"strings"
)

// Exit statuses of our own, the same as env(1), nohup(1) and timeout(1) use.
const (
	CannotCage    = 125 // the cage could not be made, or the request is wrong
	CannotExecute = 126 // the command was found and cannot be executed
	NotFound      = 127 // the command was not found
)

// Error is a refusal. It prints as one line "what, object, cause"; empty parts are left out.
type Error struct {
	What   string // what was refused: "cannot make the cage"
	Object string // what it is about: a path, a variable, a flag; already quoted where needed
	Cause  string // why
	Hint   string // the narrowest remedy, printed on a line of its own
	Status int    // exit status; 0 means CannotCage
	Err    error  // the underlying error, for errors.Is and errors.As; not printed
}

func (e *Error) Error() string {
	parts := make([]string, 0, 3)
	for _, s := range []string{e.What, e.Object, e.Cause} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, ", ")
}

func (e *Error) Unwrap() error { return e.Err }

// ExitStatus is the status that the process ends with.
func (e *Error) ExitStatus() int {
	if e.Status == 0 {
		return CannotCage
	}
	return e.Status
}

// Cause is what an error says without the operation and the path, where a refusal names its object itself.
func Cause(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}
