package plan

import (
	"strconv"
	"strings"
)

// Script is the plan as a bash command that can be pasted: the bubblewrap at path bwrap with every option, and the data by process
// substitution. It has no supervisor: signals and exit status are bwrap's own. argv is the command; without one it is
// a shell. It holds the values of the variables, which it needs.
func (p *Plan) Script(bwrap string, argv []string) string {
	if len(argv) == 0 {
		argv = []string{"/bin/sh"}
	}
	const first = 100 // bash's own for process substitution go down from 63, and are all open at once
	var b strings.Builder
	if len(p.Remove) > 0 {
		b.WriteString("made=()\n")
	}
	for _, m := range p.Remove {
		b.WriteString(makeForRun(m))
	}
	for _, m := range p.Create {
		if m.IsDir {
			b.WriteString("(umask 077 && mkdir -p " + bash(m.Path) + ") && \\\n")
		} else {
			b.WriteString("(umask 077 && >>" + bash(m.Path) + ") && \\\n")
		}
	}
	b.WriteString("env -i " + bash(bwrap))
	for _, w := range p.Argv(func(i int) int { return first + i }) {
		if strings.HasPrefix(w, "--") {
			b.WriteString(" \\\n ")
		}
		b.WriteString(" " + bash(w))
	}
	b.WriteString(" \\\n  --")
	for _, w := range argv {
		b.WriteString(" " + bash(w))
	}
	for i, d := range p.Data() {
		b.WriteString(" \\\n  " + strconv.Itoa(first+i) + "< <(printf " + printf(d.Content) + ")")
	}
	b.WriteString("\n")
	if len(p.Remove) > 0 {
		b.WriteString("status=$?; for made in \"${made[@]}\"; do rm -f -- \"$made\" 2>/dev/null || rmdir -- \"$made\"; done; (exit $status)\n")
	}
	return b.String()
}

// makeForRun makes what must be there while the run lasts and remembers it, unless it is there.
func makeForRun(m Missing) string {
	if m.IsDir {
		return "mkdir " + bash(m.Path) + " 2>/dev/null && made+=(" + bash(m.Path) + ")\n"
	}
	return "(set -C; printf " + printf([]byte(m.Data)) + " >" + bash(m.Path) + ") 2>/dev/null && made+=(" + bash(m.Path) + ")\n"
}

// bash quotes one word.
func bash(s string) string {
	plain := s != ""
	odd := false
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c < ' ' || c > '~' {
			odd = true
		}
		if !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=/.,:@%", rune(c)) {
			plain = false
		}
	}
	switch {
	case plain:
		return s
	case !odd:
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	var b strings.Builder
	b.WriteString("$'")
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\'' || c == '\\':
			b.WriteString(`\` + string(rune(c)))
		case c < ' ' || c > '~':
			b.WriteString(`\` + octal(c))
		default:
			b.WriteByte(c)
		}
	}
	return b.String() + "'"
}

// printf quotes content as the format of printf(1), NUL bytes included.
func printf(data []byte) string {
	var b strings.Builder
	b.WriteByte('\'')
	for _, c := range data {
		switch {
		case c == '%':
			b.WriteString("%%")
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\'' || c == '\\' || c < ' ' || c > '~':
			b.WriteString(`\` + octal(c))
		default:
			b.WriteByte(c)
		}
	}
	return b.String() + "'"
}

func octal(c byte) string {
	return string([]byte{'0' + c>>6, '0' + c>>3&7, '0' + c&7})
}
