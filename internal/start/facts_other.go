//go:build !linux

package start

import (
	"os"
	"runtime"

	"github.com/selfcage/selfcage/internal/refusal"
	"github.com/selfcage/selfcage/plan"
)

// Facts fails: nothing can be confined here.
func Facts([]string) (plan.Facts, error) {
	return plan.Facts{}, &refusal.Error{
		What: "cannot make the cage", Cause: "there is no confinement on " + runtime.GOOS,
		Hint: "run it on Linux, or with mode off",
	}
}

func workDir() string {
	dir, _ := os.Getwd()
	return dir
}

func executablePath() string {
	path, _ := os.Executable()
	return path
}
