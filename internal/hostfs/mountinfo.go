package hostfs

import (
	"strconv"
	"strings"
)

// HasOption says whether a list of mount options, as /proc/PID/mountinfo has it, holds one of that name.
func HasOption(options, name string) bool {
	for o := range strings.SplitSeq(options, ",") {
		if o == name {
			return true
		}
	}
	return false
}

// Unescape undoes mountinfo's \ooo for space, tab, newline and backslash.
func Unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
