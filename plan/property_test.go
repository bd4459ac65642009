package plan

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/selfcage/selfcage/binds"
	"github.com/selfcage/selfcage/internal/fakehost"
	"github.com/selfcage/selfcage/internal/hostfs"
)

// sound checks what must hold of every plan, whatever was asked on whatever host.
func sound(t testing.TB, s start, p *Plan) {
	t.Helper()
	bad := func(format string, args ...any) {
		t.Helper()
		t.Fatalf("%s: %s\nenv %q, dir %q, grants %+v, hide %+v, protect %+v\n%s", s.name, fmt.Sprintf(format, args...), s.Env, s.Dir, s.Grants, s.Hide, s.Protect, p.Explain())
	}
	host := hostfs.New(s.Host)
	seen := map[string]bool{}
	for i, m := range p.Mounts {
		if m.Reason.By == "" || m.Reason.Why == "" {
			bad("%s has no reason", m.Target)
		}
		if path.Clean(m.Target) != m.Target || m.Target[0] != '/' {
			bad("target %q", m.Target)
		}
		if m.Kind == binds.RemountRO {
			if i < len(p.Mounts)-1 && p.Mounts[i+1].Kind != binds.RemountRO {
				bad("%s is remounted before the last mount", m.Target)
			}
			continue
		}
		if seen[m.Target] {
			bad("two mounts at %s", m.Target)
		}
		seen[m.Target] = true
		for _, later := range p.Mounts[i+1:] {
			if later.Kind != binds.RemountRO && hostfs.Within(m.Target, later.Target) {
				bad("%s is hidden by %s", m.Target, later.Target)
			}
		}
		above, ok := binds.Cover(p.Mounts[:i], m.Target)
		if ok && above.Kind.Bind() && (m.Kind == binds.Symlink || m.Kind == binds.Dir || m.Kind == binds.File) {
			bad("%s %s would be made on the host, in %s", m.Kind, m.Target, above.Target)
		}
		// No component is a link, neither one that we make nor one of a bind. At our own places the host's do not count.
		for a := hostfs.Parent(m.Target); a != "/"; a = hostfs.Parent(a) {
			c, _ := binds.Cover(p.Mounts, a)
			if c.Target == a && (c.Kind == binds.Symlink || c.Kind == binds.File || c.Kind == binds.Sealed) {
				bad("%s lies below %s %s", m.Target, c.Kind, a)
			}
			if fi, err := host.Lstat(a); err == nil && fi.Mode()&fs.ModeSymlink != 0 && !ownPlace(a) {
				bad("%s lies below %s, a link of the host", m.Target, a)
			}
		}
		fi, err := host.Lstat(m.Target)
		link := err == nil && fi.Mode()&fs.ModeSymlink != 0
		switch {
		case m.Kind == binds.Symlink && link && !ownVar(m.Target):
			if text, _ := host.ReadLink(m.Target); text != m.Source {
				bad("link %s has the text %q, want %q", m.Target, m.Source, text)
			}
		case m.Kind == binds.Symlink && !ownVar(m.Target):
			bad("link %s is none on the host", m.Target)
		case m.Kind != binds.Symlink && link && !ownPlace(m.Target) && !ownVar(m.Target):
			bad("%s %s is a link on the host", m.Kind, m.Target)
		}
		if m.Kind.Bind() {
			forRun := slices.ContainsFunc(p.Remove, func(r Missing) bool { return r.Path == m.Source })
			if fi, err := host.Lstat(m.Source); (err != nil) != forRun || err == nil && fi.Mode()&fs.ModeSymlink != 0 {
				bad("the source of %s is a link or missing: %v", m.Target, err)
			}
			for _, secret := range []string{"/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/ssl/private", "/etc/pki/tls/private"} {
				if hostfs.Within(secret, m.Source) && host.Exists(secret) && !hostfs.Within(m.Source, "/etc/alternatives") {
					bad("%s shows %s", m.Target, secret)
				}
			}
			if why, hidden := (&builder{Facts: s.Facts, host: host, real: host, homes: []string{"/home/u"}}).tooMuch(m.Source); hidden && m.Reason.By == "working directory" {
				bad("%s is shown and nobody asked: %s", m.Source, why)
			}
		}
	}
	hiddenAndProtected(t, s, p, bad)
	if n := len(p.Mounts); n == 0 || p.Mounts[n-1].Kind != binds.RemountRO || p.Mounts[n-1].Target != "/" {
		bad("the root is not remounted last")
	}
	if !slices.IsSortedFunc(p.Env, func(a, b Var) int { return strings.Compare(a.Name, b.Name) }) {
		bad("the environment is not sorted")
	}
	if len(slices.CompactFunc(slices.Clone(p.Env), func(a, b Var) bool { return a.Name == b.Name })) != len(p.Env) {
		bad("a variable is there twice")
	}
	if value(p, "PWD") != p.Dir {
		bad("PWD is %q, the directory %q", value(p, "PWD"), p.Dir)
	}
}

