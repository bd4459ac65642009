// Command gorun is a host program for go run.
package main

import (
	"fmt"
	"os"

	"github.com/selfcage/selfcage/reexec"
)

func main() {
	reexec.Init(reexec.Options{})
	fmt.Println("inside", reexec.Inside(), os.Args[1:])
	os.Exit(7)
}
