package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/selfcage/selfcage/internal/sandtest"
)

// upwards is the part of every version manager that looks for a file at or above the working directory: it prints the
// file's content.
const upwards = `upward() {
	d=$PWD
	while :; do
		[ ! -f "$d/$1" ] || { cat "$d/$1"; return; }
		[ -n "$d" ] || return 1
		d=${d%/*}
	done
}
`

// toolchains.md B5b: a conda environment that was linked softly: its libraries are links into the package cache. Programs find
// them by $ORIGIN; its own python, scripts and settings lie in it, and tokens for its channels may.
func TestToolchainConda(t *testing.T) {
	s := newSite(t, nil).plant()
	base := s.home + "/mc"
	env := base + "/envs/E"
	py := s.python(env)
	s.write(env+"/conda-meta/history", "==> 2026-01-01 <==\n", 0o644)
	s.write(base+"/conda-meta/history", "==> 2026-01-01 <==\n", 0o644)
	s.write(base+"/pkgs/urls.txt", "https://conda.example/says-1\n", 0o644)
	s.write(env+"/etc/conda/activate.d/x.sh", "export ACTIVATED=yes\n", 0o644)
	for _, says := range []string{"conda's", "another"} {
		s.library(map[bool]string{true: base + "/pkgs/says-1/lib", false: s.root + "/fallback"}[says == "conda's"], says)
	}
	for _, f := range []string{"libsays.so", "libsays.so.1", "libsays.so.1.0"} {
		s.link(base+"/pkgs/says-1/lib/"+f, env+"/lib/"+f)
	}
	s.loads(env+"/bin/tool", base+"/pkgs/says-1/lib", "-Wl,--disable-new-dtags", "-Wl,-rpath,$ORIGIN/../lib:"+s.root+"/fallback")
	s.write(env+"/bin/long", "#!/usr/bin/env python\n"+whichPython+"\n", 0o755) // a prefix of more than 127 bytes
	s.write(env+"/bin/short", "#!"+env+"/bin/python\n"+whichPython+"\n", 0o755)
	s.tool(base+"/condabin/conda", "conda")
	s.write(s.home+"/letter", homeSecret, 0o644)
	token := "channels:\n- https://conda.example/t/tk-" + homeSecret + "/main\n"
	for _, f := range []string{env + "/.condarc", base + "/.condarc", s.home + "/.condarc", base + "/envs/other/.condarc"} {
		s.write(f, token, 0o600)
	}
	s.write(s.home+"/.conda/environments.txt", env+"\n", 0o644)
	check := func(e *site, tool string) {
		t.Helper()
		e.prints([]string{"conda's\n" + env + "/bin/tool\n", "\n" + base + "/pkgs/says-1/lib/libsays.so.1.0\n"}, "--", tool)
		e.noSecrets()
		e.run("--", "sh", "-c", `cat "$1/.condarc" "$2/.condarc" "$2/envs/other/.condarc" ~/.condarc; ls "$2"`, "sh", env, base).
			hasNot("tk-", "letter")
	}
	check(s, env+"/bin/tool") // not activated
	e := s.path0(env+"/bin", base+"/condabin").setenv("CONDA_PREFIX="+env, "CONDA_DEFAULT_ENV=E", "CONDA_EXE="+base+"/condabin/conda")
	for _, e := range []*site{e, s.path0(env + "/bin"), s.setenv("CONDA_PREFIX=" + env)} {
		check(e, env+"/bin/tool")
		e.same("--", "sh", "-c", `"$1"`, "sh", env+"/bin/tool") // whose libraries nobody has looked at
	}
	check(e, "tool")
	for _, cmd := range []string{"long", "short"} {
		if f := strings.Split(e.same("--", cmd), "\n"); f[1] != env || !strings.HasPrefix(f[4], env+"/lib/python"+py.version) {
			t.Errorf("%s: %q", cmd, f)
		}
	}
	e.prints([]string{"yes\nconda conda info\n" + base + "/pkgs/"}, "--", "sh", "-c", `. "$CONDA_PREFIX/etc/conda/activate.d/x.sh"
		echo "$ACTIVATED"; "$CONDA_EXE" info; readlink "$CONDA_PREFIX/lib/libsays.so.1"`)
	e.readOnly(env, env+"/lib", base+"/pkgs", base+"/condabin")
	// Micromamba: the root and the program lie apart.
	mamba := s.tool(s.home+"/.local/bin/micromamba", "mamba")
	m := e.setenv("MAMBA_ROOT_PREFIX="+base, "MAMBA_EXE="+mamba)
	m.same("--", "sh", "-c", `"$MAMBA_EXE" list; tool; ls "$MAMBA_ROOT_PREFIX/envs"`)
	m.noSecrets()
	m.hidden(s.home+"/.conda/environments.txt", s.home+"/letter")
}

