package cli_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/selfcage/selfcage/internal/sandtest"
)

// The tests here need places that no ordinary user can make: each runs in a root that is put together for it.

// linux is a C library's directory with its loader, as Nix and Homebrew have one: copies of this machine's.
func (s *site) linux(dir string) (interp string) {
	s.t.Helper()
	ld, libc := loader(s.t)
	must(s.t, os.MkdirAll(dir, 0o755))
	copyFile(s.t, libc, dir+"/libc.so.6", 0o755)
	copyFile(s.t, ld, filepath.Join(dir, filepath.Base(ld)), 0o755)
	return filepath.Base(ld)
}

// toolchains.md B13: the ELF interpreter and all libraries are paths of the store, and the profile is a chain of links into it,
// through places that are not visible themselves.
func TestToolchainNix(t *testing.T) {
	s := newSite(t, nil).plant()
	sandtest.Need(t, sandtest.CC)
	nix, fallback := s.root+"/fix/nix", s.root+"/fallback"
	ld := s.linux(nix + "/store/aaa-glibc-2.99/lib")
	s.library(nix+"/store/bbb-says-1/lib", "the store's")
	s.library(fallback, "another")
	s.loads(nix+"/store/ccc-hello-1/bin/hello", nix+"/store/bbb-says-1/lib", "-Wl,--dynamic-linker=/nix/store/aaa-glibc-2.99/lib/"+ld,
		"-Wl,--enable-new-dtags", "-Wl,-rpath,/nix/store/bbb-says-1/lib:/nix/store/aaa-glibc-2.99/lib:"+fallback)
	// What wrapProgram makes: a script whose interpreter is in the store, too.
	s.write(nix+"/store/ddd-wrapped-1/bin/.wrapped", "#!/nix/store/eee-env/bin/interp\n", 0o755)
	s.write(nix+"/store/ddd-wrapped-1/bin/wrapped", "#!/nix/store/ccc-hello-1/bin/hello\n", 0o755)
	s.link("/nix/store/ccc-hello-1/bin/hello", nix+"/store/fff-user-environment/bin/hello")
	s.link("/nix/store/ddd-wrapped-1/bin/wrapped", nix+"/store/fff-user-environment/bin/wrapped")
	s.link("/nix/store/fff-user-environment", nix+"/var/nix/profiles/per-user/u/profile-1-link")
	s.link("profile-1-link", nix+"/var/nix/profiles/per-user/u/profile")
	s.link("/nix/var/nix/profiles/per-user/u/profile", s.home+"/.nix-profile")
	s.link("/nix/store/fff-user-environment", s.home+"/.local/state/nix/profiles/profile")
	s.write(nix+"/var/nix/db/db.sqlite", homeSecret, 0o644)
	r := s.inRoot([]string{"/nix"}, "--bind", nix, "/nix")
	want := []string{"the store's\n/nix/store/ccc-hello-1/bin/hello\n", "/nix/store/aaa-glibc-2.99/lib/" + ld}
	for _, profile := range []string{"/.nix-profile", "/.local/state/nix/profiles/profile"} {
		bin := s.home + profile + "/bin"
		vars := []string{"NIX_PROFILES=/nix/var/nix/profiles/default " + s.home + "/.nix-profile", "NIX_PROFILE=" + s.home + profile}
		for _, e := range []*site{r.path0(bin), r.path0(bin).setenv(vars...)} {
			if out := e.prints(want, "--", "hello"); strings.Contains(out, "\n/usr") || strings.Contains(out, "\n/lib") {
				t.Errorf("%q", out)
			}
			e.same("--", "wrapped")
			e.same("--", "sh", "-c", `hello; command -v hello; readlink "$1"; readlink -e "$1/bin/hello"`, "sh", s.home+profile)
			e.readOnly("/nix/store", "/nix/store/ccc-hello-1/bin")
			e.hidden("/nix/var/nix/db/db.sqlite")
			e.noSecrets()
		}
	}
	r.same("--", s.home+"/.nix-profile/bin/hello") // in no PATH
}

