# What is done with this repository. `make` alone builds the binary.

STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2
FUZZTIME ?= 10s

.PHONY: build test lint fuzz kill chaos soak bench guard conformance demo clean

# One static binary, which needs nothing of the machine it runs on.
build:
	CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o transom ./cmd/transom

# The race detector needs cgo, that is, a C compiler. `go test ./...` does not.
test:
	CGO_ENABLED=1 go test -race -shuffle=on ./...

lint:
	@unformatted=$$(find . -name node_modules -prune -o -name '*.go' -print | xargs gofmt -l); \
	if [ -n "$$unformatted" ]; then echo "gofmt these files: $$unformatted"; exit 1; fi
	go mod tidy -diff
	go vet ./...
	cd conformance/go && go mod tidy -diff && go vet ./...
	go run $(STATICCHECK) ./...

# Every fuzz target for FUZZTIME. The seeds alone are played by `make test`.
fuzz:
	@set -e; grep -rHo --include='*_test.go' --exclude-dir=node_modules '^func Fuzz[A-Za-z0-9_]*' . | sort | \
	while IFS=: read -r file decl; do \
		echo "== $$(dirname $$file) $${decl#func }"; \
		go test -run='^$$' -fuzz="^$${decl#func }$$" -fuzztime=$(FUZZTIME) "$$(dirname $$file)" </dev/null; \
	done

# Kill a process at every operation of its store, in every history: see
# docs/reliability.md.
kill:
	go test -count=1 -timeout 30m -run 'TestKill$$' ./internal/durability -v -durability.full

bench:
	go test -run='^$$' -bench=. -benchmem ./...

# Clients that call anything at any time, and sessions by the thousand, each over
# stdio and over TCP for FOR. What a run prints plays it again: -stress.seed=N.
FOR ?= 5m
chaos:
	go test -count=1 -timeout 24h -run 'TestChaos$$' ./internal/stress -v -stress.for $(FOR) -stress.race

soak:
	go test -count=1 -timeout 24h -run 'TestSoak$$' ./internal/stress -v -stress.for $(FOR)

# What the hot rooms allocate, against what was recorded: see bench/guard.
guard:
	go run ./bench/guard

# Hosts on the published SDKs against the binary: see conformance/README.md.
conformance:
	go run ./conformance/run

demo:
	@go run ./cmd/transom demo

clean:
	rm -f transom
	go clean -testcache
