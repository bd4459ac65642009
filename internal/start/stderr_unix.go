//go:build unix

package start

import "syscall"

// toStderr writes a message. Not by os.Stderr: where nobody reads any more, that ends this process with SIGPIPE, and a
// note must not cost the program its exit status.
func toStderr(s string) { _, _ = syscall.Write(2, []byte(s)) }
