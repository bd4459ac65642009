package manifest

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// How much is read. What is larger has no digest, and says so.
const (
	maxFile     = 16 << 20  // bytes of one input
	maxProgram  = 256 << 20 // bytes of one program
	maxTree     = 64 << 20  // bytes of all files of a directory
	maxEntries  = 2000      // files and directories of a directory
	maxDuration = 20 * time.Second
)

// reader reads files until its time is over.
type reader struct{ until time.Time }

var (
	errLarge   = errors.New("it is larger than what is digested")
	errLate    = errors.New("there was no time left to digest it")
	errChanged = errors.New("it was exchanged while it was looked at")
	errOther   = errors.New("it is no regular file")
)

// sum digests an open file of at most limit bytes.
func (r reader) sum(f io.Reader, limit int64) (string, error) {
	h := sha256.New()
	buf := make([]byte, 256<<10)
	for size := int64(0); ; {
		if time.Now().After(r.until) {
			return "", errLate
		}
		n, err := f.Read(buf)
		h.Write(buf[:n])
		size += int64(n)
		switch {
		case size > limit:
			return "", errLarge
		case err == io.EOF:
			return hex.EncodeToString(h.Sum(nil)), nil
		case err != nil:
			return "", err
		}
	}
}

// opener opens one file with the flags of os.OpenFile.
type opener func(flags int) (*os.File, error)

// file digests a regular file. What open gives must be what want describes: between the two looks somebody could have put a
// link to another file in its place. A pipe must not make it wait.
func (r reader) file(open opener, want fs.FileInfo, limit int64) (string, error) {
	switch {
	case !want.Mode().IsRegular():
		return "", errOther
	case want.Size() > limit:
		return "", errLarge
	}
	f, err := open(os.O_RDONLY | syscall.O_NONBLOCK)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if fi, err := f.Stat(); err != nil || !os.SameFile(fi, want) {
		return "", errChanged
	}
	return r.sum(f, limit)
}

// path digests the regular file at p.
func (r reader) path(p string, want fs.FileInfo, limit int64) (string, error) {
	return r.file(func(flags int) (*os.File, error) { return os.OpenFile(p, flags, 0) }, want, limit)
}

// tree is the digest of a directory.
type tree struct {
	reader
	root    *os.Root
	skip    func(rel string, fi fs.FileInfo) bool // what is not visible inside, or is another file there, or this run's own
	lines   []string
	entries int
	bytes   int64
}

// directory digests all that lies below dir: names, permission bits, contents and the texts of links, in whatever order they
// are found. files counts what was found.
func (r reader) directory(dir string, skip func(rel string, fi fs.FileInfo) bool) (sum string, files int, size int64, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", 0, 0, err
	}
	defer root.Close()
	t := tree{reader: r, root: root, skip: skip}
	if err := t.walk("."); err != nil {
		return "", t.entries, t.bytes, err
	}
	return t.digest(), t.entries, t.bytes, nil
}

// digest does not depend on the order in which a file system lists names.
func (t *tree) digest() string {
	slices.Sort(t.lines)
	return digest([]byte(strings.Join(t.lines, "\x00\x00")))
}

func (t *tree) walk(dir string) error {
	f, err := t.root.Open(dir)
	if err != nil {
		return err
	}
	names, err := f.Readdirnames(maxEntries + 1)
	_ = f.Close()
	if err != nil && err != io.EOF {
		return err
	}
	if t.entries+len(names) > maxEntries {
		return errLarge
	}
	for _, name := range names {
		rel := name
		if dir != "." {
			rel = dir + "/" + name
		}
		if err := t.entry(rel); err != nil {
			return err
		}
	}
	return nil
}

func (t *tree) entry(rel string) error {
	fi, err := t.root.Lstat(rel)
	if err != nil {
		return err
	}
	if t.skip(rel, fi) {
		return nil
	}
	line := "other"
	switch {
	case path.Base(rel) == ".git" && fi.IsDir() && t.checkout(rel):
		return nil
	case fi.IsDir():
		line = "directory"
	case fi.Mode()&fs.ModeSymlink != 0:
		to, err := t.root.Readlink(rel)
		if err != nil {
			return err
		}
		line = "link\x00" + to
	case fi.Mode().IsRegular():
		sum, err := t.file(func(flags int) (*os.File, error) { return t.root.OpenFile(rel, flags, 0) }, fi, maxTree-t.bytes)
		switch {
		case errors.Is(err, fs.ErrPermission):
			sum = "unreadable" // for the program too
		case err != nil:
			return err
		default:
			t.bytes += fi.Size()
		}
		line = "file\x00" + sum
	}
	t.entries++
	t.lines = append(t.lines, rel+"\x00"+strconv.FormatUint(uint64(fi.Mode().Perm()), 8)+"\x00"+line)
	if !fi.IsDir() {
		return nil
	}
	if err := t.walk(rel); !errors.Is(err, fs.ErrPermission) {
		return err
	}
	t.lines = append(t.lines, rel+"\x00unreadable")
	return nil
}

// checkout puts the commit of a repository in place of its git directory, which is another one after each command of git. That
// of the whole directory is told beside its digest. One that does not tell its commit is a directory as any other.
func (t *tree) checkout(git string) bool {
	id := commit(t.root.FS(), path.Dir(git))
	if id == "" {
		return false
	}
	if git != ".git" {
		t.entries++
		t.lines = append(t.lines, git+"\x00commit\x00"+id)
	}
	return true
}

// noDigest says why there is none.
func noDigest(err error) string {
	switch {
	case errors.Is(err, errLarge), errors.Is(err, errLate), errors.Is(err, errChanged), errors.Is(err, errOther):
		return err.Error()
	}
	return "it " + cause(err)
}

// commit is the commit that a git checkout is at, "" where dir is none or does not say.
func commit(fsys fs.FS, dir string) string {
	git := path.Join(strings.TrimPrefix(dir, "/"), ".git") + "/"
	id := strings.TrimSpace(small(fsys, git+"HEAD"))
	if ref, ok := strings.CutPrefix(id, "ref: "); ok {
		if !fs.ValidPath(ref) {
			return ""
		}
		if id = strings.TrimSpace(small(fsys, git+ref)); id == "" {
			id = packed(fsys, git, ref)
		}
	}
	if len(id) < 40 || strings.Trim(id, "0123456789abcdef") != "" {
		return ""
	}
	return id
}

func packed(fsys fs.FS, git, ref string) string {
	for line := range strings.Lines(atMost(fsys, git+"packed-refs", maxFile)) {
		if id, name, _ := strings.Cut(strings.TrimSpace(line), " "); name == ref {
			return id
		}
	}
	return ""
}
