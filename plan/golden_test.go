package plan

import (
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/selfcage/selfcage/binds"
	"github.com/selfcage/selfcage/internal/fakehost"
)

var update = flag.Bool("update", false, "rewrite the golden plans in testdata/golden")

// start is one start of a program on a fake host.
type start struct {
	name string
	host string
	Facts
	Request
}

// who is the account of each host that runs things there.
var who = map[string]struct {
	uid, gid int
	env      []string
}{
	"debian12":   {1000, 1000, []string{"HOME=/home/ada", "USER=ada", "PATH=/home/ada/bin:/usr/local/bin:/usr/bin:/bin"}},
	"fedora41":   {1000, 1000, []string{"HOME=/home/jan", "USER=jan", "PATH=/home/jan/.local/bin:/usr/local/bin:/usr/bin"}},
	"alpine":     {0, 0, []string{"HOME=/root", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}},
	"nixos":      {1000, 100, []string{"HOME=/home/eelco", "USER=eelco", "PATH=/run/wrappers/bin:/home/eelco/.nix-profile/bin:/etc/profiles/per-user/eelco/bin:/nix/var/nix/profiles/default/bin:/run/current-system/sw/bin"}},
	"rocm":       {2000, 2000, []string{"HOME=/home/hip", "USER=hip", "PATH=/opt/rocm/bin:/usr/local/bin:/usr/bin:/bin", "ROCM_PATH=/opt/rocm"}},
	"resolvconf": {1000, 1000, []string{"HOME=/home/u", "USER=u", "PATH=/usr/bin:/bin"}},
	"wsl":        {1000, 1000, []string{"HOME=/home/u", "USER=u", "PATH=/usr/local/bin:/usr/bin:/mnt/c/Windows/System32", "WSL_INTEROP=/run/WSL/9_interop"}},
	"cluster":    {5077, 500, []string{"HOME=/home/kim", "USER=kim", "PATH=/opt/modules/gcc/13/bin:/usr/bin", "SLURM_JOB_ID=77", "SLURM_PROCID=3"}},
	"worktree":   {1000, 1000, []string{"HOME=/home/u", "USER=u", "PATH=/usr/bin:/bin"}},
}

// on is a start of exe on a host, in dir, with arguments.
func on(t testing.TB, host, exe, dir string, args ...string) start {
	t.Helper()
	w := who[host]
	s := start{name: host, host: host}
	s.Facts = Facts{
		Host: fakehost.Load(t, host), Args: args, Operands: 1, Env: append([]string{"PWD=" + dir}, w.env...), Dir: dir,
		Exe: Exe{Path: exe, Intact: true}, UID: w.uid, GID: w.gid,
	}
	s.Request = Request{Name: "demo", Prefix: "DEMO_SANDBOX_"}
	return s
}

func (s start) called(name string) start { s.name = name; return s }

// env puts variables before those that are there: the first of a name counts.
func (s start) env(kv ...string) start {
	s.Env = append(append([]string(nil), kv...), s.Env...)
	return s
}

func (s start) read(paths ...string) start  { return s.grant(binds.ReadOnly, "--read", paths) }
func (s start) write(paths ...string) start { return s.grant(binds.ReadWrite, "--write", paths) }
func (s start) device(paths ...string) start {
	return s.grant(binds.Device, "--device", paths)
}

func (s start) grant(k binds.Kind, by string, paths []string) start {
	s.Grants = append([]Grant(nil), s.Grants...)
	for _, p := range paths {
		s.Grants = append(s.Grants, Grant{Path: p, Access: k, By: by})
	}
	return s
}

