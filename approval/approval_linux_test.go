package approval

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/selfcage/selfcage/internal/refusal"
	"github.com/selfcage/selfcage/policy"
)

func entries(by string, values ...string) (es []policy.Entry) {
	for _, v := range values {
		es = append(es, policy.Entry{Value: v, By: by})
	}
	return es
}

// some are settings that an approval is given for.
func some() policy.Settings {
	by := "policy p.toml:3"
	return policy.Settings{
		Mode:     policy.Entry{Value: "enforced", By: by},
		Network:  policy.Entry{Value: "none", By: by},
		Readable: entries(by, "/data", "/a b\xff"),
		Writable: entries(by, "/out"),
		Env:      entries(by, "HF_HOME"),
		Limit:    entries(by, "pids=10"),
		Confined: []policy.Confined{{Path: "/data", Root: "/d"}},
	}
}

// state makes a state directory and a policy file in it, and returns the file and where its approval lies.
func state(t *testing.T) (file, stored string) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state"))
	file = filepath.Join(dir, "p.toml")
	must(t, os.WriteFile(file, []byte("mode = 'enforced'\n"), 0o600))
	return file, filepath.Join(dir, "state", "selfcage", "approved", nameOf(file))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// refused fails the test unless err is a refusal with all parts in its line or its hint.
func refused(t *testing.T, err error, parts ...string) {
	t.Helper()
	var r *refusal.Error
	if !errors.As(err, &r) {
		t.Fatalf("no refusal: %v", err)
	}
	for _, p := range parts {
		if !strings.Contains(r.Error()+"\n"+r.Hint, p) {
			t.Errorf("%q is not in %q, hint %q", p, r, r.Hint)
		}
	}
}

