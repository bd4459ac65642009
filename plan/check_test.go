package plan

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/selfcage/selfcage/internal/refusal"
	"github.com/selfcage/selfcage/policy"
)

func TestCheck(t *testing.T) {
	s := on(t, "debian12", "", "/home/ada/src/demo").read("/srv/data", "/home/ada/src/linked/out", "/home/ada/.cache/huggingface").write("out").device("/dev/fuse").
		hide(".env", "/srv/none", "/srv/data").protect("main.go", "new", "out/a", "out/new")
	file(s, "home/ada/src/demo/out/a", "x")
	s.Exe.Path, s.Exe.Intact = "", false
	s.Caches = []Cache{{"go", "--cache"}, {"pip", "--cache"}}
	file(s, "home/ada/.cache/huggingface/token", "x")
	got, err := Check(s.Facts, s.Request)
	if err != nil {
		t.Fatal(err)
	}
	want := []Resolved{
		{"hide", ".env", "/home/ada/src/demo/.env", "none", "--hide", ""},
		{"hide", "/srv/none", "", "none", "--hide", "there is no such path, so nothing is hidden; made later it would be visible"},
		{"hide", "/srv/data", "/srv/data", "none", "--hide", ""},
		{"readable", "/srv/data", "/srv/data", "none", "--read", "hidden"},
		{"readable", "/home/ada/src/linked/out", "/home/ada/src/demo/out", "read", "--read", ""},
		{"readable", "/home/ada/.cache/huggingface", "/home/ada/.cache/huggingface", "read", "--read", "without /home/ada/.cache/huggingface/token"},
		{"writable", "out", "/home/ada/src/demo/out", "write", "--write", ""},
		{"device", "/dev/fuse", "/dev/fuse", "device", "--device", ""},
		{"cache go", "/home/ada/.cache/go-build", "/home/ada/.cache/go-build", "write", "--cache", ""},
		{"cache pip", "/home/ada/.cache/pip", "/home/ada/.cache/pip", "write", "--cache", "made when the run starts"},
		{"protect", "main.go", "/home/ada/src/demo/main.go", "read", "--protect", notWritable},
		{"protect", "new", "", "read", "--protect", notThere},
		{"protect", "out/a", "/home/ada/src/demo/out/a", "read", "--protect", ""},
		{"protect", "out/new", "", "read", "--protect", standsFor},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// All faults at once, each as Build words it.
func TestCheckFaults(t *testing.T) {
	s := on(t, "debian12", "", "/home/ada/src/demo").read("/srv/none", "/home/ada/.ssh", "/srv/data", "/home/ada/.aws").write("/srv/data/set.bin", "/").
		hide("/srv/data", "/usr").protect("main.go/x").device("/etc/hosts").env("GITHUB_TOKEN=x")
	s.Caches = []Cache{{"nonsense", "--cache"}}
	s.Allow = []string{"GITHUB_TOKEN"}
	s.Confined = []policy.Confined{{Path: "/home/ada/.aws", Root: "/srv/www"}}
	_, err := Check(s.Facts, s.Request)
	var all Refusals
	if !errors.As(err, &all) {
		t.Fatalf("%v is a %T", err, err)
	}
	var texts []string
	for _, e := range all {
		if _, ok := e.(*refusal.Error); !ok {
			t.Errorf("%v is a %T", e, e)
		}
		texts = append(texts, e.Error())
	}
	for _, want := range []string{"/srv/none does not exist", "/home/ada/.ssh holds credentials", "/srv/data/set.bin, it lies below /srv/data, which --hide hides",
		"the system runtime /usr", "main.go: not a directory", "not a character device", "nonsense", "GITHUB_TOKEN", "leads out of /srv/www", "--write, /, the home"} {
		found := false
		for _, text := range texts {
			found = found || strings.Contains(text, want)
		}
		if !found {
			t.Errorf("nothing says %q in\n%s", want, strings.Join(texts, "\n"))
		}
	}
	// One entry is one fault: where it leads out of its directory it does not matter to what.
	if all := strings.Join(texts, "\n"); strings.Contains(all, "/home/ada/.aws holds") || !strings.Contains(all, "/home/ada/.aws, it leads out of /srv/www") {
		t.Errorf("more than one fault of /home/ada/.aws in\n%s", all)
	}
	if !strings.Contains(err.Error(), texts[0]+"; "+texts[1]) {
		t.Errorf("%v", err)
	}
	// Each is one that Build has too.
	for _, change := range []func(*start){
		func(s *start) { *s = s.read("relative") }, func(s *start) { *s = s.hide("relative") }, func(s *start) { *s = s.protect("relative") },
	} {
		s := on(t, "debian12", "", "")
		change(&s)
		s.Dir = ""
		if _, err := Check(s.Facts, s.Request); err == nil || !strings.Contains(err.Error(), "deleted") {
			t.Errorf("a relative path without a directory: %v", err)
		}
	}
}
