package probe

import (
	"strconv"
	"strings"

	"github.com/selfcage/selfcage/binds"
	"github.com/selfcage/selfcage/internal/refusal"
	"github.com/selfcage/selfcage/plan"
)

// advice is why a step failed and what helps: the narrowest remedy first, one for the whole host second.
type advice struct{ cause, hint string }

// diagnose makes the refusal out of what was observed.
func diagnose(o observations) *refusal.Error {
	f := o.finding
	if f.step == "" {
		return o.ended()
	}
	object := f.step.title()
	switch {
	case f.step == stepMounts && o.mount != nil:
		object = plan.Quote(place(*o.mount))
	case f.step == stepDir:
		object += " " + plan.Quote(o.dir)
	case f.step == stepCommand:
		object += " " + plan.Quote(o.command)
	case f.step == stepInterpret:
		object += " " + plan.Quote(o.command)
	}
	a := o.advise()
	return refused(object, f.said()+a.cause+unconfined, a.hint)
}

// said is the head of the cause: what was refused, with bubblewrap's own line.
func (f finding) said() string {
	s := "refused"
	switch {
	case f.step == stepOptions:
		return ""
	case f.step == stepVersion || f.step == stepCommand || f.step == stepInterpret || f.step == stepDir || f.step == stepMounts:
		s = "failed"
	}
	if f.line != "" {
		s += " (" + f.line + ")"
	}
	return s + ": "
}

// place is the path that a mount is about.
func place(m binds.Mount) string {
	if m.Kind.Bind() {
		return m.Source
	}
	return m.Target
}

// ended is for a start of which every step works now.
func (o observations) ended() *refusal.Error {
	f := o.failure
	const hint = "run it without the sandbox mode to see whether an init function of the program or of one of its packages ends it"
	switch {
	case f.Signaled && !f.Program:
		return refused("bubblewrap", "killed by signal "+strconv.Itoa(f.Status)+", and every step of the set-up works now"+unconfined,
			"look into the kernel's log for the memory limit, or for who sent it; then start it again")
	case f.Program || f.Signaled || f.Status != 1: // bubblewrap's own failures are status 1, all of them
		return refused("", "the program ended in its own initialisation ("+howEnded(f)+"), inside the cage, before reexec.Init let it go on; nothing was run unconfined", hint)
	}
	// Status 1 is bubblewrap's and many a program's.
	return refused("", "every step of the set-up works now: either a passing fault, or the program ended in its own "+
		"initialisation with status 1, inside the cage; bubblewrap's line above, if there is one, tells; nothing was run unconfined", "start it again; if it stays, "+hint)
}

func howEnded(f Failure) string {
	switch {
	case f.Signaled:
		return "signal " + strconv.Itoa(f.Status)
	case f.Status > 128 && f.Status <= 128+64: // what bubblewrap makes of a signal
		return "status " + strconv.Itoa(f.Status) + ", perhaps signal " + strconv.Itoa(f.Status-128)
	}
	return "status " + strconv.Itoa(f.Status)
}

// rule knows one cause. The first one that applies is taken, so the certain ones come first.
type rule func(o *observations) (advice, bool)

func (o observations) advise() advice {
	for _, r := range []rule{
		tooOld, notRunnable, hung, killed, capabilities, limits, noKernelSupport, resources, debianSwitch, chrooted, unmapped,
		seccompOfContainer, appArmor, setuidBinary, mountDenied, maskedProc, loopback, initramfs, otherFilter, securityModule,
		filterRefused, workDir, notInCage, mountFailed,
	} {
		if a, ok := r(&o); ok {
			return a
		}
	}
	return advice{"the cause is not known" + o.host.context(), "look for a denial in the kernel's log (dmesg, journalctl -k, ausearch -m avc) at this moment"}
}

// context are facts that help where the cause is not certain.
func (h host) context() string {
	var fs []string
	add := func(ok bool, s string) {
		if ok {
			fs = append(fs, s)
		}
	}
	add(h.container != "", "in a container ("+h.container+")")
	add(h.filtered, "under a seccomp filter")
	add(h.noNewPrivs, "with no_new_privs")
	add(confined(h.label), "under the security label "+h.label)
	add(h.setuid, "bubblewrap is setuid")
	if len(fs) == 0 {
		return ""
	}
	return "; this process runs " + strings.Join(fs, ", ")
}

