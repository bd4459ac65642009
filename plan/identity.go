package plan

import (
	"github.com/selfcage/selfcage/binds"
	"github.com/selfcage/selfcage/internal/hostfs"
)

// identify notes which file each bind means. bwrap resolves the path again when it mounts, and whoever can write the
// directory above may have put another file there meanwhile; the supervisor compares before the program goes on.
func (b *builder) identify() {
	for i := range b.plan.Mounts {
		m := &b.plan.Mounts[i]
		if !m.Kind.Bind() || m.Reason.By == base {
			continue // what belongs to the system, nobody else can exchange
		}
		if fi, err := b.host.Lstat(m.Source); err == nil {
			if dev, ino, _, ok := hostfs.Identity(fi); ok {
				m.ID = binds.ID{Dev: dev, Ino: ino}
			}
		}
	}
}