// toolchains.md A1, B6: asdf's shims are scripts that name asdf by path or, since 0.16, by its name alone; it looks for
// .tool-versions above the working directory and in HOME, and runs the system's program where it finds none.
func TestToolchainAsdf(t *testing.T) {
	s := newSite(t, nil).plant()
	asdf := s.home + "/.asdf"
	program := "#!/bin/sh\n" + upwards + `
root=${ASDF_DATA_DIR:-$HOME/.asdf}
shift; name=$1; shift
version=$(upward .tool-versions) || version=$(cat "$HOME/.tool-versions" 2>/dev/null) || version="atool system"
version=$(echo "$version" | sed -n 's/^atool *//p')
[ "$version" != system ] || exec /usr/bin/env echo "the system's $name"
exec "$root/installs/atool/$version/bin/$name" "$@"
`
	for _, v := range []string{"20.1", "18.2"} {
		s.tool(asdf+"/installs/atool/"+v+"/bin/atool", v)
	}
	s.tool(s.root+"/later/bin/atool", "another")
	s.write(asdf+"/bin/asdf", program, 0o755)
	s.link(s.root+"/elsewhere/atool", asdf+"/installs/atool/path")
	s.tool(s.root+"/elsewhere/atool/bin/atool", "path")
	s.write(asdf+"/plugins/atool/bin/list-all", "#!/bin/sh\n", 0o755)
	s.mkdir("a/b")
	s.write(s.home+"/.tool-versions", "atool 20.1\n", 0o644)
	check := func(e *site, want string) {
		t.Helper()
		if out := e.same("--", "atool", "x"); out != want+" atool x\n" {
			t.Errorf("%q, want %s", out, want)
		}
		e.same("--", "sh", "-c", "atool y; command -v atool")
		e.noSecrets()
		e.readOnly(asdf+"/shims", asdf+"/installs")
	}
	s.write(s.home+"/.local/bin/asdf", program, 0o755)
	for name, e := range map[string]*site{
		asdf + "/bin/asdf": s.path0(asdf+"/shims", s.root+"/later/bin"),
		"asdf":             s.path0(asdf+"/shims", s.home+"/.local/bin", s.root+"/later/bin"),
	} {
		s.write(asdf+"/shims/atool", "#!/usr/bin/env bash\n# asdf-plugin: atool 20.1\nexec "+name+" exec \"atool\" \"$@\"\n", 0o755)
		deep := e.at(s.path("a/b"))
		must(t, os.RemoveAll(s.path("a/.tool-versions")))
		check(deep, "20.1")
		check(deep.setenv("ASDF_DATA_DIR="+asdf, "ASDF_DIR="+asdf), "20.1")
		s.write("a/.tool-versions", "atool 18.2\n", 0o644)
		check(deep, "18.2")
		s.write("a/.tool-versions", "atool path\n", 0o644)
		check(deep, "path")
	}
}

// toolchains.md A1, B6: mise itself, where it is installed: its shims are links to it, its versions lie below HOME, and a
// configuration counts only where it was trusted. It would install what it does not find, or run the system's program.
func TestToolchainMise(t *testing.T) {
	s := newSite(t, nil).plant()
	installed := s.need("mise")
	for _, place := range []string{s.home + "/.local/bin/mise", ""} { // a copy as its installer puts it there, and as it is installed
		mise, dirs := place, []string{s.home + "/.local/bin"}
		if place == "" {
			mise, dirs = installed, nil
			must(t, os.RemoveAll(s.home+"/.local"))
		} else {
			must(t, os.MkdirAll(filepath.Dir(place), 0o755))
			real, err := filepath.EvalSymlinks(installed)
			must(t, err)
			copyFile(t, real, place, 0o755)
		}
		data := s.home + "/.local/share/mise"
		s.write(s.home+"/.config/mise/config.toml", "[tools]\nnode = \"20\"\n", 0o644)
		for _, v := range []string{"20.20.2", "18.9.0"} {
			s.tool(data+"/installs/node/"+v+"/bin/node", v)
		}
		s.link("./20.20.2", data+"/installs/node/20")
		s.link("./20.20.2", data+"/installs/node/latest")
		s.link(mise, data+"/shims/node")
		s.tool(s.root+"/later/bin/node", "another")
		s.mkdir("a/b")
		e := s.at(s.path("a/b")).path0(append([]string{data + "/shims", s.root + "/later/bin"}, dirs...)...)
		e = e.setenv("MISE_OFFLINE=1", "MISE_YES=0")
		check := func(e *site, want string) {
			t.Helper()
			if out := e.same("--", "node", "x"); out != want+" node x\n" {
				t.Errorf("%q, want %s", out, want)
			}
			e.same("--", "sh", "-c", `node y; command -v node; readlink "$1/shims/node" "$1/installs/node/latest"`, "sh", data)
			e.same("--", mise, "current")
			e.same("--", mise, "where", "node")
			e.readOnly(data+"/shims", data+"/installs/node/20.20.2")
			e.noSecrets()
		}
		check(e, "20.20.2")
		check(e.setenv("MISE_DATA_DIR="+data), "20.20.2")
		s.write("a/.tool-versions", "node 18.9.0\n", 0o644)
		check(e, "18.9.0")
		must(t, os.Remove(s.path("a/.tool-versions")))
		s.write("a/mise.toml", "[tools]\nnode = \"18.9.0\"\n[env]\nFROM_MISE = \"of this project\"\n", 0o644)
		e.command(mise, "trust", s.path("a/mise.toml")).ok()
		check(e, "18.9.0")
		if out := e.same("--", mise, "exec", "--", "sh", "-c", `echo "$FROM_MISE"`); out != "of this project\n" {
			t.Errorf("%q", out)
		}
		s.write("b/mise.toml", "[env]\nX = \"1\"\n", 0o644) // not trusted, inside as outside
		for _, r := range []*result{e.at(s.path("b")).command(mise, "env"), e.at(s.path("b")).run("--", mise, "env")} {
			if r.status == 0 || !strings.Contains(r.err, "not trusted") {
				t.Errorf("%q: status %d: %s", r.args, r.status, r.err)
			}
		}
		must(t, os.RemoveAll(s.path("a")))
		must(t, os.RemoveAll(s.path("b")))
	}
}

