package cli_test

import (
	"strconv"
	"testing"

	"github.com/selfcage/selfcage/internal/sandtest"
)

// newStage is a site of the ordinary user in a mount namespace that root has set up with script: a host that this one is
// not. $W is the site's root. Every command gets a namespace of its own, made the same way.
func newStage(t testing.TB, script string) *site {
	t.Helper()
	u := sandtest.OrdinaryUser(t)
	s := newSite(t, &u)
	s.staged = []string{"/usr/bin/unshare", "-m", "--propagation", "private", "/bin/sh", "-ec",
		`W=$1; uid=$2; gid=$3; shift 3
` + script + `
exec setpriv --reuid "$uid" --regid "$gid" --clear-groups "$@"`, "sh", s.root, strconv.Itoa(int(u.UID)), strconv.Itoa(int(u.GID))}
	return s
}
