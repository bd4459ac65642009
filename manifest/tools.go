package manifest

import (
	"encoding/json"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

// teller reads the version of what lies in a directory, without running anything: dir is relative to the root of fsys. from is
// what told it, below dir.
type teller func(fsys fs.FS, dir string) (version, from string)

// tellers are asked in this order.
func tellers() []teller {
	return []teller{goRoot, venv, conda, python, node, jdk, rocm, cuda, rustToolchain, rustup, pyenv, npmPackage}
}

// versionOf asks for the version of the tree at p, an absolute path, and of the two above it: what was made visible may be a
// part of an installation, or one file of it.
func versionOf(fsys fs.FS, p string) (version, from string) {
	for range 3 {
		if p == "/" || p == "." || p == "" || p == "/usr" {
			return "", ""
		}
		for _, tell := range tellers() {
			if v, f := tell(fsys, p[1:]); printable(v) != "" {
				return printable(v), path.Join(p, f)
			}
		}
		p = path.Dir(p)
	}
	return "", ""
}

// small is the content of a file of at most 64 KiB, "" where there is none.
func small(fsys fs.FS, name string) string { return atMost(fsys, name, 64<<10) }

// atMost is the content of a regular file of at most limit bytes: a pipe would wait for its writer.
func atMost(fsys fs.FS, name string, limit int64) string {
	fi, err := fs.Stat(fsys, name)
	if err != nil || !fi.Mode().IsRegular() || fi.Size() > limit {
		return ""
	}
	data, _ := fs.ReadFile(fsys, name)
	return string(data)
}

func goRoot(fsys fs.FS, dir string) (string, string) {
	line, _, _ := strings.Cut(small(fsys, dir+"/VERSION"), "\n")
	if !strings.HasPrefix(line, "go") && !strings.HasPrefix(line, "devel") {
		return "", ""
	}
	return line, "VERSION"
}

func venv(fsys fs.FS, dir string) (string, string) {
	for line := range strings.Lines(small(fsys, dir+"/pyvenv.cfg")) {
		k, v, _ := strings.Cut(line, "=")
		if k = strings.TrimSpace(k); k == "version" || k == "version_info" {
			return "python " + strings.TrimSpace(v), "pyvenv.cfg"
		}
	}
	return "", ""
}

var condaPython = regexp.MustCompile(`^python-([0-9][0-9A-Za-z.]*)-[^-]*\.json$`)

func conda(fsys fs.FS, dir string) (string, string) {
	list, _ := fs.ReadDir(fsys, dir+"/conda-meta")
	for _, e := range list {
		if m := condaPython.FindStringSubmatch(e.Name()); m != nil {
			return "python " + m[1], "conda-meta/" + e.Name()
		}
	}
	return "", ""
}

var patchLevel = regexp.MustCompile(`(?m)^#define\s+PY_VERSION\s+"([^"]+)"`)

// python tells the whole version where the headers are installed, else what the library's directory is called.
func python(fsys fs.FS, dir string) (string, string) {
	list, _ := fs.ReadDir(fsys, dir+"/lib")
	for _, e := range list {
		v, ok := strings.CutPrefix(e.Name(), "python3.")
		if !ok || v == "" || strings.Trim(v, "0123456789t") != "" {
			continue
		}
		header := "include/" + e.Name() + "/patchlevel.h"
		if m := patchLevel.FindStringSubmatch(small(fsys, dir+"/"+header)); m != nil {
			return "python " + m[1], header
		}
		return "python 3." + v, "lib/" + e.Name()
	}
	return "", ""
}

var nodeNumber = regexp.MustCompile(`(?m)^#define\s+NODE_(MAJOR|MINOR|PATCH)_VERSION\s+([0-9]+)`)

func node(fsys fs.FS, dir string) (string, string) {
	const header = "include/node/node_version.h"
	var parts []string
	for _, m := range nodeNumber.FindAllStringSubmatch(small(fsys, dir+"/"+header), 3) {
		parts = append(parts, m[2])
	}
	if len(parts) != 3 {
		return "", ""
	}
	return "node " + strings.Join(parts, "."), header
}

func jdk(fsys fs.FS, dir string) (string, string) {
	text := small(fsys, dir+"/release")
	v := assigned(text, "JAVA_RUNTIME_VERSION")
	if v == "" {
		v = assigned(text, "JAVA_VERSION")
	}
	if v == "" {
		return "", ""
	}
	return "java " + v, "release"
}

func rocm(fsys fs.FS, dir string) (string, string) {
	if v := strings.TrimSpace(small(fsys, dir+"/.info/version")); v != "" {
		return "rocm " + v, ".info/version"
	}
	return "", ""
}

func cuda(fsys fs.FS, dir string) (string, string) {
	var d struct {
		CUDA struct{ Version string } `json:"cuda"`
	}
	if json.Unmarshal([]byte(small(fsys, dir+"/version.json")), &d) != nil || d.CUDA.Version == "" {
		return "", ""
	}
	return "cuda " + d.CUDA.Version, "version.json"
}

// rustToolchain: rustup calls a toolchain's directory by its channel, and rustc's library by its hash.
func rustToolchain(fsys fs.FS, dir string) (string, string) {
	if path.Base(path.Dir(dir)) != "toolchains" {
		return "", ""
	}
	name := path.Base(dir)
	list, _ := fs.ReadDir(fsys, dir+"/lib")
	for _, e := range list {
		if strings.HasPrefix(e.Name(), "librustc_driver-") {
			return "rust " + name + ", " + e.Name(), "lib/" + e.Name()
		}
	}
	return "", ""
}

// rustup and pyenv tell which versions there are; which of them runs is decided by files and variables.
func rustup(fsys fs.FS, dir string) (string, string) {
	if small(fsys, dir+"/settings.toml") == "" {
		return "", ""
	}
	return names(fsys, dir, "toolchains")
}

func pyenv(fsys fs.FS, dir string) (string, string) {
	if fi, err := fs.Stat(fsys, dir+"/libexec/pyenv"); err != nil || fi.IsDir() {
		return "", ""
	}
	return names(fsys, dir, "versions")
}

func names(fsys fs.FS, dir, below string) (string, string) {
	list, _ := fs.ReadDir(fsys, dir+"/"+below)
	var ns []string
	for _, e := range list {
		ns = append(ns, e.Name())
	}
	return strings.Join(ns, " "), below
}

func npmPackage(fsys fs.FS, dir string) (string, string) {
	var d struct{ Name, Version string }
	if json.Unmarshal([]byte(small(fsys, dir+"/package.json")), &d) != nil || d.Name == "" || d.Version == "" {
		return "", ""
	}
	return d.Name + " " + d.Version, "package.json"
}
