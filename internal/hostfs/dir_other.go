//go:build !linux

package hostfs

import (
	"io/fs"
	"os"
)

// ReadDir lists the named directory, sorted.
func (OS) ReadDir(name string) ([]fs.DirEntry, error) { return os.ReadDir(abs(name)) }
