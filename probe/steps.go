package probe

import (
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/selfcage/selfcage/binds"
	"github.com/selfcage/selfcage/internal/refusal"
	"github.com/selfcage/selfcage/plan"
)

// step is one thing that a start needs of the host. The steps are tried in this order, each with those before it.
type step string

const (
	stepVersion   step = "version"
	stepOptions   step = "options"
	stepUser      step = "user"
	stepPID       step = "pid"
	stepIPC       step = "ipc"
	stepUTS       step = "uts"
	stepCgroup    step = "cgroup"
	stepNet       step = "net"
	stepProc      step = "proc"
	stepDev       step = "dev"
	stepMounts    step = "mounts"
	stepSeccomp   step = "seccomp"
	stepDir       step = "directory"
	stepCommand   step = "command"
	stepInterpret step = "interpreter"
)

// namespaces are the kinds that bubblewrap unshares by an option; its mount namespace goes without saying.
var namespaces = [...]string{"user", "pid", "ipc", "uts", "cgroup", "net"}

func (s step) namespace() bool {
	for _, n := range namespaces {
		if string(s) == n {
			return true
		}
	}
	return false
}

// title is what messages call the step.
func (s step) title() string {
	switch s {
	case stepVersion:
		return "bubblewrap"
	case stepOptions:
		return "bubblewrap's options"
	case stepNet:
		return "network namespace"
	case stepProc:
		return "fresh /proc"
	case stepDev:
		return "fresh /dev"
	case stepMounts:
		return "mounts"
	case stepSeccomp:
		return "seccomp filter"
	case stepDir:
		return "working directory"
	case stepCommand:
		return "command"
	case stepInterpret:
		return "interpreter of the command"
	}
	return string(s) + " namespace"
}

// finding is the first step that failed; the zero value is none.
type finding struct {
	step     step
	line     string // bubblewrap's own
	timedOut bool
	signal   int // that killed it
}

// observations is all that a diagnosis decides from.
type observations struct {
	bwrap   string
	version string   // "" when it did not say
	missing []string // options that are needed and that --help does not list
	finding finding
	mount   *binds.Mount // that could not be made, for stepMounts
	dir     string
	command string
	interp  string // the command's ELF interpreter
	failure Failure
	host    host
}

// result is how one bubblewrap ended.
type result struct {
	out, err string
	status   int
	signal   int
	timedOut bool
	fault    error // it could not even be started
}

// runner runs the trusted bubblewrap with an empty environment. args are its arguments, data is what descriptors 3, 4,
// … give.
type runner func(args []string, data [][]byte) result

// nowhere cannot be executed on any host: /dev/null is no directory where it exists. So a bubblewrap that complains of
// its execution has made everything else, and no program has to be there, or run, to learn that.
const nowhere = "/dev/null/selfcage"

// failed is the finding that r is, if it is one. A set-up that is complete ends at command, with one of the errors in
// ends, or any error when there are none.
func failed(s step, r result, command string, ends ...string) (finding, bool) {
	line := rawLine(r.err)
	rest, complete := strings.CutPrefix(line, "bwrap: execvp "+refusal.Printable(command)+": ")
	if complete && !r.timedOut && r.signal == 0 && (len(ends) == 0 || slices.Contains(ends, rest)) {
		return finding{}, false
	}
	if r.fault != nil {
		line = refusal.Printable(r.fault.Error())
	}
	return finding{s, line, r.timedOut, r.signal}, true
}

// bisect finds the first step of p's start that fails.
func bisect(run runner, p *plan.Plan, o observations) observations {
	if !o.ask(run, neededBy(p)) {
		return o
	}
	for _, s := range hostSteps(p) {
		if f, bad := failed(s.step, run(append(s.args, nowhere), nil), nowhere); bad {
			o.finding = f
			return o
		}
	}
	q := *p
	q.Env, q.Filter, q.Dir = nil, nil, "/" // values never go on a command line, where every user can read them
	if f, k := firstMount(run, q); f.step != "" {
		o.finding = f
		if k > 0 {
			o.mount = &p.Mounts[k-1]
		}
		return o
	}
	q.Filter = p.Filter
	if p.Filter != nil && o.try(stepSeccomp, run, q) {
		return o
	}
	q.Dir = p.Dir
	if o.dir = p.Dir; o.try(stepDir, run, q) {
		return o
	}
	for _, c := range []struct {
		step step
		path string
	}{{stepCommand, p.Command}, {stepInterpret, o.interp}} {
		if c.path != "" && o.executes(c.step, run, &q, p, c.path) {
			o.command = p.Command
			return o
		}
	}
	return o
}

// ask learns version and options. It is false when there is a finding.
func (o *observations) ask(run runner, needed []string) bool {
	r := run([]string{"--version"}, nil)
	o.version = parseVersion(r.out)
	if r.fault != nil || r.timedOut || r.signal != 0 {
		o.finding, _ = failed(stepVersion, r, nowhere)
		return false
	}
	r = run([]string{"--help"}, nil)
	known := parseOptions(r.out)
	if r.status != 0 || r.fault != nil || r.timedOut || len(known) == 0 {
		return true // it does not tell; an option that is missing shows in the step that uses it
	}
	for _, n := range needed {
		if !known[n] {
			o.missing = append(o.missing, n)
		}
	}
	if len(o.missing) > 0 {
		o.finding = finding{step: stepOptions}
	}
	return len(o.missing) == 0
}

