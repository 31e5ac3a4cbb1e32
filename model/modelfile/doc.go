// Package modelfile owns the file format that scripted models, recordings and
// conformance cases share: a YAML file of conversations with a language model.
//
//	models: [demo]
//	conversations:
//	  - messages:                      # played when a request equals the messages
//	      - role: system               # before one of its assistant messages
//	        content: ${system}
//	      - role: user
//	        content: Hello
//	      - role: assistant
//	        content: Hello to you.
//	  - when: {user: {contains: weather}}   # played when a rule holds
//	    replies:
//	      - tool_calls: [{name: forecast, arguments: {city: Oslo}}]
//	      - content: Rain, I am afraid.
//
// docs/model-files.md describes every field; its examples are tests of this
// package. The format reads the recordings of the Copilot SDKs' own test suites
// as they are.
//
// The package reads ([Parse]), writes ([File.Encode]) and compares: [Normalizer]
// takes out what changes from run to run, [Diff] finds the first difference.
// Who plays a file is elsewhere: model/scripted and model/replay.
//
// # Ownership
//
// A [File] is not changed after Parse and may be shared by any number of
// players.
//
// # Errors
//
// Whatever is wrong with a file is an *[Error] with file, line and field. No
// input panics.
package modelfile
