//go:build !unix

package hostfs

import "os"

// ReadFile returns the content of the named file.
func (OS) ReadFile(name string) ([]byte, error) { return os.ReadFile(abs(name)) }
