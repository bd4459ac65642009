package plan

import (
	"errors"
	"io/fs"
	"strings"

	"github.com/selfcage/selfcage/internal/hostfs"
)

// storeName is the directory of what selfcage itself keeps, below XDG_STATE_HOME: which policies were approved. Package
// approval has the same path.
const storeName = "selfcage"

// protectStore keeps what the caller has approved from being written by a run that may write the directory around it: it
// would approve its own wishes for the next one. This holds also where nothing was approved yet.
func (b *builder) protectStore() error {
	var states []string
	if state := b.getenv("XDG_STATE_HOME"); strings.HasPrefix(state, "/") {
		states = append(states, state)
	}
	// Another start looks there with another environment.
	for _, home := range b.homes {
		states = append(states, hostfs.Join(home, ".local/state"))
	}
	for _, state := range states {
		p := hostfs.Join(clean(state), storeName)
		if r, err := b.real.Walk(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
			b.block(r.Path, err)
			continue
		}
		if _, err := b.protectAsked(Grant{Path: p + "/", By: "protect"}); err != nil {
			return err
		}
	}
	return b.blocked
}
