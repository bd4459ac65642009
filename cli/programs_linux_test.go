package cli_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/selfcage/selfcage/internal/sandtest"
)

// What real programs stumbled over, each played by a small one that does the same.

// hosts.md 3 and 4: a program that is told of its project by a path, in an argument of its own or behind "=", absolute or not,
// from a directory elsewhere. The path is told of when the run starts, and with a grant the program finds what lies beside
// the file, too.
func TestProjectElsewhere(t *testing.T) {
	s := newSite(t, nil).plant()
	project := s.root + "/jobs/project"
	file := s.write(project+"/Taskfile.yml", "the tasks\n", 0o644)
	s.write(project+"/include.yml", "its include\n", 0o644)
	s.write(s.root+"/jobs/other/x", "x\n", 0o644)
	tool := s.write(s.root+"/opt/tool/bin/tasks", `#!/bin/sh
file=${2:-${1#*=}}
cat "$file" "$(dirname "$file")/include.yml" || { echo 'No Taskfile found' >&2; exit 100; }
`, 0o755)
	e := s.path0(filepath.Dir(tool))
	rel, err := filepath.Rel(s.dir, file)
	must(t, err)
	for _, args := range [][]string{{"-t", file}, {"--taskfile=" + file}, {"-t", rel}, {"--taskfile=" + rel}} {
		e.command(append([]string{tool}, args...)...).ok().prints("the tasks\nits include\n")
		r := e.selfcage(append([]string{"run", "--", "tasks"}, args...)...).is(100).prints("")
		r.says(args[len(args)-1]+" names a file that is not visible inside", "--read or --write would grant it", "No Taskfile found")
		e.selfcage(append([]string{"run", "--read", project, "--", "tasks"}, args...)...).ok().silent().prints("the tasks\nits include\n")
		r = e.run("--read", project, "--", "sh", "-c", `echo x >>"$1"; cat "$2"`, "sh", file, s.root+"/jobs/other/x")
		if r.status == 0 || r.out != "" {
			t.Errorf("status %d: %q", r.status, r.out)
		}
	}
	if got := read(t, file); got != "the tasks\n" {
		t.Errorf("%q", got)
	}
	e.noSecrets("--read", project)
}

// hosts.md 1: a result in a directory beside the granted one is an error of the program's, and not status 0 and no file.
func TestResultBeside(t *testing.T) {
	s := newSite(t, nil)
	s.mkdir("out")
	beside := s.root + "/jobs/pp"
	must(t, os.MkdirAll(beside, 0o755))
	for _, p := range []string{beside + "/o.js", s.root + "/jobs/o.js", s.root + "/o.js", s.home + "/jobs/o.js", s.path("o.js"), "/o.js"} {
		r := s.run("--write", "out", "--", "sh", "-c", `mkdir -p "$(dirname "$1")" && echo result >"$1" && echo Done`, "sh", p)
		if r.says("Read-only file system"); r.status == 0 || r.out != "" || exists(p) {
			t.Errorf("%s: status %d, %q", p, r.status, r.out)
		}
	}
	s.run("--write", "out", "--write", beside, "--", "sh", "-c", `echo result >"$1"`, "sh", beside+"/o.js").ok().silent()
	if got := read(t, beside+"/o.js"); got != "result\n" {
		t.Errorf("%q", got)
	}
}

// hosts.md 2: a report that goes to a place of the cage's own is told of when the run starts, by whatever form of argument it was
// asked for. Where the directory was granted it is on the host.
func TestResultInTmp(t *testing.T) {
	s := newSite(t, nil)
	dir, err := os.MkdirTemp("/tmp", "selfcage-test-")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	tool := s.write("tool", "#!/bin/sh\nf=${2:-${1#*=}}\necho report >\"$f\" && echo ok\n", 0o755)
	for _, args := range [][]string{{"--junitfile", dir + ".xml"}, {"--junitfile=" + dir + ".xml"}} {
		s.selfcage(append([]string{"run", "--", tool}, args...)...).ok().prints("ok\n").
			says(args[len(args)-1]+" lies in a place that ends with the cage", "--write of its directory would keep it")
		if exists(dir + ".xml") {
			t.Error("it is on the host")
		}
	}
	for _, args := range [][]string{{"--junitfile", dir + "/x.xml"}, {"--junitfile=" + dir + "/x.xml"}} {
		s.selfcage(append([]string{"run", "--write", dir, "--", tool}, args...)...).ok().silent().prints("ok\n")
		if got := read(t, dir+"/x.xml"); got != "report\n" {
			t.Errorf("%q", got)
		}
		must(t, os.Remove(dir+"/x.xml"))
	}
}

