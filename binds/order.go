package binds

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/selfcage/selfcage/internal/hostfs"
)

// Arrange puts mounts into the order in which they are made and leaves out what another already does:
//
//   - parents come before children, so that nothing is hidden by a later mount and the more specific one wins;
//   - of several at one target the strongest stays (writable before read-only before private);
//   - a bind that its parent already gives with the same access is left out, unless it is to be a mount of its own, and so
//     are a link or a directory that come along with the bind they lie in;
//   - remounts come last, the root's at the very end.
//
// The result does not depend on the order of the input. An error means that two mounts contradict each other.
func Arrange(in []Mount) ([]Mount, error) {
	ms := append([]Mount(nil), in...)
	slices.SortStableFunc(ms, func(a, b Mount) int {
		switch {
		case before(a, b):
			return -1
		case before(b, a):
			return 1
		}
		return 0
	})
	// First one mount a target, then what is left out: a strongest one that its parent already gives must still beat
	// the weaker ones at its target.
	single := ms[:0]
	for _, m := range ms {
		if n := len(single); n > 0 && single[n-1].Target == m.Target && (m.Kind == RemountRO) == (single[n-1].Kind == RemountRO) {
			if err := agree(single[n-1], m); err != nil {
				return nil, err
			}
			single[n-1].Own = single[n-1].Own || m.Own
			continue
		}
		single = append(single, m)
	}
	out := make([]Mount, 0, len(single))
	for _, m := range single {
		parent, inside := Cover(out, m.Target)
		drop, err := redundant(parent, inside, m)
		if err != nil {
			return nil, err
		}
		if !drop {
			out = append(out, m)
		}
	}
	return out, nil
}

// Cover returns the mount that decides what is at clean path p: the most specific one at p or above it, and of several
// at one target the one that Arrange would keep. Remounts do not count. ok is false where only the cage's own root is
// left.
func Cover(ms []Mount, p string) (m Mount, ok bool) {
	for _, c := range ms {
		if c.Kind == RemountRO || !hostfs.Within(p, c.Target) {
			continue
		}
		if !ok || len(c.Target) > len(m.Target) || len(c.Target) == len(m.Target) && rank(c.Kind) < rank(m.Kind) {
			m, ok = c, true
		}
	}
	return m, ok
}

// rank orders mounts at one target, strongest first. What an operator granted beats what is private by default.
func rank(k Kind) int {
	switch k {
	case Proc, Dev, Sealed:
		return 0
	case Device:
		return 1
	case ReadWrite:
		return 2
	case ReadOnly:
		return 3
	case File:
		return 4
	case Tmpfs:
		return 5
	case Symlink:
		return 6
	}
	return 7
}

func before(a, b Mount) bool {
	if (a.Kind == RemountRO) != (b.Kind == RemountRO) {
		return b.Kind == RemountRO
	}
	if a.Target != b.Target {
		if a.Kind == RemountRO { // deepest first: the root must be last
			return less(b.Target, a.Target)
		}
		return less(a.Target, b.Target)
	}
	if rank(a.Kind) != rank(b.Kind) {
		return rank(a.Kind) < rank(b.Kind)
	}
	if a.Source != b.Source {
		return a.Source < b.Source
	}
	if a.Reason.By != b.Reason.By {
		return a.Reason.By < b.Reason.By
	}
	if a.Reason.Why != b.Reason.Why {
		return a.Reason.Why < b.Reason.Why
	}
	// What is left matters to nobody but must not depend on the order of the input.
	if a.Kind != b.Kind {
		return a.Kind < b.Kind
	}
	if a.Perm != b.Perm {
		return a.Perm < b.Perm
	}
	if a.Size != b.Size {
		return a.Size < b.Size
	}
	return string(a.Data) < string(b.Data)
}

// less compares component by component, so that "/a/b" comes before "/a-b" and every parent before its children.
func less(a, b string) bool {
	for i := 0; i < len(a) && i < len(b); i++ {
		if a[i] != b[i] {
			return a[i] == '/' || b[i] != '/' && a[i] < b[i]
		}
	}
	return len(a) < len(b)
}

// agree says whether two mounts at one target can be one: kept is the stronger.
func agree(kept, m Mount) error {
	same := kept.Source == m.Source
	switch {
	case kept.Kind == m.Kind && same && string(kept.Data) == string(m.Data),
		m.Kind == Dir, m.Kind == Tmpfs && kept.Kind != Symlink,
		m.Kind == File && kept.Kind.Bind(), // what was granted is more than a copy of it
		kept.Kind.Bind() && m.Kind.Bind() && same:
		return nil
	}
	return errors.New(describe(kept) + " and " + describe(m) + " cannot both be at " + strconv.Quote(m.Target))
}

func describe(m Mount) string {
	s := m.Kind.String()
	if m.Source != "" {
		s += " of " + strconv.Quote(m.Source)
	}
	if m.Reason.By != "" {
		s += " (" + m.Reason.By + ")"
	}
	return s
}

// redundant says whether m adds nothing to the mount that it lies in.
func redundant(parent Mount, inside bool, m Mount) (bool, error) {
	if !inside || m.Kind == RemountRO {
		return false, nil
	}
	switch {
	case parent.Kind == Symlink || parent.Kind == File || parent.Kind == Sealed:
		return false, errors.New(describe(m) + " at " + strconv.Quote(m.Target) + " lies below " + describe(parent))
	case !parent.Kind.Bind():
		return false, nil
	case m.Kind == Symlink || m.Kind == Dir:
		// It comes along with the bind. Making it again would fail, or create it on the host.
		return true, nil
	case m.Kind == File && m.Source != "" && m.Source == parent.Source+strings.TrimPrefix(m.Target, parent.Target):
		return true, nil // the copy of a file that comes along
	case m.Kind == File:
		return false, errors.New(describe(m) + " at " + strconv.Quote(m.Target) + " would be written to the host by " + describe(parent))
	case m.Kind == parent.Kind && m.Kind.Bind():
		return !m.Own && m.Source == parent.Source+strings.TrimPrefix(m.Target, parent.Target), nil
	}
	return false, nil
}
