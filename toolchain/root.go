package toolchain

import (
	"strings"

	"github.com/selfcage/selfcage/internal/hostfs"
)

// rootOf returns what must be bound for the resolved path r: full is all that it was installed with, root the part of it
// that may be shown, "" for nothing.
func (f *finder) rootOf(r hostfs.Resolved, how extent) (root, full string) {
	full = f.store(r.Path)
	if full == "" {
		full = r.Path
		if how == installation {
			full = f.installation(r)
		}
	}
	// What is shown already needs no permission.
	for _, p := range [...]string{full, r.Path} {
		if f.shown(p) {
			return p, full
		}
		if _, secret := f.secret(p); !secret {
			return p, full
		}
	}
	return "", full
}

// store returns the package store that p lies in: its packages name each other by absolute paths, so one is not enough.
func (f *finder) store(p string) string {
	for _, s := range [...]string{"/nix/store", "/gnu/store"} {
		if hostfs.Within(p, s) {
			return s
		}
	}
	return ""
}

// installation is the directory that the file or directory was installed into: the parent of bin, where lib and share
// lie beside it. Where it is not clear that there is one, it is the file or directory itself.
func (f *finder) installation(r hostfs.Resolved) string {
	dir := r.Path
	if !r.Info.IsDir() {
		dir = hostfs.Parent(dir)
	}
	prefix := prefixOf(dir)
	if prefix == "" {
		// In /opt each add-on package has a directory of its own (Filesystem Hierarchy Standard 3.13).
		if rest, ok := strings.CutPrefix(r.Path, "/opt/"); ok && !r.Info.IsDir() && strings.Contains(rest, "/") {
			name, _, _ := strings.Cut(rest, "/")
			return "/opt/" + name
		}
		// A program of a package of Node's requires what lies beside it, and other packages.
		if before, _, ok := strings.Cut(r.Path, "/node_modules/"); ok && !r.Info.IsDir() {
			return before + "/node_modules"
		}
		return r.Path
	}
	// GNU Stow: /opt/bin is a link into /opt/stow/tool, and the tool was told that it lies in /opt. Homebrew's programs
	// name their loader and each other by the prefix that holds the Cellar.
	for _, part := range [...]string{"/stow/", "/Cellar/"} {
		if farm, _, ok := strings.Cut(prefix, part); ok && farm != "" {
			if _, secret := f.secret(farm); !secret {
				return farm
			}
		}
	}
	if s := f.spack(prefix); s != "" {
		return s
	}
	switch {
	case f.shown(prefix):
		return prefix
	case f.mixed(prefix):
		return r.Path
	case f.shallow(prefix) && !f.prefixLike(prefix):
		return r.Path
	}
	return prefix
}

// mixed says whether programs lie in dir beside what they do not need: GOPATH with its sources, CARGO_HOME, where
// credentials lie or will. Other recognisers show what is used of it.
func (f *finder) mixed(dir string) bool {
	return f.has(dir, "pkg") && f.exists(dir, "pkg/mod") || f.has(dir, ".package-cache") || dir == f.env["CARGO_HOME"] || dir == "/snap"
}

// prefixOf returns the parent of the directory that is bin, lib or the like, "" for any other. Of what lies below lib only
// a few names are known: not every tree with a lib in it is an installation.
func prefixOf(dir string) string {
	for level, below := 0, ""; level < 3; level++ {
		base := dir[strings.LastIndexByte(dir, '/')+1:]
		parent := hostfs.Parent(dir)
		switch base {
		case "bin", "sbin", "libexec", "shims", "condabin", ".bin":
			if level < 2 { // bin/linux64
				if strings.HasSuffix(parent, "/libexec") {
					return hostfs.Parent(parent)
				}
				return parent
			}
		case "lib", "lib64", "lib32", "include", "share":
			if level == 0 && base != "share" || below == "pkgconfig" || strings.Contains(below, "-linux-") {
				return parent
			}
		}
		dir, below = parent, base
	}
	return ""
}

// shallow says whether dir lies directly in the root or in a home: ~/work/bin must not show ~/work.
func (f *finder) shallow(dir string) bool {
	parent := hostfs.Parent(dir)
	return parent == "/" || contains(f.Homes, parent)
}

// prefixLike says whether dir looks like something that programs were installed into.
func (f *finder) prefixLike(dir string) bool {
	for _, name := range [...]string{"lib", "share", "libexec", "lib64", "pyvenv.cfg", "shims", "conda-meta", "stow", "Cellar", ".git"} {
		if f.has(dir, name) {
			return true
		}
	}
	return false
}

