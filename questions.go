package transom

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/internal/session"
	"github.com/transom-run/transom/internal/turn"
)

// questions are what was put to clients by an event and is not answered yet. They
// belong to a request or to a slash command, never to a turn: what they are about
// is over when that is.
type questions struct {
	mu   sync.Mutex
	open map[string]*question // by request id
}

// question waits for one answer.
type question struct {
	kind   string // of the method that answers it
	client string // who was asked; "" is anyone
	answer chan json.RawMessage
}

// The kinds of question.
const (
	aboutElicitation = "elicitation"
	aboutCommand     = "command"
	aboutQueued      = "queued command"
	aboutOAuth       = "MCP authorization"
	aboutSampling    = "sampling"
	aboutAutoMode    = "change of model"
	aboutLimits      = "limit"
)

func (q *questions) add(kind, client string) (id string, w *question) {
	id, w = session.NewID(), &question{kind, client, make(chan json.RawMessage, 1)}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.open == nil {
		q.open = map[string]*question{}
	}
	q.open[id] = w
	return id, w
}

// settle answers a question; false where it is not open.
func (q *questions) settle(kind, id string, answer json.RawMessage) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := q.open[id]
	if w == nil || w.kind != kind {
		return false
	}
	delete(q.open, id)
	w.answer <- answer
	return true
}

// withdraw takes a question back; false where it was answered.
func (q *questions) withdraw(id string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	_, open := q.open[id]
	delete(q.open, id)
	return open
}

// lost answers, with nothing, what only a client that has left could answer.
func (q *questions) lost(client string, unanswerable func(kind string) bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for id, w := range q.open {
		if w.client == client || unanswerable(w.kind) {
			delete(q.open, id)
			w.answer <- nil
		}
	}
}

// tell publishes an event that no turn is about.
func (s *loaded) tell(p event.Payload) { s.Post(turn.Note{Payload: p}, nil, nil) }

// TellExtensions tells the session's clients how the programs stand that run beside it.
// Who embeds the library and runs such programs calls it.
func (h *Session) TellExtensions(p event.ExtensionsLoaded) { h.sess.tell(p) }

// ask puts a question and waits for the answer; nil where nobody is left to give
// one. done is published when it is settled, whoever settled it.
func (s *loaded) question(ctx context.Context, kind, client string, asked, done func(id string, answer json.RawMessage) event.Payload) (json.RawMessage, error) {
	id, w := s.questions.add(kind, client)
	s.tell(asked(id, nil))
	defer func() { s.questions.withdraw(id) }()
	select {
	case answer := <-w.answer:
		if done != nil {
			s.tell(done(id, answer))
		}
		return answer, nil
	case <-ctx.Done():
	case <-s.Done():
	}
	if !s.questions.withdraw(id) {
		return <-w.answer, nil // just now
	}
	if done != nil {
		s.tell(done(id, nil))
	}
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return nil, session.ErrUnloaded
}

// left settles what a client that is leaving was asked.
func (h *Session) left() {
	s := h.sess
	h.hideCanvases()
	s.lostFactories(h.client.ID)
	s.questions.lost(h.client.ID, func(kind string) bool {
		switch kind {
		case aboutElicitation:
			return !s.View().Elicits()
		case aboutOAuth:
			return !s.taker(event.TypeMCPOAuthRequired)
		case aboutSampling:
			return !s.taker(event.TypeSamplingRequested)
		case aboutAutoMode:
			return !s.answered(AutoModeRequest) && !s.taker(event.TypeAutoModeSwitchRequested)
		case aboutLimits:
			return !s.taker(event.TypeSessionLimitsExhaustedRequested)
		}
		return false
	})
}

// Elicitation asks a client's user for something: a form by its schema.
type Elicitation struct {
	Message string
	Schema  json.RawMessage // of the form
	Mode    string          // "" is "form"
	URL     string          // of mode "url"
	Server  string          // the MCP server that asks; "" is none
}

// ElicitationAnswer is what the user did: "accept", "decline" or "cancel".
type ElicitationAnswer struct {
	Action  string          `json:"action"`
	Content json.RawMessage `json:"content,omitempty"` // of an accepted form
}

// Elicit asks the user of a client that can, and waits for the answer. Without
// such a client it is a WrongState error; where the last of them leaves meanwhile
// the answer is "cancel".
func (h *Session) Elicit(ctx context.Context, e Elicitation) (ElicitationAnswer, error) {
	const op = "session.ui.elicitation"
	if !h.sess.View().Elicits() {
		return ElicitationAnswer{}, &Error{Op: op, Kind: KindWrongState, SessionID: h.id, Msg: "elicitation is not supported here: no client of session " + h.id + " can ask a user (requestElicitation)"}
	}
	a, err := h.sess.elicit(ctx, e)
	return a, wrap(op, h.id, err)
}

