package plan

import (
	"io/fs"

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
			m.ID, _ = identity(fi)
		}
	}
}

func identity(fi fs.FileInfo) (binds.ID, bool) {
	dev, ino, _, ok := hostfs.Identity(fi)
	return binds.ID{Dev: dev, Ino: ino}, ok
}

// same notes which file a program is that was found as the last of paths.
func (b *builder) same(paths []string, r hostfs.Resolved) {
	id, ok := identity(r.Info)
	for _, l := range r.Links {
		ok = ok && !hostfs.Within(l.Path, "/proc")
	}
	for _, p := range append([]string{r.Path}, paths...) {
		// A process's own: what it leads to depends on who looks.
		ok = ok && !hostfs.Within(p, "/proc") && !hostfs.Within(p, "/dev")
	}
	if ok {
		b.plan.Same = append(b.plan.Same, Same{paths, id})
	}
}
