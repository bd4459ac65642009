//go:build !unix

package sandtest

func ownsHome(Account) bool { return false }
