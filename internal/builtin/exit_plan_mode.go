package builtin

import (
	"context"
	"encoding/json"

	"github.com/transom-run/transom/tool"
)

const exitPlanModeSchema = `{
 "type": "object",
 "properties": {
  "summary": {"type": "string", "description": "The plan in short, as the person will read it."},
  "actions": {"type": "array", "items": {"type": "string"}, "description": "What the person may choose from: interactive, autopilot, exit_only."},
  "recommendedAction": {"type": "string", "description": "Which of them you would choose."}
 },
 "required": ["summary"]
}`

// The ways to go on once a plan is approved, as the protocol has them.
const (
	PlanInteractive = "interactive"
	PlanAutopilot   = "autopilot"
	PlanFleet       = "autopilot_fleet"
	PlanExitOnly    = "exit_only"
)

// Plan is what exit_plan_mode asks a person to approve. The plan itself is the
// session's plan file, which is not this tool's.
type Plan struct {
	Summary     string   `json:"summary"`
	Actions     []string `json:"actions,omitempty"`
	Recommended string   `json:"recommendedAction,omitempty"`
}

// PlanAnswer is what the person decided.
type PlanAnswer struct {
	Approved bool
	Action   string // one of the ways to go on; "" is interactive
	Feedback string
}

// ParsePlan reads the arguments of a call of exit_plan_mode, for those who ask some
// other way than through [Config].ExitPlan.
func ParsePlan(arguments json.RawMessage) (Plan, error) {
	var p Plan
	err := decode(tool.Call{Name: "exit_plan_mode", Arguments: arguments}, &p)
	return p, err
}

// Result is the decision as the call's result. A person's remark about a plan they
// approved is theirs and the event's; the model reads the remark where the plan
// was not approved, so that it can do better.
func (a PlanAnswer) Result() tool.Result {
	if !a.Approved {
		text := "The plan was not approved. You are still in plan mode: change the plan, then ask again."
		if a.Feedback != "" {
			text += "\n\nWhat was said about it: " + a.Feedback
		}
		return tool.Result{Text: valid(text)}
	}
	switch a.Action {
	case PlanAutopilot, PlanFleet:
		return tool.Result{Text: planApproved + "You are now in autopilot mode. Carry the plan out to its end without asking, then call task_complete."}
	case PlanExitOnly:
		return tool.Result{Text: planApproved + "Do not begin with the plan: wait for the next message."}
	}
	return tool.Result{Text: planApproved + planInteractive}
}

func (s *Set) exitPlanMode() tool.Tool {
	return tool.Tool{
		Name: "exit_plan_mode", Parameters: json.RawMessage(exitPlanModeSchema), Permission: noPermission,
		Handler: func(ctx context.Context, call tool.Call) (tool.Result, error) {
			p, err := ParsePlan(call.Arguments)
			if err != nil {
				return tool.Result{}, err
			}
			a, err := s.cfg.ExitPlan(ctx, call, p)
			if err != nil {
				return tool.Result{}, err
			}
			return a.Result(), nil
		},
	}
}
