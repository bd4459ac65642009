package cli_test

import (
	"os"
	"strings"
	"testing"

	"github.com/selfcage/selfcage/plan"
)

// R15, hosts.md 12 to 14, cases 34: a tool's own cache, granted by the tool's name. It is made where it is missing, as
// the tool would outside, and nothing beside it is shown or can be written.
func TestCache(t *testing.T) {
	s := newSite(t, nil).plant()
	cache := s.home + "/.cache"
	list := `for d; do ls -d "$d"; done; touch "$1/kept"; touch "$1/../beside" || echo refused`
	dirs := []string{cache + "/pip", cache + "/uv", cache}
	words := append([]string{"--", "sh", "-c", list, "sh"}, dirs...)

	s.selfcage(append([]string{"explain", "--cache", "pip"}, words...)...).ok().has("made on the host first", cache+"/pip")
	if exists(cache + "/pip") {
		t.Fatal("explain made it")
	}
	r := s.run(append([]string{"--cache", "pip"}, words...)...)
	r.ok().prints(dirs[0]+"\n"+cache+"\nrefused\n").says("Read-only file system", "cannot access '"+cache+"/uv'")
	fi, err := os.Stat(cache + "/pip")
	must(t, err)
	if fi.Mode().Perm() != 0o700 || !exists(cache+"/pip/kept") || exists(cache+"/beside") || exists(cache+"/uv") {
		t.Errorf("mode %v; kept %v", fi.Mode(), exists(cache+"/pip/kept"))
	}
	// By the variable, several at once; the tools find them though HOME moved.
	e := s.setenv("SANDBOX_CACHE=pip,uv,npm")
	e.run("--", "sh", "-c", `echo "$PIP_CACHE_DIR" "$UV_CACHE_DIR" "$npm_config_cache"; ls "$PIP_CACHE_DIR"; touch "$npm_config_cache/x"`).
		ok().prints(cache + "/pip " + cache + "/uv " + s.home + "/.npm\nkept\n")
	if !exists(s.home + "/.npm/x") {
		t.Error("npm's is lost")
	}
	// Inside, the same can be asked for again, and no more.
	e.run("--", "selfcage", "run", "--cache", "pip", "--", "sh", "-c", "ls $PIP_CACHE_DIR").ok().prints("kept\n")
	e.run("--", "selfcage", "run", "--cache", "mage", "--", "echo", "ran").refused("--cache mage", "does not make it writable")
	e.noSecrets()

	s.run("--cache", "nosuch", "--", "echo", "ran").refused(`--cache, "nosuch"`, "no cache of that name", "known are go, gomod")
	s.setenv("SANDBOX_CACHE=pip,nosuch").run("--", "echo", "ran").refused("SANDBOX_CACHE", `"nosuch"`)
	s.setenv("GOCACHE="+s.home).run("--cache", "go", "--", "echo", "ran").refused("--cache go", s.home)
	s.setenv("GOCACHE="+s.home+"/.ssh/x").run("--cache", "go", "--", "echo", "ran").refused("--cache go", ".ssh")
	if exists(s.home + "/.ssh/x") {
		t.Error("made, though refused")
	}
	s.link("nowhere", cache+"/mage")
	s.setenv("MAGEFILE_CACHE="+cache+"/mage").run("--cache", "mage", "--", "echo", "ran").refused("--cache mage", "leads nowhere")
	if os.Getuid() != 0 {
		locked := s.mkdir("locked")
		must(t, os.Chmod(locked, 0o555))
		s.setenv("GOCACHE="+locked+"/x").run("--cache", "go", "--", "echo", "ran").refused("--cache go", locked+"/x", "permission denied")
	}
}

// Credentials, programs and configuration lie beside cargo's crates: none of them is granted with them.
func TestCacheCargo(t *testing.T) {
	s := newSite(t, nil).plant()
	cargo := s.home + "/.cargo"
	s.write(cargo+"/bin/tool", "#!/bin/sh\necho tool\n", 0o755)
	s.write(cargo+"/config.toml", "[net]\noffline = true\n", 0o644)
	e := s.path0(cargo + "/bin")
	r := e.run("--cache", "cargo", "--", "sh", "-c", `
		cd "$CARGO_HOME" || exit
		for f in registry/new git/new .package-cache bin/tool bin/new config.toml credentials.toml new; do
			{ echo "# added" >>$f; } 2>/dev/null && echo $f
		done
		tool; cat config.toml credentials.toml`)
	if !strings.HasPrefix(r.out, "registry/new\ngit/new\n.package-cache\ntool\n[net]\noffline = true\n") {
		t.Errorf("status %d: %s%s", r.status, r.out, r.err)
	}
	r.hasNot(homeSecret)
	if read(t, cargo+"/bin/tool") != "#!/bin/sh\necho tool\n" || !exists(cargo+"/registry/new") {
		t.Error("written in the wrong place")
	}
	e.noSecrets("--cache", "cargo")
}

// A run whose command is the tool itself says that its cache is not there. Others do not.
func TestCacheNote(t *testing.T) {
	s := newSite(t, nil)
	s.need("npm")
	e := s.setenv("SANDBOX_NETWORK=none")
	e.selfcage("run", "--", "npm", "--version").ok().silent()
	must(t, os.MkdirAll(s.home+"/.npm/_cacache", 0o755))
	e.selfcage("run", "--", "npm", "--version").ok().says("nothing new is kept", s.home+"/.npm", "--cache=npm would grant it")
	e.selfcage("run", "--cache", "npm", "--", "npm", "--version").ok().silent()
	e.selfcage("run", "--", "true").ok().silent()
	// A package of a local file goes through the cache, and stays there for the next run without the file.
	s.write("dep/package.json", `{"name":"dep","version":"1.2.3","main":"i.js"}`, 0o644)
	s.write("dep/i.js", "console.log('dep')\n", 0o644)
	s.write("app/package.json", `{"name":"app","version":"0.0.1"}`, 0o644)
	app := e.at(s.path("app"))
	app.run("--write", s.path("dep"), "--", "sh", "-c", "cd ../dep && npm pack --silent").ok()
	app.run("--cache", "npm", "--read", "../dep", "--write", ".", "--", "npm", "install", "--no-audit", "--no-fund", "--silent", "../dep/dep-1.2.3.tgz").ok()
	if got := app.run("--", "node", "-e", "require('dep')").ok().out; got != "dep\n" {
		t.Errorf("%q", got)
	}
	if r := s.sh(`grep -rl dep-1.2.3 "$1"`, s.home+"/.npm/_cacache").ok(); r.out == "" {
		t.Error("nothing of it in the cache of outside")
	}
}

// What explain --format argv prints makes the cache, too.
func TestCacheArgv(t *testing.T) {
	s := newSite(t, nil)
	script := s.selfcage("explain", "--format", "argv", "--cache", "mage", "--", "sh", "-c", "touch $MAGEFILE_CACHE/x").ok().out
	s.sh(script).ok()
	if !exists(s.home+"/.magefile/x") || exists(plan.Home) {
		t.Errorf("not there after\n%s", script)
	}
}
