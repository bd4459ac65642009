package start

import (
	"golang.org/x/sys/unix"

	"github.com/selfcage/selfcage/binds"
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
		if around, ok := binds.Cover(others(pl.Mounts, mt.Target), mt.Target); !ok || around.Kind != binds.ReadWrite {
			continue
		}
		if id, ok := idOf(mt.Target); ok {
			m[mt.Target] = id
		}
	}
	return m
}

func others(ms []binds.Mount, target string) (rest []binds.Mount) {
	for _, m := range ms {
		if m.Target != target {
			rest = append(rest, m)
		}
	}
	return rest
}

func idOf(path string) (binds.ID, bool) {
	var st unix.Stat_t
	if unix.Lstat(path, &st) != nil {
		return binds.ID{}, false
	}
	return binds.ID{Dev: uint64(st.Dev), Ino: st.Ino}, true
}

// adrift lists those that are another file now, or none.
func (m moored) adrift() (targets []string) {
	for target, id := range m {
		if now, ok := idOf(target); !ok || now != id {
			targets = append(targets, target)
		}
	}
	return targets
}
