package toolchain

import (
	"strings"

	"github.com/selfcage/selfcage/internal/hostfs"
)

// loader shows the directories outside /usr that the dynamic loader is configured to look in: without them a program
// ends with status 127, or finds an older library of the same name.
func (f *finder) loader() {
	const why = "the dynamic loader is configured to look there"
	var dirs []string
	dirs = f.loaderConf(dirs, "/etc/ld.so.conf", 0)
	for _, musl := range [...]string{"/etc/ld-musl-x86_64.path", "/etc/ld-musl-aarch64.path"} {
		if text, ok := f.small(musl); ok {
			for _, d := range strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == ':' }) {
				dirs = union(dirs, []string{d})
			}
		}
	}
	if data, ok := f.upTo("/etc/ld.so.cache", 8<<20); ok {
		dirs = union(dirs, cacheDirs(data))
	}
	for _, d := range dirs {
		f.installed(d, why)
	}
}

func (f *finder) loaderConf(dirs []string, p string, depth int) []string {
	text, ok := f.small(p)
	if !ok || depth > 4 {
		return dirs
	}
	for _, l := range lines(text) {
		l, _, _ = strings.Cut(l, "#")
		words := strings.FieldsFunc(l, func(r rune) bool { return r == ' ' || r == '\t' || r == ':' || r == ',' })
		if len(words) > 1 && words[0] == "include" {
			for _, pattern := range words[1:] {
				dirs = f.loaderInclude(dirs, hostfs.Abs(pattern, hostfs.Parent(p)), depth)
			}
			continue
		}
		for _, w := range words {
			if w, _, _ = strings.Cut(w, "="); strings.HasPrefix(w, "/") { // dir=TYPE is libc5's
				dirs = union(dirs, []string{w})
			}
		}
	}
	return dirs
}

// loaderInclude reads the files that a pattern names, whose last component alone has a star.
func (f *finder) loaderInclude(dirs []string, pattern string, depth int) []string {
	before, after, star := strings.Cut(pattern, "*")
	if !star {
		return f.loaderConf(dirs, pattern, depth+1)
	}
	dir, prefix := hostfs.Parent(before+"x"), before[strings.LastIndexByte(before, '/')+1:]
	real, list := f.entries(dir)
	for _, e := range list {
		if n := e.Name(); strings.HasPrefix(n, prefix) && strings.HasSuffix(n, after) {
			dirs = f.loaderConf(dirs, hostfs.Join(real, n), depth+1)
		}
	}
	return dirs
}

// cacheDirs returns the directories outside the default ones that a loader cache names, in the format that glibc has
// written since 2.2 (sysdeps/generic/dl-cache.h), by itself or behind the older one.
func cacheDirs(data string) (dirs []string) {
	const magic, header, entry = "glibc-ld.so.cache1.1", 48, 24
	at := strings.Index(data, magic)
	if at < 0 || len(data)-at < header {
		return nil
	}
	data = data[at:]
	u32 := func(off int) int {
		return int(data[off]) | int(data[off+1])<<8 | int(data[off+2])<<16 | int(data[off+3])<<24
	}
	n := u32(len(magic))
	if n < 0 || n > (len(data)-header)/entry {
		return nil
	}
	for i := range n {
		v := u32(header + i*entry + 8)
		if v <= 0 || v >= len(data) {
			continue
		}
		p := data[v:]
		if !strings.HasPrefix(p, "/") || strings.HasPrefix(p, "/usr/") || strings.HasPrefix(p, "/lib") {
			continue // most of them, told by their first bytes
		}
		end := strings.IndexByte(p, 0)
		if end < 0 || end > 4096 {
			continue
		}
		dirs = union(dirs, []string{hostfs.Parent(p[:end])})
	}
	return dirs
}
