// Package hookfile reads the hooks that stand in files, such as a plugin's hooks.json,
// and runs them: commands that are told of an event on stdin and may answer on stdout.
//
//	{"version": 1, "hooks": {"preToolUse": [{"type": "command", "bash": "./check.sh", "timeoutSec": 10}]}}
//
//	hooks, problems, err := hookfile.Parse(raw, hookfile.Source{Name: "plugin p", Root: "/plugins/p"})
//	out, err := runner.Ask(ctx, hooks, "preToolUse", input)
//
// The format is the one that the Copilot CLI's hooks reference describes. Names of
// events in camelCase (preToolUse) get the protocol's payload as it is; names in
// PascalCase (PreToolUse) get the one of other agents' plugins, with snake_case
// members, and their matchers and names of tools.
//
// # Ownership
//
// A Runner keeps nothing. A command leads a process group of its own, which has ended
// when Ask returns.
//
// # Ordering
//
// The hooks of an event run one after the other, in the order of the files, each with
// what was true before the first. A denial ends the row.
//
// # Errors
//
// A hook that fails where it has a say (before a tool, on its result, on the text that
// the model reads) is an error: it has not consented. So is one that cannot be read.
// Where it has none it is a warning.
package hookfile
