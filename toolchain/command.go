package toolchain

import (
	"strings"

	"github.com/selfcage/selfcage/internal/hostfs"
	"github.com/selfcage/selfcage/toolchain/elfhdr"
)

// searchPath shows every directory of PATH that exists: where one is missing, the next one that has a program of the
// same name wins, with status 0. Relative and empty entries mean another place in each directory and grant nothing.
func (f *finder) searchPath() {
	const why = "PATH names it: were it missing, the next entry's program would run, and nobody would know"
	for dir := range strings.SplitSeq(f.env["PATH"], ":") {
		if strings.HasPrefix(dir, "/") {
			dir = f.resolve(dir, "/")
		}
		if !usable(dir) {
			continue
		}
		r, err := f.walk(dir)
		if err != nil || !r.Info.IsDir() || r.Info.Mode().Perm()&0o111 == 0 || f.hasPath(r.Path) {
			if err == nil && f.hasPath(r.Path) && len(r.Links) > 0 {
				f.installed(dir, why) // another name of one that was there
			}
			continue
		}
		f.path = append(f.path, pathDir{strings.TrimRight(dir, "/"), r.Path})
		f.installed(dir, why)
		switch p := r.Path; {
		case p == "/usr/bin" || p == "/usr/sbin" || p == "/bin" || p == "/sbin" || f.store(p) != "":
			// Thousands of names, which lead back into /usr; what is run is looked at by itself.
		case hostfs.Within(p, "/usr"):
			f.scan(p, "/usr")
		default:
			f.scan(p, f.rootShown(p))
		}
	}
}

func (f *finder) hasPath(real string) bool {
	for _, d := range f.path {
		if d.real == real {
			return true
		}
	}
	return false
}

// rootShown is the root by which p is shown, p itself where that is not known.
func (f *finder) rootShown(p string) string {
	for _, r := range f.roots {
		if hostfs.Within(p, r) {
			return r
		}
	}
	return p
}

// which looks a program up in PATH and returns the path by which it is found.
func (f *finder) which(name string) (string, bool) {
	for _, d := range f.path {
		at := hostfs.Join(d.real, name)
		if !f.starting && f.View.Unlisted(at) {
			continue // asked by a recogniser, of dozens of tools
		}
		if _, err := f.View.Lstat(at); err != nil {
			continue
		}
		p := hostfs.Join(d.spelled, name)
		if r, err := f.walk(p); err == nil && r.Info.Mode().IsRegular() && r.Info.Mode().Perm()&0o111 != 0 {
			return p, true
		}
	}
	return "", false
}

// uses says whether PATH has something in dir, which is a directory of some tool.
func (f *finder) uses(dir string) bool {
	if dir == "" {
		return false
	}
	r, err := f.walk(dir)
	for _, d := range f.path {
		if hostfs.Within(d.spelled, dir) || err == nil && hostfs.Within(d.real, r.Path) {
			return true
		}
	}
	return false
}

// runs shows a command, by path or by name, with all that starts it.
func (f *finder) runs(command string) {
	if command == "" {
		return
	}
	p := command
	if !strings.Contains(command, "/") {
		var ok bool
		if p, ok = f.which(command); !ok {
			return
		}
	} else if f.Dir != "" {
		p = f.resolve(p, f.Dir)
	}
	f.program(p, 0)
}

// maxChain is how many interpreters deep a script is followed; Linux stops at 5 (fs/exec.c).
const maxChain = 5

// program shows an executable with its interpreters and libraries.
func (f *finder) program(p string, depth int) {
	if r, err := f.walk(p); err != nil || !loadable(r) {
		return
	}
	r, ok := f.installed(p, "what is run")
	if ok && f.starting {
		f.out.Runs = append(f.out.Runs, p)
	}
	if !ok || depth > maxChain || f.run[r.Path] {
		return
	}
	f.run[r.Path] = true
	f.checkoutOf(r)
	data, done, ok := f.open(r.Path)
	if !ok {
		return
	}
	defer done()
	var head [4096]byte
	n, _ := data.ReadAt(head[:], 0)
	switch text := string(head[:n]); {
	case strings.HasPrefix(text, "#!"):
		f.shebang(text, depth)
		if depth == 0 {
			f.wrapper(text)
		}
	case strings.HasPrefix(text, "\x7fELF"):
		if h, err := elfhdr.Read(data); err == nil {
			f.libraries(h, r.Path, 0)
		}
	}
}

// script follows the first line of a file, if it is a script.
func (f *finder) script(p string) {
	data, done, ok := f.open(p)
	if !ok {
		return
	}
	defer done()
	var head [257]byte
	n, _ := data.ReadAt(head[:], 0)
	if text := string(head[:n]); strings.HasPrefix(text, "#!") {
		f.shebang(text, 1)
	}
}

// shebang follows the interpreter that the first line of a script names. Without it the script "does not exist".
func (f *finder) shebang(text string, depth int) {
	line, _, _ := strings.Cut(text[2:], "\n")
	if len(line) > 254 { // BINPRM_BUF_SIZE is 256
		return
	}
	words := strings.Fields(line)
	if len(words) == 0 {
		return
	}
	f.program(words[0], depth+1)
	if strings.HasSuffix(words[0], "/env") {
		if name := envCommand(words[1:]); strings.HasPrefix(name, "/") {
			f.program(name, depth+1)
		} else if p, ok := f.which(name); ok && name != "" {
			f.program(p, depth+1)
		}
	}
}

