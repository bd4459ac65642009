package hosts

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/selfcage/selfcage/internal/sandtest"
)

// host is a program that others wrote.
type host struct {
	name string // MAGE_SANDBOX_MODE=bwrap puts mage into a cage
	pkg  string // its main package; go.mod has the version
	slow bool   // left out unless asked for

	once sync.Once
	path string
	err  error
}

var hosts = []*host{
	{name: "gosh", pkg: "mvdan.cc/sh/v3/cmd/gosh"},
	{name: "reflex", pkg: "github.com/cespare/reflex"},
	{name: "benchstat", pkg: "golang.org/x/perf/cmd/benchstat"},
	{name: "mage", pkg: "github.com/magefile/mage"},
	{name: "gotestsum", pkg: "gotest.tools/gotestsum"},
	{name: "hey", pkg: "github.com/rakyll/hey", slow: true},
	{name: "pprof", pkg: "github.com/google/pprof", slow: true},
	{name: "esbuild", pkg: "github.com/evanw/esbuild/cmd/esbuild", slow: true},
	{name: "go", pkg: "cmd/go", slow: true},
}

// chosenVar chooses hosts: "all", or names separated by commas; empty leaves the slow ones out.
const chosenVar = "SELFCAGE_HOSTS"

// choose skips the test where its host was not chosen, and says how to choose it.
func choose(t *testing.T, name string) *host {
	t.Helper()
	find := func(name string) *host {
		i := slices.IndexFunc(hosts, func(h *host) bool { return h.name == name })
		if i < 0 {
			t.Fatalf("there is no host %q", name)
		}
		return hosts[i]
	}
	h := find(name)
	chosen := os.Getenv(chosenVar)
	yes := chosen == "all" || chosen == "" && !h.slow
	if chosen != "" && chosen != "all" {
		for n := range strings.SplitSeq(chosen, ",") {
			yes = find(n) == h || yes
		}
	}
	if !yes {
		t.Skipf("needs %s=all or %s=%s: not chosen", chosenVar, chosenVar, name)
	}
	return h
}

// where writes a script that tells where a child of the host program is, and what it sees of the home.
func (s *site) where() string {
	return s.write("where.sh", "test -e /run/selfcage/plan.json && echo caged || echo bare\n"+
		"cat "+s.home+"/.ssh/id_test 2>&1 || :\n")
}

func wantWhere(t *testing.T, bare, caged string) {
	t.Helper()
	if !strings.Contains(bare, "bare\n"+homeSecret+"\n") {
		t.Errorf("a child of the bare run says\n%s", bare)
	}
	if !strings.Contains(caged, "caged\ncat: ") || !strings.Contains(caged, "No such file") ||
		strings.Contains(caged, homeSecret) {
		t.Errorf("a child of the caged run says\n%s", caged)
	}
}

func TestGosh(t *testing.T) {
	s := newSite(t, "gosh")
	s.write("data", "b\na\n")
	s.same("-c", `cat <<<heredoc; sort data | tr '\n' ' '; echo "$PWD" {1..3}; (exit 4) || echo $?; cat absent; exit 3`).
		is(3).quiet().has("heredoc\na b " + s.dir + " 1 2 3\n4\n").says("absent: No such file")
	script := s.where()
	wantWhere(t, s.bare(script).out, s.caged(script).out)

	s.bare("-c", "echo x >out").is(0)
	s.caged("-c", "echo y >out").is(1).says("read-only file system")
	wantFile(t, s.dir+"/out", "x\n")
	s.cage("WRITABLE=.").caged("-c", "echo y >out").is(0)
	wantFile(t, s.dir+"/out", "y\n")
}

