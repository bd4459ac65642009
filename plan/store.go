package plan

import "github.com/selfcage/selfcage/internal/hostfs"

// storeName is the directory of what selfcage itself keeps, below XDG_STATE_HOME: which policies were approved. Package
// approval has the same path.
const storeName = "selfcage"

// protectStore keeps what the caller has approved from being written by a run that may write the directory around it: it
// would approve its own wishes for the next one. This holds also where nothing was approved yet.
func (b *builder) protectStore() error {
	state := b.getenv("XDG_STATE_HOME")
	if home := b.getenv("HOME"); state == "" && home != "" {
		state = hostfs.Join(home, ".local/state")
	}
	if state == "" || state[0] != '/' {
		return nil
	}
	_, err := b.protectAsked(Grant{Path: hostfs.Join(state, storeName) + "/", By: "protect"})
	return err
}
