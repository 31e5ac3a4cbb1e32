module github.com/transom-run/transom

go 1.26

require (
	github.com/google/go-cmp v0.7.0 // indirect
	github.com/sourcegraph/jsonrpc2 v0.2.3 // indirect
	go.uber.org/goleak v1.3.0 // indirect
)
