package plan

import (
	"github.com/selfcage/selfcage/binds"
	"github.com/selfcage/selfcage/internal/hostfs"
)

// entry is one name of the system runtime with what breaks without it.
type entry struct{ path, why string }

// runtimeDirs are the roots of the system runtime. Each is a directory or, on a merged-usr host, a link.
var runtimeDirs = []entry{
	{"/usr", "programs and libraries"},
	{"/bin", "programs; #! lines name /bin/sh"},
	{"/sbin", "programs"},
	{"/lib", "libraries and the ELF interpreter"},
	{"/lib32", "32-bit libraries"},
	{"/lib64", "the ELF interpreter: without it nothing dynamic starts, with ENOENT for the program's own name"},
	{"/libx32", "x32 libraries"},
	{"/nix/store", "on NixOS every program, library and file of /etc is a path in it"},
	{"/gnu/store", "on Guix every program and library is a path in it"},
}

// etcNames is what of /etc is visible: an allowlist by name, never the whole, never shadow or ssl/private.
var etcNames = []entry{
	{"ld.so.cache", "libraries outside /usr/lib are found through it"},
	{"ld.so.conf", "where ldconfig looks"},
	{"ld.so.conf.d", "where ldconfig looks"},
	{"ld-musl-x86_64.path", "where musl looks for libraries"},
	{"ld-musl-aarch64.path", "where musl looks for libraries"},
	{"static", "on NixOS every other link in /etc goes through it"},
	{"nsswitch.conf", "how names of users and hosts are looked up"},
	{"hosts", "names of hosts"},
	{"host.conf", "order of host look-ups"},
	{"gai.conf", "order of addresses"},
	{"hostname", "the host's name, for programs that read the file"},
	{"os-release", "which distribution this is"},
	{"lsb-release", "which distribution this is"},
	{"debian_version", "which distribution this is"},
	{"machine-id", "D-Bus and licence checks fail without it"},
	{"localtime", "the time zone"},
	{"timezone", "the time zone's name"},
	{"locale.conf", "the locale"},
	{"default/locale", "the locale"},
	{"terminfo", "terminals that /usr does not know"},
	{"inputrc", "keys in readline programs"},
	{"shells", "which programs are login shells"},
	{"ssl/certs", "TLS: certificate authorities"},
	{"ssl/cert.pem", "TLS: certificate authorities"},
	{"ssl/openssl.cnf", "OpenSSL's configuration"},
	{"pki/ca-trust", "TLS: certificate authorities"},
	{"pki/tls/certs", "TLS: certificate authorities"},
	{"pki/tls/cert.pem", "TLS: certificate authorities"},
	{"pki/tls/openssl.cnf", "OpenSSL's configuration"},
	{"crypto-policies", "OpenSSL and GnuTLS read their policy from it"},
	{"ca-certificates.conf", "which certificate authorities are on"},
	{"alternatives", "cc, awk, java, editor are links through it: without it they are not found"},
	{"protocols", "names of protocols"},
	{"services", "names of ports"},
	{"mime.types", "types of files"},
	{"magic", "types of files"},
	{"gitconfig", "the host's git configuration"},
	{"manpath.config", "where man looks: without it man shows nothing"},
	{"man_db.conf", "where man looks, by its name on Fedora and Arch"},
	{"groff/man.local", "groff's site-tmac is a link to its directory: without it each man page warns"},
	{"groff/mdoc.local", "the same for pages of the BSDs"},
	{"ltrace.conf", "prototypes: without it ltrace prints other arguments"},
	{"gdb/gdbinit", "gdb's settings for all users"},
	{"vim/vimrc", "vim's settings for all users: without Debian's, vim obeys the modelines of files"},
	{"vim/vimrc.local", "what Debian's leaves to the administrator"},
	{"vim/vimrc.tiny", "Debian's for vi"},
	{"vimrc", "vim's settings for all users, on Fedora and Arch"},
	{"locale.alias", "other names of locales: /usr/share/locale has a link to it"},
	{"krb5.conf", "Kerberos realms"},
	{"openmpi", "Open MPI's parameters"},
	{"java-8-openjdk", "the JVM's configuration: any use of security classes fails without it"},
	{"java-11-openjdk", "the JVM's configuration"},
	{"java-17-openjdk", "the JVM's configuration"},
	{"java-21-openjdk", "the JVM's configuration"},
	{"java-25-openjdk", "the JVM's configuration"},
	{"java", "the JVM's configuration"},
	{"python3", "Debian's python configuration"},
	{"python3.9/sitecustomize.py", "python3.9's own sitecustomize.py is a link to it"},
	{"python3.10/sitecustomize.py", "python3.10's is a link to it"},
	{"python3.11/sitecustomize.py", "python3.11's is a link to it"},
	{"python3.12/sitecustomize.py", "python3.12's is a link to it"},
	{"python3.13/sitecustomize.py", "python3.13's is a link to it"},
	{"python3.14/sitecustomize.py", "python3.14's is a link to it"},
	{"perl/Net/libnet.cfg", "Perl's Net::Config has other hosts without it"},
	{"maven/m2.conf", "/usr/share/maven/bin/m2.conf is a link to it: without it mvn does not start"},
	{"maven/logging", "/usr/share/maven/conf/logging is a link to it"},
	{"OpenCL", "OpenCL finds its drivers through it: without it there are no devices and no message"},
	{"vulkan", "Vulkan finds its drivers through it"},
	{"fonts", "fontconfig"},
}

