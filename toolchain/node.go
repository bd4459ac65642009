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

// npmConfig carries what ~/.npmrc says about places; the file itself holds tokens. Another registry or prefix than outside
// would mean other packages, and no message.
func (f *finder) npmConfig() {
	if _, ok := f.which("npm"); !ok {
		return
	}
	p := f.env["NPM_CONFIG_USERCONFIG"]
	if p == "" {
		if p = f.env["npm_config_userconfig"]; p == "" {
			p = f.inHome(".npmrc")
		}
	}
	text, ok := f.small(p)
	if !ok {
		return
	}
	for _, key := range [...]string{"prefix", "registry", "cafile"} {
		v := setting(text, key)
		if v == "" || holdsSecret(v) || f.env["NPM_CONFIG_"+strings.ToUpper(key)] != "" {
			continue
		}
		v = strings.ReplaceAll(v, "${HOME}", f.home)
		if rest, ok := strings.CutPrefix(v, "~/"); ok {
			v = f.inHome(rest)
		}
		if key != "registry" {
			if _, ok := f.tree(v, "npm's "+key); !ok {
				continue
			}
		}
		f.pin("npm_config_"+key, v, "~/.npmrc says so, which is not visible since it may hold tokens")
	}
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
		if !fi.IsDir() || !f.shown(p) {
			f.tree(p, "Node looks for packages there")
		}
		if real, list := f.entries(p); i < 4 {
			f.moduleLinks(real, list)
		}
	}
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
	f.tree(p, why)
}