func (s *loaded) elicit(ctx context.Context, e Elicitation) (ElicitationAnswer, error) {
	asked := func(id string, _ json.RawMessage) event.Payload {
		return event.ElicitationRequested{RequestID: id, Message: e.Message, Mode: e.Mode, RequestedSchema: e.Schema, Source: e.Server, URL: e.URL}
	}
	parse := func(raw json.RawMessage) ElicitationAnswer {
		a := ElicitationAnswer{Action: "cancel"}
		if json.Unmarshal(raw, &a) != nil || a.Action == "" {
			a = ElicitationAnswer{Action: "cancel"}
		}
		return a
	}
	raw, err := s.question(ctx, aboutElicitation, "", asked, func(id string, raw json.RawMessage) event.Payload {
		a := parse(raw)
		return event.ElicitationCompleted{RequestID: id, Action: a.Action, Content: a.Content}
	})
	if err != nil {
		return ElicitationAnswer{}, err
	}
	return parse(raw), nil
}

// AnswerElicitation answers an open question to the user. It reports whether the
// answer counted: the first one does.
func (h *Session) AnswerElicitation(requestID string, answer json.RawMessage) bool {
	return h.sess.questions.settle(aboutElicitation, requestID, answer)
}

// Slash is a slash command that a client has registered, or one of Transom's own.
type Slash struct {
	Name        string
	Description string
	BuiltIn     bool
	Skill       bool   // it begins a skill: see [Session.SkillPrompt]
	Hint        string // of its argument; "" takes none
}

// offers notes what the host can do for the session besides running tools.
func (h *Session) offers(elicits bool, commands []Slash) {
	h.client.Elicits, h.client.Commands = elicits, nil
	for _, c := range commands {
		h.client.Commands = append(h.client.Commands, event.CommandInfo{Name: c.Name, Description: c.Description})
	}
}

// builtInCommands are Transom's own.
var builtInCommands = []Slash{
	{Name: "help", Description: "List the slash commands of this session", BuiltIn: true},
	{Name: "model", Description: "Show the session's model, or choose another", BuiltIn: true, Hint: "[model id]"},
	{Name: "rename", Description: "Give the session a name", BuiltIn: true, Hint: "name"},
}

// Commands lists the slash commands of the session: Transom's own, then those of
// its clients, then those of skills whose name is not taken.
func (h *Session) Commands() []Slash { return h.sess.commands() }

func (s *loaded) commands() []Slash {
	out := append([]Slash(nil), builtInCommands...)
	for _, c := range s.View().Commands() {
		out = append(out, Slash{Name: c.Name, Description: c.Description})
	}
	for _, k := range s.listed() {
		taken := slices.ContainsFunc(out, func(c Slash) bool { return strings.EqualFold(c.Name, k.CommandName) })
		if k.Enabled && k.UserInvocable && !taken {
			out = append(out, Slash{Name: k.CommandName, Description: k.Description, Skill: true, Hint: k.ArgumentHint})
		}
	}
	return out
}

// split takes a command apart: "/deploy production" is "deploy" and "production".
func split(text string) (name, args string) {
	name, args, _ = strings.Cut(strings.TrimLeft(strings.TrimSpace(text), "/"), " ")
	return name, strings.TrimSpace(args)
}

// Invoke runs one of Transom's own commands and returns what it has to say. Those
// of clients are run by [Session.RunCommand].
func (h *Session) Invoke(ctx context.Context, name, args string) (string, error) {
	text, err := h.sess.invoke(ctx, name, args)
	return text, wrap("session.commands.invoke", h.id, err)
}

func (s *loaded) invoke(ctx context.Context, name, args string) (string, error) {
	switch strings.ToLower(name) {
	case "help":
		var b strings.Builder
		b.WriteString("Slash commands of this session:\n")
		for _, c := range s.commands() {
			fmt.Fprintf(&b, "\n/%s", strings.TrimSpace(c.Name+" "+c.Hint))
			if c.Description != "" {
				b.WriteString(": " + c.Description)
			}
		}
		return b.String(), nil
	case "model":
		if args == "" {
			if id := s.View().Model; id != "" {
				return "The model of this session is " + id + ".", nil
			}
			return "This session uses its provider's first model.", nil
		}
		if _, err := s.Do(ctx, turn.Configure{Model: &args}, nil); err != nil {
			return "", err
		}
		return "The model of this session is " + args + " now.", nil
	case "rename":
		if args == "" {
			return "", &Error{Kind: KindInvalidParams, Msg: "/rename needs a name"}
		}
		if _, err := s.Do(ctx, turn.Configure{Name: &args}, nil); err != nil {
			return "", err
		}
		return "The session is called " + args + " now.", nil
	}
	return "", &Error{Kind: KindNotFound, Msg: "there is no command /" + name + " of Transom's own in session " + s.ID()}
}

