// Package anthropic speaks Anthropic's messages, which Claude and a number of
// gateways and local servers understand.
//
//	p, err := anthropic.New(anthropic.Config{Server: endpoint.Server{BaseURL: "https://api.anthropic.com", APIKey: key}})
//	for chunk, err := range p.Stream(ctx, &model.Request{Model: "claude-sonnet-4-5", Messages: msgs}) { … }
//
//	Request ─▶ AppendRequest ─▶ POST base/v1/messages ─▶ events ─▶ blocks ─▶ Chunk
//	            (encode.go)                                        (stream.go, blocks.go)
//
// The wire wants user and assistant to take turns: messages of one side that
// follow one another become one, as blocks of their own, results of tools first.
// Thinking is kept with its signature in Message.ReasoningOpaque and goes back
// with the message: when the window drops the message it is gone.
//
// # Ownership
//
// A [Provider] holds settings and no connection. It may be used by any number of
// goroutines.
//
// # Ordering
//
// Chunks come as the server sent them; usage, the finish reason and the thinking
// to be kept come last.
//
// # Errors
//
// As in package openai: *model.Error with endpoint, status and what to check.
package anthropic
