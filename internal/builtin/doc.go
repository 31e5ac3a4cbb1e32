// Package builtin has the tools that Transom itself brings to a session: a
// shell, files, searches, the web, a small database, and questions to the host.
//
//	set, err := builtin.New(builtin.Config{Dir: func() string { return "/home/a/project" }})
//	reg, err := tool.NewRegistry(set.Tools())
//	…
//	err = set.Close() // ends every child process, and waits
//
// Every tool is a file NAME.go with the text that the model reads in NAME.md.
// One call of one of them:
//
//	Permission ─ what a person has to know: command, change, path, URL
//	     │        (and a plan is kept, so that what runs is what was shown)
//	Handler ──── checks the plan, does it ──▶ tool.Result
//
// # Ownership
//
// A [Set] belongs to one session. It owns the commands it started, with
// everything that they started, and the session's database. A command that was
// asked to outlive the session ("detach") belongs to nobody.
//
// # Ordering
//
// Calls may run at the same time. Calls on one shell, and statements for the
// database, are taken one after the other, and so are changes of files. An edit
// whose place in the file changed since it was approved is refused.
//
// # Errors
//
// What a model can do something about (a path that is not there, a pattern that
// does not compile) is a result of type failure, in words for the model. What it
// can do nothing about is an error of the handler.
package builtin
