package policyfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
)

// parseJSON builds the tree of a JSON document. encoding/json alone would take the last of two equal keys.
// beside leaves out what stands beside "sandbox".
func parseJSON(s *source, beside bool) (*node, error) {
	var whole json.RawMessage
	if err := json.Unmarshal(s.data, &whole); err != nil { // syntax, trailing data, depth
		at := len(s.data)
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) && !strings.HasPrefix(err.Error(), "unexpected end") {
			at = int(syntax.Offset) - 1
		}
		return nil, s.fail(at, "JSON: "+err.Error(), "")
	}
	var members map[string]json.RawMessage
	if beside {
		_ = json.Unmarshal(s.data, &members) // what is no object has no members
	}
	_, boxed := members["sandbox"]
	d := json.NewDecoder(bytes.NewReader(s.data))
	d.UseNumber()
	return (&jsonReader{s, d, boxed}).value(0)
}

type jsonReader struct {
	*source
	d     *json.Decoder
	boxed bool // of the outermost object only "sandbox" counts
}

// next returns the next token and the offset where it begins.
func (r *jsonReader) next() (json.Token, int, error) {
	at := int(r.d.InputOffset())
	for at < len(r.data) && strings.IndexByte(" \t\r\n,:", r.data[at]) >= 0 {
		at++
	}
	tok, err := r.d.Token()
	if err != nil {
		err = r.fail(at, "JSON: "+err.Error(), "")
	}
	return tok, at, err
}

func (r *jsonReader) value(depth int) (*node, error) {
	tok, at, err := r.next()
	if err != nil {
		return nil, err
	}
	switch tok := tok.(type) {
	case json.Delim:
		if depth == maxDepth {
			return nil, tooDeep(r.source, at)
		}
		if tok == '[' {
			return r.list(at, depth+1)
		}
		return r.object(at, depth+1)
	case string:
		return &node{kind: text, at: at, text: tok}, r.whole(at, tok)
	case json.Number:
		k := float
		if !strings.ContainsAny(tok.String(), ".eE") {
			k = integer
		}
		return &node{kind: k, at: at, text: tok.String()}, nil
	case bool:
		return &node{kind: boolean, at: at, text: strconv.FormatBool(tok)}, nil
	}
	return &node{kind: null, at: at}, nil
}

func (r *jsonReader) list(at, depth int) (*node, error) {
	n := &node{kind: list, at: at}
	for r.d.More() {
		v, err := r.value(depth)
		if err != nil {
			return nil, err
		}
		n.items = append(n.items, v)
	}
	_, _, err := r.next()
	return n, err
}

func (r *jsonReader) object(at, depth int) (*node, error) {
	n := &node{kind: object, at: at}
	for r.d.More() {
		tok, at, err := r.next()
		if err != nil {
			return nil, err
		}
		key, _ := tok.(string)
		if depth == 1 && r.boxed && key != "sandbox" {
			var skipped json.RawMessage
			if err := r.d.Decode(&skipped); err != nil {
				return nil, r.fail(at, "JSON: "+err.Error(), "")
			}
			continue
		}
		if err := r.whole(at, key); err != nil {
			return nil, err
		}
		v, err := r.value(depth)
		if err != nil {
			return nil, err
		}
		if err := n.add(r.source, pair{key, at, v}); err != nil {
			return nil, err
		}
	}
	_, _, err := r.next()
	return n, err
}

// whole refuses half of a surrogate pair: encoding/json would put another character in its place, and the path would be
// another one than the one that was reviewed.
func (r *jsonReader) whole(at int, s string) error {
	const replacement = "\uFFFD"
	if strings.Count(s, replacement) > bytes.Count(r.data[at:r.d.InputOffset()], []byte(replacement)) {
		return r.fail(at, `JSON: a \u escape in it is no character`, "")
	}
	return nil
}

func tooDeep(s *source, at int) error {
	return s.fail(at, "it is nested deeper than any policy", "")
}
