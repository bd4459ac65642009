package manifest

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// architecture is the machine's, as uname -m says it.
func architecture() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Machine[:])
}

// deviceNumber is "major:minor" of the character device p, "" where it is none.
func deviceNumber(p string) string {
	var st unix.Stat_t
	if unix.Stat(p, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFCHR {
		return ""
	}
	return fmt.Sprintf("%d:%d", unix.Major(uint64(st.Rdev)), unix.Minor(uint64(st.Rdev)))
}
