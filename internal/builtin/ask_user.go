package builtin

import (
	"context"
	"encoding/json"

	"github.com/transom-run/transom/tool"
)

const askUserSchema = `{
 "type": "object",
 "properties": {
  "question": {"type": "string", "description": "The question, as the person will read it."},
  "choices": {"type": "array", "items": {"type": "string"}, "description": "Answers to choose from."},
  "allow_freeform": {"type": "boolean", "description": "Whether an answer of their own is welcome; true by default."}
 },
 "required": ["question"]
}`

// Question is what ask_user puts to a person.
type Question struct {
	Question      string   `json:"question"`
	Choices       []string `json:"choices,omitempty"`
	AllowFreeform *bool    `json:"allow_freeform,omitempty"`
}

// Freeform reports whether an answer outside of the choices is welcome: unless
// the model said otherwise, or where there is nothing to choose from.
func (q Question) Freeform() bool {
	return q.AllowFreeform == nil || *q.AllowFreeform || len(q.Choices) == 0
}

// Answer is what the person said.
type Answer struct {
	Answer      string
	WasFreeform bool // it is none of the choices
}

// ParseQuestion reads the arguments of a call of ask_user, for those who put the
// question some other way than through [Config].AskUser.
func ParseQuestion(arguments json.RawMessage) (Question, error) {
	var q Question
	err := decode(tool.Call{Name: "ask_user", Arguments: arguments}, &q)
	return q, err
}

// Result is the answer as the call's result.
func (a Answer) Result() tool.Result {
	if a.WasFreeform {
		return tool.Result{Text: valid(responded(a.Answer))}
	}
	return tool.Result{Text: valid(selected(a.Answer))}
}

func (s *Set) askUser() tool.Tool {
	return tool.Tool{
		Name: "ask_user", Parameters: json.RawMessage(askUserSchema), Permission: noPermission,
		Handler: func(ctx context.Context, call tool.Call) (tool.Result, error) {
			q, err := ParseQuestion(call.Arguments)
			if err != nil {
				return tool.Result{}, err
			}
			a, err := s.cfg.AskUser(ctx, call, q)
			if err != nil {
				return tool.Result{}, err
			}
			return a.Result(), nil
		},
	}
}
