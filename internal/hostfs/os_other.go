//go:build !unix

package hostfs

import (
	"io/fs"
	"os"
)

// Open opens the named file for reading.
func (OS) Open(name string) (fs.File, error) { return os.Open(abs(name)) }

// ReadFile returns the content of the named file.
func (OS) ReadFile(name string) ([]byte, error) { return os.ReadFile(abs(name)) }
