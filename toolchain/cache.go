package toolchain

import (
	"strconv"
	"strings"

	"github.com/selfcage/selfcage/internal/hostfs"
	"github.com/selfcage/selfcage/internal/refusal"
)

// Cache is where a tool keeps results of its work for the next run, granted by the tool's name.
type Cache struct {
	Name  string
	Dirs  []string // to be writable; they need not exist
	Files []string // the same for files, which are empty at first
	Pins  []Pin    // so that the tool finds it although HOME moves
	Why   string
}

// caches: the variable that names the directory, and where it is without one. An empty base stands for HOME.
var caches = [...]struct{ name, variable, base, rel, why string }{
	{"go", "GOCACHE", "", "", "go's build cache"},
	{"gomod", "GOMODCACHE", "", "", "go's modules and toolchains"},
	{"cargo", "", "", "", "cargo's crates"},
	{"ccache", "CCACHE_DIR", "", "", "ccache's results"},
	{"sccache", "SCCACHE_DIR", "cache", "sccache", "sccache's results"},
	{"mage", "MAGEFILE_CACHE", "", ".magefile", "mage's compiled magefiles"},
	{"golangci-lint", "GOLANGCI_LINT_CACHE", "cache", "golangci-lint", "golangci-lint's results"},
	{"staticcheck", "STATICCHECK_CACHE", "cache", "staticcheck", "staticcheck's results"},
	{"pip", "PIP_CACHE_DIR", "cache", "pip", "pip's wheels"},
	{"uv", "UV_CACHE_DIR", "cache", "uv", "uv's wheels"},
	{"poetry", "POETRY_CACHE_DIR", "cache", "pypoetry", "Poetry's environments and wheels"},
	{"pre-commit", "PRE_COMMIT_HOME", "cache", "pre-commit", "pre-commit's hooks"},
	{"npm", "npm_config_cache", "", ".npm", "npm's packages"},
	{"yarn", "YARN_CACHE_FOLDER", "cache", "yarn", "Yarn's packages"},
	{"pnpm", "npm_config_store_dir", "data", "pnpm/store", "pnpm's packages"},
	{"bun", "BUN_INSTALL_CACHE_DIR", "", ".bun/install/cache", "bun's packages"},
	{"deno", "DENO_DIR", "cache", "deno", "Deno's modules"},
	{"corepack", "COREPACK_HOME", "cache", "node/corepack", "corepack's package managers"},
	{"cuda", "CUDA_CACHE_PATH", "", ".nv/ComputeCache", "compiled CUDA kernels"},
	{"comgr", "AMD_COMGR_CACHE_DIR", "cache", "comgr", "compiled ROCm kernels"},
	{"miopen", "MIOPEN_CUSTOM_CACHE_DIR", "cache", "miopen", "compiled MIOpen kernels"},
	{"triton", "TRITON_CACHE_DIR", "", ".triton/cache", "compiled Triton kernels"},
	{"torch", "TORCH_HOME", "cache", "torch", "models of torch.hub"},
	{"huggingface", "HF_HUB_CACHE", "cache", "huggingface/hub", "models of the Hugging Face hub, without the token beside them"},
	{"playwright", "PLAYWRIGHT_BROWSERS_PATH", "cache", "ms-playwright", "Playwright's browsers"},
	{"zig", "ZIG_GLOBAL_CACHE_DIR", "cache", "zig", "zig's build cache"},
	{"nuget", "NUGET_PACKAGES", "", ".nuget/packages", "NuGet's packages"},
	{"composer", "COMPOSER_CACHE_DIR", "cache", "composer", "Composer's packages"},
}

// CacheNamed returns the cache that a name stands for, which by asked for. Its error is a *refusal.Error; that of an
// unknown name lists the names.
func CacheNamed(h Host, by, name string) (Cache, error) {
	names := make([]string, 0, len(caches))
	for _, c := range caches {
		if c.name != name {
			names = append(names, c.name)
			continue
		}
		f := newFinder(h)
		f.by = by + " " + name
		p := f.cachePath(c.name, c.variable, c.base, c.rel)
		if strings.HasPrefix(p, "/") {
			p = f.resolve(p, "/")
		}
		if !usable(p) {
			cause := "there is no HOME"
			if p != "" {
				cause = strconv.Quote(p) + ", where the tool would keep it, is not an absolute path that can be followed"
			}
			variable := c.variable
			if variable == "" {
				variable = "CARGO_HOME"
			}
			return Cache{}, &refusal.Error{What: "cannot grant " + f.by, Cause: cause, Hint: "set " + variable + " to an absolute path"}
		}
		out := Cache{Name: name, Dirs: []string{clean(p)}, Why: c.why}
		if c.variable != "" {
			f.pin(c.variable, out.Dirs[0], c.why)
		}
		f.besideCache(&out)
		out.Pins = f.out.Pins
		return out, nil
	}
	return Cache{}, &refusal.Error{What: "cannot grant " + by, Object: strconv.Quote(name), Cause: "there is no cache of that name",
		Hint: oneName(name) + "known are " + strings.Join(names, ", ") + "; --write grants any other directory"}
}

