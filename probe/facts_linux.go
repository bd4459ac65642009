package probe

import (
	"os"
	"strings"

	"github.com/selfcage/selfcage/internal/refusal"
)

// maxFact bounds what is read of one file.
const maxFact = 1 << 20

// readFile returns a small file's content, "" for one that cannot be read: that fact is then not known.
func readFile(p string) string {
	f, err := os.Open(p)
	if err != nil {
		return ""
	}
	defer f.Close()
	var b []byte
	for buf := make([]byte, 8192); len(b) < maxFact; {
		n, err := f.Read(buf)
		b = append(b, buf[:n]...)
		if err != nil {
			break
		}
	}
	return string(b)
}

func exists(p string) bool { _, err := os.Lstat(p); return err == nil }

// readHost collects what the texts are made of. Nothing here fails: an unknown fact stays empty.
func readHost(bwrap string) host {
	line := func(p string) string { return strings.TrimRight(strings.TrimSpace(readFile(p)), "\x00") }
	status := readFile("/proc/self/status")
	h := host{
		max:           make(map[string]string, 8),
		usernsClone:   line("/proc/sys/kernel/unprivileged_userns_clone"),
		appArmor:      line("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
		label:         refusal.Printable(line("/proc/self/attr/current")),
		filtered:      statusField(status, "Seccomp") == "2",
		noNewPrivs:    statusField(status, "NoNewPrivs") == "1",
		ambient:       !zero(statusField(status, "CapAmb")),
		uid:           os.Geteuid(),
		mounts:        parseMounts(readFile("/proc/self/mountinfo")),
		kernel:        refusal.Printable(line("/proc/sys/kernel/osrelease")),
		install:       install(),
		sharedCgroups: exists("/sys/fs/cgroup"),
	}
	for _, ns := range namespaces {
		h.max[ns] = line("/proc/sys/user/max_" + ns + "_namespaces")
	}
	h.max["mnt"] = line("/proc/sys/user/max_mnt_namespaces")
	h.unmapped = !mapped(readFile("/proc/self/uid_map"), uint32(h.uid))
	h.container = containerHints{
		dockerenv:    exists("/.dockerenv"),
		containerenv: exists("/run/.containerenv"),
		kubernetes:   exists("/var/run/secrets/kubernetes.io") || exists("/run/secrets/kubernetes.io"),
		flatpak:      exists("/.flatpak-info"),
		manager:      line("/run/systemd/container"),
		cgroup:       readFile("/proc/self/cgroup"),
		overlay:      h.mounts.overlay,
		filtered:     h.filtered,
	}.container()
	if fi, err := os.Stat(bwrap); err == nil {
		h.setuid = fi.Mode()&os.ModeSetuid != 0
	}
	return h
}
