package hosts

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"strings"
	"testing"
)

// difference is a test that ends otherwise in a cage, and why that is right.
type difference struct {
	test, bare, caged, why string
	root                   bool // only when it is root that runs it
}

// suites are the modules whose tests run in a cage.
var suites = []struct {
	module      string
	pass        int // bare; fewer means that some were not run at all
	differences []difference
}{
	{"gotest.tools/gotestsum", 200, nil},
	{"mvdan.cc/sh/v3", 18000, differences(noCapabilities, "mvdan.cc/sh/v3/interp ",
		"", "TestRunnerRun", "TestRunnerRun/#1326", "TestRunnerRun/#1327", "TestRunnerRun/#1328", "TestRunnerRun/#1329",
		"TestRunnerRun/#1330")},
}

// noCapabilities: these change to a directory whose mode forbids it and want that to fail.
var noCapabilities = difference{
	bare: "fail", caged: "pass", root: true,
	why: "in a cage root has no capabilities, and modes hold for it too",
}

// differences is d for each of the tests of a package; "" is the package itself.
func differences(d difference, pkg string, tests ...string) (ds []difference) {
	for _, test := range tests {
		d.test = pkg + test
		ds = append(ds, d)
	}
	return ds
}

// TestSuites runs the tests of hosts in a cage around go test: each passes, fails or is skipped as it does without.
func TestSuites(t *testing.T) {
	for _, tt := range suites {
		t.Run(strings.ReplaceAll(tt.module, "/", "-"), func(t *testing.T) {
			s := newSite(t, "go")
			dir, err := goTool("", "list", "-m", "-f", "{{.Dir}}", tt.module)
			must(t, err)
			must(t, os.CopyFS(s.dir, os.DirFS(strings.TrimSpace(string(dir)))))
			_, err = goTool(s.dir, "mod", "download")
			must(t, err)
			// With CI set, they leave out what their authors know to fail now and then.
			s = s.set("CI=true").cage("WRITABLE=.", "CACHE=go")
			test := []string{"test", "-json", "-count=1", "./..."}
			bare, caged := results(t, s.bare(test...)), results(t, s.caged(test...))

			passed := 0
			for _, action := range bare {
				if action == "pass" {
					passed++
				}
			}
			if passed < tt.pass {
				t.Errorf("bare, %d pass, want %d", passed, tt.pass)
			}
			want := maps.Clone(bare)
			for _, d := range tt.differences {
				if d.root && os.Getuid() != 0 {
					continue
				}
				if bare[d.test] != d.bare {
					t.Errorf("%s: %q bare, want %q", d.test, bare[d.test], d.bare)
				}
				t.Logf("%s: %s bare, %s caged: %s", d.test, d.bare, d.caged, d.why)
				want[d.test] = d.caged
			}
			for test, action := range want {
				if caged[test] != action {
					t.Errorf("%s: %q caged, want %q", test, caged[test], action)
				}
				delete(caged, test)
			}
			if len(caged) > 0 {
				t.Errorf("only caged: %v", caged)
			}
		})
	}
}

// results maps each test, and each package, to pass, fail or skip.
func results(t *testing.T, r *result) map[string]string {
	t.Helper()
	m := map[string]string{}
	for dec := json.NewDecoder(bytes.NewReader([]byte(r.out))); ; {
		var e struct{ Action, Package, Test, Output string }
		if err := dec.Decode(&e); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v: %s%s", err, r.out, r.err)
		}
		switch e.Action {
		case "pass", "fail", "skip":
			m[e.Package+" "+e.Test] = e.Action
		}
	}
	return m
}