// R38: what was approved passes, what is narrower passes, what is wider asks again, and is named.
func TestRequire(t *testing.T) {
	file, stored := state(t)
	refused(t, Require(file, some()), "the policy is not approved", "nobody has approved it", "selfcage policy approve "+file)
	digest, err := Store(file, some())
	must(t, err)
	if len(digest) != 64 || !strings.Contains(read1(t, stored), digest) {
		t.Errorf("digest %q", digest)
	}
	for name, tt := range map[string]struct {
		change func(*policy.Settings)
		names  []string // of what is wider; none: it passes
	}{
		"the same":             {func(s *policy.Settings) {}, nil},
		"from elsewhere":       {func(s *policy.Settings) { s.Readable = entries("--read", "/a b\xff", "/data") }, nil},
		"less to read":         {func(s *policy.Settings) { s.Readable = s.Readable[:1] }, nil},
		"deeper":               {func(s *policy.Settings) { s.Readable[0].Value = "/data/x" }, nil},
		"only readable":        {func(s *policy.Settings) { s.Readable, s.Writable = append(s.Readable, s.Writable...), nil }, nil},
		"hidden":               {func(s *policy.Settings) { s.Hide = entries("--hide", "/data/secret") }, nil},
		"no variable":          {func(s *policy.Settings) { s.Env = nil }, nil},
		"a lower limit":        {func(s *policy.Settings) { s.Limit[0].Value = "pids=9" }, nil},
		"another report":       {func(s *policy.Settings) { s.Report = policy.Entry{Value: "/r.json", By: "--report"} }, nil},
		"more to read":         {func(s *policy.Settings) { s.Readable = append(s.Readable, entries("--read", "/more")...) }, []string{"readable /more", "selfcage policy approve " + file + " [the same flags] -- CMD"}},
		"writable":             {func(s *policy.Settings) { s.Writable = append(s.Writable, entries("policy p.toml:9", "/data")...) }, []string{"writable /data", "p.toml:9"}},
		"above":                {func(s *policy.Settings) { s.Readable[0].Value = "/" }, []string{"readable /"}},
		"network":              {func(s *policy.Settings) { s.Network.Value = "shared" }, []string{"network shared"}},
		"a weaker mode":        {func(s *policy.Settings) { s.Mode.Value = "scrubbed_only" }, []string{"mode scrubbed_only"}},
		"a variable":           {func(s *policy.Settings) { s.Env = append(s.Env, entries("--env", "PYTHONPATH")...) }, []string{"env PYTHONPATH"}},
		"a secret":             {func(s *policy.Settings) { s.Secret = entries("--secret", "TOKEN") }, []string{"secret TOKEN"}},
		"a device":             {func(s *policy.Settings) { s.Device = entries("--device", "/dev/kfd") }, []string{"device /dev/kfd"}},
		"a cache":              {func(s *policy.Settings) { s.Cache = entries("--cache", "go") }, []string{"cache go"}},
		"a higher limit":       {func(s *policy.Settings) { s.Limit[0].Value = "pids=11" }, []string{"limit"}},
		"no limit":             {func(s *policy.Settings) { s.Limit = nil }, []string{"limit"}},
		"narrower, and a wide": {func(s *policy.Settings) { s.Readable = nil; s.GPU = entries("--gpu", "all") }, []string{"gpu all"}},
		"five": {func(s *policy.Settings) { s.Env = entries("policy p.toml:4", "HF_HOME", "A", "B", "C", "D", "E") },
			[]string{"env A", "env C", "and 2 more", "if that is wanted: selfcage policy approve " + file}},
	} {
		t.Run(name, func(t *testing.T) {
			s := some()
			tt.change(&s)
			err := Require(file, s)
			if tt.names == nil {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			refused(t, err, append(tt.names, "the run would get more than was approved", file)...)
		})
	}
}

func read1(t *testing.T, p string) string {
	t.Helper()
	data, err := os.ReadFile(p)
	must(t, err)
	return string(data)
}

// What is approved again replaces what was; the file is nobody else's, and nothing is left beside it.
func TestStore(t *testing.T) {
	file, stored := state(t)
	first, err := Store(file, some())
	must(t, err)
	s := some()
	s.Readable = entries("--read", "/a b\xff", "/data") // another order, said by others
	if again, err := Store(file, s); err != nil || again != first {
		t.Errorf("the digest of the same grants is %s, %v, was %s", again, err, first)
	}
	s.Writable = append(s.Writable, entries("--write", "/more")...)
	second, err := Store(file, s)
	if err != nil || second == first {
		t.Errorf("the digest of other grants is %s, %v, was %s", second, err, first)
	}
	must(t, Require(file, s))
	s.Writable = s.Writable[:1]
	if _, err := Store(file, s); err != nil {
		t.Fatal(err)
	}
	refused(t, Require(file, policy.Settings{Writable: entries("x", "/more"), Mode: s.Mode, Network: s.Network}), "/more")
	for p, want := range map[string]os.FileMode{stored: 0o600, filepath.Dir(stored): 0o700, filepath.Dir(filepath.Dir(stored)): 0o700} {
		if fi, err := os.Lstat(p); err != nil || fi.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want %v", p, fi.Mode(), err, want)
		}
	}
	list, _ := os.ReadDir(filepath.Dir(stored))
	if len(list) != 1 {
		t.Errorf("beside it lie %v", list)
	}
	if strings.Contains(read1(t, stored), "p.toml:3") {
		t.Error("it tells who said a grant, which is no part of one")
	}
}

