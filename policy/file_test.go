package policy

import (
	"testing"
)

func TestParseSize(t *testing.T) {
	for s, want := range map[string]int64{
		"1": 1, "512": 512, "1k": 1 << 10, "1K": 1 << 10, "64m": 64 << 20, "2G": 2 << 30, "3t": 3 << 40, "007": 7,
		"4194304T": 1 << 62, "4611686018427387904": 1 << 62,
	} {
		if got, ok := ParseSize(s); !ok || got != want {
			t.Errorf("ParseSize(%q) = %d, %v, want %d", s, got, ok, want)
		}
	}
	for _, s := range []string{
		"", "0", "0G", "-1", "+1", "-1G", "G", "1GB", "1GiB", "1.5G", "1 G", " 1G", "1G ", "0x10", "1_000", "1e9", "all", "4194305T",
		"9223372036854775807", "9223372036854775808", "99999999999999999999G", "١",
	} {
		if got, ok := ParseSize(s); ok || got != 0 {
			t.Errorf("ParseSize(%q) = %d, %v, want an error", s, got, ok)
		}
	}
}

func TestNearest(t *testing.T) {
	names := []string{"read_paths", "write_paths", "gpu", "npu", "mode"}
	for word, want := range map[string]string{
		"raed_paths": "read_paths", "READ_PATHS": "read_paths", "write_path": "write_paths", "mdoe": "mode", "gpu": "gpu",
		"xpu": "gpu", "nonsense": "", "": "", "readpaths": "read_paths", "\xff\xff\xff\xff\xff": "",
	} {
		if got := Nearest(word, names); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", word, got, want)
		}
	}
	if got := Nearest("gpu", nil); got != "" {
		t.Errorf("of no names %q", got)
	}
}
