# slowpath: the two commands for a fresh machine are `make demo` and `make test`.
SHELL := /bin/bash
GO ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.version=$(VERSION)
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2

.PHONY: build demo test bench grade lint deps help

help: ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 10

build: ## bin/slowpath
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/slowpath ./cmd/slowpath

deps: ## install the Debian packages that demo and tests need (as root), or say which
	@scripts/deps

demo: deps build ## make a real incident and let doctor find it
	@scripts/demo

test: deps build ## the whole suite
	@scripts/test

bench: ## benchmarks
	$(GO) test -run '^$$' -bench . -benchmem ./internal/...

grade: deps build ## every incident and every healthy load, RUNS times (default 1)
	bin/slowpath lab grade --runs $(or $(RUNS),1)

lint: ## gofmt, vet, staticcheck
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); echo 'not gofmt-ed: run gofmt -w'; exit 1; }
	$(GO) vet ./...
	GOOS=darwin $(GO) vet ./internal/resp ./internal/target ./internal/cluster ./internal/recording ./internal/account ./internal/cause ./internal/report
	$(GO) run $(STATICCHECK) ./...
