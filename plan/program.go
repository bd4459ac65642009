package plan

import (
	"io/fs"
	"strconv"
	"strings"

	"github.com/selfcage/selfcage/binds"
	"github.com/selfcage/selfcage/internal/hostfs"
	"github.com/selfcage/selfcage/internal/refusal"
)

// program makes the running executable visible, where it lies where that is possible, and decides by which name it
// is started again.
func (b *builder) program() error {
	exe := b.Exe
	if !exe.Intact {
		return b.programCopy()
	}
	why := binds.Reason{By: "program", Why: "the executable itself"}
	if !b.visible(exe.Path) {
		b.add(binds.Mount{Kind: binds.ReadOnly, Source: exe.Path, Target: exe.Path, Reason: why})
	}
	if fi, err := b.host.Lstat(exe.Path); err == nil {
		b.plan.Program, _ = identity(fi)
	}
	b.plan.Command = exe.Path
	if len(b.Args) > 0 {
		if name, ok := b.invokedAs(b.Args[0]); ok {
			b.plan.Command = name
		}
	}
	return nil
}

// programCopy is for an executable that was deleted or replaced since it started, or never had a path: the one that
// runs is copied into memory, never the file that is now in its place. /proc/self/fd/N of it cannot be bound.
func (b *builder) programCopy() error {
	exe := b.Exe
	if exe.Data == nil {
		return &refusal.Error{
			What: "cannot start the program again", Object: Quote(exe.Path),
			Cause: "the file was deleted or replaced since the program started, and the running one cannot be read",
			Hint:  "start it from a file that is still there",
		}
	}
	target := exe.Path
	// Never into a bind, which would write it to the host, nor where another file is now or a link has come between.
	if r, err := b.host.Walk(target); b.bound(target) || !strings.HasPrefix(target, "/") || err == nil || len(r.Links) > 0 {
		target = "/run/selfcage/program/" + exe.Path[strings.LastIndexByte(exe.Path, '/')+1:]
	}
	b.add(binds.Mount{Kind: binds.File, Target: target, Data: exe.Data, Perm: 0o555, Reason: binds.Reason{
		By: "program", Why: "a copy of " + strconv.Itoa(len(exe.Data)) + " bytes: the file was deleted or replaced since the program started"}})
	b.plan.Command = target
	return nil
}

// invokedAs says whether argv0, looked up as the shell would inside, is the executable. Programs that look at the
// name they were started by then behave as outside, and so does what looks at /proc/PID/cmdline.
func (b *builder) invokedAs(argv0 string) (string, bool) {
	if strings.Contains(argv0, "/") {
		if b.Dir == "" {
			return "", false
		}
		return argv0, !dotted(argv0) && b.sameFile(hostfs.Abs(argv0, b.Dir))
	}
	for _, dir := range strings.Split(b.getenv("PATH"), ":") {
		if b.Dir == "" {
			return "", false
		}
		p := hostfs.Abs(dir, b.Dir) + "/" + argv0 // an empty entry is the working directory
		r, err := b.host.Walk(p)
		if err != nil || !executable(r.Info) {
			continue
		}
		if b.sameFile(p) {
			return argv0, true
		}
		if b.visible(p) {
			return "", false // another program comes first inside
		}
	}
	return "", false
}

// runs makes the command visible that the program is there to execute. It is looked up as outside: were its file not
// there, the next one of that name in PATH would run, and nobody would know.
func (b *builder) runs() error {
	name := b.req.Runs
	if name == "" {
		return nil
	}
	candidates := []string{hostfs.Abs(name, b.Dir)}
	if !strings.Contains(name, "/") {
		candidates = candidates[:0]
		for _, dir := range strings.Split(b.getenv("PATH"), ":") {
			if !strings.HasPrefix(dir, "/") {
				if b.Dir == "" {
					continue
				}
				dir = hostfs.Abs(dir, b.Dir) // an empty entry is the working directory
			}
			candidates = append(candidates, strings.TrimRight(dir, "/")+"/"+name)
		}
	}
	for i, p := range candidates {
		r, err := b.host.Walk(p)
		if at, realErr := b.real.Walk(p); err != nil && realErr == nil && executable(at.Info) {
			return b.hiddenCommand(p, at)
		}
		if err != nil || !executable(r.Info) {
			continue
		}
		b.same(candidates[:i+1], r)
		if !b.visible(p) {
			why := binds.Reason{By: "command", Why: "what is run"}
			b.links(r.Links, binds.Reason{By: "command", Why: "a link on the way to what is run"})
			b.add(binds.Mount{Kind: binds.ReadOnly, Source: r.Path, Target: r.Path, Reason: why})
		}
		return nil
	}
	return nil // not found outside either: the one who executes it says so
}

