package plan

import (
	"os"
	"testing"

	"github.com/selfcage/selfcage/internal/hostfs"
)

func BenchmarkHost(b *testing.B) {
	b.ReportAllocs()
	env := os.Environ()
	dir, _ := os.Getwd()
	if d := os.Getenv("BENCH_DIR"); d != "" {
		dir = d
	}
	for b.Loop() {
		p, err := Build(Facts{Host: hostfs.OS{}, Args: []string{"selfcage"}, Env: env, Dir: dir, Exe: Exe{Path: "/usr/bin/env", Intact: true}, UID: os.Getuid(), GID: os.Getgid()}, Request{Runs: "python3", Name: "x"})
		if err != nil {
			b.Fatal(err)
		}
		_ = p
	}
}