// envCommand is the command that env(1) executes.
func envCommand(words []string) string {
	for i, w := range words {
		switch {
		case w == "-S" || w == "--split-string" || w == "-i" || w == "-":
		case strings.HasPrefix(w, "-S"):
			if w = w[2:]; !strings.Contains(w, "=") {
				return w
			}
		case strings.HasPrefix(w, "--split-string="):
			return w[len("--split-string="):]
		case w == "-u" || w == "-C":
			return envCommand(words[min(i+2, len(words)):])
		case strings.HasPrefix(w, "-"):
		case strings.Contains(w, "="):
		default:
			return w
		}
	}
	return ""
}

// wrapper shows what the lines of a short script execute by absolute path, as shims and wrappers do: exec "/opt/x/y" "$@".
func (f *finder) wrapper(text string) {
	for _, l := range lines(text) {
		rest, ok := strings.CutPrefix(l, "exec ")
		if !ok {
			continue
		}
		for _, w := range strings.Fields(rest) {
			if w = strings.Trim(w, `"'`); strings.HasPrefix(w, "/") {
				if r, err := f.walk(w); err == nil && r.Info.Mode().IsRegular() && r.Info.Mode().Perm()&0o111 != 0 {
					f.program(w, 1)
				}
				break
			}
			if strings.Contains(w, "$") {
				break
			}
		}
	}
}

// maxLibraries is a bound on how far libraries that need libraries are followed.
const maxLibraries = 6

// libraries shows the loader of an ELF file and the directories outside /usr that it looks in. With one of them missing
// another library of the same name may be found, which is how a Python prints another version than it has.
func (f *finder) libraries(h elfhdr.Header, p string, depth int) {
	if r, err := f.walk(h.Interp); err == nil && loadable(r) {
		f.installed(h.Interp, "the ELF interpreter: without it the program \"does not exist\"")
	}
	paths := h.RunPath
	if len(paths) == 0 {
		paths = h.RPath
	}
	var dirs []string
	for _, d := range paths {
		for _, d := range expand(d, hostfs.Parent(p), h.Wide) {
			d = f.resolve(d, "/")
			if r, err := f.walk(d); err != nil || !r.Info.IsDir() || !f.shown(r.Path) && !f.libraryDir(r.Path) {
				continue
			}
			if _, ok := f.installed(d, p+" looks for its libraries there"); ok {
				dirs = append(dirs, d)
			}
		}
	}
	for d := range strings.SplitSeq(f.env["LD_LIBRARY_PATH"], ":") {
		if strings.HasPrefix(d, "/") && len(h.Needed) > 0 {
			dirs = append(dirs, d)
		}
	}
	for _, name := range h.Needed {
		if strings.HasPrefix(name, "/") {
			f.library(name, depth)
			continue
		}
		for _, d := range dirs {
			if lib := strings.TrimRight(d, "/") + "/" + name; f.is(lib) {
				f.library(lib, depth)
				break
			}
		}
	}
}

// library shows one library and those that it needs.
func (f *finder) library(p string, depth int) {
	if r, err := f.walk(p); err != nil || !loadable(r) {
		return
	}
	r, ok := f.installed(p, "a library of what is run")
	if !ok || depth >= maxLibraries || f.run[r.Path] || hostfs.Within(r.Path, "/usr") || f.store(r.Path) != "" {
		return
	}
	f.run[r.Path] = true
	data, done, ok := f.open(r.Path)
	if !ok {
		return
	}
	defer done()
	if h, err := elfhdr.Read(data); err == nil {
		f.libraries(h, r.Path, depth+1)
	}
}

// expand replaces what the loader does in a search path; $LIB has a value for each distribution.
func expand(dir, origin string, wide bool) []string {
	dir = strings.ReplaceAll(strings.ReplaceAll(dir, "${ORIGIN}", origin), "$ORIGIN", origin)
	if !strings.HasPrefix(dir, "/") || strings.Contains(dir, "$PLATFORM") || strings.Contains(dir, "${PLATFORM}") {
		return nil // relative to the working directory: that grants nothing
	}
	dir = strings.ReplaceAll(dir, "${LIB}", "$LIB")
	if !strings.Contains(dir, "$LIB") {
		return []string{dir}
	}
	if wide {
		return []string{strings.ReplaceAll(dir, "$LIB", "lib64"), strings.ReplaceAll(dir, "$LIB", "lib/x86_64-linux-gnu"), strings.ReplaceAll(dir, "$LIB", "lib")}
	}
	return []string{strings.ReplaceAll(dir, "$LIB", "lib"), strings.ReplaceAll(dir, "$LIB", "lib32")}
}

// checkoutOf shows the checkout that a program lies in: a script imports what lies beside it.
func (f *finder) checkoutOf(r hostfs.Resolved) {
	if hostfs.Within(r.Path, "/usr") || f.store(r.Path) != "" || prefixOf(hostfs.Parent(r.Path)) != "" {
		return // an installation, or a bin directory
	}
	root, extra := Checkout(f.View, hostfs.Parent(r.Path))
	if root == hostfs.Parent(r.Path) && !f.exists(root, ".git") {
		return
	}
	if _, secret := f.secret(root); secret && !f.shown(root) {
		return
	}
	f.tree(root, "the checkout that "+r.Path+" lies in")
	for _, g := range extra {
		f.tree(g.Path, "the git directory of "+root)
	}
}
