// Command autorun is a host program whose main says nothing about a cage.
package main

import (
	"fmt"
	"os"

	"github.com/selfcage/selfcage/reexec"
	_ "github.com/selfcage/selfcage/reexec/auto"
)

func main() {
	fmt.Println("inside", reexec.Inside(), os.Args[1:])
	os.Exit(7)
}
