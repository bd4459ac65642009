package start

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/selfcage/selfcage/binds"
	"github.com/selfcage/selfcage/internal/refusal"
	"github.com/selfcage/selfcage/plan"
)

// placeholder is a file or directory that this process holds on the host while the cage lasts, since something is
// mounted over it. Several runs can hold one; each has a shared lock on it, and the last removes it.
type placeholder struct {
	plan.Missing
	dir  int // its directory, O_PATH
	file *os.File
}

// holdAll makes what pl.Remove lists. What this user cannot make, the program inside cannot make either: its mount is left
// out. release takes all of it away again.
func holdAll(pl *plan.Plan) (release func(), err error) {
	var held []placeholder
	release = func() {
		for _, p := range held {
			p.release()
		}
	}
	for _, m := range pl.Remove {
		p, err := hold(m)
		switch {
		case errors.Is(err, unix.EACCES) && owns(path.Dir(m.Path)):
			release()
			return nil, &refusal.Error{What: "cannot protect " + m.Reason.By, Object: plan.Quote(m.Path), Err: err,
				Cause: "its directory cannot be written, which the run could change, since its owner is the same",
				Hint:  "make " + plan.Quote(path.Dir(m.Path)) + " writable for its owner, or do not grant it to be written"}
		case errors.Is(err, unix.EROFS), errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
			pl.Mounts = without(pl.Mounts, m.Path)
			pl.Notes = append(pl.Notes, plan.Quote(m.Path)+" is not protected: it does not exist, and this user cannot make anything there ("+err.Error()+")")
			continue
		case err != nil:
			release()
			return nil, &refusal.Error{What: "cannot protect " + m.Reason.By, Object: plan.Quote(m.Path), Cause: "what must be mounted over cannot be made: " + err.Error(),
				Hint: "start it again", Err: err}
		}
		held = append(held, p)
		var st unix.Stat_t
		if err := unix.Fstat(p.fd(), &st); err == nil {
			for i := range pl.Mounts {
				if pl.Mounts[i].Source == m.Path && pl.Mounts[i].Kind.Bind() {
					pl.Mounts[i].ID = binds.ID{Dev: st.Dev, Ino: st.Ino}
				}
			}
		}
	}
	return release, nil
}

// owns says whether the caller may change the mode of a directory.
func owns(dir string) bool {
	var st unix.Stat_t
	return unix.Lstat(dir, &st) == nil && int(st.Uid) == os.Geteuid()
}

func without(ms []binds.Mount, source string) []binds.Mount {
	kept := make([]binds.Mount, 0, len(ms))
	for _, m := range ms {
		if m.Source != source || !m.Kind.Bind() {
			kept = append(kept, m)
		}
	}
	return kept
}

// errTaken: there is something by that name, and it is no placeholder. Whoever put it there since the plan was made may
// have put a link.
var errTaken = errors.New("something else was put there while the cage was made")

// hold makes a placeholder, or joins those who hold it already.
func hold(m plan.Missing) (p placeholder, err error) {
	p = placeholder{Missing: m, dir: -1}
	p.dir, err = openDir(path.Dir(m.Path))
	if err != nil {
		return p, err
	}
	for range 100 {
		if err = p.open(); errors.Is(err, unix.ENOENT) {
			err = p.make()
		}
		if err == nil || !errors.Is(err, unix.EEXIST) && !errors.Is(err, unix.ENOENT) {
			break
		}
	}
	if err != nil {
		p.close()
	}
	return p, err
}

// openDir opens a directory by a path without links: one that is there now was put there to lead elsewhere. Not by openat2,
// which old kernels and some filters do not have.
func openDir(p string) (fd int, err error) {
	const flags = unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	if fd, err = unix.Open("/", flags, 0); err != nil {
		return -1, err
	}
	for name := range strings.SplitSeq(strings.Trim(p, "/"), "/") {
		next, err := unix.Openat(fd, name, flags, 0)
		unix.Close(fd)
		if err != nil {
			return -1, err
		}
		fd = next
	}
	return fd, nil
}

// open locks a placeholder that is there. ENOENT: there is none, or it has just been removed.
func (p *placeholder) open() (err error) {
	if err = p.openAs(path.Base(p.Path), unix.O_RDONLY|unix.O_NONBLOCK); err != nil {
		if errors.Is(err, unix.ELOOP) {
			err = errTaken
		}
		return err
	}
	err = errTaken
	if fi, e := p.file.Stat(); e == nil && plan.Placeholder(fi) { // on others no lock is taken
		err = share(p.fd())
		switch {
		case err != nil:
		case !p.named(): // another run has removed it meanwhile
			err = unix.ENOENT
		case !p.ours():
			err = errTaken
		}
	}
	if err != nil {
		p.shut()
	}
	return err
}

