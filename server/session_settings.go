package server

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/event"
)

func getMode(q *call, _ *target) { q.Reply(q.sess.Info().Mode, nil) }

type setModeParams struct {
	target
	Mode         string  `json:"mode"`
	ExpectedMode *string `json:"expectedMode"`
}

type setModeResult struct {
	Status       string `json:"status"`
	ModelChanged bool   `json:"modelChanged"`
	ModeApplied  bool   `json:"modeApplied"`
}

func setMode(q *call, p *setModeParams) {
	set := func() {
		q.sess.Post(transom.Configure{Mode: &p.Mode}, q.answer(func(any) any { return setModeResult{"unchanged", false, true} }))
	}
	if p.ExpectedMode == nil {
		set()
		return
	}
	// An empty command first: when it is done, so is all that came before it.
	q.sess.Post(transom.Configure{}, func(_ any, err error) {
		switch {
		case err != nil:
			q.Reply(nil, fail(q.op(), err))
		case q.sess.Info().Mode != *p.ExpectedMode:
			q.Reply(setModeResult{"unchanged", false, false}, nil)
		default:
			set()
		}
	})
}

type modelState struct {
	ModelID         string `json:"modelId,omitempty"`
	ReasoningEffort string `json:"reasoningEffort,omitempty"`
	ContextTier     string `json:"contextTier,omitempty"`
}

func currentModel(q *call, _ *target) {
	i := q.sess.Info()
	q.Reply(modelState{i.Model, i.ReasoningEffort, i.ContextTier}, nil)
}

type switchModelParams struct {
	target
	ModelID         string  `json:"modelId"`
	ReasoningEffort *string `json:"reasoningEffort"`
	Summary         *string `json:"reasoningSummary"`
	ContextTier     *string `json:"contextTier"`

	Capabilities *wireCapabilities `json:"modelCapabilities"`
}

// warnUnserved tells of settings that are known and have no effect.
func (q *call) warnUnserved(names []string) {
	if len(names) > 0 {
		q.sess.Post(transom.Note{Level: "warning", Type: "configuration",
			Message: q.op() + ": these settings are known but not served by this version of Transom, and have no effect: " + strings.Join(names, ", ")}, nil)
	}
}

type switchModelResult struct {
	Status  string     `json:"status"`
	ModelID string     `json:"modelId"`
	State   modelState `json:"modelState"`
}

// switchModel changes the model from the next request on.
func switchModel(q *call, p *switchModelParams) {
	if p.ModelID == "" {
		q.Reply(nil, invalid(q.op(), "session.model.switchTo needs a modelId"))
		return
	}
	q.warnUnserved(p.Capabilities.unserved())
	c := transom.Configure{
		Model: &p.ModelID, ReasoningEffort: p.ReasoningEffort, ContextTier: p.ContextTier, ReasoningSummary: p.Summary,
		Vision: p.Capabilities.vision(), Abilities: p.Capabilities.abilities(),
	}
	q.sess.Post(c, q.answer(func(any) any {
		i := q.sess.Info()
		return switchModelResult{"switched", i.Model, modelState{i.Model, i.ReasoningEffort, i.ContextTier}}
	}))
}

func getName(q *call, _ *target) {
	var name *string
	if i := q.sess.Info(); i.Title != "" {
		name = &i.Title
	}
	q.Reply(map[string]any{"name": name}, nil)
}

type setNameParams struct {
	target
	Name    string `json:"name"`
	Summary string `json:"summary"`
}

// maxName is how many characters a session's name may have.
const maxName = 100

func setName(q *call, p *setNameParams) {
	name := strings.TrimSpace(p.Name)
	if n := len([]rune(name)); n == 0 {
		q.Reply(nil, invalid(q.op(), "session.name.set: the name must not be empty"))
		return
	} else if n > maxName {
		q.Reply(nil, invalid(q.op(), fmt.Sprintf("session.name.set needs a name of 1 to %d characters, not %d", maxName, n)))
		return
	}
	q.sess.Post(transom.Configure{Name: &name}, q.answer(func(any) any { return struct{}{} }))
}

func setAutoName(q *call, p *setNameParams) {
	name := strings.TrimSpace(p.Summary)
	if name == "" {
		q.Reply(map[string]any{"applied": false}, nil)
		return
	}
	q.sess.Post(transom.Configure{Name: &name, AutoName: true}, q.answer(func(any) any {
		return map[string]any{"applied": q.sess.Info().Title == name}
	}))
}