// confined says whether a label of an LSM restricts: AppArmor says "unconfined", SELinux unconfined_t.
func confined(label string) bool {
	return label != "" && !strings.HasPrefix(label, "unconfined") && !strings.Contains(label, ":unconfined_t:") && label != "kernel"
}

func (f finding) has(texts ...string) bool {
	for _, t := range texts {
		if strings.Contains(f.line, t) {
			return true
		}
	}
	return false
}

func (f finding) denied() bool {
	return f.has("Operation not permitted", "Permission denied", "No permissions to create new namespace")
}

// cloneDenied tells that the kernel refused the clone or unshare itself.
func (f finding) cloneDenied() bool {
	return f.has("No permissions to create new namespace", "Creating new namespace failed: Operation not permitted",
		"Creating new namespace failed: Permission denied", "unshare: Operation not permitted", "unshare user ns: Operation not permitted")
}

func tooOld(o *observations) (advice, bool) {
	missing := strings.Join(o.missing, ", ")
	if missing == "" {
		_, option, ok := strings.Cut(o.finding.line, "Unknown option ")
		if !ok {
			return advice{}, false
		}
		missing = option
	}
	version := "version " + o.version
	if o.version == "" {
		version = "the version"
	}
	return advice{"too old: " + version + " at " + plan.Quote(o.bwrap) + " lacks " + missing + "; bubblewrap " + leastVersion + " or newer is needed",
		"upgrade it (" + o.host.install + "), or name a newer one with --bwrap or the variable …_BWRAP"}, true
}

func notRunnable(o *observations) (advice, bool) {
	return advice{plan.Quote(o.bwrap) + " cannot be run", "reinstall it: " + o.host.install},
		o.finding.step == stepVersion && !o.finding.timedOut && o.finding.signal == 0
}

func hung(o *observations) (advice, bool) {
	return advice{"it did not answer in 10 s", "if a path lies on a network file system, look whether that answers"}, o.finding.timedOut
}

func killed(o *observations) (advice, bool) {
	a := advice{"bubblewrap was killed by signal " + strconv.Itoa(o.finding.signal), "look into the kernel's log for who sent it"}
	if o.finding.signal == sigsys {
		a.cause += ", SIGSYS: a seccomp filter around this process kills what makes namespaces"
		a.hint = "allow clone, unshare, mount, umount2 and pivot_root in that filter"
	}
	return a, o.finding.signal != 0
}

// sigsys is the same number on every architecture of ours.
const sigsys = 31

// capabilities: bubblewrap refuses to run with capabilities that it did not get by being setuid.
func capabilities(o *observations) (advice, bool) {
	if !o.finding.has("Unexpected capabilities") {
		return advice{}, false
	}
	if o.host.ambient {
		return advice{"this process has ambient capabilities, which bubblewrap inherits and does not accept",
			"start it without them: setpriv --ambient-caps=-all CMD, or without AmbientCapabilities= in the systemd unit"}, true
	}
	return advice{"the file " + plan.Quote(o.bwrap) + " has capabilities of its own, which bubblewrap does not accept",
		"take them away: sudo setcap -r " + plan.Quote(o.bwrap)}, true
}

// limits is ENOSPC: a limit of the kernel, switched to 0 by administrators who want no namespaces.
func limits(o *observations) (advice, bool) {
	if !o.finding.step.namespace() || !o.finding.has("(ENOSPC)", "_namespaces exceeded", "No space left on device") {
		return advice{}, false
	}
	kinds := append([]string{string(o.finding.step), "mnt"}, namespaces[:]...)
	for _, k := range kinds {
		if o.host.max[k] == "0" {
			key := "user.max_" + k + "_namespaces"
			return advice{"switched off: " + key + " is 0", o.host.whole("sudo sysctl -w "+key+"=10000",
				"let the container's own value be set: --sysctl "+key+"=10000, or on its host")}, true
		}
	}
	max := o.host.max[string(o.finding.step)]
	if max == "" {
		max = "not known"
	}
	return advice{"a limit is reached: namespaces are nested 32 deep, or as many exist as user.max_" + string(o.finding.step) +
		"_namespaces (" + max + ") here or in a container around allows",
		"end what holds namespaces (lsns -t " + string(o.finding.step) + " lists them), or raise that limit"}, true
}

