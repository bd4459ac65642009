// Package cli is the selfcage command: what a cage would be, what this host can do, what is enforced around a process.
// It is the only importer of kong.
package cli

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/selfcage/selfcage/cli/run"
	"github.com/selfcage/selfcage/internal/launch"
	"github.com/selfcage/selfcage/internal/refusal"
	"github.com/selfcage/selfcage/internal/start"
	"github.com/selfcage/selfcage/plan"
	"github.com/selfcage/selfcage/policy"
	"github.com/selfcage/selfcage/probe"
	"github.com/selfcage/selfcage/report"
)

type commands struct {
	Run     passthrough `cmd:"" passthrough:"" help:"Run a command in a cage; see selfcage run --help."`
	Explain passthrough `cmd:"" passthrough:"" help:"Show what the cage would be, and why; see selfcage explain --help."`
	Policy  passthrough `cmd:"" passthrough:"" help:"Check, show, compare and approve policy files; see selfcage policy --help."`
	Doctor  doctorCmd   `cmd:"" help:"Show what this host can enforce, and what blocks the rest."`
	Status  statusCmd   `cmd:"" help:"Inside a cage: show what is enforced around it."`
	Version versionCmd  `cmd:"" help:"Print the version."`
}

type passthrough struct {
	Args []string `arg:"" optional:""`
}

// Main executes the command line args, without the program's name, and returns the exit status.
func Main(args []string, stdout, stderr io.Writer) int {
	status := 0
	var c commands
	k, err := kong.New(&c, kong.Name("selfcage"), kong.Writers(stdout, stderr),
		kong.Description("Puts a command, and all that it starts, into a cage of namespaces and mounts.\n\n"+
			"The same for a Go program of your own is one line: see the package github.com/selfcage/selfcage/reexec."),
		kong.Exit(func(int) { panic(exited{}) }), kong.UsageOnError(), kong.BindTo(stdout, (*io.Writer)(nil)), kong.BindTo(stderr, (*errorWriter)(nil)), kong.Bind(&status))
	if err != nil {
		return fail(stderr, &refusal.Error{What: "BUG(cli)", Cause: err.Error()})
	}
	switch {
	case len(args) == 0, args[0] == "help":
		args = []string{"--help"}
	case args[0] == "--version":
		args = []string{"version"}
	}
	if args[0] == "explain" { // kong replaces bytes that are not UTF-8
		if err := explain(args[1:], stdout, stderr); err != nil {
			return fail(stderr, err)
		}
		return 0
	}
	if args[0] == "policy" {
		status, err := policyCommand(args[1:], stdout, stderr)
		if err != nil {
			return fail(stderr, err)
		}
		return status
	}
	done, ctx, err := parse(k, args)
	if done {
		return 0
	}
	if err == nil {
		err = ctx.Run()
	}
	if err != nil {
		return fail(stderr, err)
	}
	return status
}

// errorWriter is standard error, apart from standard output by its type.
type errorWriter interface{ io.Writer }

type exited struct{}

// parse keeps kong's --help, which wants to end the process, a thing that only main does.
func parse(k *kong.Kong, args []string) (done bool, ctx *kong.Context, err error) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(exited); !ok {
				panic(r)
			}
			done = true
		}
	}()
	ctx, err = k.Parse(args)
	if err != nil {
		err = &refusal.Error{What: err.Error(), Hint: "selfcage --help lists the commands"}
	}
	return false, ctx, err
}

// fail prints a refusal as every part of selfcage does and returns its status.
func fail(stderr io.Writer, err error) int {
	status := refusal.CannotCage
	fmt.Fprintf(stderr, "selfcage: %s\n", refusal.Printable(err.Error()))
	var r *refusal.Error
	if errors.As(err, &r) { // kong wraps what a command returns
		status = r.ExitStatus()
		if r.Hint != "" {
			fmt.Fprintf(stderr, "hint: %s\n", r.Hint)
		}
	}
	return status
}

// Run is never called: kong does not see the commands that take a command line.
func (passthrough) Run() error { return &refusal.Error{What: "BUG(cli): a command line reached kong"} }

type doctorCmd struct {
	Mode   string `help:"The mode that must be possible; the exit status is 1 if it is not." default:"bwrap" placeholder:"MODE"`
	Bwrap  string `help:"Absolute path of a trusted bwrap." placeholder:"PATH"`
	Format string `help:"text or json." default:"text" enum:"text,json"`
}

func (c *doctorCmd) Run(stdout io.Writer, errs errorWriter, status *int) error {
	mode, ok := policy.ParseMode(c.Mode)
	if !ok {
		_, err := policy.Settings{Mode: policy.Entry{Value: c.Mode, By: "--mode"}}.Validate()
		return err
	}
	bwrap := policy.Entry{Value: c.Bwrap, By: "--bwrap"}
	if bwrap.Value == "" {
		bwrap = policy.Entry{Value: os.Getenv(policy.Prefix("") + "BWRAP"), By: policy.Prefix("") + "BWRAP"}
	}
	if launch.Inside() {
		fmt.Fprintln(errs, "selfcage: note: this is inside a cage, where run makes no other one: what follows is about making one here; selfcage status tells of the one around")
	}
	r := probe.Examine(bwrap)
	if !r.CanRun(mode) {
		*status = 1
	}
	if c.Format == "json" {
		rep := report.Report{Phase: report.Examined, Mode: mode, Host: host(), Checks: r.JSON()}
		rep.Environment.Level = report.LevelOf(mode)
		_, err := stdout.Write(rep.JSON())
		return err
	}
	_, err := io.WriteString(stdout, r.Text())
	return err
}

