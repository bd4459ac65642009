package policy

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/selfcage/selfcage/env"
	"github.com/selfcage/selfcage/internal/hostfs"
	"github.com/selfcage/selfcage/internal/refusal"
)

// narrow applies one delta (seed R34): a [narrow] table, or a whole recipe of a third party. What the delta says replaces
// what was granted before and must lie in it; what it does not say stays. Only hosts and names of variables are added.
// dropped is what of the delta has no effect.
func narrow(before Settings, d File, recipe bool, src Sources) (after Settings, dropped []Change, err error) {
	if err := onlyOperators(d.Settings); err != nil {
		return Settings{}, nil, err
	}
	want, err := d.Settings.Validate()
	if err != nil {
		return Settings{}, nil, err
	}
	if want, err = want.located(src.Dir); err != nil {
		return Settings{}, nil, err
	}
	n := narrower{before: before, after: Merge(before), want: want, file: d, recipe: recipe, shown: make(index), roots: make(map[string][]string)}
	for _, p := range src.Shown {
		n.shown[path.Clean(p)] = Entry{Value: path.Clean(p)}
	}
	for _, c := range before.Confined {
		n.roots[c.Path] = append(n.roots[c.Path], c.Root)
	}
	for _, step := range []func() error{n.paths, n.lists, n.variables, n.network, n.scalars} {
		if err := step(); err != nil {
			return Settings{}, nil, err
		}
	}
	n.after.Hide = unique(append(n.after.Hide, want.Hide...))
	n.after.Protect = unique(append(n.after.Protect, want.Protect...))
	n.after.Confined = stillGranted(append(n.after.Confined, want.Confined...), n.after)
	return n.after, n.dropped, nil
}

type narrower struct {
	before, after, want Settings
	file                File
	recipe              bool
	shown               index               // what can be read anyway
	roots               map[string][]string // by path, what before confines it to
	dropped             []Change
}

// said tells whether the delta says key, be it with an empty list. A delta that was made in code may leave Said out where
// it has something to say.
func (n *narrower) said(key string, es []Entry) bool {
	return len(es) > 0 || slices.ContainsFunc(n.file.Said, func(e Entry) bool { return e.Value == key })
}

// paths: exactly those that the delta names can be read and written. What was read-only inside a directory that stays
// writable remains so: to leave it out would widen.
func (n *narrower) paths() error {
	readSaid, writeSaid := n.said("read_paths", n.want.Readable), n.said("write_paths", n.want.Writable)
	granted := accessOf(n.before)
	for _, e := range n.want.Readable {
		g, how := granted.at(e.Value)
		if how == "" {
			if g, _ = n.shown.at(e.Value); g.Value == "" {
				return n.wider(e, "nothing that is granted holds it", "--read "+show(e.Value), "read_paths")
			}
		}
		n.confine(e, g.Value)
	}
	for _, e := range n.want.Writable {
		switch g, how := granted.at(e.Value); how {
		case "":
			return n.wider(e, "nothing that is granted holds it", "--write "+show(e.Value), "write_paths")
		case "read":
			return n.wider(e, show(g.Value)+" is granted for reading only", "--write "+show(e.Value), "write_paths")
		default:
			n.confine(e, g.Value)
		}
	}
	read, write := slices.Clone(n.before.Readable), n.before.Writable
	if readSaid {
		read = slices.Clone(n.want.Readable)
	}
	if writeSaid {
		write = n.want.Writable
		if !readSaid {
			read = append(read, n.before.Writable...)
		}
	}
	stays := indexOf(write)
	for _, e := range n.before.Readable {
		if _, ok := stays.at(e.Value); ok {
			read = append(read, e)
		}
	}
	n.after.Writable = unique(write)
	n.after.Readable = without(read, write)
	return nil
}

// confine records that the links of a path must not lead out of the grant that covers it, nor out of what that one is
// confined to.
func (n *narrower) confine(e Entry, grant string) {
	if e.Value == grant {
		return // which says nothing, and what confines the grant stays
	}
	n.after.Confined = append(n.after.Confined, Confined{e.Value, grant})
	for _, root := range n.roots[grant] {
		n.after.Confined = append(n.after.Confined, Confined{e.Value, root})
	}
}

// variables adds names. One that decides what programs execute is more than a name: who may say LD_PRELOAD or BASH_ENV runs
// code of his own in every program of the run. Such a one is the operator's to list.
func (n *narrower) variables() error {
	listed := indexOf(n.before.Env)
	for _, e := range n.want.Env {
		if _, ok := listed[e.Value]; !ok && env.ChangesExecution(e.Value) {
			return n.wider(e, "it changes what programs execute, which no delta adds", "--env "+show(e.Value), "env_allowlist")
		}
	}
	n.after.Env = unique(append(n.after.Env, n.want.Env...))
	return nil
}

// lists: devices and caches that the delta names must be among those before.
func (n *narrower) lists() error {
	for i := range table {
		t := &table[i]
		key := ""
		switch t.suffix {
		case "DEVICE":
			key = "devices"
		case "GPU", "NPU", "CACHE":
			key = lower(t.suffix)
		}
		es := t.entries(&n.want)
		if key == "" || !n.said(key, es) {
			continue
		}
		granted := indexOf(t.entries(&n.before))
		for _, e := range es {
			if !t.held(granted, e.Value) {
				return n.wider(e, "no "+lower(t.suffix)+" that is granted holds it", "--"+t.flag+" "+show(e.Value), key)
			}
		}
		t.set(&n.after, es)
	}
	return nil
}