// toolchains.md A1, B7: nvm is a function of the shell, which reads NVM_DIR; each version is a directory with bin and lib, and
// without lib its npm is a link to nowhere.
func TestToolchainNvm(t *testing.T) {
	s := newSite(t, nil).plant()
	nvm := s.home + "/.nvm"
	for _, v := range []string{"v20.1.0", "v18.9.0"} {
		dir := nvm + "/versions/node/" + v
		s.tool(dir+"/bin/node", v)
		s.write(dir+"/lib/node_modules/npm/bin/npm-cli.js", "#!/usr/bin/env node\n", 0o755)
		s.link("../lib/node_modules/npm/bin/npm-cli.js", dir+"/bin/npm")
		s.link("../lib/node_modules/global/cli.js", dir+"/bin/global")
	}
	s.write(s.root+"/src/global/package.json", `{"name": "global"}`, 0o644)
	s.write(s.root+"/src/global/cli.js", "#!/usr/bin/env node\n", 0o755)
	s.link(s.root+"/src/global", nvm+"/versions/node/v20.1.0/lib/node_modules/global") // npm link
	s.write(nvm+"/alias/default", "v20.1.0\n", 0o644)
	s.write(nvm+"/nvm.sh", upwards+`nvm() {
	v=$(upward .nvmrc || cat "$NVM_DIR/alias/default")
	PATH=$NVM_DIR/versions/node/$v/bin:$PATH
	echo "using $v"
}
`, 0o644)
	s.tool(s.root+"/later/bin/node", "another")
	s.mkdir("a/b")
	bin := nvm + "/versions/node/v20.1.0/bin"
	e := s.at(s.path("a/b")).path0(bin, s.root+"/later/bin").setenv("NVM_DIR="+nvm, "NVM_BIN="+bin)
	for _, e := range []*site{e, s.path0(bin, s.root+"/later/bin")} {
		if out := e.same("--", "node", "x"); out != "v20.1.0 node x\n" {
			t.Errorf("%q", out)
		}
		if out := e.same("--", "npm", "y"); !strings.HasPrefix(out, "v20.1.0 node ") {
			t.Errorf("%q", out)
		}
		if out := e.same("--", "global", "z"); !strings.HasPrefix(out, "v20.1.0 node ") {
			t.Errorf("%q", out)
		}
		e.readOnly(bin, s.root+"/src/global")
		e.noSecrets()
	}
	use := []string{"--", "sh", "-c", `. "$NVM_DIR/nvm.sh"; nvm use; node x`}
	if out := e.same(use...); out != "using v20.1.0\nv20.1.0 node x\n" {
		t.Errorf("%q", out)
	}
	s.write("a/.nvmrc", "v18.9.0\n", 0o644)
	if out := e.same(use...); out != "using v18.9.0\nv18.9.0 node x\n" {
		t.Errorf("%q", out)
	}
}

// toolchains.md B7: Volta's shims are links to one program, which looks in VOLTA_HOME and in package.json above.
func TestToolchainVolta(t *testing.T) {
	s := newSite(t, nil).plant()
	volta := s.home + "/.volta"
	s.write(volta+"/bin/volta-shim", "#!/bin/sh\n"+upwards+`
root=${VOLTA_HOME:-$HOME/.volta}
v=$( { upward package.json || cat "$root/tools/user/platform.json"; } | sed -n 's/.*"node": "\([0-9.]*\)".*/\1/p')
[ -n "$v" ] || exec /usr/bin/env echo "the system's ${0##*/}"
exec "$root/tools/image/node/$v/bin/${0##*/}" "$@"
`, 0o755)
	for _, name := range []string{"node", "npm"} {
		s.link("volta-shim", volta+"/bin/"+name)
		for _, v := range []string{"20.1.0", "18.9.0"} {
			s.tool(volta+"/tools/image/node/"+v+"/bin/"+name, v)
		}
	}
	s.write(volta+"/tools/user/platform.json", `{"node": "20.1.0"}`, 0o644)
	s.mkdir("a/b")
	e := s.at(s.path("a/b")).path0(volta + "/bin")
	check := func(want string) {
		t.Helper()
		for _, e := range []*site{e, e.setenv("VOLTA_HOME=" + volta)} {
			for _, name := range []string{"node", "npm"} {
				if out := e.same("--", name, "x"); out != want+" "+name+" x\n" {
					t.Errorf("%q, want %s", out, want)
				}
			}
			e.readOnly(volta+"/bin", volta+"/tools/image")
			e.noSecrets()
		}
	}
	check("20.1.0")
	s.write("a/package.json", `{"volta": {"node": "18.9.0"}}`, 0o644)
	check("18.9.0")
}

