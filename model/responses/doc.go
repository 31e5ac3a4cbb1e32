// Package responses speaks OpenAI's responses, the wire for models whose
// reasoning goes on over several requests.
//
//	p, err := responses.New(responses.Config{Server: endpoint.Server{BaseURL: "https://api.openai.com/v1", APIKey: key}})
//	for chunk, err := range p.Stream(ctx, &model.Request{Model: "gpt-5", Messages: msgs}) { … }
//
//	Request ─▶ AppendRequest ─▶ POST base/responses ─▶ events ─▶ items ─▶ Chunk
//	            (encode.go)                                     (stream.go, items.go)
//
// Every request carries the whole window, and asks the server to store nothing:
// no response id is ever sent, so that a conversation that was cleared cannot come
// back from the provider's side. What the provider needs of its own reasoning
// comes encrypted in the answer, is kept in Message.EncryptedContent and goes back
// with the message: when the window drops the message it is gone.
//
// Where [Config].Sockets says so, the same request is the message response.create
// of a WebSocket, and the events of its answer are messages: a WebSocket for each
// request.
//
// # Ownership
//
// A [Provider] holds settings and no connection. It may be used by any number of
// goroutines.
//
// # Ordering
//
// Chunks come as the server sent them; usage, the finish reason and the encrypted
// reasoning come last.
//
// # Errors
//
// As in package openai: *model.Error with endpoint, status and what to check.
package responses
