package manifest

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"regexp"
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

// sum digests an open file of at most limit bytes. head gets its beginning.
func (r reader) sum(f io.Reader, limit int64, head []byte) (sum string, size int64, n int, err error) {
	h := sha256.New()
	buf := make([]byte, 256<<10)
	for {
		if time.Now().After(r.until) {
			return "", size, n, errLate
		}
		got, err := f.Read(buf)
		if got > 0 {
			if size == 0 {
				n = copy(head, buf[:got])
			}
			h.Write(buf[:got])
			size += int64(got)
		}
		switch {
		case size > limit:
			return "", size, n, errLarge
		case err == io.EOF:
			return hex.EncodeToString(h.Sum(nil)), size, n, nil
		case err != nil:
			return "", size, n, err
		}
	}
}

// opener opens one file with the flags of os.OpenFile.
type opener func(flags int) (*os.File, error)

// file digests a regular file. What open gives must be what want describes: between the two looks somebody could have put a
// link to another file in its place. A pipe must not make it wait.
func (r reader) file(open opener, want fs.FileInfo, limit int64, head []byte) (sum string, n int, err error) {
	switch {
	case !want.Mode().IsRegular():
		return "", 0, errOther
	case want.Size() > limit:
		return "", 0, errLarge
	}
	f, err := open(os.O_RDONLY | syscall.O_NONBLOCK)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	if fi, err := f.Stat(); err != nil || !os.SameFile(fi, want) {
		return "", 0, errChanged
	}
	sum, _, n, err = r.sum(f, limit, head)
	return sum, n, err
}

// path digests the regular file at p.
func (r reader) path(p string, want fs.FileInfo, limit int64) (string, error) {
	sum, _, err := r.file(func(flags int) (*os.File, error) { return os.OpenFile(p, flags, 0) }, want, limit, nil)
	return sum, err
}

// reportHead is what a report of selfcage begins with. Reports that lie in a working directory make no two runs different.
var reportHead = regexp.MustCompile(`^\{"version":[0-9]+,\s*"state":"`)

// tree is the digest of a directory.
type tree struct {
	reader
	root    *os.Root
	skip    func(rel string) bool // what is not visible inside, or is another file there
	lines   []string
	entries int
	bytes   int64
}

// directory digests all that lies below dir: names, permission bits, contents and the texts of links, in whatever order they
// are found. files counts what was found.
func (r reader) directory(dir string, skip func(rel string) bool) (sum string, files int, size int64, err error) {
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
		if name == ".git" || t.skip(rel) {
			continue
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
	line := "other"
	switch {
	case fi.IsDir():
		line = "directory"
	case fi.Mode()&fs.ModeSymlink != 0:
		to, err := t.root.Readlink(rel)
		if err != nil {
			return err
		}
		line = "link\x00" + to
	case fi.Mode().IsRegular():
		var head [64]byte
		sum, n, err := t.file(func(flags int) (*os.File, error) { return t.root.OpenFile(rel, flags, 0) }, fi, maxTree-t.bytes, head[:])
		switch {
		case errors.Is(err, fs.ErrPermission):
			sum = "unreadable" // for the program too
		case err != nil:
			return err
		case reportHead.Match(head[:n]):
			return nil
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
	git := strings.TrimPrefix(dir, "/") + "/.git/"
	data, err := fs.ReadFile(fsys, git+"HEAD")
	if err != nil {
		return ""
	}
	id := strings.TrimSpace(string(data))
	if ref, ok := strings.CutPrefix(id, "ref: "); ok {
		if !fs.ValidPath(ref) {
			return ""
		}
		if data, err := fs.ReadFile(fsys, git+ref); err == nil {
			id = strings.TrimSpace(string(data))
		} else {
			id = packed(fsys, git, ref)
		}
	}
	if len(id) < 40 || strings.Trim(id, "0123456789abcdef") != "" {
		return ""
	}
	return id
}

func packed(fsys fs.FS, git, ref string) string {
	data, _ := fs.ReadFile(fsys, git+"packed-refs")
	for line := range strings.Lines(string(data)) {
		if id, name, _ := strings.Cut(strings.TrimSpace(line), " "); name == ref {
			return id
		}
	}
	return ""
}
