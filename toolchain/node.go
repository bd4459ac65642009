package toolchain

import (
	"io/fs"
	"strings"

	"github.com/selfcage/selfcage/internal/hostfs"
)

// node shows what the version managers of Node keep. Each of them is in PATH by a directory of its own.
func (f *finder) node() {
	if dir := f.toolDir("NVM_DIR", ".nvm"); dir != "" {
		f.dataDir("NVM_DIR", dir, "nvm's versions: without them the system's node runs")
		f.upward("which node: without it another version runs", false, ".nvmrc")
	}
	if p := f.env["FNM_MULTISHELL_PATH"]; p != "" {
		f.tree(p, "fnm's version for this shell: without it the system's node runs")
		f.fnm()
	} else if f.uses(f.data("fnm")) || f.env["FNM_DIR"] != "" {
		f.fnm()
	}
	if dir := f.toolDir("VOLTA_HOME", ".volta"); dir != "" {
		f.dataDir("VOLTA_HOME", dir, "Volta's versions: its shims look for them in HOME")
		f.upward("which node: without it another version runs", false, "package.json")
	}
	if dir := f.toolDir("BUN_INSTALL", ".bun"); dir != "" {
		f.dataDir("BUN_INSTALL", dir, "bun's global packages: the programs in its bin are links to them")
	}
	p, ok := f.which("node")
	if !ok {
		return
	}
	f.installed(p, "node finds its modules beside its own file, once links are followed")
	f.dataDir("COREPACK_HOME", f.cache("node/corepack"), "the package managers that corepack downloaded")
	for _, d := range f.above() {
		if f.exists(d, ".pnp.cjs") { // Yarn's packages lie in a cache below HOME
			f.dataDir("YARN_GLOBAL_FOLDER", f.inHome(".yarn/berry"), "Yarn's packages, which .pnp.cjs names")
			break
		}
	}
	f.dataDir("PLAYWRIGHT_BROWSERS_PATH", f.cache("ms-playwright"), "the browsers that Playwright downloaded")
}

func (f *finder) fnm() {
	def := f.data("fnm")
	if old := f.inHome(".fnm"); old != "" && !f.is(def) {
		def = old
	}
	f.dataDir("FNM_DIR", def, "fnm's versions: without them the system's node runs")
	f.upward("which node: without it another version runs", false, ".node-version", ".nvmrc")
}

// toolDir is the directory of a tool that is in use: its variable is set, or PATH has something in the default.
func (f *finder) toolDir(variable, def string) string {
	if v := f.env[variable]; v != "" {
		return v
	}
	if d := f.inHome(def); f.uses(d) {
		return d
	}
	return ""
}

// npmConfig carries npm's settings by a copy without tokens: without ignore-scripts scripts run, and with another registry
// other packages come, and no message says so.
func (f *finder) npmConfig() {
	if _, ok := f.which("npm"); !ok {
		return
	}
	for _, name := range [...]string{"NPM_CONFIG_USERCONFIG", "npm_config_userconfig"} {
		if p := f.env[name]; p != "" {
			if text, ok := f.small(p); ok && !holdsSecret(text) {
				f.tree(p, name+" names it: npm's settings")
			} else if ok && !f.there(p) {
				f.note(p + " is not visible inside, though " + name + " names it: it looks as if it held a secret")
			}
			return
		}
	}
	f.settingsFile(f.inHome(".npmrc"), ".npmrc", "npm's settings, without tokens", "prefix", "cafile", "globalconfig")
}

// settingsFile makes a copy of a file of settings below the cage's HOME, without the lines that look like secrets. Paths
// keep their meaning; those that are the value of one of keys are shown. It returns how many lines were left out.
func (f *finder) settingsFile(p, name, why string, keys ...string) (left int) {
	text, ok := f.small(p)
	if !ok || text == "" {
		return 0
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		if holdsSecret(line) {
			left++
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if home := strings.TrimSpace(value); ok && strings.HasPrefix(home, "~/") {
			line = key + "=" + f.inHome(home[2:]) + "\n"
		}
		line = strings.ReplaceAll(line, "${HOME}", f.home)
		for _, k := range keys {
			if v := setting(line, k); strings.HasPrefix(v, "/") {
				f.tree(v, k+" of "+p)
			}
		}
		b.WriteString(line)
	}
	f.out.Files = append(f.out.Files, File{Name: name, Data: []byte(b.String()), By: f.by, Why: why})
	return left
}

// nodeModules shows the packages that node_modules leads to outside of what is visible: npm link, workspaces, pnpm's
// store. Node looks for node_modules in every directory above.
func (f *finder) nodeModules() {
	for i, d := range f.above() {
		p := hostfs.Join(d, "node_modules")
		fi, err := f.View.Lstat(p)
		if err != nil || d == "/" {
			continue
		}
		if r, err := f.walk(p); err != nil || !r.Info.IsDir() || len(r.Links) > 0 && !f.shown(r.Path) && !f.modulesDir(r.Path) {
			f.note(p + " leads to something else than a directory of packages, which is not shown for it")
			continue
		}
		if !fi.IsDir() || !f.shown(p) {
			f.tree(p, "Node looks for packages there")
		}
		if real, list := f.entries(p); i < 4 {
			f.moduleLinks(real, list)
		}
	}
}

// modulesDir says whether dir is a directory of packages: the link that leads to it is a part of a tree that the cage may be
// there to hold back, and a directory of letters is not shown for its name.
func (f *finder) modulesDir(dir string) bool {
	if base(dir) == "node_modules" {
		return true
	}
	for i, e := range f.readDir(dir) {
		if i < 50 && e.IsDir() && f.exists(hostfs.Join(dir, e.Name()), "package.json") {
			return true
		}
	}
	return false
}

// moduleLinks shows the packages that are links to a place elsewhere.
func (f *finder) moduleLinks(dir string, list []fs.DirEntry) {
	for _, e := range list {
		p := hostfs.Join(dir, e.Name())
		switch {
		case isLink(e):
			f.linkedPackage(p, dir)
		case e.IsDir() && strings.HasPrefix(e.Name(), "@"):
			scope, scoped := f.entries(p)
			for _, e := range scoped {
				if isLink(e) {
					f.linkedPackage(hostfs.Join(scope, e.Name()), dir)
				}
			}
		}
	}
}

func (f *finder) linkedPackage(p, root string) {
	if f.links <= 0 {
		return
	}
	f.links--
	if text, err := f.View.ReadLink(p); err != nil || stays(text, p, root) {
		return
	}
	r, err := f.walk(p)
	if err != nil || !r.Info.IsDir() || !f.exists(r.Path, "package.json") {
		return
	}
	const why = "a link in node_modules leads to it: without it the package cannot be found, or another copy is"
	// pnpm's global virtual store: packages there are links to each other.
	if before, _, ok := strings.Cut(r.Path, "/links/"); ok && strings.Contains(before, "/store") {
		f.tree(before+"/links", why)
	}
	f.sourceTree(p, why)
}
