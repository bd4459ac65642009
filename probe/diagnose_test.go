package probe

import (
	"strings"
	"testing"

	"github.com/selfcage/selfcage/binds"
)

// ubuntu is the host of case 1: Ubuntu 24.04 without a profile for bwrap.
var ubuntu = host{appArmor: "1", label: "unconfined", install: "apt-get install bubblewrap", uid: 1000}

func masked(container string) host {
	return host{container: container, mounts: mountFacts{known: true, proc: true,
		masks: []string{"/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/sys", "/proc/timer_list"}}}
}

func TestDiagnose(t *testing.T) {
	grant := binds.Mount{Kind: binds.ReadOnly, Source: "/data", Target: "/data", Reason: binds.Reason{By: "--read"}}
	const (
		uidMap  = "bwrap: setting up uid map: Permission denied"
		noPerm  = "bwrap: No permissions to create new namespace, likely because the kernel does not allow non-privileged user namespaces."
		enospc  = "bwrap: Creating new namespace failed: nesting depth or /proc/sys/user/max_*_namespaces exceeded (ENOSPC)"
		slave   = "bwrap: Failed to make / slave: Permission denied"
		proc    = "bwrap: Can't mount proc on /newroot/proc: Operation not permitted"
		rtm     = "bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted"
		caps    = "bwrap: Unexpected capabilities but not setuid, old file caps config?"
		nothing = "refusing to run unconfined: nothing was run"
	)
	for _, c := range []struct {
		name string
		o    observations
		err  []string // in the first line, in this order
		hint []string // in the hint, in this order
	}{
		{"case 1: AppArmor refuses the map", observations{host: ubuntu, finding: finding{step: stepUser, line: uidMap}},
			[]string{"cannot make the cage", "user namespace", uidMap, "namespace creation refused", "AppArmor (kernel.apparmor_restrict_unprivileged_userns is 1)", "/usr/bin/bwrap", nothing},
			[]string{"profile selfcage-bwrap /usr/bin/bwrap flags=(unconfined)", "apparmor_parser -r", "for every program of the host", "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"}},
		{"case 1: a path that no shell or profile takes as it is", observations{bwrap: "/opt/a b/bwrap", host: ubuntu, finding: finding{step: stepUser, line: uidMap}},
			[]string{"AppArmor"}, []string{`for exactly "/opt/a b/bwrap"`}},
		{"case 1: it shows in the network first", observations{host: ubuntu, finding: finding{step: stepNet, line: rtm}},
			[]string{"network namespace", rtm, "AppArmor"}, []string{"profile selfcage-bwrap"}},
		{"case 2: masked /proc, docker", observations{host: masked("docker"), finding: finding{step: stepProc, line: proc}},
			[]string{"fresh /proc, refused", proc, "host's /proc is masked", "/proc/acpi, /proc/kcore, /proc/keys, /proc/sys and 1 more", nothing},
			[]string{"--security-opt systempaths=unconfined"}},
		{"case 2: podman", observations{host: masked("podman"), finding: finding{step: stepProc, line: proc}},
			[]string{"masked"}, []string{"unmask=ALL"}},
		{"case 2: kubernetes", observations{host: masked("kubernetes"), finding: finding{step: stepProc, line: proc}},
			[]string{"masked"}, []string{"procMount: Unmasked"}},
		{"case 2: no container that is known", observations{host: masked(""), finding: finding{step: stepProc, line: proc}},
			[]string{"masked"}, []string{"unmount those", "systempaths=unconfined", "procMount"}},
		{"no /proc at all", observations{host: host{mounts: mountFacts{known: true}}, finding: finding{step: stepProc, line: proc}},
			[]string{"there is none at /proc"}, nil},
		{"case 4: options that --help does not list", observations{version: "0.4.0", missing: []string{"--perms", "--size"}, host: ubuntu, finding: finding{step: stepOptions}},
			[]string{"bubblewrap's options", "too old: version 0.4.0 at /usr/bin/bwrap lacks --perms, --size; bubblewrap 0.8.0 or newer is needed", nothing},
			[]string{"apt-get install bubblewrap", "--bwrap"}},
		{"case 4: one that does not tell its options", observations{version: "0.4.0", mount: &grant, finding: finding{step: stepMounts, line: "bwrap: Unknown option --perms"}},
			[]string{"too old: version 0.4.0", "lacks --perms"}, nil},
		{"switched off by sysctl", observations{host: host{max: map[string]string{"user": "0"}}, finding: finding{step: stepUser, line: enospc}},
			[]string{enospc, "switched off: user.max_user_namespaces is 0"}, []string{"sudo sysctl -w user.max_user_namespaces", "whole host"}},
		{"switched off by sysctl, in a container", observations{host: host{container: "docker", max: map[string]string{"user": "0"}}, finding: finding{step: stepUser, line: enospc}},
			[]string{"switched off"}, []string{"--sysctl user.max_user_namespaces"}},
		{"only network namespaces switched off", observations{host: host{max: map[string]string{"user": "100", "net": "0"}}, finding: finding{step: stepNet, line: enospc}},
			[]string{"network namespace", "user.max_net_namespaces is 0"}, nil},
		{"a limit is reached", observations{host: host{max: map[string]string{"user": "100"}}, finding: finding{step: stepUser, line: enospc}},
			[]string{"a limit is reached", "user.max_user_namespaces (100)"}, []string{"lsns -t user"}},
		{"Debian's switch", observations{host: host{usernsClone: "0"}, finding: finding{step: stepUser, line: noPerm}},
			[]string{noPerm, "kernel.unprivileged_userns_clone is 0"}, []string{"sysctl -w kernel.unprivileged_userns_clone=1"}},
		{"seccomp filter of docker", observations{host: host{container: "docker", filtered: true}, finding: finding{step: stepUser, line: noPerm}},
			[]string{"the seccomp filter of the container (docker) forbids new namespaces"},
			[]string{"a seccomp profile that allows clone", "--security-opt seccomp=FILE.json", "wider: --security-opt seccomp=unconfined"}},
		{"seccomp filter of docker on Ubuntu: the filter is met first", observations{host: host{container: "docker", filtered: true, appArmor: "1"}, finding: finding{step: stepUser, line: noPerm}},
			[]string{"the seccomp filter of the container"}, nil},
		{"seccomp filter of systemd", observations{host: host{filtered: true}, finding: finding{step: stepUser, line: noPerm}},
			[]string{"a seccomp filter is on this process"}, []string{"RestrictNamespaces=no"}},
		{"a filter that kills", observations{finding: finding{step: stepUser, signal: sigsys}},
			[]string{"killed by signal 31, SIGSYS"}, []string{"allow clone"}},
		{"chroot", observations{host: host{mounts: mountFacts{known: true, chroot: true}}, finding: finding{step: stepUser, line: noPerm}},
			[]string{"in a chroot"}, []string{"mount --bind DIR DIR"}},
		{"uid that is not mapped", observations{host: host{unmapped: true, uid: 65534}, finding: finding{step: stepUser, line: noPerm}},
			[]string{"uid 65534 is not mapped"}, nil},
		{"SELinux", observations{host: host{label: "system_u:system_r:httpd_t:s0"}, finding: finding{step: stepUser, line: noPerm}},
			[]string{"label system_u:system_r:httpd_t:s0"}, []string{"ausearch"}},
		{"seed H15: docker's AppArmor profile forbids mounts", observations{host: host{container: "docker", label: "docker-default (enforce)"}, finding: finding{step: stepUser, line: slave}},
			[]string{slave, "the container (docker) forbids to mount", "docker-default"}, []string{"--security-opt apparmor=PROFILE", "wider: apparmor=unconfined"}},
		{"seed H15: podman's SELinux label", observations{host: host{container: "podman", label: "system_u:system_r:container_t:s0:c1,c2"}, finding: finding{step: stepUser, line: slave}},
			[]string{"forbids to mount"}, []string{"label=type:container_engine_t", "wider: label=disable"}},
		{"seed H15: nothing known", observations{finding: finding{step: stepUser, line: slave}},
			[]string{slave, "mounting in them is forbidden"}, []string{"allow mounts"}},
		{"loopback in a container", observations{host: host{container: "docker"}, finding: finding{step: stepNet, line: rtm}},
			[]string{rtm, "in a container (docker)"}, []string{"network shared"}},
		{"ambient capabilities", observations{host: host{ambient: true}, finding: finding{step: stepUser, line: caps}},
			[]string{caps, "ambient capabilities"}, []string{"setpriv --ambient-caps=-all"}},
		{"capabilities of the file", observations{finding: finding{step: stepUser, line: caps}},
			[]string{"capabilities of its own"}, []string{"setcap -r /usr/bin/bwrap"}},
		{"setuid bubblewrap", observations{host: host{setuid: true}, finding: finding{step: stepUser, line: "bwrap: setuid use of bubblewrap is not supported in this build"}},
			[]string{"setuid root"}, []string{"chmod u-s /usr/bin/bwrap"}},
		{"out of processes", observations{finding: finding{step: stepUser, line: "bwrap: Creating new namespace failed: Resource temporarily unavailable"}},
			[]string{"out of processes"}, []string{"ulimit -u"}},
		{"kernel without namespaces", observations{finding: finding{step: stepUser, line: "bwrap: Creating new namespace failed, likely because the kernel does not support user namespaces.  bwrap must be installed setuid on such systems."}},
			[]string{"no such namespace"}, []string{"CONFIG_USER_NS"}},
		{"initramfs", observations{host: host{mounts: mountFacts{known: true, initramfs: true}}, finding: finding{step: stepUser, line: "bwrap: pivot_root: Invalid argument"}},
			[]string{"initramfs"}, []string{"switch_root"}},
		{"not a program", observations{finding: finding{step: stepVersion, line: "fork/exec /usr/bin/bwrap: exec format error"}},
			[]string{"exec format error", "/usr/bin/bwrap cannot be run"}, nil},
		{"missing source", observations{mount: &grant, finding: finding{step: stepMounts, line: "bwrap: Can't find source path /data: No such file or directory"}},
			[]string{"cannot make the cage, /data, failed", "Can't find source path", "asked for by --read, is not there any more", nothing}, []string{"--read"}},
		{"source that the user may not reach", observations{mount: &grant, host: host{uid: 1000}, finding: finding{step: stepMounts, line: "bwrap: Can't find source path /data: Permission denied"}},
			[]string{"cannot be reached as uid 1000"}, []string{"searchable"}},
		{"uid 0 is surprised", observations{mount: &grant, finding: finding{step: stepMounts, line: "bwrap: Can't find source path /data: Permission denied"}},
			[]string{"uid 0 (in a user namespace of its own"}, nil},
		{"mount point", observations{mount: &grant, finding: finding{step: stepMounts, line: "bwrap: Can't mkdir /data: Read-only file system"}},
			[]string{"the mount point /data, asked for by --read, cannot be made"}, []string{"create /data on the host"}},
		{"a mount that fails otherwise", observations{mount: &grant, finding: finding{step: stepMounts, line: "bwrap: Can't bind mount /oldroot/data on /newroot/data: Invalid argument"}},
			[]string{"the ro mount at /data"}, nil},
		{"a mount that hangs", observations{mount: &grant, finding: finding{step: stepMounts, timedOut: true}},
			[]string{"/data", "did not answer in 10 s"}, []string{"network file system"}},
		{"kernel without seccomp", observations{finding: finding{step: stepSeccomp, line: "bwrap: prctl(PR_SET_SECCOMP): Invalid argument"}},
			[]string{"seccomp filter", "PR_SET_SECCOMP"}, []string{"CONFIG_SECCOMP_FILTER"}},
		{"working directory", observations{dir: "/x", finding: finding{step: stepDir, line: "bwrap: Can't chdir to /x: Permission denied"}},
			[]string{"working directory /x"}, []string{"grant /x"}},
		{"command on a noexec file system", observations{command: "/x/prog", finding: finding{step: stepCommand, line: "bwrap: execvp /x/prog: Permission denied"}},
			[]string{"command /x/prog", "noexec"}, nil},
		{"command that is not there", observations{command: "/x/prog", finding: finding{step: stepCommand, line: "bwrap: execvp /x/prog: No such file or directory"}},
			[]string{"it is not in the cage"}, nil},
		{"interpreter", observations{command: "/x/prog", interp: "/x/ld.so", finding: finding{step: stepInterpret, line: "bwrap: execvp /x/ld.so: No such file or directory"}},
			[]string{"/x/prog", "ELF interpreter /x/ld.so is not in the cage"}, nil},
		{"something new", observations{host: host{container: "lxc", noNewPrivs: true}, finding: finding{step: stepDev, line: "bwrap: gone fishing"}},
			[]string{"fresh /dev", "gone fishing", "the cause is not known; this process runs in a container (lxc), with no_new_privs", nothing}, []string{"dmesg"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.o.bwrap == "" {
				c.o.bwrap = "/usr/bin/bwrap"
			}
			e := diagnose(c.o)
			inOrder(t, e.Error(), c.err)
			inOrder(t, e.Hint, c.hint)
			if e.ExitStatus() != 125 || e.Hint == "" || !strings.HasSuffix(e.Error(), nothing) || strings.Contains(e.Error()+e.Hint, "\n") {
				t.Errorf("a refusal is one line that ends with %q, a hint of one line and status 125; got %d, %q, hint %q", nothing, e.ExitStatus(), e, e.Hint)
			}
		})
	}
}