type optionsParams struct {
	target
	Model            *string   `json:"model"`
	ReasoningEffort  *string   `json:"reasoningEffort"`
	ContextTier      *string   `json:"contextTier"`
	AvailableTools   *[]string `json:"availableTools"`
	ExcludedTools    *[]string `json:"excludedTools"`
	EnableStreaming  *bool     `json:"enableStreaming"`
	WorkingDirectory *string   `json:"workingDirectory"`

	SkipCustomInstructions *bool `json:"skipCustomInstructions"`

	Limits *wireLimits `json:"sessionLimits"`

	ToolSearch *wireToolSearch `json:"toolSearch"`

	Capabilities *wireCapabilities `json:"modelCapabilitiesOverrides"`
	Summary      *string           `json:"reasoningSummary"`
	Citations    *bool             `json:"enableCitations"`

	rest map[string]json.RawMessage
}

// UnmarshalJSON keeps all members too: what is not served is told.
func (p *optionsParams) UnmarshalJSON(raw []byte) error {
	type plain optionsParams
	if err := json.Unmarshal(raw, (*plain)(p)); err != nil {
		return err
	}
	return json.Unmarshal(raw, &p.rest)
}

func updateOptions(q *call, p *optionsParams) {
	q.warnUnserved(p.unserved())
	c := transom.Configure{
		Model: p.Model, ReasoningEffort: p.ReasoningEffort, ContextTier: p.ContextTier, AvailableTools: p.AvailableTools,
		ExcludedTools: p.ExcludedTools, Streaming: p.EnableStreaming, Dir: p.WorkingDirectory, SkipCustomInstructions: p.SkipCustomInstructions,
		ReasoningSummary: p.Summary, Citations: p.Citations, Vision: p.Capabilities.vision(), Abilities: p.Capabilities.abilities(),
		ToolSearch: p.ToolSearch.search(),
	}
	if raw, given := p.rest["sessionLimits"]; given && len(raw) > 0 {
		var credits float64
		if p.Limits != nil {
			credits = value(p.Limits.MaxAICredits)
		}
		c.MaxAICredits = &credits
	}
	q.sess.Post(c, q.answer(func(any) any { return successResult{true} }))
}

func (p *optionsParams) unserved() []string {
	return append(unservedFields(p.rest, sessionFields, optionFields), p.Capabilities.unserved()...)
}

type interestParams struct {
	target
	EventType string `json:"eventType"`
	Handle    string `json:"handle"`
}

// registerInterest notes that the client handles an event type. Some make it one
// who is asked something by that event; see [transom.Session.Take].
func registerInterest(q *call, p *interestParams) {
	if p.EventType == "" {
		q.Reply(nil, invalid(q.op(), q.op()+" needs an eventType"))
		return
	}
	handle, err := q.register(p.EventType)
	q.Reply(map[string]any{"handle": handle}, err)
}

// register notes an interest of the client in a session.
func (q *call) register(eventType string) (handle string, err error) {
	q.c.mu.Lock()
	defer q.c.mu.Unlock()
	if len(q.att.interests) >= maxInterests {
		return "", failKind(q.op(), transom.KindOverloaded, fmt.Sprintf("session %s has %d registrations of this connection already: release some", q.lane.id, maxInterests))
	}
	q.c.serial++
	handle = fmt.Sprintf("interest-%d", q.c.serial)
	if q.att.interests == nil {
		q.att.interests = map[string]string{}
	}
	q.att.interests[handle] = eventType
	q.interested()
	return handle, nil
}

// release forgets an interest, and returns what it was in; "" where there is none.
func (q *call) release(handle string) string {
	q.c.mu.Lock()
	defer q.c.mu.Unlock()
	was := q.att.interests[handle]
	delete(q.att.interests, handle)
	q.interested()
	return was
}

// interested tells the session what the client wants to be asked about. conn.mu
// is held.
func (q *call) interested() {
	for _, asked := range []string{event.TypeCommandQueued, event.TypeAutoModeSwitchRequested, event.TypeSessionLimitsExhaustedRequested, event.TypeMCPOAuthRequired, event.TypeSamplingRequested} {
		takes := false
		for _, t := range q.att.interests {
			takes = takes || t == asked
		}
		q.sess.Take(asked, takes)
	}
}

// maxInterests bounds the registrations of one connection for one session.
const maxInterests = 1000

// releaseInterest succeeds for handles that were released before, too.
func releaseInterest(q *call, p *interestParams) {
	q.release(p.Handle)
	q.Reply(successResult{true}, nil)
}
