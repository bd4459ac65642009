//go:build linux && (amd64 || arm64)

package launch

import (
	"errors"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/selfcage/selfcage/internal/hostfs"
)

// watchMounts opens what tells of changes of the cage's mounts. Nothing inside may make or undo one, but the host can: where
// a file that something is mounted over is removed or replaced by a rename, as editors and git replace files, the kernel
// takes that mount away without a word, and what was hidden or read-only is it no more.
func (s *supervisor) watchMounts() {
	if s.lost == nil {
		return
	}
	fd, err := unix.Open("/proc/"+strconv.Itoa(s.prog)+"/mountinfo", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return // a program that may not be looked at; its mounts are not observed either
	}
	s.mountsFD = fd
}

// mountsChanged reports each mount of the plan that is gone, once. false: the cage is to end.
func (s *supervisor) mountsChanged() bool {
	there, err := s.mountPoints()
	if err != nil || len(there) == 0 {
		return true
	}
	for _, m := range s.plan.Mounts {
		if !m.Kind.Mounts() || there[m.Target] || s.gone[m.Target] {
			continue
		}
		if s.gone == nil {
			s.gone = make(map[string]bool)
		}
		s.gone[m.Target] = true
		if !s.lost(m.Target) {
			return false
		}
	}
	return true
}

func (s *supervisor) mountPoints() (map[string]bool, error) {
	if _, err := unix.Seek(s.mountsFD, 0, unix.SEEK_SET); err != nil {
		return nil, err
	}
	var text strings.Builder
	buf := make([]byte, 32<<10)
	for {
		n, err := unix.Read(s.mountsFD, buf)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if n == 0 {
			break
		}
		text.Write(buf[:n])
	}
	points := make(map[string]bool)
	for line := range strings.Lines(text.String()) {
		if f := strings.Fields(line); len(f) > 4 {
			points[hostfs.Unescape(f[4])] = true
		}
	}
	return points, nil
}
