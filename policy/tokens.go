package policy

import "github.com/selfcage/selfcage/internal/hostfs"

// FutureTokens returns the token files in the clean absolute path p that do not exist yet: Subtract's for later.
func (r *Roots) FutureTokens(p string) (missing []string) {
	for _, c := range r.roots {
		if c.kind == tokenFile && c.real == "" && c.path != p && hostfs.Within(c.path, p) {
			missing = append(missing, c.path)
		}
	}
	return missing
}
