package probe

import (
	"bytes"
	"reflect"
	"testing"
)

func TestParseMounts(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     mountFacts
	}{
		{"not readable", "", mountFacts{}},
		{"a usual host: binfmt_misc masks nothing", `1 0 254:0 / / rw - ext4 /dev/vda rw
2 1 0:21 / /proc rw,relatime - proc proc rw
3 2 0:30 / /proc/sys/fs/binfmt_misc rw - autofs systemd-1 rw
`, mountFacts{known: true, proc: true}},
		{"case 2: docker", `1 0 0:50 / / rw - overlay overlay rw
2 1 0:51 / /proc rw - proc proc rw
3 2 0:51 /bus /proc/bus ro - proc proc rw
4 2 0:52 / /proc/a\040b ro - tmpfs tmpfs rw
`, mountFacts{known: true, overlay: true, proc: true, masks: []string{"/proc/bus", "/proc/a b"}}},
		{"a newer /proc covers the masks of the older", `1 0 0:50 / / rw - ext4 x rw
3 2 0:51 / /proc/bus ro - proc proc rw
2 1 0:51 / /proc ro - proc proc rw
`, mountFacts{known: true, proc: true, procReadOnly: true}},
		{"chroot", "2 1 254:0 /usr /usr rw - ext4 /dev/vda rw\n", mountFacts{known: true, chroot: true}},
		{"initramfs", "1 1 0:2 / / rw - rootfs rootfs rw\n", mountFacts{known: true, initramfs: true}},
	} {
		if got := parseMounts(c.in); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestOverflowUID(t *testing.T) {
	for _, c := range []struct {
		uidMap, overflow string
		uid              uint32
		ok               bool
	}{
		{"         0          0 4294967295\n", "65534\n", 0, false},
		{"      1001       1001          1\n", "65534\n", 65534, true},
		{"      1001       1001          1\n", "0\n", 0, false}, // root could then not be told from anybody
		{"      1001       1001          1\n", "", 0, false},    // /proc/sys is not there
		{"", "65534\n", 0, false},                               // no map: nothing is trusted for it
		{"0 100000 65536\n65536 7 1\n", "65534\n", 0, false},    // a container with a root of its own
		{"0 1001 1\n", "65534\n", 65534, true},                  // unshare -r
		{"0 1001 1\n1 100000 65536\n", "65534\n", 65534, true},  // podman unshare
		{"0 0 1\n", "65534\n", 0, false},
		{"garbage\n 5 x 1\n 1001 1001 1\n", "65534\n", 65534, true},
	} {
		uid, ok := overflowUID(c.uidMap, c.overflow)
		if ok != c.ok || ok && uid != c.uid {
			t.Errorf("overflowUID(%q, %q) = %d, %v", c.uidMap, c.overflow, uid, ok)
		}
	}
}

func TestContainer(t *testing.T) {
	for _, c := range []struct {
		h    containerHints
		want string
	}{
		{containerHints{}, ""},
		{containerHints{dockerenv: true}, ""}, // a virtual machine made from an image
		{containerHints{dockerenv: true, overlay: true}, "docker"},
		{containerHints{dockerenv: true, kubernetes: true, filtered: true}, "kubernetes"},
		{containerHints{cgroup: "12:cpu:/kubepods/burstable/x\n"}, "kubernetes"},
		{containerHints{containerenv: true, filtered: true}, "podman"},
		{containerHints{manager: "systemd-nspawn\n"}, "systemd-nspawn"},
		{containerHints{overlay: true}, "container"},
	} {
		if got := c.h.container(); got != c.want {
			t.Errorf("%+v: %q, want %q", c.h, got, c.want)
		}
	}
}

func TestParseInterpreter(t *testing.T) {
	for _, in := range []string{"", "#!/bin/sh\n", "\x7fELF\x02\x01", "\x7fELF\x01\x01" + string(make([]byte, 200))} {
		if got := parseInterpreter(bytes.NewReader([]byte(in))); got != "" {
			t.Errorf("parseInterpreter(%q) = %q", in, got)
		}
	}
}

// Whatever a host's files hold, reading them must not panic: doctor is for broken hosts.
func FuzzFacts(f *testing.F) {
	f.Add("1 0 0:50 / / rw - overlay overlay rw\n")
	f.Add("3 2 0:51 /bus /proc/a\\04 ro -  - proc\n")
	f.Add("    --perms OCTAL    Set\n")
	f.Fuzz(func(t *testing.T, s string) {
		parseMounts(s)
		mapped(s, 0)
		overflowUID(s, s)
		parseOptions(s)
		parseVersion(s)
		installHint(s)
		parseInterpreter(bytes.NewReader([]byte("\x7fELF\x02\x01" + s)))
		for _, b := range []byte(rawLine(s)) {
			if b < ' ' || b == 0x7f {
				t.Fatalf("control byte in %q", rawLine(s))
			}
		}
	})
}
