package cli_test

import (
	"archive/zip"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// goSite has a go command, modules in its module cache that no network ever had, and a module that uses one of them.
// go proves in it what it proves everywhere: the same inputs make the same bytes.
func goSite(t *testing.T) *site {
	s := newSite(t, nil).plant()
	goroot := filepath.Dir(filepath.Dir(s.need("go")))
	proxy := s.root + "/proxy"
	for _, v := range []string{"v1.0.0", "v1.1.0"} {
		s.proxied(proxy, "example.com/dep", v, "package dep\n\n// Version says which one it is.\nconst Version = \"published "+v+"\"\n")
		s.proxied(proxy, "example.com/other", v, "package other\n\n// Version says which one it is.\nconst Version = \"published "+v+"\"\n")
	}
	s.write("go.mod", "module example.com/m\n\ngo 1.21\n\nrequire example.com/dep v1.0.0\n\nrequire example.com/other v1.0.0\n", 0o644)
	s.write("m.go", "package m\n\nimport (\n\t\"example.com/dep\"\n\t\"example.com/other\"\n)\n\n// Version is theirs.\nfunc Version() string { return dep.Version + other.Version }\n", 0o644)
	s = s.setenv("PATH="+goroot+"/bin:"+s.bin+":"+cleanPath, "GOPROXY=file://"+proxy, "GOSUMDB=off", "GOTOOLCHAIN=local", "GOTELEMETRY=off")
	t.Cleanup(func() { // the module cache is read-only
		filepath.WalkDir(s.root, func(p string, d os.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				os.Chmod(p, 0o755)
			}
			return nil
		})
	})
	s.command("/usr/bin/env", "go", "mod", "tidy").ok()
	must(t, os.RemoveAll(proxy)) // from now on it must come from the cache
	return s.setenv("GOPROXY=off")
}

// proxied puts a version of a module into a directory that is a module proxy.
func (s *site) proxied(proxy, module, version, code string) {
	s.t.Helper()
	dir := proxy + "/" + module + "/@v/"
	mod := "module " + module + "\n\ngo 1.21\n"
	var buf bytes.Buffer
	z := zip.NewWriter(&buf)
	for name, text := range map[string]string{"go.mod": mod, "code.go": code} {
		w, err := z.Create(module + "@" + version + "/" + name)
		must(s.t, err)
		_, err = w.Write([]byte(text))
		must(s.t, err)
	}
	must(s.t, z.Close())
	s.write(dir+version+".mod", mod, 0o644)
	s.write(dir+version+".info", `{"Version":"`+version+`"}`, 0o644)
	s.write(dir+version+".zip", buf.String(), 0o644)
	list := ""
	if exists(dir + "list") {
		list = read(s.t, dir+"list")
	}
	s.write(dir+"list", list+version+"\n", 0o644)
}

// goEnvNames are what go must take the same inside; GOCACHE is the cage's own.
const goEnvNames = "GOMODCACHE GOPATH GOFLAGS GOROOT GOVERSION GOTOOLCHAIN GOPROXY GOSUMDB GOWORK GOMOD GOBIN GO111MODULE CGO_ENABLED GOPRIVATE"

// buildSame builds outside and inside without a network and compares the archive's bytes; it returns what is built of what.
func (s *site) buildSame(flags ...string) string {
	s.t.Helper()
	s.same(append([]string{"--", "go", "env"}, strings.Fields(goEnvNames)...)...)
	list := s.same("--network", "none", "--", "go", "list", "-deps", "-f", "{{.ImportPath}} {{.Dir}} {{with .Module}}{{.Version}} {{.GoMod}}{{end}}", ".")
	build := append([]string{"go", "build"}, flags...)
	s.command(append(append([]string{"/usr/bin/env"}, build...), "-o", "outside.a", ".")...).ok().silent()
	s.run(append(append([]string{"--network", "none", "--write", ".", "--"}, build...), "-o", "inside.a", ".")...).ok().silent()
	if read(s.t, s.path("outside.a")) != read(s.t, s.path("inside.a")) {
		s.t.Errorf("another package was built inside, of\n%s", list)
	}
	must(s.t, os.Remove(s.path("outside.a")))
	must(s.t, os.Remove(s.path("inside.a")))
	return list
}