// toolchains.md B7: corepack keeps the package managers that it downloaded below HOME and would download them again; npm link by npm
// itself: a package of the global directory, and its program, are links to a checkout.
func TestToolchainCorepack(t *testing.T) {
	s := newSite(t, nil).plant()
	s.need("node")
	// As corepack's shims: HOME's cache, or what COREPACK_HOME says.
	s.write(s.root+"/cp/lib/node_modules/corepack/dist/pnpm.js", `#!/usr/bin/env node
const path = require('path'), fs = require('fs');
const cache = process.env.XDG_CACHE_HOME || path.join(require('os').homedir(), '.cache');
const home = process.env.COREPACK_HOME || path.join(cache, 'node/corepack');
console.log(fs.existsSync(home + '/v1/pnpm/9.1.0') ? require(home + '/v1/pnpm/9.1.0') : 'would download it', __filename);
`, 0o755)
	s.link("../lib/node_modules/corepack/dist/pnpm.js", s.root+"/cp/bin/pnpm")
	s.write(s.home+"/.cache/node/corepack/v1/pnpm/9.1.0/index.js", "module.exports = 'pnpm 9.1.0 of ' + __filename\n", 0o644)
	s.write(s.home+"/.cache/letter", homeSecret, 0o644)
	e := s.path0(s.root + "/cp/bin")
	kept := s.home + "/.cache/node/corepack"
	for _, e := range []*site{e, e.setenv("XDG_CACHE_HOME=" + s.home + "/.cache"), e.setenv("COREPACK_HOME=" + kept)} {
		e.prints([]string{"pnpm 9.1.0 of " + kept + "/v1/", s.root + "/cp/lib/"}, "--", "pnpm")
		e.readOnly(kept)
		e.hidden(s.home + "/.cache/letter")
		e.noSecrets()
	}
	t.Run("npm link", func(t *testing.T) {
		s := *s
		s.t = t
		npm := s.need("npm")
		src := s.root + "/src/linked"
		s.write(src+"/package.json", `{"name": "linked", "version": "1.0.0", "bin": {"linked": "cli.js"}, "main": "m.js"}`, 0o644)
		s.write(src+"/m.js", "module.exports = __filename\n", 0o644)
		s.write(src+"/cli.js", "#!/usr/bin/env node\nconsole.log(require('./m.js'), process.argv.length)\n", 0o755)
		s.write(s.home+"/.npmrc", "prefix="+s.home+"/.npm-global\n//r/:_authToken="+homeSecret+"\n", 0o600)
		npmLink := []string{npm, "link", "--offline", "--no-audit", "--no-fund", "--silent"}
		s.at(src).command(npmLink...).ok()
		s.write("package.json", `{"name": "user"}`, 0o644)
		s.command(append(npmLink, "linked")...).ok()
		e := s.path0(s.home + "/.npm-global/bin")
		if out := e.same("--", "linked", "x"); out != src+"/m.js 3\n" {
			t.Errorf("%q", out)
		}
		if out := s.same("--", "node", "-p", "require('linked')"); out != src+"/m.js\n" {
			t.Errorf("%q", out)
		}
		e.readOnly(src, s.home+"/.npm-global/lib")
		e.noSecrets()
	})
}

// toolchains.md A2, B7: the programs of packages that were installed globally, by bun, Yarn and pnpm: a link or a script leads into a
// node_modules elsewhere, where the package requires what lies beside it, and other packages.
func TestToolchainGlobalPackages(t *testing.T) {
	s := newSite(t, nil).plant()
	s.need("node")
	for _, tt := range []struct{ bin, modules, link, letter string }{
		{".bun/bin", ".bun/install/global/node_modules", "../install/global/node_modules/gtool/cli.js", "letter"},
		{".yarn/bin", ".config/yarn/global/node_modules", "../../.config/yarn/global/node_modules/.bin/gtool", ".config/yarn/letter"},
		{"n/bin", "elsewhere/node_modules", "../../elsewhere/node_modules/gtool/cli.js", "elsewhere/letter"},
		{".local/share/pnpm", ".local/share/pnpm/global/5/node_modules", "", ".local/share/letter"},
	} {
		bin, modules := filepath.Join(s.home, tt.bin), filepath.Join(s.home, tt.modules)
		s.write(modules+"/gtool/cli.js", "#!/usr/bin/env node\nconsole.log(require('./m.js'), require('dep'), __filename)\n", 0o755)
		s.write(modules+"/gtool/m.js", "module.exports = 'its own'\n", 0o644)
		s.write(modules+"/dep/index.js", "module.exports = 'its dep'\n", 0o644)
		s.link("../gtool/cli.js", modules+"/.bin/gtool")
		s.write(s.home+"/"+tt.letter, homeSecret, 0o600)
		if tt.link == "" {
			s.write(bin+"/gtool", "#!/bin/sh\nbasedir=$(dirname \"$0\")\nexec \"$basedir/global/5/node_modules/gtool/cli.js\" \"$@\"\n", 0o755)
		} else {
			s.link(tt.link, bin+"/gtool")
			s.same("--", bin+"/gtool") // in no PATH
		}
		e := s.path0(bin)
		if out := e.same("--", "gtool"); out != "its own its dep "+modules+"/gtool/cli.js\n" {
			t.Errorf("%s: %q", tt.bin, out)
		}
		e.readOnly(bin, modules, modules+"/gtool")
		e.hidden(s.home + "/" + tt.letter)
		e.noSecrets()
	}
}

