package manifest

import (
	"bytes"
	"cmp"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/selfcage/selfcage/binds"
	"github.com/selfcage/selfcage/internal/hostfs"
	"github.com/selfcage/selfcage/plan"
	"github.com/selfcage/selfcage/policy"
	"github.com/selfcage/selfcage/toolchain/elfhdr"
)

// Collect records what the program of the cage p can see. pid is that program, which was reached and has not begun; the
// caller must be of the same executable. It returns a JSON object without a newline at its end, the same bytes for the same
// state of the host. What could not be read is absent, and said to be unknown; Collect itself does not fail.
func Collect(p *plan.Plan, pid int) []byte {
	c := collector{
		plan: p, host: hostfs.OS{}, proc: "/proc/" + strconv.Itoa(pid), reader: reader{until: time.Now().Add(maxDuration)},
		doc: empty(), targets: make(map[string]bool, len(p.Mounts)), options: map[string][2]string{},
	}
	m := machine{fsys: c.host, proc: c.proc, facts: c.doc.Facts}
	m.look()
	m.set("kernel", "architecture", architecture())
	c.doc.Unknown = append(c.doc.Unknown, m.unknown...)
	c.report = ownReport(p, os.Environ())
	c.mounts()
	c.programs()
	c.tools()
	c.inputs()
	c.variables()
	data, err := c.doc.bytes()
	if err != nil { // no value of it can be refused
		return []byte(`{"version":1}`)
	}
	return data
}

type collector struct {
	reader
	plan    *plan.Plan
	host    fs.FS
	proc    string // the program's directory in /proc
	doc     document
	targets map[string]bool      // of all mounts
	options map[string][2]string // file system and options by mount point
	report  fs.FileInfo          // of this run, nil where it is not known
}

// ownReport is the report of this run, which tells the time and so is another one in each run. What merely looks like a report
// is a file as any other: it could hide a change behind it.
func ownReport(p *plan.Plan, environ []string) fs.FileInfo {
	file := plan.Getenv(environ, policy.Prefix(p.Name)+"REPORT")
	if p.Executes != "" && len(p.Args) > 2 && p.Args[1] == "run" {
		if s, _, _, err := policy.FromFlags(p.Args[2:]); err == nil {
			file = cmp.Or(s.Report.Value, plan.Getenv(environ, policy.Prefix("")+"REPORT"))
		}
	}
	if file == "" || file == "-" {
		return nil
	}
	fi, err := os.Stat(file)
	if err != nil {
		return nil
	}
	return fi
}

func (c *collector) mounts() {
	data, err := fs.ReadFile(c.host, c.proc[1:]+"/mountinfo")
	if err != nil {
		c.doc.Unknown = append(c.doc.Unknown, unknown{"mount", "options", "/proc/PID/mountinfo " + cause(err)})
	}
	c.options = mountOptions(string(data))
	for _, m := range c.plan.Mounts {
		if m.Kind == binds.RemountRO {
			continue
		}
		c.targets[m.Target] = true
		out := mount{Target: text(m.Target), Source: text(m.Source), Kind: m.Kind.String(), By: m.Reason.By}
		switch {
		case m.Kind.Bind():
			out.ID = idOf(m.ID)
			if fi, err := os.Lstat(m.Source); err == nil && out.ID == "" {
				out.ID = idOfFile(fi)
			}
		case (m.Kind == binds.File || m.Kind == binds.Sealed) && !hostfs.Within(m.Target, "/run/selfcage"):
			out.SHA256 = digest(m.Data)
		}
		if m.Kind.Mounts() {
			out.Filesystem, out.Options = c.options[m.Target][0], c.options[m.Target][1]
		}
		c.doc.Mounts = append(c.doc.Mounts, out)
		if m.Kind == binds.Device {
			c.doc.Devices = append(c.doc.Devices, c.device(m.Source))
		}
	}
}

func idOf(id binds.ID) string {
	if id == (binds.ID{}) {
		return ""
	}
	return strconv.FormatUint(id.Dev, 16) + ":" + strconv.FormatUint(id.Ino, 10)
}