// reflex, in a terminal, starts a command in a terminal of its own for each file that changes, until Ctrl-C.
func TestReflex(t *testing.T) {
	s := newSite(t, "reflex")
	script := "echo changed {}; tty | sed 's/[0-9]*$//'; sh " + filepath.Base(s.where()) + "; echo done"
	var said [2]string
	for i, caged := range []bool{false, true} {
		cmd := s.command(caged, "-r", `\.txt$`, "--decoration=none", "--", "sh", "-c", script)
		terminal, err := pty.Start(cmd)
		must(t, err)
		defer terminal.Close()
		lines := make(chan string)
		go func() {
			defer close(lines)
			// It ends with EIO, when nobody has the other end open any more.
			for in := bufio.NewScanner(terminal); in.Scan(); {
				lines <- in.Text()
			}
		}()
		// It does not tell when it begins to watch, and acts when nothing has changed for 300 ms.
		touch, patience := time.NewTicker(time.Second), time.After(time.Minute)
		for open := true; open; {
			var line string
			select {
			case <-patience:
				_ = cmd.Process.Kill()
				t.Fatalf("caged %v: nothing more came after %q", caged, said[i])
			case <-touch.C:
				s.write("w.txt", "x")
			case line, open = <-lines:
				said[i] += line + "\n"
			}
			if line == "done" {
				touch.Stop()
				_, err := terminal.WriteString("\x03")
				must(t, err)
			}
		}
		must(t, cmd.Wait())
		if !strings.HasPrefix(said[i], "changed w.txt\n/dev/pts/\n") ||
			!strings.Contains(said[i], "Interrupted (interrupt). Cleaning up children...\n") {
			t.Errorf("caged %v: %q", caged, said[i])
		}
	}
	s.wasCaged(0)
	wantWhere(t, said[0], said[1])
}

const (
	oldBench = "BenchmarkX 100 10 ns/op\nBenchmarkX 100 11 ns/op\n"
	newBench = "BenchmarkX 100 20 ns/op\nBenchmarkX 100 21 ns/op\n"
)

// A missing file is no error to benchstat: without the note, status 0 and half a table.
func TestBenchstat(t *testing.T) {
	s := newSite(t, "benchstat")
	s.write("old.txt", oldBench)
	s.write("new.txt", newBench)
	s.same("old.txt", "new.txt").is(0).quiet().has("10.50n", "20.50n", "old.txt", "new.txt")

	tmp, err := os.MkdirTemp("/tmp", "selfcage-hosts-")
	must(t, err)
	defer os.RemoveAll(tmp)
	for _, dir := range []string{tmp, s.home} {
		before, after := s.write(dir+"/old.txt", oldBench), s.write(dir+"/new.txt", newBench)
		bare := s.bare(before, after).is(0).has("10.50n", "20.50n")
		s.caged(before, after).lacks("10.50n", "20.50n").says(before+": no such file").
			noted("argument 1 "+before+" names a file that is not visible inside", "BENCHSTAT_SANDBOX_READABLE").
			noted("argument 2 " + after + " names a file that is not visible inside")
		s.cage("READABLE="+before+":"+after).caged(before, after).quiet().like(bare)
	}
}

const magefile = `//go:build mage

package main

import (
	"fmt"
	"os"
	"os/exec"
)

func Hello() error {
	fmt.Println("hello", len(os.Getenv("HOME")) > 0)
	cmd := exec.Command("sh", "where.sh")
	cmd.Stdout = os.Stdout
	return cmd.Run()
}

func Fail() error { return fmt.Errorf("it failed") }
`

// mage compiles the magefile with go, and starts what came out.
func TestMage(t *testing.T) {
	s := newSite(t, "mage")
	s.write("magefile.go", magefile)
	s.where()
	s = s.cage("WRITABLE=.", "CACHE=go") // it generates a file beside the magefile

	wantWhere(t, s.bare("hello").is(0).has("hello true\n").out, s.caged("hello").is(0).has("hello true\n").out)
	s.same("-l").is(0).has("fail", "hello")
	s.same("fail").is(1).says("Error: it failed")
	s.same("absent").is(2).says("Unknown target specified")

	// The magefile's program is in ~/.magefile, which is private, and so made again in each run, unless granted.
	s = s.set("MAGEFILE_HASHFAST=1")
	const fresh, cached = "no existing exe, creating new", "Running existing exe"
	must(t, os.RemoveAll(s.home+"/.magefile"))
	for range 2 {
		s.caged("-debug", "hello").is(0).says(fresh).lacks(cached)
	}
	if exists(s.home + "/.magefile") {
		t.Error("the cache of mage was made where nothing was granted")
	}
	s = s.cage("WRITABLE=.", "CACHE=go,mage")
	s.caged("-debug", "hello").is(0).quiet().says(fresh).lacks(cached)
	s.caged("-debug", "hello").is(0).quiet().says(cached).lacks(fresh).has("hello true\ncaged\n")
	s.bare("-debug", "hello").is(0).says(cached).lacks(fresh).has("hello true\nbare\n")
	s.cage("WRITABLE=.", "CACHE=go").caged("-debug", "hello").is(0).says(fresh).lacks(cached).
		noted(s.home+"/.magefile", "MAGE_SANDBOX_CACHE=mage")
}