func (p *placeholder) openAs(name string, flags int) error {
	fd, err := unix.Openat(p.dir, name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o644)
	if err == nil {
		p.file = os.NewFile(uintptr(fd), name)
	}
	return err
}

func (p *placeholder) fd() int { return int(p.file.Fd()) }

func (p *placeholder) shut() {
	if p.file != nil {
		_ = p.file.Close()
		p.file = nil
	}
}

// make makes a placeholder, locked and whole from the moment at which it has its name. EEXIST: somebody was faster.
func (p *placeholder) make() (err error) {
	var random [8]byte
	if _, err := unix.Getrandom(random[:], 0); err != nil {
		return err
	}
	temp := ".selfcage." + strconv.FormatUint(binary.LittleEndian.Uint64(random[:]), 36)
	if p.IsDir {
		if err = unix.Mkdirat(p.dir, temp, 0o755); err == nil {
			err = p.openAs(temp, unix.O_RDONLY|unix.O_DIRECTORY)
		}
	} else if err = p.openAs(temp, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL); err == nil {
		_, err = p.file.WriteString(p.Data)
	}
	if err == nil {
		err = p.mark()
	}
	if err == nil {
		err = share(p.fd())
	}
	if err == nil {
		err = unix.Renameat2(p.dir, temp, p.dir, path.Base(p.Path), unix.RENAME_NOREPLACE)
	}
	if err != nil {
		p.remove(temp)
		p.shut()
	}
	return err
}

func (p *placeholder) remove(name string) {
	flags := 0
	if p.IsDir {
		flags = unix.AT_REMOVEDIR
	}
	_ = unix.Unlinkat(p.dir, name, flags)
}

// mark makes a placeholder one that plan.Placeholder knows: nobody else makes a file of that mode and time, so that one
// which a killed run has left is found, and removed, by the next.
func (p *placeholder) mark() error {
	if err := unix.Fchmod(p.fd(), plan.PlaceholderMode(p.IsDir)); err != nil {
		return err
	}
	var epoch [2]unix.Timeval
	return unix.Futimes(p.fd(), epoch[:])
}

// ours says whether the open file is a placeholder as it was made.
func (p *placeholder) ours() bool {
	fi, err := p.file.Stat()
	ok := err == nil && fi.IsDir() == p.IsDir && plan.Placeholder(fi)
	if ok && p.IsDir {
		_, seek := p.file.Seek(0, io.SeekStart)
		names, err := p.file.Readdirnames(1)
		ok = seek == nil && len(names) == 0 && errors.Is(err, io.EOF)
	} else if ok {
		buf := make([]byte, len(p.Data)+1)
		n, err := unix.Pread(p.fd(), buf, 0)
		ok = err == nil && string(buf[:n]) == p.Data
	}
	return ok
}

// named says whether the open file still has its name.
func (p *placeholder) named() bool {
	var has, open unix.Stat_t
	return unix.Fstatat(p.dir, path.Base(p.Path), &has, unix.AT_SYMLINK_NOFOLLOW) == nil && unix.Fstat(p.fd(), &open) == nil &&
		has.Dev == open.Dev && has.Ino == open.Ino
}

// release removes the placeholder if nobody else holds it and it is as it was made.
func (p *placeholder) release() {
	if flock(p.fd(), unix.LOCK_EX|unix.LOCK_NB) == nil && p.ours() && p.named() {
		p.remove(path.Base(p.Path))
	}
	p.close()
}

func (p *placeholder) close() {
	p.shut()
	if p.dir >= 0 {
		unix.Close(p.dir)
	}
}

// patience is how long another run may take to remove a placeholder, which it has for itself then.
const patience = 2 * time.Second

var errHeld = errors.New("another process has a lock on it")

// share takes a shared lock. Anybody who can read the file can keep us from it, so this does not wait for ever.
func share(fd int) error {
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		err := flock(fd, unix.LOCK_SH|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return err
		}
		if time.Now().After(end) {
			return errHeld
		}
	}
}

func flock(fd, how int) error {
	for {
		if err := unix.Flock(fd, how); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