// hiddenCommand is the refusal of a command that is hidden, or whose path leads through what is.
func (b *builder) hiddenCommand(p string, at hostfs.Resolved) error {
	e := &refusal.Error{What: "cannot hide what the run needs", Cause: "the command " + Quote(p) + " is in it or leads through it", Hint: "hide a narrower path"}
	if h := b.hiddenOn(at); h != nil {
		e.Object = h.by + " " + Quote(h.path)
	}
	return e
}

func executable(fi fs.FileInfo) bool { return fi.Mode().IsRegular() && fi.Mode().Perm()&0o111 != 0 }

// sameFile says whether p leads to the executable, and makes the links on the way visible if it does.
func (b *builder) sameFile(p string) bool {
	r, err := b.host.Walk(p)
	if err != nil || r.Path != b.Exe.Path {
		return false
	}
	_, whole := b.links(r.Links, binds.Reason{By: "program", Why: "a link on the way to the executable, by the name it was started by"})
	return whole
}

// searchPath makes the links on the way to those directories of PATH that are visible by another name: on NixOS
// /run/current-system/sw is a link into /nix/store, without which no command is found.
func (b *builder) searchPath() error {
	for _, dir := range strings.Split(b.getenv("PATH"), ":") {
		if !strings.HasPrefix(dir, "/") || dotted(dir) {
			continue
		}
		if r, err := b.host.Walk(dir); err == nil && b.bound(r.Path) && !b.visible(dir) {
			b.missingLinks(r.Links, binds.Reason{By: "PATH", Why: "a link on the way to " + Quote(dir)})
		}
	}
	return nil
}

func (b *builder) getenv(name string) string { return lookup(b.Env, name) }

func lookup(environ []string, name string) string {
	for _, e := range environ {
		if len(e) > len(name) && e[len(name)] == '=' && e[:len(name)] == name {
			return e[len(name)+1:]
		}
	}
	return ""
}

// descriptors are those above 2 that stay open: what an argument names, a make jobserver, a PMI socket.
func (b *builder) descriptors() {
	keep := func(n int, by, why string) {
		if n <= 2 {
			return
		}
		for _, f := range b.plan.FDs {
			if f.N == n {
				return
			}
		}
		b.plan.FDs = append(b.plan.FDs, FD{n, binds.Reason{By: by, Why: why}})
	}
	for i, a := range b.Args {
		if i == 0 {
			continue
		}
		for _, dir := range []string{"/dev/fd/", "/proc/self/fd/"} {
			for _, rest, ok := strings.Cut(a, dir); ok; _, rest, ok = strings.Cut(rest, dir) {
				// Not /dev/fd/N/..: what is meant there is a directory, and an open one leads out of the cage.
				if n, ok := leadingInt(rest); ok && !strings.HasPrefix(strings.TrimLeft(rest, "0123456789"), "/") {
					keep(n, "arguments", "argument "+strconv.Itoa(i)+" names it")
				}
			}
		}
	}
	for _, n := range jobserver(b.makeFlags()) {
		keep(n, "MAKEFLAGS", "make's jobserver: without it make runs one job at a time")
	}
	if n, ok := leadingInt(b.getenv("PMI_FD")); ok {
		keep(n, "PMI_FD", "without it each MPI rank believes it is alone")
	}
}

// leadingInt reads the decimal number that s begins with.
func leadingInt(s string) (int, bool) {
	end := 0
	for end < len(s) && s[end] >= '0' && s[end] <= '9' {
		end++
	}
	n, err := strconv.Atoi(s[:end])
	return n, err == nil
}

// jobserver returns the descriptors that MAKEFLAGS names: --jobserver-auth=R,W, or --jobserver-fds=R,W before make
// 4.2. The form fifo:PATH has none.
func jobserver(flags string) (fds []int) {
	for _, w := range strings.Fields(flags) {
		v, ok := strings.CutPrefix(w, "--jobserver-auth=")
		if !ok {
			v, ok = strings.CutPrefix(w, "--jobserver-fds=")
		}
		if !ok {
			continue
		}
		for _, s := range strings.Split(v, ",") {
			if n, err := strconv.Atoi(s); err == nil && n >= 0 {
				fds = append(fds, n)
			}
		}
	}
	return fds
}

// jobserverFifo returns the path of make's jobserver where that is a fifo (make 4.4 and newer).
func jobserverFifo(flags string) string {
	for _, w := range strings.Fields(flags) {
		if p, ok := strings.CutPrefix(w, "--jobserver-auth=fifo:"); ok {
			return p
		}
	}
	return ""
}
