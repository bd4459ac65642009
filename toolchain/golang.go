package toolchain

import (
	"runtime"
	"strings"

	"github.com/selfcage/selfcage/internal/hostfs"
)

// goEnv is what go would take a variable for, without running go: the environment, then the file of go env -w.
func (f *finder) goEnv(name string) string {
	if v := f.env[name]; v != "" {
		return v
	}
	return setting(f.goEnvText(), name)
}

// goEnvFile is the file of go env -w, "" where it is off.
func (f *finder) goEnvFile() string {
	switch v := f.env["GOENV"]; v {
	case "":
		return f.config("go/env")
	case "off":
		return ""
	default:
		return v
	}
}

func (f *finder) goEnvText() string {
	text, _ := f.small(f.goEnvFile())
	return text
}

func (f *finder) goPath() string {
	p, _, _ := strings.Cut(f.goEnv("GOPATH"), ":")
	if p == "" {
		p = f.inHome("go")
	}
	return strings.TrimRight(p, "/")
}

func (f *finder) goModCache() string {
	if p := f.goEnv("GOMODCACHE"); p != "" {
		return p
	}
	if p := f.goPath(); p != "" {
		return p + "/pkg/mod"
	}
	return ""
}

func (f *finder) goCache() string {
	if p := f.goEnv("GOCACHE"); p != "" {
		return p
	}
	return f.cache("go-build")
}

// golang shows where go keeps modules and toolchains, and what go env -w said. Whether a go program is in PATH decides.
func (f *finder) golang() {
	p, ok := f.which("go")
	if !ok && f.env["GOROOT"] == "" {
		return
	}
	if ok {
		f.installed(p, "go finds GOROOT beside its own file, once links are followed")
	}
	if root := f.env["GOROOT"]; root != "" {
		f.tree(root, "GOROOT names it")
	}
	f.goSettings()
	f.out.Files = append(f.out.Files, File{Name: ".config/go/telemetry/mode", Data: []byte("off\n"), By: f.by,
		Why: "what go counts would end with the cage, and the process that it starts for it outlives go"})
	if mod := f.goModCache(); mod != "" {
		const why = "modules and toolchains that were downloaded"
		if _, ok := f.tree(mod, why); ok {
			if f.goEnv("GOPATH") == "" {
				f.pin("GOPATH", f.goPath(), "it follows HOME; programs that go install writes would vanish with the cage")
			}
			f.pin("GOMODCACHE", mod, why)
			if gopath := f.goPath(); gopath != "" {
				f.tree(gopath+"/pkg/sumdb", "what go verifies a toolchain with; without it there is none, downloaded or not")
			}
		}
	}
	if f.env["GO111MODULE"] == "off" {
		f.tree(f.goPath()+"/src", "packages are looked up there without modules")
	}
	f.goSource()
	if sdk := f.inHome("sdk"); sdk != "" && f.uses(f.goPath()+"/bin") && f.exists(sdk, "") {
		f.atHome(sdk, "sdk", "Go versions of golang.org/dl, which look in HOME")
	}
}

// goSettings keeps what go env -w said: the file itself, or, where a line of it may be a secret, the other lines.
func (f *finder) goSettings() {
	file := f.goEnvFile()
	text, ok := f.small(file)
	if !ok {
		return
	}
	const why = "what go env -w said"
	if !holdsSecret(text) {
		if _, ok := f.tree(file, why); ok {
			f.pin("GOENV", file, why)
			return
		}
	}
	for _, l := range lines(text) {
		name, value, ok := strings.Cut(l, "=")
		if ok && l[0] != '#' && value != "" && !holdsSecret(l) {
			f.pin(name, value, why)
		}
	}
}

// goFlags shows the files that GOFLAGS names.
func (f *finder) goFlags() {
	for w := range strings.FieldsSeq(f.env["GOFLAGS"]) {
		for _, flag := range [...]string{"-overlay=", "-modfile=", "-toolexec=", "-pgo="} {
			if _, p, ok := strings.Cut(w, flag); ok && strings.HasPrefix(p, "/") {
				f.tree(f.resolve(p, "/"), "GOFLAGS names it")
			}
		}
	}
}

