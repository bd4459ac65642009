package plan

import (
	"strings"

	"github.com/selfcage/selfcage/binds"
	"github.com/selfcage/selfcage/internal/hostfs"
	"github.com/selfcage/selfcage/toolchain"
)

// toolchains makes visible what the program, the command that it is there to execute and the tools in PATH need beside
// themselves. Without it another interpreter, compiler or checkout would be used, mostly with status 0.
func (b *builder) toolchains() error {
	commands := []string{b.Exe.Path, b.req.Runs}
	if len(b.Args) > 0 {
		commands = append(commands, b.Args[0])
	}
	found := toolchain.Find(b.toolHost(), commands...)
	for _, n := range found.Needs {
		b.need(n)
	}
	b.coalesce()
	for _, f := range found.Files {
		b.add(binds.Mount{Kind: binds.File, Target: Home + "/" + f.Name, Data: f.Data, Perm: 0o600, Reason: binds.Reason{By: f.By, Why: f.Why}})
	}
	for _, p := range found.Pins {
		b.pins = append(b.pins, Var{p.Name, p.Value, binds.Reason{By: p.By, Why: p.Why}})
	}
	for _, p := range found.Runs {
		if r, err := b.host.Walk(p); err == nil && executable(r.Info) {
			b.same([]string{p}, r)
		}
	}
	for _, n := range found.Notes {
		b.note(n)
	}
	for _, c := range found.Cold {
		also := ""
		if c.Name == "go" {
			also = ", and " + b.setting("--cache", "CACHE") + "=gomod modules that are downloaded"
		}
		b.note("not visible inside, and nothing new is kept: " + c.Why + " in " + Quote(c.Dirs[0]) + "; " +
			b.setting("--cache", "CACHE") + "=" + c.Name + " would grant it" + also)
	}
	return nil
}

func (b *builder) toolHost() toolchain.Host {
	return toolchain.Host{View: b.host, FS: b.sight(), Env: b.toolEnv, Dir: b.Dir, Homes: b.homes, Visible: b.visible, Secret: b.tooMuch}
}

// need makes one thing visible: each link on the way to it, and the root that it works in.
func (b *builder) need(n toolchain.Need) {
	why := binds.Reason{By: n.By, Why: n.Why}
	if r, err := b.host.Walk(n.Path); err == nil && !b.visible(n.Path) {
		b.missingLinks(r.Links, why)
	}
	if n.Root == "" {
		return
	}
	if next := b.nextDoor(n); next != "" {
		b.note(next)
	}
	if !b.bound(n.Root) && !ownPlace(n.Root) && !privatePlace(n.Root) {
		b.add(binds.Mount{Kind: binds.ReadOnly, Source: n.Root, Target: n.Root, Reason: why})
	}
	if n.Home != "" {
		b.add(binds.Mount{Kind: binds.ReadOnly, Source: n.Root, Target: Home + "/" + n.Home, Reason: why})
	}
	for _, secret := range []string{"/.git/config", "/.env", "/.netrc", "/.npmrc"} {
		// A source tree next door that a file of this one names: its code is needed, what it logs in with is not.
		top, _, _ := strings.Cut(secret[1:], "/")
		if n.Root != b.checkoutRoot && !b.host.Unlisted(n.Root+"/"+top) && b.host.Exists(n.Root+secret) && !hostfs.Within(b.Dir, n.Root) {
			n.Hide = append(n.Hide, n.Root+secret)
		}
	}
	for _, h := range n.Hide {
		// Also where an operator's grant shows the root: what it may show is another question than what a tool needs.
		b.add(binds.Mount{Kind: binds.Sealed, Target: h, Data: []byte{}, Perm: 0o400, Reason: binds.Reason{By: n.By, Why: "empty: it may hold credentials"}})
	}
}

// treeSources are the recognisers that follow files of the source tree: what those name is shown since a build needs it,
// but it was not the operator who named it.
var treeSources = [...]string{"toolchain/python", "toolchain/go", "toolchain/cargo-path", "toolchain/node_modules", "toolchain/git"}

// nextDoor is the note for another source tree that is shown only because a file of this one names it.
func (b *builder) nextDoor(n toolchain.Need) string {
	if b.bound(n.Root) || n.Root == "" {
		return ""
	}
	tree := n.Tree
	for _, s := range treeSources {
		tree = tree || n.By == s && b.host.Exists(n.Root+"/.git")
	}
	if !tree {
		return ""
	}
	return "another source tree is visible read-only, since this one needs it: " + Quote(n.Root) + " (" + n.By + ": " + n.Why + ")"
}

// missingLinks makes those links that are not there yet.
func (b *builder) missingLinks(ls []hostfs.Link, why binds.Reason) {
	for _, l := range ls {
		if !b.present(l.Path) {
			b.links([]hostfs.Link{l}, why)
		}
	}
}
