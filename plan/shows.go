package plan

import "github.com/selfcage/selfcage/internal/hostfs"

// ShownAnyway lists directories that a run sees although nobody grants them: the programs and libraries of the system, and
// the working directory f.Dir, unless that is the home or holds it, another broad root, or a place that the cage has for
// itself.
func ShownAnyway(f Facts) (dirs []string) {
	for _, e := range runtimeDirs {
		dirs = append(dirs, e.path)
	}
	if f.Dir == "" || f.Dir == "/" || privatePlace(f.Dir) || hostfs.Within(f.Dir, "/proc") || hostfs.Within(f.Dir, "/dev") {
		return dirs
	}
	if _, hidden := newBuilder(f, Request{}).tooMuch(f.Dir); !hidden {
		dirs = append(dirs, f.Dir)
	}
	return dirs
}
