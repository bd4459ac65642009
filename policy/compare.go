package policy

import (
	"cmp"
	"slices"
	"strings"

	"github.com/selfcage/selfcage/internal/hostfs"
)

// ChangeKind says how a grant differs between two policies.
type ChangeKind string

// The kinds of changes. Added and Widened give a run more, Removed and Narrowed give it less, Changed is neither.
const (
	Added    ChangeKind = "added"
	Removed  ChangeKind = "removed"
	Widened  ChangeKind = "widened"
	Narrowed ChangeKind = "narrowed"
	Changed  ChangeKind = "changed"
)

// Change is one grant that differs.
type Change struct {
	Kind     ChangeKind
	What     string // the setting by its name in Each: "writable", "network"; "confined" of a path whose links are bound
	Value    string // the path, name or pattern; "" for a scalar
	Old, New string // for a path "read" and "write", for a scalar its value, for "confined" the directory; "" is nothing
	By       string // who said it: of the new side, else of the old
}

// Wider says whether the change gives a run more.
func (c Change) Wider() bool { return c.Kind == Added || c.Kind == Widened }

// String is the change on one line: "widened  writable /out (was read; policy b.toml:3)".
func (c Change) String() string {
	line := string(c.Kind) + strings.Repeat(" ", max(1, len("narrowed ")-len(c.Kind))) + c.What
	if c.Value != "" {
		line += " " + show(c.Value)
	}
	var more []string
	if scalar := c.Value == "" || c.What == "limit"; scalar {
		line += " " + orUnset(c.New)
		more = append(more, "was "+orUnset(c.Old))
	} else if c.Old != "" {
		more = append(more, "was "+show(c.Old))
	}
	if c.By != "" {
		more = append(more, c.By)
	}
	if len(more) > 0 {
		line += " (" + strings.Join(more, "; ") + ")"
	}
	return line
}

func orUnset(s string) string {
	if s == "" {
		return "unset"
	}
	return show(s)
}

// Compare lists what differs from old to new, sorted by setting and value. Grants are compared by what they give: one that
// lies in another of the same access changes nothing, nor does a host that a pattern covers or a device in a directory. A
// path to be written that a flag, a variable or Options names inside a writable directory counts all the same: named by
// itself it is not protected any more, as .git/config is in a checkout. A path whose links could not lead out of a directory
// and now can is widened. Where old or new say no network it is the host's, no limit or size is the largest, and no mode is off.
//
// The other settings give a run nothing and do not count: bwrap, report, quiet, and which files were read.
func Compare(old, new Settings) []Change {
	out := compareAccess(old, new)
	out = append(out, compareExact(old, new)...)
	out = append(out, compareConfined(old, new)...)
	out = append(out, compareMarks("hide", "hidden", old.Hide, new.Hide)...)
	out = append(out, compareMarks("protect", "protected", old.Protect, new.Protect)...)
	for i := range table {
		t := &table[i]
		switch t.suffix {
		case "HOSTS":
			out = append(out, t.compare(reached(old), reached(new))...)
		case "DEVICE", "GPU", "NPU", "CACHE", "ENV", "SECRET":
			out = append(out, t.compare(t.entries(&old), t.entries(&new))...)
		}
	}
	out = append(out, compareLimits(old, new)...)
	out = append(out, compareRank("mode", old.Mode, new.Mode, func(v string) int { return -modeRank(v) })...)
	out = append(out, compareRank("network", old.Network, new.Network, networkRank)...)
	out = append(out, compareRank("note", old.Note, new.Note, noteRank)...)
	slices.SortFunc(out, func(a, b Change) int {
		return cmp.Or(strings.Compare(a.What, b.What), strings.Compare(a.Value, b.Value))
	})
	return out
}

// index finds the entry at a path or next above it.
type index map[string]Entry

func indexOf(lists ...[]Entry) index {
	ix := make(index)
	for _, es := range lists {
		for _, e := range es {
			if _, there := ix[e.Value]; !there {
				ix[e.Value] = e
			}
		}
	}
	return ix
}

