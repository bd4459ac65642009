package probe

import (
	"errors"

	"github.com/selfcage/selfcage/internal/hostfs"
	"github.com/selfcage/selfcage/internal/refusal"
	"github.com/selfcage/selfcage/policy"
)

// Examine asks this host for everything that a run may need, with the bubblewrap that a run would use. It takes some
// 200 ms and works however broken the host is: what cannot be asked is unknown.
func Examine(explicit policy.Entry) Report {
	bwrap, err := Bwrap(explicit)
	h := readHost(bwrap)
	var rows []Row
	if err == nil {
		rows = examine(runWith(bwrap), bwrap, h)
	} else {
		e := new(refusal.Error)
		if !errors.As(err, &e) {
			e = refused("bubblewrap", err.Error(), "")
		}
		rows = untried(e, h)
	}
	rows = append(rows, resolvRow(hostfs.New(hostfs.OS{})), kernelRow(h))
	return Report{Rows: withModes(rows)}
}

// Container names the container that this process runs in, "" for none that is known.
func Container() string { return readHost("").container }
