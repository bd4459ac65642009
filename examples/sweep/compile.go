package main

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

// compiler is a C compiler that has answered once.
type compiler struct {
	argv    []string // CC may hold flags of its own
	version string
	work    string // where results and the compiler's own temporary files go
}

// findCompiler asks for the version, which also proves that the compiler can be executed.
func findCompiler(ctx context.Context, cc, work string) (compiler, error) {
	c := compiler{argv: strings.Fields(cc), work: work}
	if len(c.argv) == 0 {
		c.argv = []string{"cc"}
	}
	out, err := c.command(ctx, "--version").Output()
	if err != nil {
		return c, fmt.Errorf("compiler %q: %w", strings.Join(c.argv, " "), err)
	}
	c.version = firstLine(out)
	return c, nil
}

// compile makes a program and returns its path.
func (c compiler) compile(ctx context.Context, src string, set flagSet) (string, error) {
	bin := filepath.Join(c.work, "program")
	args := append([]string(set), "-o", bin, src, "-lm")
	out, err := c.command(ctx, args...).CombinedOutput()
	if err != nil {
		return "", &failure{what: "does not compile", detail: firstLine(out), err: err}
	}
	return bin, nil
}

// command gives the compiler the work directory for its temporary files, so that an interrupted one leaves nothing
// behind, and asks it to end before it is killed.
func (c compiler) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, c.argv[0], append(c.argv[1:len(c.argv):len(c.argv)], args...)...)
	cmd.Env = append(os.Environ(), "TMPDIR="+c.work)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Second
	return cmd
}

// failure is why a set of flags has no result.
type failure struct {
	what   string // for the table
	detail string // what the tool said
	err    error
}

func (f *failure) Error() string {
	if f.detail == "" {
		return fmt.Sprintf("%s: %v", f.what, f.err)
	}
	return fmt.Sprintf("%s: %s", f.what, f.detail)
}

func (f *failure) Unwrap() error { return f.err }

// verdict is the short form of err for the table.
func verdict(err error) string {
	var f *failure
	if errors.As(err, &f) {
		return f.what
	}
	return err.Error()
}

func firstLine(out []byte) string {
	line, _, _ := bytes.Cut(bytes.TrimSpace(out), []byte("\n"))
	return strings.TrimSpace(string(line))
}