func inOrder(t *testing.T, text string, want []string) {
	t.Helper()
	rest := text
	for _, w := range want {
		_, after, ok := strings.Cut(rest, w)
		if !ok {
			t.Fatalf("%q is not in its place in %q", w, text)
		}
		rest = after
	}
}

func TestEverythingWorksNow(t *testing.T) {
	for _, c := range []struct {
		f    Failure
		want string
	}{
		{Failure{Status: 3}, "the program ended in its own initialisation (status 3)"},
		{Failure{Status: 0}, "the program ended in its own initialisation (status 0)"},
		{Failure{Status: 139}, "status 139, perhaps signal 11"},
		{Failure{Status: 1, Program: true}, "the program ended in its own initialisation (status 1)"},
		{Failure{Status: 1}, "either a passing fault, or the program ended in its own initialisation with status 1"},
		{Failure{Status: 9, Signaled: true}, "bubblewrap, killed by signal 9"},
	} {
		e := diagnose(observations{failure: c.f})
		if !strings.Contains(e.Error(), c.want) || e.ExitStatus() != 125 || e.Hint == "" {
			t.Errorf("%+v: %d, %q, hint %q; want %q", c.f, e.ExitStatus(), e, e.Hint, c.want)
		}
	}
}

func TestRawLine(t *testing.T) {
	for in, want := range map[string]string{
		"":                             "",
		"bwrap: a\n":                   "bwrap: a",
		"warning\nbwrap: a\nrest of b": "bwrap: a",
		"bwrap: a\nbwrap: b\r\n":       "bwrap: b",
		"ld.so: no libcap\n":           "ld.so: no libcap",
		"bwrap: \x1b[2Jx":              `bwrap: \x1b[2Jx`,
	} {
		if got := rawLine(in); got != want {
			t.Errorf("rawLine(%q) = %q, want %q", in, got, want)
		}
	}
}
