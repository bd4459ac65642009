package elfhdr

import (
	"bytes"
	"debug/elf"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/selfcage/selfcage/toolchain/internal/elftest"
)

// What debug/elf says of the same file is the truth.
func compare(t *testing.T, p string) bool {
	t.Helper()
	f, err := os.Open(p)
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	want, err := elf.NewFile(f)
	if err != nil {
		return false
	}
	got, err := Read(f)
	if err != nil {
		t.Errorf("%s: %v", p, err)
		return true
	}
	interp := ""
	for _, s := range want.Progs {
		if s.Type == elf.PT_INTERP {
			b := make([]byte, s.Filesz)
			s.ReadAt(b, 0)
			interp = strings.TrimRight(string(b), "\x00")
		}
	}
	needed, _ := want.DynString(elf.DT_NEEDED)
	runpath, _ := want.DynString(elf.DT_RUNPATH)
	rpath, _ := want.DynString(elf.DT_RPATH)
	if got.Interp != interp || !slices.Equal(got.Needed, needed) ||
		strings.Join(got.RunPath, ":") != strings.Join(runpath, ":") || strings.Join(got.RPath, ":") != strings.Join(rpath, ":") ||
		got.Wide != (want.Class == elf.ELFCLASS64) {
		t.Errorf("%s: got %+v, want interp %q needed %q runpath %q rpath %q", p, got, interp, needed, runpath, rpath)
	}
	return true
}

func TestReadAsDebugELF(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if !compare(t, exe) {
		t.Skip("the test binary is no ELF file")
	}
	n := 0
	for _, pattern := range []string{"/usr/bin/[a-d]*", "/usr/lib/*-linux-gnu/lib[a-f]*.so*", "/usr/lib32/*.so*", "/root/.pyenv/versions/*/bin/python3.*"} {
		files, _ := filepath.Glob(pattern)
		for _, p := range files {
			if fi, err := os.Stat(p); err == nil && fi.Mode().IsRegular() && n < 400 && compare(t, p) {
				n++
			}
		}
	}
	t.Log(n, "files of this machine agree with debug/elf")
}

func TestReadFixtures(t *testing.T) {
	for _, wide := range []bool{false, true} {
		data := elftest.Build(wide, "/nix/store/x-glibc/lib/ld.so", []string{"libpython3.11.so.1.0", "libc.so.6"}, "$ORIGIN/../lib:/opt/l", "")
		got, err := Read(bytes.NewReader(data))
		if err != nil || got.Wide != wide || got.Interp != "/nix/store/x-glibc/lib/ld.so" ||
			!slices.Equal(got.Needed, []string{"libpython3.11.so.1.0", "libc.so.6"}) || !slices.Equal(got.RunPath, []string{"$ORIGIN/../lib", "/opt/l"}) {
			t.Errorf("wide %v: %+v, %v", wide, got, err)
		}
		f, err := elf.NewFile(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		if f.Class == elf.ELFCLASS64 != wide {
			t.Errorf("the fixture has class %v", f.Class)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(elftest.Build(true, "/lib64/ld.so", []string{"liba.so"}, "/x", ""))
	f.Add(elftest.Build(false, "/lib/ld.so", nil, "", "/y:$ORIGIN"))
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := Read(bytes.NewReader(data)) // never panics, never returns more than the file holds
		total := len(h.Interp)
		for _, s := range slices.Concat(h.Needed, h.RPath, h.RunPath) {
			if !bytes.Contains(data, []byte(s)) {
				t.Errorf("%q is not in the file", s)
			}
			total = max(total, len(s))
		}
		if total > len(data) || err != nil && total < 0 {
			t.Error("too long")
		}
	})
}