// RunCommand runs a command that a client has registered, and waits for it.
// failure is what went wrong with it, in the client's words; "" where nothing did.
func (h *Session) RunCommand(ctx context.Context, name, args string) (failure string, err error) {
	failure, err = h.sess.runClients(ctx, name, args)
	return failure, wrap("session.commands.execute", h.id, err)
}

func (s *loaded) runClients(ctx context.Context, name, args string) (string, error) {
	owner := s.View().Owner(name)
	if owner == "" {
		return "", &Error{Kind: KindNotFound, Msg: "no client of session " + s.ID() + " has registered the command /" + name}
	}
	asked := func(id string, _ json.RawMessage) event.Payload {
		return event.CommandExecute{RequestID: id, Command: strings.TrimSpace("/" + name + " " + args), CommandName: name, Args: args}
	}
	raw, err := s.question(ctx, aboutCommand, owner, asked, func(id string, _ json.RawMessage) event.Payload { return event.CommandCompleted{RequestID: id} })
	if err != nil {
		return "", err
	}
	if raw == nil {
		return "the client that registered /" + name + " has left", nil
	}
	var failure string
	if json.Unmarshal(raw, &failure) != nil {
		failure = ""
	}
	return failure, nil
}

// AnswerCommand says that a command which this client was asked to run is done;
// failure is why it failed, "" where it did not. It reports whether somebody
// waited for it.
func (h *Session) AnswerCommand(requestID, failure string) bool {
	raw, _ := json.Marshal(failure) // a string always encodes
	return h.sess.questions.settle(aboutCommand, requestID, raw)
}

// QueuedAnswer is what a client did about a command whose turn had come.
type QueuedAnswer struct {
	Handled bool `json:"handled"`
	// Stop leaves what waits behind it waiting.
	Stop bool `json:"stopProcessingQueue"`
}

// AnswerQueuedCommand answers a command.queued event. It reports whether the
// answer counted.
func (h *Session) AnswerQueuedCommand(requestID string, a QueuedAnswer) bool {
	raw, _ := json.Marshal(a) // two booleans always encode
	return h.sess.questions.settle(aboutQueued, requestID, raw)
}

// taken is a client and the type of an event by which it is asked something.
type taken struct{ client, event string }

// Take says whether this client answers what is asked by events of a type, where
// nothing else says so: command.queued for commands that neither Transom nor a
// client has registered, auto_mode_switch.requested and
// session_limits_exhausted.requested.
func (h *Session) Take(eventType string, takes bool) {
	if takes {
		h.sess.takers.Store(taken{h.client.ID, eventType}, true)
	} else {
		h.sess.takers.Delete(taken{h.client.ID, eventType})
	}
}

// taker reports whether an attached client takes what is asked by events of a type.
func (s *loaded) taker(eventType string) bool {
	for _, c := range s.View().Live.Clients {
		if _, ok := s.takers.Load(taken{c.ID, eventType}); ok {
			return true
		}
	}
	return false
}

// runQueued runs a command whose turn has come: a client's, Transom's own, or one
// that a client wants to be asked about.
func (s *loaded) runQueued(ctx context.Context, text string) (stop bool) {
	name, args := split(text)
	say := func(failure string, err error) {
		if err != nil {
			failure = err.Error()
		}
		if failure != "" && ctx.Err() == nil {
			s.tell(event.SessionWarning{WarningType: "command", Message: "The command " + text + " failed: " + failure})
		}
	}
	if s.View().Owner(name) != "" {
		say(s.runClients(ctx, name, args))
		return false
	}
	for _, c := range builtInCommands {
		if strings.EqualFold(c.Name, name) {
			said, err := s.invoke(ctx, name, args)
			say("", err)
			if err == nil {
				s.tell(event.SessionInfo{InfoType: "command", Message: said})
			}
			return false
		}
	}
	if _, err := s.skill(name, true); err == nil {
		say("", s.queueSkill(ctx, name, args))
		return false
	}
	if !s.taker(event.TypeCommandQueued) {
		say("there is no such command", nil)
		return false
	}
	asked := func(id string, _ json.RawMessage) event.Payload {
		return event.CommandQueued{RequestID: id, Command: text}
	}
	raw, err := s.question(ctx, aboutQueued, "", asked, func(id string, _ json.RawMessage) event.Payload { return event.CommandCompleted{RequestID: id} })
	var a QueuedAnswer
	if err != nil || json.Unmarshal(raw, &a) != nil || !a.Handled {
		say("no client has taken it", err)
	}
	return a.Stop
}

// BuiltInCommands lists the slash commands that every session has.
func BuiltInCommands() []Slash { return append([]Slash(nil), builtInCommands...) }

// Elicits reports whether a client of the session can ask its user for something.
func (h *Session) Elicits() bool { return h.sess.View().Elicits() }
