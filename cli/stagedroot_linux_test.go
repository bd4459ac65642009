package cli_test

import (
	"debug/elf"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/selfcage/selfcage/internal/sandtest"
)

// inRoot is the site with another root around its commands: an outer bubblewrap puts it together of this machine's, but for
// the entries that instead names, and of what its own options add. So /nix, /opt or a root without merged /usr need no
// rights, nothing is made on this machine, and the cage is one inside another's namespaces. The site is there as it is.
//
// That root is the caller's own, and a bubblewrap below it is trusted only when it is named.
func (s *site) inRoot(instead []string, options ...string) *site {
	s.t.Helper()
	sandtest.Need(s.t, sandtest.Nest)
	words := []string{s.need("bwrap"), "--unshare-user"}
	entries, err := os.ReadDir("/")
	must(s.t, err)
	for _, e := range entries {
		p := "/" + e.Name()
		text, _ := os.Readlink(p)
		switch {
		case slices.Contains(instead, p), p == "/lost+found":
		case text != "":
			words = append(words, "--symlink", text, p)
		case p == "/dev":
			words = append(words, "--dev-bind", p, p)
		case e.IsDir():
			words = append(words, "--bind", p, p)
		}
	}
	c := s.setenv("SANDBOX_BWRAP=" + s.need("bwrap"))
	c.staged = append(append(words, options...), "--bind", s.root, s.root, "--")
	return c
}

// remade are options that make directory dir once more, of links to and binds of what is in it, so that more can be added.
func (s *site) remade(dir string) (options []string) {
	s.t.Helper()
	entries, err := os.ReadDir(dir)
	must(s.t, err)
	options = []string{"--tmpfs", dir}
	for _, e := range entries {
		p := filepath.Join(dir, e.Name())
		if text, err := os.Readlink(p); err == nil {
			options = append(options, "--symlink", text, p)
		} else {
			options = append(options, "--bind", p, p)
		}
	}
	return options
}

// hidden makes sure that each path leads to something outside and to nothing inside.
func (s *site) hidden(paths ...string) {
	s.t.Helper()
	look := []string{"sh", "-c", `for p; do [ ! -e "$p" ] || echo "$p"; done`, "sh"}
	s.command(append([]string{"/usr/bin/env"}, append(look, paths...)...)...).ok().prints(strings.Join(paths, "\n") + "\n")
	s.run(append(append([]string{"--"}, look...), paths...)...).ok().silent().prints("")
}

// prints is same, where what is printed must hold each part.
func (s *site) prints(parts []string, words ...string) (out string) {
	s.t.Helper()
	out = s.same(words...)
	for _, p := range parts {
		if !strings.Contains(out, p) {
			s.t.Errorf("%q: not %q, but\n%s", words, p, out)
		}
	}
	return out
}

// loader is the ELF interpreter of this machine's programs, and its C library beside the file that it leads to.
func loader(t testing.TB) (interp, libc string) {
	t.Helper()
	f, err := elf.Open("/bin/sh")
	must(t, err)
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			text := make([]byte, p.Filesz)
			_, err := p.ReadAt(text, 0)
			must(t, err)
			interp = strings.TrimRight(string(text), "\x00")
		}
	}
	real, err := filepath.EvalSymlinks(interp)
	must(t, err)
	libc = filepath.Join(filepath.Dir(real), "libc.so.6")
	if interp == "" || !exists(libc) {
		t.Skipf("needs a C library beside the loader %s", real)
	}
	return interp, libc
}

// loads compiles a program that says what its library says, and then each file that it was made of: its own, its
// loader's, its libraries'.
func (s *site) loads(p, lib string, flags ...string) {
	s.t.Helper()
	sandtest.Need(s.t, sandtest.CC)
	src := s.write("loads.c", `#include <stdio.h>
#include <string.h>
const char *says(void);
int main(void) {
	char line[4096], *p;
	FILE *maps = fopen("/proc/self/maps", "r");
	puts(says());
	while (maps && fgets(line, sizeof line, maps))
		if (strstr(line, " r-xp ") && (p = strchr(line, '/')))
			fputs(p, stdout);
	return 0;
}
`, 0o644)
	must(s.t, os.MkdirAll(filepath.Dir(p), 0o755))
	s.command(append([]string{"/usr/bin/cc", "-o", p, src, "-L" + lib, "-lsays"}, flags...)...).ok()
}

// In a user namespace without uid 0 what root owns is the overflow uid's. That is trusted as root's
// is, where the caller cannot write it; a root directory of the caller's own is not, unless the caller names the file.
func TestNestedTrust(t *testing.T) {
	s := newSite(t, nil)
	nested := s.inRoot(nil)
	inside := nested.run("--", "readlink", "/proc/self/ns/pid").ok().silent().out
	if outside := nested.command("/bin/readlink", "/proc/self/ns/pid").ok().out; inside == outside || !strings.HasPrefix(inside, "pid:[") {
		t.Errorf("pid namespace %q, outside it is %q", inside, outside)
	}
	nested.run("--", "sh", "-c", `cat "$1/.ssh/id_test"; touch /usr/new`, "sh", s.home).hasNot(homeSecret).says("Read-only file system")
	whole := *s
	whole.staged = []string{s.need("bwrap"), "--unshare-user", "--dev-bind", "/", "/", "--"}
	whole.run("--", "echo", "inside").ok().silent().prints("inside\n")
	sandtest.Need(t, sandtest.Ordinary) // as root the own root is root's
	if owner := whole.command("/usr/bin/stat", "-c", "%u", "/usr/bin/bwrap").ok().out; owner != read(t, "/proc/sys/kernel/overflowuid") {
		t.Errorf("bubblewrap belongs to uid %s", owner)
	}
	unnamed := *nested
	unnamed.env = s.env
	unnamed.run("--", "echo", "ran").refused("not trusted", "its directory / is owned by uid")
	own := s.write("bwrap", "#!/bin/sh\necho ran\n", 0o755)
	whole.staged = []string{s.need("bwrap"), "--unshare-user", "--dev-bind", "/", "/", "--bind", own, "/usr/bin/bwrap", "--"}
	whole.run("--", "echo", "ran").refused("not trusted", "/usr/bin/bwrap", "owned by uid")
}
