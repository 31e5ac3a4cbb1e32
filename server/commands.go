package server

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/event"
)

// The methods about slash commands and about questions to users.
func commandMethods() map[string]handler {
	return map[string]handler{
		"session.commands.list":                   settled(listCommands),
		"commands.list":                           plain(listBuiltInCommands),
		"session.commands.invoke":                 waiting(invokeCommand),
		"session.commands.execute":                waiting(executeCommand),
		"session.commands.enqueue":                posted(enqueueCommand),
		"session.commands.handlePendingCommand":   posted(answerCommand),
		"session.commands.respondToQueuedCommand": posted(answerQueued),

		"session.completions.getTriggerCharacters": settled(noTriggers),
		"session.completions.request":              settled(noCompletions),

		"session.ui.elicitation":                           waiting(elicit),
		"session.ui.ephemeralQuery":                        waiting(ephemeralQuery),
		"session.ui.handlePendingElicitation":              posted(answerElicitation),
		"session.ui.handlePendingUserInput":                posted(nothingPending),
		"session.ui.handlePendingExitPlanMode":             posted(nothingPending),
		"session.ui.handlePendingAutoModeSwitch":           posted(answerAutoMode),
		"session.ui.handlePendingSessionLimitsExhausted":   posted(answerLimits),
		"session.ui.registerDirectAutoModeSwitchHandler":   posted(registerAutoMode),
		"session.ui.unregisterDirectAutoModeSwitchHandler": posted(unregisterAutoMode),
	}
}

// waiting is a method that may wait long for somebody, on a goroutine of its own.
// It does not keep a destroy waiting; it ends with the session.
func waiting[P any, T aimed[P]](f func(ctx context.Context, s *transom.Session, p *P) (any, error)) handler {
	return posted[P, T](func(q *call, p *P) {
		q.Go(func(ctx context.Context) (any, error) {
			result, err := f(ctx, q.sess, p)
			return result, fail(q.op(), err)
		})
	})
}

type listCommandsParams struct {
	target
	IncludeBuiltins       *bool `json:"includeBuiltins"`
	IncludeClientCommands *bool `json:"includeClientCommands"`
	IncludeSkills         *bool `json:"includeSkills"`
}

type slashCommand struct {
	Name                      string        `json:"name"`
	Description               string        `json:"description"`
	Kind                      string        `json:"kind"`
	AllowDuringAgentExecution bool          `json:"allowDuringAgentExecution"`
	Input                     *commandInput `json:"input,omitempty"`
}

type commandInput struct {
	Hint string `json:"hint"`
}

func wireCommands(all []transom.Slash, wanted map[string]bool) any {
	list := []slashCommand{}
	for _, c := range all {
		w := slashCommand{Name: c.Name, Description: c.Description, Kind: "client", AllowDuringAgentExecution: true}
		switch {
		case c.BuiltIn:
			w.Kind = "builtin"
		case c.Skill:
			w.Kind = "skill"
		}
		if !wanted[w.Kind] {
			continue
		}
		if c.Hint != "" {
			w.Input = &commandInput{c.Hint}
		}
		list = append(list, w)
	}
	return map[string]any{"commands": list}
}

func listCommands(s *transom.Session, p *listCommandsParams) (any, error) {
	with := func(b *bool) bool { return b == nil || *b }
	return wireCommands(s.Commands(), map[string]bool{
		"builtin": with(p.IncludeBuiltins), "client": with(p.IncludeClientCommands), "skill": with(p.IncludeSkills),
	}), nil
}

func listBuiltInCommands(*conn, *noParams) (any, error) {
	return wireCommands(transom.BuiltInCommands(), map[string]bool{"builtin": true}), nil
}

type commandParams struct {
	target
	Name        string `json:"name"`
	Input       string `json:"input"`
	CommandName string `json:"commandName"`
	Args        string `json:"args"`
	Command     string `json:"command"`
	DisplayText string `json:"displayText"`
}

type textResult struct {
	Kind     string `json:"kind"`
	Text     string `json:"text"`
	Markdown bool   `json:"markdown"`
}

// invokeCommand runs one of Transom's own commands, or a client's; of a skill's it
// makes the prompt.
func invokeCommand(ctx context.Context, s *transom.Session, p *commandParams) (any, error) {
	name := strings.TrimLeft(p.Name, "/")
	for _, c := range s.Commands() {
		if c.Skill && strings.EqualFold(c.Name, name) {
			return invokeSkill(s, c.Name, p.Input)
		}
		if !c.BuiltIn && strings.EqualFold(c.Name, name) {
			failure, err := s.RunCommand(ctx, c.Name, p.Input)
			if err == nil && failure != "" {
				err = failKind("session.commands.invoke", transom.KindUpstream, "/"+c.Name+" failed: "+failure)
			}
			return map[string]any{"kind": "completed"}, err
		}
	}
	text, err := s.Invoke(ctx, name, p.Input)
	return textResult{"text", text, false}, err
}