// Case 34 (hivecommons/hive#6100, fullsend-ai/fullsend#1904), toolchains.md B9, hosts.md 12 and 13: a build inside, offline, with what
// was downloaded outside, whatever says where that is.
func TestToolchainGoBuild(t *testing.T) {
	s := goSite(t)
	mod := s.home + "/go/pkg/mod"
	list := s.buildSame()
	if !strings.Contains(list, mod+"/example.com/dep@v1.0.0 v1.0.0") {
		t.Errorf("not from the cache:\n%s", list)
	}
	// The build cache is the cage's own and can be written; the modules cannot.
	s.run("--", "sh", "-c", `d=$(go env GOCACHE) && case $d in "$HOME"/*) ;; *) echo "$d";; esac && mkdir -p "$d" && touch "$d/x"`).ok().silent().prints("")
	if exists(s.home+"/.cache/go-build/x") || exists("/run/selfcage/home") {
		t.Error("the cache is the host's")
	}
	s.readOnly(mod, mod+"/cache/download")
	r := s.run("--", "go", "mod", "download", "example.com/dep@v1.9.9")
	if r.status == 0 {
		t.Errorf("%s", r.out)
	}
	s.noSecrets()

	// Variables, by the environment and by go env -w.
	s.setenv("GOFLAGS=-mod=mod").buildSame()
	s.setenv("GOFLAGS=-mod=readonly", "GOTOOLCHAIN="+strings.TrimSpace(s.same("--", "go", "env", "GOVERSION"))+"+auto").buildSame()
	s.setenv("GOPATH=" + s.home + "/go:" + s.root + "/second").buildSame()
	s.write(s.home+"/.config/go/env", "GOFLAGS=-tags=special\nGOPRIVATE=example.com/private\n", 0o644)
	s.write("special.go", "//go:build special\n\npackage m\n\n// Special is there with the tag.\nconst Special = Unknown\n", 0o644)
	if s.command("/usr/bin/env", "go", "build", ".").status == 0 || !strings.Contains(s.run("--write", ".", "--", "go", "build", ".").err, "undefined: Unknown") {
		t.Error("go env -w was lost")
	}
	s.write("special.go", "//go:build special\n\npackage m\n\n// Special is there with the tag.\nconst Special = 1\n", 0o644)
	s.buildSame()
	if out := s.same("--", "go", "env", "GOENV"); out != s.home+"/.config/go/env\n" {
		t.Errorf("%q", out)
	}
	must(t, os.Rename(s.home+"/go", s.home+"/elsewhere"))
	s.write(s.home+"/.config/go/env", "GOPATH="+s.home+"/elsewhere\nGOFLAGS=-tags=special\n", 0o644)
	if list := s.buildSame(); !strings.Contains(list, s.home+"/elsewhere/pkg/mod/example.com/dep@v1.0.0") {
		t.Errorf("%s", list)
	}
	s.setenv("GOENV=off", "GOMODCACHE="+s.home+"/elsewhere/pkg/mod").buildSame()
	moved := s.write(s.root+"/goenv", "GOMODCACHE="+s.home+"/elsewhere/pkg/mod\n", 0o644)
	s.setenv("GOENV=" + moved).buildSame()
	s.setenv("XDG_CONFIG_HOME=" + s.home + "/.config").buildSame()
	// A secret in the file: the other lines are kept, and it is not shown.
	s.write(s.home+"/.config/go/env", "GOPATH="+s.home+"/elsewhere\nGOPROXY=https://user:"+strings.ReplaceAll(homeSecret, " ", "")+"@example.com\n", 0o644)
	r = s.run("--", "sh", "-c", `go env GOPATH GOFLAGS; cat "$1/.config/go/env"; env`, "sh", s.home)
	r.has(s.home + "/elsewhere\n").hasNot(strings.ReplaceAll(homeSecret, " ", ""))
}

