package sandtest

import (
	"strconv"
	"strings"
)

// parsePasswd reads the lines of /etc/passwd and leaves out those it does not understand.
func parsePasswd(text string) []Account {
	var accounts []Account
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), ":")
		if len(f) != 7 || f[0] == "" {
			continue
		}
		uid, err1 := strconv.ParseUint(f[2], 10, 32)
		gid, err2 := strconv.ParseUint(f[3], 10, 32)
		if err1 != nil || err2 != nil {
			continue
		}
		accounts = append(accounts, Account{Name: f[0], UID: uint32(uid), GID: uint32(gid), Home: f[5]})
	}
	return accounts
}
