module github.com/transom-run/transom/conformance/go

go 1.26

require github.com/github/copilot-sdk/go v0.1.32

require github.com/google/jsonschema-go v0.4.2 // indirect
