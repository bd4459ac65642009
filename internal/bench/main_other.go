//go:build !linux

// Command bench measures what a cage costs. There is none here.
package main

import "log"

func main() { log.Fatal("bench: there is no cage to measure on this system") }
