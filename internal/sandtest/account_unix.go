//go:build unix

package sandtest

import (
	"os"
	"syscall"
)

// Attr makes a command run as the user: cmd.SysProcAttr = account.Attr(). The supplementary groups are dropped.
func (a Account) Attr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: a.UID, Gid: a.GID}}
}

func ownsHome(a Account) bool {
	info, err := os.Stat(a.Home)
	if err != nil || !info.IsDir() {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Uid == a.UID
}
