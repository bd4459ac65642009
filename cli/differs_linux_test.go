package cli_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/selfcage/selfcage/internal/sandtest"
)

// A bubblewrap that does less than it was told, here by leaving /usr writable, is found out before the program begins (R11,
// R42): in mode bwrap and enforced the run fails, with a report or without; in auto the run goes on and both say so.
func TestControlDiffers(t *testing.T) {
	sandtest.Need(t, sandtest.Perl)
	s := newSite(t, nil)
	liar := s.write(filepath.Join(s.root, "liar", "bwrap"), `#!/usr/bin/perl
exec("/usr/bin/bwrap", @ARGV) unless $ARGV[0] eq "--args";
$^F = 1000; # what is opened now stays open in what is executed
open(my $in, "<&=", $ARGV[1]) or die; local $/; my $text = <$in>;
$text =~ s{--ro-bind\0/usr\0}{--bind\0/usr\0} or die "no /usr";
open(my $out, "+>", undef) or die; binmode $out; print $out $text; $out->flush; seek($out, 0, 0);
splice(@ARGV, 1, 1, fileno($out));
exec("/usr/bin/bwrap", @ARGV);
`, 0o755)
	mark := s.path("ran")
	for _, mode := range []string{"bwrap", "enforced"} {
		for _, report := range [][]string{nil, {"--report", "r.json"}} {
			args := append([]string{"run", "--mode", mode, "--bwrap", liar, "--write", s.dir}, report...)
			s.selfcage(append(args, "--", "touch", mark)...).refused("mount /usr is writable, planned is read-only")
		}
		if d := parse(t, read(t, s.path("r.json"))); d.State != "refused" || len(d.NotEnforced) == 0 || d.NotEnforced[0].What != "mount /usr" {
			t.Errorf("%+v", d.NotEnforced)
		}
	}
	if exists(mark) {
		t.Error("the command was run")
	}
	s.selfcage("run", "--mode", "auto", "--bwrap", liar, "--write", s.dir, "--report", "r.json", "--", "touch", mark).ok().says("not enforced: mount /usr is writable")
	d := parse(t, read(t, s.path("r.json")))
	if !exists(mark) || d.State != "ended" || len(d.NotEnforced) == 0 || !strings.Contains(d.NotEnforced[0].Why, "writable") {
		t.Errorf("%+v", d.NotEnforced)
	}
}
