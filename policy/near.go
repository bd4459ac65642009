package policy

// nearest returns the setting whose variable suffix (or flag) is spelt most like word, nil when none is within two
// letters. Letter case does not count. The other of the two names is known as well, but only exactly: people write
// READ for READABLE and --writable for --write.
func nearest(word string, variable bool) *setting {
	word = lower(word)
	var best *setting
	least := tooFar
	for i := range table {
		t := &table[i]
		if t.suffix == "" {
			continue
		}
		name, other := t.flag, lower(t.suffix)
		if variable {
			name, other = other, name
		}
		d := distance(word, name)
		if d > 0 && word == other {
			d = 1
		}
		if d < least {
			best, least = t, d
		}
	}
	return best
}

const tooFar = 3

// distance is the Damerau-Levenshtein distance of a and b in bytes, or tooFar when it is more than two. A letter that
// was swapped with its neighbour is not changed once more.
func distance(a, b string) int {
	for d := range tooFar {
		if inChanges(a, b, d) {
			return d
		}
	}
	return tooFar
}

// inChanges tells whether d changes (insert, delete, replace, swap neighbours) are enough. It branches four ways for each
// change, so d must be small.
func inChanges(a, b string, d int) bool {
	for a != "" && b != "" && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	switch {
	case a == b:
		return true
	case d == 0 || len(a)-len(b) > d || len(b)-len(a) > d:
		return false
	case a == "" || b == "":
		return true // what is left is at most d letters
	}
	return inChanges(a[1:], b, d-1) || inChanges(a, b[1:], d-1) || inChanges(a[1:], b[1:], d-1) ||
		len(a) > 1 && len(b) > 1 && a[0] == b[1] && a[1] == b[0] && inChanges(a[2:], b[2:], d-1)
}
