package policy

import "strconv"

// File is what a policy file says, the files that it extends included. Each By is "policy NAME:LINE". Package policyfile
// makes one; a host program that carries its grants in code fills the same fields (seeds R37).
//
// It says nothing about what was not said: no mode means enforced and no network means none to whoever puts a policy in
// force, while a Network of "none" was said. That a value is here does not mean that it may be granted: credential roots and
// secret names are judged where the host is known.
type File struct {
	Settings Settings // never a Secret, a Bwrap, a Quiet, a Policy, a Recipe or a Define

	// Said has the keys of the file as they are spelt there, "read_paths" and so on: an empty list that was said narrows to
	// nothing, one that was not said leaves alone.
	Said []Entry

	// Narrow are the [narrow] tables, each with the few keys that a delta may have. They are to be applied after everything
	// else was added up. A recipe that a third party wrote is such a delta too, as a whole.
	Narrow []File

	// Files are the files that were read, the one that was asked for first, each before what it extends.
	Files []string
}

// FileOptions is what whoever reads a policy file has to know about the run.
type FileOptions struct {
	// Tokens are the absolute paths that {NAME} at the beginning of a path stands for. A name that is known without being
	// here, or whose value is empty, is an error only where a file uses it.
	Tokens map[string]string

	// Beside lets other members stand beside "sandbox": a recipe is somebody else's manifest, and the rest of it is none of
	// ours. What stands in them is not looked at.
	Beside bool
}

// ParseSize reads a number of bytes above 0: decimal digits, then nothing or K, M, G or T in powers of 1024, in upper or
// lower case.
func ParseSize(s string) (bytes int64, ok bool) {
	if s == "" {
		return 0, false
	}
	shift := 0
	switch s[len(s)-1] {
	case 'k', 'K':
		shift = 10
	case 'm', 'M':
		shift = 20
	case 'g', 'G':
		shift = 30
	case 't', 'T':
		shift = 40
	}
	digits := s
	if shift > 0 {
		digits = s[:len(s)-1]
	}
	if digits == "" || digits[0] == '+' {
		return 0, false
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n <= 0 || n > 1<<62>>shift {
		return 0, false
	}
	return n << shift, true
}

// Nearest returns the name that is spelt most like word, "" when none is within two letters. Letter case does not count,
// and of two that are equally near the first is returned.
func Nearest(word string, names []string) string {
	best, least := "", tooFar
	for _, n := range names {
		if d := distance(lower(word), lower(n)); d < least {
			best, least = n, d
		}
	}
	return best
}
