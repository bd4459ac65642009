// Package jsonw writes JSON without encoding/json, whose package initialisation and tables every host program would
// pay for on every start, also with the cage off. It only writes; what reads JSON is not linked into host programs.
package jsonw

import (
	"strconv"
	"unicode/utf8"
)

// Writer builds one JSON document. Keys appear in the order in which they are written. The zero Writer is ready.
type Writer struct {
	buf   []byte
	comma bool // the next value or key needs a comma before it
}

// Bytes is what was written so far.
func (w *Writer) Bytes() []byte { return w.buf }

func (w *Writer) sep() {
	if w.comma {
		w.buf = append(w.buf, ',')
	}
	w.comma = true
}

// Open begins an object ('{') or an array ('[').
func (w *Writer) Open(bracket byte) {
	w.sep()
	w.buf = append(w.buf, bracket)
	w.comma = false
}

// Close ends it with '}' or ']'.
func (w *Writer) Close(bracket byte) {
	w.buf = append(w.buf, bracket)
	w.comma = true
}

// Line begins a new line, for people who look at the document.
func (w *Writer) Line() {
	if w.comma {
		w.buf = append(w.buf, ',')
	}
	w.buf = append(w.buf, '\n')
	w.comma = false
}

// Key writes the key of the next value.
func (w *Writer) Key(k string) {
	w.sep()
	w.buf = append(appendString(w.buf, k), ':')
	w.comma = false
}

// Text writes a string. One that is not UTF-8 becomes {"bytes": "<base64>"}, so that no byte is lost.
func (w *Writer) Text(s string) {
	w.sep()
	if utf8.ValidString(s) {
		w.buf = appendString(w.buf, s)
		return
	}
	w.buf = append(appendBase64(append(w.buf, `{"bytes":"`...), s), `"}`...)
}

// Int writes a number.
func (w *Writer) Int(n int64) {
	w.sep()
	w.buf = strconv.AppendInt(w.buf, n, 10)
}

// Bool writes true or false.
func (w *Writer) Bool(b bool) {
	w.sep()
	w.buf = strconv.AppendBool(w.buf, b)
}

// Pair writes a key with a string, if there is one.
func (w *Writer) Pair(key, value string) {
	if value != "" {
		w.Key(key)
		w.Text(value)
	}
}

func appendString(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c == '\n':
			b = append(b, '\\', 'n')
		case c < 0x20 || c == 0x7f:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}

// appendBase64 is RFC 4648's standard encoding with padding. encoding/base64 makes four alphabets at start-up.
func appendBase64(b []byte, s string) []byte {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	for ; len(s) >= 3; s = s[3:] {
		n := uint(s[0])<<16 | uint(s[1])<<8 | uint(s[2])
		b = append(b, alphabet[n>>18], alphabet[n>>12&63], alphabet[n>>6&63], alphabet[n&63])
	}
	switch len(s) {
	case 1:
		n := uint(s[0]) << 16
		b = append(b, alphabet[n>>18], alphabet[n>>12&63], '=', '=')
	case 2:
		n := uint(s[0])<<16 | uint(s[1])<<8
		b = append(b, alphabet[n>>18], alphabet[n>>12&63], alphabet[n>>6&63], '=')
	}
	return b
}
