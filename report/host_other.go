//go:build !linux

package report

import "runtime"

// LookAtHost knows only what the program was built for here.
func LookAtHost() Host { return Host{Machine: runtime.GOARCH, LandlockABI: -1} }
