package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// view is what a process can see of the machine and reach. Each is tried, not deduced.
type view struct {
	host      string
	pid       int
	processes int
	home      string
	homeSees  int // entries
	ssh       bool
	tmpSees   int
	dir       string
	writable  bool
}

func look(home, dir string) view {
	host, _ := os.Hostname()
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	_, err := os.Lstat(filepath.Join(home, ".ssh"))
	return view{
		host:      host,
		pid:       os.Getpid(),
		processes: processes(names("/proc")),
		home:      home,
		homeSees:  len(names(home)),
		ssh:       err == nil,
		tmpSees:   len(names("/tmp")),
		dir:       dir,
		writable:  writable(dir),
	}
}

func (v view) String() string {
	ssh := "no .ssh"
	if v.ssh {
		ssh = ".ssh is visible"
	}
	access := "read-only"
	if v.writable {
		access = "writable"
	}
	var b strings.Builder
	b.WriteString("what I can see\n")
	fmt.Fprintf(&b, "  host name   %s\n", v.host)
	fmt.Fprintf(&b, "  my pid      %d\n", v.pid)
	fmt.Fprintf(&b, "  processes   %d\n", v.processes)
	fmt.Fprintf(&b, "  home        %s: %s, %s\n", v.home, count(v.homeSees), ssh)
	fmt.Fprintf(&b, "  /tmp        %s\n", count(v.tmpSees))
	fmt.Fprintf(&b, "  sources     %s: %s\n", v.dir, access)
	return b.String()
}

func count(n int) string {
	if n == 1 {
		return "1 entry"
	}
	return strconv.Itoa(n) + " entries"
}

// names is empty for a directory that is not there or cannot be read: nothing can be seen of it.
func names(dir string) []string {
	entries, _ := os.ReadDir(dir)
	list := make([]string, 0, len(entries))
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

// processes counts the names that are numbers, as in /proc.
func processes(names []string) int {
	n := 0
	for _, name := range names {
		if _, err := strconv.Atoi(name); err == nil {
			n++
		}
	}
	return n
}

// writable makes a file and removes it again: permission bits say nothing of a read-only mount.
func writable(dir string) bool {
	f, err := os.CreateTemp(dir, ".sweep-")
	if err != nil {
		return false
	}
	f.Close()
	os.Remove(f.Name())
	return true
}
