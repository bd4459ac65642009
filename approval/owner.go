package approval

import (
	"io/fs"
	"os"

	"github.com/selfcage/selfcage/internal/hostfs"
)

// untrusted says why a file of the given type could have been written by somebody else than the caller or root, "" when not.
// others are the permission bits that nobody else may have.
func untrusted(fi fs.FileInfo, kind, others fs.FileMode) string {
	_, _, uid, known := hostfs.Identity(fi)
	switch {
	case fi.Mode().Type() != kind:
		return "is not what selfcage made: a link, or another kind of file"
	case !known:
		return "has an owner that this system does not tell"
	case uid != 0 && int(uid) != os.Geteuid():
		return "belongs to somebody else"
	case fi.Mode().Perm()&others != 0:
		return "can be written by others"
	}
	return ""
}
