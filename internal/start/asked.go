package start

import (
	"os"
	"strings"

	"github.com/selfcage/selfcage/binds"
	"github.com/selfcage/selfcage/internal/hostfs"
	"github.com/selfcage/selfcage/internal/refusal"
	"github.com/selfcage/selfcage/plan"
	"github.com/selfcage/selfcage/policy"
	"github.com/selfcage/selfcage/toolchain"
)

// sources reads the variables and what the program's author said.
func (p Program) sources(environ []string) (policy.Sources, error) {
	fromEnv, err := policy.FromEnv(policy.Prefix(p.Name), environ)
	if err != nil {
		return policy.Sources{}, err
	}
	options, err := p.Options.Validate()
	return policy.Sources{Flags: p.Flags, Env: fromEnv, Options: options, Dir: workDir()}, err
}

// Asked is what holds for this run: flags, variables, the policy file and the program's own options, then what recipes
// take away. A mode off or disabled from a flag or a variable is stronger than any policy, which is then not even read.
func (p Program) Asked(environ []string) (policy.Effective, error) {
	src, err := p.sources(environ)
	if err != nil {
		return policy.Effective{}, err
	}
	said := policy.Merge(src.Flags, src.Env, src.Options)
	switch mode := policy.Merge(src.Flags, src.Env).Mode.Value; {
	case mode == string(policy.Off), mode == string(policy.Disabled), said.Mode.Value == "" && said.Policy.Value == "":
		if e := said.RequireApproved; e.Value == "1" && said.Mode.Value != "" {
			return policy.Effective{}, &refusal.Error{What: "cannot tell what was approved", Object: e.By, Cause: "mode " + mode + " (" + said.Mode.By + ") does not even read the policy",
				Hint: "leave one of the two out"}
		}
		return policy.Effective{Settings: said}, nil
	}
	o := policy.FileOptions{Tokens: p.tokens(said, environ, src.Dir)}
	if said.Policy.Value != "" {
		f, err := p.load(said.Policy, src.Dir, o)
		if err != nil {
			return policy.Effective{}, err
		}
		src.Policy = &f
	}
	o.Beside = true
	for _, e := range said.Recipe {
		f, err := p.load(e, src.Dir, o)
		if err != nil {
			return policy.Effective{}, err
		}
		src.Recipes = append(src.Recipes, f)
	}
	if len(src.Recipes) > 0 {
		src.Shown = plan.ShownAnyway(plan.Facts{Host: hostfs.OS{}, Env: environ, Dir: src.Dir, UID: os.Getuid(), GID: os.Getgid()})
	}
	return policy.Assemble(src)
}

func (p Program) load(e policy.Entry, dir string, o policy.FileOptions) (policy.File, error) {
	if p.Load == nil {
		return policy.File{}, notBuiltIn(e, "Options.Policy: policyfile.Load")
	}
	return p.Load(e.Abs(dir), o)
}

// tokens are the places that a policy file can name. One without a value here is an error only where a file uses it.
func (p Program) tokens(s policy.Settings, environ []string, dir string) map[string]string {
	home := plan.Getenv(environ, "HOME")
	t := map[string]string{"cwd": dir, "home": home, "exe_dir": p.exeDir(environ, dir)}
	if dir != "" {
		if root, _ := toolchain.Checkout(hostfs.New(hostfs.OS{}), dir); isCheckout(root) {
			t["repo"] = root
		}
	}
	// As huggingface_hub finds it.
	switch cache := plan.Getenv(environ, "XDG_CACHE_HOME"); {
	case plan.Getenv(environ, "HF_HOME") != "":
		t["hf_cache"] = plan.Getenv(environ, "HF_HOME")
	case cache != "":
		t["hf_cache"] = cache + "/huggingface"
	case home != "":
		t["hf_cache"] = home + "/.cache/huggingface"
	}
	for name, path := range p.Tokens {
		t[name] = path
	}
	for i := len(s.Define) - 1; i >= 0; i-- { // the first is the strongest
		name, path, _ := strings.Cut(s.Define[i].Value, "=")
		t[name] = path
	}
	return t
}

