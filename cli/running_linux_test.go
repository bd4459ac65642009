package cli_test

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"os/exec"
	"testing"
	"time"
)

// running is a selfcage that goes on while the test looks at it.
type running struct {
	t   testing.TB
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	err bytes.Buffer
}

// begin starts selfcage with args. It is killed at the end of the test if it still runs.
func (s *site) begin(args ...string) *running {
	s.t.Helper()
	r := &running{t: s.t, cmd: s.cmd(append([]string{s.bin + "/selfcage"}, args...)...)}
	r.cmd.Stdin = nil
	r.cmd.Stderr = &r.err
	r.cmd.WaitDelay = patience
	in, err := r.cmd.StdinPipe()
	must(s.t, err)
	out, err := r.cmd.StdoutPipe()
	must(s.t, err)
	r.in, r.out = in, bufio.NewReader(out)
	must(s.t, r.cmd.Start())
	s.t.Cleanup(func() { r.cmd.Process.Kill(); r.cmd.Wait() })
	return r
}

// patience is more than anything here takes; what hangs must not take the whole test run with it.
const patience = 20 * time.Second

// line waits for a line of its standard output.
func (r *running) line(want string) {
	r.t.Helper()
	timer := time.AfterFunc(patience, func() { r.cmd.Process.Kill() })
	defer timer.Stop()
	line, err := r.out.ReadString('\n')
	if line != want+"\n" {
		r.t.Fatalf("printed %q, %v, want the line %q\nstderr: %s", line, err, want, r.err.String())
	}
}

// ends waits until nobody holds its standard output any more: the program in the cage has ended, too.
func (r *running) ends() string {
	r.t.Helper()
	timer := time.AfterFunc(patience, func() { r.cmd.Process.Kill(); r.t.Errorf("it does not end") })
	defer timer.Stop()
	rest, err := io.ReadAll(r.out)
	must(r.t, err)
	r.cmd.Wait()
	return string(rest)
}

// serve answers each connection on a port of this host's loopback with text.
func serve(t testing.TB, text string) (port string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			io.WriteString(c, text)
			c.Close()
		}
	}()
	_, port, err = net.SplitHostPort(l.Addr().String())
	must(t, err)
	return port
}
