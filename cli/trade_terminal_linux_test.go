package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/selfcage/selfcage/internal/sandtest"
)

// screen is a terminal of tmux, outside of every cage, with one program at it.
type screen struct {
	s      *site
	socket string
}

// screen starts a program at a terminal.
func (s *site) screen(name string, words ...string) *screen {
	s.t.Helper()
	sandtest.Need(s.t, sandtest.Tmux)
	x := &screen{s, filepath.Join(s.root, name+".sock")}
	conf := s.write(filepath.Join(s.root, "tmux.conf"), "set -g status off\nset -g escape-time 0\n", 0o644)
	s.t.Cleanup(func() { _ = x.tmux("kill-server").Run() })
	// tmux does not always get to know how a program ended: the shell does.
	words = append([]string{"-f", conf, "new-session", "-d", "-x", "80", "-y", "24", "sh", "-c", `"$@"; echo it ended with $?; exec sleep 1000`, "sh"}, words...)
	out, err := x.tmux(words...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("tmux: %v: %s", err, out)
	}
	return x
}

func (x *screen) tmux(words ...string) *exec.Cmd {
	return x.s.cmd(append([]string{"/usr/bin/tmux", "-S", x.socket}, words...)...)
}

func (x *screen) ask(words ...string) string {
	x.s.t.Helper()
	out, err := x.tmux(words...).Output()
	if err != nil {
		x.s.t.Fatalf("tmux %q: %v", words, err)
	}
	return string(out)
}

// keys types. Each word is what tmux has as a name of a key, or else text.
func (x *screen) keys(words ...string) *screen {
	x.s.t.Helper()
	x.ask(append([]string{"send-keys", "--"}, words...)...)
	return x
}

// shows waits until all of texts are on the screen, and returns it.
func (x *screen) shows(texts ...string) (text string) {
	x.s.t.Helper()
	x.until(func() string {
		text = x.ask("capture-pane", "-p", "-e")
		plain := x.ask("capture-pane", "-p")
		for _, want := range texts {
			if !strings.Contains(plain, want) {
				return fmt.Sprintf("no %q in\n%s", want, plain)
			}
		}
		return ""
	})
	return text
}

// ends waits for the end of the program, and compares its status.
func (x *screen) ends(status int) {
	x.s.t.Helper()
	x.shows("it ended with " + strconv.Itoa(status))
}

// until waits for f to find nothing wrong.
func (x *screen) until(f func() (wrong string)) {
	x.s.t.Helper()
	wrong := ""
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if wrong = f(); wrong == "" {
			return
		}
	}
	x.s.t.Fatal(wrong)
}

// both starts a program at two terminals, outside and inside, and does the same at both: the screens are the same, colours
// included, after each step.
func (s *site) both(words []string, steps [][2]string, status int) {
	s.t.Helper()
	out := s.screen("outside", words...)
	in := s.screen("inside", append([]string{"selfcage", "run", "--quiet", "--"}, words...)...)
	for _, step := range steps {
		if step[0] != "" {
			keys := strings.Fields(step[0])
			out.keys(keys...)
			in.keys(keys...)
		}
		want := out.shows(step[1])
		in.shows(step[1])
		in.until(func() string {
			// Outside, too, the rest of the screen may come later than the text.
			want = out.ask("capture-pane", "-p", "-e")
			if got := in.ask("capture-pane", "-p", "-e"); got != want {
				return fmt.Sprintf("after %q outside\n%s\ninside\n%s", step[0], want, got)
			}
			return ""
		})
	}
	out.keys("q")
	in.keys("q")
	out.ends(status)
	in.ends(status)
}

func (s *site) lines(name string) string {
	var b strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&b, "this is line %d\n", i+1)
	}
	s.write(name, b.String(), 0o644)
	return b.String()
}

// Pagers draw the same screen, search and quit; what they remember ends with the cage.
func TestTradePager(t *testing.T) {
	s := newSite(t, nil)
	less := s.need("less")
	s.lines("numbers")
	s.both([]string{less, "numbers"}, [][2]string{
		{"", "this is line 23"}, {"G", "this is line 1000"}, {"g", "this is line 1\n"}, {"/line Space 500 Enter", "this is line 522"}, {"n", "Pattern not found"}, {"Enter", "this is line 522"},
		{"-N Enter", "500 this is line 500"}, {":e Space nothing-here Enter", "nothing-here: No such file or directory"}, {"Enter", "line 500"},
	}, 0)
	// Inside alone: there is no history outside.
	alone := newSite(t, nil)
	alone.lines("numbers")
	x := alone.screen("inside", "selfcage", "run", "--quiet", "--", less, "numbers")
	x.shows("this is line 23")
	x.keys("/line", "Space", "500", "Enter").shows("this is line 500")
	x.keys("q").ends(0)
	if exists(alone.home+"/.lesshst") || exists(alone.home+"/.local") {
		t.Error("its history is in the home of outside")
	}
}

