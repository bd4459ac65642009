// Package elftest makes ELF files for the fake hosts of tests.
package elftest

// Build makes a small ELF file that names the given surroundings, for the fake hosts of tests; nothing can execute it.
func Build(wide bool, interp string, needed []string, runpath, rpath string) []byte {
	w, ehdr, phent := 4, 52, 32
	if wide {
		w, ehdr, phent = 8, 64, 56
	}
	strs := []byte{0}
	str := func(s string) uint64 {
		at := len(strs)
		strs = append(append(strs, s...), 0)
		return uint64(at)
	}
	type pair struct{ tag, v uint64 }
	var dyn []pair
	for _, n := range needed {
		dyn = append(dyn, pair{1, str(n)})
	}
	if runpath != "" {
		dyn = append(dyn, pair{29, str(runpath)})
	}
	if rpath != "" {
		dyn = append(dyn, pair{15, str(rpath)})
	}
	const addr = 0x10000
	interpAt := ehdr + 3*phent
	strAt := interpAt + len(interp) + 1
	dynAt := strAt + len(strs)
	dyn = append(dyn, pair{5, uint64(addr + strAt)}, pair{10, uint64(len(strs))}, pair{0, 0})
	end := dynAt + len(dyn)*2*w

	var b []byte
	put := func(v uint64, n int) {
		for ; n > 0; n-- {
			b = append(b, byte(v))
			v >>= 8
		}
	}
	b = append(b, "\x7fELF\x01\x01\x01"...)
	if wide {
		b[4] = 2
	}
	b = append(b, make([]byte, 16-len(b))...)
	put(3, 2)  // ET_DYN
	put(62, 2) // x86-64; for the 32-bit file a lie that nobody reads
	put(1, 4)
	put(0, w)            // entry
	put(uint64(ehdr), w) // program headers
	put(0, w)            // section headers
	put(0, 4)            // flags
	put(uint64(ehdr), 2)
	put(uint64(phent), 2)
	put(3, 2)
	put(0, 2)
	put(0, 2)
	put(0, 2)
	segment := func(kind uint64, off, size int) {
		put(kind, 4)
		if wide {
			put(4, 4)
		}
		put(uint64(off), w)
		put(uint64(addr+off), w)
		put(uint64(addr+off), w)
		put(uint64(size), w)
		put(uint64(size), w)
		if !wide {
			put(4, 4)
		}
		put(1, w)
	}
	segment(1, 0, end)
	segment(3, interpAt, len(interp)+1)
	segment(2, dynAt, end-dynAt)
	b = append(append(b, interp...), 0)
	b = append(b, strs...)
	for _, d := range dyn {
		put(d.tag, w)
		put(d.v, w)
	}
	return b
}
