// Package toolchain finds what a program needs beside itself: the interpreters, libraries and tools that it starts, the
// source trees that they read, and where each keeps its data. A run inside a cage must use the same ones as outside; where
// one is missing most tools take another without a word.
//
// It is pure over the host's file system and the environment.
package toolchain

import (
	"io/fs"
	"strings"

	"github.com/selfcage/selfcage/internal/hostfs"
)

// Marks are the names by which a directory shows that it is the root of a version-controlled checkout.
var Marks = [...]string{".git", ".hg", ".jj", ".svn"}

// Checkout returns the root of the version-controlled checkout that dir is part of, or dir itself, and the
// directories outside of it that git needs: a linked worktree and a submodule keep theirs elsewhere. Each is an existing
// git directory that names the checkout back; still the caller must judge it before showing it. dir must be free of
// links.
func Checkout(host *hostfs.View, dir string) (root string, extra []hostfs.Resolved) {
	for d := dir; d != "/"; d = hostfs.Parent(d) {
		for _, vcs := range Marks {
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

// namesBack says whether a git directory outside a checkout says that it is that checkout's: a worktree's by its file
// gitdir, a submodule's by core.worktree. Otherwise any checkout could have any repository shown by naming it.
func namesBack(host *hostfs.View, gitDir, root string) bool {
	leadsTo := func(text, want string) bool {
		r, err := host.Walk(hostfs.Abs(text, gitDir))
		return err == nil && r.Path == want
	}
	if text, ok := pointer(host, hostfs.Join(gitDir, "gitdir")); ok {
		return leadsTo(text, hostfs.Join(root, ".git"))
	}
	fi, err := host.Lstat(hostfs.Join(gitDir, "config"))
	if err != nil || !fi.Mode().IsRegular() || fi.Size() > 1<<20 {
		return false
	}
	config, _ := host.ReadFile(hostfs.Join(gitDir, "config"))
	for line := range strings.Lines(string(config)) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if ok && strings.EqualFold(strings.TrimSpace(key), "worktree") && leadsTo(strings.Trim(strings.TrimSpace(value), `"`), root) {
			return true
		}
	}
	return false
}

// gitDirs returns the git directory that root/.git leads to, which is a link or the pointer file of a worktree or
// submodule, and for a worktree the repository's common one.
func gitDirs(host *hostfs.View, root string, fi fs.FileInfo) (dirs []hostfs.Resolved) {
	target := hostfs.Join(root, ".git")
	if fi.Mode()&fs.ModeSymlink == 0 {
		text, ok := pointer(host, target)
		if !ok {
			return nil
		}
		// One space, and every byte after it is the path's, as git reads it.
		if text, ok = strings.CutPrefix(text, "gitdir: "); !ok {
			return nil
		}
		target = hostfs.Abs(text, root)
	}
	gitDir, ok := gitDirectory(host, target)
	if !ok || !namesBack(host, gitDir.Path, root) {
		return nil
	}
	dirs = append(dirs, gitDir)
	if text, ok := pointer(host, hostfs.Join(gitDir.Path, "commondir")); ok {
		if common, ok := gitDirectory(host, hostfs.Abs(text, gitDir.Path)); ok {
			dirs = append(dirs, common)
		}
	}
	return dirs
}

// gitDirectory resolves p if it is what git takes for a git directory (is_git_directory in its setup.c). Anything else
// would show a directory that only a line in some file asks for.
func gitDirectory(host *hostfs.View, p string) (r hostfs.Resolved, ok bool) {
	r, err := host.Walk(p)
	if err != nil || !r.Info.IsDir() || r.Path == "/" {
		return r, false
	}
	has := func(name string) bool { return host.Exists(hostfs.Join(r.Path, name)) }
	return r, has("HEAD") && (has("commondir") || has("objects") && has("refs"))
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
