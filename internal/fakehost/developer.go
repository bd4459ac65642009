package fakehost

import (
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"testing/fstest"
)

// Developer is the machine of somebody who uses many tools at once: a uv environment in a Go workspace, a PATH of 40
// entries, links in .local/bin to pipx and uv tools, nvm, rustup, pyenv and a JDK.
type Developer struct {
	Files map[string]string // content by path
	Links map[string]string // text by path
	Env   []string
	Home  string
	Dir   string // the working directory, in which the environment lies
}

// NewDeveloper returns one whose paths begin with root, which is empty or a directory on the disk, and who has that many
// tools in .local/bin.
func NewDeveloper(root string, tools int) Developer {
	home := root + "/home/u"
	uv := home + "/.local/share/uv/python"
	files := map[string]string{
		uv + "/cpython-3.12.3/bin/python3.12":                   "\x7fELF",
		home + "/w/.git/HEAD":                                   "x",
		home + "/w/p/.venv/pyvenv.cfg":                          "home = " + uv + "/cpython-3.12/bin\nuv = 1\n",
		home + "/w/p/.venv/lib/python3.12/site-packages/_e.pth": home + "/src/e\n",
		home + "/src/e/pyproject.toml":                          "x",
		home + "/w/go.work":                                     "go 1.25\nuse (\n./p\n./q\n../lib\n)\n",
		home + "/w/p/go.mod":                                    "module p\nreplace x => ../../fork\n",
		home + "/w/q/go.mod":                                    "module q\n",
		home + "/lib/go.mod":                                    "module lib\n",
		home + "/fork/go.mod":                                   "module fork\n",
		home + "/go/pkg/mod/cache/x":                            "x",
		home + "/.config/go/env":                                "GOFLAGS=-mod=mod\n",
		home + "/.cache/go-build/x":                             "x",
		home + "/.cargo/bin/rustup":                             "\x7fELF",
		home + "/.cargo/registry/x":                             "x",
		home + "/.rustup/toolchains/stable/bin/rustc":           "x",
		home + "/.pyenv/shims/python":                           "#!/bin/sh\n",
		home + "/.pyenv/versions/3.11/bin/python":               "x",
		home + "/.nvm/versions/node/v20/bin/node":               "\x7fELF",
		home + "/.nvm/versions/node/v20/lib/node_modules/npm/x": "x",
		home + "/.gitconfig":                                    "[user]\nname = u\n",
		home + "/.npmrc":                                        "//x/:_authToken=t\n",
		home + "/.local/bin/uv":                                 "\x7fELF",
		root + "/opt/jdk/bin/java":                              "x",
		root + "/opt/jdk/lib/security/cacerts":                  "x",
		root + "/opt/go/bin/go":                                 "\x7fELF",
		root + "/opt/go/src/x":                                  "x",
	}
	links := map[string]string{
		uv + "/cpython-3.12":                        "cpython-3.12.3",
		home + "/w/p/.venv/bin/python":              uv + "/cpython-3.12/bin/python3.12",
		home + "/w/p/.venv/bin/python3":             "python",
		home + "/.cargo/bin/cargo":                  "rustup",
		home + "/.cargo/bin/rustc":                  "rustup",
		home + "/.nvm/versions/node/v20/bin/npm":    "../lib/node_modules/npm/x",
		home + "/.local/bin/python3.12":             uv + "/cpython-3.12/bin/python3.12",
		home + "/.local/share/uv/tools/t0/lib/link": "../..",
	}
	for i := range tools {
		n := strconv.Itoa(i)
		tool := home + "/.local/share/uv/tools/t" + n
		if i > 9 {
			tool = home + "/.local/share/pipx/venvs/t" + strconv.Itoa(i%10)
		}
		files[tool+"/bin/run"+n] = "#!" + tool + "/bin/python\n"
		files[tool+"/pyvenv.cfg"] = "home = " + uv + "/cpython-3.12/bin\n"
		files[tool+"/lib/python3.12/site-packages/x/__init__.py"] = ""
		links[tool+"/bin/python"] = uv + "/cpython-3.12/bin/python3.12"
		links[home+"/.local/bin/run"+n] = tool + "/bin/run" + n
	}
	entries := []string{home + "/w/p/.venv/bin", home + "/.local/bin", home + "/go/bin", home + "/.cargo/bin", home + "/.pyenv/shims",
		home + "/.pyenv/bin", home + "/.nvm/versions/node/v20/bin", root + "/opt/go/bin", root + "/opt/jdk/bin"}
	for i := len(entries); i < 37; i++ {
		p := root + "/opt/pkg" + strconv.Itoa(i) + "/bin"
		files[p+"/tool"] = "x"
		files[path.Dir(p)+"/lib/x"] = "x"
		entries = append(entries, p)
	}
	entries = append(entries, "/usr/local/bin", "/usr/bin", "/bin")
	return Developer{
		Files: files, Links: links, Home: home, Dir: home + "/w/p",
		Env: []string{"HOME=" + home, "PATH=" + strings.Join(entries, ":"), "VIRTUAL_ENV=" + home + "/w/p/.venv"},
	}
}

// AddTo puts it into a host in memory. Paths must not have had a root.
func (d Developer) AddTo(host fstest.MapFS) {
	for p, data := range d.Files {
		host[p[1:]] = &fstest.MapFile{Data: []byte(data), Mode: 0o755}
	}
	for p, text := range d.Links {
		host[p[1:]] = &fstest.MapFile{Data: []byte(text), Mode: fs.ModeSymlink | 0o777}
	}
}

// Make puts it on the disk.
func (d Developer) Make() error {
	for p, data := range d.Files {
		if err := os.MkdirAll(path.Dir(p), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(p, []byte(data), 0o755); err != nil {
			return err
		}
	}
	for p, text := range d.Links {
		if err := os.MkdirAll(path.Dir(p), 0o755); err != nil {
			return err
		}
		if err := os.Symlink(text, p); err != nil {
			return err
		}
	}
	return nil
}