func idOfFile(fi fs.FileInfo) string {
	dev, ino, _, _ := hostfs.Identity(fi)
	return idOf(binds.ID{Dev: dev, Ino: ino})
}

// spoken are options of file systems whose values say how the file system works. Others may name users, hosts and directories.
var spoken = []string{
	"size", "nr_inodes", "mode", "uid", "gid", "data", "compress", "compress-force", "commit", "rsize", "wsize", "vers", "proto", "cache",
	"errors", "stripe", "ssd", "barrier", "logbsize", "sunit", "swidth", "hidepid", "huge", "timeo", "actimeo", "acregmin", "acregmax",
}

// mountOptions reads /proc/PID/mountinfo: for each mount point the file system and all options of the last mount there.
func mountOptions(mountinfo string) map[string][2]string {
	out := map[string][2]string{}
	for line := range strings.Lines(mountinfo) {
		left, right, ok := strings.Cut(strings.TrimSpace(line), " - ")
		f, s := strings.Fields(left), strings.Fields(right)
		if !ok || len(f) < 6 || len(s) < 1 {
			continue
		}
		words := strings.Split(f[5], ",")
		if len(s) > 2 {
			for w := range strings.SplitSeq(s[2], ",") {
				if w != "rw" { // of the whole file system, which says nothing of the mount
					words = append(words, w)
				}
			}
		}
		var keep []string
		for i, w := range words {
			if k, _, ok := strings.Cut(w, "="); ok && !slices.Contains(spoken, k) {
				w = k + "=…"
			}
			if !slices.Contains(words[:i], w) && !slices.Contains(keep, w) {
				keep = append(keep, w)
			}
		}
		out[hostfs.Unescape(f[4])] = [2]string{s[0], strings.Join(keep, ",")}
	}
	return out
}

func (c *collector) device(p string) device {
	d := device{Path: text(p), Number: deviceNumber(p)}
	if d.Number == "" {
		d.Why = "it cannot be looked at"
		return d
	}
	dir := "/sys/dev/char/" + d.Number + "/device"
	if to, err := os.Readlink(dir + "/driver"); err == nil {
		d.Driver = path.Base(to)
	}
	var says []string
	for _, f := range []string{dir + "/vendor", dir + "/device", "/sys/module/" + d.Driver + "/version"} {
		if s := printable(small(c.host, f[1:])); s != "" && d.Driver != "" {
			says = append(says, s)
		}
	}
	d.Says = strings.Join(says, " ")
	return d
}

// programs are what runs first: this executable, the command that it executes, what that needs to begin, and programs that
// were looked up for it.
func (c *collector) programs() {
	self := c.self()
	c.doc.Programs = append(c.doc.Programs, self)
	seen := map[string]bool{string(self.Path): true}
	for _, s := range c.plan.Same {
		p := s.Paths[len(s.Paths)-1]
		role := "started"
		if c.plan.Executes != "" && path.Base(p) == path.Base(c.plan.Executes) {
			role = "command"
		}
		c.program(role, p, seen, 0)
	}
	if self.Path != "" && c.plan.Executes == "" {
		c.needs(string(self.Path), seen, 0)
	}
}

// self is the running executable, which is the one in the cage too.
func (c *collector) self() program {
	const self = "/proc/self/exe"
	p := program{Role: "program", ID: idOf(c.plan.Program)}
	to, err := os.Readlink(self)
	if err == nil {
		p.Path = text(to)
	}
	fi, err := os.Stat(self)
	if err != nil {
		p.Why = noDigest(err)
		return p
	}
	p.Size = fi.Size()
	if p.ID == "" {
		p.ID = idOfFile(fi)
	}
	if p.SHA256, err = c.path(self, fi, maxProgram); err != nil {
		p.Why = noDigest(err)
	}
	return p
}

