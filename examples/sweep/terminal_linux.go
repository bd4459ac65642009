package main

import (
	"os"
	"syscall"
	"unsafe"
)

// isTerminal asks the kernel: /dev/null is a character device too.
func isTerminal(f *os.File) bool {
	var t syscall.Termios
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), syscall.TCGETS, uintptr(unsafe.Pointer(&t)))
	return errno == 0
}