func (ix index) at(p string) (Entry, bool) {
	for {
		if e, ok := ix[p]; ok {
			return e, true
		}
		i := strings.LastIndexByte(p, '/')
		if i < 0 || p == "/" {
			return Entry{}, false
		}
		p = p[:max(i, 1)]
	}
}

// above returns the entry next above p, itself aside.
func (ix index) above(p string) (Entry, bool) {
	i := strings.LastIndexByte(p, '/')
	if i < 0 || p == "/" {
		return Entry{}, false
	}
	return ix.at(p[:max(i, 1)])
}

// holders are the directories that hold an entry, at any depth.
func (ix index) holders() map[string]bool {
	hs := make(map[string]bool)
	for p := range ix {
		for i := strings.LastIndexByte(p, '/'); i >= 0 && p != "/"; i = strings.LastIndexByte(p, '/') {
			if p = p[:max(i, 1)]; hs[p] {
				break
			}
			hs[p] = true
		}
	}
	return hs
}

// access is what a run may do with paths. The grant next above a path decides.
type access struct{ all, write index }

func accessOf(s Settings) access { return access{indexOf(s.Writable, s.Readable), indexOf(s.Writable)} }

// at returns the grant that decides over p and its access, "read" or "write", "" when there is none.
func (a access) at(p string) (grant Entry, how string) {
	grant, ok := a.all.at(p)
	if !ok {
		return Entry{}, ""
	}
	if _, ok := a.write[grant.Value]; ok {
		return grant, "write"
	}
	return grant, "read"
}

func compareAccess(old, new Settings) (out []Change) {
	was, is := accessOf(old), accessOf(new)
	within, now := was.all.holders(), is.all.holders()
	every := indexOf(old.Writable, old.Readable, new.Writable, new.Readable)
	for p := range every {
		before, a := was.at(p)
		after, b := is.at(p)
		if a == b {
			continue
		}
		if up, ok := every.above(p); ok {
			if _, c := was.at(up.Value); c == a {
				if _, d := is.at(up.Value); d == b {
					continue // the change begins above
				}
			}
		}
		c := Change{What: "readable", Value: p, Old: a, New: b, By: after.By}
		if a == "write" || b == "write" {
			c.What = "writable"
		}
		switch {
		case b == "":
			c.Kind, c.By = orKind(now[p], Narrowed, Removed), before.By
		case a == "":
			c.Kind = orKind(within[p], Widened, Added)
		default:
			c.Kind = orKind(b == "write", Widened, Narrowed)
		}
		out = append(out, c)
	}
	return out
}

// compareExact compares what operators name inside of what is writable anyway.
func compareExact(old, new Settings) (out []Change) {
	was, is := exact(old), exact(new)
	before, after := accessOf(old), accessOf(new)
	for p, e := range is {
		// Where the access is another one, that is said already.
		if _, how := before.at(p); how == "write" && was[p] == (Entry{}) {
			out = append(out, Change{Kind: Added, What: "writable", Value: p, New: "write", By: e.By})
		}
	}
	for p, e := range was {
		if _, how := after.at(p); how == "write" && is[p] == (Entry{}) {
			out = append(out, Change{Kind: Removed, What: "writable", Value: p, Old: "write", By: e.By})
		}
	}
	return out
}

// exact are the paths to be written that lie in another such path and that a flag, a variable or Options names.
func exact(s Settings) index {
	all, out := indexOf(s.Writable), make(index)
	for _, e := range s.Writable {
		if _, inside := all.above(e.Value); inside && !fromPolicy(e) {
			out[e.Value] = e
		}
	}
	return out
}

// fromPolicy says whether a policy file or a recipe said e.
func fromPolicy(e Entry) bool { return strings.HasPrefix(e.By, "policy ") }

