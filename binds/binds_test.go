package binds

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"github.com/selfcage/selfcage/internal/hostfs"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestKind(t *testing.T) {
	for k := ReadOnly; k <= RemountRO; k++ {
		if got, ok := ParseKind(k.String()); !ok || got != k {
			t.Errorf("ParseKind(%q) = %v, %v, want %d", k.String(), got, ok, k)
		}
	}
	for _, s := range []string{"", "unknown", "RO", "ro ", "bind"} {
		if k, ok := ParseKind(s); ok {
			t.Errorf("ParseKind(%q) = %v, want none", s, k)
		}
	}
	for _, k := range []Kind{0, RemountRO + 1, 255} {
		if got := k.String(); got != "unknown" {
			t.Errorf("Kind(%d) is %q, want unknown", k, got)
		}
	}
}

// A mount as tests write it: "ro /a", "link /a b", "rw /a /source", "file /a data", with the reason's By after '#'.
func parse(s string) Mount {
	s, by, _ := strings.Cut(s, " #")
	w := strings.Fields(s)
	k, ok := ParseKind(w[0])
	if !ok {
		panic("no kind: " + s)
	}
	m := Mount{Kind: k, Target: w[1], Reason: Reason{By: by}}
	if k.Bind() {
		m.Source = m.Target
	}
	if len(w) > 2 {
		switch k {
		case File, Sealed:
			m.Data = []byte(w[2])
		default:
			m.Source = w[2]
		}
	}
	return m
}

func show(ms []Mount) string {
	var b strings.Builder
	for _, m := range ms {
		b.WriteString(m.Kind.String() + " " + m.Target)
		if m.Kind == Symlink || m.Kind.Bind() && m.Source != m.Target {
			b.WriteString(" " + m.Source)
		}
		if len(m.Data) > 0 {
			b.WriteString(" " + string(m.Data))
		}
		if m.Reason.By != "" {
			b.WriteString(" #" + m.Reason.By)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func list(text string) (ms []Mount) {
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) != "" {
			ms = append(ms, parse(strings.TrimSpace(line)))
		}
	}
	return ms
}

func TestArrange(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"nothing", "", ""},
		{"parents come first", "ro /a/b/c\nro /a-b\ntmpfs /a/b\nro /a", "ro /a\ntmpfs /a/b\nro /a/b/c\nro /a-b"},
		{"a writable child of a read-only parent", "rw /p/c\nro /p", "ro /p\nrw /p/c"},
		{"a read-only child of a writable parent", "ro /p/c\nrw /p", "rw /p\nro /p/c"},
		{"three levels", "rw /p/ro/rw\nro /p/ro\nrw /p", "rw /p\nro /p/ro\nrw /p/ro/rw"},
		{"what the parent gives is left out", "ro /p/a\nro /p\nro /p/a/b", "ro /p"},
		{"what the nearest one gives is left out", "ro /p/a/b\nrw /p/a\nro /p", "ro /p\nrw /p/a\nro /p/a/b"},
		{"one path, both: writable", "ro /p\nrw /p", "rw /p"},
		{"one path, both, below a writable one: writable still", "rw /p\nro /p/x\nrw /p/x", "rw /p"},
		{"one path, both, below a read-only one", "ro /p\nro /p/x\nrw /p/x", "ro /p\nrw /p/x"},
		{"another tree at the same place stays", "ro /p\nro /p/a /elsewhere/a", "ro /p\nro /p/a /elsewhere/a"},
		{"a device below a bind stays", "ro /dev\ndevice /dev/kfd", "ro /dev\ndevice /dev/kfd"},
		{"a device beats a bind", "ro /x\ndevice /x", "device /x"},
		{"the same link twice", "link /a b #x\nlink /a b #w", "link /a b #w"},
		{"a grant beats a private place", "tmpfs /tmp\nrw /tmp", "rw /tmp"},
		{"a grant beats a copy", "file /etc/hosts x\nro /etc/hosts", "ro /etc/hosts"},
		{"a link in a bind comes along", "ro /usr\nlink /usr/bin/awk /etc/alternatives/awk", "ro /usr"},
		{"a directory in a bind comes along", "rw /w\ndir /w/a", "rw /w"},
		{"a private place in a bind", "ro /var\ntmpfs /var/tmp", "ro /var\ntmpfs /var/tmp"},
		{"a link in a private place", "tmpfs /tmp\nlink /tmp/a b", "tmpfs /tmp\nlink /tmp/a b"},
		{"a directory gives way", "dir /run\ntmpfs /run", "tmpfs /run"},
		{"a directory gives way to a link", "dir /var\nlink /var x", "link /var x"},
		{"remounts last, the root's at the end", "remount-ro /\nremount-ro /dev\ntmpfs /dev/shm\ndev /dev\nro /z", "dev /dev\ntmpfs /dev/shm\nro /z\nremount-ro /dev\nremount-ro /"},
		{"one remount a place", "remount-ro /\nremount-ro /", "remount-ro /"},
		{"the root itself", "ro /a\ntmpfs /", "tmpfs /\nro /a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := list(tt.in)
			got, err := Arrange(in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(show(list(tt.want)), show(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(show(list(tt.in)), show(in)); diff != "" {
				t.Errorf("the input was changed:\n%s", diff)
			}
		})
	}
}

// A copy of a file of the host is left out where the file itself comes along, in whatever directory was granted.
func TestArrangeCopy(t *testing.T) {
	hosts := Mount{Kind: File, Source: "/etc/default/locale", Target: "/etc/default/locale", Data: []byte("x")}
	got, err := Arrange([]Mount{hosts, parse("ro /etc/default")})
	if err != nil || show(got) != "ro /etc/default\n" {
		t.Errorf("got %s, %v", show(got), err)
	}
	elsewhere := parse("ro /etc/default /srv/etc")
	if got, err := Arrange([]Mount{hosts, elsewhere}); err == nil {
		t.Errorf("a copy below a bind of another tree: %s, want an error", show(got))
	}
}

func TestArrangeConflicts(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"two trees at one place", "ro /a /b #x\nro /a /c #y", `ro of "/b" (x) and ro of "/c" (y) cannot both be at "/a"`},
		{"two texts of one link", "link /a b\nlink /a c", `link of "b" and link of "c" cannot both be at "/a"`},
		{"a link and a bind", "link /a b #x\nro /a #y", `ro of "/a" (y) and link of "b" (x) cannot both be at "/a"`},
		{"a link and a private place", "link /tmp b\ntmpfs /tmp", `tmpfs and link of "b" cannot both be at "/tmp"`},
		{"two contents", "file /a x\nfile /a y", `file and file cannot both be at "/a"`},
		{"below a link", "link /a b #x\nro /a/c #y", `ro of "/a/c" (y) at "/a/c" lies below link of "b" (x)`},
		{"deep below a link", "link /a b\ndir /a/c/d", `dir at "/a/c/d" lies below link of "b"`},
		{"below a file", "file /a x\nro /a/c", `ro of "/a/c" at "/a/c" lies below file`},
		{"below a sealed file", "sealed /a x\ntmpfs /a/c", `tmpfs at "/a/c" lies below sealed`},
		{"a made-up file in a bind", "rw /w #x\nfile /w/a x #y", `file (y) at "/w/a" would be written to the host by rw of "/w" (x)`},
		{"a grant where the cage has its own", "proc /proc\nro /proc #x", `proc and ro of "/proc" (x) cannot both be at "/proc"`},
	} {
		for _, turn := range []bool{false, true} {
			in := list(tt.in)
			if turn {
				in[0], in[1] = in[1], in[0]
			}
			if got, err := Arrange(in); err == nil || err.Error() != tt.want {
				t.Errorf("%s: %v, %v, want %s", tt.name, show(got), err, tt.want)
			}
		}
	}
}