// whole is a remedy for the whole host, which in a container has to be used outside.
func (h host) whole(onHost, inContainer string) string {
	if h.container == "" {
		return onHost + " (for the whole host)"
	}
	return inContainer
}

func noKernelSupport(o *observations) (advice, bool) {
	f := o.finding
	return advice{"this kernel has no such namespace", "use a kernel with CONFIG_USER_NS, CONFIG_PID_NS, CONFIG_NET_NS, CONFIG_IPC_NS, CONFIG_UTS_NS and CONFIG_CGROUPS"},
		f.step.namespace() && f.has("does not support user namespaces", "Creating new namespace failed: Invalid argument", "this kernel does not support")
}

func resources(o *observations) (advice, bool) {
	if !o.finding.has("Resource temporarily unavailable", "Cannot allocate memory") {
		return advice{}, false
	}
	return advice{"out of processes or memory", "raise the limit of processes (ulimit -u, the cgroup's pids.max, systemd's TasksMax=) or of memory"}, true
}

// passing says whether a step failed for want of what others may have used up, or gave no answer.
func (o *observations) passing() bool {
	f := o.finding
	if f.timedOut || f.signal != 0 && f.signal != sigsys {
		return true
	}
	line := strings.ToLower(f.line)
	for _, want := range []string{"resource temporarily unavailable", "cannot allocate memory", "too many open files", "text file busy",
		"disk quota exceeded", "no buffer space"} {
		if strings.Contains(line, want) {
			return true
		}
	}
	// ENOSPC is a limit: 0 is a switch, anything else can be reached.
	if a, ok := limits(o); ok {
		return !strings.HasPrefix(a.cause, "switched off")
	}
	return strings.Contains(line, "no space left on device")
}

func debianSwitch(o *observations) (advice, bool) {
	f := o.finding
	return advice{"switched off: kernel.unprivileged_userns_clone is 0",
			o.host.whole("sudo sysctl -w kernel.unprivileged_userns_clone=1", "set kernel.unprivileged_userns_clone=1 on the container's host")},
		o.host.usernsClone == "0" && f.step.namespace() && f.denied()
}

func chrooted(o *observations) (advice, bool) {
	return advice{"this process is in a chroot, and the kernel refuses user namespaces there: / is not a mount point",
			"make the root a mount point before chroot (mount --bind DIR DIR), or enter it with pivot_root (systemd-nspawn, unshare --root of a mount)"},
		o.host.mounts.chroot && o.finding.step.namespace() && o.finding.denied()
}

func unmapped(o *observations) (advice, bool) {
	return advice{"this process's uid " + strconv.Itoa(o.host.uid) + " is not mapped in the user namespace it is in",
			"start it in a user namespace that maps its uid and gid (unshare --map-current-user)"},
		o.host.unmapped && o.finding.step.namespace() && o.finding.denied()
}

// What the cage needs of a seccomp filter around it.
const (
	filterCalls = "clone, clone3, unshare, mount, umount2, pivot_root and setns"
	filterHint  = "start the container with a seccomp profile that allows " + filterCalls
)

// seccompOfContainer: docker's and podman's default filter answers clone and unshare of a user namespace with EPERM.
func seccompOfContainer(o *observations) (advice, bool) {
	if !o.host.filtered || o.host.container == "" || !o.finding.step.namespace() || !o.finding.cloneDenied() {
		return advice{}, false
	}
	hint := filterHint
	switch o.host.container {
	case "kubernetes":
		hint += " (securityContext.seccompProfile: type Localhost); wider: type Unconfined"
	case "docker", "podman":
		hint += " (--security-opt seccomp=FILE.json); wider: --security-opt seccomp=unconfined"
	}
	return advice{"the seccomp filter of the container (" + o.host.container + ") forbids new namespaces", hint}, true
}

// appArmor: Ubuntu 23.10 and later let an unprivileged user namespace be made, and then deny everything in it to a
// program without a profile: the map, the mounts, the network.
func appArmor(o *observations) (advice, bool) {
	if o.host.appArmor != "1" || !o.finding.step.namespace() || !o.finding.denied() {
		return advice{}, false
	}
	return advice{"namespace creation refused; probable cause: AppArmor (kernel.apparmor_restrict_unprivileged_userns is 1) lets only programs with a profile use user namespaces, and " +
		plan.Quote(o.bwrap) + " has none that allows it",
		profileHint(o.bwrap) + "; or, for every program of the host: sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"}, true
}

