package policyfile

import (
	"bytes"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/selfcage/selfcage/internal/refusal"
)

// What a policy can need, and no more: what is larger is no policy, or one that was made to hurt its reader.
const (
	maxBytes    = 1 << 20
	maxDepth    = 8
	maxString   = 4096  // no path is longer
	maxBrackets = 10000 // the TOML parser recurses, and Go cannot survive the end of its stack
	maxElements = 1000  // of one list: each is looked up on the host, and nobody reviews more
	maxFaults   = 100   // that are told of one file
)

// kind is the type of a node, as an error names it.
type kind string

const (
	object  kind = "an object"
	list    kind = "a list"
	text    kind = "a string"
	integer kind = "an integer"
	float   kind = "a number"
	boolean kind = "true or false"
	null    kind = "null"
	date    kind = "a date or time"
)

// node is one value of a document, TOML or JSON, with the offset of its first byte.
type node struct {
	kind  kind
	at    int
	text  string  // of a string what it says, of a number or boolean what is written
	items []*node // of a list
	pairs []pair  // of an object, in the order of the document
	byKey map[string]int
	made  made
}

type pair struct {
	key   string
	at    int // of the key
	value *node
}

// get returns the value of key, nil if there is none.
func (n *node) get(key string) *pair {
	if i, ok := n.byKey[key]; ok {
		return &n.pairs[i]
	}
	return nil
}

// add puts a pair in; a key that is there already is an error in both languages.
func (n *node) add(s *source, p pair) error {
	if first := n.get(p.key); first != nil {
		return s.fail(p.at, "the key "+quote(p.key)+" is there twice, first in line "+strconv.Itoa(s.line(first.at)), "keep one of them")
	}
	if n.byKey == nil {
		n.byKey = make(map[string]int)
	}
	n.byKey[p.key] = len(n.pairs)
	n.pairs = append(n.pairs, p)
	return nil
}

// source is a document with its name; offsets into it become lines and columns.
type source struct {
	name  string
	data  []byte
	lines []int         // offset of the first byte of each line
	at    map[error]int // of each error that has a place
}

// newSource refuses what is no text at all.
func newSource(name string, data []byte) (*source, error) {
	s := &source{name: refusal.Printable(name), data: data[:len(data):len(data)]}
	if len(data) > maxBytes {
		return nil, s.whole("it is larger than 1 MiB", "a policy is a short text: is it the right file?")
	}
	s.lines = append(s.lines, 0)
	for i, c := range data {
		if c == '\n' {
			s.lines = append(s.lines, i+1)
		}
	}
	const save = "save it as UTF-8 without a byte order mark"
	switch {
	case bytes.HasPrefix(data, []byte("\xef\xbb\xbf")):
		return nil, s.fail(0, "it begins with a byte order mark", save)
	case bytes.HasPrefix(data, []byte("\xff\xfe")), bytes.HasPrefix(data, []byte("\xfe\xff")):
		return nil, s.fail(0, "it is UTF-16", save)
	}
	if i := bytes.IndexByte(data, 0); i >= 0 {
		return nil, s.fail(i, "it contains a NUL byte", "a policy is text: is it the right file?")
	}
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 {
			return nil, s.fail(i, "it is not UTF-8", save)
		}
		i += size
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, s.whole(isEmpty, emptyHint)
	}
	return s, nil
}

// An empty file may be one whose writer failed half-way: no defaults are read into it.
const (
	isEmpty   = "it is empty"
	emptyHint = "a policy that grants nothing says so, for example read_paths = []"
)

// line is the number of the line of the byte at offset at, from 1.
func (s *source) line(at int) int {
	return sort.SearchInts(s.lines, at+1)
}

// by is the origin of the value at offset at.
func (s *source) by(at int) string {
	return "policy " + s.name + ":" + strconv.Itoa(s.line(at))
}

// fail is an error at an offset. Columns count bytes from 1, as compilers do.
func (s *source) fail(at int, cause, hint string) error {
	at = max(0, min(at, len(s.data)))
	line := s.line(at)
	column := at - s.lines[line-1] + 1
	err := wrong(s.name+":"+strconv.Itoa(line)+":"+strconv.Itoa(column), cause, hint)
	if s.at == nil {
		s.at = make(map[error]int)
	}
	s.at[err] = at
	return err
}

// whole is an error about the document as a whole.
func (s *source) whole(cause, hint string) error { return wrong(s.name, cause, hint) }

func wrong(object, cause, hint string) error {
	return &refusal.Error{What: "wrong policy", Object: object, Cause: cause, Hint: hint}
}

// quote is s as a message shows it: a key of a megabyte helps nobody.
func quote(s string) string {
	const enough = 200
	if len(s) > enough {
		return strconv.Quote(strings.ToValidUTF8(s[:enough], "")) + "..."
	}
	return strconv.Quote(s)
}
