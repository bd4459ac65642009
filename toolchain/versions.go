package toolchain

import (
	"strings"

	"github.com/selfcage/selfcage/internal/hostfs"
)

// mise keeps everything below HOME: its shims are links to mise, which looks by what name it was started and for the
// versions that the nearest configuration asks for. Where it finds none it would install one.
func (f *finder) mise() {
	dir := f.env["MISE_DATA_DIR"]
	if dir == "" {
		dir = f.data("mise")
	}
	if !f.uses(dir) && f.env["MISE_DATA_DIR"] == "" && f.env["MISE_SHELL"] == "" {
		return
	}
	dir, ok := f.dataDir("MISE_DATA_DIR", dir, "mise's versions: without them it would install others")
	if !ok {
		return
	}
	f.installLinks(dir + "/installs")
	f.dataDir("MISE_STATE_DIR", f.state("mise"), "which configurations are trusted")
	if conf := f.config("mise/config.toml"); f.env["MISE_GLOBAL_CONFIG_FILE"] == "" && f.env["MISE_CONFIG_DIR"] == "" {
		if text, ok := f.small(conf); ok && !holdsSecret(text) {
			if _, ok := f.tree(conf, "the versions that mise takes by default"); ok {
				f.pin("MISE_GLOBAL_CONFIG_FILE", conf, "the versions that mise takes by default")
			}
		}
	}
	f.upward("which versions: without it others run", true, "mise.toml", ".mise.toml", "mise.local.toml", ".config/mise.toml", ".tool-versions")
}

// installLinks follows the links that stand in the place of installed versions: installs/go/1.22 -> /usr/local/go.
func (f *finder) installLinks(dir string) {
	real, list := f.entries(dir)
	for _, e := range list {
		if e.IsDir() {
			f.scanLinks(hostfs.Join(real, e.Name()))
		}
	}
}

// asdf's shims look for the nearest .tool-versions, then for the one in HOME.
func (f *finder) asdf() {
	dir := f.toolDir("ASDF_DATA_DIR", ".asdf")
	if dir == "" {
		return
	}
	f.dataDir("ASDF_DATA_DIR", dir, "asdf's versions: without them the system's programs run")
	if p := f.env["ASDF_DIR"]; p != "" {
		f.tree(p, "asdf itself")
	}
	f.installLinks(dir + "/installs")
	f.upward("which versions: without it others run", false, ".tool-versions")
	for _, name := range [...]string{".tool-versions", ".asdfrc"} {
		if p := f.inHome(name); p != "" {
			f.atHome(p, name, "asdf looks for it in HOME")
		}
	}
}

// java shows the JDK that is run and what lies outside of it: Debian keeps conf and lib/security in /etc, one directory
// for each version, and without them any use of security classes fails, or the list of authorities is silently empty.
func (f *finder) java() {
	if p, ok := f.which("java"); ok {
		if r, err := f.walk(p); err == nil {
			f.installed(p, "java")
			if root := prefixOf(hostfs.Parent(r.Path)); root != "" && root != "/usr" && root != "/usr/local" {
				f.jdk(root)
			}
		}
	}
	if p := f.env["JAVA_HOME"]; usable(p) {
		if r, err := f.walk(p); err == nil {
			f.jdk(r.Path)
		}
	}
	if dir := f.toolDir("SDKMAN_DIR", ".sdkman"); dir != "" {
		f.dataDir("SDKMAN_DIR", dir, "SDKMAN's candidates: without them the system's programs run")
	}
	if dir := f.toolDir("JENV_ROOT", ".jenv"); dir != "" {
		f.dataDir("JENV_ROOT", dir, "jenv's versions")
		f.upward("which java: without it another version runs", false, ".java-version")
	}
}

func (f *finder) jdk(root string) {
	if f.done["jdk "+root] {
		return
	}
	f.done["jdk "+root] = true
	for _, name := range [...]string{"conf", "conf/security/java.security", "lib/security", "lib/security/cacerts", "jre/lib/security/java.security", "jre/lib/security/cacerts"} {
		p := root + "/" + name
		r, err := f.walk(p)
		if err != nil || len(r.Links) == 0 || !hostfs.Within(r.Path, "/etc") {
			continue
		}
		const why = "the JDK's configuration: TLS and other uses of security classes fail without it"
		if rest, ok := strings.CutPrefix(r.Path, "/etc/"); ok && strings.Contains(rest, "java") && !f.there(p) {
			dir, _, _ := strings.Cut(rest, "/")
			if strings.HasPrefix(dir, "java") {
				f.tree("/etc/"+dir, why)
			}
		}
		f.tree(p, why)
	}
}