// spack returns the Spack store that a package lies in: packages find each other by absolute RPATHs.
func (f *finder) spack(prefix string) string {
	if !f.has(prefix, ".spack") {
		return ""
	}
	for d, i := hostfs.Parent(prefix), 0; d != "/" && i < 8; d, i = hostfs.Parent(d), i+1 {
		if f.exists(d, ".spack-db") {
			return d
		}
	}
	return ""
}

func (f *finder) exists(dir, name string) bool {
	return f.is(hostfs.Join(dir, name))
}

// secret says why p is not shown by itself. It knows the directories that hold everybody's affairs; what holds
// credentials is for Host.Secret to say.
func (f *finder) secret(p string) (why string, yes bool) {
	if why = f.broad(p); why != "" {
		return why, true
	}
	// What lies in a directory without credentials has none: asking for /opt answers for all that is in it.
	for d := p; d != "/"; d = hostfs.Parent(d) {
		if why, known := f.judged[d]; known && why == "" {
			return "", false
		}
	}
	if d := hostfs.Parent(p); d != "/" && f.judge(d) == "" {
		return "", false
	}
	why = f.judge(p)
	return why, why != ""
}

func (f *finder) judge(p string) string {
	why, known := f.judged[p]
	if !known {
		if s, yes := f.Secret(p); yes {
			if why = s; why == "" {
				why = "it may hold credentials"
			}
		}
		f.judged[p] = why
	}
	return why
}

func (f *finder) broad(p string) string {
	const much = "it holds more than a run can need"
	switch p {
	case "/", "/opt", "/usr", "/etc", "/var", "/var/lib", "/var/cache", "/home", "/root", "/boot", "/mnt", "/media", "/srv",
		"/run", "/run/user", "/var/run", "/tmp", "/var/tmp", "/dev/shm", "/nix", "/nix/var", "/snap", "/data", "/lustre", "/scratch":
		if p == "/opt" && f.prefixLike(p) {
			return "" // PATH has /opt/bin
		}
		return much
	}
	for _, d := range [...]string{"/proc", "/dev", "/sys", "/run/selfcage"} {
		if hostfs.Within(p, d) && !(hostfs.Within(p, "/dev/shm") && d == "/dev") {
			return "the cage has its own in that place"
		}
	}
	switch hostfs.Parent(p) {
	case "/home":
		return "it is a home"
	case "/run/user":
		return much
	}
	for _, h := range f.Homes {
		if hostfs.Within(h, p) {
			return "it is the home, or above it"
		}
		switch strings.TrimPrefix(p, h) {
		case "/.local", "/.config", "/.cache", "/.local/share", "/.local/state", "/.var", "/Desktop", "/Documents", "/Downloads":
			return much
		}
	}
	return ""
}

// credentialFiles are those that tools put into the directory they are installed in.
var credentialFiles = [...]string{"credentials", "credentials.toml", ".netrc", ".npmrc", ".pypirc", ".git-credentials",
	"etc/npmrc", "pip.conf", "etc/pip.conf", ".condarc", "condarc"}

// hide returns the files below root that hold credentials.
func (f *finder) hide(root string) (files []string) {
	fi, err := f.View.Lstat(root)
	if err != nil || !fi.IsDir() || hostfs.Within(root, "/nix/store") || hostfs.Within(root, "/gnu/store") {
		return nil
	}
	names := credentialFiles[:]
	if f.has(root, "condarc.d") {
		for _, e := range f.readDir(root + "/condarc.d") {
			names = append(names[:len(names):len(names)], "condarc.d/"+e.Name())
		}
	}
	for _, name := range names {
		if top, _, _ := strings.Cut(name, "/"); !f.has(root, top) {
			continue
		}
		r, err := f.walk(hostfs.Join(root, name))
		if err != nil || !r.Info.Mode().IsRegular() || !hostfs.Within(r.Path, root) {
			continue
		}
		switch {
		case strings.HasPrefix(name, "condarc"), name == "etc/npmrc", name == "pip.conf", name == "etc/pip.conf", name == ".condarc", name == ".npmrc":
			// Ordinary settings, mostly.
			if data, ok := f.small(r.Path); ok && !holdsSecret(data) {
				continue
			}
		}
		files = union(files, []string{r.Path})
	}
	return files
}

