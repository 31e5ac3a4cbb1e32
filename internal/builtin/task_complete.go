package builtin

import (
	"context"
	"encoding/json"

	"github.com/transom-run/transom/tool"
)

const taskCompleteSchema = `{
 "type": "object",
 "properties": {
  "summary": {"type": "string", "description": "What was done and how it was checked, for the person who reads it later."}
 }
}`

// taskComplete is terminal: a model that has said so has nothing to add.
func (s *Set) taskComplete() tool.Tool {
	return tool.Tool{
		Name: "task_complete", Parameters: json.RawMessage(taskCompleteSchema), Permission: noPermission, IsTerminal: true,
		Handler: func(ctx context.Context, call tool.Call) (tool.Result, error) {
			var a struct {
				Summary string `json:"summary"`
			}
			if err := decode(call, &a); err != nil {
				return tool.Result{}, err
			}
			if err := s.cfg.Complete(ctx, call, a.Summary); err != nil {
				return tool.Result{}, err
			}
			return success("The task is marked as complete.")
		},
	}
}
