// Package auto calls reexec.Init when it is imported, for programs whose main cannot be edited:
//
//	import _ "github.com/selfcage/selfcage/reexec/auto"
//
// It reads SANDBOX_*. Packages that the importing program initialises before this one run outside as well; Go sorts
// them by import path among those that are ready.
package auto

import "github.com/selfcage/selfcage/reexec"

func init() { reexec.Init(reexec.Options{}) }
