// Package openai speaks chat completions, the wire that OpenAI defined and that
// Ollama, llama.cpp, vLLM, LM Studio, OpenRouter and many others serve.
//
//	p, err := openai.New(openai.Config{Server: endpoint.Server{BaseURL: "http://localhost:11434/v1"}})
//	for chunk, err := range p.Stream(ctx, &model.Request{Model: "qwen3", Messages: msgs}) { … }
//
//	Request ─▶ AppendRequest ─▶ POST base/chat/completions ─▶ events ─▶ scanner ─▶ calls ─▶ Chunk
//	            (encode.go)                                   (sse.go)  (scan.go) (calls.go)
//
// A request says only what every server understands: model, messages, tools,
// stream, and reasoning_effort where the caller set one. No sampling settings
// are sent: several models refuse any but their own. Answers are read with
// tolerance; docs/models.md lists what is forgiven.
//
// # Ownership
//
// A [Provider] holds settings and no connection: connections live in one shared
// pool, so that an idle session costs neither memory nor a goroutine. It may be
// used by any number of goroutines.
//
// # Ordering
//
// Chunks come as the server sent them, but for two cases: a call's first
// fragment waits until its id and name are known, and usage comes last.
//
// # Errors
//
// Every failure is a *model.Error with endpoint, status and what to check. Keys
// and header values that the Config holds are cut out of what a server says.
package openai
