package selfcage_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/selfcage/selfcage"

// layers is the table of layers: a package imports only packages with a lower number, its own subfolders aside.
// Those below 0 know nothing of cages.
var layers = map[string]int{
	"internal/refusal":    -1,
	"internal/hostfs":     -1,
	"internal/rawclone":   -1,
	"internal/jsonw":      -1,
	"internal/jsontext":   -1,
	"binds":               0,
	"env":                 0,
	"policy":              1,
	"policy/policyfile":   2,
	"approval":            3,
	"manifest":            4,
	"device":              1,
	"toolchain":           1,
	"toolchain/elfhdr":    0,
	"plan":                2,
	"probe":               3,
	"enforce/seccomp":     3,
	"enforce/landlock":    3,
	"egress":              3,
	"internal/launch":     3,
	"report":              4,
	"internal/start":      5,
	"reexec":              6,
	"reexec/auto":         6,
	"agent":               7,
	"cli":                 8,
	"cli/run":             7, // without kong, for cmd/selfcage
	"cmd/selfcage":        9,
	"examples/minimal":    9,
	"examples/sweep":      9,
	"internal/bench":      test, // what it measures is described for tests
	".":                   10,   // only tests
	"internal/sandtest":   test,
	"internal/fakehost":   test,
	"toolchain/internal/": test,
}

// test is the layer of what only tests import.
const test = 100

// layer looks a package up; a name in the table that ends with '/' stands for all packages below it.
func layer(pkg string) (int, bool) {
	if n, ok := layers[pkg]; ok {
		return n, true
	}
	for name, n := range layers {
		if strings.HasSuffix(name, "/") && strings.HasPrefix(pkg, name) {
			return n, true
		}
	}
	return 0, false
}

// listed is what go list says of a package.
type listed struct {
	ImportPath, Dir, Name string
	Imports               []string
	GoFiles, CgoFiles     []string
}

// short is the name of one of our packages in the table, "" for any other.
func short(path string) string {
	if path == module {
		return "."
	}
	rest, ok := strings.CutPrefix(path, module+"/")
	if !ok {
		return ""
	}
	return rest
}

func goTool(t *testing.T, env []string, args ...string) []byte {
	t.Helper()
	tool := filepath.Join(runtime.GOROOT(), "bin", "go")
	if _, err := os.Stat(tool); err != nil {
		if tool, err = exec.LookPath("go"); err != nil {
			t.Skip("no go command")
		}
	}
	var stderr bytes.Buffer
	cmd := exec.Command(tool, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, &stderr)
	}
	return out
}

func ourPackages(t *testing.T, env ...string) (ps []listed) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(goTool(t, env, "list", "-json=ImportPath,Dir,Name,Imports,GoFiles,CgoFiles", "./...")))
	for {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return ps
		} else if err != nil {
			t.Fatal(err)
		}
		ps = append(ps, p)
	}
}

func TestLayers(t *testing.T) {
	for _, goos := range []string{"linux", "darwin", "windows"} {
		for _, p := range ourPackages(t, "GOOS="+goos, "GOARCH=amd64", "CGO_ENABLED=0") {
			name := short(p.ImportPath)
			own, ok := layer(name)
			if !ok {
				t.Errorf("%s is not in the table of layers", name)
			}
			for _, path := range p.Imports {
				to := short(path)
				n, known := layer(to)
				family := strings.HasPrefix(to, name+"/") || strings.HasPrefix(name, to+"/")
				switch {
				case to == "" || !known:
				case n == test && own != test:
					t.Errorf("%s: %s imports %s, which is for tests", goos, name, to)
				case family:
				case n >= own && own != test:
					t.Errorf("%s: %s (%d) imports %s (%d): a package imports only lower layers", goos, name, own, to, n)
				}
			}
		}
	}
}

// What only one package may import, since a host program pays for whatever is linked.
func TestOnlyImporters(t *testing.T) {
	only := map[string]string{
		"github.com/alecthomas/kong":   "cli",
		"github.com/pelletier/go-toml": "policy/policyfile",
		"net/http":                     "agent",
		"golang.org/x/net/bpf":         "",
		"github.com/google/go-cmp":     "",
		"github.com/santhosh-tekuri":   "",
		"github.com/rogpeppe":          "internal/fakehost",
		"testing":                      "",
		module + "/internal/rawclone":  "internal/launch",
	}
	for _, p := range ourPackages(t) {
		name := short(p.ImportPath)
		if n, _ := layer(name); n == test {
			continue
		}
		for _, path := range p.Imports {
			for prefix, owner := range only {
				if (path == prefix || strings.HasPrefix(path, prefix+"/")) && name != owner {
					t.Errorf("%s imports %s, which is for %q alone", name, path, owner)
				}
			}
		}
	}
}