// toolchains.md B14: Homebrew's programs name their loader and each other by the prefix, which lies in somebody's home.
func TestToolchainHomebrew(t *testing.T) {
	s := newSite(t, nil).plant()
	sandtest.Need(t, sandtest.CC)
	const prefix = "/home/linuxbrew/.linuxbrew"
	home := s.root + "/fix/home"
	brew := s.root + "/fix" + prefix
	ld := s.linux(brew + "/Cellar/glibc/2.99/lib")
	s.link("../Cellar/glibc/2.99/lib/"+ld, brew+"/lib/ld.so")
	s.link("../Cellar/glibc/2.99", brew+"/opt/glibc")
	s.library(brew+"/Cellar/says/1.0/lib", "Homebrew's")
	s.link("../Cellar/says/1.0", brew+"/opt/says")
	s.library(s.root+"/fallback", "another")
	s.loads(brew+"/Cellar/tool/3.1/bin/tool", brew+"/Cellar/says/1.0/lib", "-Wl,--dynamic-linker="+prefix+"/lib/ld.so",
		"-Wl,--enable-new-dtags", "-Wl,-rpath,"+prefix+"/opt/says/lib:"+prefix+"/opt/glibc/lib:"+s.root+"/fallback")
	s.link("../Cellar/tool/3.1/bin/tool", brew+"/bin/tool")
	s.link("../Cellar/tool/3.1", brew+"/opt/tool")
	s.link(prefix+"/bin/tool", s.home+"/.local/bin/tool")
	s.write(brew+"/Cellar/script/1/bin/script", "#!"+prefix+"/opt/tool/bin/tool\n", 0o755)
	s.link("../Cellar/script/1/bin/script", brew+"/bin/script")
	s.write(home+"/linuxbrew/.ssh/id", homeSecret, 0o600)
	s.write(home+"/linuxbrew/letter", homeSecret, 0o644)
	s.write(home+"/other/.ssh/id", homeSecret, 0o600)
	want := []string{"Homebrew's\n" + prefix + "/Cellar/tool/3.1/bin/tool\n", "Cellar/says/1.0/lib/libsays.so.1.0\n",
		prefix + "/Cellar/glibc/2.99/lib/" + ld + "\n"}
	r := s.inRoot(nil, "--bind", home, "/home")
	for _, dir := range []string{prefix + "/bin", prefix + "/opt/tool/bin", s.home + "/.local/bin"} {
		for _, e := range []*site{r.path0(dir), r.path0(dir).setenv("HOMEBREW_PREFIX="+prefix, "HOMEBREW_CELLAR="+prefix+"/Cellar")} {
			e.prints(want, "--", "tool")
			e.same("--", "sh", "-c", `tool; command -v tool; readlink "$1/bin/tool" "$1/opt/tool" "$1/lib/ld.so"`, "sh", prefix)
			e.readOnly(prefix, prefix+"/bin", prefix+"/Cellar/tool/3.1")
			e.hidden("/home/linuxbrew/.ssh/id", "/home/linuxbrew/letter", "/home/other/.ssh/id")
			e.noSecrets()
		}
	}
	r.path0(prefix+"/bin").same("--", "script")
	r.same("--", prefix+"/bin/tool") // in no PATH
}

// alternatives is a copy of /etc/alternatives with links more.
func (s *site) alternatives(links ...string) (dir string) {
	s.t.Helper()
	dir = s.root + "/fix/etc/alternatives"
	must(s.t, os.RemoveAll(dir))
	entries, err := os.ReadDir("/etc/alternatives")
	if err != nil {
		s.t.Skip("needs /etc/alternatives")
	}
	for _, e := range entries {
		if text, err := os.Readlink("/etc/alternatives/" + e.Name()); err == nil {
			s.link(text, dir+"/"+e.Name())
		}
	}
	for _, l := range links {
		name, text, _ := strings.Cut(l, " -> ")
		s.link(text, dir+"/"+name)
	}
	return dir
}

