package plan

import (
	"strconv"

	"github.com/selfcage/selfcage/binds"
)

// Data is content that bwrap reads from a descriptor.
type Data struct {
	Name    string // for messages: the target, or "seccomp filter"
	Content []byte
}

// Data lists what Argv needs descriptors for, in the order in which Argv asks for them.
func (p *Plan) Data() []Data {
	var ds []Data
	for _, m := range p.Mounts {
		if m.Kind == binds.File || m.Kind == binds.Sealed {
			ds = append(ds, Data{m.Target, m.Data})
		}
	}
	if p.Filter != nil {
		ds = append(ds, Data{"seccomp filter", p.Filter})
	}
	return ds
}

// Argv renders the plan as bubblewrap's options, without the command. fd gives the descriptor number for the i-th
// element of Data. Only options that bubblewrap 0.8.0 has are used, and none of the -try forms: what is missing was
// left out by Build, with its reason.
func (p *Plan) Argv(fd func(i int) int) []string {
	a := make([]string, 0, 32+3*len(p.Env)+4*len(p.Mounts))
	a = append(a, "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts")
	if !p.Namespaces.ShareCgroup {
		a = append(a, "--unshare-cgroup")
	}
	if !p.Namespaces.ShareNet {
		a = append(a, "--unshare-net")
	}
	// Capabilities: bwrap keeps those of uid 0, and an ordinary user has none to lose.
	a = append(a, "--die-with-parent", "--cap-drop", "ALL", "--clearenv")
	for _, v := range p.Env {
		a = append(a, "--setenv", v.Name, v.Value)
	}
	next := 0
	data := func() string {
		n := strconv.Itoa(fd(next))
		next++
		return n
	}
	for _, m := range p.Mounts {
		a = appendMount(a, m, data)
	}
	if p.Filter != nil {
		a = append(a, "--seccomp", data())
	}
	return append(a, "--chdir", p.Dir)
}

func appendMount(a []string, m binds.Mount, data func() string) []string {
	perms := func() { a = append(a, "--perms", "0"+strconv.FormatUint(uint64(m.Perm), 8)) }
	switch m.Kind {
	case binds.ReadOnly:
		return append(a, "--ro-bind", m.Source, m.Target)
	case binds.ReadWrite:
		return append(a, "--bind", m.Source, m.Target)
	case binds.Device:
		return append(a, "--dev-bind", m.Source, m.Target)
	case binds.Tmpfs:
		perms()
		if m.Size > 0 {
			a = append(a, "--size", strconv.FormatInt(m.Size, 10))
		}
		return append(a, "--tmpfs", m.Target)
	case binds.Proc:
		return append(a, "--proc", m.Target)
	case binds.Dev:
		return append(a, "--dev", m.Target)
	case binds.Dir:
		perms()
		return append(a, "--dir", m.Target)
	case binds.Symlink:
		return append(a, "--symlink", m.Source, m.Target)
	case binds.File:
		perms()
		return append(a, "--file", data(), m.Target)
	case binds.Sealed:
		perms()
		return append(a, "--ro-bind-data", data(), m.Target)
	case binds.RemountRO:
		return append(a, "--remount-ro", m.Target)
	}
	panic("plan: mount of unknown kind at " + m.Target)
}

// Operands is the command line without its name.
func (p *Plan) Operands() []string {
	if len(p.Args) == 0 {
		return nil
	}
	return p.Args[1:]
}

// Environ is the environment inside in the form of os.Environ.
func (p *Plan) Environ() []string {
	es := make([]string, len(p.Env))
	for i, v := range p.Env {
		es[i] = v.Name + "=" + v.Value
	}
	return es
}