// hosts.md 5: in the root directory, in the home and above it a run sees no more than in any other, and may write no more.
func TestWorkDirOfEverything(t *testing.T) {
	s := newSite(t, nil).plant()
	s.write(s.home+"/notes", homeSecret, 0o644)
	for _, dir := range []string{"/", s.home, s.root, s.home + "/Documents"} {
		e := s.at(dir)
		r := e.run("--", "sh", "-c", `pwd; cat notes .ssh/id_test home/.ssh/id_test "$1/.ssh/id_test" "$1/notes" b.txt
			echo x >new; echo x >"$1/new"; touch /usr/new; echo ran`, "sh", s.home)
		if dir == s.home+"/Documents" { // somebody's papers, in which he stands
			r.hasNot("id_test\n").has("ran\n")
		} else if r.hasNot(homeSecret); !strings.HasPrefix(r.out, dir+"\n") {
			t.Errorf("%s: %q", dir, r.out)
		}
		if strings.Count(r.err, "Read-only file system") < 2 || exists(filepath.Join(dir, "new")) || exists(s.home+"/new") {
			t.Errorf("%s: %s", dir, r.err)
		}
		if dir != s.home+"/Documents" {
			e.noSecrets()
			for _, flag := range []string{"--write", "--read"} {
				e.run(flag, ".", "--", "echo", "ran").refused("cannot grant " + flag)
			}
		}
	}
}

// exchanging is a bubblewrap that changes something first, as whoever can write a directory could between the moment in
// which the plan is made and that of the mount.
func (s *site) exchanging(name, change string) string {
	s.t.Helper()
	return s.write(s.root+"/exchange/"+name, "#!/bin/sh\n"+change+"\nexec /usr/bin/bwrap \"$@\"\n", 0o755)
}

// A start is refused where a mount shows another file than the one that the plan means: the program itself, the interpreter
// of a script, a directory in PATH, a grant.
func TestAnotherFile(t *testing.T) {
	s := newSite(t, nil)
	s.need("bwrap")
	prog := s.root + "/apart/selfcage"
	interp := s.root + "/lang/run"
	script := s.write("script", "#!"+interp+"\n", 0o755)
	inner := s.path("lang/run") // in the working directory, which is bound as a whole
	bound := s.write("bound", "#!"+inner+"\n", 0o755)
	s.tool(s.root+"/tool-1/bin/tool", "right")
	data, dir := s.write(s.root+"/data/f", "right\n", 0o644), s.root+"/data"
	inDir, before := s.path("command"), s.root+"/tool-0/bin/tool"
	fresh := func() {
		for _, d := range []string{"/apart", "/lang", "/data", "/away", "/tool-0"} {
			must(t, os.RemoveAll(s.root+d))
		}
		must(t, os.MkdirAll(s.root+"/away", 0o755))
		must(t, os.MkdirAll(filepath.Dir(prog), 0o755))
		copyFile(t, s.bin+"/selfcage", prog, 0o755)
		s.write(interp, "#!/bin/sh\necho right\n", 0o755)
		s.write(inner, "#!/bin/sh\necho right\n", 0o755)
		s.write(data, "right\n", 0o644)
		s.tool(s.root+"/tool-1/bin/tool", "right")
		s.tool(inDir, "right")
	}
	put := func(p, content string) string {
		return "printf '" + content + "' >'" + p + "'; chmod 755 '" + p + "'"
	}
	moved := func(p, content string) string { return "mv '" + p + "' '" + s.root + "/away/x'; " + put(p, content) }
	anotherDir := func(d string) string {
		return "mv '" + d + "' '" + s.root + "/away/d'; cp -a '" + s.root + "/away/d' '" + d + "'"
	}
	for _, tt := range []struct {
		name, change, object string
		flags, cmd           []string
	}{
		{"nothing", ":", "", nil, []string{script}},
		{"interpreter", moved(interp, "#!/bin/sh\\necho wrong\\n"), interp, nil, []string{script}},
		{"interpreter of the same content", moved(interp, "#!/bin/sh\\necho right\\n"), interp, nil, []string{script}},
		{"interpreter in a directory", moved(inner, "#!/bin/sh\\necho wrong\\n"), inner, nil, []string{bound}},
		{"command", moved(interp, "#!/bin/sh\\necho wrong\\n"), interp, nil, []string{interp}},
		{"directory in PATH", anotherDir(s.root + "/tool-1"), s.root + "/tool-1", nil, []string{"tool"}},
		{"grant", moved(data, "wrong\\n"), data, []string{"--read", data}, []string{"cat", data}},
		{"writable grant", anotherDir(dir), dir, []string{"--write", dir}, []string{"cat", data}},
		{"working directory", anotherDir(s.dir), s.dir, nil, []string{"echo", "right"}},
		{"command in the working directory", moved(inDir, "#!/bin/sh\\necho wrong\\n"), "/command", nil, []string{"./command"}},
		{"another in a directory before it", put(before, "#!/bin/sh\\necho wrong\\n"), before, nil, []string{"tool"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := *s
			s.t = t
			fresh()
			own := s.exchanging("bwrap", tt.change)
			must(t, os.MkdirAll(filepath.Dir(before), 0o755))
			e := s.path0(filepath.Dir(before), s.root+"/tool-1/bin")
			r := e.command(append(append(append([]string{prog, "run", "--quiet", "--bwrap", own}, tt.flags...), "--"), tt.cmd...)...)
			if tt.object == "" {
				r.ok().silent()
				if !strings.HasPrefix(r.out, "right") {
					t.Errorf("%q", r.out)
				}
				return
			}
			r.refused("cannot make the cage", tt.object, "another ", "nothing was run")
		})
	}
	t.Run("program", func(t *testing.T) {
		sandtest.Need(t, sandtest.CC)
		s := *s
		s.t = t
		fresh()
		src := s.write("wrong.c", "#include <stdio.h>\nint main(void) { return puts(\"wrong\") < 0; }\n", 0o644)
		s.command("/usr/bin/cc", "-o", s.root+"/wrong", src).ok()
		for _, at := range []string{prog, s.path("prog")} { // bound by itself, and in a directory that is bound as a whole
			for _, other := range []string{s.root + "/wrong", s.bin + "/selfcage"} { // what never answers, and another copy of the same
				fresh()
				copyFile(t, s.bin+"/selfcage", at, 0o755)
				own := s.exchanging("bwrap", "mv '"+at+"' '"+s.root+"/away/x'; cp '"+other+"' '"+at+"'")
				r := s.command(at, "run", "--quiet", "--bwrap", own, "--", "echo", "ran")
				if r.is(125).says("cannot make the cage"); strings.Contains(r.out, "ran") {
					t.Errorf("%s: %q", other, r.out)
				}
				if other != s.root+"/wrong" {
					r.refused("another file", "hint: it was replaced")
				}
			}
		}
	})
}