// toolchains.md B18: /usr/local/cuda leads through /etc/alternatives to the toolkit, wherever that was installed; programs have the
// alias built in. Resolved paths alone, or the chain without one of its links, are another library or none.
func TestToolchainCUDA(t *testing.T) {
	for _, place := range []string{"/usr/local", "/opt/nvidia", "/srv/sw/nvidia"} {
		t.Run(place[1:], func(t *testing.T) {
			s := newSite(t, nil).plant()
			sandtest.Need(t, sandtest.CC)
			fix, real := s.root+"/fix/cuda", place+"/cuda-12.4"
			s.tool(fix+"/bin/nvcc", "12.4")
			s.library(fix+"/targets/x86_64-linux/lib", "cuda 12.4")
			s.link("targets/x86_64-linux/lib", fix+"/lib64")
			s.write(fix+"/include/cuda.h", "#define CUDA_VERSION 12040\n", 0o644)
			s.library(s.root+"/fallback", "another")
			s.loads(s.path("sample"), fix+"/lib64", "-Wl,--enable-new-dtags", "-Wl,-rpath,/usr/local/cuda/lib64:"+s.root+"/fallback")
			s.write("v.c", "#include <cuda.h>\nCUDA_VERSION\n", 0o644)
			s.write(s.root+"/fix/letter", homeSecret, 0o644)
			alt := s.alternatives("cuda -> "+real, "cuda-12 -> "+real)
			options := append(s.remade("/usr/local"), "--symlink", "/etc/alternatives/cuda", "/usr/local/cuda",
				"--symlink", "/etc/alternatives/cuda-12", "/usr/local/cuda-12", "--bind", alt, "/etc/alternatives")
			hidden := ""
			if place != "/usr/local" {
				options = append(options, "--tmpfs", "/opt", "--tmpfs", "/srv", "--bind", s.root+"/fix/letter", place+"/letter")
				hidden = place + "/letter"
			}
			r := s.inRoot(nil, append(options, "--bind", fix, real)...)
			check := func(e *site) {
				t.Helper()
				e.prints([]string{"cuda 12.4\n" + s.path("sample") + "\n", "\n" + real + "/targets/x86_64-linux/lib/libsays.so.1.0\n"}, "--", "./sample")
				e.same("--", "sh", "-c", `cat "$1/include/cuda.h"; readlink "$1" /etc/alternatives/cuda "$1/lib64"; readlink -e "$1"`, "sh", "/usr/local/cuda")
				e.readOnly(real, real+"/targets/x86_64-linux/lib")
				e.noSecrets()
				if hidden != "" {
					e.hidden(hidden)
				}
			}
			check(r) // a wheel has the name built in, and PATH says nothing
			for _, alias := range []string{"/usr/local/cuda", "/usr/local/cuda-12"} {
				e := r.path0(alias+"/bin").setenv("CUDA_HOME="+alias, "CPATH="+alias+"/include")
				check(e)
				if out := e.same("--", "nvcc", "x"); out != "12.4 nvcc x\n" {
					t.Errorf("%q", out)
				}
				if out := e.same("--", "/usr/bin/cc", "-E", "-P", "v.c"); !strings.Contains(out, "12040") {
					t.Errorf("%q", out)
				}
			}
		})
	}
}

