//go:build !linux

package manifest

// There is no cage on this system, and so nothing that a run in one could see.
func architecture() string         { return "" }
func deviceNumber(p string) string { return "" }