// hiddenAndProtected: nothing hidden is what a bind shows, at any place where a bind shows its surroundings; what is
// protected is writable nowhere, and cannot be renamed away.
func hiddenAndProtected(t testing.TB, s start, p *Plan, bad func(string, ...any)) {
	t.Helper()
	host := hostfs.New(s.Host)
	each := func(path string, judge func(m binds.Mount, at string)) {
		for _, m := range p.Mounts {
			if m.Kind.Bind() && hostfs.Within(path, m.Source) {
				at := clean(m.Target + "/" + strings.TrimPrefix(path, m.Source))
				over, _ := binds.Cover(p.Mounts, at)
				judge(over, at)
			}
		}
	}
	for _, g := range s.Hide {
		r, err := host.Walk(hostfs.Abs(g.Path, s.Dir))
		if err != nil {
			continue
		}
		each(r.Path, func(m binds.Mount, at string) {
			if m.Kind.Bind() {
				bad("%s is hidden, and shown at %s by %s %s", r.Path, at, m.Kind, m.Target)
			}
		})
	}
	for _, g := range s.Protect {
		r, err := host.Walk(hostfs.Abs(g.Path, s.Dir))
		if err != nil && !slices.ContainsFunc(p.Remove, func(m Missing) bool { return m.Path == r.Path }) {
			continue
		}
		each(r.Path, func(m binds.Mount, at string) {
			if m.Kind == binds.ReadWrite {
				bad("%s is protected, and writable at %s by %s", r.Path, at, m.Target)
			}
		})
		each(hostfs.Parent(r.Path), func(m binds.Mount, at string) {
			if own, _ := binds.Cover(p.Mounts, clean(at+r.Path[strings.LastIndexByte(r.Path, '/'):])); m.Kind == binds.ReadWrite && m.Target != at && own.Kind != binds.Sealed && own.Kind != binds.Tmpfs {
				bad("%s is protected, and %s can be renamed", r.Path, at)
			}
		})
	}
}

// ownVar says whether p is a link that the cage makes by itself.
func ownVar(p string) bool { return p == "/var/run" || p == "/var/tmp" }

func TestGoldensAreSound(t *testing.T) {
	for _, s := range goldens(t) {
		sound(t, s, build(t, s))
	}
}

// randomHost grows a few directories with files and links between them, beside a small system.
func randomHost(r *rand.Rand) (host fstest.MapFS, dirs, names []string) {
	host = fstest.MapFS{
		"usr/bin/demo": {Mode: 0o755}, "usr/bin/tool": {Mode: 0o755}, "bin": {Mode: fs.ModeSymlink, Data: []byte("usr/bin")}, "sys/fs/cgroup": {Mode: fs.ModeDir},
		"etc/hosts": {Data: []byte("x")}, "etc/ssl/private/key": {}, "etc/ssl/certs/ca.crt": {}, "etc/shadow": {},
		"home/u/.ssh/id": {}, "etc/passwd": {Data: []byte("u:x:1000:1000::/home/u:/bin/sh\n")}, "var/run": {Mode: fs.ModeSymlink, Data: []byte("/run")},
		"run/user": {Mode: fs.ModeDir}, "tmp/x": {Mode: fs.ModeDir}, "var/tmp": {Mode: fs.ModeDir},
	}
	if r.Intn(4) == 0 {
		delete(host, "tmp/x")
		host["tmp"] = &fstest.MapFile{Mode: fs.ModeSymlink, Data: []byte("/w/tmp")}
		host["w/tmp/x"] = &fstest.MapFile{Mode: fs.ModeDir}
	}
	dirs = []string{"w", "home/u/p", "tmp/x", "srv/s", "usr/share", "run/user", "var/tmp"}
	for _, d := range dirs {
		if host[d] == nil && !strings.HasPrefix(d, "tmp") {
			host[d] = &fstest.MapFile{Mode: fs.ModeDir | 0o755}
		}
	}
	for range 3 + r.Intn(20) {
		d := dirs[r.Intn(len(dirs))] + "/" + string(rune('a'+r.Intn(4)))
		if v := hostfs.New(host); host[d] != nil || !real(v, "/"+path.Dir(d)) {
			continue
		}
		switch r.Intn(5) {
		case 0:
			host[d] = &fstest.MapFile{Data: []byte("x"), Mode: 0o755}
		case 1:
			to := dirs[r.Intn(len(dirs))]
			text := "/" + to
			if r.Intn(2) == 0 {
				text = strings.Repeat("../", strings.Count(d, "/")) + to
			}
			host[d] = &fstest.MapFile{Data: []byte(text), Mode: fs.ModeSymlink}
		default:
			host[d] = &fstest.MapFile{Mode: fs.ModeDir | 0o755}
			dirs = append(dirs, d)
		}
	}
	for name := range host {
		if !strings.HasPrefix(name, "etc/") {
			names = append(names, "/"+name)
		}
	}
	slices.Sort(names)
	return host, dirs, names
}

