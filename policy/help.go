package policy

import "strings"

// Help returns the flags that FromFlags reads, one a line with two spaces before it, for a usage text.
func Help() string {
	width := 0
	for i := range table {
		width = max(width, len(table[i].spelling()))
	}
	var b strings.Builder
	for i := range table {
		t := &table[i]
		if t.suffix == "" {
			continue
		}
		b.WriteString("  " + t.spelling() + strings.Repeat(" ", width+2-len(t.spelling())) + t.help + t.laterNote() + "\n")
	}
	return b.String()
}

// Markdown returns the table of all settings, as the README has it, with variables that begin with prefix.
func Markdown(prefix string) string {
	var b strings.Builder
	b.WriteString("| variable | flag | meaning |\n|---|---|---|\n")
	for i := range table {
		t := &table[i]
		if t.suffix == "" {
			continue
		}
		b.WriteString("| `" + prefix + t.suffix + "` | `" + t.spelling() + "` | " + t.help + t.listNote() + t.laterNote() + " |\n")
	}
	return b.String()
}

func (t *setting) spelling() string {
	if t.value == "" {
		return "--" + t.flag
	}
	return "--" + t.flag + " " + t.value
}

// listNote says how a list is written, and how to name what the separator cannot.
func (t *setting) listNote() string {
	if t.sep == "" {
		return ""
	}
	note := "; in the variable a list separated by `" + t.sep + "`, the flag can be repeated"
	if t.path {
		note += " (and can name a path that contains `" + t.sep + "`)"
	}
	return note
}
