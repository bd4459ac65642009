// Command sweep finds the flags with which a C compiler makes the fastest program of one source file.
//
//	sweep [-src FILE] [-runs N] [-depth N] [-see]
//
// It compiles the file with many sets of flags, runs each result several times, and takes the least processor time
// (user and system) of each. A program that prints something else than the one made with -O0 is wrong, however fast:
// it is listed and not counted. The compiler is $CC, else cc.
//
// For selfcage it is an example of a host program: it spawns compilers, tools and unknown programs from several places
// that know nothing of a cage, and the one line in main puts all of them into one. With -see it says first what it
// can see of the machine, so that a run with SANDBOX_MODE=bwrap can be compared with one without.
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/selfcage/selfcage/reexec"
)

//go:embed kernel/kernel.c
var kernel []byte

func main() {
	reexec.Init(reexec.Options{})
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

type options struct {
	src   string // empty means the embedded kernel
	runs  int
	depth int
	see   bool
	home  string
}

// run is the whole program but for the exit: 0 found a best set, 1 did not, 2 wrong usage, 128+n ended by signal n.
func run(args []string, stdout, stderr io.Writer) int {
	opts, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2 // the flag package has said why
	}
	ctx, stop := interruptible()
	defer stop()
	if opts.see {
		fmt.Fprintln(stdout, look(opts.home, sourceDir(opts.src)))
	}
	version, results, err := sweep(ctx, opts, stderr)
	if err == nil {
		fmt.Fprintf(stdout, "compiler: %s\n", version)
		err = render(stdout, rank(results))
	}
	var sig signalled
	switch {
	case errors.As(context.Cause(ctx), &sig):
		return 128 + int(sig)
	case err != nil:
		fmt.Fprintln(stderr, "sweep:", err)
		return 1
	}
	return 0
}

func parse(args []string, stderr io.Writer) (options, error) {
	var opts options
	fs := flag.NewFlagSet("sweep", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.StringVar(&opts.src, "src", "", "C source `file`; the built-in kernel when not given")
	fs.IntVar(&opts.runs, "runs", 5, "how often each program is run")
	fs.IntVar(&opts.depth, "depth", 2, "how many optional flags are combined at most")
	fs.BoolVar(&opts.see, "see", false, "say first what this process can see of the machine")
	fs.StringVar(&opts.home, "home", home(), "the home `directory` that -see looks at")
	if err := fs.Parse(args); err != nil {
		return opts, err
	}
	var err error
	switch {
	case fs.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", fs.Arg(0))
	case opts.runs < 1:
		err = fmt.Errorf("-runs %d: at least one run is needed", opts.runs)
	case opts.depth < 0:
		err = fmt.Errorf("-depth %d: must not be negative", opts.depth)
	}
	if err != nil {
		fmt.Fprintln(stderr, "sweep:", err)
	}
	return opts, err
}

// home is the caller's home in the password file: $HOME may have been moved.
func home() string {
	if u, err := user.LookupId(strconv.Itoa(os.Getuid())); err == nil {
		return u.HomeDir
	}
	return os.Getenv("HOME")
}

func sourceDir(src string) string {
	if src == "" {
		return "."
	}
	return filepath.Dir(src)
}

// sweep tries all sets and returns the compiler's version and the results, also when it was interrupted: what has been
// measured is worth seeing. It prints nothing but progress, so that a closed stdout finds no directory to leave behind.
func sweep(ctx context.Context, opts options, stderr io.Writer) (string, []result, error) {
	work, err := os.MkdirTemp("", "sweep-")
	if err != nil {
		return "", nil, err
	}
	defer os.RemoveAll(work)
	cc, err := findCompiler(ctx, os.Getenv("CC"), work)
	if err != nil {
		return "", nil, err
	}
	src, err := source(opts.src, work)
	if err != nil {
		return "", nil, err
	}
	sets := flagSets(opts.depth)
	progress := newProgress(stderr, len(sets))
	defer progress.done()
	results, err := tryAll(ctx, cc, src, sets, opts.runs, progress)
	return cc.version, results, err
}

// source is the absolute path of the file to compile.
func source(src, work string) (string, error) {
	if src != "" {
		return filepath.Abs(src)
	}
	path := filepath.Join(work, "kernel.c")
	return path, os.WriteFile(path, kernel, 0o600)
}

// tryAll stops at the first failure of the reference set, since nothing can be compared then, and at an interruption.
func tryAll(ctx context.Context, cc compiler, src string, sets []flagSet, runs int, p *progress) ([]result, error) {
	var results []result
	for _, set := range sets {
		p.step(set.String())
		r := try(ctx, cc, src, set, runs)
		if ctx.Err() != nil {
			return results, nil
		}
		if r.err != nil && len(results) == 0 {
			return nil, fmt.Errorf("%s: %w", set, r.err)
		}
		results = append(results, r)
	}
	return results, nil
}

func try(ctx context.Context, cc compiler, src string, set flagSet, runs int) result {
	r := result{flags: set}
	bin, err := cc.compile(ctx, src, set)
	if err != nil {
		r.err = err
		return r
	}
	defer os.Remove(bin)
	if r.size, r.err = textSize(ctx, bin); r.err != nil {
		return r
	}
	r.cpu, r.sum, r.err = measure(ctx, bin, runs)
	return r
}

// signalled is the number of the signal that ended the run.
type signalled syscall.Signal

func (s signalled) Error() string { return strings.ToLower(syscall.Signal(s).String()) }

// interruptible is cancelled by the first SIGINT, SIGTERM or SIGHUP; the second kills as usual. A signal that the caller
// ignores (nohup, a background job of a script) stays ignored.
func interruptible() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	ch := make(chan os.Signal, 1)
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(sig) {
			signal.Notify(ch, sig)
		}
	}
	go func() {
		select {
		case sig := <-ch:
			signal.Stop(ch)
			if n, ok := sig.(syscall.Signal); ok {
				cancel(signalled(n))
			}
			cancel(errors.New("interrupted")) // no effect after the first
		case <-ctx.Done():
		}
	}()
	return ctx, func() { signal.Stop(ch); cancel(nil) }
}