func real(v *hostfs.View, p string) bool {
	r, err := v.Walk(p)
	return err == nil && len(r.Links) == 0 && r.Info.IsDir()
}

// spell writes a path in another way that means the same to the kernel.
func spell(r *rand.Rand, v *hostfs.View, p string) string {
	switch w, err := v.Walk(p); r.Intn(6) {
	case 0:
		return strings.ReplaceAll(p, "/", "//")
	case 1:
		if err == nil && w.Info.IsDir() {
			return p + "/"
		}
	case 2:
		if err == nil && w.Info.IsDir() {
			return p + "/./"
		}
	case 3:
		if parent := path.Dir(p); real(v, parent) && parent != "/" {
			return parent + "/../" + path.Base(parent) + "/" + path.Base(p)
		}
	case 4:
		return "/" + strings.Repeat("../", 3) + p
	}
	return p
}

func TestRandomPlans(t *testing.T) {
	seed := time.Now().UnixNano()
	r := rand.New(rand.NewSource(seed))
	rounds := 600
	if testing.Short() {
		rounds = 200
	}
	made, probed := 0, 0
	for i := range rounds {
		host, dirs, names := randomHost(r)
		view := hostfs.New(host)
		s := start{name: fmt.Sprintf("seed %d, round %d", seed, i)}
		s.Facts = Facts{Host: host, Args: []string{"demo"}, UID: 1000 * r.Intn(2), GID: 1000, Exe: Exe{Path: "/usr/bin/demo", Intact: true}}
		s.Request = Request{Name: "demo"}
		dir, err := view.Walk("/" + dirs[r.Intn(len(dirs))])
		if err != nil || !dir.Info.IsDir() {
			continue
		}
		s.Dir = dir.Path
		s.Env = []string{"HOME=/home/u", "PATH=/usr/bin:/w/a:" + names[r.Intn(len(names))], "PWD=" + names[r.Intn(len(names))]}
		for range r.Intn(5) {
			g := Grant{Path: spell(r, view, names[r.Intn(len(names))]), Access: binds.ReadOnly, By: "--read"}
			if r.Intn(2) == 0 {
				g.Access, g.By = binds.ReadWrite, "--write"
			}
			s.Grants = append(s.Grants, g)
		}
		for range r.Intn(3) {
			s = s.hide(spell(r, view, names[r.Intn(len(names))]))
		}
		for range r.Intn(3) {
			s = s.protect(spell(r, view, names[r.Intn(len(names))]) + []string{"", "/new"}[r.Intn(2)])
		}
		p, err := Build(s.Facts, s.Request)
		if err != nil {
			if strings.Contains(err.Error(), "contradict") {
				t.Fatalf("%s: %v\n%+v", s.name, err, s.Grants)
			}
			continue // refused: a home, a credential root, a private place
		}
		made++
		sound(t, s, p)
		for _, g := range s.Grants {
			probed++
			checkGrant(t, s, p, view, g)
		}
		// The order of the grants does not matter, to no byte.
		first := document(p)
		r.Shuffle(len(s.Hide), func(i, j int) { s.Hide[i], s.Hide[j] = s.Hide[j], s.Hide[i] })
		r.Shuffle(len(s.Grants), func(i, j int) { s.Grants[i], s.Grants[j] = s.Grants[j], s.Grants[i] })
		if again := document(build(t, s)); !bytes.Equal(first, again) {
			t.Fatalf("%s: the order of the grants matters:\n%s", s.name, cmp.Diff(string(first), string(again)))
		}
	}
	if made < rounds/4 || probed < rounds/4 {
		t.Errorf("seed %d: only %d plans and %d grants of %d rounds", seed, made, probed, rounds)
	}
}

