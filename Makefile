# Needs only make, a shell and Go. `make` builds bin/selfcage; `make run` shows what a cage changes.

# Go's own archive is unpacked there, and nothing but a login shell has that in its PATH. Tests start go too.
export PATH := $(PATH):/usr/local/go/bin
GO ?= $(shell command -v go || echo /usr/local/go/bin/go)

# A checkout that belongs to somebody else, or git that is missing, must not stop a build: no VCS stamp. Set through
# GOFLAGS, added to what is there, so that it also reaches the go commands that tests start.
export GOFLAGS := $(strip $(shell $(GO) env GOFLAGS 2>/dev/null) -buildvcs=false)

# make test RACE=1 uses the race detector where there is a C compiler that works; TESTFLAGS goes to go test.
RACE ?=
TESTFLAGS ?=

.PHONY: build run test fuzz hosts bench clean sweep

build:
	$(GO) build -o bin/selfcage ./cmd/selfcage

sweep:
	$(GO) build -o bin/sweep ./examples/sweep

# The same program twice; only a variable differs. The empty ones keep what the caller exported out of the bare run.
# -home: inside, HOME is another one, and what is to be compared is the real one; that it cannot be seen is no news.
run:
	@sh scripts/need.sh bwrap cc
	@$(MAKE) --no-print-directory sweep
	@echo; echo '=== bare: bin/sweep -see ==='
	@SANDBOX_MODE= SANDBOX_POLICY= bin/sweep -see -home="$$HOME" -runs 3 -depth 1
	@echo; echo '=== in a cage: SANDBOX_MODE=bwrap bin/sweep -see ==='
	@SANDBOX_MODE=bwrap SANDBOX_QUIET=1 bin/sweep -see -home="$$HOME" -runs 3 -depth 1

# -count=1: a cached result does not know what has been installed since.
test:
	@sh scripts/need.sh bwrap
	@fmt=$$($(GO) env GOROOT)/bin/gofmt; [ -x "$$fmt" ] || fmt=gofmt; \
	out=$$("$$fmt" -l .) || exit 1; \
	[ -z "$$out" ] || { echo "gofmt: run $$fmt -w on:" >&2; echo "$$out" >&2; exit 1; }
	$(GO) vet ./...
	@race=; if [ -n "$(RACE)" ]; then \
		if CGO_ENABLED=1 $(GO) build -race runtime/cgo 2>/dev/null; then race=-race; export CGO_ENABLED=1; \
		else echo 'make: no C compiler that works with Go: testing without -race' >&2; fi; fi; \
	echo "$(GO) test $$race -count=1 $(TESTFLAGS) ./..."; \
	$(GO) test $$race -count=1 $(TESTFLAGS) ./...
	@GO="$(GO)" sh scripts/fuzz.sh $(SHORTFUZZ)

# Every fuzz target for a long while, as at night; make test does those that guard grants for a short one.
FUZZTIME ?= 60s
SHORTFUZZ ?= 3000x
fuzz:
	GO="$(GO)" sh scripts/fuzz.sh $(FUZZTIME) all

# Programs that others wrote, as host programs; HOSTS= leaves out those that take long, HOSTS=gosh,hey is these two.
HOSTS ?= all
hosts:
	@sh scripts/need.sh bwrap
	cd hosts && $(GO) vet ./... && SELFCAGE_HOSTS=$(HOSTS) $(GO) test -count=1 -timeout=60m $(TESTFLAGS) ./...

bench:
	$(GO) run ./internal/bench

clean:
	rm -rf bin