// Open MPI, where it is installed: mpirun inside one cage, and each rank in a cage of its own, where shared memory between two
// process namespaces is a crash or a hang, and ranks without the launcher's variables each believe that they are alone.
func TestToolchainMPI(t *testing.T) {
	s := newSite(t, nil).plant()
	sandtest.Need(t, sandtest.CC)
	mpicc, mpirun := s.need("mpicc"), s.need("mpirun")
	if !strings.Contains(s.command(mpirun, "--version").out, "Open MPI") {
		t.Skip("needs the mpirun of Open MPI")
	}
	src := s.write("sum.c", `#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
	int rank, size;
	const int n = 1 << 18; // too large for the eager protocol
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	double *mine = malloc(n * sizeof *mine), *all = malloc(n * sizeof *all);
	for (int i = 0; i < n; i++)
		mine[i] = rank + 1;
	for (int i = 0; i < 5; i++)
		MPI_Allreduce(mine, all, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	printf("rank %d of %d: %g %g\n", rank, size, all[0], all[n - 1]);
	MPI_Finalize();
	return 0;
}
`, 0o644)
	s.command(mpicc, "-o", s.path("sum"), src).ok()
	e := s.setenv("OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
	ranks := []string{mpirun, "--oversubscribe", "-n", "2"}
	patient := []string{"/usr/bin/timeout", "60"}
	cage, sum := []string{s.bin + "/selfcage", "run", "--quiet", "--"}, []string{"./sum"}
	const want = "rank 0 of 2: 3 3\nrank 1 of 2: 3 3"
	check := func(how string, words ...[]string) {
		t.Helper()
		r := e.command(slices.Concat(patient, slices.Concat(words...))...).ok()
		if out := strings.TrimSpace(sorted(r.out)); out != want {
			t.Errorf("%s: %q\n%s", how, out, r.err)
		}
	}
	check("outside", ranks, sum)
	check("mpirun in one cage", cage, ranks, sum)
	check("each rank in a cage", ranks, cage, sum)
	if sandtest.Have(sandtest.NetNS) {
		check("without a network", cage[:3], []string{"--network", "none", "--"}, ranks, sum)
	}
	e.noSecrets()
}
