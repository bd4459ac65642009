package plan

import (
	"io/fs"
	"strconv"
	"strings"

	"github.com/selfcage/selfcage/binds"
	"github.com/selfcage/selfcage/env"
	"github.com/selfcage/selfcage/internal/hostfs"
	"github.com/selfcage/selfcage/toolchain"
)

// variables decides which of the caller's variables are the run's business. In a clean environment what is dropped must not
// get shown what it names; where tools are stays a fact.
func (b *builder) variables() error {
	b.toolEnv = b.Env
	if !b.req.Clean {
		return nil
	}
	b.toolEnv = nil
	all := func(string) bool { return true }
	kept, _, err := env.Scrub(b.Env, env.Rules{Clean: true, Allow: b.req.Allow, Secret: b.req.Secret, Visible: all})
	if err != nil {
		return err
	}
	for _, k := range kept {
		b.toolEnv = append(b.toolEnv, k.Name+"="+k.Value)
	}
	facts, _, err := env.Scrub(b.facts(), env.Rules{Visible: all})
	for _, k := range facts {
		if lookup(b.toolEnv, k.Name) == "" {
			b.toolEnv = append(b.toolEnv, k.Name+"="+k.Value)
		}
	}
	return err
}

// facts are the variables that say where things of the caller's are.
func (b *builder) facts() (entries []string) {
	for _, e := range b.Env {
		name, _, ok := strings.Cut(e, "=")
		switch {
		case !ok:
		case toolchain.Location(name), name == "HOME",
			strings.HasPrefix(name, "XDG_") && strings.HasSuffix(name, "_HOME"):
			entries = append(entries, e)
		}
	}
	return entries
}

// locations keeps, of what a clean environment drops, those variables that tell where a tool is which the plan shows.
func (b *builder) locations(vars []Var, dropped []env.Dropped) ([]Var, []env.Dropped) {
	left := dropped[:0]
	for _, d := range dropped {
		value := lookup(b.toolEnv, d.Name)
		if !b.req.Clean || !toolchain.Location(d.Name) || !b.anyVisible(value) {
			left = append(left, d)
			continue
		}
		vars = append(vars, Var{d.Name, value, binds.Reason{By: "environment", Why: "location of a tool"}})
	}
	return vars, left
}

// anyVisible says whether one of several paths, or something in it, is visible: of CARGO_HOME only its programs may be.
func (b *builder) anyVisible(paths string) bool {
	for _, p := range strings.FieldsFunc(paths, func(r rune) bool { return r == ':' || r == ' ' }) {
		if !strings.HasPrefix(p, "/") {
			continue
		}
		r, err := b.host.Walk(p)
		if err != nil {
			continue
		}
		if b.visible(p) {
			return true
		}
		for _, m := range b.plan.Mounts {
			if m.Kind.Bind() && hostfs.Within(m.Target, r.Path) && r.Path != "/" {
				return true
			}
		}
	}
	return false
}

// makeFlags is MAKEFLAGS as the run has it.
func (b *builder) makeFlags() string {
	if b.req.Clean && !holds(b.req.Allow, "MAKEFLAGS") {
		return ""
	}
	return b.getenv("MAKEFLAGS")
}

// environment decides which variables exist inside, and with which values.
func (b *builder) environment() error {
	if p := jobserverFifo(b.makeFlags()); strings.HasPrefix(p, "/") {
		// A fifo and nothing else: a variable must not open what only a grant may.
		if r, err := b.host.Walk(p); err == nil && r.Info.Mode()&fs.ModeNamedPipe != 0 {
			why := binds.Reason{By: "MAKEFLAGS", Why: "make's jobserver: without it make runs one job at a time"}
			b.links(r.Links, why)
			b.add(binds.Mount{Kind: binds.ReadWrite, Source: r.Path, Target: r.Path, Reason: why})
		}
	}
	kept, dropped, err := env.Scrub(b.Env, env.Rules{Clean: b.req.Clean, Allow: b.req.Allow, Secret: b.req.Secret, Visible: b.visible})
	if err != nil {
		return err
	}
	own := b.own()
	vars := make([]Var, 0, len(kept)+len(own))
	for _, k := range kept {
		if find(own, k.Name) == nil {
			vars = append(vars, Var{k.Name, k.Value, binds.Reason{By: "environment", Why: k.Rule}})
		}
	}
	vars, dropped = b.locations(vars, dropped)
	for _, p := range b.pins {
		if v := find(vars, p.Name); v != nil && v.Value == "" {
			*v = p
		} else if find(own, p.Name) == nil && v == nil {
			vars = append(vars, p)
		}
	}
	for _, d := range dropped {
		if find(own, d.Name) == nil {
			b.plan.Dropped = append(b.plan.Dropped, d)
		}
	}
	b.plan.Env = append(vars, own...)
	sortVars(b.plan.Env)
	return nil
}

func find(vs []Var, name string) *Var {
	for i := range vs {
		if vs[i].Name == name {
			return &vs[i]
		}
	}
	return nil
}

