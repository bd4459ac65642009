package probe

import (
	"io"
	"os"
	"runtime"
	"syscall"
	"time"

	"github.com/selfcage/selfcage/internal/refusal"
	"github.com/selfcage/selfcage/plan"
)

// patience is what one step may take; a healthy one takes some 20 ms. A network file system that hangs makes a bind
// wait for ever.
const patience = 10 * time.Second

// maxOutput bounds what is kept of a step's output.
const maxOutput = 64 << 10

// Diagnose says why a start with plan p failed. It tries the steps of the start one by one with the same bubblewrap, an
// empty environment and no command: nothing of the program runs, and a step that fails is not tried with less.
func Diagnose(bwrap string, p *plan.Plan, f Failure) *refusal.Error {
	o := observations{bwrap: bwrap, failure: f}
	if !f.Program {
		o.interp = interpreter("/proc/self/exe")
		o = bisect(runWith(bwrap), p, o)
	}
	o.host = readHost(bwrap)
	return diagnose(o)
}

func runWith(bwrap string) runner {
	return func(args []string, data [][]byte) result { return runFor(patience, bwrap, args, data) }
}

// runFor runs bwrap for at most d. os.StartProcess is enough: os/exec would come into every host program.
func runFor(d time.Duration, bwrap string, args []string, data [][]byte) (r result) {
	// bubblewrap's --die-with-parent is tied to the thread that started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var c child
	defer c.close()
	p, err := c.start(bwrap, args, data)
	if err != nil {
		return result{fault: err}
	}
	end := time.Now().Add(d)
	timer := time.AfterFunc(d, func() { kill(p) })
	defer timer.Stop()
	out, errs := c.collect(end.Add(time.Second))
	ended := make(chan *os.ProcessState, 1)
	go func() {
		st, err := p.Wait()
		if err != nil {
			st = nil // somebody else reaped it; what it printed is still there
		}
		ended <- st
	}()
	select {
	case st := <-ended:
		r.read(st)
	case <-time.After(time.Until(end) + 2*time.Second): // not even SIGKILL ends it: it sleeps in the kernel
	}
	r.out, r.err = <-out, <-errs
	r.timedOut = !time.Now().Before(end)
	return r
}

// kill ends bwrap and the first process of its pid namespace, which are one process group.
func kill(p *os.Process) {
	if p.Pid > 1 {
		syscall.Kill(-p.Pid, syscall.SIGKILL)
	}
	p.Kill()
}

func (r *result) read(st *os.ProcessState) {
	if st == nil {
		return
	}
	if ws, ok := st.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		r.signal = int(ws.Signal())
		return
	}
	r.status = st.ExitCode()
}

// child holds the ends of the pipes to one bwrap.
type child struct {
	ours, theirs []*os.File
	out, err     *os.File
}

func (c *child) close() {
	for _, f := range append(c.ours, c.theirs...) {
		f.Close() // the second time for some, which is harmless
	}
}

// emptyInput is a file without content. A host may have no /dev/null, which is what doctor then has to say.
func emptyInput() (*os.File, error) {
	if f, err := os.Open(os.DevNull); err == nil {
		return f, nil
	}
	r, w, err := os.Pipe()
	if err == nil {
		w.Close()
	}
	return r, err
}

func (c *child) start(bwrap string, args []string, data [][]byte) (*os.Process, error) {
	empty, err := emptyInput()
	if err != nil {
		return nil, err
	}
	c.theirs = append(c.theirs, empty)
	for _, end := range []**os.File{&c.out, &c.err} {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		*end, c.ours, c.theirs = r, append(c.ours, r), append(c.theirs, w)
	}
	for range data {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		c.ours, c.theirs = append(c.ours, w), append(c.theirs, r)
	}
	p, err := os.StartProcess(bwrap, append([]string{bwrap}, args...), &os.ProcAttr{
		Dir:   "/",
		Env:   []string{},
		Files: c.theirs,
		Sys:   &syscall.SysProcAttr{Setpgid: true}, // so that a step that hangs can be killed whole
	})
	for _, f := range c.theirs {
		f.Close()
	}
	if err != nil {
		return nil, err
	}
	for i, d := range data {
		go func() {
			w := c.ours[2+i]
			w.Write(d) // an error says that bwrap ended before it read this, which its status says better
			w.Close()
		}()
	}
	return p, nil
}

// collect reads both outputs until they end, at the latest at end: a process that cannot be killed keeps them open.
func (c *child) collect(end time.Time) (out, errs chan string) {
	read := func(f *os.File) chan string {
		ch := make(chan string, 1)
		f.SetReadDeadline(end)
		go func() {
			b, _ := io.ReadAll(io.LimitReader(f, maxOutput))
			io.Copy(io.Discard, f)
			ch <- string(b)
		}()
		return ch
	}
	return read(c.out), read(c.err)
}

// interpreter returns the ELF interpreter that the executable names, "" for a static one. debug/elf would do it too,
// with DWARF and zlib.
func interpreter(exe string) string {
	f, err := os.Open(exe)
	if err != nil {
		return ""
	}
	defer f.Close()
	return parseInterpreter(f)
}
