package sandtest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"syscall"
	"unsafe"
)

// checkLandlock asks for the ABI version, which fails where Landlock was not built in or not switched on.
func checkLandlock() error {
	const (
		createRuleset = 444 // on all architectures but mips and alpha
		version       = 1   // LANDLOCK_CREATE_RULESET_VERSION
	)
	if _, _, errno := syscall.Syscall(createRuleset, 0, 0, version); errno != 0 {
		return fmt.Errorf("landlock_create_ruleset: %w", errno)
	}
	return nil
}

// checkTiocsti asks what an ordinary program may do. The kernel checks in this order: EIO where TIOCSTI is switched
// off, EPERM where the terminal is not the caller's own, EFAULT for the address. So a null pointer and a terminal of
// somebody else answer the question and push nothing. Root may always: there the switch is read instead.
func checkTiocsti() error {
	const toggle = "/proc/sys/dev/tty/legacy_tiocsti" // since Linux 6.2; before, it was always allowed
	text, err := os.ReadFile(toggle)
	switch {
	case err == nil && string(bytes.TrimSpace(text)) == "0":
		return fmt.Errorf("%s is 0", toggle)
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return err
	}
	pty, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return err
	}
	defer pty.Close()
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, pty.Fd(), syscall.TIOCSTI, uintptr(unsafe.Pointer(nil)))
	if errno != syscall.EPERM && errno != syscall.EFAULT {
		return fmt.Errorf("TIOCSTI: %w", errno)
	}
	return nil
}
