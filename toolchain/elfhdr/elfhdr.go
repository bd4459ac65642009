// Package elfhdr reads from an ELF file what the loader looks for outside of it: the interpreter, the libraries and
// the directories to find them in. It reads a few kilobytes, whatever the size of the file, and links nothing heavy:
// debug/elf would bring fmt and reflect into every host program.
package elfhdr

import (
	"errors"
	"io"
	"strings"
)

// Header is what an ELF file says about its surroundings.
type Header struct {
	Interp  string   // PT_INTERP, the loader's path
	Needed  []string // DT_NEEDED
	RPath   []string // DT_RPATH, split; ignored by the loader where there is a RUNPATH
	RunPath []string // DT_RUNPATH, split
	Wide    bool     // 64 bits
}

// ErrFormat is returned for what is no little-endian ELF file, or a damaged one.
var ErrFormat = errors.New("not an ELF file that can be read")

const (
	ptLoad, ptDynamic, ptInterp                        = 1, 2, 3
	dtNeeded, dtStrTab, dtStrSz, dtRPath, dtRunPath    = 1, 5, 10, 15, 29
	maxPath, maxDynamic, maxStrings, maxHeaders, first = 4096, 1 << 16, 1 << 16, 256, 4096
)

type reader struct {
	r    io.ReaderAt
	head []byte // of the file; most of what is looked at lies in it
	wide bool
	err  error
}

// at returns n bytes at offset off, or fewer where the file ends.
func (r *reader) at(off uint64, n int) []byte {
	if off < uint64(len(r.head)) && uint64(n) <= uint64(len(r.head))-off {
		return r.head[off : off+uint64(n)]
	}
	if off >= 1<<62 {
		return nil
	}
	buf := make([]byte, n)
	got, err := r.r.ReadAt(buf, int64(off))
	if err != nil && err != io.EOF && r.err == nil {
		r.err = err
	}
	return buf[:got]
}

// num reads a little-endian number of n bytes; what lies past the end is zero.
func num(b []byte, off, n int) (v uint64) {
	for i := n - 1; i >= 0; i-- {
		v <<= 8
		if off+i < len(b) {
			v |= uint64(b[off+i])
		}
	}
	return v
}

// word reads a number as wide as an address.
func (r *reader) word(b []byte, off int) uint64 {
	if r.wide {
		return num(b, off, 8)
	}
	return num(b, off, 4)
}

type segment struct{ kind, off, addr, size uint64 }

// Read reads the header of an ELF file.
func Read(f io.ReaderAt) (h Header, err error) {
	r := &reader{r: f}
	r.head = r.at(0, first)
	if r.err != nil {
		return h, r.err
	}
	if len(r.head) < 52 || string(r.head[:4]) != "\x7fELF" || r.head[4] != 1 && r.head[4] != 2 || r.head[5] != 1 {
		return h, ErrFormat
	}
	r.wide = r.head[4] == 2
	h.Wide = r.wide
	segments, ok := r.segments()
	if !ok {
		return h, ErrFormat
	}
	for _, s := range segments {
		switch s.kind {
		case ptInterp:
			h.Interp = text(r.at(s.off, int(min(s.size, maxPath))))
		case ptDynamic:
			r.dynamic(&h, s, segments)
		}
	}
	return h, r.err
}

func (r *reader) segments() ([]segment, bool) {
	offAt, entAt, minimum := 28, 42, uint64(32)
	if r.wide {
		offAt, entAt, minimum = 32, 54, 56
	}
	off, ent, n := r.word(r.head, offAt), num(r.head, entAt, 2), num(r.head, entAt+2, 2)
	if n == 0 {
		return nil, true
	}
	if ent < minimum || n > maxHeaders {
		return nil, false
	}
	table := r.at(off, int(ent*n))
	if len(table) < int(ent*n) {
		return nil, false
	}
	list := make([]segment, n)
	for i := range list {
		b := table[i*int(ent):]
		list[i] = segment{num(b, 0, 4), num(b, 4, 4), num(b, 8, 4), num(b, 16, 4)}
		if r.wide {
			list[i] = segment{num(b, 0, 4), num(b, 8, 8), num(b, 16, 8), num(b, 32, 8)}
		}
	}
	return list, true
}

// dynamic reads the dynamic section, whose strings it names by their address in memory.
func (r *reader) dynamic(h *Header, s segment, segments []segment) {
	width := 4
	if r.wide {
		width = 8
	}
	var table, size uint64
	type ref struct{ tag, at uint64 }
	var refs []ref
	d := r.at(s.off, int(min(s.size, maxDynamic)))
	for ; len(d) >= 2*width; d = d[2*width:] {
		tag, v := r.word(d, 0), r.word(d, width)
		if tag == 0 {
			break
		}
		switch tag {
		case dtStrTab:
			table = v
		case dtStrSz:
			size = v
		case dtNeeded, dtRPath, dtRunPath:
			refs = append(refs, ref{tag, v})
		}
	}
	base, ok := offset(segments, table)
	if !ok || len(refs) == 0 {
		return
	}
	lo, hi := size, uint64(0)
	for _, x := range refs {
		lo, hi = min(lo, x.at), max(hi, x.at)
	}
	if hi >= size {
		r.err = ErrFormat
		return
	}
	// Linkers put these strings beside each other, whatever the size of the table.
	near := hi-lo < maxStrings
	var block []byte
	if near {
		block = r.at(base+lo, int(min(size-lo, hi-lo+maxPath)))
	}
	for _, x := range refs {
		var v string
		if near {
			v = text(block[min(x.at-lo, uint64(len(block))):])
		} else {
			v = text(r.at(base+x.at, int(min(size-x.at, maxPath))))
		}
		switch {
		case v == "":
		case x.tag == dtNeeded:
			h.Needed = append(h.Needed, v)
		case x.tag == dtRPath:
			h.RPath = append(h.RPath, strings.Split(v, ":")...)
		default:
			h.RunPath = append(h.RunPath, strings.Split(v, ":")...)
		}
	}
}

// offset turns an address into a place in the file.
func offset(segments []segment, addr uint64) (uint64, bool) {
	for _, s := range segments {
		if s.kind == ptLoad && addr >= s.addr && addr-s.addr < s.size {
			return s.off + addr - s.addr, true
		}
	}
	return 0, false
}

// text is what b holds up to the first NUL.
func text(b []byte) string {
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}