// toolchains.md B18: ROCm by its alias, a link to its neighbour or through /etc/alternatives; oneAPI by links called latest.
func TestToolchainROCm(t *testing.T) {
	s := newSite(t, nil).plant()
	sandtest.Need(t, sandtest.CC)
	opt := s.root + "/fix/opt"
	for v, says := range map[string]string{"rocm-6.1": "rocm 6.1", "rocm-5.7": "rocm 5.7"} {
		s.tool(opt+"/"+v+"/bin/hipcc", says)
		s.library(opt+"/"+v+"/lib", says)
	}
	s.link("../../etc/alternatives/rocm", opt+"/rocm-alt")
	s.link("rocm-6.1", opt+"/rocm-near")
	s.loads(s.path("sample"), opt+"/rocm-6.1/lib", "-Wl,--enable-new-dtags", "-Wl,-rpath,/opt/rocm/lib:"+opt+"/rocm-5.7/lib")
	// Found by the environment alone.
	s.loads(s.path("plain"), opt+"/rocm-6.1/lib")
	one := opt + "/intel/oneapi"
	for _, v := range []string{"2024.2", "2025.0"} {
		s.library(one+"/compiler/"+v+"/lib", "oneapi "+v)
		s.tool(one+"/compiler/"+v+"/bin/icx", v)
		s.write(one+"/mkl/"+v+"/include/mkl.h", "#define MKL \""+v+"\"\n", 0o644)
	}
	s.link("2025.0", one+"/compiler/latest")
	s.link("2025.0", one+"/mkl/latest")
	s.write(one+"/setvars.sh", `export SETVARS_COMPLETED=1 CMPLR_ROOT=/opt/intel/oneapi/compiler/latest MKLROOT=/opt/intel/oneapi/mkl/latest
export PATH=$CMPLR_ROOT/bin:$PATH LD_LIBRARY_PATH=$CMPLR_ROOT/lib CPATH=$MKLROOT/include
`, 0o644)
	s.write("v.c", "#include <mkl.h>\nMKL\n", 0o644)
	s.write(opt+"/licences/key.txt", homeSecret, 0o644)
	alt := s.alternatives("rocm -> /opt/rocm-6.1")
	for _, link := range []string{"rocm-6.1", "/opt/rocm-6.1", "/etc/alternatives/rocm"} {
		must(t, os.RemoveAll(opt+"/rocm"))
		s.link(link, opt+"/rocm")
		r := s.inRoot(nil, "--bind", alt, "/etc/alternatives", "--bind", opt, "/opt")
		for _, e := range []*site{r, r.path0("/opt/rocm/bin").setenv("ROCM_PATH=/opt/rocm", "HIP_PATH=/opt/rocm")} {
			e.prints([]string{"rocm 6.1\n", "\n/opt/rocm-6.1/lib/libsays.so.1.0\n"}, "--", "./sample")
			if out := e.same("--", "readlink", "/opt/rocm"); out != link+"\n" {
				t.Errorf("%q", out)
			}
			e.readOnly("/opt/rocm-6.1", "/opt/rocm-6.1/lib")
			e.hidden("/opt/licences/key.txt", "/opt/rocm-5.7/lib/libsays.so.1")
			e.noSecrets()
		}
		if out := r.path0("/opt/rocm/bin").same("--", "hipcc", "x"); out != "rocm 6.1 hipcc x\n" {
			t.Errorf("%q", out)
		}
	}
	r := s.inRoot(nil, "--bind", opt, "/opt")
	const use = `icx x; ./plain; cc -E -P v.c; env | grep -E "^(CMPLR|MKL|SETVARS|LD_LIB|CPATH)" | sort`
	outside := r.sh(`. /opt/intel/oneapi/setvars.sh; sh -c '` + use + `'`).ok().out
	inside := r.sh(`. /opt/intel/oneapi/setvars.sh; selfcage run --quiet -- sh -c '` + use + `'`).ok().silent().out
	if inside != outside || !strings.HasPrefix(inside, "2025.0 icx x\noneapi 2025.0\n"+s.path("plain")+"\n") || !strings.Contains(inside, `"2025.0"`) {
		t.Errorf("outside %q\ninside %q", outside, inside)
	}
	e := r.path0("/opt/intel/oneapi/compiler/latest/bin").setenv("ONEAPI_ROOT=/opt/intel/oneapi")
	e.readOnly("/opt/intel/oneapi/compiler/2025.0", "/opt/intel/oneapi")
	e.hidden("/opt/licences/key.txt")
	e.noSecrets()
}

