#!/bin/sh
# Fuzzes each target for a while: fuzz.sh TIME [all]. Without all only those by which a run could get more than it was granted,
# or print what it must not: policy files, narrowing, host patterns, names and values of variables, requests inside a cage.
set -eu

time=$1
: "${GO:=go}"
[ "${2:-}" = all ] && only= || only='policyfile:Fuzz(TOML|JSON|Narrow)$
policy:FuzzHost$
env:Fuzz(Scrub|Clean)$
plan:FuzzParseGrants$'

# targets prints "DIR NAME" for each fuzz target.
targets() {
	grep -rEo --include='*_test.go' '^func Fuzz[A-Za-z0-9]*' . | grep -v '^\./hosts/' |
		sed -E 's|^(.*)/[^/]*:func (Fuzz.*)|\1 \2|' | sort
}

wanted() {
	[ -z "$only" ] || echo "$only" | while IFS=: read -r dir name; do
		[ "$(basename "$1")" = "$dir" ] && echo "$2" | grep -Eq "^$name" && echo yes
	done | grep -q yes
}

# fuzz runs one target. At the end of its time the go command now and then reports its own deadline as the target's failure,
# without an input that fails; a number of runs (2000x) has no deadline.
fuzz() {
	log=$(mktemp)
	"$GO" test -run='^$' -fuzz="^$2\$" -fuzztime="$time" "$1" >"$log" 2>&1 || {
		grep -q 'context deadline exceeded' "$log" && ! grep -Eq 'Failing input|panic:|_test.go:' "$log"
	} || {
		cat "$log"
		rm -f "$log"
		return 1
	}
	tail -n 1 "$log"
	rm -f "$log"
}

targets | while read -r dir name; do
	if wanted "$dir" "$name"; then
		echo "fuzz $dir $name for $time"
		fuzz "$dir" "$name" || exit 1
	fi
done