// compareConfined compares the directories that the links of a path must not lead out of, where both grant the path.
func compareConfined(old, new Settings) (out []Change) {
	was, is := rootsOf(old), rootsOf(new)
	before, after := pathsOf(old), pathsOf(new)
	for p, roots := range was {
		if e, granted := after[p]; granted {
			if root := unbound(roots, is[p]); root != "" {
				out = append(out, Change{Kind: Widened, What: "confined", Value: p, Old: root, By: e.By})
			}
		}
	}
	for p, roots := range is {
		if _, granted := before[p]; granted && after[p] != (Entry{}) {
			if root := unbound(roots, was[p]); root != "" {
				out = append(out, Change{Kind: Narrowed, What: "confined", Value: p, New: root, By: after[p].By})
			}
		}
	}
	return out
}

// rootsOf are the directories that each path is confined to.
func rootsOf(s Settings) map[string][]string {
	out := make(map[string][]string)
	for _, c := range s.Confined {
		c = c.clean()
		out[c.Path] = append(out[c.Path], c.Root)
	}
	return out
}

// pathsOf are the paths that are shown, by themselves and not as a part of others.
func pathsOf(s Settings) index { return indexOf(s.Writable, s.Readable, s.Device) }

// unbound returns the first of roots that none of others lies in, "" when there is none.
func unbound(roots, others []string) string {
	for _, root := range roots {
		if !slices.ContainsFunc(others, func(o string) bool { return hostfs.Within(o, root) }) {
			return root
		}
	}
	return ""
}

func orKind(first bool, a, b ChangeKind) ChangeKind {
	if first {
		return a
	}
	return b
}

// compareMarks compares lists of paths that take access away, whatever is granted there.
func compareMarks(what, word string, old, new []Entry) (out []Change) {
	was, is, every := indexOf(old), indexOf(new), indexOf(old, new)
	for p := range every {
		before, a := was.at(p)
		after, b := is.at(p)
		if a == b {
			continue
		}
		if up, ok := every.above(p); ok {
			_, c := was.at(up.Value)
			if _, d := is.at(up.Value); c == a && d == b {
				continue
			}
		}
		if b {
			out = append(out, Change{Kind: Narrowed, What: what, Value: p, New: word, By: after.By})
		} else {
			out = append(out, Change{Kind: Widened, What: what, Value: p, Old: word, By: before.By})
		}
	}
	return out
}

// compare compares lists whose elements may hold one another.
func (t *setting) compare(old, new []Entry) (out []Change) {
	return append(t.missing(new, old, Added, Widened), t.missing(old, new, Removed, Narrowed)...)
}

// missing lists the elements of es that none of others holds, as partly when they hold one of others.
func (t *setting) missing(es, others []Entry, kind, partly ChangeKind) (out []Change) {
	own, same := t.membersOf(es), t.membersOf(others)
	for _, e := range es {
		if _, ok := same.index[e.Value]; ok || e.Value == everyHost && t.suffix == "HOSTS" {
			continue // the change of the network says so
		}
		c := Change{Kind: kind, What: t.name(), Value: e.Value, By: e.By}
		if !t.exact() {
			if same.hold(e.Value) || own.holdStrictly(e.Value) {
				continue
			}
			if same.heldBy(e.Value) {
				c.Kind = partly
			}
		}
		out = append(out, c)
	}
	return out
}

// members are a list whose elements may hold one another, made so that each question looks at few of them: a list may have
// many thousands. Hosts are compared with each other, and so are parsed once.
type members struct {
	*setting
	index   index
	holders map[string]bool
	hosts   []pattern
}

// pattern is a host as it is spelt and as it is meant, which is nothing for a spelling that is none.
type pattern struct {
	text string
	host Host
	ok   bool
}

func patternOf(s string) pattern {
	h, err := ParseHost(s)
	return pattern{s, h, err == nil}
}

// covers is Host.Covers. What is no pattern covers only itself.
func (p pattern) covers(q pattern) bool {
	return p.text == q.text || p.text == everyHost || p.ok && q.ok && p.host.Covers(q.host)
}

func (t *setting) membersOf(es []Entry) members {
	m := members{setting: t, index: indexOf(es)}
	if t.suffix == "HOSTS" {
		for _, e := range es {
			m.hosts = append(m.hosts, patternOf(e.Value))
		}
	} else if !t.exact() {
		m.holders = m.index.holders()
	}
	return m
}

