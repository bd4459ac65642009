package refusal

import "strings"

// Printable shows each byte that could move a terminal's cursor or begin a line of its own: a path may hold any byte, and
// what a checkout calls its files must not look like our own words.
func Printable(s string) string {
	if !strings.ContainsFunc(s, control) {
		return s
	}
	const hex = "0123456789abcdef"
	var b strings.Builder
	for _, r := range s {
		if control(r) {
			b.WriteString(`\x` + hex[r>>4&15:r>>4&15+1] + hex[r&15:r&15+1])
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// control are the C0 and C1 controls and DEL.
func control(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 }
