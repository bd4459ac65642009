package sandtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// bwraps are the places where we look for a bubblewrap that is trusted; never PATH.
var bwraps = []string{"/usr/bin/bwrap", "/run/current-system/sw/bin/bwrap"}

func bwrapPath() (string, error) {
	for _, path := range bwraps {
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("no %s", strings.Join(bwraps, " and no "))
}

func checkBwrap() error { return bwrap("--version") }

// The command is bwrap itself: where /bin is and what is in it depends on the host.
func checkUserNS() error { return bwrap("--unshare-user", "--ro-bind", "/", "/") }

func checkCage() error {
	return bwrap("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--ro-bind", "/", "/",
		"--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp")
}

func checkNest() error {
	path, err := bwrapPath()
	if err != nil {
		return err
	}
	return bwrap("--unshare-user", "--dev-bind", "/", "/", path, "--unshare-user", "--unshare-pid", "--ro-bind", "/", "/", "--proc", "/proc")
}

func checkNetNS() error { return bwrap("--unshare-user", "--unshare-net", "--ro-bind", "/", "/") }

// bwrap runs bubblewrap with options, and as the command its own --version.
func bwrap(options ...string) error {
	path, err := bwrapPath()
	if err != nil {
		return err
	}
	if len(options) > 1 {
		options = append(options, path, "--version")
	}
	return try(path, options...)
}

func checkCC() error {
	dir, err := os.MkdirTemp("", "sandtest-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	src, bin := filepath.Join(dir, "true.c"), filepath.Join(dir, "true")
	// The header tells a compiler from one that was installed without its C library.
	code := "#include <stdio.h>\nint main(void) { return puts(\"yes\") < 0; }\n"
	if err := os.WriteFile(src, []byte(code), 0o600); err != nil {
		return err
	}
	if err := try("cc", "-o", bin, src); err != nil {
		return err
	}
	return try(bin)
}

func checkTmux() error   { return try("tmux", "-V") }
func checkPython() error { return try("python3", "-c", "") }
func checkPerl() error   { return try("perl", "-e", "1") }
func checkGit() error    { return try("git", "--version") }
func checkSudo() error   { return try("sudo", "-n", "true") }
func checkGo() error {
	return try("go", "list", "-buildvcs=false", "github.com/selfcage/selfcage/cmd/selfcage")
}

// checkPerf asks for user space only, as anybody may where kernel.perf_event_paranoid is 2, and for a clock of the
// kernel's own, as a virtual machine has no counters.
func checkPerf() error { return try("perf", "stat", "-e", "task-clock:u", "true") }

func checkRoot() error {
	if os.Getuid() != 0 {
		return fmt.Errorf("runs as uid %d", os.Getuid())
	}
	return nil
}

func checkOrdinary() error {
	if os.Getuid() == 0 {
		return errors.New("runs as uid 0")
	}
	return nil
}

// patience is far more than any check takes; one that hangs must not take the whole test run with it.
const patience = 30 * time.Second

// try runs a command and returns why it failed, with the first line of what it said.
func try(name string, args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("no answer in %v", patience)
	}
	line, _, _ := bytes.Cut(bytes.TrimSpace(out), []byte("\n"))
	call := strings.Join(append([]string{name}, args...), " ")
	if len(line) == 0 {
		return fmt.Errorf("%s: %w", call, err)
	}
	return fmt.Errorf("%s: %w: %s", call, err, line)
}