// toolchains.md A2, B9: go finds GOROOT beside its own file, once links are followed: a bind by the link's name breaks that.
func TestToolchainGoRoot(t *testing.T) {
	s := goSite(t)
	goroot := filepath.Dir(filepath.Dir(s.need("go")))
	real, err := filepath.EvalSymlinks(goroot)
	must(t, err)
	s.link(real+"/bin", s.home+"/gobin")
	s.link(real+"/bin/go", s.home+"/.local/bin/go")
	s.link(real, s.root+"/sdk/current")
	for _, dir := range []string{s.home + "/gobin", s.home + "/.local/bin", s.root + "/sdk/current/bin"} {
		e := s.path0(dir)
		if out := e.same("--", "go", "env", "GOROOT", "GOVERSION"); !strings.HasPrefix(out, "/") {
			t.Errorf("%q", out)
		}
		e.same("--", "go", "list", "-f", "{{.Dir}}", "fmt")
	}
	// Debian's split packages: the sources lie in share.
	lib, share := s.root+"/u/lib/go-1.99", s.root+"/u/share/go-1.99"
	must(t, os.MkdirAll(lib+"/bin", 0o755))
	copyFile(t, real+"/bin/go", lib+"/bin/go", 0o755)
	must(t, os.MkdirAll(share, 0o755))
	s.link(real+"/src", share+"/src")
	s.link("../../share/go-1.99/src", lib+"/src")
	s.link(real+"/pkg", lib+"/pkg")
	s.write(share+"/VERSION", read(t, real+"/VERSION"), 0o644)
	s.link("../../share/go-1.99/VERSION", lib+"/VERSION")
	s.link("../lib/go-1.99/bin/go", s.root+"/u/bin/go")
	e := s.path0(s.root + "/u/bin")
	if out := e.same("--", "go", "list", "-f", "{{.Dir}} {{.Root}}", "fmt"); !strings.Contains(out, lib) {
		t.Errorf("%q", out)
	}
	e.readOnly(lib, lib+"/bin")
	e.noSecrets()
}

// toolchains.md B9, case 34: a toolchain line, and a toolchain in the module cache.
func TestToolchainGoToolchain(t *testing.T) {
	s := goSite(t)
	version := "v0.0.1-go1.99.0." + runtime.GOOS + "-" + runtime.GOARCH
	dir := s.home + "/go/pkg/mod/golang.org/toolchain@" + version
	s.write(dir+"/bin/go", "#!/bin/sh\necho go version go1.99.0 of \"$0\" \"$@\"\n", 0o755)
	down := s.home + "/go/pkg/mod/cache/download/golang.org/toolchain/@v/" + version
	for _, f := range []string{".zip", ".ziphash", ".lock", ".info", ".mod"} {
		s.write(down+f, map[bool]string{true: "h1:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="}[f == ".ziphash"], 0o644)
	}
	s.write("go.mod", strings.Replace(read(t, s.path("go.mod")), "go 1.21\n", "go 1.21\n\ntoolchain go1.99.0\n", 1), 0o644)
	s = s.setenv("GOPROXY=file://" + s.root + "/absent") // with others go asks the checksum database
	s.write(s.home+"/go/pkg/sumdb/sum.golang.org/latest", "go.sum database tree\n", 0o644)
	s.same("--", "cat", s.home+"/go/pkg/sumdb/sum.golang.org/latest")
	e := s.setenv("GOTOOLCHAIN=auto")
	if out := e.same("--network", "none", "--", "go", "version"); !strings.Contains(out, "go1.99.0 of "+dir+"/bin/go") {
		t.Errorf("%q", out)
	}
	s.setenv("GOTOOLCHAIN=go1.99.0").same("--", "go", "version")
	must(t, os.Remove(down+".ziphash"))
	e.selfcage("run", "--", "true").ok().says("the toolchain go1.99.0 lacks its entry")
	e.readOnly(dir, s.home+"/go/pkg/sumdb")
	e.noSecrets()
}