// toolchains.md B10: SDKMAN's current is a link, relative or absolute; jenv's shims look for a version above, and its versions are
// links to anywhere.
func TestToolchainSdkman(t *testing.T) {
	s := newSite(t, nil).plant()
	sdk := s.home + "/.sdkman"
	java := sdk + "/candidates/java"
	for _, v := range []string{"21.0.3-tem", "17.0.1-open"} {
		s.write(java+"/"+v+"/bin/java", "#!/bin/sh\necho java "+v+` "$@"; cat "$(dirname "$(readlink -f "$0")")/../lib/security/cacerts"`+"\n", 0o755)
		s.write(java+"/"+v+"/lib/security/cacerts", "authorities of "+v+"\n", 0o644)
	}
	s.tool(s.root+"/later/bin/java", "another")
	for _, text := range []string{"21.0.3-tem", java + "/21.0.3-tem"} {
		must(t, os.RemoveAll(java+"/current"))
		s.link(text, java+"/current")
		e := s.path0(java+"/current/bin", s.root+"/later/bin")
		dirs := []string{"SDKMAN_DIR=" + sdk, "SDKMAN_CANDIDATES_DIR=" + sdk + "/candidates"}
		for _, e := range []*site{e, e.setenv("JAVA_HOME=" + java + "/current"), e.setenv(dirs...)} {
			if out := e.same("--", "java", "x"); out != "java 21.0.3-tem x\nauthorities of 21.0.3-tem\n" {
				t.Errorf("%q", out)
			}
			e.prints([]string{"\n" + text + "\n"}, "--", "sh", "-c", `"${JAVA_HOME:-$1}/bin/java" y; readlink "$1"`, "sh", java+"/current")
			e.readOnly(java+"/current/bin", java+"/21.0.3-tem")
			e.noSecrets()
		}
		s.setenv("JAVA_HOME="+java+"/current").same("--", "sh", "-c", `"$JAVA_HOME/bin/java" z`)
	}
	jenv := s.home + "/.jenv"
	s.write(jenv+"/shims/java", "#!/usr/bin/env bash\nset -e\nexport JENV_ROOT=\""+jenv+"\"\n"+
		"exec \""+jenv+"/libexec/jenv\" exec \"${0##*/}\" \"$@\"\n", 0o755)
	s.write(jenv+"/libexec/jenv", "#!/usr/bin/env bash\n"+upwards+`v=$(upward .java-version) || v=$(cat "$JENV_ROOT/version") || v=system
shift
[ "$v" != system ] || exec echo "the system's $1"
exec "$JENV_ROOT/versions/$v/bin/$@"
`, 0o755)
	s.write(jenv+"/version", "21\n", 0o644)
	s.link(java+"/21.0.3-tem", jenv+"/versions/21")
	s.link(java+"/17.0.1-open", jenv+"/versions/17")
	s.mkdir("a/b")
	e := s.at(s.path("a/b")).path0(jenv+"/shims", s.root+"/later/bin")
	if out := e.same("--", "java", "x"); !strings.HasPrefix(out, "java 21.0.3-tem x\n") {
		t.Errorf("%q", out)
	}
	s.write("a/.java-version", "17\n", 0o644)
	if out := e.same("--", "java", "x"); !strings.HasPrefix(out, "java 17.0.1-open x\n") {
		t.Errorf("%q", out)
	}
	e.readOnly(jenv, jenv+"/versions")
	e.noSecrets()
}