// own are the variables that the cage sets, whatever the caller had.
func (b *builder) own() []Var {
	vs := []Var{
		{"HOME", Home, binds.Reason{By: base, Why: "private; the real home is not visible"}},
		{"TMPDIR", Tmp, binds.Reason{By: base, Why: "private; one that is not there makes compilers die of SIGSEGV without a word"}},
		{"PWD", b.plan.Dir, binds.Reason{By: base, Why: "the working directory"}},
	}
	if b.getenv("PATH") == "" {
		vs = append(vs, Var{"PATH", "/usr/local/bin:/usr/bin:/bin", binds.Reason{By: base, Why: "there was none: the default of execvp"}})
	}
	// Only those that the caller has: unset, they follow HOME.
	for _, x := range []struct{ name, dir string }{
		{"XDG_CACHE_HOME", "/.cache"}, {"XDG_CONFIG_HOME", "/.config"}, {"XDG_DATA_HOME", "/.local/share"},
		{"XDG_STATE_HOME", "/.local/state"}, {"XDG_RUNTIME_DIR", "/.run"},
	} {
		if b.getenv(x.name) != "" {
			vs = append(vs, Var{x.name, Home + x.dir, binds.Reason{By: base, Why: "follows HOME"}})
		}
	}
	for _, n := range []string{"TMP", "TEMP", "TEMPDIR"} {
		if b.getenv(n) != "" {
			vs = append(vs, Var{n, Tmp, binds.Reason{By: base, Why: "follows TMPDIR"}})
		}
	}
	return append(vs, b.req.Rewrite...)
}

// account is the caller's entry in the host's passwd.
type account struct{ name, gecos, home, shell string }

func (b *builder) account() (a account) {
	f, ok := dbEntry(b.readEtc("passwd"), 2, b.UID, 7)
	if ok {
		return account{f[0], f[4], f[5], f[6]}
	}
	return account{shell: "/bin/sh"}
}

func (b *builder) readEtc(name string) []byte {
	data, err := b.host.ReadFile("/etc/" + name)
	if err != nil {
		return nil // no local accounts: the name is taken from USER
	}
	return data
}

// dbEntry finds the line of a passwd-like file whose field at index is id.
func dbEntry(data []byte, index, id, fields int) ([]string, bool) {
	want := strconv.Itoa(id)
	for rest := string(data); rest != ""; {
		var line string
		line, rest, _ = strings.Cut(rest, "\n")
		f := strings.Split(line, ":")
		if len(f) >= fields && f[index] == want {
			return f, true
		}
	}
	return nil, false
}

// accounts writes passwd and group with the caller, root and nobody, and nobody else's name.
func (b *builder) accounts() {
	a := b.account()
	why := "names of the caller, root and nobody; no other account's"
	if a.name == "" {
		a.name = accountName(b.getenv("USER"), b.getenv("LOGNAME"))
		why = "the caller has no entry on the host (a directory service?): one is made from USER"
	}
	if !b.visible(a.shell) {
		a.shell = "/bin/sh"
	}
	group := a.name
	if f, ok := dbEntry(b.readEtc("group"), 2, b.GID, 3); ok {
		group = f[0]
	}
	var passwd, groups strings.Builder
	line := func(w *strings.Builder, fields ...string) { w.WriteString(strings.Join(fields, ":") + "\n") }
	if b.UID != 0 {
		line(&passwd, "root", "x", "0", "0", "root", "/root", "/bin/sh")
	}
	line(&passwd, a.name, "x", strconv.Itoa(b.UID), strconv.Itoa(b.GID), a.gecos, Home, a.shell)
	if b.GID != 0 {
		line(&groups, "root", "x", "0", "")
	}
	line(&groups, group, "x", strconv.Itoa(b.GID), "")
	if b.UID != overflow {
		line(&passwd, "nobody", "x", "65534", "65534", "nobody", "/nonexistent", "/usr/sbin/nologin")
	}
	if b.GID != overflow {
		line(&groups, "nogroup", "x", "65534", "")
	}
	b.add(binds.Mount{Kind: binds.File, Target: "/etc/passwd", Data: []byte(passwd.String()), Perm: 0o444, Reason: binds.Reason{By: base, Why: why}})
	b.add(binds.Mount{Kind: binds.File, Target: "/etc/group", Data: []byte(groups.String()), Perm: 0o444, Reason: binds.Reason{By: base, Why: "names of the caller's group, root and nogroup"}})
}

// overflow is the id that the kernel shows for one that is not mapped (/proc/sys/kernel/overflowuid).
const overflow = 65534

// accountName returns the first of names that can stand in a passwd file and is nobody else's: USER outlives a change
// of the user, and a leading '+' or '-' is NIS.
func accountName(names ...string) string {
	for _, n := range names {
		odd := func(r rune) bool { return r <= ' ' || r == ':' || r == '/' || r == 0x7f }
		if n != "" && n != "root" && n != "nobody" && n[0] != '+' && n[0] != '-' && n[0] != '#' && strings.IndexFunc(n, odd) < 0 {
			return n
		}
	}
	return "user"
}
