package policyfile

import "strings"

// Markdown is the reference of all keys and tokens, from the tables that files are read by.
func Markdown() string {
	var b strings.Builder
	b.WriteString("| key | value | narrow | meaning | example |\n|---|---|---|---|---|\n")
	for _, k := range keys() {
		narrow := ""
		if k.narrow {
			narrow = "yes"
		}
		b.WriteString("| `" + k.name + "` | " + k.value + " | " + narrow + " | " + k.meaning + " | `" + k.example + "` |\n")
	}
	b.WriteString("\n| token | stands for |\n|---|---|\n")
	for _, t := range known {
		b.WriteString("| `{" + t.name + "}` | " + t.what + " |\n")
	}
	return b.String()
}