// toolchains.md B16: a view of Spack is a farm of links into the store, whose packages find each other by absolute RPATHs.
func TestToolchainSpack(t *testing.T) {
	s := newSite(t, nil).plant()
	sandtest.Need(t, sandtest.CC)
	store := s.root + "/sw/spack/opt/spack"
	says, tool := store+"/linux-x/gcc-13/says-1-abc", store+"/linux-x/gcc-13/tool-2-def"
	s.write(store+"/.spack-db/index.json", "{}\n", 0o644)
	s.library(says+"/lib", "Spack's")
	s.library(s.root+"/fallback", "another")
	s.loads(tool+"/bin/tool", says+"/lib", "-Wl,--disable-new-dtags", "-Wl,-rpath,"+tool+"/lib:"+says+"/lib:"+s.root+"/fallback")
	for _, p := range []string{says, tool} {
		s.write(p+"/.spack/spec.json", "{}\n", 0o644)
	}
	view := s.root + "/views/default"
	s.link(tool+"/bin/tool", view+"/bin/tool")
	s.link(says+"/lib/libsays.so.1", view+"/lib/libsays.so.1")
	s.write(view+"/.spack/x", "", 0o644)
	s.write(s.root+"/sw/letter", homeSecret, 0o644)
	s.loads(s.path("plain"), says+"/lib")
	for _, e := range []*site{
		s.path0(view+"/bin").setenv("LD_LIBRARY_PATH="+view+"/lib", "SPACK_ENV="+s.root+"/views"),
		s.path0(tool+"/bin").setenv("LD_LIBRARY_PATH="+says+"/lib", "SPACK_ROOT="+s.root+"/sw/spack", "LOADEDMODULES=tool/2"),
	} {
		out := e.same("--", "tool")
		if !strings.HasPrefix(out, "Spack's\n"+tool+"/bin/tool\n") || !strings.Contains(out, "\n"+says+"/lib/libsays.so.1.0\n") {
			t.Errorf("%q", out)
		}
		if out := e.same("--", "./plain"); !strings.HasPrefix(out, "Spack's\n") {
			t.Errorf("%q", out)
		}
		e.readOnly(tool, says+"/lib")
		e.hidden(s.root + "/sw/letter")
		e.noSecrets()
	}
	for _, e := range []*site{s.path0(view + "/bin"), s.path0(tool + "/bin")} { // the RPATHs alone
		e.same("--", "tool")
		e.same("--", "sh", "-c", "tool") // whose libraries nobody has looked at
	}
}

// toolchains.md B17: sccache has a server do the work. One that runs outside compiles there, which a run tells of, as it does of
// results that it will not find.
func TestToolchainSccache(t *testing.T) {
	s := newSite(t, nil).plant()
	const note = "a server of sccache's that runs already compiles outside of this cage"
	s.setenv("RUSTC_WRAPPER=/usr/bin/sccache").selfcage("run", "--", "true").ok().says(note, "sccache --stop-server")
	s.setenv("CMAKE_C_COMPILER_LAUNCHER=env;sccache").selfcage("explain").ok().has(note)
	s.write(s.home+"/.cache/sccache/0/x", "x\n", 0o644)
	e := s.setenv("CC=sccache cc")
	e.selfcage("run", "--", "true").ok().says(note, s.home+"/.cache/sccache", "--cache=sccache would grant it")
	e.run("--cache", "sccache", "--", "sh", "-c", `cat "$SCCACHE_DIR/0/x"`).ok().prints("x\n")
	e.noSecrets("--cache", "sccache")
	s.setenv("CC=ccache cc").selfcage("run", "--", "true").ok().hasNot("sccache")
}

// toolchains.md B17: distcc behind the names of the compilers: it looks by what name it was called, and in HOME for the hosts that
// it may use, without which it compiles on this one.
func TestToolchainDistcc(t *testing.T) {
	s := newSite(t, nil).plant()
	sandtest.Need(t, sandtest.CC)
	distcc := s.need("distcc")
	s.write(s.home+"/.distcc/hosts", "# ours\nlocalhost/2 127.0.0.1/1,lzo # no more\n", 0o644)
	for _, name := range []string{"gcc", "cc"} {
		s.link(distcc, s.home+"/masquerade/"+name)
	}
	s.write("m.c", "int main(void) { return 0; }\n", 0o644)
	for _, dir := range []string{s.home + "/masquerade", "/usr/lib/distcc"} {
		if !exists(dir + "/gcc") {
			continue // made by update-distcc-symlinks
		}
		e := s.path0(dir)
		e.same("--", "sh", "-c", "command -v gcc; gcc -dumpversion; readlink \"$(command -v gcc)\"")
		if out := e.same("--", "distcc", "--show-hosts"); !strings.Contains(out, "localhost") || strings.Contains(out, "no more") {
			t.Errorf("%q", out)
		}
		e.setenv("DISTCC_HOSTS=localhost/7").same("--", "distcc", "--show-hosts")
		e.run("--write", ".", "--", "sh", "-c", "gcc -c m.c && cc m.o -o m && ./m").ok().hasNot("no hostlist", "Read-only")
		e.noSecrets()
	}
}