// program adds the executable that name leads to, and what it needs to begin.
func (c *collector) program(role, name string, seen map[string]bool, depth int) {
	r, err := hostfs.New(c.host).Walk(name)
	if err != nil || seen[r.Path] || depth > 4 {
		return
	}
	seen[r.Path] = true
	p := program{Role: role, Path: text(r.Path), ID: idOfFile(r.Info), Size: r.Info.Size()}
	if p.SHA256, err = c.path(r.Path, r.Info, maxProgram); err != nil {
		p.Why = noDigest(err)
	}
	if role == "libc" {
		p.Says = libcVersion(r.Path)
	}
	c.doc.Programs = append(c.doc.Programs, p)
	c.needs(r.Path, seen, depth+1)
}

// needs adds the interpreter of a script, or the loader and the C library of a program.
func (c *collector) needs(file string, seen map[string]bool, depth int) {
	f, err := os.Open(file)
	if err != nil {
		return
	}
	defer f.Close()
	head := make([]byte, 256) // BINPRM_BUF_SIZE of Linux
	n, _ := f.ReadAt(head, 0)
	if line, script := bytes.CutPrefix(head[:n], []byte("#!")); script {
		line, _, _ = bytes.Cut(line, []byte("\n"))
		if words := strings.Fields(string(line)); len(words) > 0 && strings.HasPrefix(words[0], "/") {
			c.program("interpreter", words[0], seen, depth)
		}
		return
	}
	h, err := elfhdr.Read(f)
	if err != nil || !strings.HasPrefix(h.Interp, "/") {
		return
	}
	c.program("loader", h.Interp, seen, depth)
	if r, err := hostfs.New(c.host).Walk(h.Interp); err == nil {
		c.program("libc", path.Dir(r.Path)+"/libc.so.6", seen, depth)
	}
}

// libcVersion finds the line by which the GNU C library says its version.
func libcVersion(p string) string {
	f, err := os.Open(p)
	if err != nil {
		return ""
	}
	defer f.Close()
	data := make([]byte, 8<<20)
	n, _ := f.ReadAt(data, 0)
	i := bytes.Index(data[:n], []byte("GNU C Library ("))
	if i < 0 {
		return ""
	}
	line, _, _ := bytes.Cut(data[i:min(i+200, n)], []byte("\n"))
	return printable(string(line))
}

// tools are what recognisers of toolchains made visible, and what some names that most builds and benchmarks use stand for.
func (c *collector) tools() {
	for _, m := range c.plan.Mounts {
		if !strings.HasPrefix(m.Reason.By, "toolchain/") || !m.Kind.Bind() {
			continue
		}
		t := tool{Name: m.Reason.By, Path: text(m.Target)}
		v, from := versionOf(c.host, m.Source)
		if t.Version, t.From = v, text(from); v == "" {
			t.Why = noVersion
		}
		c.doc.Tools = append(c.doc.Tools, t)
	}
	for _, name := range usual {
		if t, ok := c.inPath(name); ok {
			c.doc.Tools = append(c.doc.Tools, t)
		}
	}
}

const noVersion = "no file is known that tells a version"

// usual are programs that decide about results, as they are called on a command line.
var usual = []string{"cc", "c++", "gcc", "clang", "ld", "make", "cmake", "ninja", "go", "rustc", "cargo", "python3", "python", "node", "java", "nvcc", "hipcc", "julia"}

// inPath is the program that a name stands for inside. Its version is not asked of it; where no file tells one, its digest
// distinguishes it.
func (c *collector) inPath(name string) (t tool, ok bool) {
	for dir := range strings.SplitSeq(plan.Getenv(c.plan.Environ(), "PATH"), ":") {
		if !strings.HasPrefix(dir, "/") {
			continue
		}
		r, err := hostfs.New(c.host).Walk(hostfs.Join(path.Clean(dir), name))
		if err != nil || !r.Info.Mode().IsRegular() || r.Info.Mode().Perm()&0o111 == 0 {
			continue
		}
		if m, shown := binds.Cover(c.plan.Mounts, r.Path); !shown || !m.Kind.Bind() {
			continue
		}
		v, from := versionOf(c.host, r.Path)
		t = tool{Name: name, Path: text(r.Path), Version: v, From: text(from)}
		if t.SHA256, err = c.path(r.Path, r.Info, maxFile); err != nil && v == "" {
			t.Why = noVersion + ", and of the program: " + noDigest(err)
		}
		return t, true
	}
	return t, false
}