type executeResult struct {
	Error string `json:"error,omitempty"`
}

func executeCommand(ctx context.Context, s *transom.Session, p *commandParams) (any, error) {
	name := strings.TrimLeft(p.CommandName, "/")
	for _, c := range s.Commands() {
		switch {
		case !strings.EqualFold(c.Name, name):
		case c.Skill:
			if err := s.RunSkill(ctx, c.Name, p.Args); err != nil {
				return executeResult{err.Error()}, nil
			}
			return executeResult{}, nil
		case c.BuiltIn:
			_, err := s.Invoke(ctx, c.Name, p.Args)
			if err != nil {
				return executeResult{err.Error()}, nil
			}
			return executeResult{}, nil
		default:
			failure, err := s.RunCommand(ctx, c.Name, p.Args)
			return executeResult{failure}, err
		}
	}
	return executeResult{"there is no command /" + name + " in this session"}, nil
}

func enqueueCommand(q *call, p *commandParams) {
	if strings.Trim(p.Command, "/ \t\r\n") == "" {
		q.Reply(nil, invalid(q.op(), q.op()+" needs a command, such as /help"))
		return
	}
	q.sess.Post(transom.SlashCommand{Text: p.Command, Display: p.DisplayText}, q.answer(func(any) any { return map[string]any{"queued": true} }))
}

type answerCommandParams struct {
	target
	RequestID string               `json:"requestId"`
	Error     string               `json:"error"`
	Result    transom.QueuedAnswer `json:"result"`
}

// answerCommand succeeds for unknown ids too: a command that nobody waits for any
// more is done with all the same.
func answerCommand(q *call, p *answerCommandParams) {
	q.sess.AnswerCommand(p.RequestID, p.Error)
	q.Reply(successResult{true}, nil)
}

func answerQueued(q *call, p *answerCommandParams) {
	q.Reply(successResult{q.sess.AnswerQueuedCommand(p.RequestID, p.Result)}, nil)
}

// noTriggers and noCompletions: hosts complete what is typed, Transom does not.
func noTriggers(*transom.Session, *target) (any, error) {
	return map[string]any{"triggerCharacters": []string{}}, nil
}

func noCompletions(*transom.Session, *target) (any, error) {
	return map[string]any{"items": []any{}}, nil
}

type elicitParams struct {
	target
	Message string          `json:"message"`
	Mode    string          `json:"mode"`
	Schema  json.RawMessage `json:"requestedSchema"`
}

func elicit(ctx context.Context, s *transom.Session, p *elicitParams) (any, error) {
	if p.Message == "" || !present(p.Schema) {
		return nil, invalid("session.ui.elicitation", "session.ui.elicitation needs a message and a requestedSchema")
	}
	return s.Elicit(ctx, transom.Elicitation{Message: p.Message, Mode: p.Mode, Schema: p.Schema})
}

type answerElicitationParams struct {
	target
	RequestID string          `json:"requestId"`
	Result    json.RawMessage `json:"result"`
}

func answerElicitation(q *call, p *answerElicitationParams) {
	q.Reply(successResult{q.sess.AnswerElicitation(p.RequestID, p.Result)}, nil)
}

// nothingPending answers what is meant for a question that is asked by a request
// to the client here, or not at all: there is none by that id.
func nothingPending(q *call, _ *target) { q.Reply(successResult{}, nil) }

type handleParams struct {
	target
	Handle string `json:"handle"`
}

type autoModeAnswer struct {
	target
	RequestID string `json:"requestId"`
	Response  string `json:"response"`
}

func answerAutoMode(q *call, p *autoModeAnswer) {
	q.Reply(successResult{q.sess.AnswerAutoMode(p.RequestID, p.Response)}, nil)
}

type limitsAnswer struct {
	target
	RequestID string               `json:"requestId"`
	Response  event.LimitsResponse `json:"response"`
}

func answerLimits(q *call, p *limitsAnswer) {
	q.Reply(successResult{q.sess.AnswerLimits(p.RequestID, p.Response)}, nil)
}

// autoModeEvent is what the handler of an automatic change of model listens to.
const autoModeEvent = event.TypeAutoModeSwitchRequested

func registerAutoMode(q *call, _ *target) {
	handle, err := q.register(autoModeEvent)
	q.Reply(map[string]any{"handle": handle}, err)
}

func unregisterAutoMode(q *call, p *handleParams) {
	q.Reply(map[string]any{"unregistered": q.release(p.Handle) == autoModeEvent}, nil)
}

type queryParams struct {
	target
	Question string `json:"question"`
}

func ephemeralQuery(ctx context.Context, s *transom.Session, p *queryParams) (any, error) {
	if strings.TrimSpace(p.Question) == "" {
		return nil, invalid("session.ui.ephemeralQuery", "session.ui.ephemeralQuery needs a question")
	}
	answer, err := s.Ask(ctx, p.Question)
	return map[string]any{"answer": answer}, err
}