// toolchains.md B20, case 33: each of /bin, /sbin, /lib and /lib64 is what it is on the host, a link or a directory of its own with
// programs and libraries that /usr has not.
func TestToolchainUsr(t *testing.T) {
	s := newSite(t, nil).plant()
	sandtest.Need(t, sandtest.CC)
	ld, libc := loader(t)
	own, lib := s.root+"/fix", filepath.Dir(libc)
	if !strings.HasPrefix(lib, "/usr/lib/") || filepath.Dir(ld) == "/lib" {
		t.Skipf("needs merged /usr with a loader in /lib64 and multiarch libraries: %s, %s", ld, libc)
	}
	multi := filepath.Base(lib) // x86_64-linux-gnu
	for _, name := range []string{"sh", "ls", "readlink", "cat"} {
		copyFile(t, "/usr/bin/"+name, s.write(own+"/bin/"+name, "", 0o755), 0o755)
	}
	s.tool(own+"/bin/only-here", "of /bin")
	s.linux(own + "/lib/" + multi)
	must(t, os.Rename(own+"/lib/"+multi+"/"+filepath.Base(ld), own+"/lib/"+multi+"/ld-own.so"))
	s.library(own+"/lib/"+multi, "of /lib")
	s.link("/lib/"+multi+"/ld-own.so", own+"/lib64/"+filepath.Base(ld))
	s.loads(s.path("prog"), own+"/lib/"+multi)
	for _, tt := range []struct {
		name    string
		instead []string
		options []string
		dirs    string // which of the four are directories
		own     bool
	}{
		{"merged", nil, nil, "", false},
		{"absolute links", []string{"/bin", "/lib64"}, []string{"--symlink", "/usr/bin", "/bin", "--symlink", "/usr/lib64", "/lib64"}, "", false},
		{"lib64 alone", []string{"/lib64"}, []string{"--bind", "/usr/lib64", "/lib64"}, "/lib64 ", false},
		{"not merged", []string{"/bin", "/sbin", "/lib", "/lib64"}, []string{"--bind", own + "/bin", "/bin", "--bind", "/usr/sbin", "/sbin",
			"--bind", own + "/lib", "/lib", "--bind", own + "/lib64", "/lib64"}, "/bin /sbin /lib /lib64 ", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := *s
			s.t = t
			e := s.inRoot(tt.instead, tt.options...)
			out := e.same("--", "/bin/sh", "-c", `for d in /bin /sbin /lib /lib64; do [ -L $d ] || printf "%s " $d; done`)
			if out != tt.dirs {
				t.Errorf("directories %q, want %q", out, tt.dirs)
			}
			e.same("--", "sh", "-c", `readlink /bin /sbin /lib /lib64; ls /bin | head -5; command -v ls; ls -d /lib64/*`)
			e.readOnly("/usr/bin", "/bin", "/lib", "/lib64")
			if tt.own {
				if out := e.same("--", "only-here", "x"); out != "of /bin only-here x\n" {
					t.Errorf("%q", out)
				}
				dir := "\n/lib/" + multi
				e.prints([]string{"of /lib\n", dir + "/libsays.so.1.0\n", dir + "/libc.so.6\n", dir + "/ld-own.so\n"}, "--", "./prog")
			}
			e.noSecrets()
		})
	}
}