// checkGrant: at a grant's place, by the real and by the spelled name, is the strongest access that was asked for it,
// and below a grant the most specific one counts.
func checkGrant(t *testing.T, s start, p *Plan, view *hostfs.View, g Grant) {
	t.Helper()
	own, err := view.Walk(g.Path)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Hide)+len(s.Protect) > 0 {
		return // hiddenAndProtected looks at these
	}
	want, longest := binds.Kind(0), -1
	for _, o := range s.Grants {
		r, err := view.Walk(o.Path)
		if err != nil || !hostfs.Within(own.Path, r.Path) || len(r.Path) < longest {
			continue
		}
		if len(r.Path) > longest || o.Access == binds.ReadWrite {
			want = o.Access
		}
		longest = len(r.Path)
	}
	if got, ok := binds.Cover(p.Mounts, own.Path); !ok || got.Kind != want {
		t.Fatalf("%s: %s is %v, want %v\n%+v\n%s", s.name, own.Path, got.Kind, want, s.Grants, p.Explain())
	}
	b := builder{Facts: s.Facts, host: view, real: view, plan: *p}
	if !b.visible(g.Path) && !dotted(g.Path) {
		t.Fatalf("%s: %s is not visible by its own name\n%s", s.name, g.Path, p.Explain())
	}
}

// Case 18: a writable root, in it a read-only one, in that a writable one, in every order and spelling.
func TestOverlappingGrants(t *testing.T) {
	host := fstest.MapFS{"w/p/ro/rw/y": {}, "w/p/ro/f": {}, "w/p/x": {}, "usr/bin/demo": {Mode: 0o755}, "etc/passwd": {}, "w/l": {Mode: fs.ModeSymlink, Data: []byte("p/ro")}}
	spellings := [][3]string{
		{"/w/p", "/w/p/ro", "/w/p/ro/rw"},
		{"/w/p/", "/w//p/ro/", "/w/p///ro/rw//"},
		{"/w/p/ro/..", "/w/p/ro/rw/../../ro", "/w/../w/p/ro/rw/."},
		{"p", "./p/ro", "p/ro/../ro/rw"}, // relative to /w
		{"/w/p/.", "/w/l", "/w/l/rw"},
	}
	var want string
	for _, names := range spellings {
		grants := []Grant{
			{names[0], binds.ReadWrite, "--write"}, {names[1], binds.ReadOnly, "--read"}, {names[2], binds.ReadWrite, "--write"},
		}
		for _, order := range [][3]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
			s := start{name: fmt.Sprint(names, order)}
			s.Facts = Facts{Host: host, Args: []string{"demo"}, Dir: "/w", UID: 1000, GID: 1000, Exe: Exe{Path: "/usr/bin/demo", Intact: true}}
			s.Request = Request{Name: "demo", Grants: []Grant{grants[order[0]], grants[order[1]], grants[order[2]]}}
			p := build(t, s)
			sound(t, s, p)
			for path, kind := range map[string]binds.Kind{
				"/w/p/x": binds.ReadWrite, "/w/p/ro/f": binds.ReadOnly, "/w/p/ro/rw/y": binds.ReadWrite, "/w/p": binds.ReadWrite, "/w/other": binds.ReadOnly,
			} {
				if m, _ := binds.Cover(p.Mounts, path); m.Kind != kind {
					t.Errorf("%s: %s is %v, want %v", s.name, path, m.Kind, kind)
				}
			}
			var access []string
			for _, m := range p.Mounts {
				if hostfs.Within(m.Target, "/w/p") {
					access = append(access, m.Kind.String()+" "+m.Target)
				}
			}
			got := strings.Join(access, "\n")
			if want == "" {
				want = got
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-first +this):\n%s", s.name, diff)
			}
		}
	}
	// The same path both ways: writable wins, in both orders, also below another writable one.
	for _, parent := range [][]Grant{nil, {{"/w", binds.ReadWrite, "--write"}}} {
		for range 2 {
			s := start{}
			s.Facts = Facts{Host: host, Args: []string{"demo"}, Dir: "/", UID: 1000, GID: 1000, Exe: Exe{Path: "/usr/bin/demo", Intact: true}}
			s.Grants = append([]Grant{{"/w/p", binds.ReadOnly, "--read"}, {"/w/p", binds.ReadWrite, "--write"}}, parent...)
			slices.Reverse(s.Grants)
			if m, _ := binds.Cover(build(t, s).Mounts, "/w/p/x"); m.Kind != binds.ReadWrite {
				t.Errorf("%+v: %v", s.Grants, m.Kind)
			}
		}
	}
}

