package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/internal/builtin"
	"github.com/transom-run/transom/sessionfs"
	"github.com/transom-run/transom/tool"
)

// builtIns makes a session's own tools.
func builtIns(c transom.BuiltInContext) (transom.BuiltIns, error) {
	cfg := builtin.Config{
		Dir: c.Dir, ExtraDirs: c.Dirs, SessionDir: c.Files, Home: c.Home, Environ: c.Environ, HideEnv: c.HideEnv, Secrets: c.Secrets,
		AskUser: askUser(c), ExitPlan: exitPlan(c), TodosChanged: c.TodosChanged,
		BeforeWrite: func(ctx context.Context, ch builtin.Change) error {
			return c.BeforeWrite(ctx, transom.FileChange(ch))
		},
	}
	cfg.Complete = func(_ context.Context, _ tool.Call, summary string) error {
		c.Complete(summary)
		return nil
	}
	if c.Kept != nil {
		cfg.Kept, cfg.NoDatabase = c.Kept, true
		if db := c.Kept.Database(); db != nil {
			cfg.Database, cfg.NoDatabase = hostDatabase{db}, false
		}
	}
	set, err := builtin.New(cfg)
	if err != nil {
		return nil, err
	}
	return toolset{set}, nil
}

// toolset gives the tools the form that sessions know.
type toolset struct{ *builtin.Set }

// Todos reads the model's list of what is to be done.
func (t toolset) Todos(ctx context.Context) ([]transom.Todo, []transom.TodoDependency, error) {
	todos, waits, err := t.Set.Todos(ctx)
	if err != nil {
		return nil, nil, err
	}
	list := make([]transom.Todo, len(todos))
	for i, t := range todos {
		list[i] = transom.Todo{ID: t.ID, Title: t.Title, Description: t.Description, Status: t.Status}
	}
	deps := make([]transom.TodoDependency, len(waits))
	for i, w := range waits {
		deps[i] = transom.TodoDependency(w)
	}
	return list, deps, nil
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
		a, err := c.ExitPlan(ctx, transom.PlanQuestion{Summary: p.Summary, Actions: p.Actions, Recommended: p.Recommended})
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

// hostDatabase is the database of a session that its host keeps.
type hostDatabase struct{ sessionfs.Database }

// Query runs one statement.
func (d hostDatabase) Query(ctx context.Context, kind builtin.QueryKind, query string) (builtin.Rows, error) {
	rows, err := d.Database.Query(ctx, string(kind), query)
	return builtin.Rows(rows), err
}

// Exists reports whether there is a database already.
func (d hostDatabase) Exists(ctx context.Context) (bool, error) { return d.HasDatabase(ctx) }

// Close leaves the database to the host.
func (d hostDatabase) Close() error { return nil }