// goSource shows the source trees that a build reads: the module, the workspace, and what they replace.
func (f *finder) goSource() {
	mods := f.upward("the module: without it go builds another one, or none", false, "go.mod")
	for _, m := range mods {
		f.tree(hostfs.Parent(m), "the module that the working directory belongs to")
	}
	work := f.env["GOWORK"]
	if work == "" {
		work = f.goEnv("GOWORK")
	}
	var works []string
	switch {
	case work == "off":
	case strings.HasPrefix(work, "/"):
		if _, ok := f.tree(work, "GOWORK names it"); ok {
			works = []string{work}
		}
	default:
		works = f.upward("the workspace: without it go builds published versions of its modules, or none", false, "go.work")
	}
	for _, w := range works {
		f.sums(w+".sum", "checksums of the workspace")
		text, _ := f.small(w)
		dir := hostfs.Parent(w)
		for _, use := range directive(text, "use") {
			if p, ok := f.module(use[0], dir, w); ok {
				mods = union(mods, []string{p + "/go.mod"})
			}
		}
		f.replaced(text, dir, w)
	}
	for _, m := range mods {
		if text, ok := f.small(m); ok {
			f.replaced(text, hostfs.Parent(m), m)
			f.goToolchain(text)
		}
		f.sums(strings.TrimSuffix(m, "mod")+"sum", "checksums of the module")
	}
}

func (f *finder) sums(p, why string) {
	if f.named(p) {
		f.tree(p, why)
	}
}

// replaced shows the directories that a go.mod or go.work puts in the place of published modules.
func (f *finder) replaced(text, dir, by string) {
	for _, words := range directive(text, "replace") {
		for i, w := range words {
			if w == "=>" && i+1 < len(words) {
				f.module(words[i+1], dir, by)
			}
		}
	}
}

// module shows a module directory that a file names, if it is one.
func (f *finder) module(p, dir, by string) (string, bool) {
	if p != "." && p != ".." && !strings.HasPrefix(p, "./") && !strings.HasPrefix(p, "../") && !strings.HasPrefix(p, "/") {
		if by[strings.LastIndexByte(by, '.'):] != ".work" {
			return "", false // a module path
		}
	}
	p = clean(hostfs.Abs(p, dir))
	if !f.exists(p, "go.mod") {
		return "", false
	}
	_, ok := f.sourceTree(p, by+" names it: without it a published version is built, or none")
	return p, ok
}

// directive returns the words of each line of a directive of go.mod or go.work, alone or in a block.
func directive(text, name string) (list [][]string) {
	block := false
	for _, l := range lines(text) {
		l, _, _ = strings.Cut(l, "//")
		words := strings.Fields(l)
		for i, w := range words {
			words[i] = strings.Trim(w, "\"`")
		}
		switch {
		case len(words) == 0:
		case block && words[0] == ")":
			block = false
		case block:
			list = append(list, words)
		case words[0] == name && len(words) > 1 && words[1] == "(":
			block = true
		case words[0] == name+"(":
			block = true
		case words[0] == name && len(words) > 1:
			list = append(list, words[1:])
		}
	}
	return list
}

// goToolchain tells where the toolchain that a module asks for cannot be used from a read-only module cache: go writes a
// lock file unless the archive's hash is there.
func (f *finder) goToolchain(text string) {
	words := directive(text, "toolchain")
	if len(words) == 0 {
		return
	}
	name, mod := words[0][0], f.goModCache()
	version := "v0.0.1-" + name + ".linux-" + runtime.GOARCH
	if mod == "" || name == "default" || !f.exists(mod, "golang.org/toolchain@"+version) {
		return
	}
	if !f.exists(mod, "cache/download/golang.org/toolchain/@v/"+version+".ziphash") {
		f.note("the toolchain " + name + " lacks its entry in the module cache's download directory: go would write there, which only --cache gomod allows")
	}
}

// atHome shows p where it is and below the cage's HOME.
func (f *finder) atHome(p, home, why string) {
	r, err := f.walk(p)
	if err != nil {
		return
	}
	if _, secret := f.secret(r.Path); secret {
		return
	}
	f.out.Needs = append(f.out.Needs, Need{Path: p, Root: r.Path, Home: home, By: f.by, Why: why})
}