// toolchains.md B22: the loader is configured to look outside /usr, by ld.so.conf.d and by the cache, which holds the directories as
// they were spelled there. Either without the other is "cannot open shared object file".
func TestToolchainLoaderCache(t *testing.T) {
	s := newSite(t, nil).plant()
	sandtest.Need(t, sandtest.CC)
	ldconfig := s.need("ldconfig")
	for _, f := range []string{"/etc/ld.so.cache", "/etc/ld.so.conf.d", "/etc/ld.so.conf"} {
		if !exists(f) {
			t.Skipf("needs %s", f)
		}
	}
	fix := s.root + "/fix"
	s.library(fix+"/opt/x-1/lib", "of /opt")
	s.write(fix+"/opt/letter", homeSecret, 0o644)
	s.write(fix+"/srv/y/letter", homeSecret, 0o644)
	s.loads(s.path("prog"), fix+"/opt/x-1/lib")
	s.link("x-1", fix+"/opt/x")
	cache := s.write(fix+"/ld.so.cache", "", 0o644)
	conf := s.write(fix+"/ld.so.conf.d/own.conf", "", 0o644)
	r := s.inRoot(nil, "--bind", fix+"/opt", "/opt", "--bind", fix+"/srv", "/srv", "--bind", cache, "/etc/ld.so.cache",
		"--bind", fix+"/ld.so.conf.d", "/etc/ld.so.conf.d")
	for _, dir := range []string{"/opt/x-1/lib", "/opt/x/lib", "/srv/x/lib"} {
		must(t, os.RemoveAll(fix+"/srv/x/lib"))
		s.library(fix+"/srv/x/lib", "of /srv")
		s.write(conf, "# own\n"+dir+"\n/opt/absent/lib\n", 0o644)
		r.command(ldconfig, "-X", "-C", cache+".new", "-f", "/etc/ld.so.conf").ok()
		must(t, os.WriteFile(cache, []byte(read(t, cache+".new")), 0o644))
		for _, text := range []string{read(t, conf), "# the cache alone knows it\n"} {
			s.write(conf, text, 0o644)
			out := r.same("--", "./prog")
			if want := map[bool]string{true: "of /opt\n", false: "of /srv\n"}[strings.HasPrefix(dir, "/opt")]; !strings.HasPrefix(out, want) {
				t.Errorf("%s: %q", dir, out)
			}
			r.same("--", "sh", "-c", `"$2" -p | grep says; ls "$1"; readlink "${1%/lib}" || :`, "sh", dir, ldconfig)
			r.readOnly(dir)
			r.hidden("/opt/letter", "/srv/y/letter")
			r.noSecrets()
		}
	}
	must(t, os.WriteFile(cache, nil, 0o644))
	if r := r.run("--", "./prog"); r.status == 0 { // what was proven above was the cache
		t.Errorf("without the cache: %s", r.out)
	}
	s.write(conf, "/opt/x/lib\n", 0o644) // ldconfig was not run yet; the linker looks there all the same
	r.same("--", "ls", "/opt/x/lib")
}

// toolchains.md B10: a JDK whose configuration lies in /etc, in a directory of its version's own that nobody has heard of yet.
func TestToolchainJavaConf(t *testing.T) {
	s := newSite(t, nil).plant()
	jdk, conf := s.root+"/jvm/java-99-openjdk", s.root+"/fix/java-99-openjdk"
	s.write(jdk+"/bin/java", `#!/bin/sh
home=$(dirname "$(dirname "$(readlink -f "$0")")")
cat "$home/conf/security/java.security" "$home/lib/security/default.policy" "$home/lib/security/cacerts"
`, 0o755)
	s.write(conf+"/security/java.security", "its security file\n", 0o644)
	s.write(conf+"/security/default.policy", "its policy\n", 0o644)
	s.write(s.root+"/fix/cacerts", "its authorities\n", 0o644)
	s.write(s.root+"/fix/other", homeSecret, 0o644)
	s.link("/etc/java-99-openjdk", jdk+"/conf")
	s.link("/etc/java-99-openjdk/security/default.policy", jdk+"/lib/security/default.policy")
	s.link("/etc/authorities/cacerts", jdk+"/lib/security/cacerts")
	s.link(jdk, s.root+"/jvm/default")
	r := s.inRoot(nil, append(s.remade("/etc"), "--bind", conf, "/etc/java-99-openjdk",
		"--bind", s.root+"/fix/cacerts", "/etc/authorities/cacerts", "--bind", s.root+"/fix/other", "/etc/authorities/other")...)
	home := s.root + "/jvm/default"
	want := []string{"its security file\nits policy\nits authorities\n/etc/java-99-openjdk\n"}
	for _, e := range []*site{r.path0(home + "/bin"), r.setenv("JAVA_HOME=" + home)} {
		e.prints(want, "--", "sh", "-c", `"$1/bin/java"; readlink "$1/conf"`, "sh", home)
		e.readOnly(home, "/etc/java-99-openjdk")
	}
	r.path0(home + "/bin").hidden("/etc/authorities/other")
	r.path0(home + "/bin").noSecrets()
}

