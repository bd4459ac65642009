//go:build !linux || (!amd64 && !arm64)

package launch

import (
	"errors"
	"os"
	"runtime"

	"github.com/selfcage/selfcage/plan"
)

// Cage is what Run makes and supervises.
type Cage struct {
	Bwrap string
	Plan  *plan.Plan
	Met   func(pid int, ask Ask) error
	Lost  func(target string) bool
}

var errUnsupported = errors.New("there is no confinement on " + runtime.GOOS + "/" + runtime.GOARCH + ": it needs linux/amd64 or linux/arm64")

// Supported says whether this build can confine anything.
const Supported = false

// Run fails: what cannot be confined is not run.
func Run(Cage) (End, *Failure) { return End{}, &Failure{Step: "start", Err: errUnsupported} }

// Exit ends this process with the status.
func (e End) Exit() { os.Exit(e.Status) }

// Inside is false: nothing here can make a cage.
func Inside() bool { return false }

// Enter fails.
func Enter(string, func([]byte) []byte) error { return errUnsupported }

// Inherited lists nothing.
func Inherited() []int { return nil }

// Undo has nothing to take back.
func Undo([]int) {}

func isMeetingPoint(int) bool { return false }
