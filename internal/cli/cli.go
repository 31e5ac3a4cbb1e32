package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/transom-run/transom"
)

// The exit codes of transom. They are part of its interface: scripts rely on
// them.
const (
	CodeOK       = 0 // it worked
	CodeFailed   = 1 // it did not: the turn failed, a file could not be read, …
	CodeUsage    = 2 // what was asked for is not possible as it was written
	CodeAborted  = 3 // the user ended it
	CodeNotFound = 4 // no such session
	CodeInUse    = 5 // another process is at work on the session
)

// Commands returns the sub-commands, each call new ones.
func Commands() []*cobra.Command {
	return []*cobra.Command{demoCommand(), runCommand(), modelCommand(), sessionsCommand(), versionCommand()}
}

// Error is an error with an exit code of its own.
type Error struct {
	Code int
	Err  error
}

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// usage is the error of a command that was not written as it must be.
func usage(format string, args ...any) error {
	return &Error{Code: CodeUsage, Err: fmt.Errorf(format, args...)}
}

// Execute runs root and whatever command its arguments name, prints the error
// that comes of it to stderr, and returns the exit code.
func Execute(root *cobra.Command) int {
	return execute(context.Background(), root)
}

func execute(ctx context.Context, root *cobra.Command) int {
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usage("%v\nSee '%s --help'.", err, cmd.CommandPath())
	})
	_, err := root.ExecuteContextC(ctx)
	if err == nil {
		return CodeOK
	}
	if text := strings.TrimSpace(err.Error()); text != "" {
		fmt.Fprintf(root.ErrOrStderr(), "transom: %s\n", text)
	}
	return exitCode(err)
}

// exitCode is total: an error without a code of its own gets the one of its kind.
func exitCode(err error) int {
	var own *Error
	if errors.As(err, &own) {
		return own.Code
	}
	switch transom.KindOf(err) {
	case transom.KindNotFound:
		return CodeNotFound
	case transom.KindConflict:
		return CodeInUse
	case transom.KindInvalidParams:
		return CodeUsage
	case transom.KindCancelled:
		return CodeAborted
	}
	// What cobra says of arguments has no type; it says it before a command runs.
	if strings.HasPrefix(err.Error(), "unknown command ") {
		return CodeUsage
	}
	return CodeFailed
}

// noArgs refuses arguments.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage("%s takes no arguments, but was given %q.\nSee '%s --help'.", cmd.CommandPath(), args[0], cmd.CommandPath())
	}
	return nil
}