// toolchains.md A1, B7, hosts.md 22 and 24: fnm's directory in PATH is a link in /run/user, of which no more than that link is there.
// With a private /run the system's node would run.
func TestToolchainFnm(t *testing.T) {
	s := newSite(t, nil).plant()
	uid := strconv.Itoa(os.Getuid())
	run, user := s.root+"/fix/run", "/run/user/"+strconv.Itoa(os.Getuid())
	fnm := s.home + "/.local/share/fnm"
	for _, v := range []string{"v20.1.0", "v18.9.0"} {
		node := fnm + "/node-versions/" + v + "/installation"
		s.tool(node+"/bin/node", v)
		s.link("../lib/node_modules/npm/bin/npm-cli.js", node+"/bin/npm")
		s.write(node+"/lib/node_modules/npm/bin/npm-cli.js", "#!/usr/bin/env node\n", 0o755)
	}
	s.link(fnm+"/node-versions/v20.1.0/installation", fnm+"/aliases/default")
	s.link("default", fnm+"/aliases/lts")
	s.tool(s.root+"/later/bin/node", "another")
	shell := user + "/fnm_multishells/12_34"
	s.write(run+"/user/"+uid+"/keyring/secret", homeSecret, 0o600)
	s.write(run+"/user/"+uid+"/bus", "", 0o600)
	s.write(run+"/user/"+uid+"/fnm_multishells/56_78/letter", homeSecret, 0o600)
	r := s.inRoot([]string{"/run"}, "--bind", run, "/run")
	for _, target := range []string{fnm + "/node-versions/v20.1.0/installation", fnm + "/aliases/default", fnm + "/aliases/lts"} {
		must(t, os.RemoveAll(s.root+"/fix"+shell))
		s.link(target, s.root+"/fix"+shell)
		e := r.path0(shell+"/bin", s.root+"/later/bin").setenv("XDG_RUNTIME_DIR="+user, "SSH_AUTH_SOCK="+user+"/keyring/ssh",
			"DBUS_SESSION_BUS_ADDRESS=unix:path="+user+"/bus")
		for _, e := range []*site{e, e.setenv("FNM_MULTISHELL_PATH="+shell, "FNM_DIR="+fnm)} {
			if out := e.same("--", "node", "x"); out != "v20.1.0 node x\n" {
				t.Errorf("%s: %q", target, out)
			}
			e.prints([]string{"v20.1.0 node " + shell + "/bin/npm y\n"}, "--", "sh", "-c", `npm y; command -v npm; readlink "$1"; readlink -e "$1"`, "sh", shell)
			e.hidden(user+"/keyring/secret", user+"/bus", user+"/fnm_multishells/56_78/letter")
			e.noSecrets()
			e.readOnly(fnm+"/node-versions/v20.1.0/installation/bin", user)
			e.run("--", "sh", "-c", `echo "[$SSH_AUTH_SOCK$DBUS_SESSION_BUS_ADDRESS]"
				case $XDG_RUNTIME_DIR in "$HOME"/*) touch "$XDG_RUNTIME_DIR/f" && echo own;; esac`).ok().silent().prints("[]\nown\n")
		}
	}
}