// ccache starts empty below another HOME, and nothing says so. A directory that cannot be written makes it fail, so the
// earlier results are not shown unless they were granted; its settings are.
func (f *finder) ccache() {
	used := f.launches("ccache") || f.commands["ccache"]
	for _, d := range f.path {
		used = used || strings.HasSuffix(d.real, "/ccache") || strings.HasSuffix(d.real, "/ccache/bin") || strings.HasSuffix(d.real, "/lib64/ccache")
	}
	dir := f.cachePath("ccache", "CCACHE_DIR", "", "")
	if !used && !f.there(dir) {
		return
	}
	for _, conf := range [...]string{f.config("ccache/ccache.conf"), dir + "/ccache.conf"} {
		if f.env["CCACHE_CONFIGPATH"] == "" && f.is(conf) {
			if _, ok := f.tree(conf, "ccache's settings"); ok {
				f.pin("CCACHE_CONFIGPATH", conf, "ccache's settings")
				break
			}
		}
	}
	f.cold("ccache")
}

// launches says whether the compilers that variables name are started by the program called name.
func (f *finder) launches(name string) bool {
	for _, v := range [...]string{"CC", "CXX", "CMAKE_C_COMPILER_LAUNCHER", "CMAKE_CXX_COMPILER_LAUNCHER", "RUSTC_WRAPPER", "CARGO_BUILD_RUSTC_WRAPPER"} {
		for _, w := range strings.FieldsFunc(f.env[v], func(r rune) bool { return r == ' ' || r == ';' }) {
			if base(w) == name {
				return true
			}
		}
	}
	return false
}

// sccache has a server do the work, and the server does it where it was started.
func (f *finder) sccache() {
	if !f.launches("sccache") {
		return
	}
	f.cold("sccache")
	f.note("a server of sccache's that runs already compiles outside of this cage: end it first (sccache --stop-server), " +
		"or set SCCACHE_SERVER_PORT to a port of this run's own")
}

// distcc reads below HOME on which hosts it may compile, or in /etc; without them it compiles on this one. The directory
// itself holds locks and must be writable, so it is the cage's own.
func (f *finder) distcc() {
	if _, ok := f.which("distcc"); !ok || f.env["DISTCC_HOSTS"] != "" {
		return
	}
	own := f.inHome(".distcc/hosts")
	if dir := f.env["DISTCC_DIR"]; dir != "" {
		own = dir + "/hosts"
	}
	text, _ := f.small(own)
	var hosts []string
	for _, l := range lines(text) {
		l, _, _ = strings.Cut(l, "#")
		hosts = append(hosts, strings.Fields(l)...)
	}
	if len(hosts) > 0 {
		f.pin("DISTCC_HOSTS", strings.Join(hosts, " "), own+" names them: without it distcc compiles on this host alone")
		return
	}
	f.tree("/etc/distcc/hosts", "on which hosts distcc may compile")
}

func (f *finder) ccacheDir() string {
	if v := f.env["CCACHE_DIR"]; v != "" {
		return v
	}
	if old := f.inHome(".ccache"); old != "" && f.is(old) {
		return old
	}
	return f.cache("ccache")
}

// gpu shows the toolkits by the names that programs have built in: wheels of PyTorch look in /opt/rocm whatever PATH says.
func (f *finder) gpu() {
	for _, p := range [...]string{"/usr/local/cuda", "/opt/rocm", "/opt/amdgpu"} {
		if _, err := f.View.Lstat(p); err == nil {
			f.installed(p, "programs have this name of the GPU's toolkit built in")
			if r, err := f.walk(p); err == nil && !f.shown(r.Path) {
				f.tree(p, "programs have this name of the GPU's toolkit built in")
			}
		}
	}
}

// modules shows environment-modules and Lmod themselves. What a module brought into the environment is found by the
// variables that it changed.
func (f *finder) modules() {
	for _, name := range [...]string{"MODULESHOME", "LMOD_PKG", "LMOD_DIR", "LMOD_ROOT", "LMOD_CMD", "MODULES_CMD"} {
		if p := f.env[name]; p != "" {
			f.installed(p, name+" names it: the module command")
		}
	}
	if f.env["MODULESHOME"] != "" || f.env["LMOD_PKG"] != "" {
		for _, p := range [...]string{"/etc/environment-modules", "/etc/lmod"} {
			if f.is(p) {
				f.tree(p, "settings of the module command")
			}
		}
	}
	for p := range strings.SplitSeq(f.env["_LMFILES_"], ":") {
		f.tree(p, "a module that is loaded")
	}
	if root := f.env["SPACK_ROOT"]; root != "" {
		f.tree(root, "SPACK_ROOT names it")
	}
}

// direnv remembers which .envrc is allowed by its path and content, in HOME.
func (f *finder) direnv() {
	if _, ok := f.which("direnv"); !ok {
		return
	}
	f.atHome(f.data("direnv/allow"), ".local/share/direnv/allow", "which .envrc is allowed: without it direnv says that it is blocked")
	f.upward("direnv reads it", false, ".envrc")
}
