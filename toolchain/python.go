package toolchain

import (
	"io/fs"
	"strconv"
	"strings"

	"github.com/selfcage/selfcage/internal/hostfs"
)

// inspect looks into an installation root for what leads out of it. The root itself is shown already.
func (f *finder) inspect(root string) {
	if f.starting {
		f.run["env "+root] = true
	}
	if f.inspected[root] || root == "/usr" || root == "/usr/local" || f.store(root) != "" {
		return
	}
	f.inspected[root] = true
	f.cover(root)
	by := f.by
	defer func() { f.by = by }()
	if f.has(root, "pyvenv.cfg") {
		if cfg, ok := f.small(hostfs.Join(root, "pyvenv.cfg")); ok {
			f.by = "toolchain/venv"
			f.venv(root, cfg)
			return
		}
	}
	if f.has(root, "conda-meta") {
		f.by = "toolchain/conda"
		f.condaEnv(root)
		f.coverEach(root+"/envs", "pip.conf", ".condarc", "condarc", "condarc.d")
	}
	if f.has(root, "lib") {
		if real, list := f.entries(hostfs.Join(root, "lib/node_modules")); len(list) > 0 {
			f.by = "toolchain/npm"
			f.moduleLinks(real, list)
		}
		if f.has(root, "jre") || f.has(root, "bin") && f.has(root+"/bin", "java") && f.exists(root, "lib/security") {
			f.by = "toolchain/java"
			f.jdk(root)
		}
	}
	if f.has(root, "versions") {
		f.by = "toolchain/versions"
		f.scanLinks(hostfs.Join(root, "versions"))
	}
}

// venv follows a virtual environment to the interpreter that it was made from: each link of its python, and the
// directory that pyvenv.cfg names, which need not be the same. uv names an alias there, a link to a directory; without
// the alias the interpreter "does not exist", with bin alone it takes the library of /usr and says nothing.
func (f *finder) venv(root, cfg string) {
	const why = "the interpreter of the virtual environment: without it there is none, or silently that of /usr"
	for _, key := range [...]string{"home", "executable", "base-executable", "base-prefix"} {
		p := setting(cfg, key)
		if !strings.HasPrefix(p, "/") {
			continue
		}
		p = f.resolve(p, "/")
		switch r, err := f.walk(p); {
		case err != nil:
		case !r.Info.IsDir():
			f.program(p, 1)
		case f.hasPython(r.Path) || f.has(r.Path, "bin") && f.hasPython(r.Path+"/bin"):
			f.installed(p, why)
		}
	}
	for _, name := range [...]string{"python", "python3"} {
		f.program(hostfs.Join(root, "bin/"+name), 1)
	}
	f.sites = append(f.sites, site{hostfs.Join(root, "lib"), root, f.by})
	if strings.EqualFold(setting(cfg, "include-system-site-packages"), "true") {
		f.systemSite()
	}
}

// hasPython says whether directory dir holds an interpreter.
func (f *finder) hasPython(dir string) bool {
	for _, e := range f.readDir(dir) {
		if !pythonName(e.Name()) {
			continue
		}
		if r, err := f.walk(hostfs.Join(dir, e.Name())); err == nil && r.Info.Mode().IsRegular() && r.Info.Mode().Perm()&0o111 != 0 {
			return true
		}
	}
	return false
}

// pythonName says whether an interpreter is called that: python, python3.13t, pypy3.
func pythonName(s string) bool {
	rest, ok := strings.CutPrefix(s, "python")
	if !ok {
		rest, ok = strings.CutPrefix(s, "pypy")
	}
	rest = strings.Trim(rest, "0123456789.")
	return ok && (rest == "" || rest == "t")
}

// site is a library directory with packages in it, of the environment at root.
type site struct{ lib, root, by string }

// packages looks into the environments that were found: the active ones, and as many of the others as are few. A ~/.local/bin
// with a hundred tools must not make every start slow, and tools are seldom installed from a source tree.
func (f *finder) packages() {
	var others []site
	for i := 0; i < len(f.sites); i++ { // more may be found on the way
		if s := f.sites[i]; f.active(s.root) {
			f.by = s.by
			f.sitePackages(s.lib, s.root)
		} else {
			others = append(others, s)
		}
	}
	for _, s := range others[:min(maxSites, len(others))] {
		f.by = s.by
		f.sitePackages(s.lib, s.root)
	}
}

