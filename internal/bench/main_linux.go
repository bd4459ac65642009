// Command bench measures what a cage costs, as ratios within one run: two commands in alternation, CPU time of each
// with all its descendants, median of the ratios pair by pair. Absolute times of a shared machine say little.
//
//	go run ./internal/bench [-n PAIRS]
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/selfcage/selfcage/internal/fakehost"
	"github.com/selfcage/selfcage/internal/start"
	"github.com/selfcage/selfcage/plan"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("bench: ")
	n := flag.Int("n", 60, "pairs of runs for each row")
	only := flag.String("only", "", "run just the rows that begin with this")
	flag.Parse()
	// Orphans of what is measured become our children, so that waiting for all counts all of it: bwrap's pid 1 is not
	// reaped by bwrap, and its time would be missing.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		log.Fatal(err)
	}
	dir, err := os.MkdirTemp("/var/tmp", "selfcage-bench")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	b := &bench{n: *n, only: *only, dir: dir}
	b.build("minimal", "./examples/minimal")
	b.build("sweep", "./examples/sweep")
	b.build("sweep-bare", "-overlay", b.without("examples/sweep/main.go"), "./examples/sweep")
	b.build("minimal-bare", "-overlay", b.without("examples/minimal/main.go"), "./examples/minimal")
	b.build("selfcage", "./cmd/selfcage")
	if err := os.Chdir(dir); err != nil {
		log.Fatal(err)
	}
	minimal, sweep, selfcage := filepath.Join(dir, "minimal"), filepath.Join(dir, "sweep"), filepath.Join(dir, "selfcage")
	on := append(os.Environ(), "MINIMAL_SANDBOX_MODE=bwrap")
	fmt.Printf("%-44s %8s %8s %8s   %s\n", "ratio of CPU time, descendants included", "lower", "median", "upper", "medians in ms")
	b.row("off, sweep -h / the same without us", run(nil, sweep, "-h"), run(nil, sweep+"-bare", "-h"))
	b.row("off, minimal / the same without us", run(nil, minimal), run(nil, minimal+"-bare"))
	here := place{env: os.Environ()}
	b.row("MODE=bwrap prog / bwrap SAME PLAN prog", run(on, minimal), b.plain(here, minimal, []string{minimal}))
	b.row("selfcage run -- true / bwrap SAME PLAN true", run(nil, selfcage, "run", "--", "true"), b.plain(here, "", []string{"true"}))
	tools := b.tools()
	b.row("among many tools, prog / bwrap SAME PLAN", tools.run("MINIMAL_SANDBOX_MODE=bwrap", minimal), b.plain(tools, minimal, []string{minimal}))
	b.memory(on, minimal)
}

type bench struct {
	n    int
	only string
	dir  string
}

func (b *bench) build(name string, args ...string) {
	cmd := exec.Command("go", append([]string{"build", "-o", filepath.Join(b.dir, name)}, args...)...)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		log.Fatal(err)
	}
}

// without writes a build overlay in which a host program's source lacks its one line, and returns the overlay's path.
func (b *bench) without(source string) string {
	data, err := os.ReadFile(source)
	if err != nil {
		log.Fatal(err)
	}
	var kept []string
	for _, line := range strings.Split(string(data), "\n") {
		if !strings.Contains(line, "reexec.Init(") && !strings.Contains(line, "selfcage/reexec\"") {
			kept = append(kept, line)
		}
	}
	bare := filepath.Join(b.dir, strings.ReplaceAll(source, "/", "-"))
	if err := os.WriteFile(bare, []byte(strings.Join(kept, "\n")), 0o600); err != nil {
		log.Fatal(err)
	}
	path, err := filepath.Abs(source)
	if err != nil {
		log.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {path: bare}})
	if err != nil {
		log.Fatal(err)
	}
	name := bare + ".json"
	if err := os.WriteFile(name, overlay, 0o600); err != nil {
		log.Fatal(err)
	}
	return name
}

// place is where and with which environment a command is started; the zero dir is the bench's own.
type place struct {
	dir string
	env []string
}

// run is like the function run, with one more variable.
func (p place) run(kv string, argv ...string) func() *exec.Cmd {
	return func() *exec.Cmd {
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Dir, cmd.Env = p.dir, append([]string{kv}, p.env...)
		return cmd
	}
}

