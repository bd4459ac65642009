// Package toolchain finds what a program needs beside itself: for now the source checkout that a directory is part of.
// It is pure over the host's file system.
package toolchain

import (
	"io/fs"
	"strings"

	"github.com/selfcage/selfcage/internal/hostfs"
)

// Checkout returns the root of the version-controlled checkout that dir is part of, or dir itself, and the
// directories outside of it that git needs: a linked worktree and a submodule keep theirs elsewhere. dir must be free
// of links.
func Checkout(host *hostfs.View, dir string) (root string, extra []string) {
	for d := dir; d != "/"; d = hostfs.Parent(d) {
		for _, vcs := range []string{".git", ".hg", ".jj", ".svn"} {
			fi, err := host.Lstat(hostfs.Join(d, vcs))
			if err != nil {
				continue
			}
			if vcs == ".git" && !fi.IsDir() {
				extra = gitDirs(host, d, fi)
			}
			return d, extra
		}
	}
	return dir, nil
}

// gitDirs reads the pointer file .git of a worktree or submodule at root: the git directory it names and, for a
// worktree, the repository's common one.
func gitDirs(host *hostfs.View, root string, fi fs.FileInfo) (dirs []string) {
	if !fi.Mode().IsRegular() {
		return nil
	}
	text, ok := pointer(host, hostfs.Join(root, ".git"))
	if !ok {
		return nil
	}
	text, ok = strings.CutPrefix(text, "gitdir:")
	if !ok {
		return nil
	}
	gitDir, err := host.Walk(hostfs.Abs(strings.TrimSpace(text), root))
	if err != nil || !gitDir.Info.IsDir() {
		return nil
	}
	dirs = []string{gitDir.Path}
	if text, ok := pointer(host, hostfs.Join(gitDir.Path, "commondir")); ok {
		if common, err := host.Walk(hostfs.Abs(text, gitDir.Path)); err == nil && common.Info.IsDir() {
			dirs = append(dirs, common.Path)
		}
	}
	return dirs
}

// pointer reads a file of one line. git's own limit for .git files is a path; anything longer is not one.
func pointer(host *hostfs.View, p string) (string, bool) {
	fi, err := host.Lstat(p)
	if err != nil || !fi.Mode().IsRegular() || fi.Size() > 1<<14 {
		return "", false
	}
	data, err := host.ReadFile(p)
	return strings.TrimRight(string(data), "\r\n"), err == nil
}
