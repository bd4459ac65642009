//go:build !unix

package start

import "os"

func toStderr(s string) { _, _ = os.Stderr.WriteString(s) }