// resolvConf is apart: it is needed only where there is a network.
var resolvConf = entry{"resolv.conf", "host names are resolved by the servers it names"}

// procReadOnly is bound over the fresh /proc when the caller is uid 0: global root owns these files and needs no
// capability to write them, so the namespaces do not protect the host's kernel settings.
var procReadOnly = []string{"/proc/sys", "/proc/sysrq-trigger", "/proc/fs", "/proc/irq", "/proc/bus"}

const base = "base"

// smallSys is the part of /sys that runtimes read to know how much of the machine they may use.
var smallSys = []entry{
	{"/sys/devices/system/cpu", "how many processors there are, and their caches: hwloc and pocl abort without it"},
	{"/sys/devices/system/node", "which memory is near which processor"},
	{"/sys/fs/cgroup", "limits of memory and processors: Go and Java misread them without it"},
	{"/sys/kernel/mm/transparent_hugepage", "whether the JVM and allocators may use large pages"},
	{"/sys/kernel/mm/hugepages", "which large pages there are"},
}

// private are the places that every cage has for itself. tmpSize is that of /tmp in bytes, 0 for the kernel's default.
func private(tmpSize int64) []binds.Mount {
	return []binds.Mount{
		{Kind: binds.Proc, Target: "/proc", Reason: binds.Reason{By: base, Why: "the cage's own processes"}},
		{Kind: binds.Dev, Target: "/dev", Reason: binds.Reason{By: base, Why: "the standard device nodes"}},
		{Kind: binds.Tmpfs, Target: "/dev/shm", Perm: 0o1777, Reason: binds.Reason{By: base, Why: "shared memory: torch, MPI and multiprocessing need it large"}},
		{Kind: binds.RemountRO, Target: "/dev", Reason: binds.Reason{By: base, Why: "a result written to a file in /dev would vanish with status 0"}},
		{Kind: binds.Tmpfs, Target: Tmp, Perm: 0o1777, Size: tmpSize, Reason: binds.Reason{By: base, Why: "temporary files, which end with the cage"}},
		{Kind: binds.Dir, Target: "/etc", Perm: 0o755, Reason: binds.Reason{By: base, Why: "holds what follows; bwrap by itself would make it 0700"}},
		{Kind: binds.Dir, Target: "/var", Perm: 0o755, Reason: binds.Reason{By: base, Why: "holds what follows; bwrap by itself would make it 0700"}},
		{Kind: binds.Dir, Target: "/run", Perm: 0o755, Reason: binds.Reason{By: base, Why: "holds what follows; bwrap by itself would make it 0700"}},
		{Kind: binds.Dir, Target: "/run/selfcage", Perm: 0o755, Reason: binds.Reason{By: base, Why: "holds what follows; bwrap by itself would make it 0700"}},
		{Kind: binds.Tmpfs, Target: Home, Perm: 0o700, Reason: binds.Reason{By: base, Why: "HOME, which ends with the cage"}},
		{Kind: binds.Dir, Target: Home + "/.run", Perm: 0o700, Reason: binds.Reason{By: base, Why: "XDG_RUNTIME_DIR"}},
		{Kind: binds.RemountRO, Target: "/", Reason: binds.Reason{By: base, Why: "a result written beside a grant would vanish with status 0"}},
	}
}

// varNames are the other names of two private places. Where something below one of them is visible, a link cannot be
// there: /var/tmp is then a place of its own, and /var/run holds just that.
func varNames(shown []binds.Mount, tmpSize int64) (ms []binds.Mount) {
	for _, l := range []struct{ link, place string }{{"/var/tmp", Tmp}, {"/var/run", "/run"}} {
		free := true
		for _, m := range shown {
			if hostfs.Within(m.Target, l.link) || m.Target == "/var" && m.Kind != binds.Dir {
				free = false
			}
		}
		switch {
		case free:
			ms = append(ms, binds.Mount{Kind: binds.Symlink, Source: l.place, Target: l.link, Reason: binds.Reason{By: base, Why: "the other name of " + l.place}})
		case l.place == Tmp:
			ms = append(ms, binds.Mount{Kind: binds.Tmpfs, Target: l.link, Perm: 0o1777, Size: tmpSize, Reason: binds.Reason{By: base, Why: "temporary files, which end with the cage"}})
		}
	}
	return ms
}
