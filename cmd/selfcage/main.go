// Command selfcage puts a command into a cage, and tells what a cage would be.
package main

import (
	"os"

	"github.com/selfcage/selfcage/cli"
	"github.com/selfcage/selfcage/cli/run"
)

func main() {
	run.Main(os.Args) // both stages of every start come by here: no kong
	os.Exit(cli.Main(os.Args[1:], os.Stdout, os.Stderr))
}
