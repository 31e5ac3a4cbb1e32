package transom

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/internal/session"
	"github.com/transom-run/transom/internal/turn"
)

// PlanQuestion asks whether the model may go on with what it has planned.
type PlanQuestion struct {
	Summary     string
	Actions     []string // what the user may choose
	Recommended string   // one of them
}

// PlanAnswer is what the user said.
type PlanAnswer struct {
	Approved       bool   `json:"approved"`
	SelectedAction string `json:"selectedAction"`
	Feedback       string `json:"feedback"`
}

// modeAfter is the mode that an approved plan is carried out in.
func modeAfter(action string) string {
	if action == "autopilot" || action == "autopilot_fleet" {
		return "autopilot"
	}
	return "interactive"
}

// exitPlan asks the newest host that answers for its user. Every client sees the
// question and the answer; the session's mode follows an approval.
func (r *Runtime) exitPlan(ctx context.Context, s *loaded, q PlanQuestion) (a PlanAnswer, err error) {
	const method = "exitPlanMode.request"
	v := s.View()
	asked := event.ExitPlanRequested{
		RequestID: session.NewID(), Summary: q.Summary, Actions: q.Actions, RecommendedAction: q.Recommended, Model: v.Model,
	}
	if asked.PlanContent, _, err = (&Session{rt: r, sess: s, id: s.ID()}).Files().Plan(); err != nil {
		return a, err
	}
	s.tell(asked)
	defer func() {
		s.tell(event.ExitPlanCompleted{RequestID: asked.RequestID, Approved: a.Approved, SelectedAction: a.SelectedAction, Feedback: a.Feedback})
	}()
	raw, err := s.ask(ctx, method, map[string]any{
		"sessionId": s.ID(), "summary": q.Summary, "planContent": asked.PlanContent, "actions": q.Actions, "recommendedAction": q.Recommended,
	})
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal(raw, &a); err != nil {
		return PlanAnswer{}, fmt.Errorf("the host's answer to %s is not of the documented form: %w", method, err)
	}
	if a.Approved {
		mode := modeAfter(a.SelectedAction)
		s.Post(turn.Configure{Mode: &mode}, nil, nil)
	}
	return a, nil
}