// What was approved is what a path led to, not its name: a link that is exchanged afterwards asks again, and both ends are named.
func TestRequireLinks(t *testing.T) {
	for name, tt := range map[string]struct {
		grant, then func(*policy.Settings, string) // of the approved settings, and of the run's; nil: the same
		change      func(dir string) error
		says        []string // none: it passes
	}{
		"another target":         {writeOf("L"), nil, relink("L", "b"), []string{"writable D/L (--x) leads to D/b, and led to D/a when it was approved"}},
		"a target that holds it": {writeOf("L"), nil, relink("L", "."), []string{"leads to D, and led to D/a when"}},
		"a target in it":         {writeOf("L"), nil, relink("L", "a/sub"), nil},
		"the same":               {writeOf("L"), nil, relink("L", "../x/a"), nil},
		"a file for a link":      {writeOf("L"), nil, func(d string) error { return os.Remove(d + "/L") }, []string{"leads to D/L, and led to D/a when"}},
		"a link for a directory": {writeOf("a"), nil, func(d string) error {
			must(t, os.Rename(d+"/a", d+"/old"))
			return os.Symlink("b", d+"/a")
		}, []string{"writable D/a (--x) leads to D/b, and led to D/a when"}},
		"a link above": {writeOf("a/sub"), nil, func(d string) error {
			must(t, os.Rename(d+"/a", d+"/old"))
			return os.Symlink("b", d+"/a")
		}, []string{"D/a/sub (--x) leads to D/b/sub, and led to D/a/sub"}},
		"what was not there":       {writeOf("new"), nil, relink("new", "b"), []string{"D/new (--x) leads to D/b, and led to D/new"}},
		"made":                     {writeOf("new"), nil, func(d string) error { return os.Mkdir(d+"/new", 0o755) }, nil},
		"to read":                  {readOf("L"), nil, relink("L", "b"), []string{"readable D/L (--x) leads to D/b, and led to D/a"}},
		"to what else is granted":  {func(s *policy.Settings, d string) { writeOf("L")(s, d); writeOf("b")(s, d) }, nil, relink("L", "b"), nil},
		"to what else is readable": {func(s *policy.Settings, d string) { writeOf("L")(s, d); readOf("b")(s, d) }, nil, relink("L", "b"), []string{"writable D/L (--x) leads to D/b"}},
		"narrower":                 {writeOf("a"), writeOf("a/sub"), nothing, nil},
		"narrower, out of it":      {writeOf("a"), writeOf("a/in"), relink("a/in", "../b"), []string{"writable D/a/in (--x) leads to D/b, which is outside of D/a, where D/a led when it was approved"}},
		"narrower, by the link":    {writeOf("L"), writeOf("L/in"), relink("a/in", "../b"), []string{"D/L/in (--x) leads to D/b, which is outside of D/a, where D/L led when"}},
		"narrower, inside":         {writeOf("a"), writeOf("a/in"), relink("a/in", "sub"), nil},
		"narrower, only to read":   {writeOf("a"), readOf("a/in"), relink("a/in", "../b"), []string{"readable D/a/in (--x) leads to D/b"}},
		"a device":                 {func(s *policy.Settings, d string) { s.Device = entries("--x", d+"/L") }, nil, relink("L", "/dev/fuse"), []string{"device D/L (--x) leads to /dev/fuse"}},
	} {
		t.Run(name, func(t *testing.T) {
			file, _ := state(t)
			dir := t.TempDir() + "/x"
			must(t, os.MkdirAll(dir+"/a/sub", 0o755))
			must(t, os.MkdirAll(dir+"/b/sub", 0o755))
			must(t, os.Symlink("a", dir+"/L"))
			var s, now policy.Settings
			tt.grant(&s, dir)
			now = s
			if tt.then != nil {
				now = policy.Settings{}
				tt.then(&now, dir)
			}
			_, err := Store(file, s)
			must(t, err)
			must(t, Require(file, s))
			must(t, tt.change(dir))
			err = Require(file, now)
			if tt.says == nil {
				must(t, err)
				return
			}
			for i := range tt.says {
				tt.says[i] = strings.ReplaceAll(tt.says[i], "D", dir)
			}
			refused(t, err, append(tt.says, "the run would get more than was approved", "selfcage policy approve "+file+" [the same flags] -- CMD")...)
			_, err = Store(file, now) // who looks at it again may agree
			must(t, err)
			must(t, Require(file, now))
		})
	}
}

func writeOf(name string) func(*policy.Settings, string) {
	return func(s *policy.Settings, dir string) { s.Writable = append(s.Writable, entries("--x", dir+"/"+name)...) }
}

func readOf(name string) func(*policy.Settings, string) {
	return func(s *policy.Settings, dir string) { s.Readable = append(s.Readable, entries("--x", dir+"/"+name)...) }
}

func nothing(string) error { return nil }

// relink makes name a link to another place.
func relink(name, to string) func(string) error {
	return func(dir string) error {
		_ = os.Remove(dir + "/" + name)
		return os.Symlink(to, dir+"/"+name)
	}
}

// Seed R38: what lifts a protection, and what lets a link lead anywhere, is wider.
func TestRequireExactAndConfined(t *testing.T) {
	file, _ := state(t)
	s := some()
	s.Writable = entries("policy p.toml:3", "/out", "/out/.git/config")
	_, err := Store(file, s)
	must(t, err)
	must(t, Require(file, s))
	s.Writable[1].By = "--write"
	refused(t, Require(file, s), "added writable /out/.git/config (--write)")
	_, err = Store(file, s)
	must(t, err)
	must(t, Require(file, s))
	s.Confined = nil
	refused(t, Require(file, s), "widened confined /data (was /d; policy p.toml:3)")
}

