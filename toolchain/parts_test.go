package toolchain

import (
	"encoding/binary"
	"errors"
	"go/build"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/selfcage/selfcage/internal/hostfs"
	"github.com/selfcage/selfcage/internal/refusal"
)

func TestCacheNamed(t *testing.T) {
	fsys := fstest.MapFS{"home/u/.config/go/env": {Data: []byte("GOCACHE=/big/go-build\n")}, "home/u/.ccache/x": {},
		"home/u/.config/pypoetry/config.toml": {Data: []byte("cache-dir = \"~/po\"\n")}, "x/z": {}}
	for _, tt := range []struct {
		name string
		env  string
		path string
		pins string
	}{
		{"go", "", "/big/go-build", "GOCACHE"},
		{"go", "GOENV=off", "/home/u/.cache/go-build", "GOCACHE"},
		{"go", "GOCACHE=/own/", "/own", ""},
		{"gomod", "GOPATH=/g:/h", "/g/pkg/mod /g/pkg/sumdb", "GOMODCACHE"},
		{"gomod", "", "/home/u/go/pkg/mod /home/u/go/pkg/sumdb", "GOMODCACHE GOPATH"},
		{"cargo", "", "/home/u/.cargo/registry /home/u/.cargo/git /home/u/.cargo/.package-cache", "CARGO_HOME"},
		{"cargo", "CARGO_HOME=/c", "/c/registry /c/git /c/.package-cache", ""},
		{"ccache", "", "/home/u/.ccache", "CCACHE_DIR"},
		{"pip", "XDG_CACHE_HOME=/x/", "/x/pip", "PIP_CACHE_DIR"},
		{"npm", "", "/home/u/.npm", "npm_config_cache"},
		{"uv", "UV_CACHE_DIR=/uv", "/uv", ""},
		{"mage", "", "/home/u/.magefile", "MAGEFILE_CACHE"},
		{"huggingface", "HF_HOME=/hf", "/hf/hub", "HF_HUB_CACHE"},
		{"huggingface", "HUGGINGFACE_HUB_CACHE=/hf", "/hf", "HF_HUB_CACHE"},
		{"npm", "NPM_CONFIG_CACHE=/n", "/n", "npm_config_cache"},
		{"go", "GOCACHE=/x/../y", "/y", ""},
		{"poetry", "", "/home/u/po", "POETRY_CACHE_DIR"}, // by its settings
		{"huggingface", "", "/home/u/.cache/huggingface/hub", "HF_HUB_CACHE"},
	} {
		h := Host{View: hostfs.New(fsys), FS: fsys, Env: []string{"HOME=/home/u", tt.env}}
		c, err := CacheNamed(h, "--cache", tt.name)
		var pins []string
		for _, p := range c.Pins {
			pins = append(pins, p.Name)
		}
		if err != nil || strings.Join(append(c.Dirs, c.Files...), " ") != tt.path || strings.Join(pins, " ") != tt.pins || c.Why == "" {
			t.Errorf("%s with %s: %+v, %v; want %s, %s", tt.name, tt.env, c, err, tt.path, tt.pins)
		}
	}
	for name, env := range map[string][]string{"nosuch": {"HOME=/home/u"}, "pip": nil, "uv": {"UV_CACHE_DIR=rel"}} {
		_, err := CacheNamed(Host{View: hostfs.New(fsys), FS: fsys, Env: env}, "--cache", name)
		var r *refusal.Error
		if !errors.As(err, &r) || r.Hint == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRanks(t *testing.T) {
	for _, tt := range []struct {
		env  string
		want bool
	}{
		{"OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=1", true},
		{"OMPI_COMM_WORLD_SIZE=1 OMPI_COMM_WORLD_RANK=0", false},
		{"PMI_RANK=0 PMI_SIZE=4", true},
		{"PMI_RANK=0 PMI_SIZE=1", false},
		{"PMIX_RANK=3", true},
		{"PMIX_RANK=0 SLURM_STEP_NUM_TASKS=1", false},
		{"SLURM_PROCID=0 SLURM_NTASKS=8", false}, // a batch script
		{"SLURM_PROCID=0 SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=8", true},
		{"SLURM_PROCID=0 SLURM_STEP_ID=4294967291 SLURM_STEP_NUM_TASKS=1", false},
		{"FLUX_TASK_RANK=0 FLUX_JOB_SIZE=2", true},
		{"FLUX_TASK_RANK=0 FLUX_JOB_SIZE=1", false},
		{"SLURM_JOB_ID=1 PBS_JOBID=2", false},
	} {
		f := newFinder(Host{Env: strings.Fields(tt.env)})
		f.launcher()
		if got := len(f.out.Pins) > 0; got != tt.want {
			t.Errorf("%s: %v, want %v", tt.env, got, tt.want)
		}
	}
	f := newFinder(Host{Env: []string{"PMIX_RANK=1", "OMPI_MCA_btl=self,tcp"}})
	if f.launcher(); len(f.out.Pins) != 1 || f.out.Pins[0].Name != "PMIX_MCA_gds" {
		t.Errorf("%v: a value of the caller's own is overridden", f.out.Pins)
	}
}

func TestEnvCommand(t *testing.T) {
	for line, want := range map[string]string{
		"python3": "python3", "-S python3 -u": "python3", "-S PATH=/x python": "python", "-i X=1 -u Y prog": "prog",
		"-Spython -x": "python", "--split-string=perl -w": "perl", "": "", "-S": "", "-u": "", "X=1": "",
	} {
		if got := envCommand(strings.Fields(line)); got != want {
			t.Errorf("env %s: %q, want %q", line, got, want)
		}
	}
}

func TestStays(t *testing.T) {
	for _, tt := range []struct {
		text, p, root string
		want          bool
	}{
		{"b", "/r/bin/a", "/r", true},
		{"../lib/b", "/r/bin/a", "/r", true},
		{"../lib/b", "/r/bin/a", "/r/bin", false},
		{"../../r/lib/b", "/r/bin/a", "/r", false}, // not told by the text
		{"x/../../../etc", "/r/bin/a", "/r", false},
		{"..", "/r/bin/a", "/r", false},
		{"/r/x", "/r/bin/a", "/r", true},
		{"/r/../x", "/r/bin/a", "/r", false},
		{"/rx", "/r/bin/a", "/r", false},
	} {
		if got := stays(tt.text, tt.p, tt.root); got != tt.want {
			t.Errorf("%s -> %s in %s: %v", tt.p, tt.text, tt.root, got)
		}
	}
}

func TestPrefixOf(t *testing.T) {
	for dir, want := range map[string]string{
		"/o/x/bin": "/o/x", "/o/x/bin/linux64": "/o/x", "/o/x/lib": "/o/x", "/o/x/lib/pkgconfig": "/o/x", "/o/x/libexec/bin": "/o/x",
		"/o/x/lib/x86_64-linux-gnu/pkgconfig": "/o/x", "/o/x/lib/app/data": "", "/o/x/share/pkgconfig": "/o/x", "/o/x/share": "",
		"/p/node_modules/.bin": "/p/node_modules", "/o/x/tools": "", "/bin": "/",
	} {
		if got := prefixOf(dir); got != want {
			t.Errorf("%s: %q, want %q", dir, got, want)
		}
	}
}

func ldCache(paths ...string) []byte {
	b := append([]byte("glibc-ld.so.cache1.1"), make([]byte, 28)...)
	binary.LittleEndian.PutUint32(b[20:], uint32(len(paths)))
	strs, at := []byte(nil), 48+24*len(paths)
	for _, p := range paths {
		e := make([]byte, 24)
		binary.LittleEndian.PutUint32(e[8:], uint32(at+len(strs)))
		b = append(b, e...)
		strs = append(append(strs, p...), 0)
	}
	return append(b, strs...)
}

func TestLoaderCache(t *testing.T) {
	data := ldCache("/opt/x/lib/liba.so", "/usr/lib/libb.so", "/opt/x/lib/libc.so", "/lib64/libd.so", "/srv/y/libe.so")
	want := []string{"/opt/x/lib", "/srv/y"}
	if got := cacheDirs(string(data)); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := cacheDirs("ld.so-1.7.0\x00 the older format first" + string(data)); !slices.Equal(got, want) {
		t.Errorf("behind the older format: %q, want %q", got, want)
	}
	// The format agrees with what ldconfig reads in this machine's own.
	own, err := os.ReadFile("/etc/ld.so.cache")
	out, err2 := exec.Command("/sbin/ldconfig", "-p").Output()
	if err != nil || err2 != nil {
		t.Skip("no ldconfig")
	}
	for _, d := range cacheDirs(string(own)) {
		if !strings.Contains(string(out), "=> "+d+"/") {
			t.Errorf("%s is not in ldconfig -p", d)
		}
	}
}

func TestHoldsSecret(t *testing.T) {
	for text, want := range map[string]bool{
		"a = 1": false, "proxy=https://u:p@h/": true, "https://h/a:b@c": false, "https://user@h/": false, "x Token": true,
		"git+ssh://git@h:22/x": false, "https://tok_abc@h/": true, "https://0123456789abcdef@h": true, "- https://conda.anaconda.org/t/tk-1/main": true, "- https://conda.anaconda.org/main": false, "//r/:_authToken=1": true,
	} {
		if got := holdsSecret(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// A link that leads in a circle, thousands of links, files that cannot be read: Find ends and says so.
func TestHostile(t *testing.T) {
	m := fstest.MapFS{}
	link := func(p, text string) { m[p] = &fstest.MapFile{Data: []byte(text), Mode: os.ModeSymlink} }
	for i := range 2000 {
		link("opt/many/bin/l"+strings.Repeat("x", i%50)+string(rune('a'+i%26))+strings.Repeat("y", i/50), "../../t/x")
	}
	m["opt/t/x"] = &fstest.MapFile{Mode: 0o755}
	m["opt/many/lib/x"] = &fstest.MapFile{}
	link("opt/loop/bin", "bin")
	m["v/pyvenv.cfg"] = &fstest.MapFile{Data: []byte("home = /v/bin\n")}
	m["v/lib/python3.1/site-packages/a.pth"] = &fstest.MapFile{Data: []byte("/v\n..\n../../../..\n/\n\x00\n")}
	link("v/bin/python", "python3")
	link("v/bin/python3", "python")
	m["w/go.work"] = &fstest.MapFile{Data: []byte("use (\n.\n/\n..\nx\n")}
	m["w/go.mod"] = &fstest.MapFile{Data: []byte("replace a => .\nreplace b =>\nreplace =>\ntoolchain\n")}
	m["w/Cargo.toml"] = &fstest.MapFile{Data: []byte("a={path=\".\"}\npath=\npath\n[x]\npath = '..'\n")}
	m["home/u/.gitconfig"] = &fstest.MapFile{Data: []byte("[include]\npath = ~/.gitconfig\n[user\n")}
	c := newCage(m, "/w")
	f := Find(hostOf(m, []string{"HOME=/home/u", "PATH=/opt/many/bin:/opt/loop/bin:/v/bin", "VIRTUAL_ENV=/v"}, "/w", c), "python", "/v/bin/python", "no", "")
	c.apply(t, f)
	if !slices.ContainsFunc(f.Notes, func(n string) bool { return strings.Contains(n, "not every link") }) {
		t.Errorf("notes %q", f.Notes)
	}
	for _, n := range f.Needs {
		if n.Root == "/" {
			t.Errorf("%+v", n)
		}
	}
	Find(hostOf(m, nil, "", c), "x") // no home, no working directory
}

// A host program links this package: nothing heavy, and nothing that runs at every start.
func TestImports(t *testing.T) {
	for _, dir := range []string{".", "elfhdr"} {
		p, err := build.ImportDir(dir, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range p.Imports {
			if !slices.Contains([]string{"errors", "io", "io/fs", "runtime", "strconv", "strings"}, i) && !strings.HasPrefix(i, "github.com/selfcage/selfcage/") {
				t.Errorf("%s imports %s", dir, i)
			}
		}
	}
}