// A host program links only what a cage needs: each of these costs it size, start-up or both.
func TestHostProgramLinks(t *testing.T) {
	banned := map[string]string{
		"github.com/alecthomas/kong":   "a command line of its own belongs to the program",
		"github.com/pelletier/go-toml": "policy files are read by what the program hands in",
		"net/http":                     "9 MB and a goroutine; only the agent serves",
		"net":                          "a resolver and cgo; nothing of a start speaks to the network",
		"testing":                      "registers flags in the program's own flag set",
		"flag":                         "the program may have none, or other ones",
		"fmt":                          "its printing of any type keeps methods that the linker would drop",
		"encoding/json":                "its tables and reflection cost every start, also with the cage off: internal/jsonw writes",
		"encoding/base64":              "makes four alphabets at every start",
		"regexp":                       "compiles at start-up",
		"os/exec":                      "looks programs up in PATH, and a cage is never started by that",
		"os/user":                      "cgo: a program with it needs libc",
		"log":                          "messages have one form, and go to standard error",
		"crypto/tls":                   "nothing of a start speaks to the network",
		"text/template":                "its reflection keeps every exported method of the program",
		"golang.org/x/net/bpf":         "the filter is assembled by hand; bpf prints with fmt",
		"plugin":                       "needs cgo",
		"runtime/cgo":                  "a program that is linked statically must stay so",
		"C":                            "a program that is linked statically must stay so",
	}
	for _, goos := range []string{"linux", "darwin"} {
		deps := strings.Fields(string(goTool(t, []string{"GOOS=" + goos, "GOARCH=amd64"}, "list", "-deps", "./examples/minimal")))
		if !slices.Contains(deps, module+"/plan") {
			t.Fatalf("go list -deps gives %q", deps)
		}
		for _, d := range deps {
			for prefix, reason := range banned {
				if d == prefix || strings.HasPrefix(d, prefix+"/") && strings.Contains(prefix, ".") {
					t.Errorf("%s: a program with reexec links %s: %s", goos, d, reason)
				}
			}
			if n, ok := layer(short(d)); ok && n == test {
				t.Errorf("%s: a program with reexec links %s, which is for tests", goos, d)
			}
		}
	}
}

// Nothing of ours runs before main: no init function, no package variable that must be computed.
func TestNoInitialisation(t *testing.T) {
	exe := filepath.Join(t.TempDir(), "minimal.exe")
	goTool(t, nil, "build", "-o", exe, "./examples/minimal")
	cmd := exec.Command(exe)
	cmd.Env = []string{"GODEBUG=inittrace=1"}
	if root := os.Getenv("SystemRoot"); root != "" {
		cmd.Env = append(cmd.Env, "SystemRoot="+root)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	if !strings.Contains(stderr.String(), "init runtime @") {
		t.Fatalf("no trace of initialisation:\n%s", &stderr)
	}
	allowed := map[string]string{ // package, and what it cannot do later
		"internal/launch": "fetches a command line that did not fit bwrap's before anybody sees half of it; otherwise it looks at os.Args alone",
	}
	for line := range strings.Lines(stderr.String()) {
		if w := strings.Fields(line); len(w) > 1 && allowed[short(w[1])] != "" {
			continue
		}
		if strings.Contains(line, module) {
			t.Errorf("work at package initialisation: %s", line)
		}
	}
}

// Every exported name that others can import says what it is.
func TestDocumented(t *testing.T) {
	for _, p := range ourPackages(t) {
		name := short(p.ImportPath)
		if p.Name == "main" || strings.Contains("/"+name+"/", "/internal/") || name == "." {
			continue
		}
		entries, err := os.ReadDir(p.Dir)
		if err != nil {
			t.Fatal(err)
		}
		packageComment := false
		for _, e := range entries { // of all systems, not only this one
			if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") || e.Type() != fs.FileMode(0) {
				continue
			}
			fset := token.NewFileSet()
			f, err := parser.ParseFile(fset, filepath.Join(p.Dir, e.Name()), nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			packageComment = packageComment || f.Doc != nil
			for _, d := range f.Decls {
				for _, missing := range undocumented(d) {
					t.Errorf("%s/%s: exported %s has no comment", name, e.Name(), missing)
				}
			}
		}
		if !packageComment {
			t.Errorf("package %s has no comment", name)
		}
	}
}

// undocumented lists the exported names of a declaration that have no comment, neither their own nor their group's.
// The methods that make an error or a Stringer explain themselves.
func undocumented(d ast.Decl) (names []string) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Doc != nil || !d.Name.IsExported() {
			return nil
		}
		if d.Recv != nil {
			recv := d.Recv.List[0].Type
			if star, ok := recv.(*ast.StarExpr); ok {
				recv = star.X
			}
			if id, ok := recv.(*ast.Ident); ok && !id.IsExported() {
				return nil
			}
			switch d.Name.Name {
			case "Error", "Unwrap", "String":
				return nil
			}
		}
		return []string{d.Name.Name}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				if s.Name.IsExported() && s.Doc == nil && s.Comment == nil && d.Doc == nil {
					names = append(names, s.Name.Name)
				}
			case *ast.ValueSpec:
				for _, n := range s.Names {
					if n.IsExported() && s.Doc == nil && s.Comment == nil && d.Doc == nil {
						names = append(names, n.Name)
					}
				}
			}
		}
	}
	return names
}
