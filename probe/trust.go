package probe

import (
	"errors"
	"io/fs"
	"strconv"
	"strings"

	"github.com/selfcage/selfcage/internal/hostfs"
	"github.com/selfcage/selfcage/internal/refusal"
	"github.com/selfcage/selfcage/plan"
	"github.com/selfcage/selfcage/policy"
)

// The places where distributions put bubblewrap. PATH is never searched: whoever sets a variable would choose the
// program that makes the cage.
const (
	usual = "/usr/bin/bwrap"
	nixOS = "/run/current-system/sw/bin/bwrap"
)

// node is what trust needs to know of a file.
type node struct {
	mode fs.FileMode
	uid  uint32
}

// files is the part of a file system that trust looks at.
type files interface {
	lstat(p string) (node, error)
	readlink(p string) (string, error)
	executable(p string) bool // by this process
	writable(p string) bool   // by this process
}

// judge decides whether nobody but root and, for a path that was set explicitly, the caller can change what runs.
type judge struct {
	files
	caller   uint32
	explicit bool
	by       string                // who named the path; "" for the usual places
	overflow func() (uint32, bool) // the uid that stands for root where uid 0 is not mapped
	install  func() string         // how this distribution installs bubblewrap
}

// find returns the trusted bwrap.
func (j *judge) find(explicit policy.Entry) (string, error) {
	if explicit.Value != "" {
		j.explicit, j.by = true, explicit.By
		return j.resolve(explicit.Value)
	}
	for _, p := range []string{usual, nixOS} {
		if p == usual && j.plainly(p) {
			return p, nil
		}
		found, err := j.resolve(p)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		return found, err // never the next one: a bwrap that somebody tampered with must not go unnoticed
	}
	return "", refused("bubblewrap", "not installed: neither "+usual+" nor "+nixOS+" is there"+unconfined,
		j.install()+", or name a trusted one with --bwrap or the variable …_BWRAP")
}

// plainly says in two system calls that p is root's own in a directory of root's own. The directories above that one
// are not looked at: they hold the loader and libc as well, so who can rename in them is root already. They are looked
// at in every case that is not this plain one.
func (j *judge) plainly(p string) bool {
	f, err := j.lstat(p)
	if err != nil || f.uid != 0 || !f.mode.IsRegular() || f.mode.Perm()&0o022 != 0 || f.mode.Perm()&0o111 != 0o111 {
		return false
	}
	d, err := j.lstat(hostfs.Parent(p))
	return err == nil && d.uid == 0 && d.mode.IsDir() && d.mode.Perm()&0o022 == 0
}

// resolve follows p and judges the final file and each directory and link on the way. The path that it returns has no
// link left, so that none can be changed between this look and the start.
func (j *judge) resolve(p string) (string, error) {
	if !strings.HasPrefix(p, "/") {
		return "", j.refuse(p, "not an absolute path: what it names would depend on the working directory",
			"give the path from the root, such as "+usual)
	}
	at, links, rest := "/", 0, p
	n, err := j.lstat(at)
	if err != nil {
		return "", j.unseen(p, at, err)
	}
	for rest != "" {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		switch name {
		case "", ".":
			continue
		case "..":
			at = hostfs.Parent(at)
			if n, err = j.lstat(at); err != nil {
				return "", j.unseen(p, at, err)
			}
			continue
		}
		if !n.mode.IsDir() {
			return "", j.unseen(p, at, errNotDir)
		}
		next := hostfs.Join(at, name)
		e, err := j.lstat(next)
		if err != nil {
			return "", j.unseen(p, next, err)
		}
		if err := j.directory(p, at, n, e); err != nil {
			return "", err
		}
		if e.mode&fs.ModeSymlink == 0 {
			at, n = next, e
			continue
		}
		text, err := j.readlink(next)
		if links++; err == nil && links > 40 {
			err = hostfs.ErrLoop
		}
		if err != nil {
			return "", j.unseen(p, next, err)
		}
		if strings.HasPrefix(text, "/") {
			at = "/"
			if n, err = j.lstat(at); err != nil {
				return "", j.unseen(p, at, err)
			}
		}
		rest = text + "/" + rest
	}
	if err := j.file(p, at, n); err != nil {
		return "", err
	}
	return at, nil
}

// directory judges dir n, in which entry e was found. In a sticky directory (/tmp, /nix/store) others may write and
// still not rename or replace what is not theirs, so there the entry's owner decides.
func (j *judge) directory(p, dir string, n, e node) error {
	if !j.owner(n) {
		return j.refuse(p, "not trusted: its directory "+plan.Quote(dir)+" is owned by uid "+decimal(n.uid)+", who can replace it", j.remedy())
	}
	if n.mode.Perm()&0o022 == 0 {
		return nil
	}
	if n.mode&fs.ModeSticky != 0 && j.owner(e) {
		return nil
	}
	return j.refuse(p, "not trusted: its directory "+plan.Quote(dir)+" has mode "+octal(n.mode)+", so others can replace it",
		"chmod go-w "+plan.Quote(dir)+", or use one whose directories only root can write")
}