// An approval can be taken back, also that of a file that is gone.
func TestRevoke(t *testing.T) {
	file, stored := state(t)
	refused(t, Revoke(file), "cannot revoke the approval", file, "nobody has approved it")
	for _, gone := range []bool{false, true} {
		_, err := Store(file, some())
		must(t, err)
		if gone {
			must(t, os.Remove(file))
		}
		must(t, Revoke(file))
		if _, err := os.Lstat(stored); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("it is still there: %v", err)
		}
		if !gone {
			refused(t, Require(file, some()), "nobody has approved it")
		}
		refused(t, Revoke(file), "nobody has approved it")
	}
	must(t, os.Chmod(filepath.Dir(stored), 0o770))
	refused(t, Revoke(file), "can be written by others")
}

// A link to the policy file is the same policy file.
func TestStoreByLink(t *testing.T) {
	file, _ := state(t)
	link := filepath.Join(t.TempDir(), "link.toml")
	must(t, os.Symlink(file, link))
	if _, err := Store(link, some()); err != nil {
		t.Fatal(err)
	}
	must(t, Require(file, some()))
	if _, err := Store(file+"x", some()); err == nil {
		t.Error("a file that is not there was approved")
	}
	refused(t, Require(file+"x", some()), "does not exist")
}

// R38: whoever can put something into the store could approve in the user's place.
func TestUntrustedStore(t *testing.T) {
	for name, tt := range map[string]struct {
		spoil func(t *testing.T, stored string)
		says  string
		store bool // storing again is refused, too
	}{
		"another value":  {func(t *testing.T, p string) { replace(t, p, `"/out"`, `"/"`) }, "changed by hand", false},
		"another name":   {func(t *testing.T, p string) { replace(t, p, `"what": "readable"`, `"what": "writable"`) }, "changed by hand", false},
		"no grants":      {func(t *testing.T, p string) { must(t, os.WriteFile(p, []byte(`{"version":2}`), 0o600)) }, "about another policy file", false},
		"cut off":        {func(t *testing.T, p string) { must(t, os.Truncate(p, 20)) }, "is no approval", false},
		"empty":          {func(t *testing.T, p string) { must(t, os.Truncate(p, 0)) }, "is no approval", false},
		"an earlier one": {func(t *testing.T, p string) { replace(t, p, `"version": 2`, `"version": 1`) }, "another version", false},
		"another place":  {func(t *testing.T, p string) { replace(t, p, `"value": "/out"`, `"value": "/out", "real": "/"`) }, "changed by hand", false},
		"not confined":   {func(t *testing.T, p string) { replace(t, p, `"real": "/d"`, `"real": "/"`) }, "changed by hand", false},
		"an exact grant": {func(t *testing.T, p string) { replace(t, p, `"value": "/out"`, `"value": "/out", "exact": true`) }, "changed by hand", false},
		"another file":   {func(t *testing.T, p string) { replace(t, p, `p.toml"`, `q.toml"`) }, "about another policy file", false},
		"more keys":      {func(t *testing.T, p string) { replace(t, p, `"version": 2`, `"version": 2, "all": true`) }, "is no approval", false},
		"writable":       {func(t *testing.T, p string) { must(t, os.Chmod(p, 0o622)) }, "can be written by others", false},
		"a link": {func(t *testing.T, p string) {
			must(t, os.Rename(p, p+".x"))
			must(t, os.Symlink(p+".x", p))
		}, "a link, or another kind of file", false},
		"a directory": {func(t *testing.T, p string) { must(t, os.Remove(p)); must(t, os.Mkdir(p, 0o700)) }, "another kind of file", true},
		"its directory is writable": {func(t *testing.T, p string) { must(t, os.Chmod(filepath.Dir(p), 0o770)) },
			"approved can be written by others", true},
		"ours is writable": {func(t *testing.T, p string) { must(t, os.Chmod(filepath.Dir(filepath.Dir(p)), 0o702)) },
			"selfcage can be written by others", true},
		"its directory is a link": {func(t *testing.T, p string) {
			d := filepath.Dir(p)
			must(t, os.Rename(d, d+".x"))
			must(t, os.Symlink(d+".x", d))
		}, "approved is not what selfcage made", true},
		"everybody's state": {func(t *testing.T, p string) { must(t, os.Chmod(filepath.Dir(filepath.Dir(filepath.Dir(p))), 0o777)) },
			"state can be written by everybody", true},
	} {
		t.Run(name, func(t *testing.T) {
			file, stored := state(t)
			if _, err := Store(file, some()); err != nil {
				t.Fatal(err)
			}
			tt.spoil(t, stored)
			refused(t, Require(file, some()), "the policy is not approved", tt.says)
			if _, err := Store(file, some()); (err != nil) != tt.store {
				t.Errorf("stored again: %v", err)
			} else if err == nil {
				must(t, Require(file, some()))
			}
		})
	}
}

