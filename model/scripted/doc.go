// Package scripted plays model files: demos and tests without a model or a
// network.
//
//	p, err := scripted.Open("demo.yaml")      // a file, see docs/model-files.md
//	p := scripted.New(scripted.Config{Replies: []modelfile.Message{
//		scripted.Call("clear_context", `{"prompt":"Start over."}`),
//		scripted.Say("Fresh."),
//	}})
//	http.ListenAndServe("127.0.0.1:8080", p.Handler())   // the same, on three wires
//
// With a file, a request chooses its reply by what it holds, so that sessions,
// retries and restarts do not disturb one another. With Replies the next request
// gets the next reply, whatever it asks.
//
// # Ownership
//
// A [Provider] may be used by any number of goroutines. It starts none.
//
// # Errors
//
// A request without a reply fails with *model.Error of kind Query and code
// [CodeNoReply], whose text names the closest conversation and the first
// difference. It is not retryable.
package scripted