// file judges the file at the end of the walk.
func (j *judge) file(p, at string, n node) error {
	named := ""
	if at != p {
		named = " (it leads to " + plan.Quote(at) + ")"
	}
	switch perm := n.mode.Perm(); {
	case !n.mode.IsRegular():
		return j.refuse(p, "not a regular file but "+kind(n.mode)+named, "name the bwrap program itself")
	case !j.owner(n) || n.uid != 0 && n.uid != j.caller && j.writable(at):
		return j.refuse(p, "not trusted: owned by uid "+decimal(n.uid)+", mode "+octal(n.mode)+named, j.remedy())
	case perm&0o022 != 0:
		return j.refuse(p, "not trusted: owned by uid "+decimal(n.uid)+", mode "+octal(n.mode)+" lets others write it"+named, "chmod go-w "+plan.Quote(at))
	case perm&0o111 != 0o111 && !j.executable(at):
		return j.refuse(p, "not executable by this user: mode "+octal(n.mode)+named, "chmod +x "+plan.Quote(at)+", or install the distribution's bubblewrap")
	}
	return nil
}

// owner says whether n belongs to somebody who may decide what makes the cage. The overflow uid stands for everybody
// who is not mapped, root among them, so the file itself must besides not be writable by this process.
func (j *judge) owner(n node) bool {
	if n.uid == 0 || j.explicit && n.uid == j.caller {
		return true
	}
	over, ok := j.overflow()
	return ok && n.uid == over && n.uid != j.caller
}

func (j *judge) remedy() string {
	if j.explicit {
		return "use one that root or you (uid " + decimal(j.caller) + ") own and nobody else can write, in directories of the same kind"
	}
	return "reinstall it as root (" + j.install() + "), so that root owns it and nobody else can write it"
}

// unseen is an error of looking at the component at, on the way along p.
func (j *judge) unseen(p, at string, err error) error {
	text, hint := "cannot be looked at", "make it readable, or name another bwrap"
	switch {
	case errors.Is(err, fs.ErrNotExist):
		text, hint = "not there", j.install()+", or correct the path"
	case errors.Is(err, errNotDir):
		text, hint = "not a directory", "correct the path"
	case errors.Is(err, fs.ErrPermission):
		text = "may not be looked at by this user"
	case errors.Is(err, hostfs.ErrLoop):
		text, hint = "a link in a loop", "correct the path"
	}
	if at != p {
		text = plan.Quote(at) + " is " + text
	}
	e := j.refuse(p, text, hint)
	e.Err = err
	return e
}

func (j *judge) refuse(p, cause, hint string) *refusal.Error {
	object := plan.Quote(p)
	if j.by != "" {
		object = j.by + " " + object
	}
	return refused(object, cause+unconfined, hint)
}

func octal(m fs.FileMode) string {
	bits := uint32(m.Perm())
	for _, b := range []struct {
		set fs.FileMode
		bit uint32
	}{{fs.ModeSetuid, 0o4000}, {fs.ModeSetgid, 0o2000}, {fs.ModeSticky, 0o1000}} {
		if m&b.set != 0 {
			bits |= b.bit
		}
	}
	o := strconv.FormatUint(uint64(bits), 8)
	return strings.Repeat("0", max(0, 4-len(o))) + o
}

func decimal(uid uint32) string { return strconv.FormatUint(uint64(uid), 10) }

func kind(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a directory"
	case m&fs.ModeDevice != 0:
		return "a device"
	case m&fs.ModeNamedPipe != 0:
		return "a pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	}
	return "something else"
}

// installHint names the command of the distribution that /etc/os-release tells of.
func installHint(osRelease string) string {
	ids := osField(osRelease, "ID") + " " + osField(osRelease, "ID_LIKE")
	for id := range strings.FieldsSeq(ids) {
		switch id {
		case "debian", "ubuntu":
			return "apt-get install bubblewrap"
		case "fedora", "rhel", "centos":
			return "dnf install bubblewrap"
		case "alpine":
			return "apk add bubblewrap"
		case "arch":
			return "pacman -S bubblewrap"
		case "suse", "opensuse":
			return "zypper install bubblewrap"
		case "nixos":
			return "add pkgs.bubblewrap to environment.systemPackages"
		}
	}
	return "install the distribution's bubblewrap package"
}

// osField is one value of os-release(5).
func osField(data, name string) string {
	for line := range strings.Lines(data) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), name+"="); ok {
			return strings.Trim(v, `"'`)
		}
	}
	return ""
}
