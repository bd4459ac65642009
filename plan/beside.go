package plan

import (
	"strings"

	"github.com/selfcage/selfcage/binds"
	"github.com/selfcage/selfcage/internal/hostfs"
)

// beside makes what lies between a private place and something shown below it read-only. bwrap makes the directories
// there in the private place, which is writable: a result written beside a grant would vanish with status 0.
func (b *builder) beside() {
	for _, place := range []string{Tmp, "/var/tmp", "/dev/shm"} {
		for _, m := range b.plan.Mounts {
			if m.Kind == binds.RemountRO || m.Target == place || !hostfs.Within(m.Target, place) {
				continue
			}
			name, _, deeper := strings.Cut(m.Target[len(place)+1:], "/")
			top := place + "/" + name
			if !deeper && m.Kind != binds.Dir {
				continue // lies in the place itself
			}
			if over, ok := binds.Cover(b.plan.Mounts, top); ok && over.Kind != binds.Dir && over.Target != place || ok && over.Kind.Bind() {
				continue // shown itself, done already, or the place was granted
			}
			b.add(
				binds.Mount{Kind: binds.Tmpfs, Target: top, Perm: 0o755, Reason: binds.Reason{By: base, Why: "holds what is shown below it"}},
				binds.Mount{Kind: binds.RemountRO, Target: top, Reason: binds.Reason{By: base, Why: "a result written beside a grant would vanish with status 0"}})
		}
	}
}