// besideCache adds what two tools keep beside the directory that their cache is named after.
func (f *finder) besideCache(c *Cache) {
	switch c.Name {
	case "cargo":
		// The lock, without which cargo downloads nothing. Programs, configuration and credentials stay as they are.
		home := hostfs.Parent(c.Dirs[0])
		c.Dirs, c.Files = append(c.Dirs, home+"/git"), []string{home + "/.package-cache"}
		f.pin("CARGO_HOME", home, c.Why)
	case "gomod":
		// What go verified downloads with; where it cannot remember that, it downloads nothing.
		if p := clean(f.goPath()); usable(p) {
			c.Dirs = append(c.Dirs, p+"/pkg/sumdb")
			f.pin("GOPATH", p, c.Why)
		}
	}
}

// oneName is for who wrote several names where one is asked for.
func oneName(name string) string {
	if strings.Contains(name, ",") {
		return "a flag takes one name and can be repeated; "
	}
	return ""
}

// cold notes what the tool called command keeps outside and would not find inside, unless that does no harm: cargo and go
// say so themselves when they cannot download.
func (f *finder) cold(command string) {
	name := base(command)
	switch name {
	case "pip3":
		name = "pip"
	case "npx":
		name = "npm"
	case "uvx":
		name = "uv"
	}
	for _, c := range caches {
		if c.name != name || name == "cargo" {
			continue
		}
		for _, known := range f.out.Cold {
			if known.Name == name {
				return
			}
		}
		if p := f.cachePath(c.name, c.variable, c.base, c.rel); usable(p) && f.is(p) && !f.there(p) {
			f.out.Cold = append(f.out.Cold, Cache{Name: c.name, Dirs: []string{clean(p)}, Why: c.why})
		}
	}
}

// granted makes tools use the cache that was granted, although HOME moves.
func (f *finder) granted() {
	for _, c := range caches {
		if p := f.cachePath(c.name, c.variable, c.base, c.rel); c.variable != "" && usable(p) && f.Visible(p) {
			f.pin(c.variable, p, c.why+", which is visible inside")
		}
	}
}

func (f *finder) cachePath(name, variable, base, rel string) string {
	if v := f.env[variable]; v != "" && variable != "" {
		return v
	}
	if p := f.cacheSetting(name); p != "" {
		return p
	}
	switch name {
	case "go":
		return f.goCache()
	case "gomod":
		return f.goModCache()
	case "cargo":
		if h := f.cargoHome(); h != "" {
			return h + "/registry" // never CARGO_HOME itself, where the credentials lie
		}
		return ""
	case "ccache":
		return f.ccacheDir()
	}
	switch base {
	case "cache":
		return f.cache(rel)
	case "data":
		return f.data(rel)
	}
	return f.inHome(rel)
}

// cacheSettings are the files in which users tell tools to keep their caches elsewhere.
var cacheSettings = [...]struct{ name, file, key string }{
	{"pip", ".config/pip/pip.conf", "cache-dir"}, {"pip", ".pip/pip.conf", "cache-dir"}, {"pip", "/etc/pip.conf", "cache-dir"},
	{"npm", ".npmrc", "cache"},
	{"ccache", ".config/ccache/ccache.conf", "cache_dir"}, {"ccache", ".ccache/ccache.conf", "cache_dir"},
	{"uv", ".config/uv/uv.toml", "cache-dir"},
	{"poetry", ".config/pypoetry/config.toml", "cache-dir"},
}

// cacheSetting is where a tool's settings, or another variable than the usual one, say that its cache is.
func (f *finder) cacheSetting(name string) string {
	switch name {
	case "npm": // which takes its variables in any case
		for _, kv := range f.Env { // in their order, so that the plan is the same each time
			if n, v, _ := strings.Cut(kv, "="); strings.EqualFold(n, "npm_config_cache") && v != "" {
				return v
			}
		}
	case "huggingface":
		if v := f.env["HUGGINGFACE_HUB_CACHE"]; v != "" {
			return v
		}
		if v := f.env["HF_HOME"]; v != "" {
			return v + "/hub"
		}
	}
	for _, s := range cacheSettings {
		if s.name != name {
			continue
		}
		p := s.file
		if rest, ok := strings.CutPrefix(p, ".config/"); ok {
			p = f.config(rest)
		} else if !strings.HasPrefix(p, "/") {
			p = f.inHome(p)
		}
		text, _ := f.small(p)
		v := setting(text, s.key)
		for _, home := range [...]string{"~/", "${HOME}/", "$HOME/"} {
			if rest, ok := strings.CutPrefix(v, home); ok {
				v = f.inHome(rest)
			}
		}
		if strings.HasPrefix(v, "/") {
			return v
		}
	}
	return ""
}
