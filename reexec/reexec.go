// Package reexec puts a program into a cage of its own with one line at the top of main:
//
//	func main() {
//		reexec.Init(reexec.Options{Name: "hyperloom"})
//		...
//	}
//
// HYPERLOOM_SANDBOX_MODE=bwrap hyperloom … then runs the whole program, and everything it ever starts, inside
// bubblewrap. Without the variable Init looks two variables up and returns.
//
// # What runs outside
//
// Go runs the init functions and package variables of every imported package before main: once outside the cage, and
// again inside. Goroutines, listeners, locks and temporary files made there stay outside, with the process that
// supervises the cage.
//
// # Limitations
//
// The cage is an isolation boundary, not a defence against an exploit of the kernel. SIGSTOP sent to the supervisor's
// process id alone does not stop the program. getpgrp(2) is 0 inside when the group's leader is outside, tty(1) prints
// /dev/console, and a program that closes its standard output early does not give its reader an end of file before it
// ends. It confines on Linux on amd64 and arm64; elsewhere off works and every other mode fails.
package reexec

import (
	"os"

	"github.com/selfcage/selfcage/internal/launch"
	"github.com/selfcage/selfcage/internal/refusal"
	"github.com/selfcage/selfcage/internal/start"
	"github.com/selfcage/selfcage/plan"
	"github.com/selfcage/selfcage/policy"
)

// Options is what a host program says about its own cage. The zero value reads SANDBOX_* and asks for nothing.
// Variables are stronger than scalars here, and lists add up.
type Options struct {
	Name string // prefix of the variables: "hyperloom" reads HYPERLOOM_SANDBOX_*

	Mode     string   // "bwrap", "enforced" and so on: of every run that no variable says otherwise about; empty is off
	Readable []string // paths to read, absolute or relative to the working directory
	Writable []string // paths to read and write
	Hide     []string // paths that are not visible, whatever is granted
	Protect  []string // paths that stay read-only inside what is writable
	Network  string   // "shared" or "none"; empty is shared, and none where a policy file is in force
	Hosts    []string // host patterns for the network "egress"
	GPU      []string // "all", nodes, PCI addresses or CDI names
	NPU      []string // as GPU
	Device   []string // character devices by path
	Cache    []string // tools whose own caches the run may read and write: "go", "pip"
	Env      []string // names of variables to let through although scrubbing would drop them
	Secret   []string // names of secret variables to let through
	Limit    []string // "memory=2G", "pids=100", "cpu=1.5"
	TmpSize  string   // size of the private /tmp, "512M"; empty is half of the memory
	Note     string   // "exempt_container_backend": a container runtime isolates already
	Bwrap    string   // absolute path of a trusted bubblewrap
	Report   string   // file to write the report to, or "-" for standard error
	Quiet    bool     // no start notes

	PolicyFile string            // a policy file, where no variable names another
	Tokens     map[string]string // what {NAME} stands for in policy files: "model_dir"; absolute paths

	// What follows is linked only into a program that hands it in. A run that asks for one that was not is refused.

	Policy   func(path string, o policy.FileOptions) (policy.File, error) // policyfile.Load: reads policy files
	Approved func(file string, s policy.Settings) error                   // approval.Require: what is wider than approved is refused
	Manifest func(p *plan.Plan, pid int) []byte                           // manifest.Collect: what the run can see, for the report
}

// Error is how a cage is refused: what was refused, the object, the cause and a hint.
type Error = refusal.Error

// Init returns at once when nobody asked for a cage, and when the program is already inside. Otherwise it starts the
// program again inside and never returns: the process ends as the one inside ended. When the cage cannot be made it
// prints why and ends the process with status 125; the program is not run.
//
// It must be called before anything else in main, from the main goroutine.
func Init(o Options) {
	prefix := policy.Prefix(o.Name)
	if o.Mode == "" && o.PolicyFile == "" && os.Getenv(prefix+"MODE") == "" && os.Getenv(prefix+"POLICY") == "" && os.Getenv(launch.StartVar) == "" {
		return
	}
	p := start.Program{Name: o.Name, Options: o.settings(), Operands: 1, Tokens: o.Tokens, Load: o.Policy, Approved: o.Approved, Manifest: o.Manifest}
	if err := p.Enter(); err != nil {
		p.Fail(err)
	}
}

// Inside reports whether this process is in a cage of this package's. The kernel says so, not a variable.
func Inside() bool { return launch.Inside() }

func (o Options) settings() (s policy.Settings) {
	one := func(name, value string) policy.Entry {
		if value == "" {
			return policy.Entry{}
		}
		return policy.Entry{Value: value, By: "Options." + name}
	}
	list := func(name string, values []string) (es []policy.Entry) {
		for _, v := range values {
			es = append(es, policy.Entry{Value: v, By: "Options." + name})
		}
		return es
	}
	s.Mode, s.Network, s.Bwrap, s.Report = one("Mode", o.Mode), one("Network", o.Network), one("Bwrap", o.Bwrap), one("Report", o.Report)
	if o.Quiet {
		s.Quiet = one("Quiet", "1")
	}
	s.Readable, s.Writable, s.Device = list("Readable", o.Readable), list("Writable", o.Writable), list("Device", o.Device)
	s.Cache, s.Env, s.Secret = list("Cache", o.Cache), list("Env", o.Env), list("Secret", o.Secret)
	s.Hide, s.Protect, s.Hosts = list("Hide", o.Hide), list("Protect", o.Protect), list("Hosts", o.Hosts)
	s.GPU, s.NPU, s.Limit = list("GPU", o.GPU), list("NPU", o.NPU), list("Limit", o.Limit)
	s.TmpSize, s.Note, s.Policy = one("TmpSize", o.TmpSize), one("Note", o.Note), one("PolicyFile", o.PolicyFile)
	return s
}
