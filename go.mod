module github.com/selfcage/selfcage

go 1.25.0

require (
	github.com/alecthomas/kong v1.6.0
	github.com/pelletier/go-toml/v2 v2.2.4
	golang.org/x/net v0.33.0
	golang.org/x/sys v0.30.0
)

// Test dependencies.
require (
	github.com/google/go-cmp v0.6.0
	github.com/rogpeppe/go-internal v1.13.1
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.1
)

require (
	golang.org/x/text v0.21.0 // indirect
	golang.org/x/tools v0.22.0 // indirect
)
