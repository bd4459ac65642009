package main

import (
	"fmt"
	"io"
	"os"
)

// progress rewrites one line of a terminal. On anything else it prints nothing: a log has no use for it.
type progress struct {
	w     io.Writer // nil: silent
	total int
	n     int
}

func newProgress(w io.Writer, total int) *progress {
	p := &progress{total: total}
	if f, ok := w.(*os.File); ok && isTerminal(f) {
		p.w = w
	}
	return p
}

func (p *progress) step(what string) {
	p.n++
	if p.w != nil {
		fmt.Fprintf(p.w, "\r\x1b[K[%d/%d] %s", p.n, p.total, what)
	}
}

func (p *progress) done() {
	if p.w != nil {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