// toolchains.md B3: with link-mode=symlink the files of an environment's packages are links into uv's cache; a python of uv's in
// ~/.local/bin is a link, too.
func TestToolchainUVLinks(t *testing.T) {
	s := newSite(t, nil).plant()
	store := s.home + "/.local/share/uv/python"
	py := s.python(store + "/cpython-3.99.2-linux")
	s.link("cpython-3.99.2-linux", store+"/alias")
	v := s.venv(s.path(".venv"), store+"/alias", py.version, "home = "+store+"/alias/bin\nuv = 0.5\n")
	cache := s.home + "/.cache/uv"
	pkg := cache + "/archive-v0/AbCd"
	s.write(cache+"/CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55\n", 0o644)
	s.write(pkg+"/dep/__init__.py", "import os\nwhere = os.path.realpath(__file__)\n", 0o644)
	s.write(pkg+"/dep-1.dist-info/METADATA", "Name: dep\n", 0o644)
	for _, f := range []string{"dep/__init__.py", "dep-1.dist-info/METADATA"} {
		s.link(pkg+"/"+f, v+"/lib/python"+py.version+"/site-packages/"+f)
	}
	s.write(s.home+"/.cache/letter", homeSecret, 0o644)
	s.link(store+"/alias/bin/python"+py.version, s.home+"/.local/bin/python3.99")
	for _, e := range []*site{s.path0(v + "/bin"), s.setenv("VIRTUAL_ENV="+v, "PATH="+v+"/bin:"+s.bin+":"+cleanPath)} {
		e.prints([]string{v + "/lib/python" + py.version + "/site-packages/dep/__init__.py " + pkg + "/dep/__init__.py\n"},
			"--", "python", "-c", "import dep; print(dep.__file__, dep.where)")
		e.readOnly(v, cache+"/archive-v0", pkg)
		e.hidden(s.home + "/.cache/letter")
		e.noSecrets()
	}
	e := s.path0(s.home + "/.local/bin")
	e.prints([]string{"\n" + store + "/", "\n" + s.home + "/.local/bin/python3.99\n"}, "--", "python3.99", "-c", whichPython)
	e.noSecrets()
}

// toolchains.md B3: uv itself looks for its pythons and tools below HOME, and for .python-version above the working directory. It
// would download what it does not find.
func TestToolchainUVRun(t *testing.T) {
	s := newSite(t, nil).plant()
	data := s.home + "/.local/share/uv"
	for _, v := range []string{"3.98", "3.99"} {
		s.tool(data+"/python/cpython-"+v+".2-linux/bin/python", v)
		s.link("cpython-"+v+".2-linux", data+"/python/cpython-"+v+"-linux")
	}
	s.write(data+"/tools/ruff/bin/ruff", "#!/bin/sh\necho ruff of \"$0\"\n", 0o755)
	s.write(data+"/credentials/credentials.toml", homeSecret, 0o600)
	s.write(s.home+"/.local/bin/uv", "#!/bin/sh\n"+upwards+`
data=${XDG_DATA_HOME:-$HOME/.local/share}/uv
pythons=${UV_PYTHON_INSTALL_DIR:-$data/python} tools=${UV_TOOL_DIR:-$data/tools}
case $1 in
run)
	version=$(upward .python-version || echo 3.99)
	[ -d "$pythons/cpython-$version-linux" ] || exec echo "would download $version"
	shift 2
	exec "$pythons/cpython-$version-linux/bin/python" "$@";;
tool) ls "$tools"; exec "$tools/$2/bin/$2";;
esac
`, 0o755)
	s.mkdir("a/b")
	e := s.at(s.path("a/b")).path0(s.home + "/.local/bin")
	check := func(want string) {
		t.Helper()
		dirs := []string{"UV_PYTHON_INSTALL_DIR=" + data + "/python", "UV_TOOL_DIR=" + data + "/tools"}
		for _, e := range []*site{e, e.setenv("XDG_DATA_HOME=" + s.home + "/.local/share"), e.setenv(dirs...)} {
			if out := e.same("--", "uv", "run", "python", "x"); out != want+" python x\n" {
				t.Errorf("%q, want %s", out, want)
			}
			if out := e.same("--", "uv", "tool", "ruff"); out != "ruff\nruff of "+data+"/tools/ruff/bin/ruff\n" {
				t.Errorf("%q", out)
			}
			e.readOnly(data+"/python", data+"/tools")
			e.hidden(data + "/credentials/credentials.toml")
			e.noSecrets()
		}
	}
	check("3.99")
	s.write("a/.python-version", "3.98\n", 0o644)
	check("3.98")
}

// toolchains.md, cases of source trees: crates that Cargo.toml names by path, through another that names them, and what lies above.
func TestToolchainCargoPath(t *testing.T) {
	s := newSite(t, nil).plant()
	s.write(".git/HEAD", "ref: refs/heads/main\n", 0o644)
	s.write("Cargo.toml", "[package]\nname = \"m\"\n[dependencies]\nnear = { version = \"1\", path = \"../libs/near\" }\n"+
		"[dependencies.far]\npath = '../libs/far'\n", 0o644)
	s.write(s.root+"/libs/near/Cargo.toml", "[package]\nname = \"near\"\n[dependencies]\ndeep = { path = \"../../more/deep\" }\n", 0o644)
	s.write(s.root+"/libs/far/Cargo.toml", "[package]\nname = \"far\"\n", 0o644)
	s.write(s.root+"/more/deep/Cargo.toml", "[package]\nname = \"deep\"\n", 0o644)
	trees := []string{s.root + "/libs/near", s.root + "/libs/far", s.root + "/more/deep"}
	for _, d := range trees {
		s.write(d+"/src/lib.rs", "// of "+d+"\n", 0o644)
	}
	s.write(s.root+"/libs/unnamed/Cargo.toml", "[package]\n", 0o644)
	s.write(s.root+"/libs/letter", homeSecret, 0o644)
	s.mkdir("src/deep")
	for _, e := range []*site{s, s.at(s.path("src/deep"))} {
		out := e.same(append([]string{"--", "sh", "-c", `for d; do cat "$d/Cargo.toml" "$d/src/lib.rs" || exit; done`, "sh"}, trees...)...)
		if strings.Count(out, "// of ") != 3 {
			t.Errorf("%q", out)
		}
		e.readOnly(trees...)
		e.hidden(s.root+"/libs/unnamed/Cargo.toml", s.root+"/libs/letter")
		e.noSecrets()
	}
}

