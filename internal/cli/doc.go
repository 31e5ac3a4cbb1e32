// Package cli owns the sub-commands of transom: what a person types, as opposed
// to the server that hosts launch. cmd/transom hangs them under its root:
//
//	root.AddCommand(cli.Commands()...)
//	os.Exit(cli.Execute(root))
//
// Answers go to stdout, everything else (session ids, progress, questions,
// errors) to stderr, so that the output of a command can be piped.
//
// # Ownership
//
// A command opens the runtime or the store that it needs and closes it before it
// returns. Nothing is opened, read or started before a command runs, so that the
// server starts as fast as if the commands were not there.
//
// # Errors
//
// A command returns an error that says what happened and what to do; [Execute]
// prints it and turns it into an exit code: see [CodeOK] and the codes after it.
package cli
