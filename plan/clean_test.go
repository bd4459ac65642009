package plan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/selfcage/selfcage/binds"
	"github.com/selfcage/selfcage/toolchain"
)

// cleanly is a start whose environment begins with nothing.
func cleanly(t *testing.T, env ...string) start {
	t.Helper()
	s := on(t, "debian12", "/usr/local/bin/demo", "/srv/data", "demo").env(env...)
	s.Clean = true
	for _, name := range []string{"home/ada/lib/x.py", "opt/lib/libx.so", "home/ada/cert.pem", "opt/jdk/bin/java", "opt/jdk/lib/x", "home/ada/.cargo/bin/cargo",
		"home/ada/.rustup/toolchains/stable/bin/rustc", "home/ada/venv/bin/python", "home/ada/venv/pyvenv.cfg", "home/ada/venv/lib/python3.11/site-packages/x.py",
		"home/ada/conda/envs/e/bin/python", "home/ada/conda/envs/e/conda-meta/history", "home/ada/gopath/pkg/mod/m", "home/ada/.aws/ca.pem"} {
		file(s, name, "x")
	}
	return s
}

// R17, R20: a clean environment holds what the run needs and what was named; what it does not hold gets nothing shown.
func TestCleanEnvironment(t *testing.T) {
	for _, tt := range []struct {
		name  string
		env   []string
		allow []string
		want  map[string]string // the value inside, "-" for none
		shown map[string]string
	}{
		{"what changes what programs execute", []string{"PYTHONPATH=/home/ada/lib", "LD_LIBRARY_PATH=/opt/lib", "LD_PRELOAD=/opt/lib/libx.so", "CC=/opt/lib/libx.so", "FOO=1"}, nil,
			map[string]string{"PYTHONPATH": "-", "LD_LIBRARY_PATH": "-", "LD_PRELOAD": "-", "CC": "-", "FOO": "-"},
			map[string]string{"/home/ada/lib": "nothing", "/opt/lib": "nothing"}},
		{"the same by name", []string{"PYTHONPATH=/home/ada/lib", "LD_LIBRARY_PATH=/opt/lib"}, []string{"PYTHONPATH", "LD_LIBRARY_PATH"},
			map[string]string{"PYTHONPATH": "/home/ada/lib", "LD_LIBRARY_PATH": "/opt/lib"},
			map[string]string{"/home/ada/lib": "ro /home/ada/lib", "/opt/lib": "ro /opt"}},
		{"where tools are", []string{"JAVA_HOME=/opt/jdk", "CARGO_HOME=/home/ada/.cargo", "RUSTUP_HOME=/home/ada/.rustup", "VIRTUAL_ENV=/home/ada/venv",
			"PATH=/home/ada/venv/bin:/home/ada/.cargo/bin:/usr/bin"}, nil,
			map[string]string{"JAVA_HOME": "/opt/jdk", "CARGO_HOME": "/home/ada/.cargo", "RUSTUP_HOME": "/home/ada/.rustup", "VIRTUAL_ENV": "/home/ada/venv"},
			map[string]string{"/opt/jdk/bin/java": "ro /opt/jdk", "/home/ada/venv/bin/python": "ro /home/ada/venv", "/home/ada/.rustup/toolchains": "ro /home/ada/.rustup"}},
		{"conda", []string{"CONDA_PREFIX=/home/ada/conda/envs/e", "PATH=/home/ada/conda/envs/e/bin:/usr/bin"}, nil,
			map[string]string{"CONDA_PREFIX": "/home/ada/conda/envs/e"}, map[string]string{"/home/ada/conda/envs/e/bin/python": "ro /home/ada/conda/envs/e"}},
		{"where no tool is", []string{"JAVA_HOME=/opt/none", "VIRTUAL_ENV=", "GOROOT=relative"}, nil,
			map[string]string{"JAVA_HOME": "-", "VIRTUAL_ENV": "-", "GOROOT": "-"}, nil},
		{"a place that is a secret", []string{"CARGO_HOME=/home/ada/.aws", "JAVA_HOME=ghp_0123456789012345678901234567890123456789"}, nil,
			map[string]string{"CARGO_HOME": "-", "JAVA_HOME": "-"}, map[string]string{"/home/ada/.aws": "nothing"}},
		{"launchers", []string{"SLURM_PROCID=3", "PMI_FD=7", "OMPI_COMM_WORLD_RANK=1"}, nil,
			map[string]string{"SLURM_PROCID": "3", "PMI_FD": "7", "OMPI_COMM_WORLD_RANK": "1"}, nil},
		{"a certificate that nobody named", []string{"SSL_CERT_FILE=/home/ada/cert.pem", "HTTPS_PROXY=http://p:1"}, nil,
			map[string]string{"SSL_CERT_FILE": "-", "HTTPS_PROXY": "-"}, map[string]string{"/home/ada/cert.pem": "nothing"}},
		{"a certificate by name", []string{"SSL_CERT_FILE=/home/ada/cert.pem", "HTTPS_PROXY=http://p:1"}, []string{"SSL_CERT_FILE", "HTTPS_PROXY"},
			map[string]string{"SSL_CERT_FILE": "/home/ada/cert.pem", "HTTPS_PROXY": "http://p:1"}, map[string]string{"/home/ada/cert.pem": "ro /home/ada/cert.pem"}},
		{"one among credentials", []string{"SSL_CERT_FILE=/home/ada/.aws/ca.pem"}, []string{"SSL_CERT_FILE"},
			map[string]string{"SSL_CERT_FILE": "-"}, map[string]string{"/home/ada/.aws/ca.pem": "nothing"}},
		{"what is the cage's own", []string{"XDG_CACHE_HOME=/home/ada/.cache", "TMPDIR=/tmp/x"}, nil,
			map[string]string{"HOME": Home, "TMPDIR": Tmp, "PWD": "/srv/data", "XDG_CACHE_HOME": Home + "/.cache", "USER": "ada"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := cleanly(t, tt.env...)
			s.Allow = tt.allow
			p := build(t, s)
			sound(t, s, p)
			got := map[string]string{}
			for name := range tt.want {
				got[name] = "-"
			}
			for _, v := range p.Env {
				if got[v.Name] == "-" {
					got[v.Name] = v.Value
				}
				if toolchain.Location(v.Name) && v.Reason.Why != "location of a tool" && v.Reason.By == "environment" {
					t.Errorf("%s is kept by %+v", v.Name, v.Reason)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			for path, want := range tt.shown {
				if got := at(p, path); got != want {
					t.Errorf("%s is shown by %s, want %s", path, got, want)
				}
			}
			for _, d := range p.Dropped {
				if v, ok := got[d.Name]; ok && v != "-" {
					t.Errorf("%s is kept and dropped", d.Name)
				}
			}
		})
	}
}

// HF_HOME is a place of a tool also where the environment begins with nothing: what it says is granted, pinned and kept, but not
// the token beside it (R36).
func TestCleanHuggingFace(t *testing.T) {
	for _, cache := range []bool{true, false} {
		s := cleanly(t, "HF_HOME=/data/x")
		for _, name := range []string{"data/x/hub/m", "data/x/token"} {
			file(s, name, "x")
		}
		access := "ro /data/x"
		if cache {
			s.Caches = []Cache{{"huggingface", "policy /etc/p.toml:1"}}
			access = "rw /data/x/hub"
		} else {
			s = s.read("/data/x") // {hf_cache}
		}
		p := build(t, s)
		sound(t, s, p)
		if got := at(p, "/data/x/hub/m"); got != access {
			t.Errorf("a model is shown by %s, want %s", got, access)
		}
		if got := at(p, "/data/x/token"); strings.HasPrefix(got, "ro") || strings.HasPrefix(got, "rw") {
			t.Errorf("the token is shown by %s", got)
		}
		if value(p, "HF_HOME") != "/data/x" || cache && value(p, "HF_HUB_CACHE") != "/data/x/hub" {
			t.Errorf("HF_HOME=%s HF_HUB_CACHE=%s", value(p, "HF_HOME"), value(p, "HF_HUB_CACHE"))
		}
	}
}

// A jobserver is none where MAKEFLAGS is dropped; PMI's descriptor is a launcher's.
func TestCleanDescriptors(t *testing.T) {
	s := cleanly(t, "MAKEFLAGS= --jobserver-auth=5,6", "PMI_FD=7")
	fds := func() (ns []int) {
		for _, f := range build(t, s).FDs {
			ns = append(ns, f.N)
		}
		return ns
	}
	if diff := cmp.Diff([]int{7}, fds()); diff != "" {
		t.Errorf("dropped (-want +got):\n%s", diff)
	}
	s.Allow = []string{"MAKEFLAGS"}
	if diff := cmp.Diff([]int{5, 6, 7}, fds()); diff != "" {
		t.Errorf("by name (-want +got):\n%s", diff)
	}
}

// No place of a tool is something that programs execute or read their code from.
func TestLocationsChangeNothing(t *testing.T) {
	for _, name := range []string{"PYTHONPATH", "LD_LIBRARY_PATH", "NODE_PATH", "PERL5LIB", "GOFLAGS", "GOENV", "GEM_HOME", "GIT_DIR", "CC", "BASH_ENV",
		"CLASSPATH", "PYTHONHOME", "SSL_CERT_FILE", "HOME", "PATH", "", "GCONV_PATH", "OMPI_MCA_mca_component_path", "GIT_EXEC_PATH", "RUSTC_WRAPPER"} {
		if toolchain.Location(name) {
			t.Errorf("%s is said to be a location", name)
		}
	}
	for _, name := range []string{"JAVA_HOME", "CARGO_HOME", "RUSTUP_HOME", "GOPATH", "GOROOT", "VIRTUAL_ENV", "CONDA_PREFIX", "PYENV_ROOT", "NVM_DIR", "GOCACHE", "CCACHE_DIR"} {
		if !toolchain.Location(name) {
			t.Errorf("%s is not said to be a location", name)
		}
	}
}

func TestSmallSys(t *testing.T) {
	s := on(t, "debian12", "/usr/local/bin/demo", "/srv/data", "demo")
	for _, name := range []string{"sys/devices/system/cpu/online", "sys/devices/system/node/x", "sys/kernel/mm/transparent_hugepage/enabled", "sys/class/net/eth0", "sys/devices/virtual/dmi/id/x"} {
		file(s, name, "x")
	}
	s.SmallSys = true
	p := build(t, s)
	sound(t, s, p)
	for path, want := range map[string]string{
		"/sys/devices/system/cpu/online": "ro /sys/devices/system/cpu", "/sys/devices/system/node": "ro /sys/devices/system/node",
		"/sys/fs/cgroup": "ro /sys/fs/cgroup", "/sys/kernel/mm/transparent_hugepage/enabled": "ro /sys/kernel/mm/transparent_hugepage",
		"/sys/class": "dir /sys", "/sys/class/net/eth0": "dir /sys", "/sys/devices/virtual/dmi/id/x": "dir /sys",
	} {
		if got := at(p, path); got != want {
			t.Errorf("%s is shown by %s, want %s", path, got, want)
		}
	}
	if omitted(p, "/sys") == "" || omitted(p, "/sys/kernel/mm/hugepages") != "not on this host" || !p.Namespaces.ShareCgroup {
		t.Errorf("left out: %+v", p.Omitted)
	}
}

func TestTmpSize(t *testing.T) {
	for _, tt := range []struct {
		write string
		want  map[string]int64
	}{
		{"/srv/data", map[string]int64{"/tmp": 1 << 20, "/dev/shm": 0}},
		{"/var/tmp/big", map[string]int64{"/tmp": 1 << 20, "/var/tmp": 1 << 20}},
	} {
		s := on(t, "debian12", "/usr/local/bin/demo", "/srv/data", "demo").write(tt.write)
		s.TmpSize = 1 << 20
		for _, m := range build(t, s).Mounts {
			if size, ok := tt.want[m.Target]; ok && m.Kind == binds.Tmpfs && m.Size != size {
				t.Errorf("%s has %d bytes, want %d", m.Target, m.Size, size)
			} else if ok && m.Kind == binds.Tmpfs {
				delete(tt.want, m.Target)
			}
		}
		if len(tt.want) > 0 {
			t.Errorf("missing: %v", tt.want)
		}
	}
}

func TestAttempts(t *testing.T) {
	texts := func(s start) (list []string) {
		for _, a := range build(t, s).Attempts {
			if a.Why == "" {
				t.Errorf("%+v has no reason", a)
			}
			list = append(list, a.Op+" "+a.Object)
		}
		return list
	}
	s := on(t, "debian12", "/usr/local/bin/demo", "/srv/data", "demo")
	for _, tt := range []struct {
		name  string
		start start
		want  []string
	}{
		{"by default", s, []string{"open /home/ada/.ssh", "write /usr", "write /"}},
		{"no network", func() start { s := s; s.NoNet = true; return s }(), []string{"open /home/ada/.ssh", "write /usr", "write /", "connect 192.0.2.1:9"}},
		{"without a home", s.env("HOME=/nonexistent"), []string{"open /home/ada/.ssh", "write /usr", "write /"}},
		{"with nothing private in the home", on(t, "wsl", "/usr/bin/demo", "/home/u/p", "demo"), []string{"write /usr", "write /"}},
	} {
		got := texts(tt.start)
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	// Of what is shown, or hidden by something empty, nothing is tried.
	for _, g := range goldens(t) {
		p := build(t, g)
		for _, a := range p.Attempts {
			if m, ok := binds.Cover(p.Mounts, a.Object); a.Op == "open" && ok && (m.Kind.Bind() || m.Target == a.Object) {
				t.Errorf("%s: %s is there, by %s", g.name, a.Object, m.Target)
			}
		}
	}
}

// What a bind shows, or what something lies in, is not out of reach.
func TestOutOfReach(t *testing.T) {
	s := on(t, "debian12", "/usr/local/bin/demo", "/srv/data", "demo")
	b := newBuilder(s.Facts, s.Request)
	for _, tt := range []struct{ shown, want string }{
		{"/srv", "/home/ada/.ssh"}, {"/home/ada/.ssh/id_ed25519", "/home/ada/.aws"}, {"/home/ada", "/etc/shadow"}, {"/etc", ""},
	} {
		b.add(binds.Mount{Kind: binds.ReadOnly, Source: tt.shown, Target: tt.shown})
		if got := b.outOfReach(); got != tt.want {
			t.Errorf("with %s: %q, want %q", tt.shown, got, tt.want)
		}
	}
}
