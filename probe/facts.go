package probe

import (
	"io"
	"strconv"
	"strings"

	"github.com/selfcage/selfcage/internal/hostfs"
	"github.com/selfcage/selfcage/internal/refusal"
)

// host is what is known of the host when a start has failed. The zero value knows nothing: each field may be missing,
// since /proc may be.
type host struct {
	max           map[string]string // user.max_*_namespaces by namespace: "user", "net", …
	usernsClone   string            // kernel.unprivileged_userns_clone, Debian's own
	appArmor      string            // kernel.apparmor_restrict_unprivileged_userns, Ubuntu's
	label         string            // /proc/self/attr/current: AppArmor profile or SELinux context
	filtered      bool              // a seccomp filter is on this process
	noNewPrivs    bool
	ambient       bool // ambient capabilities are set
	uid           int
	unmapped      bool   // this process's uid is not mapped in its user namespace
	container     string // "docker", "podman", …; "" is none that is known
	mounts        mountFacts
	setuid        bool // the bwrap in use is setuid
	kernel        string
	install       string // how the distribution installs bubblewrap
	sharedCgroups bool   // /sys/fs/cgroup is visible, so a plan shares the cgroup namespace
}

// mountFacts is what /proc/self/mountinfo says.
type mountFacts struct {
	known        bool
	chroot       bool     // "/" is no mount point: the kernel refuses user namespaces then
	initramfs    bool     // "/" is a rootfs, which pivot_root cannot leave
	overlay      bool     // "/" is an overlay, as in containers
	proc         bool     // a procfs is at /proc
	procReadOnly bool     // and it is read-only
	masks        []string // what is mounted over parts of it
}

// parseMounts reads mountinfo (proc_pid_mountinfo(5)).
func parseMounts(data string) mountFacts {
	var f mountFacts
	root := false
	for line := range strings.Lines(data) {
		before, after, ok := strings.Cut(line, " - ")
		b, a := strings.Fields(before), strings.Fields(after)
		if !ok || len(b) < 6 || len(a) < 1 {
			continue
		}
		f.known = true
		point, options, fstype := b[4], b[5], a[0]
		switch {
		case point == "/":
			root = true
			f.initramfs = fstype == "rootfs" || fstype == "ramfs"
			f.overlay = fstype == "overlay"
		case point == "/proc":
			f.proc = fstype == "proc"
			f.procReadOnly = hostfs.HasOption(options, "ro")
			f.masks = nil // it covers what was mounted there before
		case strings.HasPrefix(point, "/proc/") && !permanentlyEmpty(point):
			f.masks = append(f.masks, hostfs.Unescape(point))
		}
	}
	f.chroot = f.known && !root
	return f
}

// permanentlyEmpty says that a mount there hides nothing: the kernel makes these directories for it, and does not count
// it when it decides whether a fresh /proc would reveal something (mount_too_revealing in fs/namespace.c).
func permanentlyEmpty(p string) bool {
	return p == "/proc/sys/fs/binfmt_misc" || p == "/proc/fs/nfsd" || p == "/proc/openprom" || p == "/proc/xen"
}

