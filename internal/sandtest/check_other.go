//go:build !linux

package sandtest

import (
	"errors"
	"runtime"
)

var errNotHere = errors.New("not on " + runtime.GOOS)

func checkLandlock() error { return errNotHere }
func checkTiocsti() error  { return errNotHere }
