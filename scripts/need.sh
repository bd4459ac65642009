#!/bin/sh
# need.sh NAME... installs what is missing of the programs named, and says so. A name is that of a command; those that
# package knows are translated to the packages that hold them, any other name is that of its package too.
# NEED_DRY_RUN=1 only says what it would do.
set -eu

# Where selfcage looks for a bubblewrap; one that is only in PATH is not used.
have() {
	case $1 in
	bwrap) [ -x /usr/bin/bwrap ] || [ -x /run/current-system/sw/bin/bwrap ] ;;
	cc) compiles ;;
	time) [ -x /usr/bin/time ] ;; # many shells have a word of that name
	pytest) pytest -p xdist --version >/dev/null 2>&1 ;;
	*) command -v "$1" >/dev/null 2>&1 ;;
	esac
}

# A compiler without its C library is there and compiles nothing.
compiles() {
	command -v cc >/dev/null 2>&1 || return 1
	program=$(mktemp)
	status=0
	printf '#include <stdio.h>\nint main(void) { return puts("") < 0; }\n' |
		cc -x c -o "$program" - >/dev/null 2>&1 || status=1
	rm -f "$program"
	return $status
}

missing() {
	for name; do
		have "$name" || printf '%s ' "$name"
	done
}

manager() {
	for m in apt-get dnf yum zypper pacman apk xbps-install; do
		if command -v "$m" >/dev/null 2>&1; then
			echo "$m"
			return
		fi
	done
	echo none
}

# package MANAGER NAME
package() {
	case $1:$2 in
	*:bwrap) echo bubblewrap ;;
	apt-get:cc) echo gcc libc6-dev ;;
	dnf:cc | yum:cc | zypper:cc) echo gcc glibc-devel ;;
	apk:cc) echo gcc musl-dev ;;
	*:cc) echo gcc ;;
	apt-get:ps | zypper:ps | apk:ps) echo procps ;;
	*:ps) echo procps-ng ;;
	pacman:python3) echo python ;;
	apt-get:perf) echo linux-perf ;;
	apt-get:gdb) echo gdb-minimal ;; # a sixth of gdb, which brings ICU and Boost for its colours
	apt-get:vi) echo vim-tiny ;;
	apt-get:lstopo) echo hwloc-nox ;;
	*:lstopo) echo hwloc ;;
	*:inotifywait) echo inotify-tools ;;
	pacman:pytest) echo python-pytest python-pytest-xdist ;;
	apk:pytest) echo py3-pytest py3-pytest-xdist ;;
	*:pytest) echo python3-pytest python3-pytest-xdist ;;
	*:man) echo man-db ;;
	apt-get:node) echo nodejs ;;
	apt-get:javac) echo default-jdk-headless ;;
	*:modulecmd) echo environment-modules ;;
	apt-get:mpicc) echo libopenmpi-dev openmpi-bin ;;
	*) echo "$2" ;;
	esac
}

say() { echo "need.sh: $*" >&2; }

fail() {
	say "$1"
	say "hint: $2"
	exit 1
}

# as_root COMMAND... runs it, shown first. Without a terminal sudo must not wait for a password.
as_root() {
	say "$sudo${sudo:+ }$*"
	[ -z "${NEED_DRY_RUN:-}" ] || return 0
	$sudo "$@" </dev/null
}

# Fresh Debian images have no package lists at all, and old lists name packages that are gone.
install_apt() {
	if ! apt_lists; then apt_update; fi
	apt_install "$@" || { apt_update && apt_install "$@"; }
}

apt_lists() { ls /var/lib/apt/lists/*_Packages* >/dev/null 2>&1; }

apt_update() { as_root apt-get update -q || say "some package lists could not be read; going on with the others"; }

apt_install() {
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$@"
}

install() {
	case $manager in
	apt-get) install_apt "$@" ;;
	dnf | yum) as_root "$manager" install -y "$@" ;;
	zypper) as_root zypper --non-interactive install "$@" ;;
	pacman) as_root pacman -S --needed --noconfirm "$@" || as_root pacman -Sy --needed --noconfirm "$@" ;;
	apk) as_root apk add --no-cache "$@" ;;
	xbps-install) as_root xbps-install -Sy "$@" ;;
	esac
}

names=$(missing "$@")
names=${names% }
[ -n "$names" ] || exit 0

manager=$(manager)
if [ "$manager" = none ]; then
	fail "missing: $names; no package manager that I know (apt-get, dnf, yum, zypper, pacman, apk, xbps-install)" \
		"install these the way this system does (bwrap is in bubblewrap and must be /usr/bin/bwrap), then try again"
fi
packages=
for name in $names; do
	packages="$packages $(package "$manager" "$name")"
done
packages=${packages# }
say "missing: $names; installing $packages with $manager"

sudo=
if [ "$(id -u)" != 0 ]; then
	command -v sudo >/dev/null 2>&1 || fail "not root, and there is no sudo" "as root, install: $packages"
	sudo=sudo
	if [ ! -t 0 ] || [ ! -t 2 ]; then
		sudo="sudo -n"
		$sudo true 2>/dev/null || fail "sudo wants a password, and there is no terminal" "as root, install: $packages"
	fi
fi
# shellcheck disable=SC2086 # one word a package
install $packages || fail "$manager could not install $packages" "install them by hand, then try again"

[ -z "${NEED_DRY_RUN:-}" ] || exit 0
names=$(missing "$@")
[ -z "$names" ] || fail "still missing after the installation: $names" "install it by hand, then try again"
