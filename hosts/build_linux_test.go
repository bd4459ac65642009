package hosts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	_ "github.com/selfcage/selfcage/reexec" // so that go.mod provides what the overlays import
)

const module = "github.com/selfcage/selfcage"

// bin holds the host programs of one test run. It is below /tmp, which a cage replaces by a place of its own.
var bin string

func TestMain(m *testing.M) {
	// Go's own archive is unpacked into a directory that few have in their PATH.
	os.Setenv("PATH", os.Getenv("PATH")+":/usr/local/go/bin")
	os.Exit(run(m))
}

func run(m *testing.M) int {
	var err error
	if bin, err = os.MkdirTemp("/tmp", "selfcage-hosts-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(bin)
	return m.Run()
}

// program builds a host program, once in a test run.
func (h *host) program(t *testing.T) string {
	t.Helper()
	h.once.Do(func() { h.path, h.err = h.build() })
	if h.err != nil {
		t.Fatalf("build %s: %v", h.pkg, h.err)
	}
	return h.path
}

// build hands the compiler another text for the file that has main in it. The file itself stays as it is. The go
// command takes no overlay for the module cache, so the module is copied, and another go.mod names the copy.
func (h *host) build() (string, error) {
	out, err := goTool("", "list", "-json=Dir,GoFiles,Module", h.pkg)
	if err != nil {
		return "", err
	}
	var p struct {
		Dir     string
		GoFiles []string
		Module  struct{ Path, Dir string }
	}
	if err := json.Unmarshal(out, &p); err != nil {
		return "", err
	}
	path := filepath.Join(bin, h.name)
	args := []string{"build", "-o", path}
	if p.Module.Path != "" { // not for cmd/go, which is a part of no module
		src, mod := path+".src", path+".mod"
		if err := os.CopyFS(src, os.DirFS(p.Module.Dir)); err != nil {
			return "", err
		}
		p.Dir = src + strings.TrimPrefix(p.Dir, p.Module.Dir)
		if err := copyFiles("go.mod", mod, "go.sum", path+".sum"); err != nil {
			return "", err
		}
		self, err := filepath.Abs("..")
		if err != nil {
			return "", err
		}
		if _, err := goTool("", "mod", "edit", "-replace="+p.Module.Path+"="+src, "-replace="+module+"="+self, mod); err != nil {
			return "", err
		}
		args = append(args, "-modfile="+mod)
	}
	overlay, err := h.overlay(p.Dir, p.GoFiles)
	if err != nil {
		return "", err
	}
	_, err = goTool("", append(args, "-overlay="+overlay, h.pkg)...)
	return path, err
}

// overlay finds main, writes the other text for its file, and returns what -overlay takes.
func (h *host) overlay(dir string, files []string) (string, error) {
	for _, name := range files {
		file := filepath.Join(dir, name)
		src, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		src, err = addLines(src, h.name)
		if errors.Is(err, errNoMain) {
			continue
		} else if err != nil {
			return "", fmt.Errorf("%s: %w", file, err)
		}
		text, overlay := filepath.Join(bin, h.name+".go"), filepath.Join(bin, h.name+".json")
		replace, err := json.Marshal(map[string]any{"Replace": map[string]string{file: text}})
		if err != nil {
			return "", err
		}
		return overlay, errors.Join(os.WriteFile(text, src, 0o600), os.WriteFile(overlay, replace, 0o600))
	}
	return "", fmt.Errorf("%s: %w", dir, errNoMain)
}

func copyFiles(fromTo ...string) error {
	for pair := range slices.Chunk(fromTo, 2) {
		data, err := os.ReadFile(pair[0])
		if err != nil {
			return err
		}
		if err := os.WriteFile(pair[1], data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

var errNoMain = errors.New("no file declares main")

// addLines makes a program a host program: an import below the package clause, and the first statement of main.
func addLines(src []byte, name string) ([]byte, error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "", src, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(f.Decls, func(d ast.Decl) bool {
		fd, ok := d.(*ast.FuncDecl)
		return ok && fd.Recv == nil && fd.Name.Name == "main"
	})
	if i < 0 {
		return nil, errNoMain
	}
	clause := fset.Position(f.Name.Pos()).Line
	brace := fset.Position(f.Decls[i].(*ast.FuncDecl).Body.Lbrace).Line
	lines := slices.Collect(strings.Lines(string(src)))
	lines = slices.Insert(lines, brace, fmt.Sprintf("\treexec.Init(reexec.Options{Name: %q})\n", name))
	lines = slices.Insert(lines, clause, "import \""+module+"/reexec\"\n")
	return []byte(strings.Join(lines, "")), nil
}

func TestAddLines(t *testing.T) {
	const src = `// func main() {
package main // the package

import (
	"fmt"
)

type T struct{}

func (T) main() {
}

/*
func main() {
*/
func main() { // {
	fmt.Println("x")
}
`
	got, err := addLines([]byte(src), "prog")
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(src, "the package\n", "the package\nimport \"github.com/selfcage/selfcage/reexec\"\n", 1)
	want = strings.Replace(want, "// {\n", "// {\n\treexec.Init(reexec.Options{Name: \"prog\"})\n", 1)
	if string(got) != want {
		t.Errorf("got\n%s", got)
	}
	if _, err := addLines([]byte("package main\nfunc init() {}\n"), "prog"); err == nil {
		t.Error("a file without main was accepted")
	}
}

// goTool runs the go command outside, in dir or in this module.
func goTool(dir string, args ...string) ([]byte, error) {
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return out, fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, &stderr)
	}
	return out, nil
}

// goEnv is what the caller's Go was told, by variables or by go env -w: the jobs have another HOME.
var goEnv = sync.OnceValues(func() (map[string]string, error) {
	out, err := goTool("", "env", "-json", "GOROOT", "GOCACHE", "GOMODCACHE", "GOPROXY", "GOSUMDB", "GONOSUMDB",
		"GONOPROXY", "GOPRIVATE", "GOINSECURE", "GOTOOLCHAIN")
	if err != nil {
		return nil, err
	}
	m := map[string]string{}
	return m, json.Unmarshal(out, &m)
})
