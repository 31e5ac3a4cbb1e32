package builtin

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/transom-run/transom/tool"
)

// defaultDelay is how long read_bash and write_bash wait for output, in seconds.
const defaultDelay = 5

const readBashSchema = `{
 "type": "object",
 "properties": {
  "shellId": {"type": "string", "description": "Which command, as bash gave it."},
  "delay": {"type": "number", "description": "Seconds to wait for its end before what there is is returned; 5 by default."}
 },
 "required": ["shellId"]
}`

type shellArgs struct {
	ShellID string   `json:"shellId"`
	Input   string   `json:"input"`
	Delay   *float64 `json:"delay"`
}

func (a shellArgs) delay() time.Duration {
	if a.Delay == nil {
		return seconds(defaultDelay)
	}
	return seconds(*a.Delay)
}

func noPermission(context.Context, tool.Call) (tool.Permission, error) { return askNothing() }

func (s *Set) readBash() tool.Tool {
	return tool.Tool{Name: "read_bash", Parameters: json.RawMessage(readBashSchema), Permission: noPermission,
		Handler: func(ctx context.Context, call tool.Call) (tool.Result, error) {
			var a shellArgs
			if err := decode(call, &a); err != nil {
				return tool.Result{}, err
			}
			sh, err := s.shells.find(a.ShellID)
			if err != nil {
				return failure("%v", err)
			}
			return s.report(ctx, sh, a.delay())
		}}
}

// report waits a while for a command, and says what is new. Other than in settle,
// the command goes on where the call is cut off.
func (s *Set) report(ctx context.Context, sh *shell, wait time.Duration) (tool.Result, error) {
	ended, err := sh.await(ctx, wait)
	if err != nil {
		return tool.Result{}, err
	}
	if !ended {
		return success(join(sh.news(), fmt.Sprintf("<shellId: %s is still running>", sh.id)))
	}
	text := completed(sh.id, sh.code)
	if sh.timedOut.Load() {
		text += "\nThe command took longer than its timeout and was ended."
	}
	return success(join(sh.news(), text))
}
