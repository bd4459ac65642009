package plan

import "io/fs"

// PlaceholderMode is the mode, as chmod(2) takes it, of a file or directory that is on the host only while a cage lasts.
func PlaceholderMode(isDir bool) uint32 {
	if isDir {
		return 0o1755
	}
	return 0o1444
}

// Placeholder says whether fi is one: sticky, and from the first second of 1970. Nobody makes such a file by accident.
func Placeholder(fi fs.FileInfo) bool {
	want := fs.FileMode(PlaceholderMode(fi.IsDir())&0o777) | fs.ModeSticky
	return fi.Mode()&(fs.ModePerm|fs.ModeSticky|fs.ModeSetuid|fs.ModeSetgid) == want && fi.ModTime().Unix() == 0
}
