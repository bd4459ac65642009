// Package run is the run command: a host program whose job is to execute another one. It is apart from the other
// commands since both stages of every start go through it, and kong is not for them.
package run

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/selfcage/selfcage/approval"
	"github.com/selfcage/selfcage/internal/launch"
	"github.com/selfcage/selfcage/internal/refusal"
	"github.com/selfcage/selfcage/internal/start"
	"github.com/selfcage/selfcage/manifest"
	"github.com/selfcage/selfcage/plan"
	"github.com/selfcage/selfcage/policy"
	"github.com/selfcage/selfcage/policy/policyfile"
)

const usage = `Usage: selfcage run [flags] -- CMD [ARG ...]

Run CMD, and all that it starts, inside a cage. Without a mode from anywhere it is bwrap.

`

const statuses = `
Exit status: CMD's own; 125 the cage could not be made and nothing was run, 126 CMD cannot be executed, 127 CMD was
not found. When CMD dies of a signal, so does selfcage.

  selfcage run --write out -- make -C src        # the working directory is read-only, out is not
  selfcage run --network none -- ./benchmark
`

// Main executes the command line args where that is one of run, and then never returns.
func Main(args []string) {
	if len(args) == 1 && os.Getenv(launch.StartVar) != "" && launch.Inside() {
		// A command line that did not fit bubblewrap's: this stage fetches it and executes itself once more.
		var p start.Program
		if err := p.Enter(); err != nil {
			p.Fail(err)
		}
	}
	if len(args) < 2 || args[1] != "run" {
		return
	}
	p, argv, help, err := Parse(args[2:], len(args)-len(args[2:]))
	switch {
	case help:
		_, _ = os.Stdout.WriteString(usage + policy.Help() + statuses)
		os.Exit(0)
	case err == nil && len(argv) == 0:
		err = &refusal.Error{What: "nothing to run", Hint: "usage: selfcage run [flags] -- CMD [ARG ...]"}
	}
	if err == nil {
		err = p.Enter()
	}
	if err == nil {
		p.Unused(os.Environ())
		err = execute(argv, os.Environ())
	}
	p.Fail(err)
}

// Parse reads the flags of run, without its name. before is how many words of the command line come before args.
func Parse(args []string, before int) (p start.Program, argv []string, help bool, err error) {
	flags, argv, help, err := policy.FromFlags(args)
	p = start.Program{
		Flags:    flags,
		Options:  policy.Settings{Mode: policy.Entry{Value: string(policy.Bwrap), By: "the default of run"}},
		Operands: before + len(args) - len(argv),
		Load:     policyfile.Load,
		Approved: approval.Require,
		Manifest: manifest.Collect,
	}
	if len(argv) > 0 {
		p.Runs = argv[0]
	}
	return p, argv, help, err
}

// execute becomes the command. It returns only on failure.
func execute(argv, environ []string) error {
	path, err := find(argv[0], plan.Getenv(environ, "PATH"))
	if err == nil {
		err = syscall.Exec(path, argv, environ)
		if errors.Is(err, syscall.ENOEXEC) { // a script without a #! line: what execvp does
			err = syscall.Exec("/bin/sh", append([]string{"sh", path}, argv[1:]...), environ)
		}
	}
	return explain(argv[0], path, err)
}

// find looks name up in the list of directories path, as execvp does.
func find(name, path string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	err := error(fs.ErrNotExist)
	for _, dir := range strings.Split(path, ":") {
		if dir == "" {
			dir = "."
		}
		p := dir + "/" + name
		fi, e := os.Stat(p)
		switch {
		case e != nil:
		case !fi.Mode().IsRegular() || fi.Mode().Perm()&0o111 == 0:
			err = fs.ErrPermission
		default:
			return p, nil
		}
	}
	return name, err
}

func explain(name, path string, err error) error {
	e := &refusal.Error{What: "cannot execute", Object: plan.Quote(name), Cause: err.Error(), Status: refusal.CannotExecute, Err: err}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.Status, e.What, e.Cause = refusal.NotFound, "command not found", ""
		e.Hint = "selfcage explain shows what is visible inside; --read DIR grants more"
		if !strings.Contains(path, "/") {
			if fi, err := os.Stat(name); err == nil && fi.Mode().IsRegular() {
				e.Hint = "it is in the working directory, which is not in PATH: ./" + name
			}
		} else if _, err := os.Stat(path); err == nil {
			// The kernel says ENOENT for the file, and means the interpreter.
			e.Status, e.What, e.Cause = refusal.CannotExecute, "cannot execute", "its interpreter "+interpreter(path)+"does not exist inside"
		}
	case errors.Is(err, syscall.E2BIG):
		e.Hint = "the arguments and the environment together are longer than the kernel allows"
	case isDir(path):
		e.Cause, e.Hint = "it is a directory", "name a program"
	case errors.Is(err, fs.ErrPermission):
		e.Hint = "check that it is an executable file"
	}
	return e
}

func isDir(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && fi.IsDir()
}

// interpreter returns the one that a script's first line names, quoted and followed by a space.
func interpreter(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	buf := make([]byte, 256) // BINPRM_BUF_SIZE of Linux
	n, _ := f.Read(buf)
	line, _, _ := strings.Cut(string(buf[:n]), "\n")
	if words := strings.Fields(strings.TrimPrefix(line, "#!")); strings.HasPrefix(line, "#!") && len(words) > 0 {
		return plan.Quote(words[0]) + " "
	}
	return ""
}