// holds tells whether the element g of a list grants the element e, too.
func (t *setting) holds(g, e string) bool {
	switch t.suffix {
	case "DEVICE":
		return hostfs.Within(e, g)
	case "GPU", "NPU":
		return g == "all" || g == e || strings.HasPrefix(g, "/") && hostfs.Within(e, g)
	}
	return g == e
}

// held tells whether an element of granted, a list other than hosts, grants the element e.
func (t *setting) held(granted index, e string) bool {
	g, ok := granted[e]
	if !ok && (t.suffix == "GPU" || t.suffix == "NPU") {
		g, ok = granted["all"]
	}
	if !ok && t.suffix != "CACHE" {
		g, ok = granted.at(e)
	}
	return ok && t.holds(g.Value, e)
}

// network adds hosts. Over the host's own network they narrow: only these are left.
func (n *narrower) network() error {
	want := n.want.Network
	switch {
	case len(n.want.Hosts) > 0 && want.Value != "egress":
		return reachable(n.want)
	case want.Value == "egress":
		if err := reachable(n.want); err != nil {
			return err
		}
		if n.before.Network.Value != "egress" {
			n.after.Network = want
		}
		n.after.Hosts = unique(append(n.after.Hosts, n.want.Hosts...))
	case want.Value == "none", want.Value == "" && n.said("network", nil):
		if n.before.Network.Value != "none" {
			n.after.Network = Entry{"none", want.By}
		}
		n.after.Hosts = nil
	case want.Value == "shared" && networkRank(n.before.Network.Value) < networkRank("shared"):
		return n.wider(want, "the network is "+n.before.Network.Value, "--network shared", "network")
	}
	return nil
}

// scalars are those that only a recipe can say, which is a whole policy.
func (n *narrower) scalars() error {
	if e := n.want.Report; e.Value != "" {
		return wrong(e, "cannot narrow", "where the report goes is the operator's to say",
			"leave it out of the recipe, or pass --report")
	}
	if err := n.mode(); err != nil {
		return err
	}
	for _, e := range n.want.Limit {
		key, value, _ := strings.Cut(e.Value, "=")
		i := limitOf(n.after.Limit, key)
		if i < 0 {
			n.after.Limit = append(n.after.Limit, e)
			continue
		}
		_, before, _ := strings.Cut(n.after.Limit[i].Value, "=")
		if !atMost(key, value, before) {
			return n.wider(e, "the limit is "+key+"="+before, "--limit "+show(e.Value), "limits")
		}
		n.after.Limit = slices.Clone(n.after.Limit)
		n.after.Limit[i] = e
	}
	if e := n.want.TmpSize; e.Value != "" {
		if before := n.before.TmpSize.Value; before != "" && !atMost("memory", e.Value, before) {
			return n.wider(e, "the size of /tmp is "+before, "--tmp-size "+show(e.Value), "tmp")
		}
		n.after.TmpSize = e
	}
	n.note()
	return nil
}

// mode takes a stronger one. Of two that are equally strong the operator's stays.
func (n *narrower) mode() error {
	e := n.want.Mode
	if e.Value == "" {
		return nil
	}
	before := n.before.Mode.Value
	if before == "" {
		before = string(Bwrap) // what who means to confine gets without saying it
	}
	switch a, b := modeRank(e.Value), modeRank(before); {
	case a < b:
		return &refusal.Error{What: "cannot widen by a delta", Object: e.By + " " + strconv.Quote(e.Value), Cause: "it is weaker than " + before,
			Hint: "leave the mode out of the recipe; which mode is the operator's to say"}
	case a > b || n.before.Mode.Value == "":
		n.after.Mode = e
	}
	return nil
}

// note keeps the operator's. One that would switch the cage off has no effect in a delta.
func (n *narrower) note() {
	switch e := n.want.Note; {
	case e.Value == ContainerNote && n.before.Note.Value != ContainerNote:
		n.dropped = append(n.dropped, Change{Kind: Changed, What: "note", Old: ContainerNote, By: e.By})
	case e.Value != "" && n.before.Note.Value == "":
		n.after.Note = e
	}
}

// wider is the error for an entry of a delta that grants more than was granted before it.
func (n *narrower) wider(e Entry, cause, flag, key string) error {
	hint := "leave it out of narrow, or add it to " + key
	if n.recipe {
		hint = "grant it to the recipe with " + flag + ", or leave it out of the recipe"
	}
	return &refusal.Error{What: "cannot widen by a delta", Object: e.By + " " + strconv.Quote(e.Value), Cause: cause, Hint: hint}
}

func limitOf(es []Entry, key string) int {
	return slices.IndexFunc(es, func(e Entry) bool { return strings.HasPrefix(e.Value, key+"=") })
}

// atMost tells whether the limit a of a kind is no larger than b. What is no number is never.
func atMost(kind, a, b string) bool {
	if kind == "memory" {
		x, ok1 := ParseSize(a)
		y, ok2 := ParseSize(b)
		return ok1 && ok2 && x <= y
	}
	x, err1 := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	return err1 == nil && err2 == nil && x <= y
}
