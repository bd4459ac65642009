package policyfile

import (
	"errors"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// made says how a TOML table came to be, which decides whether it can be added to: what was closed by its own syntax
// cannot, or a reviewer who has read the table does not know what is in it.
type made uint8

const (
	implied made = iota // as the parent of another: its own header may still come
	header              // [table]
	dotted              // table.key = value
	inline              // { }
)

// parseTOML builds the tree of a TOML document from go-toml's syntax tree, the only one that has the positions of values.
// beside leaves out what stands beside "sandbox".
func parseTOML(s *source, beside bool) (*node, error) {
	if at := manyBrackets(s.data); at >= 0 {
		return nil, tooDeep(s, at)
	}
	var p unstable.Parser
	p.Reset(s.data)
	t := tomlReader{s}
	root := &node{kind: object}
	here, said, boxed := root, false, beside && hasBox(s.data)
	for p.NextExpression() {
		said = true
		var err error
		e := p.Expression()
		if boxed && (e.Kind != unstable.KeyValue || here == root) && firstKey(e) != "sandbox" {
			if e.Kind != unstable.KeyValue {
				here = nil // of a table that is none of ours
			}
			continue
		}
		if here == nil && e.Kind == unstable.KeyValue {
			continue
		}
		switch e.Kind {
		case unstable.Table:
			here, err = t.table(root, e)
		case unstable.KeyValue:
			err = t.keyValue(here, e, 0)
		default:
			it := e.Key()
			it.Next()
			err = s.fail(int(it.Node().Raw.Offset), "no key of a policy is a list of tables", "write it with one pair of brackets")
		}
		if err != nil {
			return nil, err
		}
	}
	if err := p.Error(); err != nil {
		at := 0
		var syntax *unstable.ParserError
		if errors.As(err, &syntax) {
			at = t.offset(syntax.Highlight)
		}
		return nil, s.fail(at, "TOML: "+err.Error(), s.bareWord(at))
	}
	if !said {
		return nil, s.whole("nothing but comments is in it", emptyHint)
	}
	return root, nil
}

// hasBox says whether a table "sandbox" is in the document, before what is wrong with it.
func hasBox(data []byte) bool {
	var p unstable.Parser
	p.Reset(data)
	top := true
	for p.NextExpression() {
		e := p.Expression()
		if (top || e.Kind != unstable.KeyValue) && firstKey(e) == "sandbox" {
			return true
		}
		top = top && e.Kind == unstable.KeyValue
	}
	return false
}

// firstKey is the first part of the key of an expression.
func firstKey(e *unstable.Node) string {
	it := e.Key()
	if !it.Next() {
		return ""
	}
	return string(it.Node().Data)
}

// bareWord is the hint for a value without quotes, as in mode = bwrap. It does not repeat the word, which may be a secret.
func (s *source) bareWord(at int) string {
	from, to := at, at
	for from > 0 && isWordByte(s.data[from-1]) {
		from--
	}
	for to < len(s.data) && isWordByte(s.data[to]) {
		to++
	}
	before := strings.TrimRight(string(s.data[s.lines[s.line(from)-1]:from]), " \t")
	if from == to || before == "" || strings.IndexByte("=[,", before[len(before)-1]) < 0 || '0' <= s.data[from] && s.data[from] <= '9' {
		return ""
	}
	switch strings.ToLower(string(s.data[from:to])) {
	case "true", "false":
		return "write true or false, in lower case"
	}
	return `text stands in quotes, as in mode = "bwrap"`
}

func isWordByte(c byte) bool {
	return c == '_' || c == '-' || c == '/' || c == '.' || 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9'
}

// manyBrackets returns the offset of the first bracket beyond what is allowed, -1 if there is none. Those in strings and
// comments count too: nesting cannot be deeper than that.
func manyBrackets(data []byte) int {
	n := 0
	for i, c := range data {
		if c == '[' || c == '{' {
			if n++; n > maxBrackets {
				return i
			}
		}
	}
	return -1
}

type tomlReader struct{ *source }

// offset is where part begins, a piece of the document: the two end at the same place in memory.
func (t tomlReader) offset(part []byte) int { return cap(t.data) - cap(part) }

// table finds or makes the table of a header.
func (t tomlReader) table(n *node, e *unstable.Node) (*node, error) {
	it := e.Key()
	for depth := 1; it.Next(); depth++ {
		k := it.Node()
		at := int(k.Raw.Offset)
		if depth > maxDepth {
			return nil, tooDeep(t.source, at)
		}
		p := n.get(string(k.Data))
		if p == nil {
			p = &pair{string(k.Data), at, &node{kind: object, at: at}}
			if err := n.add(t.source, *p); err != nil {
				return nil, err
			}
		} else if p.value.kind != object || p.value.made == inline || it.IsLast() && p.value.made != implied {
			return nil, n.add(t.source, pair{key: p.key, at: at})
		}
		n = p.value
	}
	n.made = header
	return n, nil
}

// keyValue puts one "key = value" into the table n.
func (t tomlReader) keyValue(n *node, e *unstable.Node, depth int) error {
	it := e.Key()
	var k *unstable.Node
	for it.Next() {
		k = it.Node()
		if depth++; depth > maxDepth {
			return tooDeep(t.source, int(k.Raw.Offset))
		}
		if it.IsLast() {
			break
		}
		at := int(k.Raw.Offset)
		p := n.get(string(k.Data))
		if p == nil {
			p = &pair{string(k.Data), at, &node{kind: object, at: at, made: dotted}}
			if err := n.add(t.source, *p); err != nil {
				return err
			}
		} else if p.value.kind != object || p.value.made != dotted {
			return n.add(t.source, pair{key: p.key, at: at})
		}
		n = p.value
	}
	v, err := t.value(e.Value(), t.afterEquals(k), depth)
	if err != nil {
		return err
	}
	return n.add(t.source, pair{string(k.Data), int(k.Raw.Offset), v})
}

// afterEquals is where the value of the key k begins.
func (t tomlReader) afterEquals(k *unstable.Node) int {
	at := int(k.Raw.Offset + k.Raw.Length)
	for at < len(t.data) && (t.data[at] == ' ' || t.data[at] == '\t' || t.data[at] == '=') {
		at++
	}
	return at
}

var tomlKinds = map[unstable.Kind]kind{
	unstable.String: text, unstable.Integer: integer, unstable.Float: float, unstable.Bool: boolean,
}

// value reads a value that begins at offset at.
func (t tomlReader) value(e *unstable.Node, at, depth int) (*node, error) {
	switch e.Kind {
	case unstable.Array, unstable.InlineTable:
		if depth == maxDepth {
			return nil, tooDeep(t.source, at)
		}
		if e.Kind == unstable.Array {
			return t.list(e, at, depth+1)
		}
		n := &node{kind: object, at: at}
		it := e.Children()
		for it.Next() {
			if err := t.keyValue(n, it.Node(), depth); err != nil {
				return nil, err
			}
		}
		n.close()
		return n, nil
	}
	k, ok := tomlKinds[e.Kind]
	if !ok {
		k = date
	}
	return &node{kind: k, at: at, text: string(e.Data)}, nil
}

// close makes an inline table final, with what its dotted keys made in it.
func (n *node) close() {
	n.made = inline
	for _, p := range n.pairs {
		if p.value.kind == object {
			p.value.close()
		}
	}
}

// list reads an array. go-toml does not say where an array in an array begins; such a one gets the place of the outer.
func (t tomlReader) list(e *unstable.Node, at, depth int) (*node, error) {
	n := &node{kind: list, at: at}
	it := e.Children()
	for it.Next() {
		c := it.Node()
		where := at
		switch {
		case c.Raw.Length > 0:
			where = int(c.Raw.Offset)
		case len(c.Data) > 0: // a boolean or a date, which is a piece of the document
			where = t.offset(c.Data)
		}
		v, err := t.value(c, where, depth)
		if err != nil {
			return nil, err
		}
		n.items = append(n.items, v)
	}
	return n, nil
}