func isCheckout(dir string) bool {
	for _, vcs := range toolchain.Marks {
		if _, err := os.Lstat(hostfs.Join(dir, vcs)); err == nil {
			return true
		}
	}
	return false
}

// exeDir is the directory of the program that the run is about, without links: of the command, or of this program.
func (p Program) exeDir(environ []string, dir string) string {
	host := hostfs.New(hostfs.OS{})
	paths := []string{p.Runs}
	switch {
	case p.Runs == "":
		exe, err := os.Executable()
		if err != nil {
			return ""
		}
		paths = []string{exe}
	case !strings.Contains(p.Runs, "/"):
		paths = nil
		for d := range strings.SplitSeq(plan.Getenv(environ, "PATH"), ":") {
			paths = append(paths, hostfs.Join(d, p.Runs))
		}
	}
	for _, path := range paths {
		if r, err := host.Walk(hostfs.Abs(path, dir)); err == nil && r.Info.Mode().IsRegular() && r.Info.Mode().Perm()&0o111 != 0 {
			return hostfs.Parent(r.Path)
		}
	}
	return ""
}

// pathLists are the variables that list paths, split at ':', with the flags that take one path as it is.
var pathLists = [...]struct{ suffix, flag string }{
	{"READABLE", "--read"}, {"WRITABLE", "--write"}, {"HIDE", "--hide"}, {"PROTECT", "--protect"}, {"RECIPE", "--recipe"},
}

// oneOrTwo refuses a list in which neighbours are, together, one path that exists: it was meant, perhaps, and a grant
// of its halves is not what anybody wants.
func oneOrTwo(prefix string, environ []string, dir string) error {
	for _, list := range pathLists {
		name := prefix + list.suffix
		parts := strings.Split(plan.Getenv(environ, name), ":")
		for i := range parts {
			for j := i + 2; j <= len(parts) && parts[i] != ""; j++ {
				whole := strings.Join(parts[i:j], ":")
				if strings.HasSuffix(whole, ":") {
					continue // an empty element, which is ignored
				}
				if _, err := os.Lstat(hostfs.Abs(whole, dir)); err == nil {
					return &refusal.Error{
						What: "wrong value", Object: name,
						Cause: plan.Quote(whole) + " is a path that exists, and the list is split at each ':'",
						Hint:  "a path that holds ':' can be named by " + list.flag + " only, not by a variable",
					}
				}
			}
		}
	}
	return nil
}

// rewrite gives the variables that list paths the same meaning in every directory, so that a program started from
// another one asks for the same.
func rewrite(prefix string, environ []string, dir string) (vars []plan.Var, err error) {
	for _, list := range pathLists {
		name := prefix + list.suffix
		value := plan.Getenv(environ, name)
		if value == "" {
			continue
		}
		parts := strings.Split(value, ":")
		for i, part := range parts {
			if part == "" || strings.HasPrefix(part, "/") {
				continue
			}
			if strings.Contains(dir, ":") {
				return nil, &refusal.Error{
					What: "wrong value", Object: name,
					Cause: "it holds a relative path, and the working directory " + plan.Quote(dir) + " contains ':'",
					Hint:  "write the path in full with " + list.flag,
				}
			}
			parts[i] = hostfs.Abs(part, dir)
		}
		if v := strings.Join(parts, ":"); v != value {
			vars = append(vars, plan.Var{Name: name, Value: v, Reason: binds.Reason{By: "base", Why: "its relative paths are made absolute"}})
		}
	}
	if name := prefix + "POLICY"; dir != "" {
		if value := plan.Getenv(environ, name); value != "" && value[0] != '/' {
			vars = append(vars, plan.Var{Name: name, Value: hostfs.Abs(value, dir), Reason: binds.Reason{By: "base", Why: "made absolute"}})
		}
	}
	return vars, nil
}