// statusField is one line of /proc/self/status.
func statusField(data, name string) string {
	for line := range strings.Lines(data) {
		if v, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// zero says whether a mask of capabilities is known to be empty, or not known.
func zero(mask string) bool { return strings.Trim(mask, "0") == "" }

// mapped says whether uid has a meaning outside, by /proc/self/uid_map. An unknown map maps everything.
func mapped(uidMap string, uid uint32) bool {
	known := false
	for line := range strings.Lines(uidMap) {
		f := strings.Fields(line)
		if len(f) != 3 {
			continue
		}
		first, err1 := strconv.ParseUint(f[0], 10, 32)
		count, err2 := strconv.ParseUint(f[2], 10, 32)
		if err1 != nil || err2 != nil {
			continue
		}
		known = true
		if uint64(uid) >= first && uint64(uid)-first < count {
			return true
		}
	}
	return !known
}

// overflowUID is the uid that unmapped owners have, where the root that owns the system is one of them: uid 0 is not
// mapped, or it is the caller by another name, as after unshare -r. Where a whole range is mapped from 0 on, a container
// has a root of its own, and what belongs to none of its users is not to be trusted.
func overflowUID(uidMap, overflow string) (uint32, bool) {
	if mapped(uidMap, 0) && !callerIsRoot(uidMap) {
		return 0, false
	}
	n, err := strconv.ParseUint(strings.TrimSpace(overflow), 10, 32)
	return uint32(n), err == nil && n != 0
}

// callerIsRoot says whether uid 0 is one ordinary user's other name.
func callerIsRoot(uidMap string) bool {
	for _, line := range strings.Split(uidMap, "\n") {
		f := strings.Fields(line)
		if len(f) == 3 && f[0] == "0" && f[1] != "0" && f[2] == "1" {
			return true
		}
	}
	return false
}

// containerHints are the signs by which a container shows.
type containerHints struct {
	dockerenv, containerenv, kubernetes, flatpak bool
	manager                                      string // /run/systemd/container
	cgroup                                       string // /proc/self/cgroup
	overlay                                      bool   // "/" is one
	filtered                                     bool   // a seccomp filter is on this process
}

// container names what this process runs in, "" for nothing that is known. A file like /.dockerenv alone is no sign:
// a virtual machine that was made from an image has it too.
func (h containerHints) container() string {
	real := h.overlay || h.filtered
	switch {
	case real && h.kubernetes || strings.Contains(h.cgroup, "kubepods"):
		return "kubernetes"
	case real && h.containerenv || strings.Contains(h.cgroup, "libpod"):
		return "podman"
	case real && h.dockerenv || strings.Contains(h.cgroup, "/docker"):
		return "docker"
	case h.flatpak:
		return "flatpak"
	case h.manager != "":
		return refusal.Printable(strings.TrimSpace(h.manager))
	case strings.Contains(h.cgroup, "/lxc"):
		return "lxc"
	case h.overlay:
		return "container"
	}
	return ""
}

// parseOptions returns the options that `bwrap --help` lists.
func parseOptions(help string) map[string]bool {
	known := make(map[string]bool, 80)
	for line := range strings.Lines(help) {
		if f := strings.Fields(line); len(f) > 0 && strings.HasPrefix(f[0], "--") {
			known[f[0]] = true
		}
	}
	return known
}

// parseVersion reads `bwrap --version`: "bubblewrap 0.8.0".
func parseVersion(out string) string {
	line, _, _ := strings.Cut(out, "\n")
	f := strings.Fields(line)
	if len(f) < 2 || f[0] != "bubblewrap" {
		return ""
	}
	return refusal.Printable(f[1])
}

// maxLine bounds what is shown of bubblewrap's line, which may hold two paths.
const maxLine = 1024

// rawLine is the line of bwrap's standard error that says why it ended: it prints that one last.
func rawLine(stderr string) string {
	last := ""
	for line := range strings.Lines(stderr) {
		line = strings.TrimRight(line, "\r\n")
		if line != "" && (strings.HasPrefix(line, "bwrap: ") || !strings.HasPrefix(last, "bwrap: ")) {
			last = line
		}
	}
	if len(last) > maxLine {
		last = last[:maxLine] + "…"
	}
	return refusal.Printable(last)
}

// parseInterpreter reads PT_INTERP of a 64-bit little-endian ELF file (elf(5)).
func parseInterpreter(f io.ReaderAt) string {
	const interp, headerSize, maxHeaders, maxPath = 3, 56, 256, 4096
	h := make([]byte, 64)
	if _, err := f.ReadAt(h, 0); err != nil || string(h[:6]) != "\x7fELF\x02\x01" {
		return ""
	}
	offset, size, n := little(h[32:40]), little(h[54:56]), little(h[56:58])
	if size < headerSize || n > maxHeaders {
		return ""
	}
	for i := range n {
		ph := make([]byte, headerSize)
		if _, err := f.ReadAt(ph, int64(offset+i*size)); err != nil {
			return ""
		}
		if length := little(ph[32:40]); little(ph[:4]) == interp && length > 1 && length < maxPath {
			path := make([]byte, length-1) // without the NUL
			if _, err := f.ReadAt(path, int64(little(ph[8:16]))); err != nil {
				return ""
			}
			return string(path)
		}
	}
	return ""
}

func little(b []byte) (n uint64) {
	for i, c := range b {
		n |= uint64(c) << (8 * i)
	}
	return n
}