// profileHint is a profile for exactly this bwrap, as a command that can be pasted.
func profileHint(bwrap string) string {
	const file = "/etc/apparmor.d/selfcage-bwrap"
	for _, c := range bwrap {
		if !strings.ContainsRune("/._+-", c) && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return "write an AppArmor profile with the rule \"userns,\" for exactly " + plan.Quote(bwrap) + " to " + file + " and load it with apparmor_parser -r"
		}
	}
	return `give exactly this bwrap a profile: printf 'abi <abi/4.0>,\nprofile selfcage-bwrap ` + bwrap +
		` flags=(unconfined) {\n  userns,\n}\n' | sudo tee ` + file + ` && sudo apparmor_parser -r ` + file
}

func setuidBinary(o *observations) (advice, bool) {
	return advice{"this bubblewrap is setuid root, and a setuid one makes fewer things than the cage needs",
			"where the kernel allows user namespaces it needs no setuid: sudo chmod u-s " + plan.Quote(o.bwrap)},
		o.host.setuid && (o.finding.step.namespace() || o.finding.has("setuid"))
}

// mountDenied: a container's LSM profile forbids mounts even in a user namespace of one's own.
func mountDenied(o *observations) (advice, bool) {
	f, h := o.finding, o.host
	if !f.has("Failed to make / slave", "Failed to mount tmpfs", "Failed to make old root") || !f.denied() {
		return advice{}, false
	}
	hint := "start the container with permission to mount"
	switch {
	case strings.Contains(h.label, ":"):
		hint += " (podman, docker: --security-opt label=type:container_engine_t; wider: label=disable)"
	case h.container == "kubernetes":
		hint += " (securityContext.appArmorProfile: type Localhost, with a profile that allows mount, umount and pivot_root; wider: type Unconfined)"
	default:
		hint += " (--security-opt apparmor=PROFILE, with one that allows mount, umount and pivot_root; wider: apparmor=unconfined)"
	}
	cause := "namespaces can be made, but mounting in them is forbidden by what surrounds this process"
	if h.container != "" {
		cause = "namespaces can be made, but the container (" + h.container + ") forbids to mount in them"
	} else if !confined(h.label) {
		hint = "allow mounts in the container or service that this runs in; " + hint
	}
	if confined(h.label) {
		cause += ", under the security label " + h.label
	}
	return advice{cause, hint}, true
}

// maskedProc: the kernel lets a user namespace mount a procfs only where one is visible that nothing is mounted over.
func maskedProc(o *observations) (advice, bool) {
	f, m := o.finding, o.host.mounts
	if !f.has("Can't mount proc") || !f.denied() {
		return advice{}, false
	}
	cause := "the kernel allows a fresh /proc only where one without masks is visible"
	switch {
	case len(m.masks) > 0:
		cause = "the host's /proc is masked: something is mounted over " + some(m.masks) + ", and a fresh one would show what is under it"
	case m.known && !m.proc:
		cause += ", and there is none at /proc"
	case m.procReadOnly:
		cause += ", and the one at /proc is read-only"
	}
	unmask := "unmount those"
	switch o.host.container {
	case "docker":
		unmask = "docker run --security-opt systempaths=unconfined"
	case "podman":
		unmask = "podman run --security-opt unmask=ALL"
	case "kubernetes":
		unmask = "securityContext.procMount: Unmasked, with hostUsers: false"
	default:
		unmask += ", or, in a systemd unit, set ProtectKernelTunables=no and ProcSubset=all; start a container unmasked: docker --security-opt systempaths=unconfined, podman --security-opt unmask=ALL, Kubernetes procMount: Unmasked"
	}
	return advice{cause, unmask}, true
}

// some names the first few of a list.
func some(list []string) string {
	const few = 4
	var s []string
	for i, l := range list {
		if i == few {
			return strings.Join(s, ", ") + " and " + strconv.Itoa(len(list)-few) + " more"
		}
		s = append(s, plan.Quote(l))
	}
	return strings.Join(s, ", ")
}

