// Package rawclone makes child processes and catches signals without the help of the Go runtime: children share the
// parent's memory until they exec or for ever (clone with CLONE_VM), so that no page tables are copied, and a caught
// signal costs one write to a pipe, and no goroutine or thread.
//
// The children never run Go code. They are a few system calls in assembly each, on a stack of their own, with every
// signal blocked, since a Go signal handler on shared memory would corrupt the parent. The assembly is apart from the
// code that calls it since a package that uses cgo may not hold any.
//
// On operating systems and architectures other than Linux on amd64 and arm64, Supported is false and nothing else
// is there.
package rawclone