// What bwrap does for a mount grows with their number; 40 is what a start may cost without being asked for anything.
const mostMounts = 40

func mounts(p *Plan) (n int) {
	for _, m := range p.Mounts {
		if m.Kind.Mounts() {
			n++
		}
	}
	return n
}

func TestMountCount(t *testing.T) {
	for _, name := range fakehost.Names(t) {
		s := on(t, name, "/usr/bin/env", "/usr", "env")
		if _, err := hostfs.New(s.Host).Lstat("/usr/bin/env"); err != nil {
			s.Exe.Path = "/usr/bin/demo"
		}
		r, err := hostfs.New(s.Host).Walk(s.Exe.Path)
		if err != nil {
			t.Fatalf("host %s has no program", name)
		}
		s.Exe.Path = r.Path
		for _, uid := range []int{0, 1000} {
			s.UID = uid
			p := build(t, s)
			sound(t, s, p)
			if n := mounts(p); n > mostMounts {
				t.Errorf("host %s, uid %d: %d mounts, want at most %d\n%s", name, uid, n, mostMounts, p.Explain())
			} else {
				t.Logf("host %s, uid %d: %d mounts", name, uid, n)
			}
		}
	}
}

// Also on a host that has every name of the table, as a directory where it may be one and as a file of some size where
// it is one.
func TestMountCountFat(t *testing.T) {
	s := on(t, "debian12", "/usr/local/bin/demo", "/home/ada/src/demo", "demo")
	host := s.Host.(fstest.MapFS)
	directories := map[string]bool{"ld.so.conf.d": true, "static": true, "terminfo": true, "ssl/certs": true, "pki/ca-trust": true,
		"pki/tls/certs": true, "crypto-policies": true, "alternatives": true, "openmpi": true, "python3": true, "OpenCL": true, "vulkan": true, "fonts": true}
	for i, e := range etcNames {
		name := "etc/" + e.path
		for existing := range host {
			if existing == name || strings.HasPrefix(existing, name+"/") {
				delete(host, existing)
			}
		}
		if directories[e.path] || strings.HasPrefix(e.path, "java") {
			host[name+"/x"] = &fstest.MapFile{Data: make([]byte, 100000)}
			continue
		}
		host[name] = &fstest.MapFile{Data: make([]byte, 20000+10000*i)}
	}
	for _, uid := range []int{0, 1000} {
		s.UID = uid
		p := build(t, s)
		sound(t, s, p)
		if n := mounts(p); n > mostMounts {
			t.Errorf("uid %d: %d mounts, want at most %d\n%s", uid, n, mostMounts, p.Explain())
		} else {
			t.Logf("uid %d: %d mounts", uid, n)
		}
		// Copied or bound, all of it is there.
		for _, e := range etcNames {
			m, ok := binds.Cover(p.Mounts, "/etc/"+e.path)
			f := host["etc/"+e.path]
			if !ok || m.Target != "/etc/"+e.path || f != nil && m.Kind == binds.File && len(m.Data) != len(f.Data) {
				t.Errorf("uid %d: /etc/%s is %s with %d bytes", uid, e.path, at(p, "/etc/"+e.path), len(m.Data))
			}
		}
		if got := at(p, "/etc/resolv.conf"); got != "ro /etc/resolv.conf" {
			t.Errorf("resolv.conf may change while the program runs, and is %s", got)
		}
	}
}
