package plan

import (
	"io/fs"
	"strconv"
	"strings"

	"github.com/selfcage/selfcage/binds"
	"github.com/selfcage/selfcage/internal/hostfs"
)

// fewNeighbours is how many mounts in one directory are not worth losing the reason of each.
const fewNeighbours = 3

// coalesce shows a directory instead of each of its entries, where all of them are shown anyway: a mount costs bubblewrap
// half a millisecond, and with a long PATH there would be one for each of its directories.
func (b *builder) coalesce() {
	count := make(map[string]int)
	var dirs []string // in the order of the plan
	for _, m := range b.plan.Mounts {
		if !joinable(m) {
			continue
		}
		dir := hostfs.Parent(m.Target)
		if count[dir]++; count[dir] == fewNeighbours {
			dirs = append(dirs, dir)
		}
	}
	for _, dir := range dirs {
		if b.allShown(dir) {
			b.join(dir)
		}
	}
}

// joinable says whether a mount shows what a tool needs, as it is on the host.
func joinable(m binds.Mount) bool {
	return m.Kind == binds.ReadOnly && m.Source == m.Target && strings.HasPrefix(m.Reason.By, "toolchain/")
}

// allShown says whether dir holds nothing that is not shown, and may be shown itself.
func (b *builder) allShown(dir string) bool {
	if _, hidden := b.tooMuch(dir); hidden || ownPlace(dir) || privatePlace(dir) || hostfs.Within(dir, "/dev") {
		return false
	}
	for _, h := range append(b.homes, b.others...) {
		if hostfs.Within(dir, h) {
			return false // what appears there later would be shown, and need not be software
		}
	}
	entries := b.host.ReadDir(dir)
	for _, e := range entries {
		p := hostfs.Join(dir, e.Name())
		if e.Type()&fs.ModeSymlink == 0 && !b.bound(p) || !b.present(p) {
			return false
		}
	}
	return len(entries) > 0
}

// join shows dir in place of the first mount in it and leaves out the others.
func (b *builder) join(dir string) {
	at, kept := -1, b.plan.Mounts[:0]
	var names []string
	for _, m := range b.plan.Mounts {
		if joinable(m) && hostfs.Parent(m.Target) == dir {
			names = append(names, Quote(m.Target[strings.LastIndexByte(m.Target, '/')+1:]))
			if at >= 0 {
				continue
			}
			at, m.Source, m.Target = len(kept), dir, dir
		}
		kept = append(kept, m)
	}
	b.plan.Mounts = kept
	more := ""
	if n := len(names) - 5; n > 0 {
		names, more = names[:5], " and "+strconv.Itoa(n)+" more"
	}
	kept[at].Reason.Why += " (so are all of its entries: " + strings.Join(names, ", ") + more + ")"
}
