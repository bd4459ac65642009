//go:build !linux || (!amd64 && !arm64)

package rawclone

// Supported says whether this build has the package's functions.
const Supported = false
