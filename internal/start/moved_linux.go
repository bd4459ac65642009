package start

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/selfcage/selfcage/binds"
	"github.com/selfcage/selfcage/internal/hostfs"
	"github.com/selfcage/selfcage/plan"
)

// moored are the files of the host that something is mounted over for the cage's sake, with which file each is. A mount goes
// with its file: where the host moves that away and makes another of the same name, the new one is open, and the kernel
// tells nobody.
type moored map[string]binds.ID

// moor looks at them before the cage is made. report is the path of the report, which other runs may replace.
func moor(pl *plan.Plan, report string) moored {
	m := make(moored)
	for _, mt := range pl.Mounts {
		over := mt.Kind == binds.ReadOnly && mt.Source == mt.Target || mt.Kind == binds.Sealed && len(mt.Data) == 0 || mt.Kind == binds.Tmpfs
		if !over || mt.Target == report || mt.Target == plan.Tmp || mt.Target == plan.Home {
			continue
		}
		if around, ok := binds.Cover(pl.Mounts, hostfs.Parent(mt.Target)); !ok || around.Kind != binds.ReadWrite {
			continue
		}
		if id, err := idOf(mt.Target); err == nil {
			m[mt.Target] = id
		}
	}
	return m
}

func idOf(path string) (binds.ID, error) {
	var st unix.Stat_t
	err := unix.Lstat(path, &st)
	return binds.ID{Dev: uint64(st.Dev), Ino: st.Ino}, err
}

// adrift lists those that are another file now, or none. The run itself may have made a directory unreadable: that moves
// nothing.
func (m moored) adrift() (targets []string) {
	for target, id := range m {
		now, err := idOf(target)
		if err == nil && now != id || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
			targets = append(targets, target)
		}
	}
	return targets
}