// cover hides the same in directory dir, which lies in a root that is needed anyway.
func (f *finder) cover(dir string) {
	for i := range f.out.Needs {
		if n := &f.out.Needs[i]; n.Root != "" && n.Root != dir && n.Home == "" && hostfs.Within(dir, n.Root) {
			n.Hide = union(n.Hide, f.hide(dir))
			return
		}
	}
}

// coverEach is cover for each environment in directory dir that has one of the named files, which are looked for first:
// there may be a hundred environments.
func (f *finder) coverEach(dir string, names ...string) {
	real, list := f.entries(dir)
	for _, e := range list {
		p := hostfs.Join(real, e.Name())
		for _, name := range names {
			if e.IsDir() && f.exists(p, name) {
				f.cover(p)
				break
			}
		}
	}
}

// holdsSecret says whether a file of settings looks as if one of them were a secret.
func holdsSecret(text string) bool {
	low := strings.ToLower(text)
	for _, w := range [...]string{"token", "passw", "secret", "_auth", "apikey", "api_key", "credential"} {
		if strings.Contains(low, w) {
			return true
		}
	}
	channel := strings.Contains(text, "://") && strings.Contains(text, "/t/") // https://conda.anaconda.org/t/TOKEN/channel
	return channel || userInfo(text)
}

// plainName says whether s is a name rather than a token: a short word of letters.
func plainName(s string) bool {
	return len(s) < 20 && strings.Trim(strings.ToLower(s), "abcdefghijklmnopqrstuvwxyz.-") == ""
}

// userInfo says whether text holds a URL with a password in it, or, over HTTP, with a token in the place of a name.
func userInfo(text string) bool {
	for {
		before, rest, ok := strings.Cut(text, "://")
		if !ok {
			return false
		}
		end := strings.IndexAny(rest, "/ \t\r\n\"'|,")
		if end < 0 {
			end = len(rest)
		}
		web := strings.HasSuffix(before, "http") || strings.HasSuffix(before, "https")
		if at := strings.LastIndexByte(rest[:end], '@'); at >= 0 && (web && !plainName(rest[:at]) || strings.Contains(rest[:at], ":")) {
			return true
		}
		text = rest
	}
}

// beside shows what lies beside the links on the way to a file: python looks for pyvenv.cfg beside the name it was
// started by, mise for its installs beside the shim.
func (f *finder) beside(r hostfs.Resolved, why string) {
	if r.Info.IsDir() {
		return
	}
	for _, l := range r.Links {
		dir := hostfs.Parent(l.Path)
		prefix := prefixOf(dir)
		if prefix == "" || hostfs.Within(dir, "/usr") || hostfs.Within(dir, "/etc") || f.inspected[prefix] {
			continue
		}
		// A whole ~/.local or CARGO_HOME is not needed for one link in it, and the link itself comes along.
		if _, secret := f.secret(prefix); secret && !f.shown(prefix) || f.mixed(prefix) || f.shallow(prefix) && !f.prefixLike(prefix) {
			continue
		}
		d, err := f.walk(prefix)
		if err != nil || f.store(d.Path) != "" {
			continue
		}
		f.emit(prefix, d, d.Path, installation, why)
		f.inspect(d.Path)
	}
}

// scan follows the links in directory dir that lead out of root, which is there or will be.
func (f *finder) scan(dir, root string) {
	if f.done["*"+dir] {
		return
	}
	f.done["*"+dir] = true
	for _, e := range f.readDir(dir) {
		p := hostfs.Join(dir, e.Name())
		if isLink(e) {
			f.followOut(p, root, "where a name of "+dir+" leads")
		} else if root == dir && e.Type().IsRegular() && f.heads > 0 {
			f.heads--
			f.script(p) // one that pip installed for the user names an interpreter
		}
	}
}

// followOut shows what the link at p leads to, if that lies outside of root.
func (f *finder) followOut(p, root, why string) {
	if f.links <= 0 {
		f.note("not every link could be looked at: some that " + hostfs.Parent(p) + " and others hold may lead nowhere inside")
		return
	}
	f.links--
	text, err := f.View.ReadLink(p)
	if err != nil || stays(text, p, root) {
		return
	}
	if r, err := f.walk(p); err == nil && f.software(r) {
		f.installed(p, why)
	}
}

