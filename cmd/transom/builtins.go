package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/internal/builtin"
	"github.com/transom-run/transom/tool"
)

// builtIns makes a session's own tools.
func builtIns(c transom.BuiltInContext) (transom.BuiltIns, error) {
	return builtin.New(builtin.Config{
		Dir: c.Dir, SessionDir: c.Files, Environ: c.Environ, Secrets: c.Secrets, AskUser: askUser(c), ExitPlan: exitPlan(c),
	})
}

// askUser puts a question of the model to the host's user.
func askUser(c transom.BuiltInContext) func(context.Context, tool.Call, builtin.Question) (builtin.Answer, error) {
	return func(ctx context.Context, _ tool.Call, q builtin.Question) (builtin.Answer, error) {
		var a struct {
			Answer      string `json:"answer"`
			WasFreeform bool   `json:"wasFreeform"`
		}
		err := ask(ctx, c, "userInput.request", map[string]any{
			"sessionId": c.SessionID, "question": q.Question, "choices": q.Choices, "allowFreeform": q.Freeform(),
		}, &a)
		return builtin.Answer{Answer: a.Answer, WasFreeform: a.WasFreeform}, err
	}
}

// exitPlan asks the host's user to approve a plan.
func exitPlan(c transom.BuiltInContext) func(context.Context, tool.Call, builtin.Plan) (builtin.PlanAnswer, error) {
	return func(ctx context.Context, _ tool.Call, p builtin.Plan) (builtin.PlanAnswer, error) {
		var a struct {
			Approved       bool   `json:"approved"`
			SelectedAction string `json:"selectedAction"`
			Feedback       string `json:"feedback"`
		}
		err := ask(ctx, c, "exitPlanMode.request", map[string]any{
			"sessionId": c.SessionID, "summary": p.Summary, "actions": p.Actions, "recommendedAction": p.Recommended,
		}, &a)
		return builtin.PlanAnswer{Approved: a.Approved, Action: a.SelectedAction, Feedback: a.Feedback}, err
	}
}

func ask(ctx context.Context, c transom.BuiltInContext, method string, params, result any) error {
	raw, err := c.Ask(ctx, method, params)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, result); err != nil {
		return fmt.Errorf("the host's answer to %s is not of the documented form: %w", method, err)
	}
	return nil
}
