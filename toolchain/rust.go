package toolchain

import (
	"strings"

	"github.com/selfcage/selfcage/internal/hostfs"
)

func (f *finder) cargoHome() string {
	if v := f.env["CARGO_HOME"]; v != "" {
		return v
	}
	return f.inHome(".cargo")
}

// rust shows rustup's toolchains and of CARGO_HOME what holds no credentials. The programs in CARGO_HOME/bin are links to
// rustup, which asks by what name it was started; by its own name it would be silent about the difference.
func (f *finder) rust() {
	home := f.cargoHome()
	if !f.uses(home) {
		if p, ok := f.which("cargo"); !ok {
			return
		} else {
			f.installed(p, "cargo")
		}
	}
	rustup := f.env["RUSTUP_HOME"]
	if rustup == "" {
		rustup = f.inHome(".rustup")
	}
	if dir, ok := f.dataDir("RUSTUP_HOME", rustup, "rustup's toolchains and settings: without them it can choose no version"); ok {
		if r, err := f.walk(dir); err == nil {
			f.scanLinks(hostfs.Join(r.Path, "toolchains"))
		}
	}
	for _, p := range f.upward("which toolchain: without it another version runs", false, "rust-toolchain", "rust-toolchain.toml") {
		if text, ok := f.small(p); ok {
			if own := f.resolve(setting(text, "path"), hostfs.Parent(p)); setting(text, "path") != "" && f.exists(own, "bin/rustc") {
				f.tree(own, p+" names it")
			}
		}
	}
	f.upward("cargo reads every one of them", true, ".cargo/config.toml", ".cargo/config")
	if home == "" {
		return
	}
	// The directory itself is not shown, but for its parts: credentials lie beside them, or will.
	any := false
	for _, part := range [...]struct{ name, why string }{
		{"registry", "crates that were downloaded"}, {"git", "crates that were downloaded"},
	} {
		_, ok := f.tree(home+"/"+part.name, part.why)
		any = any || ok
	}
	for _, name := range [...]string{"config.toml", "config"} {
		p := home + "/" + name
		switch text, ok := f.small(p); {
		case !ok:
		case holdsSecret(text):
			f.note(p + " is not visible inside: it looks as if it held a secret")
		default:
			_, ok = f.tree(p, "cargo's settings")
			any = any || ok
		}
	}
	if any {
		f.pin("CARGO_HOME", home, "crates that were downloaded and cargo's settings; without it cargo would download them again")
	}
}

// cargoPaths shows the crates that the working directory's crate names by path.
func (f *finder) cargoPaths() {
	for i, p := range f.upward("the crate or workspace", true, "Cargo.toml") {
		if i == 0 {
			f.tree(hostfs.Parent(p), "the crate that the working directory belongs to")
		}
		f.cargoDeps(hostfs.Parent(p), 0)
	}
}

func (f *finder) cargoDeps(dir string, depth int) {
	if depth > 8 || f.done["cargo "+dir] {
		return
	}
	f.done["cargo "+dir] = true
	text, ok := f.small(dir + "/Cargo.toml")
	if !ok {
		return
	}
	for l := range strings.SplitSeq(text, "\n") {
		for {
			at := strings.Index(l, "path")
			if at < 0 {
				break
			}
			before := strings.TrimRight(l[:at], " \t")
			l = l[at+len("path"):]
			value, ok := strings.CutPrefix(strings.TrimLeft(l, " \t"), "=")
			if !ok || before != "" && !strings.HasSuffix(before, "{") && !strings.HasSuffix(before, ",") && !strings.HasSuffix(before, ".") {
				continue
			}
			p := clean(hostfs.Abs(unquote(strings.TrimSpace(value)), dir))
			if f.exists(p, "Cargo.toml") {
				if _, ok := f.sourceTree(p, dir+"/Cargo.toml names it: without it the crate cannot be built"); ok {
					f.cargoDeps(p, depth+1)
				}
			}
		}
	}
}