// Of what holds more than a run can need, be there credentials in it or not, a directory in PATH shows itself alone, and what its
// links lead to.
func TestToolchainBroadRoots(t *testing.T) {
	s := newSite(t, nil)
	for _, dir := range strings.Fields(".local .config .cache .local/share .local/state .var Desktop Documents Downloads") {
		root := filepath.Join(s.home, dir)
		s.tool(root+"/bin/some-tool", dir)
		s.tool(root+"/letters/bin/linked", "linked")
		s.link("../letters/bin/linked", root+"/bin/linked")
		s.write(root+"/lib/libx.so", "x\n", 0o644) // as if it were an installation
		s.write(root+"/letter", homeSecret, 0o644)
		s.write(root+"/papers/letter", homeSecret, 0o644)
		e := s.path0(root + "/bin")
		if out := e.same("--", "some-tool"); out != dir+" some-tool\n" {
			t.Errorf("%q", out)
		}
		e.same("--", "linked")
		e.hidden(root+"/letter", root+"/papers/letter")
		e.readOnly(root + "/bin")
		e.noSecrets()
		must(t, os.RemoveAll(root))
	}
}

// In each directory that a tool must have, credentials may lie: of the files that tools put there the cage has empty ones, and
// the directory is there all the same.
func TestToolchainCredentialFiles(t *testing.T) {
	s := newSite(t, nil).plant()
	names := strings.Fields("credentials credentials.toml .netrc .npmrc .pypirc .git-credentials etc/npmrc pip.conf etc/pip.conf .condarc")
	s.tool(s.home+"/.cargo/bin/cargo", "cargo")
	for _, tt := range []struct {
		root, path, env string // below the home: the directory, what is in PATH; and the variable that names the directory
		file            string // of the directory
		alone           bool   // the variable is enough
	}{
		{".rustup", ".cargo/bin", "RUSTUP_HOME", "toolchains/stable/bin/rustc", false},
		{".nvm", ".nvm/versions/node/v20/bin", "NVM_DIR", "versions/node/v20/lib/x", true},
		{".local/share/fnm", ".local/share/fnm/node-versions/v20/installation/bin", "FNM_DIR", "node-versions/v20/installation/lib/x", true},
		{".volta", ".volta/bin", "VOLTA_HOME", "tools/user/platform.json", true},
		{".pyenv", ".pyenv/shims", "PYENV_ROOT", "versions/3/bin/python", false},
		{".asdf", ".asdf/shims", "ASDF_DATA_DIR", "installs/a/1/bin/a", true},
		{".local/share/mise", ".local/share/mise/shims", "MISE_DATA_DIR", "installs/a/1/bin/a", true},
		{".sdkman", ".sdkman/candidates/java/current/bin", "SDKMAN_DIR", "candidates/java/current/lib/x", true},
		{".jenv", ".jenv/shims", "JENV_ROOT", "versions/x", true},
		{"mc/envs/E", "mc/envs/E/bin", "CONDA_PREFIX", "conda-meta/history", true},
		{"mamba", "mamba/condabin", "MAMBA_ROOT_PREFIX", "conda-meta/history", true},
		{"venvs/v", "venvs/v/bin", "VIRTUAL_ENV", "pyvenv.cfg", true},
		{".npm-global", ".npm-global/bin", "", "lib/node_modules/x/package.json", false},
		{".local/share/pnpm", ".local/share/pnpm", "PNPM_HOME", "global/x", true},
		{".bun", ".bun/bin", "BUN_INSTALL", "install/global/x", false},
		{"jdk", "jdk/bin", "JAVA_HOME", "lib/security/cacerts", true},
		{"rocm", "rocm/bin", "ROCM_PATH", "lib/libx.so", true},
		{"tool-1.0", "tool-1.0/bin", "", "lib/x", false},
	} {
		root, path := filepath.Join(s.home, tt.root), filepath.Join(s.home, tt.path)
		for _, f := range names {
			s.write(filepath.Join(root, f), "//r/:_authToken = "+homeSecret+"\n", 0o644)
		}
		s.write(filepath.Join(root, tt.file), "of "+tt.root+"\n", 0o755)
		s.tool(path+"/some-tool", tt.root)
		ways := []*site{s.path0(path)}
		if tt.env != "" {
			ways = append(ways, s.path0(path).setenv(tt.env+"="+root))
		}
		if tt.alone {
			ways = append(ways, s.setenv(tt.env+"="+root))
		}
		for i, e := range ways {
			r := e.run(append([]string{"--", "sh", "-c", `cd "$1"; cat "$@"`, "sh", root, tt.file}, names...)...)
			if r.hasNot(homeSecret); r.out != "of "+tt.root+"\n" {
				t.Errorf("%s, way %d: %q %s", tt.root, i, r.out, r.err)
			}
			e.noSecrets()
		}
	}
}