// active says whether an environment is meant to be used: it is in PATH itself, or its python was started.
func (f *finder) active(root string) bool {
	bin := root + "/bin"
	for _, d := range f.path {
		if d.real == bin {
			return true
		}
	}
	return f.run["env "+root] || f.env["VIRTUAL_ENV"] == root || f.env["CONDA_PREFIX"] == root
}

// sitePackages looks into lib/python3.*/site-packages for .pth files and links.
func (f *finder) sitePackages(lib, root string) {
	real, list := f.entries(lib)
	for _, e := range list {
		if !strings.HasPrefix(e.Name(), "python3") && !strings.HasPrefix(e.Name(), "pypy") {
			continue
		}
		for _, d := range [...]string{"site-packages", "dist-packages"} {
			dir, packages := f.entries(hostfs.Join(hostfs.Join(real, e.Name()), d))
			f.pth(dir, packages, root)
		}
	}
}

// systemSite looks for the sources that the administrator installed in editable form.
func (f *finder) systemSite() {
	if f.done["system site"] {
		return
	}
	f.done["system site"] = true
	f.sitePackages("/usr/local/lib", "/usr")
	dir, packages := f.entries("/usr/lib/python3/dist-packages")
	f.pth(dir, packages, "/usr")
}

// pth shows the source trees that a directory of packages leads to: lines of .pth files, .egg-link, the finders that
// setuptools writes for editable installs, and links. Without them another copy is imported, or none.
func (f *finder) pth(dir string, list []fs.DirEntry, root string) {
	infos := 0
	for _, e := range list {
		name := e.Name()
		p := hostfs.Join(dir, name)
		switch {
		case isLink(e):
			if r, err := f.walk(p); err == nil && (!r.Info.IsDir() || f.shown(r.Path) || f.pythonCode(r.Path) || f.libraryDir(r.Path)) {
				f.followOut(p, root, "a package of "+dir)
			}
		case strings.HasSuffix(name, ".pth"), strings.HasSuffix(name, ".egg-link"):
			text, _ := f.small(p)
			for _, l := range lines(text) {
				if l[0] == '#' || strings.HasPrefix(l, "import ") || strings.HasPrefix(l, "import\t") {
					continue
				}
				f.source(f.resolve(l, dir), root, p)
				if strings.HasSuffix(name, ".egg-link") {
					break // the second line is relative to the first
				}
			}
		case strings.HasPrefix(name, "__editable__") && strings.HasSuffix(name, ".py"):
			text, _ := f.small(p)
			for _, q := range quoted(text) {
				f.source(q, root, p)
			}
		case strings.HasSuffix(name, ".dist-info") && infos < 3:
			// uv with link-mode=symlink: each file is a link into its cache.
			infos++
			meta := hostfs.Join(p, "METADATA")
			if fi, err := f.View.Lstat(meta); err == nil && fi.Mode()&fs.ModeSymlink != 0 {
				f.cacheOf(meta)
			}
		}
	}
}

// source shows one source tree that a file of an environment names. What is written there is not the caller's word, so
// it must be a directory that holds Python code.
func (f *finder) source(p, root, by string) {
	if !usable(p) || hostfs.Within(p, root) {
		return
	}
	r, err := f.walk(p)
	if err != nil {
		return
	}
	if !r.Info.IsDir() { // module.py of a single-file project
		if strings.HasSuffix(r.Path, ".py") {
			f.sourceTree(p, by+" names it: without it another copy is imported, or none")
		}
		return
	}
	if f.shown(r.Path) || f.pythonCode(r.Path) {
		f.sourceTree(p, by+" names it: without it another copy is imported, or none")
	}
}

// pythonCode says whether dir holds a module, a package or a project.
func (f *finder) pythonCode(dir string) bool {
	for _, n := range [...]string{"__init__.py", "pyproject.toml", "setup.py", "setup.cfg"} {
		if f.exists(dir, n) || n != "__init__.py" && f.exists(hostfs.Parent(dir), n) {
			return true
		}
	}
	for i, e := range f.readDir(dir) {
		if strings.HasSuffix(e.Name(), ".py") || strings.HasSuffix(e.Name(), ".egg-info") || strings.HasSuffix(e.Name(), ".so") ||
			i < 50 && e.IsDir() && f.exists(hostfs.Join(dir, e.Name()), "__init__.py") {
			return true
		}
	}
	return false
}