// try runs the set-up of q; it is true when that fails, which is then the finding.
func (o *observations) try(s step, run runner, q plan.Plan) (bad bool) {
	o.finding, bad = failed(s, setup(run, q), nowhere)
	return bad
}

// tooLong is what execve says of an environment with one string of more than 32 pages (MAX_ARG_STRLEN): it opens the
// file first, so this error means that the file is there and may be executed, without executing it.
const tooLong = "Argument list too long"

// executes tries whether path could be executed in the cage. The variables travel in a descriptor.
func (o *observations) executes(s step, run runner, q, p *plan.Plan, path string) (bad bool) {
	env := "--setenv\x00SELFCAGE_PAD\x00" + strings.Repeat("x", 33*os.Getpagesize()) + "\x00"
	for _, v := range p.Env {
		if v.Name == "PATH" { // what execvp searches
			env += "--setenv\x00PATH\x00" + v.Value + "\x00"
		}
	}
	data := contents(q)
	args := options(q)
	args = append(args, "--args", strconv.Itoa(3+len(data)), path)
	o.finding, bad = failed(s, run(args, append(data, []byte(env))), path, tooLong)
	return bad
}

// firstMount returns the finding of the first mount that cannot be made, and how many mounts that takes.
func firstMount(run runner, q plan.Plan) (f finding, k int) {
	all := q.Mounts
	prefix := func(k int) (finding, bool) {
		q.Mounts = all[:k]
		return failed(stepMounts, setup(run, q), nowhere)
	}
	f, bad := prefix(len(all))
	if !bad {
		return finding{}, 0
	}
	// Mounts are made in order, so once one fails every longer prefix does. Between good and k, which fails, the first
	// that fails is found; -1 stands for nothing at all.
	good, k := -1, len(all)
	for k-good > 1 {
		half := good + (k-good)/2
		if g, bad := prefix(half); bad {
			f, k = g, half
		} else {
			good = half
		}
	}
	return f, k
}

// setup runs everything of q but its command.
func setup(run runner, q plan.Plan) result {
	return run(append(options(&q), nowhere), contents(&q))
}

// options are those of p, with its data in the descriptors from 3 on.
func options(p *plan.Plan) []string { return p.Argv(func(i int) int { return 3 + i }) }

func contents(p *plan.Plan) [][]byte {
	var data [][]byte
	for _, d := range p.Data() {
		data = append(data, d.Content)
	}
	return data
}

// hostStep is a step that needs no plan.
type hostStep struct {
	step step
	args []string
}

// hostSteps are the namespaces of p one after the other, then a fresh /proc and /dev. None binds the host's root:
// bubblewrap's own is an empty tmpfs, so that a mount of the host that is in the way does not look like a namespace.
func hostSteps(p *plan.Plan) []hostStep {
	args := []string{"--die-with-parent"}
	var steps []hostStep
	for _, n := range namespaces {
		if n == "cgroup" && p.Namespaces.ShareCgroup || n == "net" && p.Namespaces.ShareNet {
			continue
		}
		args = append(args, "--unshare-"+n)
		steps = append(steps, hostStep{step(n), clip(args)})
	}
	steps = append(steps, hostStep{stepProc, clip(append(args, "--proc", "/proc"))})
	return append(steps, hostStep{stepDev, clip(append(args, "--proc", "/proc", "--dev", "/dev"))})
}

func clip(a []string) []string { return append([]string(nil), a...) }

// neededBy lists the options that p uses, in order. Every value is replaced first, since a link's text may look like
// an option.
func neededBy(p *plan.Plan) []string {
	q := *p
	q.Env, q.Dir, q.Mounts = nil, "/", nil
	for _, m := range p.Mounts {
		m.Source, m.Target = "/", "/"
		q.Mounts = append(q.Mounts, m)
	}
	var needed []string
	for _, a := range append(options(&q), "--setenv", "--args") {
		if strings.HasPrefix(a, "--") && !slices.Contains(needed, a) {
			needed = append(needed, a)
		}
	}
	return needed
}

// everyOption is a plan that uses each option that any plan may use.
func everyOption() *plan.Plan {
	p := &plan.Plan{Filter: allowAll()}
	for k := binds.ReadOnly; k <= binds.RemountRO; k++ {
		p.Mounts = append(p.Mounts, binds.Mount{Kind: k, Target: "/", Size: 1})
	}
	return p
}

// allowAll is the shortest seccomp program: whether one can be loaded is the question. It is one struct sock_filter, in
// the byte order of the machine: BPF_RET|BPF_K with SECCOMP_RET_ALLOW.
func allowAll() []byte {
	switch runtime.GOARCH {
	case "s390x", "ppc64", "mips", "mips64":
		return []byte{0, 6, 0, 0, 0x7f, 0xff, 0, 0}
	}
	return []byte{6, 0, 0, 0, 0, 0, 0xff, 0x7f}
}
