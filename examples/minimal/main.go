// Command minimal is the smallest host program: it says which pid namespace it runs in, where, and with what arguments.
package main

import (
	"os"

	"github.com/selfcage/selfcage/reexec"
)

func main() {
	reexec.Init(reexec.Options{Name: "minimal"})
	ns, _ := os.Readlink("/proc/self/ns/pid") // empty where there is no /proc
	dir, _ := os.Getwd()
	out := ns + "\n" + dir + "\n"
	for _, arg := range os.Args {
		out += arg + "\n"
	}
	os.Stdout.WriteString(out)
	if len(os.Args) > 1 && os.Args[1] == "-wait" { // until standard input ends, to be looked at from outside
		os.Stdin.Read(make([]byte, 1))
	}
}