func TestCover(t *testing.T) {
	ms := list("ro /usr\ntmpfs /tmp\nrw /tmp/a\nremount-ro /tmp/a/b\nlink /bin usr/bin\nremount-ro /")
	for p, want := range map[string]string{
		"/usr": "ro /usr", "/usr/bin": "ro /usr", "/usr2": "", "/": "", "/tmp": "tmpfs /tmp", "/tmp/ab": "tmpfs /tmp",
		"/tmp/a": "rw /tmp/a", "/tmp/a/b/c": "rw /tmp/a", "/bin": "link /bin usr/bin", "/bin/sh": "link /bin usr/bin",
	} {
		m, ok := Cover(ms, p)
		if got := strings.TrimSuffix(show([]Mount{m}), "\n"); ok != (want != "") || ok && got != want {
			t.Errorf("Cover(%q) = %s, %v, want %s", p, got, ok, want)
		}
	}
	// Before Arrange there may be several at one target.
	for _, in := range []string{"tmpfs /tmp\nrw /tmp", "rw /tmp\ntmpfs /tmp"} {
		if m, _ := Cover(list(in), "/tmp/x"); m.Kind != ReadWrite {
			t.Errorf("of %q %s counts, want rw", in, m.Kind)
		}
	}
}

// random returns mounts over a few names, so that they meet often.
func random(r *rand.Rand) []Mount {
	names := []string{"a", "b", "a-b", "ab"}
	ms := make([]Mount, r.Intn(9))
	for i := range ms {
		target := ""
		for range 1 + r.Intn(4) {
			target += "/" + names[r.Intn(len(names))]
		}
		kinds := []Kind{ReadOnly, ReadOnly, ReadWrite, ReadWrite, Device, Tmpfs, Dir, Symlink, File, Sealed, RemountRO}
		m := Mount{Kind: kinds[r.Intn(len(kinds))], Target: target, Reason: Reason{By: names[r.Intn(2)]}}
		switch {
		case m.Kind.Bind():
			m.Source = target
			if r.Intn(8) == 0 {
				m.Source = "/other" + target
			}
		case m.Kind == Symlink:
			m.Source = names[r.Intn(2)]
		case m.Kind == File && r.Intn(2) == 0:
			m.Source = target
		}
		if m.Kind == Tmpfs {
			m.Size, m.Perm = int64(r.Intn(2)), 0o700
		}
		ms[i] = m
	}
	if r.Intn(3) > 0 {
		ms = append(ms, Mount{Kind: RemountRO, Target: "/"})
	}
	r.Shuffle(len(ms), func(i, j int) { ms[i], ms[j] = ms[j], ms[i] })
	return ms
}