// hold says whether one of m grants e.
func (m members) hold(e string) bool {
	if m.suffix != "HOSTS" {
		return m.held(m.index, e)
	}
	q := patternOf(e)
	return slices.ContainsFunc(m.hosts, func(p pattern) bool { return p.covers(q) })
}

// holdStrictly says whether one of m grants e and more.
func (m members) holdStrictly(e string) bool {
	if m.suffix == "HOSTS" {
		q := patternOf(e)
		return slices.ContainsFunc(m.hosts, func(p pattern) bool { return p.text != e && p.covers(q) && !q.covers(p) })
	}
	if _, all := m.index["all"]; all && m.suffix != "DEVICE" && e != "all" {
		return true
	}
	_, above := m.index.above(e)
	return above && strings.HasPrefix(e, "/")
}

// heldBy says whether e grants one of m.
func (m members) heldBy(e string) bool {
	if m.suffix == "HOSTS" {
		q := patternOf(e)
		return slices.ContainsFunc(m.hosts, q.covers)
	}
	return e == "all" && m.suffix != "DEVICE" && len(m.index) > 0 || m.holders[e] && strings.HasPrefix(e, "/")
}

// exact tells whether an element of the list grants nothing but what is spelt like it.
func (t *setting) exact() bool {
	return t.suffix == "CACHE" || t.suffix == "ENV" || t.suffix == "SECRET"
}

// everyHost stands for what the host's own network reaches.
const everyHost = "*"

// reached are the hosts that s reaches.
func reached(s Settings) []Entry {
	switch s.Network.Value {
	case "egress":
		return s.Hosts
	case "none":
		return nil
	}
	return []Entry{{Value: everyHost}}
}

// compareRank compares scalars; one of a higher rank gives more.
func compareRank(what string, old, new Entry, rank func(string) int) []Change {
	if old.Value == new.Value {
		return nil
	}
	c := Change{Kind: Changed, What: what, Old: old.Value, New: new.Value, By: new.By}
	if new.Value == "" {
		c.By = old.By
	}
	switch a, b := rank(old.Value), rank(new.Value); {
	case a < b:
		c.Kind = Widened
	case a > b:
		c.Kind = Narrowed
	}
	return []Change{c}
}

// modeRank says how much a mode confines.
func modeRank(mode string) int {
	switch Mode(mode) {
	case ScrubbedOnly:
		return 1
	case Auto:
		return 2
	case Bwrap, Landlock:
		return 3
	case Enforced:
		return 4
	}
	return 0
}

func networkRank(network string) int {
	switch network {
	case "none":
		return 0
	case "egress":
		return 1
	}
	return 2
}

// noteRank: the note that a container isolates takes our own cage away.
func noteRank(note string) int {
	if note == ContainerNote {
		return 1
	}
	return 0
}

// compareLimits compares sizes and numbers, of which an absent one is the largest.
func compareLimits(old, new Settings) (out []Change) {
	add := func(what, key, kind string, a, b Entry) {
		if a.Value == b.Value || atMost(kind, a.Value, b.Value) && atMost(kind, b.Value, a.Value) {
			return
		}
		c := Change{Kind: Widened, What: what, Value: key, Old: a.Value, New: b.Value, By: b.By}
		switch {
		case b.Value == "":
			c.By = a.By
		case a.Value == "" || atMost(kind, b.Value, a.Value):
			c.Kind = Narrowed
		}
		out = append(out, c)
	}
	add("tmp_size", "", "memory", old.TmpSize, new.TmpSize)
	for _, key := range [...]string{"memory", "pids", "cpu"} {
		add("limit", key, key, limit(old.Limit, key), limit(new.Limit, key))
	}
	return out
}

// limit is what a list says of key, its value alone.
func limit(es []Entry, key string) Entry {
	i := limitOf(es, key)
	if i < 0 {
		return Entry{}
	}
	return Entry{es[i].Value[len(key)+1:], es[i].By}
}