// goldens are the starts whose whole plan is written down, for people to review.
func goldens(t testing.TB) []start {
	gone := on(t, "debian12", "/home/ada/src/demo/old", "/home/ada/src/demo", "./old").called("debian12-program-deleted")
	gone.Exe = Exe{Path: "/home/ada/src/demo/old", Data: []byte("\x7fELF of the old build")}
	net := on(t, "resolvconf", "/usr/bin/demo", "/home/u/p", "demo").called("resolvconf-no-network")
	net.NoNet = true
	filtered := on(t, "debian12", "/usr/local/bin/demo", "/home/ada/src/demo", "demo", "sweep", "--in", "/tmp/work/in.txt",
		"--out=/tmp/result.json", "/home/ada/Downloads/data.csv", "main.go", "cmd/../main.go").
		env("SSH_AUTH_SOCK=/run/user/1000/keyring/ssh", "XDG_RUNTIME_DIR=/run/user/1000", "TMPDIR=/tmp/user/1000", "LANG=en_GB.UTF-8",
			"GITHUB_TOKEN=ghp_0123456789", "DATABASE_URL=postgres://ada:pw@db/x", "OLDPWD=/home/ada", "TERM=xterm-256color",
			"LD_LIBRARY_PATH=/opt/lib", "DISPLAY=:0", "GOFLAGS=-mod=mod").called("debian12")
	filtered.Filter = make([]byte, 41*sockFilterSize)
	enforced := on(t, "debian12", "/home/ada/src/demo/demo", "/home/ada/src/demo", "./demo", "--in", "/srv/data/set.bin").write(".").
		read("/home/ada/.cache/huggingface").hide(".env").protect("cmd").called("debian12-enforced").env("JAVA_HOME=/usr/lib/jvm/java-17-openjdk-amd64",
		"VIRTUAL_ENV=/home/ada/venv", "PYTHONPATH=/home/ada/lib", "LD_LIBRARY_PATH=/opt/lib", "SLURM_PROCID=0", "GITHUB_SHA=0", "TERM=xterm",
		"HTTPS_PROXY=http://proxy:3128", "SSL_CERT_FILE=/home/ada/corp.pem", "LANG=C.UTF-8", "XDG_CACHE_HOME=/home/ada/.cache", "MAKEFLAGS= --jobserver-auth=3,4")
	repository(enforced, "home/ada/src/demo/.git", "[core]\n\thooksPath = cmd/hooks\n")
	for _, name := range []string{"home/ada/venv/pyvenv.cfg", "home/ada/venv/bin/python", "home/ada/lib/x.py", "opt/lib/libx.so", "home/ada/corp.pem",
		"home/ada/.cache/huggingface/hub/model", "home/ada/.cache/huggingface/token", "sys/devices/system/cpu/online",
		"sys/devices/system/node/online", "sys/kernel/mm/hugepages/x", "sys/devices/virtual/dmi/id/product_uuid"} {
		file(enforced, name, "x")
	}
	enforced.Mode, enforced.Clean, enforced.SmallSys, enforced.NoNet = "enforced", true, true, true
	enforced.TmpSize, enforced.Policies, enforced.Allow = 64<<20, []string{"/etc/demo/policy.toml"}, []string{"SSL_CERT_FILE", "HTTPS_PROXY"}
	auto := on(t, "rocm", "/home/hip/train/train", "/home/hip/train", "./train").called("rocm-auto").read("/data/models").
		env("PYTHONPATH=/home/hip/x", "CUDA_PATH=/opt/rocm", "OMPI_COMM_WORLD_RANK=1")
	auto.Mode, auto.Clean = "auto", true
	return []start{
		filtered,
		enforced,
		auto,
		on(t, "debian12", "/home/ada/src/demo/demo", "/home/ada/src/demo/out", "../demo").
			write(".", "/srv/data").read("/home/ada/Downloads/").called("debian12-grants"),
		on(t, "debian12", "/tmp/go-build1234/b001/exe/demo", "/tmp/work", "/tmp/go-build1234/b001/exe/demo").called("debian12-go-run"),
		on(t, "debian12", "/usr/local/bin/demo", "/home/ada", "demo", "notes.txt", "./notes.txt").called("debian12-in-home"),
		gone,
		on(t, "fedora41", "/home/jan/.local/share/demo/bin/demo", "/home/jan/src/svc", "demo").write("/home/jan/src/svc"),
		on(t, "alpine", "/usr/lib/demo/demo", "/app", "/usr/bin/demo"),
		on(t, "nixos", "/nix/store/zz0d-demo-1.2/bin/demo", "/home/eelco/src/flake", "demo"),
		on(t, "rocm", "/home/hip/train/train", "/home/hip/train", "./train", "-data", "/data/models").
			device("/dev/kfd", "/dev/dri/by-path/pci-0000:41:00.0-render").read("/opt/rocm", "/data/models").
			env("HIP_VISIBLE_DEVICES=0", "HSA_OVERRIDE_GFX_VERSION=9.4.2"),
		on(t, "resolvconf", "/usr/bin/demo", "/home/u/p", "demo"),
		net,
		on(t, "wsl", "/usr/bin/demo", "/home/u/p", "demo"),
		on(t, "cluster", "/vol/home/kim/sim/sim", "/vol/home/kim/sim", "./sim", "in.dat", "/scratch/kim/run1/x").
			env("PWD=/home/kim/sim", "SLURM_TMPDIR=/tmp/job.77").write("/home/kim/sim/out", "/home/kim/data/run1", "/tmp/job.77"),
		on(t, "worktree", "/usr/bin/demo", "/data/w/wt/cmd/deep", "demo").env("PWD=/w/wt/cmd/deep").write("."),
	}
}

