# slowpath: the two commands for a fresh machine are `make demo` and `make test`.
SHELL := /bin/bash
GO ?= go
# Without cgo, as it is released. All that is compiled here has the same flags, so that each package is compiled once.
export CGO_ENABLED := 0
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
COMMIT ?= $(shell git rev-parse HEAD 2>/dev/null)
LDFLAGS := -s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT)
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOFUMPT := mvdan.cc/gofumpt@v0.12.0
GOLANGCI := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
# Packages that also build on other systems than Linux.
PORTABLE := ./cmd/slowpath ./internal/wire/resp ./internal/wire/target ./internal/wire/cluster ./internal/recording \
	./internal/diagnose/... ./internal/report/... ./internal/format ./internal/live ./internal/top
.PHONY: build demo gate hermetic test test-long faults fuzz cover bench bpf grade lint examples docs man sensitivity \
	packages site deps hooks changelog release publish help

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 10

build: ## bin/slowpath, and bin/slowpath-lab beside it, which slowpath lab and slowpath matrix run
	$(GO) build -buildvcs=false -ldflags '$(LDFLAGS)' -o bin/ ./cmd/slowpath ./cmd/slowpath-lab

deps: ## install the Debian packages that demo and tests need (as root), or say which
	@scripts/deps

demo: deps build ## make a real scenario and let doctor find it
	@scripts/demo

fleet-demo: deps build ## three hosts with agents, a collector and ClickHouse's engine: slowpath fleet is asked
	@scripts/fleet-demo

gate: lint hermetic test ## what each change has to pass

# The race detector does not follow the library of SQLite, which is translated from C and would take a quarter of the
# time, nor that of statistics, which computes with numbers of one goroutine. It does not wait a second at the end of
# each package.
hermetic: deps ## tests that use nothing outside themselves, sealed off, with the race detector
	@GORACE=atexit_sleep_ms=0 CGO_ENABLED=1 scripts/test -short -race -gcflags=modernc.org/...=-race=false \
		-gcflags=github.com/aclements/...=-race=false -exec=$(CURDIR)/scripts/sealed ./...

test: deps build ## hermetic and real tests; ends with what was skipped and why
	@scripts/deps tests
	@scripts/test

test-long: deps build ## all tests, and what takes too long for each change: once a day, as root
	@scripts/deps tests
	@LAYER=long scripts/test -timeout=60m
	GOOS=darwin GOARCH=arm64 $(GO) vet $(PORTABLE)
	$(GO) run $(GOLANGCI) run
	$(MAKE) examples faults packages grade
	scripts/old-kernel

faults: deps ## all cases of the fault suite, of which `make test` runs a part, and 100 attachments of the tap
	@$(GO) test -count=1 -timeout 30m -c -o bin/faults.test ./cmd/slowpath
	@cd cmd/slowpath && set -o pipefail && SLOWPATH_FAULTS=all ../../bin/faults.test -test.v -test.run '^TestFaults$$' \
		-test.parallel 8 -test.timeout 30m | grep -vE '^(=== | +--- PASS)| exit code -?[0-9]+ after '
	SLOWPATH_ATTACH=100 $(GO) test -count=1 -v -run '^TestAttachDetach$$' ./internal/source/tap

fuzz: ## every fuzz target for FUZZTIME (default 10m), one after the other
	@scripts/fuzz

cover: ## coverage per package
	$(GO) test -count=1 -timeout 15m -cover ./...

bench: build ## benchmarks; the load generator and its peers: most of an hour (docs/benchmarks.md)
	$(GO) test -p 1 -timeout 30m -run '^$$' -bench . -skip '^BenchmarkReference$$' -benchmem ./internal/...
	scripts/peers
	scripts/honesty

grade: deps build ## every scenario, healthy load and application; scenarios RUNS times (default 1)
	bin/slowpath lab grade --runs $(or $(RUNS),1)
	@scripts/deps tests
	bin/slowpath lab grade --apps

docs: ## write the generated documents (docs/causes.md, docs/bounds.md, docs/fixes.md, a table of docs/metrics.md)
	$(GO) test -count=1 -run '^(TestCausesDocument|TestBoundsDocument|TestFixesDocument)$$' ./internal/house -update
	$(GO) test -count=1 -run TestMetricsDocument ./internal/agent/metrics -update

man: build ## bin/man: a manual page for each command, of the texts of --help
	bin/slowpath man bin/man
	bin/slowpath-lab man bin/man

packages: deps ## dist: deb, rpm, OCI image, formula, source, SBOMs, checksums; then scripts/packages test (as root)
	scripts/packages test

site: deps build ## dist/site: the documentation, with a verdict for each cause; as root with an incident step by step
	@scripts/deps packages
	scripts/site

sensitivity: ## which verdicts hang on which bound, of new and changed ones (BOUNDS=regexp, AGAIN=1); then the document
	nice -n 19 $(GO) run ./internal/diagnose/sensitivity --bounds '$(BOUNDS)' $(if $(AGAIN),--again)
	$(GO) test -count=1 -run '^TestBoundsDocument$$' ./internal/house -update

bpf: ## compile the kernel programs (clang-19, libbpf-dev)
	@command -v clang-19 >/dev/null || { echo 'needs: apt-get install clang-19 llvm-19 libbpf-dev' >&2; exit 1; }
	$(GO) generate ./internal/source/tap ./internal/source/profile/sampler

examples: ## build and test modules of their own: examples in Go (TestWatchExamples tests others), the image's writer
	@for d in examples/*/ packaging/; do \
		[ ! -f $$d/go.mod ] || (cd $$d && $(GO) vet ./... && $(GO) test -count=1 ./...) || exit 1; done

hooks: ## Git checks format and hermetic tests of what is committed (scripts/hooks)
	git config core.hooksPath scripts/hooks

changelog: ## check changelog/unreleased; RELEASE=0.7.0 moves it into CHANGELOG.md
	@$(GO) run ./internal/house/changelog $(RELEASE)

release: deps ## dist of a commit with a tag v…: packages, SBOMs and checksums
	@git describe --tags --exact-match --match 'v[0-9]*'
	scripts/packages

publish: ## a draft of a release, of dist (gh)
	gh release create --draft --verify-tag --notes-file CHANGELOG.md '$(VERSION)' $$(find dist -maxdepth 1 -type f)

# staticcheck takes a third less CPU time where it collects no garbage; it uses 3 GiB.
lint: ## gofumpt, vet, staticcheck, go.mod, compiled programs
	@files=$$($(GO) run $(GOFUMPT) -l cmd internal examples packaging site) || exit 1; \
		test -z "$$files" || { echo "$$files"; echo 'not formatted: go run $(GOFUMPT) -w FILE'; exit 1; }
	$(GO) vet ./...
	GOOS=darwin GOARCH=arm64 $(GO) build -gcflags='all=-N -l' -o /dev/null ./cmd/slowpath
	GOGC=off GOMEMLIMIT=3GiB $(GO) run $(STATICCHECK) ./...
	$(GO) mod tidy -diff
	scripts/generated
