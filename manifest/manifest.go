// Package manifest records what a run could see: mounts, programs, tools, inputs, devices and the machine. Two of them tell
// why two benchmark runs are not the same run.
//
// A manifest never holds a value of a variable, an argument that names no file, or the content of a file. Of contents it holds
// SHA-256 digests. Who knows all other files of a directory can test guesses of one by the directory's digest, so a manifest
// is as private as the report that carries it.
//
// # Limitations
//
// What is written here was looked at before the program began and is not looked at again. Digests of directories leave out
// version control (.git, whose commit is told instead), the report of the run itself where a flag or a variable names it, and
// whatever the cage hides or puts in another's place. A file system that hangs makes the look hang.
package manifest

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/selfcage/selfcage/internal/jsontext"
)

// document is the published form; docs/manifest.md and docs/manifest.schema.json describe it.
type document struct {
	Version   int              `json:"version"`
	Facts     map[string]facts `json:"facts"` // by area: "cpu", "kernel"
	Unknown   []unknown        `json:"unknown"`
	Programs  []program        `json:"programs"`
	Tools     []tool           `json:"tools"`
	Inputs    []input          `json:"inputs"`
	Devices   []device         `json:"devices"`
	Mounts    []mount          `json:"mounts"`
	Variables []text           `json:"variables"`
}

// facts are values by name. What could not be read is not among them.
type facts map[string]string

// unknown is a fact that could not be read.
type unknown struct {
	Area string `json:"area"`
	Item string `json:"item"`
	Why  string `json:"why"`
}

// program is an executable that the run begins with, or what such a file needs to begin.
type program struct {
	Role   string `json:"role"` // "program", "command", "interpreter", "started", "loader", "libc"
	Path   text   `json:"path,omitempty"`
	ID     string `json:"id,omitempty"` // device and inode
	Size   int64  `json:"size,omitempty"`
	SHA256 string `json:"sha256,omitempty"`
	Why    string `json:"why,omitempty"`  // there is no digest
	Says   string `json:"says,omitempty"` // its own version, where the file tells without being run
}

// tool is a part of a toolchain that was made visible, or a program in PATH.
type tool struct {
	Name    string `json:"name"` // "toolchain/go", or of the program
	Path    text   `json:"path"`
	Version string `json:"version,omitempty"`
	From    text   `json:"from,omitempty"`   // the file, or the name, that tells the version
	SHA256  string `json:"sha256,omitempty"` // of a program
	Why     string `json:"why,omitempty"`    // there is neither
}

// input is a path that was granted, or that an argument names.
type input struct {
	Path   text   `json:"path"`
	By     string `json:"by"`
	Kind   string `json:"kind"` // "file", "directory", "other"
	Size   int64  `json:"size,omitempty"`
	Files  int    `json:"files,omitempty"` // of a directory, all that lies below it
	SHA256 string `json:"sha256,omitempty"`
	Commit string `json:"commit,omitempty"` // of a git checkout
	Why    string `json:"why,omitempty"`    // there is no digest
}

// device is a character device inside.
type device struct {
	Path   text   `json:"path"`
	Number string `json:"number,omitempty"` // major:minor
	Driver string `json:"driver,omitempty"`
	Says   string `json:"says,omitempty"` // vendor, device and the driver's version
	Why    string `json:"why,omitempty"`  // nothing is known of it
}

// mount is one mount of the plan, with what the kernel says of it.
type mount struct {
	Target     text   `json:"target"`
	Source     text   `json:"source,omitempty"`
	Kind       string `json:"kind"`
	By         string `json:"by"`
	ID         string `json:"id,omitempty"`     // device and inode of the source
	SHA256     string `json:"sha256,omitempty"` // of a copy
	Filesystem string `json:"filesystem,omitempty"`
	Options    string `json:"options,omitempty"`
}

// text may hold any byte.
type text = jsontext.Text

// bytes is the document as it is published. Lists are never null.
func (d document) bytes() ([]byte, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(d)
	return []byte(strings.TrimSuffix(b.String(), "\n")), err
}

// empty is a document that says nothing, with all its lists.
func empty() document {
	return document{
		Version: 1, Facts: map[string]facts{}, Unknown: []unknown{}, Programs: []program{}, Tools: []tool{}, Inputs: []input{},
		Devices: []device{}, Mounts: []mount{}, Variables: []text{},
	}
}

// printable is a value that a file of the host or of a tool tells, cut to what a version or a model can be.
func printable(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r == utf8.RuneError {
			return -1
		}
		return r
	}, strings.TrimSpace(s))
	if r := []rune(s); len(r) > 200 {
		s = string(r[:200])
	}
	return s
}
