package launch

import (
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	againPrefix = "again:"
	againText   = "selfcage: executed once more, without variables\n"
)

// againMark is the value of StartVar by which this program knows, when it is executed again, that it is. It names a sealed
// file in memory, which this process hands on and nobody else can: a variable alone would switch every mode off.
func againMark() (string, error) {
	fd, err := memoryFile("again", []byte(againText))
	if err != nil {
		return "", err
	}
	return againPrefix + strconv.Itoa(fd), nil
}

// Again says whether this process has executed itself by [ExecAgain], by the value of StartVar. The file is closed then.
func Again(value string) bool {
	text, ok := strings.CutPrefix(value, againPrefix)
	fd, err := strconv.Atoi(text)
	if !ok || err != nil || fd <= 2 {
		return false
	}
	seals, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	if err != nil || seals&allSeals != allSeals {
		return false
	}
	buf := make([]byte, len(againText)+1)
	if n, err := unix.Pread(fd, buf, 0); err != nil || string(buf[:n]) != againText {
		return false
	}
	unix.Close(fd)
	return true
}
