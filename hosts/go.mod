module github.com/selfcage/selfcage/hosts

go 1.26.0

require (
	github.com/creack/pty v1.1.24
	github.com/selfcage/selfcage v0.0.0-00010101000000-000000000000
)

require (
	github.com/aclements/go-moremath v0.0.0-20210112150236-f10218a38794 // indirect
	github.com/bitfield/gotestdox v0.2.2 // indirect
	github.com/cespare/reflex v0.3.1 // indirect
	github.com/chzyer/readline v1.5.1 // indirect
	github.com/dnephin/pflag v1.0.7 // indirect
	github.com/evanw/esbuild v0.28.2 // indirect
	github.com/fatih/color v1.18.0 // indirect
	github.com/fsnotify/fsnotify v1.9.0 // indirect
	github.com/google/pprof v0.0.0-20261105003125-4bf881d7fb0b // indirect
	github.com/google/shlex v0.0.0-20191202100458-e7afc7fbc510 // indirect
	github.com/ianlancetaylor/demangle v0.0.0-20250417193237-f615e6bd150b // indirect
	github.com/kballard/go-shellquote v0.0.0-20180428030007-95032a82bc51 // indirect
	github.com/magefile/mage v1.17.2 // indirect
	github.com/mattn/go-colorable v0.1.13 // indirect
	github.com/mattn/go-isatty v0.0.20 // indirect
	github.com/ogier/pflag v0.0.1 // indirect
	github.com/rakyll/hey v0.1.5 // indirect
	golang.org/x/mod v0.41.0 // indirect
	golang.org/x/net v0.59.0 // indirect
	golang.org/x/perf v0.0.0-20260908200009-22c9c6c9d4da // indirect
	golang.org/x/sync v0.23.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
	golang.org/x/term v0.46.0 // indirect
	golang.org/x/text v0.42.0 // indirect
	golang.org/x/tools v0.49.0 // indirect
	gotest.tools/gotestsum v1.13.0 // indirect
	mvdan.cc/sh/v3 v3.14.1 // indirect
)

replace github.com/selfcage/selfcage => ../

tool (
	github.com/cespare/reflex
	github.com/evanw/esbuild/cmd/esbuild
	github.com/google/pprof
	github.com/magefile/mage
	github.com/rakyll/hey
	golang.org/x/perf/cmd/benchstat
	gotest.tools/gotestsum
	mvdan.cc/sh/v3/cmd/gosh
)
