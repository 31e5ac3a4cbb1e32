package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/transom-run/transom/tool"
)

const writeBashSchema = `{
 "type": "object",
 "properties": {
  "shellId": {"type": "string", "description": "Which command; it was started with mode async."},
  "input": {"type": "string", "description": "What to type, with a line feed where Enter is pressed. ^C alone interrupts the command, ^D alone ends its input."},
  "delay": {"type": "number", "description": "Seconds to wait for the command's answer; 5 by default."}
 },
 "required": ["shellId", "input"]
}`

func (s *Set) writeBash() tool.Tool {
	return tool.Tool{Name: "write_bash", Parameters: json.RawMessage(writeBashSchema), Effects: true,
		Permission: func(_ context.Context, call tool.Call) (tool.Permission, error) {
			var a shellArgs
			if err := decode(call, &a); err != nil {
				return tool.Permission{}, err
			}
			sh, err := s.shells.find(a.ShellID)
			if err != nil || a.Input == "" || a.Input == "^C" || a.Input == "^D" {
				return askNothing() // it fails, waits, interrupts or ends: no new power
			}
			return s.askInput(a.Input, sh.command)
		},
		Handler: func(ctx context.Context, call tool.Call) (tool.Result, error) {
			var a shellArgs
			if err := decode(call, &a); err != nil {
				return tool.Result{}, err
			}
			sh, err := s.shells.find(a.ShellID)
			if err != nil {
				return failure("%v", err)
			}
			if err := sh.typeIn(ctx, a.Input); err != nil {
				return failure("%v", err)
			}
			return s.report(ctx, sh, a.delay())
		}}
}

// typeIn gives a command input. A command that does not read is not waited for
// longer than ten seconds.
func (sh *shell) typeIn(ctx context.Context, input string) error {
	switch {
	case isClosed(sh.exited):
		return fmt.Errorf("the command with the shellId %q has ended: it takes no input any more", sh.id)
	case input == "":
		return nil
	case input == "^C":
		sh.proc.interrupt()
		return nil
	case sh.proc.in == nil:
		return fmt.Errorf("the command with the shellId %q was started without an input: start it with mode async", sh.id)
	case input == "^D" && sh.proc.in != sh.proc.out:
		return sh.proc.in.Close()
	case input == "^D":
		input = "\x04"
	}
	// A file that knows no deadline is written to without one; the goroutine ends
	// with the session at the latest, which closes the file.
	_ = sh.proc.in.SetWriteDeadline(time.Now().Add(10 * time.Second))
	done := make(chan error, 1)
	go func() {
		_, err := sh.proc.in.WriteString(input)
		done <- err
	}()
	select {
	case err := <-done:
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return fmt.Errorf("the command with the shellId %q does not read its input: only a part of it was written", sh.id)
		}
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