// loopback: a network namespace could be made, but not set up.
func loopback(o *observations) (advice, bool) {
	if !o.finding.has("loopback:") {
		return advice{}, false
	}
	return advice{"the cage's own network cannot be set up: what surrounds this process denies it the loopback device" + o.host.context(),
		"allow netlink and CAP_NET_ADMIN in user namespaces in the container or LSM profile around; a run whose policy permits the host's network needs no network namespace (network shared)"}, true
}

func initramfs(o *observations) (advice, bool) {
	return advice{"/ is an initramfs, which pivot_root cannot leave", "switch to a root on a mount of its own first (switch_root, or mount a tmpfs and chroot into it)"},
		o.finding.has("pivot_root") && (o.host.mounts.initramfs || o.finding.has("Invalid argument"))
}

func otherFilter(o *observations) (advice, bool) {
	f := o.finding
	return advice{"a seccomp filter is on this process, and probably forbids it (systemd's RestrictNamespaces=, another sandbox)",
			"allow " + filterCalls + " in that filter (systemd: RestrictNamespaces=no in the unit)"},
		o.host.filtered && f.step.namespace() && (f.denied() || f.has("Function not implemented"))
}

func securityModule(o *observations) (advice, bool) {
	return advice{"probably forbidden by a security module: this process has the label " + o.host.label,
			"allow user namespaces for this label; the kernel's log or the audit log names the rule (ausearch -m avc, dmesg)"},
		confined(o.host.label) && o.finding.step.namespace() && o.finding.denied()
}

func filterRefused(o *observations) (advice, bool) {
	return advice{"the kernel does not take the filter", "use a kernel with CONFIG_SECCOMP_FILTER"}, o.finding.step == stepSeccomp
}

func workDir(o *observations) (advice, bool) {
	return advice{"the working directory cannot be entered inside", "start it in a directory that this user may enter, or grant " + plan.Quote(o.dir) + " with --read"},
		o.finding.step == stepDir
}

func notInCage(o *observations) (advice, bool) {
	f := o.finding
	switch {
	case f.step != stepCommand && f.step != stepInterpret:
		return advice{}, false
	case f.step == stepInterpret:
		return advice{"the command's ELF interpreter " + plan.Quote(o.interp) + " is not in the cage", "grant the directory that holds it and its libraries with --read"}, true
	case f.has("Permission denied"):
		return advice{"it may not be executed inside: no permission, or its file system is mounted noexec", "make it executable (chmod +x), or put it on a file system without noexec"}, true
	}
	return advice{"it is not in the cage", "grant the directory that holds it with --read"}, true
}

// mountFailed is for one mount of the plan; the causes of a fresh /proc have been looked at before.
func mountFailed(o *observations) (advice, bool) {
	if o.finding.step != stepMounts || o.mount == nil {
		return advice{}, false
	}
	m, f := *o.mount, o.finding
	by := m.Reason.By
	if by == "" {
		by = "the plan"
	}
	asked := ", asked for by " + by + ","
	switch source := f.has("Can't find source path"); {
	case source && f.has("Permission denied"):
		return advice{"the path" + asked + " cannot be reached as uid " + strconv.Itoa(o.host.uid) + rootless(o.host.uid),
			"make each directory on the way searchable for this user, or take it out of " + by}, true
	case source && f.has("No such file"):
		return advice{"the path" + asked + " is not there any more", "create it, or take it out of " + by}, true
	case source:
		return advice{"the path" + asked + " cannot be looked at", "look whether its file system answers, or take it out of " + by}, true
	case f.has("Can't mkdir", "Can't create file", "Can't make symlink", "Can't create symlink", "Can't ensure"):
		return advice{"the mount point " + plan.Quote(m.Target) + asked + " cannot be made: what holds it is read-only inside, or no directory",
			"create " + plan.Quote(m.Target) + " on the host first, or take it out of " + by}, true
	}
	return advice{"the " + m.Kind.String() + " mount at " + plan.Quote(m.Target) + asked + " cannot be made" + o.host.context(), "take it out of " + by + " where that is a grant"}, true
}

// rootless explains what surprises uid 0.
func rootless(uid int) string {
	if uid != 0 {
		return ""
	}
	return " (in a user namespace of its own it may enter only what its own permissions allow)"
}