const goTests = `package proj

import (
	"os"
	"os/exec"
	"testing"
)

func TestPass(t *testing.T) {}

func TestSkip(t *testing.T) { t.Skip("for a reason") }

func TestWhere(t *testing.T) {
	out, err := exec.Command("sh", "where.sh").CombinedOutput()
	t.Logf("%v\n%s", err, out)
}

func TestFail(t *testing.T) {
	if os.Getenv("FAIL") != "" {
		t.Fatal("as asked")
	}
}
`

// project writes a module with the tests of goTests.
func (s *site) project() {
	s.t.Helper()
	s.write("go.mod", "module example.com/proj\n\ngo 1.25\n")
	s.write("proj_test.go", goTests)
	s.where()
}

func TestGotestsum(t *testing.T) {
	s := newSite(t, "gotestsum")
	s.project()
	s = s.cage("CACHE=go")
	test := func(args ...string) []string { return append(args, "--", "-count=1", "./...") }

	s.same(test("--format=testname")...).is(0).quiet().
		has("PASS TestPass", "SKIP TestSkip", "DONE 4 tests, 1 skipped in ")
	s.set("FAIL=1").same(test("--format=pkgname")...).is(1).
		has("=== FAIL: . TestFail", "as asked", "DONE 4 tests, 1 skipped, 1 failure in ")
	verbose := test("--format=standard-verbose")
	wantWhere(t, unindent(s.bare(verbose...).out), unindent(s.caged(verbose...).out))

	// A report in a private /tmp is written, and lost.
	lost := fmt.Sprintf("/tmp/selfcage-hosts-%d.xml", os.Getpid())
	s.caged(test("--junitfile", lost)...).is(0).has("DONE 4 tests").
		noted("argument 2 "+lost, "ends with the cage", "GOTESTSUM_SANDBOX_WRITABLE")
	s.caged(test("--junitfile="+lost)...).is(0).noted("argument 1 --junitfile="+lost, "ends with the cage")
	if exists(lost) {
		t.Error("the report was not lost")
	}
	reports := filepath.Join(s.root, "reports")
	must(t, os.Mkdir(reports, 0o755))
	kept := filepath.Join(reports, "x.xml")
	s.caged(test("--junitfile", kept)...).is(3).says("failed to open JUnit file")
	if exists(kept) {
		t.Error("the report was written where nothing was granted")
	}
	s.cage("CACHE=go", "WRITABLE="+reports).caged(test("--junitfile", kept)...).is(0).quiet()
	for _, part := range []string{`<testsuites tests="4" failures="0"`, `name="TestPass"`, `<skipped`} {
		if xml := read(t, kept); !strings.Contains(xml, part) {
			t.Errorf("the report lacks %s:\n%s", part, xml)
		}
	}
}

// unindent takes away what t.Log puts before each line.
func unindent(text string) string { return strings.ReplaceAll(text, "\n        ", "\n") }

