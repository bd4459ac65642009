package env

import "strings"

// listed returns the rule by which the clean level lets a name through, or "".
func (s *scrubber) listed(name string) string {
	switch {
	case runtimeName(name) && !s.control(name):
		return ruleRuntime
	case launcher(name):
		return ruleLauncher
	case cageSetting(name):
		return ruleSetting
	case contains(s.rules.Allow, name):
		return ruleAllow
	}
	return ""
}

// control tells whether a value has a control character. No terminal, language or user is called so, and who splits the
// output of env(1) at its lines would find a variable in it that nobody let through.
func (s *scrubber) control(name string) bool {
	value, _ := s.get(name)
	return strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 })
}

// unlisted is the rule that drops a name which is not listed. What it says of the name is what to think of before
// listing it.
func unlisted(name string) string {
	const rule = "not on the allowlist"
	if runtimeName(name) {
		return "its value has a control character, as no " + ruleRuntime + "'s has"
	}
	if ChangesExecution(name) {
		return rule + ": changes what programs execute"
	}
	if family := vendorFamily(name); family != "" {
		return rule + ": may hold a credential of " + family
	}
	return rule
}

// runtimeName: who, in which language and time, on which terminal. These hold no path but PATH and SHELL.
func runtimeName(name string) bool {
	switch name {
	case "PATH", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ",
		"TERM", "COLORTERM", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "LINES":
		return true
	}
	return strings.HasPrefix(name, "LC_")
}

// launcher variables tell an MPI rank who it is; without them each believes that it is alone.
func launcher(name string) bool {
	for _, p := range launcherPrefixes {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

// launcherPrefixes: Slurm, Open MPI, PMIx, PMI, MPICH's Hydra, PBS, LSF, Flux.
var launcherPrefixes = [...]string{"SLURM_", "OMPI_", "PMIX_", "PMI_", "HYDRA_", "PBS_", "LSB_", "FLUX_"}

// cageSetting: a grandchild that has a cage of its own asks for it by these, and its answer must not change because it
// runs inside. Names are known ones, whatever the prefix: PAYPAL_SANDBOX_ACCOUNT is nobody's setting.
func cageSetting(name string) bool {
	const infix = "SANDBOX_"
	i := strings.LastIndex(name, infix)
	if i < 0 || i > 0 && name[i-1] != '_' {
		return false
	}
	for _, known := range cageSettings {
		if name[i+len(infix):] == known {
			return true
		}
	}
	return false
}

// cageSettings are the variables of package policy, which imports this one; a test compares.
var cageSettings = [...]string{"MODE", "READABLE", "WRITABLE", "NETWORK", "HOSTS", "GPU", "NPU", "DEVICE", "CACHE", "ENV",
	"SECRET", "LIMIT", "POLICY", "BWRAP", "REPORT", "QUIET", "HIDE", "PROTECT", "TMP_SIZE", "RECIPE", "DEFINE",
	"REQUIRE_APPROVED", "MANIFEST"}

// neverListed: Lemonade keeps its API keys and the paths of its stores here, under names of any shape. The settings of a
// cage whose host program is called so are none of these.
func neverListed(name string) bool {
	return strings.HasPrefix(strings.ToUpper(name), "LEMONADE_") && !cageSetting(name)
}

// ChangesExecution says whether loaders, shells, interpreters, compilers or git load or run something because the variable
// name says so: LD_PRELOAD, BASH_ENV, PYTHONPATH, GIT_SSH. It knows the usual ones and no others.
func ChangesExecution(name string) bool {
	switch name {
	case "GCONV_PATH", "BASH_ENV", "ENV", "CDPATH", "GLOBIGNORE", "PROMPT_COMMAND", "IFS", "SHELLOPTS", "BASHOPTS", "PS4", "ZDOTDIR",
		"PYTHONSTARTUP", "PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", "NODE_OPTIONS", "NODE_PATH", "PERL5OPT", "PERL5LIB", "PERL5DB",
		"RUBYOPT", "RUBYLIB", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "CLASSPATH", "LUA_INIT", "LUA_PATH", "LUA_CPATH",
		"DOTNET_STARTUP_HOOKS", "GOFLAGS", "GOENV", "GOTOOLCHAIN", "RUSTC_WRAPPER", "RUSTFLAGS", "MAKEFLAGS", "EDITOR", "VISUAL", "PAGER":
		return true
	}
	for _, p := range executionPrefixes {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

var executionPrefixes = [...]string{"LD_", "DYLD_", "GIT_", "GEM_", "BASH_FUNC_", "LUA_INIT_", "LUA_PATH_", "LUA_CPATH_"}

// vendorFamily returns the first word of a name that vendors share between settings and credentials, or "".
func vendorFamily(name string) string {
	first, _, more := strings.Cut(strings.ToUpper(name), "_")
	if !more {
		return ""
	}
	if vendor(first) {
		return first
	}
	switch first {
	// Words with other meanings, too: no reason to call a key of theirs a secret.
	case "ARM", "CLOUDSDK", "OCI", "ALIBABA", "CF", "GH", "HUGGING", "CARGO", "OP", "VAULT", "CONSUL", "NOMAD":
		return first
	}
	return ""
}