func TestArrangeProperties(t *testing.T) {
	seed := time.Now().UnixNano()
	r := rand.New(rand.NewSource(seed))
	arranged := 0
	for range 8000 {
		in := random(r)
		out, err := Arrange(in)
		mixed := append([]Mount(nil), in...)
		r.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
		again, errAgain := Arrange(mixed)
		if fmt.Sprint(err) != fmt.Sprint(errAgain) || !cmp.Equal(out, again) {
			t.Fatalf("seed %d: the order of the input matters:\n%s\n%s%v\n%s%v", seed, show(in), show(out), err, show(again), errAgain)
		}
		if err != nil {
			continue
		}
		arranged++
		if bad := violated(in, out); bad != "" {
			t.Fatalf("seed %d: %s\nof:\n%s\ngot:\n%s", seed, bad, show(in), show(out))
		}
		if twice, err := Arrange(out); err != nil || !cmp.Equal(out, twice) {
			t.Fatalf("seed %d: arranged again it is\n%s%v\ninstead of\n%s", seed, show(twice), err, show(out))
		}
	}
	if arranged < 800 {
		t.Errorf("seed %d: only %d of 8000 could be arranged", seed, arranged)
	}
}

// violated says which rule an arranged list breaks.
func violated(in, out []Mount) string {
	for i, m := range out {
		for _, later := range out[i+1:] {
			switch {
			case m.Kind == RemountRO && (later.Kind != RemountRO || m.Target == "/"):
				return "a remount is not last: " + m.Target
			case later.Kind == RemountRO:
			case m.Target == later.Target:
				return "two mounts at " + m.Target
			case hostfs.Within(m.Target, later.Target):
				return m.Target + " is hidden by " + later.Target
			}
		}
		for _, above := range out[:i] {
			if m.Kind == RemountRO || above.Target == m.Target || !hostfs.Within(m.Target, above.Target) {
				continue
			}
			if above.Kind == Symlink || above.Kind == File || above.Kind == Sealed {
				return m.Target + " lies below " + describe(above)
			}
		}
		if above, ok := Cover(out[:i], m.Target); ok && above.Kind.Bind() && (m.Kind == Symlink || m.Kind == Dir || m.Kind == File) {
			return m.Kind.String() + " " + m.Target + " would be made on the host"
		}
	}
	// What the strongest of the most specific ones gives is given.
	for _, m := range in {
		if !m.Kind.Bind() {
			continue
		}
		want := m.Kind
		for _, o := range in {
			if o.Target == m.Target && o.Kind.Bind() && rank(o.Kind) < rank(want) {
				want = o.Kind
			}
			if o.Target == m.Target && o.Kind == Sealed {
				want = Sealed
			}
		}
		if got, _ := Cover(out, m.Target); got.Kind != want {
			return fmt.Sprintf("%s is %v, want %v", m.Target, got.Kind, want)
		}
	}
	return ""
}

// A mount point cannot be renamed, so a bind may be there for nothing else. Of several at one target one is enough to ask.
func TestArrangeOwn(t *testing.T) {
	own := func(s string) Mount { m := parse(s); m.Own = true; return m }
	for _, in := range [][]Mount{
		{parse("rw /w"), own("rw /w/.git"), parse("ro /w/.git/config")},
		{parse("rw /w"), parse("rw /w/.git #grant"), own("rw /w/.git #pin"), parse("ro /w/.git/config")},
		{own("rw /w/.git #a"), parse("rw /w/.git #b"), parse("ro /w/.git/config"), parse("rw /w")},
	} {
		out, err := Arrange(in)
		if err != nil || show(out) != "rw /w\nrw /w/.git\nro /w/.git/config\n" && len(out) != 3 {
			t.Errorf("%v: %s", err, show(out))
		}
	}
	if out, err := Arrange([]Mount{parse("rw /w"), parse("rw /w/.git")}); err != nil || len(out) != 1 {
		t.Errorf("nobody asked for one of its own: %v: %s", err, show(out))
	}
}