// software says whether a file or directory is something that programs start, load or import. What names it may be a link
// or a line in a tree that the cage is there to hold back, and must not get a directory of letters shown.
func (f *finder) software(r hostfs.Resolved) bool {
	if !r.Info.IsDir() {
		return loadable(r)
	}
	return f.has(r.Path, "bin") || f.pythonCode(r.Path) || f.libraryDir(r.Path)
}

// loadable says whether r is an executable or, by its name, a library.
func loadable(r hostfs.Resolved) bool {
	name := r.Path[strings.LastIndexByte(r.Path, '/')+1:]
	return r.Info.Mode().IsRegular() && (r.Info.Mode().Perm()&0o111 != 0 || strings.HasSuffix(name, ".so") || strings.Contains(name, ".so."))
}

// libraryDir says whether a directory holds libraries.
func (f *finder) libraryDir(dir string) bool {
	for _, e := range f.readDir(dir) {
		if name := e.Name(); strings.HasSuffix(name, ".so") || strings.Contains(name, ".so.") {
			return true
		}
	}
	return false
}

// stays says whether the link at p with that text leads to a place in root, as far as the text tells.
func stays(text, p, root string) bool {
	if strings.HasPrefix(text, "/") {
		return hostfs.Within(text, root) && usable(text)
	}
	dir := hostfs.Parent(p)
	for {
		rest, up := strings.CutPrefix(text, "../")
		if !up {
			break
		}
		dir, text = hostfs.Parent(dir), rest
	}
	return hostfs.Within(dir, root) && text != ".." && !strings.Contains(text, "../")
}

// farm shows the other links that a stow farm in a place which is not shown itself consists of: ~/.local/share/tool
// beside ~/.local/bin/tool.
func (f *finder) farm(r hostfs.Resolved) {
	farm, rest, ok := strings.Cut(r.Path, "/stow/")
	if !ok || farm == "" || f.shown(farm) {
		return
	}
	name, _, _ := strings.Cut(rest, "/")
	pkg := farm + "/stow/" + name
	if f.done["farm "+pkg] {
		return
	}
	f.done["farm "+pkg] = true
	const why = "a tool that stow installed finds its data through it"
	for _, d := range [...]string{"lib", "share", "libexec", "etc"} {
		fi, err := f.View.Lstat(hostfs.Join(farm, d))
		if err != nil {
			continue
		}
		if !fi.IsDir() { // folded: the package's is the only one
			f.farmLink(farm+"/"+d, farm, why)
			continue
		}
		_, list := f.entries(pkg + "/" + d)
		for _, e := range list[:min(len(list), 20)] {
			f.farmLink(farm+"/"+d+"/"+e.Name(), farm, why)
		}
	}
}

func (f *finder) farmLink(p, farm, why string) {
	if r, err := f.walk(p); err == nil && len(r.Links) > 0 && hostfs.Within(r.Path, farm+"/stow") {
		f.tree(p, why)
	}
}

// stores are directories in which a tool keeps one installation in each directory: a sibling shows no more than software.
// Others, whatever they are called, may hold anything.
var stores = [...]string{"/uv/tools", "/uv/python", "/pipx/venvs", "/fnm/node-versions", "/.nvm/versions/node", "/.pyenv/versions",
	"/.rustup/toolchains", "/pypoetry/virtualenvs", "/share/virtualenvs", "/.virtualenvs"}

func isStore(dir string) bool {
	for _, s := range stores {
		if strings.HasSuffix(dir, s) {
			return true
		}
	}
	above := hostfs.Parent(dir) // installs/node/22.1.0
	return strings.HasSuffix(above, "/mise/installs") || strings.HasSuffix(above, "/.asdf/installs") || strings.HasSuffix(above, "/.sdkman/candidates")
}

// joinStores replaces three roots or more of one store by the store itself: each mount costs time at every start.
func (f *finder) joinStores() {
	for i := range f.out.Needs {
		root := f.out.Needs[i].Root
		parent := hostfs.Parent(root)
		if root == "" || f.out.Needs[i].Home != "" || !isStore(parent) {
			continue
		}
		n := 0
		for _, other := range f.out.Needs {
			if other.Root != "" && hostfs.Parent(other.Root) == parent {
				n++
			}
		}
		if _, secret := f.secret(parent); n < 3 || secret {
			continue
		}
		f.out.Needs[i].Root = parent
		f.out.Needs[i].Why += " (with its neighbours in " + parent + ")"
		f.roots = append(f.roots, parent)
		f.coverEach(parent, "pip.conf")
	}
}