// quoted returns the absolute paths that stand between quotes in a text.
func quoted(text string) (list []string) {
	for _, q := range [...]string{"'", `"`} {
		parts := strings.Split(text, q)
		for i := 1; i < len(parts); i += 2 {
			if strings.HasPrefix(parts[i], "/") && usable(parts[i]) {
				list = union(list, []string{parts[i]})
			}
		}
	}
	return list
}

// cacheOf shows the part of uv's cache that the link at p leads into.
func (f *finder) cacheOf(p string) {
	r, err := f.walk(p)
	if err != nil {
		return
	}
	before, _, ok := strings.Cut(r.Path, "/archive-v")
	if !ok || !strings.HasSuffix(before, "/uv") && !f.exists(before, "CACHEDIR.TAG") {
		return
	}
	name, _, _ := strings.Cut(r.Path[len(before)+1:], "/")
	f.tree(hostfs.Join(before, name), "packages of the environment are links into uv's cache")
}

// pipConfig carries pip's settings by a copy without credentials: another index has other packages.
func (f *finder) pipConfig() {
	if _, ok := f.which("python3"); !ok {
		if _, ok := f.which("pip"); !ok {
			return
		}
	}
	if text, ok := f.small("/etc/pip.conf"); ok && !holdsSecret(text) {
		f.tree("/etc/pip.conf", "pip's settings for all users")
	}
	if p := f.env["PIP_CONFIG_FILE"]; p != "" {
		if text, ok := f.small(p); ok && !holdsSecret(text) {
			f.tree(p, "PIP_CONFIG_FILE names it")
		}
		return
	}
	for _, p := range [...]string{f.config("pip/pip.conf"), f.inHome(".pip/pip.conf")} {
		if f.is(p) {
			left := f.settingsFile(p, ".config/pip/pip.conf", "pip's settings, without credentials", "cert", "client-cert")
			if left > 0 && (f.commands["pip"] || f.commands["pip3"] || f.commands["python"] || f.commands["python3"]) {
				// An index with a password is another index without it; npm's tokens are lines of their own.
				f.note(p + " is copied without the lines that hold credentials: " + strconv.Itoa(left))
			}
			return
		}
	}
}

// python is what every Python looks at: PYTHONPATH, the environment that is active, and packages of the user's own.
func (f *finder) python() {
	f.pipConfig()
	for p := range strings.SplitSeq(f.env["PYTHONPATH"], ":") {
		f.tree(p, "PYTHONPATH names it: without it another copy is imported, or none")
	}
	if v := f.env["VIRTUAL_ENV"]; v != "" {
		if r, ok := f.add(v, holding, "VIRTUAL_ENV names it"); ok {
			f.inspect(r.Path)
		}
	}
	f.besideDir()
	base, why := f.env["PYTHONUSERBASE"], "packages that were installed with pip install --user"
	if base == "" {
		base = f.inHome(".local")
	}
	if base == "" || f.env["PYTHONNOUSERSITE"] != "" {
		return
	}
	lib, list := f.entries(base + "/lib")
	for _, e := range list {
		site := hostfs.Join(lib, e.Name()) + "/site-packages"
		if !strings.HasPrefix(e.Name(), "python3") || !f.is(site) {
			continue
		}
		if _, ok := f.tree(hostfs.Join(lib, e.Name()), why); ok {
			f.pin("PYTHONUSERBASE", base, why+": without them others of the same name are imported, or none")
			dir, packages := f.entries(site)
			f.pth(dir, packages, hostfs.Join(lib, e.Name()))
		}
	}
}

// besideDir looks into the environment that lies in the working directory or the checkout around it: uv run, make and
// editors use it without having been told. It is visible with the directory; what its python leads to need not be.
func (f *finder) besideDir() {
	for _, d := range f.above() {
		for _, name := range [...]string{".venv", "venv"} {
			if p := hostfs.Join(d, name); f.exists(p, "pyvenv.cfg") && f.there(p) {
				if r, err := f.walk(p); err == nil {
					f.inspect(r.Path)
				}
			}
		}
		if f.exists(d, ".git") {
			return
		}
	}
}