// Root may own it, nobody else may.
func TestOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file away")
	}
	file, stored := state(t)
	_, err := Store(file, some())
	must(t, err)
	must(t, os.Chown(stored, 12345, 12345))
	refused(t, Require(file, some()), "belongs to somebody else")
}

func replace(t *testing.T, p, old, new string) {
	t.Helper()
	text := read1(t, p)
	if !strings.Contains(text, old) {
		t.Fatalf("no %s in %s", old, text)
	}
	must(t, os.WriteFile(p, []byte(strings.ReplaceAll(text, old, new)), 0o600))
}

// Every setting comes back as it was stored, the new ones too: one that was forgotten here would be approved as nothing.
func TestEverySetting(t *testing.T) {
	valid := map[string]string{
		"Mode": "bwrap", "Network": "none", "Bwrap": "/b", "Quiet": "1", "TmpSize": "5", "RequireApproved": "1", "Manifest": "0",
		"Limit": "pids=5", "Define": "a=/b",
	}
	var s policy.Settings
	v := reflect.ValueOf(&s).Elem()
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		e := policy.Entry{Value: valid[name], By: "x"}
		if e.Value == "" {
			e.Value = "/v\n\xfe\"" + name
		}
		switch f := v.Field(i).Addr().Interface().(type) {
		case *policy.Entry:
			*f = e
		case *[]policy.Entry:
			*f = []policy.Entry{e, {Value: e.Value + "2", By: "x"}}
		}
	}
	var got policy.Settings
	s.Each(func(name string, _ bool, es []policy.Entry) {
		for _, e := range es {
			if err := Said(&got, name, e); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
	if d := cmp.Diff(s, got); d != "" {
		t.Errorf("-said +rebuilt\n%s", d)
	}
	if Said(&got, "mode", policy.Entry{Value: "off"}) == nil || Said(&got, "nonsense", policy.Entry{Value: "x"}) == nil {
		t.Error("a second value of a scalar, or an unknown name, was taken")
	}
}

// A program that was started without an environment finds the store by the account.
func TestHome(t *testing.T) {
	const passwd = "root:x:0:0:root:/root:/bin/sh\na:x:1000:1000::relative:/bin/sh\nb:x:1001:1001::/home/b:/bin/sh\n"
	for uid, want := range map[string]string{"0": "/root", "1000": "", "1001": "/home/b", "7": ""} {
		if got := homeOf(passwd, uid); got != want {
			t.Errorf("%s: %q, want %q", uid, got, want)
		}
	}
	t.Setenv("XDG_STATE_HOME", "relative")
	t.Setenv("HOME", t.TempDir())
	dir, err := stateDir()
	if want := filepath.Join(os.Getenv("HOME"), ".local/state/selfcage/approved"); err != nil || dir != want {
		t.Errorf("%q, %v, want %q", dir, err, want)
	}
}

// R38: a run that can write the store could approve in its user's place. Such settings are neither approved nor do they pass.
func TestStoreWithinReach(t *testing.T) {
	file, stored := state(t)
	dir := filepath.Dir(filepath.Dir(stored))
	must(t, os.MkdirAll(filepath.Dir(dir), 0o700))
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(filepath.Dir(dir), link))
	for _, p := range []string{dir, stored, filepath.Dir(stored) + "/later", filepath.Dir(dir), "/", link} {
		s := some()
		s.Writable = append(s.Writable, entries("--write", p)...)
		_, err := Store(file, s)
		refused(t, err, "a run could write what was approved", p, "(--write)")
		refused(t, Require(file, s), "a run could write what was approved", p)
	}
	s := some()
	s.Readable, s.Writable = entries("--read", dir), entries("--write", dir+"x")
	if _, err := Store(file, s); err != nil {
		t.Error(err)
	}
	must(t, Require(file, s))
}
