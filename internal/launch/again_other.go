//go:build !linux

package launch

import (
	"os"
	"strconv"
)

// againMark is a process id, which an exec keeps. Nothing can be confined here that a variable could switch off.
func againMark() (string, error) { return "again:" + strconv.Itoa(os.Getpid()), nil }

// Again says whether this process has executed itself by [ExecAgain], by the value of StartVar.
func Again(value string) bool { return value == "again:"+strconv.Itoa(os.Getpid()) }
