package policy

import "testing"

// What a host program says in its Options goes through the same checks.
func TestValidate(t *testing.T) {
	in := Settings{
		Mode:     Entry{" BWRAP", "Options.Mode"},
		Quiet:    Entry{"", "Options.Quiet"},
		Writable: []Entry{{"", "Options.Writable"}, {"a,b:c", "Options.Writable"}},
		Env:      []Entry{{"", "Options.Env"}},
	}
	got, err := in.Validate()
	if err != nil {
		t.Fatal(err)
	}
	equal(t, got, Settings{Mode: Entry{"bwrap", "Options.Mode"}, Writable: []Entry{{"a,b:c", "Options.Writable"}}})
	equal(t, in.Mode.Value, " BWRAP")

	_, err = Settings{Mode: Entry{"none", "Options.Mode"}}.Validate()
	refused(t, err, "Options.Mode", `"none"`, "scrubbed_only")
}

func TestUnsupported(t *testing.T) {
	one := func(v string) []Entry { return []Entry{{v, "who"}} }
	for want, s := range map[string]Settings{
		"mode landlock needs what a later version brings, who":               {Mode: Entry{"landlock", "who"}},
		"network egress needs what a later version brings, who":              {Network: Entry{"egress", "who"}},
		"hosts a.b:443 needs what a later version brings, who":               {Hosts: one("a.b:443")},
		"gpu all needs what a later version brings, who":                     {GPU: one("all")},
		"npu all needs what a later version brings, who":                     {NPU: one("all")},
		"limit pids=1 needs what a later version brings, who":                {Limit: one("pids=1")},
		"device /dev/dri needs what a later version brings, policy p.toml:3": {Device: []Entry{{"/dev/dri", "policy p.toml:3"}}},
		"mode landlock needs what a later version brings, P_SANDBOX_MODE":    {Mode: Entry{"landlock", "P_SANDBOX_MODE"}, GPU: one("all")},
	} {
		err := s.Unsupported()
		refused(t, err, want)
		if err.Error() != want {
			t.Errorf("got %q, want %q", err, want)
		}
	}
	refused(t, Settings{Device: []Entry{{"/dev/a b", "policy p.toml:3"}}}.Unsupported(), `name it with --device "/dev/a b"`)
	for _, mode := range []string{"", "off", "bwrap", "auto", "enforced", "scrubbed_only", "disabled"} {
		s := Settings{Mode: Entry{mode, "x"}, Network: Entry{"none", "x"}, Bwrap: Entry{"/b", "x"}, Report: Entry{"-", "x"}, Quiet: Entry{"1", "x"},
			Readable: one("/r"), Writable: one("/w"), Device: one("/dev/fuse"), Env: one("A"), Secret: one("B"), Cache: one("go"),
			Policy: Entry{"p.toml", "x"}, TmpSize: Entry{"1G", "x"}, Note: Entry{"n", "x"}, Hide: one("/h"), Protect: one("/p"), Recipe: one("r"), Define: one("a=/b"),
			RequireApproved: Entry{"1", "x"}, Manifest: Entry{"1", "x"}}
		if err := s.Unsupported(); err != nil {
			t.Error(err)
		}
	}
}

func TestUnsetSecret(t *testing.T) {
	s := Settings{Secret: []Entry{{"A", "--secret"}, {"B\n", "--secret"}}}
	refused(t, s.UnsetSecret([]string{"A=x", "B"}), "--secret", `"B\n"`, "not set")
	if err := s.UnsetSecret([]string{"A=", "B\n=1"}); err != nil {
		t.Error(err)
	}
}

func TestShow(t *testing.T) {
	for in, want := range map[string]string{"": `""`, "--read": "--read", "a b": `"a b"`, "\xff": `"\xff"`, `a"`: `"a\""`, "é\u202e": `"é\u202e"`, "\x1b": `"\x1b"`} {
		if got := show(in); got != want {
			t.Errorf("show(%q) = %s, want %s", in, got, want)
		}
	}
}
