package hostfs

import (
	"io/fs"
	"os"
)

// OS is the file system of this host from its root. Unlike os.DirFS it takes names that are not UTF-8.
type OS struct{}

var (
	_ fs.ReadLinkFS = OS{}
	_ fs.ReadDirFS  = OS{}
	_ fs.ReadFileFS = OS{}
)

func abs(name string) string {
	if name == "." {
		return "/"
	}
	return "/" + name
}

// Lstat describes the named file without following a link.
func (OS) Lstat(name string) (fs.FileInfo, error) { return os.Lstat(abs(name)) }

// ReadLink returns the text of the named link.
func (OS) ReadLink(name string) (string, error) { return os.Readlink(abs(name)) }