// hosts.md 10 and 11: a workspace above the checkout, a replaced module beside it: without them a published version is built, or none.
func TestToolchainGoWorkspace(t *testing.T) {
	s := goSite(t)
	s.write(s.root+"/forks/dep/go.mod", "module example.com/dep\n\ngo 1.21\n", 0o644)
	s.write(s.root+"/forks/dep/code.go", "package dep\n\n// Version says which one it is.\nconst Version = \"the fork\"\n", 0o644)
	s.write(s.root+"/forks/letters.txt", homeSecret, 0o644)
	s.write(".git/HEAD", "ref: refs/heads/main\n", 0o644)
	mod := read(t, s.path("go.mod"))
	for _, p := range []string{"../forks/dep", s.root + "/forks/dep"} {
		s.write("go.mod", mod+"\nreplace example.com/dep v1.0.0 => "+p+"\n", 0o644)
		if list := s.buildSame("-mod=mod"); !strings.Contains(list, s.root+"/forks/dep") {
			t.Errorf("%s", list)
		}
		s.readOnly(s.root + "/forks/dep")
		s.noSecrets()
	}
	s.write("go.mod", mod, 0o644)
	s.write(s.root+"/go.work", "go 1.21\n\nuse (\n\t./proj\n\t./forks/dep // ours\n)\n", 0o644)
	if list := s.buildSame(); !strings.Contains(list, s.root+"/forks/dep") {
		t.Errorf("%s", list)
	}
	s.mkdir("deep/er")
	s.at(s.path("deep/er")).same("--", "go", "list", "-deps", "-f", "{{.ImportPath}} {{.Dir}}", "example.com/m")
	s.setenv("GOWORK=" + s.root + "/go.work").buildSame()
	s.setenv("GOWORK=off").buildSame()
	s.readOnly(s.root + "/forks/dep")
	s.noSecrets()
}

// hosts.md 12: a build cache that was granted is the one that go uses, by its own name for it.
func TestToolchainGoCache(t *testing.T) {
	s := goSite(t)
	cache := s.home + "/.cache/go-build"
	s.command("/usr/bin/env", "go", "build", ".").ok()
	if !exists(cache) {
		t.Fatal("no cache outside")
	}
	if out := s.run("--write", cache, "--", "go", "env", "GOCACHE").ok().out; out != cache+"\n" {
		t.Errorf("%q", out)
	}
	r := s.run("--write", cache, "--", "go", "build", "-x", ".").ok()
	if strings.Contains(r.err, "/compile ") {
		t.Errorf("compiled again:\n%s", r.err)
	}
	// The same by its name, and begun by it: what one run compiled is there for the next.
	if r := s.run("--cache", "go", "--", "go", "build", "-x", ".").ok(); strings.Contains(r.err, "/compile ") {
		t.Errorf("compiled again:\n%s", r.err)
	}
	fresh := s.setenv("GOCACHE=" + s.home + "/fresh/cache")
	for i, want := range []bool{true, false} {
		r := fresh.run("--cache", "go", "--", "go", "build", "-x", ".").ok()
		if strings.Contains(r.err, "/compile ") != want {
			t.Errorf("run %d compiled: %v", i, !want)
		}
	}
	if strings.Contains(s.run("--", "go", "build", "-x", ".").ok().err, "/compile ") == false {
		t.Error("without the grant it is the cache of outside")
	}
	s.noSecrets()
}

// A program is built and run with the test's own build cache, where that is warm.
func TestGoToolchainRun(t *testing.T) {
	s := goSite(t)
	out, err := exec.Command("go", "env", "GOCACHE").Output()
	must(t, err)
	cache := strings.TrimSpace(string(out))
	s.write("cmd/x/main.go", "package main\n\nimport \"example.com/m\"\n\nfunc main() { println(m.Version()) }\n", 0o644)
	e := s.setenv("GOCACHE="+cache, "GOFLAGS=-buildvcs=false")
	e.run("--network", "none", "--write", cache, "--", "go", "run", "./cmd/x").ok().prints("").says("published v1.0.0published v1.0.0\n")
	e.noSecrets("--write", cache)
}
