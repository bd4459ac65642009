// Package fakehost is for tests only. It reads hosts that were written down as text, so that planning for Fedora or
// NixOS can be tested anywhere.
//
// A host is a txtar archive in testdata/hosts. The comment at its top says which machine it is. A section whose name
// begins with '@' lists files of one kind, one a line, with absolute paths; '#' begins a comment line:
//
//	-- @links --
//	/bin -> usr/bin            the link's text, unchanged
//	-- @dirs --
//	/root 0700                 a directory that would not exist otherwise, or has an unusual mode
//	-- @files --
//	/usr/bin/env 48536 0755    a file of that size whose content does not matter
//	-- @devices --
//	/dev/kfd 0666              a character device
//	-- @modes --
//	/etc/shadow 0640           the mode of a file from a section of its own
//
// Any other section is a file with that content and mode 0644; its name is the path without the first slash. Directories
// on the way are made. A path that occurs twice, or lies below something that is no directory, is an error.
package fakehost

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"
)

// Load returns the host testdata/hosts/name.txtar.
func Load(t testing.TB, name string) fstest.MapFS {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir(t), name+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	host, err := Parse(data)
	if err != nil {
		t.Fatalf("host %s: %v", name, err)
	}
	return host
}

// Names returns the name of every host that is written down.
func Names(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir(t), "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no hosts in %s: %v", dir(t), err)
	}
	for i, f := range files {
		files[i] = strings.TrimSuffix(filepath.Base(f), ".txtar")
	}
	return files
}

// dir finds testdata/hosts beside go.mod, from the directory of the package that is tested.
func dir(t testing.TB) string {
	t.Helper()
	d, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; d != filepath.Dir(d); d = filepath.Dir(d) {
		if _, err := os.Stat(filepath.Join(d, "go.mod")); err == nil {
			return filepath.Join(d, "testdata", "hosts")
		}
	}
	t.Fatal("no go.mod above the working directory")
	return ""
}

// Parse makes a host of its text. Windows line ends do not count.
func Parse(text []byte) (fstest.MapFS, error) {
	host := fstest.MapFS{}
	var modes []string
	for _, f := range txtar.Parse(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))).Files {
		kind, listed := strings.CutPrefix(f.Name, "@")
		if !listed {
			if err := add(host, "/"+f.Name, &fstest.MapFile{Data: f.Data, Mode: 0o644}); err != nil {
				return nil, err
			}
			continue
		}
		for line := range strings.Lines(string(f.Data)) {
			line = strings.TrimSpace(line)
			if line == "" || line[0] == '#' {
				continue
			}
			if kind == "modes" {
				modes = append(modes, line)
				continue
			}
			p, file, err := entry(kind, line)
			if err == nil {
				err = add(host, p, file)
			}
			if err != nil {
				return nil, fmt.Errorf("@%s: %q: %w", kind, line, err)
			}
		}
	}
	for _, line := range modes {
		p, mode, _ := strings.Cut(line, " ")
		m, err := perm(mode)
		file := host[strings.TrimPrefix(p, "/")]
		if err != nil || file == nil {
			return nil, fmt.Errorf("@modes: %q: no such file, or no mode", line)
		}
		file.Mode = file.Mode&^fs.ModePerm | m
	}
	return host, whole(host)
}

// entry reads one line of a section of that kind.
func entry(kind, line string) (p string, file *fstest.MapFile, err error) {
	if kind == "links" {
		p, text, ok := strings.Cut(line, " -> ")
		if !ok || text == "" {
			return "", nil, fmt.Errorf("want PATH -> TEXT")
		}
		return p, &fstest.MapFile{Data: []byte(text), Mode: fs.ModeSymlink | 0o777}, nil
	}
	words := strings.Fields(line)
	file = &fstest.MapFile{}
	optional := 1 // index of the mode
	switch kind {
	case "dirs":
		file.Mode = fs.ModeDir | 0o755
	case "devices":
		file.Mode = fs.ModeDevice | fs.ModeCharDevice | 0o600
	case "files":
		if len(words) < 2 {
			return "", nil, fmt.Errorf("want PATH SIZE [MODE]")
		}
		size, err := strconv.Atoi(words[1])
		if err != nil || size < 0 {
			return "", nil, fmt.Errorf("bad size %q", words[1])
		}
		file.Mode, file.Data = 0o644, make([]byte, size)
		optional = 2
	default:
		return "", nil, fmt.Errorf("unknown section")
	}
	if len(words) > optional+1 {
		return "", nil, fmt.Errorf("too many words")
	}
	if len(words) == optional+1 {
		m, err := perm(words[optional])
		if err != nil {
			return "", nil, err
		}
		file.Mode = file.Mode&^fs.ModePerm | m
	}
	return words[0], file, nil
}

func perm(s string) (fs.FileMode, error) {
	n, err := strconv.ParseUint(s, 8, 9)
	return fs.FileMode(n), err
}

func add(host fstest.MapFS, p string, file *fstest.MapFile) error {
	switch {
	case !strings.HasPrefix(p, "/") || path.Clean(p) != p || p == "/":
		return fmt.Errorf("%q is not an absolute clean path", p)
	case host[p[1:]] != nil:
		return fmt.Errorf("%q is there twice", p)
	}
	host[p[1:]] = file
	return nil
}

// whole checks that everything lies in a directory.
func whole(host fstest.MapFS) error {
	names := make([]string, 0, len(host))
	for name := range host {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		for d := path.Dir(name); d != "."; d = path.Dir(d) {
			if f := host[d]; f != nil && !f.Mode.IsDir() {
				return fmt.Errorf("%q lies below %q, which is no directory", "/"+name, "/"+d)
			}
		}
	}
	return nil
}
