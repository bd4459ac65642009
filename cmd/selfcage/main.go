// Command selfcage puts a command into a cage, and tells what a cage would be.
package main

import "os"

func main() { os.Exit(0) }
