package policy

import (
	"strings"
	"testing"
)

func TestFromFlags(t *testing.T) {
	tests := []struct {
		name string
		args []string
		want Settings
		rest []string
	}{
		{"nothing", nil, Settings{}, nil},
		{"no flags", []string{"make", "--read", "y"}, Settings{}, []string{"make", "--read", "y"}},
		{"after -- nothing is ours", []string{"--read", "/x", "--", "cmd", "--read", "y", "--", "-h"},
			Settings{Readable: []Entry{{"/x", "--read"}}}, []string{"cmd", "--read", "y", "--", "-h"}},
		{"after the first word nothing is ours", []string{"--mode=bwrap", "cmd", "--read", "y", "--help"},
			Settings{Mode: Entry{"bwrap", "--mode"}}, []string{"cmd", "--read", "y", "--help"}},
		{"only --", []string{"--"}, Settings{}, []string{}},
		{"second -- is the command", []string{"--", "--"}, Settings{}, []string{"--"}},
		{"- and the empty word are no flags", []string{"-", "x"}, Settings{}, []string{"-", "x"}},
		{"empty word", []string{"", "x"}, Settings{}, []string{"", "x"}},
		{"both spellings", []string{"--write=/a", "--write", "/b", "c"},
			Settings{Writable: []Entry{{"/a", "--write"}, {"/b", "--write"}}}, []string{"c"}},
		{"literal: no splitting, no trimming", []string{"--write", "/a:b,c ", "--read=/x=y", "--device=/dev/a,b", "--cache", "a,b"},
			Settings{Writable: []Entry{{"/a:b,c ", "--write"}}, Readable: []Entry{{"/x=y", "--read"}},
				Device: []Entry{{"/dev/a,b", "--device"}}, Cache: []Entry{{"a,b", "--cache"}}}, []string{}},
		// Case 25: names with newlines, quotes and bytes that are not UTF-8.
		{"odd bytes", []string{"--write", "/w/a b\nc\xff\"", "--read=\xfe"},
			Settings{Writable: []Entry{{"/w/a b\nc\xff\"", "--write"}}, Readable: []Entry{{"\xfe", "--read"}}}, []string{}},
		{"folded", []string{"--mode", " BWRAP ", "--network=None"},
			Settings{Mode: Entry{"bwrap", "--mode"}, Network: Entry{"none", "--network"}}, []string{}},
		{"quiet takes no word", []string{"--quiet", "0"}, Settings{Quiet: Entry{"1", "--quiet"}}, []string{"0"}},
		{"quiet=0", []string{"--quiet=0"}, Settings{Quiet: Entry{"0", "--quiet"}}, []string{}},
		{"one dash in a value", []string{"--report", "-", "--read", "-x", "--write=--y"},
			Settings{Report: Entry{"-", "--report"}, Readable: []Entry{{"-x", "--read"}}, Writable: []Entry{{"--y", "--write"}}}, []string{}},
		{"hosts", []string{"--host", " *.Example.ORG ", "--host=[::1]:443"},
			Settings{Hosts: []Entry{{"*.example.org", "--host"}, {"[::1]:443", "--host"}}}, []string{}},
		{"rest", []string{"--gpu=all", "--npu=all", "--cache=go", "--env=A", "--secret=B", "--limit=pids=3", "--policy=p", "--bwrap=/b"},
			Settings{GPU: []Entry{{"all", "--gpu"}}, NPU: []Entry{{"all", "--npu"}}, Cache: []Entry{{"go", "--cache"}},
				Env: []Entry{{"A", "--env"}}, Secret: []Entry{{"B", "--secret"}}, Limit: []Entry{{"pids=3", "--limit"}},
				Policy: Entry{"p", "--policy"}, Bwrap: Entry{"/b", "--bwrap"}}, []string{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, rest, help, err := FromFlags(tt.args)
			if err != nil || help {
				t.Fatal(help, err)
			}
			equal(t, got, tt.want)
			equal(t, rest, tt.rest)
		})
	}
}

func TestFromFlagsHelp(t *testing.T) {
	for _, args := range [][]string{{"-h"}, {"--help"}, {"--mode", "bogus", "--help", "--bogus"}, {"--quiet", "-h", "--", "x"}} {
		if s, rest, help, err := FromFlags(args); !help || err != nil || rest != nil || s.Mode != (Entry{}) {
			t.Errorf("%q: %v %v %v %v", args, s, rest, help, err)
		}
	}
}