// managers are the tools that keep an environment for each project below HOME, and would make another one where they find
// none.
func (f *finder) managers() {
	poetry := f.cache("pypoetry/virtualenvs")
	if dir := f.env["POETRY_CACHE_DIR"]; dir != "" {
		poetry = dir + "/virtualenvs"
	}
	for _, m := range [...]struct{ name, variable, def string }{
		{"poetry", "POETRY_VIRTUALENVS_PATH", poetry}, {"pipenv", "WORKON_HOME", f.data("virtualenvs")},
	} {
		if _, ok := f.which(m.name); !ok {
			continue
		}
		dir, ok := f.dataDir(m.variable, m.def, "the environments that "+m.name+" made: without them it would make others")
		if !ok {
			continue
		}
		real, list := f.entries(dir)
		for _, e := range list[:min(len(list), maxEnvs)] {
			if p := hostfs.Join(real, e.Name()); e.IsDir() && f.exists(p, "pyvenv.cfg") {
				f.inspect(p)
			}
		}
	}
}

const maxEnvs = 20

// pyenv chooses a version by PYENV_VERSION, the nearest .python-version, and its own file version; without one of them
// its shims run the system's python.
func (f *finder) pyenv() {
	root := f.env["PYENV_ROOT"]
	if root == "" {
		root = f.inHome(".pyenv")
	}
	used := f.uses(root)
	if used {
		if dir, ok := f.dataDir("PYENV_ROOT", root, "pyenv's versions and shims: without them the system's python runs"); ok {
			if r, err := f.walk(dir); err == nil {
				f.scanLinks(hostfs.Join(r.Path, "versions"))
			}
		}
	}
	if used || f.env["PYENV_ROOT"] != "" || f.uvUsed() {
		f.upward("which python: without it another version runs", false, ".python-version")
	}
}

func (f *finder) uvUsed() bool {
	_, ok := f.which("uv")
	return ok
}

// uv finds its Pythons below HOME. Environments made by it are followed wherever they are.
func (f *finder) uv() {
	if !f.uvUsed() {
		return
	}
	const why = "the Pythons that uv manages: without them it would download one"
	f.dataDir("UV_PYTHON_INSTALL_DIR", f.data("uv/python"), why)
	f.dataDir("UV_TOOL_DIR", f.data("uv/tools"), "the programs that uv tool installed")
}

// conda shows the environment that is active and the installation that it belongs to.
func (f *finder) conda() {
	for _, name := range [...]string{"CONDA_PREFIX", "MAMBA_ROOT_PREFIX"} {
		if p := f.env[name]; p != "" {
			if r, ok := f.add(p, holding, name+" names it"); ok {
				f.inspect(r.Path)
			}
		}
	}
	for _, name := range [...]string{"CONDA_EXE", "MAMBA_EXE"} {
		if p := f.env[name]; p != "" {
			f.program(p, 1)
		}
	}
}

// condaEnv shows the package cache where the environment was linked softly against it: its libraries are then links.
func (f *finder) condaEnv(root string) {
	lib, list := f.entries(hostfs.Join(root, "lib"))
	const tries = 60
	for n, i := 0, 0; i < len(list) && n < tries; i++ {
		if !isLink(list[i]) {
			continue
		}
		n++
		p := hostfs.Join(lib, list[i].Name())
		text, err := f.View.ReadLink(p)
		if err != nil || stays(text, p, root) {
			continue
		}
		r, err := f.walk(p)
		if err != nil {
			continue
		}
		if before, _, ok := strings.Cut(r.Path, "/pkgs/"); ok && !hostfs.Within(r.Path, root) && (f.exists(before, "conda-meta") || f.exists(before, "pkgs/urls.txt")) {
			f.tree(before+"/pkgs", "the libraries of the environment are links into conda's package cache")
			break
		}
	}
	f.program(hostfs.Join(root, "bin/python"), 1)
	f.sites = append(f.sites, site{lib, root, f.by})
}
