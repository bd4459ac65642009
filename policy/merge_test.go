package policy

import "testing"

func TestMerge(t *testing.T) {
	flags := Settings{Mode: Entry{"off", "--mode"}, Writable: []Entry{{"/a", "--write"}, {"/b", "--write"}}}
	vars := Settings{Mode: Entry{"bwrap", "P_MODE"}, Network: Entry{"none", "P_NETWORK"}, Writable: []Entry{{"/c", "P_WRITABLE"}, {"/a", "P_WRITABLE"}}}
	opts := Settings{Network: Entry{"shared", "Options.Network"}, Quiet: Entry{"1", "Options.Quiet"}, Writable: []Entry{{"/c", "Options.Writable"}, {"/d", "Options.Writable"}},
		Env: []Entry{{"A", "Options.Env"}, {"A", "Options.Env"}}}
	got := Merge(flags, vars, Settings{}, opts)
	equal(t, got, Settings{
		Mode: Entry{"off", "--mode"}, Network: Entry{"none", "P_NETWORK"}, Quiet: Entry{"1", "Options.Quiet"},
		Writable: []Entry{{"/a", "--write"}, {"/b", "--write"}, {"/c", "P_WRITABLE"}, {"/d", "Options.Writable"}},
		Env:      []Entry{{"A", "Options.Env"}},
	})
	got.Writable[0].Value = "changed"
	equal(t, values(flags.Writable), []string{"/a", "/b"})
	equal(t, Merge(), Settings{})
	equal(t, Merge(opts, opts), Merge(opts))
}

func TestAbs(t *testing.T) {
	tests := []struct{ value, want string }{
		{"/a", "/a"}, {"a", "/w/d/a"}, {".", "/w/d"}, {"..", "/w"}, {"../../../..", "/"}, {"/a//b/./c/", "/a/b/c"}, {"/", "/"}, {"//", "/"},
		{"a\nb \xff", "/w/d/a\nb \xff"}, {"/\xfe/../é", "/é"}, {" ", "/w/d/ "}, {"~/x", "/w/d/~/x"}, {"a:b", "/w/d/a:b"}, {"...", "/w/d/..."},
	}
	for _, tt := range tests {
		if got := (Entry{Value: tt.value}).Abs("/w/d"); got != tt.want {
			t.Errorf("Abs(%q) = %q, want %q", tt.value, got, tt.want)
		}
	}
}

func TestAbsolute(t *testing.T) {
	in := Settings{
		Readable: []Entry{{"a", "--read"}, {"/w/b", "--read"}, {"./a", "--read"}},
		Writable: []Entry{{"b/", "--write"}, {"/w/b", "P_WRITABLE"}},
		Device:   []Entry{{"/dev//fuse", "--device"}},
		GPU:      []Entry{{"all", "--gpu"}},
		Report:   Entry{"-", "--report"}, Policy: Entry{"p.toml", "--policy"}, Bwrap: Entry{"/x/../bwrap", "--bwrap"},
	}
	got := in.Absolute("/w")
	equal(t, got, Settings{
		Readable: []Entry{{"/w/a", "--read"}},
		Writable: []Entry{{"/w/b", "--write"}},
		Device:   []Entry{{"/dev/fuse", "--device"}},
		GPU:      []Entry{{"all", "--gpu"}},
		Report:   Entry{"-", "--report"}, Policy: Entry{"/w/p.toml", "--policy"}, Bwrap: Entry{"/bwrap", "--bwrap"},
	})
	equal(t, in.Readable[0].Value, "a")
	equal(t, Settings{Report: Entry{"r", "x"}}.Absolute("/w").Report.Value, "/w/r")
	equal(t, got.Absolute("/elsewhere"), got)
}