// tools is the place of somebody who uses many: a uv environment in a Go workspace and a PATH of 40 entries.
func (b *bench) tools() place {
	d := fakehost.NewDeveloper(filepath.Join(b.dir, "tools"), 20)
	if err := d.Make(); err != nil {
		log.Fatal(err)
	}
	return place{d.Dir, append([]string{"PWD=" + d.Dir}, d.Env...)}
}

// run returns a function that starts the command once.
func run(env []string, argv ...string) func() *exec.Cmd {
	return func() *exec.Cmd {
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Env = env
		return cmd
	}
}

// plain is bwrap by itself with the plan that a host program at exe would have.
func (b *bench) plain(at place, exe string, argv []string) func() *exec.Cmd {
	facts, err := start.Facts(at.env)
	if err != nil {
		log.Fatal(err)
	}
	facts.Args = argv
	if at.dir != "" {
		facts.Dir = at.dir
	}
	if exe != "" {
		facts.Exe = plan.Exe{Path: exe, Intact: true}
	} else {
		facts.Exe = plan.Exe{Path: filepath.Join(b.dir, "selfcage"), Intact: true}
	}
	p, err := plan.Build(facts, plan.Request{Name: "bench"})
	if err != nil {
		log.Fatal(err)
	}
	p.Seal()
	var files []string
	data, err := os.MkdirTemp(b.dir, "data")
	if err != nil {
		log.Fatal(err)
	}
	for i, d := range p.Data() {
		f := filepath.Join(data, strconv.Itoa(i))
		if err := os.WriteFile(f, d.Content, 0o600); err != nil {
			log.Fatal(err)
		}
		files = append(files, f)
	}
	args := append(p.Argv(func(i int) int { return 3 + i }), "--")
	args = append(args, argv...)
	return func() *exec.Cmd {
		cmd := exec.Command("/usr/bin/bwrap", args...)
		cmd.Env = []string{}
		for _, name := range files {
			f, err := os.Open(name)
			if err != nil {
				log.Fatal(err)
			}
			cmd.ExtraFiles = append(cmd.ExtraFiles, f)
		}
		return cmd
	}
}

// cost runs a command and returns the CPU time of all that it started, in seconds.
func cost(cmd *exec.Cmd) float64 {
	before := children()
	if err := cmd.Start(); err != nil {
		log.Fatal(err)
	}
	for _, f := range cmd.ExtraFiles {
		f.Close()
	}
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, 0, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			break
		}
		if pid == cmd.Process.Pid && ws.ExitStatus() != 0 {
			log.Fatalf("%q ended with status %d", cmd.Args, ws.ExitStatus())
		}
	}
	return children() - before
}

func children() float64 {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &r); err != nil {
		log.Fatal(err)
	}
	return float64(r.Utime.Nano()+r.Stime.Nano()) / 1e9
}

func (b *bench) row(name string, one, other func() *exec.Cmd) {
	if len(name) < len(b.only) || name[:len(b.only)] != b.only {
		return
	}
	cost(one())
	cost(other())
	var ratios, as, bs []float64
	for i := 0; i < b.n; i++ {
		x, y := cost(one()), cost(other())
		ratios, as, bs = append(ratios, x/y), append(as, x*1e3), append(bs, y*1e3)
	}
	sort.Float64s(ratios)
	sort.Float64s(as)
	sort.Float64s(bs)
	q := func(l []float64, p float64) float64 { return l[int(p*float64(len(l)-1))] }
	fmt.Printf("%-44s %8.3f %8.3f %8.3f   %.2f / %.2f\n", name, q(ratios, .25), q(ratios, .5), q(ratios, .75), q(as, .5), q(bs, .5))
}

// memory prints how much the supervisor holds while the program runs: minimal waits for its standard input to end.
func (b *bench) memory(env []string, prog string) {
	cmd := exec.Command(prog, "-wait")
	cmd.Env = env
	in, err := cmd.StdinPipe()
	if err != nil {
		log.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		log.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		log.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		log.Fatal(err)
	}
	status, err := os.ReadFile("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/status")
	if err != nil {
		log.Fatal(err)
	}
	for _, line := range strings.Split(string(status), "\n") {
		if len(line) > 6 && (line[:6] == "VmRSS:" || line[:6] == "VmHWM:" || line[:6] == "RssAno") {
			fmt.Println("supervisor", line)
		}
	}
	in.Close()
	_, _ = out.Read(make([]byte, 1<<16))
	_ = cmd.Wait()
	runtime.KeepAlive(in)
}