// hey ends with status 0 also when no request was answered.
func TestHey(t *testing.T) {
	s := newSite(t, "hey")
	var mu sync.Mutex
	bodies := map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
		}
		mu.Lock()
		defer mu.Unlock()
		bodies[string(body)]++
		fmt.Fprint(w, "answer")
	}))
	defer server.Close()
	got := func(body string, want int) {
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		if bodies[body] != want {
			t.Errorf("the server was sent %v, want %d of %q", bodies, want, body)
		}
		clear(bodies)
	}

	s.write("body.txt", "from the project")
	args := []string{"-n", "20", "-c", "2", "-m", "POST", "-D", "body.txt", server.URL}
	s.bare(args...).is(0).has("[200]\t20 responses", "Total data:\t120 bytes")
	got("from the project", 20)
	s.caged(args...).is(0).quiet().has("[200]\t20 responses", "Total data:\t120 bytes")
	got("from the project", 20)

	secret := filepath.Join(s.home, ".ssh/id_test")
	args = []string{"-n", "2", "-c", "1", "-m", "POST", "-D", secret, server.URL}
	s.bare(args...).is(0).has("[200]\t2 responses")
	got(homeSecret+"\n", 2)
	s.caged(args...).is(1).says(secret + ": no such file").noted("argument 8 " + secret)
	got(homeSecret+"\n", 0)

	// Without a network there is only the cage's own loopback, where nobody listens. hey says so in its table, and
	// ends with status 0: it is the reader of the table who must see it.
	t.Run("no network", func(t *testing.T) {
		sandtest.Need(t, sandtest.NetNS)
		s.cage("NETWORK=none").caged("-n", "20", "-c", "2", server.URL).is(0).
			has("Error distribution:", "[20]", "connect: connection refused").lacks("responses")
		got("", 0)
	})
}

const profiled = `package main

import (
	"os"
	"runtime/pprof"
	"time"
)

func main() {
	f, err := os.Create("cpu.prof")
	if err != nil {
		panic(err)
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		panic(err)
	}
	burn(time.Now().Add(time.Second))
	pprof.StopCPUProfile()
	if err := f.Close(); err != nil {
		panic(err)
	}
}

//go:noinline
func burn(until time.Time) {
	for time.Now().Before(until) { // here it burns
	}
}
`