// inputs are what was granted and what arguments name. What selfcage shows by itself is none, but for the working directory.
func (c *collector) inputs() {
	seen := map[string]bool{}
	for _, m := range c.plan.Mounts {
		by := m.Reason.By
		if (m.Kind != binds.ReadOnly && m.Kind != binds.ReadWrite) || seen[m.Source] || strings.HasPrefix(by, "toolchain/") {
			continue
		}
		switch by {
		case "base", "program", "command", "PATH", "environment":
			continue
		}
		seen[m.Source] = true
		c.doc.Inputs = append(c.doc.Inputs, c.input(m))
	}
	for _, a := range operands(c.plan) {
		c.argument(a, seen)
	}
	slices.SortFunc(c.doc.Inputs, func(a, b input) int { return cmp.Compare(a.Path, b.Path) })
}

// operands are the words of the command line that the program in the cage works with.
func operands(p *plan.Plan) []string {
	args := p.Operands()
	if p.Executes == "" {
		return args
	}
	// Flags of run come before the command, and a value of one of them may be the same word.
	if i := slices.Index(args, "--") + 1; i > 0 && i < len(args) && args[i] == p.Executes {
		return args[i+1:]
	}
	return args[slices.Index(args, p.Executes)+1:]
}

// argument adds the file that an argument, or what stands behind a '=' in it, names, if it is visible.
func (c *collector) argument(a string, seen map[string]bool) {
	words := []string{a}
	if _, v, ok := strings.Cut(a, "="); ok {
		words = append(words, v)
	}
	for _, w := range words {
		if w == "" || !strings.HasPrefix(w, "/") && c.plan.Dir == "" {
			continue
		}
		r, err := hostfs.New(c.host).Walk(path.Clean(hostfs.Abs(w, c.plan.Dir)))
		if err != nil || !r.Info.Mode().IsRegular() || seen[r.Path] {
			continue
		}
		m, ok := binds.Cover(c.plan.Mounts, r.Path)
		if !ok || m.Kind != binds.ReadOnly && m.Kind != binds.ReadWrite || m.Source != m.Target {
			continue
		}
		seen[r.Path] = true
		c.doc.Inputs = append(c.doc.Inputs, c.input(binds.Mount{Source: r.Path, Target: r.Path, Reason: binds.Reason{By: "argument"}}))
	}
}

func (c *collector) input(m binds.Mount) input {
	in := input{Path: text(m.Source), By: m.Reason.By, Kind: "other"}
	fi, err := os.Lstat(m.Source)
	switch {
	case err != nil:
		in.Why = noDigest(err)
	case strings.Contains(m.Reason.By, "cache ") || strings.HasSuffix(m.Reason.By, "CACHE"):
		in.Kind, in.Why = kindOf(fi), whyCache
	case fi.IsDir():
		in.Kind = "directory"
		in.Commit = commit(c.host, m.Source)
		in.SHA256, in.Files, in.Size, err = c.directory(m.Source, func(rel string, fi fs.FileInfo) bool {
			return c.targets[hostfs.Join(m.Target, rel)] || c.report != nil && os.SameFile(fi, c.report)
		})
	default:
		in.Kind, in.Size = kindOf(fi), fi.Size()
		in.SHA256, err = c.path(m.Source, fi, maxFile)
	}
	if err != nil && in.Why == "" {
		// How far it was read says nothing of what is there.
		in.Why = noDigest(err)
		if in.Kind == "directory" {
			in.Files, in.Size = 0, 0
		}
	}
	return in
}

const whyCache = "a cache: what is in it makes no other run"

func kindOf(fi fs.FileInfo) string {
	switch {
	case fi.IsDir():
		return "directory"
	case fi.Mode().IsRegular():
		return "file"
	}
	return "other"
}

func (c *collector) variables() {
	for _, v := range c.plan.Env {
		c.doc.Variables = append(c.doc.Variables, text(v.Name))
	}
	slices.Sort(c.doc.Variables)
	c.doc.Variables = slices.Compact(c.doc.Variables)
}