func build(t testing.TB, s start) *Plan {
	t.Helper()
	p, err := Build(s.Facts, s.Request)
	if err != nil {
		t.Fatalf("%s: %v", s.name, err)
	}
	return p
}

// TestGolden compares whole plans with those that were reviewed. Run it with -update and read the difference.
func TestGolden(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range goldens(t) {
		seen[s.name] = true
		t.Run(s.name, func(t *testing.T) {
			got := document(build(t, s))
			file := filepath.Join("testdata", "golden", s.name+".txtar")
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("%s (-want +got), -update rewrites it:\n%s", file, diff)
			}
		})
	}
	files, err := filepath.Glob("testdata/golden/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !seen[strings.TrimSuffix(filepath.Base(f), ".txtar")] {
			t.Errorf("%s belongs to no start", f)
		}
	}
}

// document is everything that can be reviewed of a plan: what explain prints, what bwrap is told, the published JSON and
// the files that are made up.
func document(p *Plan) []byte {
	var a txtar.Archive
	add := func(name string, data []byte) { a.Files = append(a.Files, txtar.File{Name: name, Data: data}) }
	add("explain", []byte(p.Explain()))
	add("argv", []byte(lines(p.Argv(func(i int) int { return 10 + i }))))
	add("json", p.JSON())
	for _, m := range p.Mounts {
		if m.Kind == binds.File && m.Source == "" && len(m.Data) > 0 {
			add(m.Target[1:], append([]byte(nil), m.Data...))
		}
	}
	return txtar.Format(&a)
}

// lines writes a command line with one option a line.
func lines(argv []string) string {
	var b strings.Builder
	for i, w := range argv {
		switch {
		case i == 0:
		case strings.HasPrefix(w, "--"):
			b.WriteByte('\n')
		default:
			b.WriteByte(' ')
		}
		b.WriteString(Quote(w))
	}
	return b.String() + "\n"
}

// Equal input gives equal bytes, also for the forms that no golden shows.
func TestDeterminism(t *testing.T) {
	for _, s := range goldens(t) {
		first := build(t, s)
		for range 3 {
			again := build(t, s)
			if diff := cmp.Diff(string(document(first)), string(document(again))); diff != "" {
				t.Fatalf("%s: two plans of the same start differ:\n%s", s.name, diff)
			}
			if first.Script("/usr/bin/bwrap", nil) != again.Script("/usr/bin/bwrap", nil) {
				t.Fatalf("%s: two scripts of the same start differ", s.name)
			}
			first.Seal()
			again.Seal()
			for i, d := range first.Data() {
				if string(d.Content) != string(again.Data()[i].Content) {
					t.Fatalf("%s: the content of %s differs", s.name, d.Name)
				}
			}
			first = build(t, s)
		}
	}
}

// Every byte that bwrap gets from a descriptor is asked for by Argv, in the order of Data, and once.
func TestArgvData(t *testing.T) {
	for _, s := range goldens(t) {
		p := build(t, s)
		asked := 0
		argv := p.Argv(func(i int) int {
			if i != asked {
				t.Errorf("%s: Argv asks for element %d after %d", s.name, i, asked-1)
			}
			asked++
			return 100 + i
		})
		if n := len(p.Data()); asked != n {
			t.Errorf("%s: Argv asks for %d of %d", s.name, asked, n)
		}
		used := 0
		for i, w := range argv {
			switch w {
			case "--file", "--ro-bind-data", "--seccomp":
				if want := strconv.Itoa(100 + used); argv[i+1] != want {
					t.Errorf("%s: %s %s, want %s", s.name, w, argv[i+1], want)
				}
				used++
			}
			if strings.HasSuffix(w, "-try") {
				t.Errorf("%s: %s: what is missing must be left out by Build", s.name, w)
			}
		}
	}
}