func TestPprof(t *testing.T) {
	s := newSite(t, "pprof")
	// The profile names the source by its absolute path.
	hidden := filepath.Join(s.home, "src")
	for _, dir := range []string{s.dir, hidden} {
		s.write(dir+"/go.mod", "module example.com/burn\n\ngo 1.25\n")
		s.write(dir+"/burn.go", profiled)
		if _, err := goTool(dir, "build", "-o", "burn", "."); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("./burn")
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	s.same("-top", "burn", "cpu.prof").is(0).quiet().has("File: burn", "Type: cpu", "main.burn")
	s.same("-list=main.burn", "burn", "cpu.prof").is(0).quiet().
		has("ROUTINE ======================== main.burn in "+s.dir+"/burn.go", "here it burns")
	s.cage("WRITABLE=.").same("-top", "-output=top.txt", "burn", "cpu.prof").is(0)
	if top := read(t, s.dir+"/top.txt"); !strings.Contains(top, "main.burn") {
		t.Errorf("top.txt: %s", top)
	}

	must(t, os.Rename(hidden+"/cpu.prof", s.dir+"/hidden.prof"))
	s.bare("-list=main.burn", "hidden.prof").is(0).has("here it burns")
	s.caged("-list=main.burn", "hidden.prof").is(0).has("main.burn", hidden+"/burn.go", "no such file").lacks("here it burns")
	s.cage("READABLE="+hidden).caged("-list=main.burn", "hidden.prof").is(0).has("here it burns")
}

// A file written beside a grant once vanished, and esbuild said that it was done.
func TestEsbuild(t *testing.T) {
	s := newSite(t, "esbuild")
	s.write("a.js", "import { six } from './b.js'\nconsole.log(six * 7)\n")
	s.write("b.js", "export const six = 6\n")
	bundle := func(out string) []string { return []string{"--bundle", "--log-level=info", "a.js", "--outfile=" + out} }
	out, sibling := filepath.Join(s.dir, "o.js"), filepath.Join(s.root, "sibling/o.js")

	s.bare(bundle("o.js")...).is(0).says("Done in")
	want := read(t, out)
	must(t, os.Remove(out))
	s.caged(bundle("o.js")...).is(1).says("read-only file system")
	if exists(out) {
		t.Error("written where nothing was granted")
	}
	s.cage("WRITABLE=.").caged(bundle("o.js")...).is(0).quiet().says("Done in")
	wantFile(t, out, want)
	s.cage("WRITABLE=.").same("--bundle", "a.js").is(0).has("six * 7")

	must(t, os.Mkdir(filepath.Dir(sibling), 0o755))
	for _, name := range []string{sibling, "../sibling/o.js"} {
		s.cage("WRITABLE=.").caged(bundle(name)...).is(1).says("read-only file system")
		if exists(sibling) {
			t.Fatal("written where nothing was granted")
		}
		s.cage("WRITABLE=.:../sibling").caged(bundle(name)...).is(0).quiet().says("Done in")
		wantFile(t, sibling, want)
		must(t, os.Remove(sibling))
	}

	hidden := s.write(s.home+"/c.js", "console.log('of the home')\n")
	s.bare("--bundle", hidden).is(0).has("of the home")
	s.caged("--bundle", hidden).is(1).says("Could not resolve").lacks("of the home").noted("argument 2 " + hidden)

	t.Run("node", func(t *testing.T) {
		node, err := exec.LookPath("node")
		if err != nil {
			t.Skipf("needs node: %v", err)
		}
		if got, err := exec.Command(node, out).CombinedOutput(); err != nil || string(got) != "42\n" {
			t.Errorf("what was bundled says %q, %v", got, err)
		}
	})
}

const mainGo = `package main

import (
	"fmt"
	"os"
	"os/exec"

	"example.com/lib"
	"github.com/kballard/go-shellquote"
)

func main() {
	fmt.Println(lib.Name, shellquote.Join("a b", "c"))
	cmd := exec.Command("sh", "where.sh")
	cmd.Stdout = os.Stdout
	if err := cmd.Run(); err != nil {
		panic(err)
	}
}
`

// goProject writes a module that needs another one beside it and a third one from the module cache.
func (s *site) goProject() {
	s.t.Helper()
	s.project()
	s.write("go.mod", `module example.com/proj

go 1.25

require (
	example.com/lib v0.0.0
	github.com/kballard/go-shellquote v0.0.0-20180428030007-95032a82bc51
)

replace example.com/lib => ../lib
`)
	s.write("go.sum", read(s.t, "go.sum"))
	s.write("cmd/main.go", mainGo)
	s.write(s.root+"/lib/go.mod", "module example.com/lib\n\ngo 1.25\n")
	s.write(s.root+"/lib/lib.go", "package lib\n\nconst Name = \"lib\"\n")
}

func TestGo(t *testing.T) {
	s := newSite(t, "go")
	s.goProject()
	lib := []string{"another source tree is visible read-only", s.root + "/lib"}
	s = s.set("GOPROXY=off").cage("CACHE=go")

	s.same("version").is(0).justNoted(lib...)
	s.same("env", "GOROOT", "GOMODCACHE", "GOCACHE", "GOVERSION", "GOMOD").is(0).has(s.dir + "/go.mod")
	s.same("list", "-deps", "./cmd").is(0).has("example.com/lib\n", "github.com/kballard/go-shellquote\n")
	s.same("vet", "./...").is(0)
	s.same("test", "-count=1", "-run=Pass|Skip", "-v", ".").is(0).justNoted(lib...).has("--- SKIP: TestSkip", "ok  \texample.com/proj")
	s.set("FAIL=1").same("test", "-count=1", "-run=Fail", ".").is(1).has("as asked", "FAIL\texample.com/proj")
	s.same("build", "./absent").is(1).says("directory not found")
	test := []string{"test", "-count=1", "-v", "-run=Where", "."}
	wantWhere(t, unindent(s.bare(test...).out), unindent(s.caged(test...).out))
	bare, caged := s.bare("run", "./cmd").is(0), s.caged("run", "./cmd").is(0).has("lib 'a b' c\ncaged\n")
	wantWhere(t, bare.out, caged.out)

	s.caged("build", "-o", "prog", "./cmd").is(1).says("read-only file system")
	if exists(s.dir + "/prog") {
		t.Error("a program was written where nothing was granted")
	}
	s.cage("CACHE=go", "WRITABLE=.").caged("build", "-o", "prog", "./cmd").is(0).justNoted(lib...)
	cmd := exec.Command("./prog")
	cmd.Dir = s.dir
	if out, err := cmd.Output(); err != nil || string(out) != "lib 'a b' c\nbare\n"+homeSecret+"\n" {
		t.Errorf("what was built says %q, %v", out, err)
	}

	// The module cache is read-only: what is there is enough, and what is not there cannot be put there, unless granted.
	told, err := goEnv()
	must(t, err)
	modules := filepath.Join(s.root, "mod")
	must(t, os.Mkdir(modules, 0o755))
	visible := "READABLE=" + told["GOMODCACHE"]
	s = s.set("GOMODCACHE="+modules, "GOPROXY=file://"+told["GOMODCACHE"]+"/cache/download", "GOFLAGS=-modcacherw")
	build := []string{"build", "-o", "/dev/null", "./cmd"}
	s.cage("CACHE=go", visible).caged(build...).is(1).says("read-only file system")
	s.cage("CACHE=go,gomod", visible).caged(build...).is(0)
	if !exists(modules + "/github.com/kballard") {
		t.Error("nothing was downloaded")
	}
	s.cage("CACHE=go").caged(build...).is(0)
}

var compiles = regexp.MustCompile(`(?m)/compile .* -p (\S+)`)

// compiled lists what a go build -x compiled.
func compiled(r *result) (names []string) {
	for _, m := range compiles.FindAllStringSubmatch(r.err, -1) {
		names = append(names, m[1])
	}
	return names
}

// The build cache begins empty in each run; where it is granted, the second run finds all that the first one made.
func TestGoCache(t *testing.T) {
	s := newSite(t, "go")
	s.goProject()
	lib := []string{"another source tree is visible read-only", s.root + "/lib"}
	s.write("small/main.go", "package main\n\nimport \"example.com/lib\"\n\nfunc main() { println(lib.Name) }\n")
	s = s.set("GOPROXY=off").unset("GOCACHE")
	build := []string{"build", "-x", "-o", "/dev/null", "./small"}
	all := compiled(s.caged(build...).is(0))
	for _, p := range []string{"runtime", "example.com/lib", "main"} {
		if !slices.Contains(all, p) {
			t.Errorf("with an empty cache: compiled %q", all)
		}
	}
	if exists(s.home + "/.cache") {
		t.Error("the cache of go was made where nothing was granted")
	}
	granted := s.cage("CACHE=go")
	for _, tt := range []struct {
		what string
		got  []string
		want []string
	}{
		{"without the cache, again", compiled(s.caged(build...).is(0)), all},
		{"with the cache, which is empty", compiled(granted.caged(build...).is(0).justNoted(lib...)), all},
		{"with the cache of an earlier run", compiled(granted.caged(build...).is(0).justNoted(lib...)), nil},
		{"bare after caged ones", compiled(granted.bare(build...).is(0)), nil},
	} {
		slices.Sort(all)
		slices.Sort(tt.got)
		if !slices.Equal(tt.got, tt.want) {
			t.Errorf("%s: compiled %q\nwant %q", tt.what, tt.got, tt.want)
		}
	}
	s.cage("WRITABLE="+s.home+"/.cache/go-build").caged("env", "GOCACHE").is(0).has(s.home + "/.cache/go-build\n")
	s.caged("env", "GOCACHE").is(0).noted(s.home+"/.cache/go-build", "GO_SANDBOX_CACHE=go").lacks(s.home)
}

func wantFile(t *testing.T, name, want string) {
	t.Helper()
	if got := read(t, name); got != want {
		t.Errorf("%s holds %q, want %q", name, got, want)
	}
}
