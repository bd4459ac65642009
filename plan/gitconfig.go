package plan

import "strings"

// gitSetting is one setting of a git configuration: key is section.name, or section.subsection.name, in lower case but for the
// subsection.
type gitSetting struct{ key, value string }

// gitSettings reads the settings of a git configuration file. What git would refuse ends it.
func gitSettings(text string) (list []gitSetting) {
	section := ""
	for text != "" {
		text = strings.TrimLeft(text, " \t\r\n\ufeff")
		switch {
		case text == "":
		case text[0] == '#' || text[0] == ';':
			_, text, _ = strings.Cut(text, "\n")
		case text[0] == '[':
			var ok bool
			if section, text, ok = gitSection(text[1:]); !ok {
				return list
			}
		default:
			n := 0
			for n < len(text) && (isAlnum(text[n]) || text[n] == '-') {
				n++
			}
			if n == 0 {
				return list
			}
			key := section + "." + strings.ToLower(text[:n])
			text = strings.TrimLeft(text[n:], " \t")
			value := "true" // a name alone
			if strings.HasPrefix(text, "=") {
				value, text = gitValue(text[1:])
			}
			list = append(list, gitSetting{key, value})
		}
	}
	return list
}

func isAlnum(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// gitSection reads what follows the '[' of a section.
func gitSection(text string) (section, rest string, ok bool) {
	end := strings.IndexAny(text, "]\"\n")
	if end < 0 || text[end] == '\n' {
		return "", "", false
	}
	section = strings.ToLower(strings.TrimSpace(text[:end]))
	if text[end] == ']' {
		return section, text[end+1:], true
	}
	sub := []byte{}
	for i := end + 1; i < len(text); i++ {
		switch text[i] {
		case '\n':
			return "", "", false
		case '"':
			rest, ok = strings.CutPrefix(strings.TrimLeft(text[i+1:], " \t"), "]")
			return section + "." + string(sub), rest, ok
		case '\\':
			if i++; i == len(text) {
				return "", "", false
			}
		}
		sub = append(sub, text[i])
	}
	return "", "", false
}

// gitValue reads a value to the end of its line, and of those that it goes on in.
func gitValue(text string) (value, rest string) {
	var out []byte
	quoted, kept := false, 0 // space at the end does not count, but in quotes
	text = strings.TrimLeft(text, " \t")
	i := 0
	for ; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\n':
			return string(out[:kept]), text[i+1:]
		case c == '"':
			quoted = !quoted
			kept = len(out)
			continue
		case !quoted && (c == '#' || c == ';'):
			_, rest, _ = strings.Cut(text[i:], "\n")
			return string(out[:kept]), rest
		case c == '\\' && i+1 < len(text):
			i++
			switch text[i] {
			case '\r':
				continue
			case '\n':
				continue
			case 'n':
				c = '\n'
			case 't':
				c = '\t'
			case 'b':
				c = '\b'
			default:
				c = text[i]
			}
			out = append(out, c)
			kept = len(out)
			continue
		case c == '\r' && i+1 < len(text) && text[i+1] == '\n':
			continue
		}
		out = append(out, c)
		if quoted || c != ' ' && c != '\t' {
			kept = len(out)
		}
	}
	return string(out[:kept]), ""
}