// An editor writes what was granted; what was not it refuses to, in words, and loses nothing.
func TestTradeEditor(t *testing.T) {
	s := newSite(t, nil)
	found := false
	for _, name := range []string{"vim", "vi"} {
		editor, err := sandtest.Program(name)
		if err != nil {
			continue
		}
		found = true
		t.Run(name, func(t *testing.T) {
			s := *s
			s.t = t
			s.mkdir("out")
			before := s.lines("out/numbers")
			after := strings.Replace(before, "this is line 500\n", "another line\nthis is line 500\n", 1)
			edit := func(socket string, flags ...string) *screen {
				x := s.screen(socket, append(append([]string{"selfcage", "run", "--quiet"}, flags...), "--", editor, "out/numbers")...)
				x.shows("this is line 23")
				x.keys("/line", "Space", "500", "Enter").shows("this is line 500")
				x.keys("O", "another", "Space", "line", "Escape").shows("another line")
				return x
			}
			x := edit(name+"-rw", "--write", "out")
			x.keys(":w", "Enter").shows("written")
			if got := read(t, s.path("out/numbers")); got != after {
				t.Errorf("written: %.100q", got)
			}
			x.keys(":e", "Space", "out/new-"+name, "Enter").shows("out/new-" + name)
			x.keys("i", "fresh", "Escape").shows("fresh")
			x.keys(":wq", "Enter").ends(0)
			if got := read(t, s.path("out/new-"+name)); got != "fresh\n" {
				t.Errorf("the new file: %q", got)
			}
			s.lines("out/numbers")
			x = edit(name + "-ro")
			x.keys(":w", "Enter").shows("E45: 'readonly' option is set")
			x.keys(":w!", "Enter").shows("E212: Can't open file for writing")
			x.keys("Enter", ":w!", "Space", "out/other", "Enter").shows("E212: Can't open file for writing")
			// A place of the cage's own takes it, and ends with the cage.
			x.keys("Enter", ":w", "Space", "/tmp/other", "Enter").shows("written")
			x.keys(":q!", "Enter").ends(0)
			if read(t, s.path("out/numbers")) != before || exists(s.path("out/other")) || exists("/tmp/other") {
				t.Error("written without a grant")
			}
			for _, pattern := range []string{"out/.*.sw?", "out/*~"} {
				if left, _ := filepath.Glob(s.path(pattern)); len(left) > 0 {
					t.Errorf("left behind: %q", left)
				}
			}
			if left, _ := filepath.Glob(s.home + "/.vim*"); len(left) > 0 {
				t.Errorf("in the home of outside: %q", left)
			}
		})
	}
	if !found {
		s.need("vi")
	}
}

// A page of the manual is found, set and paged with the host's settings and macros.
func TestTradeMan(t *testing.T) {
	s := newSite(t, nil)
	man := s.need("man")
	s.write("man/man1/trade.1", ".TH TRADE 1 2024-01-01 selfcage\n.SH NAME\ntrade \\- what it is\n.SH DESCRIPTION\n.B Words\nof it.\n.SH SEE ALSO\n.BR sh (1)\n", 0o644)
	s.alike(nil, "--", man, "./man/man1/trade.1").ok().silent().has("trade - what it is", "TRADE(1)")
	// By name, by the variable and by what /etc has of places.
	s.setenv("MANPATH="+s.path("man")).alike(nil, "--", "sh", "-c", "man -w trade; man trade | head -3").ok().silent().has(s.path("man/man1/trade.1"))
	s.alike(nil, "--", "sh", "-c", "manpath; man -w sh; man no-such-page; echo $?").has("/usr/share/man", "16\n")
	s.need("less")
	s.both([]string{man, "./man/man1/trade.1"}, [][2]string{{"", "trade - what it is"}, {"/SEE Enter", "SEE ALSO"}}, 0)
}

// Terminals of a multiplexer that is started inside work, and end with the cage.
func TestTradeTmux(t *testing.T) {
	sandtest.Need(t, sandtest.Tmux)
	s := newSite(t, nil)
	s = s.setenv("TMPDIR=" + s.mkdir("tmp")) // outside: inside it is another one
	const session = `d=$(mktemp -d); t() { tmux -f /dev/null -S $d/s "$@"; }
t new-session -d -x 40 -y 9 'stty size; echo from a pane; exec sleep 1000'
until t capture-pane -p | grep 'from a pane'; do sleep 0.02; done
t split-window 'sleep 1000'; t list-panes -F '#{pane_width}x#{pane_height}'; t capture-pane -p -t 0`
	s.alike(nil, "--", "bash", "-c", session+`; t kill-server; rm -r $d`).ok().silent().has("from a pane\n40x4\n40x4\n9 40\nfrom a pane\n")
	// At a terminal of another tmux: TMUX names that one's socket, which is not there.
	x := s.screen("outer", "selfcage", "run", "--quiet", "--", "env", "-u", "TMUX", "tmux", "-f", "/dev/null", "new-session", "echo TMUX is $TMUX; exec cat")
	x.shows("TMUX is /tmp/tmux-")
	x.keys("C-b").keys("d").ends(0) // one after the other: what comes at once is taken for pasted text
	mark := "of " + s.root
	s.run("--", "bash", "-c", strings.Replace(session, "exec sleep", ": "+mark+"; exec sleep", 1)).ok()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	must(t, err)
	for _, l := range lines {
		if text, err := os.ReadFile(l); err == nil && strings.Contains(string(text), mark) {
			t.Errorf("%s goes on: %q", l, text)
		}
	}
}

// GNU screen needs a directory of its own for its sockets, as the one in /run is not there. Root's gives its terminals
// away, and inside there is no capability for that.
func TestTradeScreen(t *testing.T) {
	sandtest.Need(t, sandtest.Ordinary)
	s := newSite(t, nil)
	s = s.setenv("TMPDIR=" + s.mkdir("tmp")) // outside: inside it is another one
	s.need("screen")
	s.alike(nil, "--", "bash", "-c", `export SCREENDIR=$(mktemp -d); cd $SCREENDIR
echo 'logfile flush 0' >rc
screen -c rc -dmS trade -L -Logfile log sh -c 'stty size; echo from a window; read x'; until grep -qs 'a window' log; do sleep 0.02; done
screen -S trade -X stuff '\n'; until ! screen -ls >/dev/null; do sleep 0.02; done; cat log; cd /; rm -r $SCREENDIR`).ok().silent().has("24 80\r\nfrom a window\r\n")
}
