package fakehost

import "io/fs"

// Counting is a host that counts what would be system calls on a disk.
type Counting struct {
	fsys fs.FS
	N    map[string]int // by the kind of the call
}

// Count returns fsys with a count, which begins at zero.
func Count(fsys fs.FS) Counting { return Counting{fsys, map[string]int{}} }

// Total is the number of system calls.
func (c Counting) Total() (n int) {
	for _, m := range c.N {
		n += m
	}
	return n
}

// A file or a directory is opened, described, read (a directory, and a file that is longer than expected, twice) and closed.
func (c Counting) Open(name string) (fs.File, error) {
	c.N["open"] += 3
	return c.fsys.Open(name)
}

func (c Counting) Lstat(name string) (fs.FileInfo, error) {
	c.N["lstat"]++
	return fs.Lstat(c.fsys, name)
}

func (c Counting) ReadLink(name string) (string, error) {
	c.N["readlink"]++
	return fs.ReadLink(c.fsys, name)
}

func (c Counting) ReadDir(name string) ([]fs.DirEntry, error) {
	c.N["readdir"] += 4
	return fs.ReadDir(c.fsys, name)
}

func (c Counting) ReadFile(name string) ([]byte, error) {
	c.N["readfile"] += 4
	return fs.ReadFile(c.fsys, name)
}