type versionCmd struct{}

func (versionCmd) Run(stdout io.Writer) error {
	_, err := fmt.Fprintf(stdout, "selfcage %s %s %s/%s\n", cmp.Or(version(), "(devel)"), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

const explainUsage = `Usage: selfcage explain [--format text|json|argv] [flags of run] [-- CMD [ARG ...]]

Show what the cage of selfcage run with the same flags would be, and why. Nothing is run. text and json hold no value
of any variable; argv is a bash command that makes the same cage, with the values that it needs. It has no supervisor:
signals and statuses are those of bubblewrap, and what the shell has open stays open inside.

`

func explain(args []string, stdout, stderr io.Writer) error {
	format, args, err := takeFormat(args)
	if err != nil {
		return err
	}
	p, argv, help, err := run.Parse(args, 2)
	if err != nil {
		return err
	}
	if help {
		_, err := io.WriteString(stdout, explainUsage+policy.Help())
		return err
	}
	environ := os.Environ()
	eff, err := p.Asked(environ)
	if err != nil {
		return err
	}
	if eff.Mode.Value == string(policy.ScrubbedOnly) {
		return explainScrubbed(p, eff, environ, format, stdout)
	}
	pl, err := planOf(p, eff, environ, args)
	if err != nil {
		return err
	}
	// What is printed must not be taken for what run would do.
	switch {
	case launch.Inside():
		fmt.Fprintln(stderr, "selfcage: note: run would make no other cage inside this one")
	case eff.Mode.Value == string(policy.Off), eff.Mode.Value == string(policy.Disabled):
		fmt.Fprintf(stderr, "selfcage: note: run would confine nothing, since the mode is %s (%s); this is the cage of mode bwrap\n", eff.Mode.Value, eff.Mode.By)
	}
	switch format {
	case "json":
		_, err = stdout.Write(pl.JSON())
	case "argv":
		_, err = io.WriteString(stdout, pl.Script(bwrapFor(eff.Settings), argv))
	default:
		_, err = io.WriteString(stdout, pl.Explain())
	}
	return err
}

// explainScrubbed shows what a run without a cage would get: an environment, and nothing else changes.
func explainScrubbed(p start.Program, eff policy.Effective, environ []string, format string, stdout io.Writer) error {
	if err := p.Possible(eff, environ); err != nil {
		return err
	}
	kept, dropped, err := p.Scrubbed(eff, environ)
	if err != nil {
		return err
	}
	if format == "argv" {
		return &refusal.Error{What: "no cage to show", Object: eff.Mode.By, Cause: "mode scrubbed_only makes none", Hint: "--format text or json shows the environment"}
	}
	environment := report.EnvironmentOf(report.Clean, kept, dropped)
	if format == "json" {
		fmt.Fprintf(stdout, `{"version":1,"engine":"none","mode":"scrubbed_only","scrubbed":%s}`+"\n", bytes.TrimSpace(environment.JSON()))
		return nil
	}
	fmt.Fprintf(stdout, "no cage, mode scrubbed_only (%s): nothing is confined\n\nenvironment\n", eff.Mode.By)
	for _, v := range environment.Kept {
		fmt.Fprintf(stdout, "  keep  %-28s  %s\n", plan.Quote(v.Name), v.Rule)
	}
	for _, v := range environment.Dropped {
		fmt.Fprintf(stdout, "  drop  %-28s  %s\n", plan.Quote(v.Name), v.Rule)
	}
	return nil
}

// takeFormat takes --format out of the flags of run.
func takeFormat(args []string) (format string, rest []string, err error) {
	format = "text"
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' && args[0] != "--" {
		name, value, hasValue := strings.Cut(args[0], "=")
		n := 1
		if !hasValue && len(args) > 1 && name != "--quiet" && name != "-h" && name != "--help" {
			n, value = 2, args[1]
		}
		if name != "--format" {
			rest = append(rest, args[:n]...)
		} else if value != "text" && value != "json" && value != "argv" {
			return "", nil, &refusal.Error{What: "unknown format", Object: plan.Quote(value), Cause: "accepted are text, json, argv"}
		} else {
			format = value
		}
		args = args[n:]
	}
	return format, append(rest, args...), nil
}

// bwrapFor is the bubblewrap that run would use; where there is none that is trusted, the one that was asked for.
func bwrapFor(s policy.Settings) string {
	switch path, err := probe.Bwrap(s.Bwrap); {
	case err == nil:
		return path
	case s.Bwrap.Value != "":
		return s.Bwrap.Value
	}
	return "/usr/bin/bwrap"
}

// planOf makes the plan that run would make from the same words.
func planOf(p start.Program, eff policy.Effective, environ, args []string) (*plan.Plan, error) {
	if err := p.Possible(eff, environ); err != nil {
		return nil, err
	}
	return p.PlanFor(eff, environ, append([]string{os.Args[0], "run"}, args...))
}