func TestFromFlagsRefuses(t *testing.T) {
	tests := []struct {
		args  []string
		parts []string
	}{
		// Seeds H4 and H6, for the flag.
		{[]string{"--mode", "bwarp"}, append([]string{"--mode", `"bwarp"`}, Modes()...)},
		{[]string{"--mode=Off!"}, []string{"--mode", `"Off!"`}},
		{[]string{"--wrte", "/x"}, []string{"unknown flag", "--wrte", "did you mean --write?"}},
		{[]string{"-read", "/x"}, []string{"-read", "did you mean --read?"}},
		{[]string{"--writable=/x"}, []string{"--writable", "did you mean --write?"}},
		{[]string{"--MODE=off"}, []string{"--MODE", "did you mean --mode?"}},
		{[]string{"--token=hunter2"}, []string{"--token"}},
		{[]string{"--share-net"}, []string{"--share-net", "--help"}},
		{[]string{"--x\n\xff"}, []string{`"--x\n\xff"`}},
		{[]string{"-x"}, []string{"-x"}},
		{[]string{"--=x"}, []string{"unknown flag"}},
		{[]string{"--read"}, []string{"--read", "needs a value"}},
		{[]string{"--read", "--"}, []string{"--read", "needs a value"}},
		{[]string{"--read", "--write", "/x"}, []string{"--read", "needs a value", "--read=PATH"}},
		{[]string{"--read="}, []string{"--read", "empty"}},
		{[]string{"--write", ""}, []string{"--write", "empty"}},
		{[]string{"--mode= "}, []string{"--mode", "empty"}},
		{[]string{"--quiet="}, []string{"--quiet", "empty"}},
		{[]string{"--quiet=yes"}, []string{"--quiet", `"yes"`, "1 and 0"}},
		{[]string{"--mode=bwrap", "--mode", "off"}, []string{"--mode", "twice"}},
		{[]string{"--quiet", "--quiet"}, []string{"--quiet", "twice"}},
		{[]string{"--env", "TOKEN=hunter2"}, []string{"--env", `"TOKEN"`, "NAME=VALUE", "set TOKEN in the environment and pass TOKEN"}},
		{[]string{"--secret==hunter2"}, []string{"--secret", "empty"}},
		{[]string{"--env=A\x00"}, []string{"--env", "NUL"}},
		{[]string{"--network", "host"}, []string{"--network", `"host"`, "shared, none, egress"}},
		{[]string{"--bwrap", "./bwrap"}, []string{"--bwrap", "absolute"}},
		{[]string{"--host", "*.com"}, []string{"wrong host", `--host "*.com"`, "it names all of a top-level domain", "two labels"}},
		{[]string{"--host=https://u:hunter2@h/"}, []string{"--host", "it is a URL"}},
		{[]string{"--host=h:hunter2"}, []string{`--host "h"`, "port"}},
		{[]string{"--tmp-size", "2GB"}, []string{"--tmp-size", `"2GB"`, "it is no size", "512M"}},
		{[]string{"--tmp-size=0"}, []string{"--tmp-size", `"0"`}},
		{[]string{"--define", "models/m"}, []string{"--define", `"models/m"`, "NAME=PATH"}},
		{[]string{"--define", "m=models"}, []string{"--define", `"m=models"`, "absolute"}},
		{[]string{"--define", "a b=/m"}, []string{"--define", "NAME=PATH"}},
		{[]string{"--manifest=yes"}, []string{"--manifest", `"yes"`, "1 and 0"}},
	}
	for _, tt := range tests {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
			s, rest, help, err := FromFlags(tt.args)
			refused(t, err, tt.parts...)
			equal(t, s, Settings{})
			if rest != nil || help || strings.Contains(err.Error(), "hunter2") {
				t.Error(rest, help, err)
			}
		})
	}
}

func TestHelpAndMarkdown(t *testing.T) {
	help, md := Help(), Markdown("X_SANDBOX_")
	if n := strings.Count(help, "\n"); n != len(table)-1 { // a note is a policy's to say
		t.Errorf("%d lines for %d settings", n, len(table)-1)
	}
	for i := range table {
		row := &table[i]
		if row.suffix == "" {
			continue
		}
		if !strings.Contains(help, "\n  --"+row.flag) && !strings.HasPrefix(help, "  --"+row.flag) {
			t.Errorf("no --%s in the help", row.flag)
		}
		if !strings.Contains(md, "| `X_SANDBOX_"+row.suffix+"` | `--"+row.flag) {
			t.Errorf("no %s in the table", row.suffix)
		}
		if (row.scalar == nil) == (row.list == nil) || (row.list == nil) != (row.sep == "") {
			t.Errorf("%s is neither scalar nor list", row.suffix)
		}
		if strings.ContainsAny(row.help, "|\n") {
			t.Errorf("%s breaks the table", row.suffix)
		}
	}
	for _, m := range Modes() {
		if !strings.Contains(help, m) {
			t.Errorf("no mode %s in the help", m)
		}
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(md, "\n"), "\n") {
		if strings.Count(line, "|") != 4 {
			t.Errorf("not three columns: %s", line)
		}
	}
}
