// Package probe asks this host what it can do: which bubblewrap is trusted, why a start failed, and, for doctor, what
// can be enforced here.
//
// A normal start asks only [Bwrap], which looks at two files. Everything else happens after a failed start ([Diagnose])
// or on request ([Examine]): the start itself is the probe, with exactly the namespaces and mounts of the run.
//
// Facts are read in small functions, and pure ones decide: the texts can be tested without a broken host. No probe
// runs anything but the trusted bubblewrap, with an empty environment, and none ever tries the run itself again with
// less.
//
// # Limitations
//
// A probe is a moment later than the start that failed. Where everything works by then, the text says so instead of
// naming a cause. Diagnose waits for its own children; nothing else in the process may reap them meanwhile.
package probe

import (
	"github.com/selfcage/selfcage/internal/refusal"
)

// What a host must have at least. Debian's and Ubuntu's 0.8.0 has every option that a plan uses.
const leastVersion = "0.8.0"

const what = "cannot make the cage"

// unconfined ends every refusal: who asked for a cage must be able to read that there was no run without one.
const unconfined = "; refusing to run unconfined: nothing was run"

// Failure is what the supervisor saw of a start that never reached the handshake. bubblewrap's own line has gone to
// the user's standard error, which it shares with the program.
type Failure struct {
	Status   int  // exit status of bwrap, or the signal's number
	Signaled bool // bwrap itself was killed by signal Status
	Program  bool // the command is known to have been executed
}

func refused(object, cause, hint string) *refusal.Error {
	return &refusal.Error{What: what, Object: object, Cause: cause, Hint: hint, Status: refusal.CannotCage}
}
