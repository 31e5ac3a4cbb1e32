package server

import (
	"context"
	"encoding/json"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/internal/jsonrpc2"
)

type sendParams struct {
	target
	Prompt         *string           `json:"prompt"`
	DisplayPrompt  string            `json:"displayPrompt"`
	Attachments    []json.RawMessage `json:"attachments"`
	Mode           string            `json:"mode"`
	AgentMode      string            `json:"agentMode"`
	RequestHeaders map[string]string `json:"requestHeaders"`
	Wait           bool              `json:"wait"`
	traceParams
}

type sendResult struct {
	MessageID string `json:"messageId"`
}

// sending is session.send. A message with attachments is posted from a goroutine
// that holds the lane: files are read for it, and images in them may have to be made
// smaller.
func sending(c *conn, r *jsonrpc2.Responder) {
	p, ok := aim[sendParams](r)
	if !ok {
		return
	}
	here := func(l *lane) (a *attachment) {
		if a = l.attached(); a == nil {
			r.Reply(nil, notFound(r.Request().Method, l.id))
		}
		return a
	}
	if len(p.Attachments) == 0 || c.endingLane(p.SessionID) != nil {
		c.pass(p.SessionID, func(l *lane) {
			if a := here(l); a != nil {
				send(&call{r, c, l, a, a.sess}, p)
			}
		})
		return
	}
	c.enter(p.SessionID, func(l *lane) (held bool) {
		a := here(l)
		if a == nil {
			return false
		}
		a.reads.Add(1)
		go func() {
			defer l.leave()
			defer a.reads.Done()
			send(&call{r, c, l, a, a.sess}, p)
		}()
		return true
	})
}

// send posts a message. It is answered at once, or with wait once the session is
// idle again.
func send(q *call, p *sendParams) {
	if p.Prompt == nil {
		q.Reply(nil, invalid(q.op(), "session.send needs a prompt, a string"))
		return
	}
	m := transom.Message{
		Prompt: *p.Prompt, DisplayPrompt: p.DisplayPrompt, Immediate: p.Mode == "immediate",
		Attachments: p.Attachments, AgentMode: p.AgentMode, RequestHeaders: p.RequestHeaders,
		Trace: p.at(),
	}
	sendMessage(q, p, m, func(id string) any { return sendResult{id} })
}

// sendMessage posts a message; result makes the method's of the message's id.
func sendMessage(q *call, p *sendParams, m transom.Message, result func(id string) any) {
	if !p.Wait {
		q.sess.Post(m, q.answer(func(v any) any { return result(v.(string)) }))
		return
	}
	if q.sess.Info().Acting {
		q.Reply(nil, failKind(q.op(), transom.KindWrongState, q.op()+" with wait was refused: a tool call of session "+q.lane.id+" is in flight, and if its handler waits for this send, neither ever ends. Send without wait"))
		return
	}
	q.sess.Post(m, func(v any, err error) {
		if err != nil {
			q.Reply(nil, fail(q.op(), err))
			return
		}
		events := q.sess.Subscribe() // after the message: no idle of an earlier turn is seen
		q.Go(func(ctx context.Context) (any, error) {
			defer events.Close()
			if err := awaitIdle(ctx, q, events); err != nil {
				return nil, err
			}
			return result(v.(string)), nil
		})
	})
}

// awaitIdle waits for the end of the work.
func awaitIdle(ctx context.Context, q *call, events *transom.Events) error {
	for e, err := range events.All(ctx) {
		if err != nil {
			return fail(q.op(), err)
		}
		if e.Type == event.TypeSessionIdle {
			return nil
		}
	}
	return failKind(q.op(), transom.KindClosing, "session "+q.lane.id+" ended before the turn did; the message is in its log")
}

type successResult struct {
	Success bool `json:"success"`
}

type abortParams struct {
	target
	Reason string `json:"reason"`
}

func abort(q *call, p *abortParams) {
	q.sess.Post(transom.Abort{Reason: p.Reason}, q.answer(func(any) any { return successResult{true} }))
}

type clearParams struct {
	target
	Prompt *string `json:"prompt"`
}

func noClearPrompt() error {
	return invalid("session.history.clearContext", "session.history.clearContext needs a prompt, a string: it becomes the first user message of the fresh window")
}

type clearResult struct {
	MessagesCleared int `json:"messagesCleared"`
}

func clearContext(q *call, p *clearParams) {
	if p.Prompt == nil {
		q.Reply(nil, noClearPrompt())
		return
	}
	q.sess.Post(transom.ClearContext{Prompt: *p.Prompt}, q.answer(func(v any) any { return clearResult{v.(int)} }))
}

type answerToolParams struct {
	target
	RequestID string          `json:"requestId"`
	Result    json.RawMessage `json:"result"`
	Error     json.RawMessage `json:"error"`
}

func answerTool(q *call, p *answerToolParams) {
	if p.RequestID == "" {
		q.Reply(nil, invalid(q.op(), q.op()+" needs the requestId of the external_tool.requested event"))
		return
	}
	a := transom.AnswerTool{RequestID: p.RequestID}
	if present(p.Result) {
		a.Result = p.Result
	}
	if present(p.Error) {
		a.Error = p.Error
	}
	q.sess.Post(a, q.answer(func(v any) any { return successResult{v.(bool)} }))
}

type answerPermissionParams struct {
	target
	RequestID string          `json:"requestId"`
	Result    json.RawMessage `json:"result"`
}

func answerPermission(q *call, p *answerPermissionParams) {
	if p.RequestID == "" {
		q.Reply(nil, invalid(q.op(), q.op()+" needs the requestId of the permission.requested event"))
		return
	}
	q.sess.Post(transom.AnswerPermission{RequestID: p.RequestID, Decision: p.Result}, func(v any, err error) {
		if v == true && q.keepForLocation(p.Result) {
			return
		}
		q.answer(func(v any) any { return successResult{v.(bool)} })(v, err)
	})
}

type pendingItem struct {
	RequestID string        `json:"requestId"`
	Request   promptRequest `json:"request"`
}

type promptRequest struct {
	Kind            string          `json:"kind"`
	ToolCallID      string          `json:"toolCallId"`
	ToolName        string          `json:"toolName"`
	ToolDescription string          `json:"toolDescription"`
	Args            json.RawMessage `json:"args,omitempty"`
}

// pendingPermissions lists the questions that are open, for clients that attached
// after they were asked.
func pendingPermissions(q *call, _ *target) {
	items := []pendingItem{}
	for _, p := range q.sess.Info().Pending {
		items = append(items, pendingItem{p.RequestID, promptRequest{"custom-tool", p.ToolCallID, p.ToolName, p.Description, p.Arguments}})
	}
	q.Reply(map[string]any{"items": items}, nil)
}

type logParams struct {
	target
	Message   *string `json:"message"`
	Level     string  `json:"level"`
	Type      string  `json:"type"`
	URL       string  `json:"url"`
	Ephemeral bool    `json:"ephemeral"`
}

func logNote(q *call, p *logParams) {
	if p.Message == nil {
		q.Reply(nil, invalid(q.op(), "session.log needs a message, a string"))
		return
	}
	q.sess.Post(transom.Note{Level: p.Level, Message: *p.Message, Type: p.Type, URL: p.URL, Ephemeral: p.Ephemeral},
		q.answer(func(v any) any { return map[string]any{"eventId": v} }))
}
