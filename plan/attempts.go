package plan

import (
	"github.com/selfcage/selfcage/binds"
	"github.com/selfcage/selfcage/internal/hostfs"
)

// private names in a home, most of which somebody has.
var privateInHome = [...]string{".ssh", ".gnupg", ".aws", ".kube", ".docker", ".config/gh", ".config/gcloud", ".netrc", ".git-credentials",
	".npmrc", ".bash_history"}

// attempts are what a process inside must fail at. Nothing of it changes anything where it does not fail, but for the proof.
func (b *builder) attempts() {
	try := func(op, object, why string) {
		b.plan.Attempts = append(b.plan.Attempts, Attempt{op, object, why})
	}
	if p := b.outOfReach(); p != "" {
		try("open", p, "it exists on the host and is not part of the plan")
	}
	if m, ok := binds.Cover(b.plan.Mounts, "/usr"); ok && m.Target == "/usr" && m.Kind == binds.ReadOnly {
		try("write", "/usr", "the system runtime is read-only")
	}
	try("write", "/", "what is not mounted is read-only")
	if b.req.NoNet {
		try("connect", "192.0.2.1:9", "there is no network but a loopback") // an address for documentation; a datagram's sends nothing
	}
}

// outOfReach is something private that exists on the host and that the plan does not show at all, "" if there is nothing.
func (b *builder) outOfReach() string {
	var candidates []string
	for _, h := range b.homes {
		for _, name := range privateInHome {
			candidates = append(candidates, h+"/"+name)
		}
	}
	for _, p := range append(candidates, "/etc/shadow") {
		if r, err := b.real.Walk(p); err == nil && len(r.Links) == 0 && !b.reached(r) {
			return r.Path
		}
	}
	return ""
}

// reached says whether anything is at a path inside, be it something empty.
func (b *builder) reached(r hostfs.Resolved) bool {
	if len(b.shownAt(r.Path)) > 0 {
		return true
	}
	for _, m := range b.plan.Mounts {
		if hostfs.Within(m.Target, r.Path) || m.Kind.Bind() && hostfs.Within(r.Path, m.Target) {
			return true
		}
	}
	return false
}
