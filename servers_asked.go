package transom

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/internal/session"
	"github.com/transom-run/transom/mcp"
	"github.com/transom-run/transom/model"
)

// authorize asks the hosts for a token that a server accepts.
func (r *Runtime) authorize(ctx context.Context, s *loaded, a mcp.AuthRequest) (mcp.Token, error) {
	if !s.taker(event.TypeMCPOAuthRequired) {
		return mcp.Token{}, &mcp.ErrNoToken{Msg: "no client of the session handles mcp.oauth_required"}
	}
	asked := event.MCPOAuthRequired{
		ServerName: a.Server, ServerURL: a.URL, Reason: a.Reason, ResourceMetadata: a.Metadata,
		Response: &event.MCPAuthResponse{StatusCode: a.StatusCode, Headers: event.MCPHeaders(a.Header), Body: r.keys.redact(a.Body)}, // it may repeat what it was sent
	}
	for i, h := range asked.Response.Headers {
		asked.Response.Headers[i].Value = r.keys.redact(h.Value)
	}
	if len(a.Challenge) > 0 {
		asked.Challenge = &event.MCPChallenge{ResourceMetadataURL: a.Challenge["resource_metadata"], Scope: a.Challenge["scope"], Error: a.Challenge["error"]}
	}
	if a.Config.OAuthClientID != "" {
		asked.Client = &event.MCPOAuthClient{ClientID: a.Config.OAuthClientID, PublicClient: a.Config.OAuthPublicClient}
		if a.Config.OAuthGrantType == "client_credentials" {
			asked.Client.GrantType = a.Config.OAuthGrantType
		}
	}
	raw, err := s.question(ctx, aboutOAuth, "", func(id string, _ json.RawMessage) event.Payload {
		asked.RequestID = id
		return asked
	}, func(id string, raw json.RawMessage) event.Payload {
		outcome := "cancelled"
		if parseToken(raw).Value != "" {
			outcome = "token"
		}
		return event.MCPOAuthCompleted{RequestID: id, Outcome: outcome}
	})
	if err != nil {
		return mcp.Token{}, err
	}
	t := parseToken(raw)
	if t.Value == "" {
		return t, &mcp.ErrNoToken{Msg: "the host has declined"}
	}
	r.keys.lend(t.Value)
	return t, nil
}

// parseToken reads a host's answer; one that gives no token is the zero Token.
func parseToken(raw json.RawMessage) mcp.Token {
	var a struct {
		Kind        string `json:"kind"`
		AccessToken string `json:"accessToken"`
		TokenType   string `json:"tokenType"`
	}
	if json.Unmarshal(raw, &a) != nil || a.Kind != "token" {
		return mcp.Token{}
	}
	return mcp.Token{Value: a.AccessToken, Type: a.TokenType}
}

// Answer answers an mcp.oauth_required event: {"kind":"token","accessToken":"…"} or
// {"kind":"cancelled"}. It reports whether the answer counted: the first one does.
func (m MCP) Answer(requestID string, answer json.RawMessage) bool {
	return m.s.sess.questions.settle(aboutOAuth, requestID, answer)
}

// sampleFor asks the hosts to answer what a server wants the model to answer.
func (s *loaded) sampleFor(ctx context.Context, server string, params json.RawMessage) (json.RawMessage, error) {
	raw, err := s.question(ctx, aboutSampling, "", func(id string, _ json.RawMessage) event.Payload {
		return event.SamplingRequested{RequestID: id, ServerName: server, MCPRequestID: session.NewID(), Request: params}
	}, func(id string, _ json.RawMessage) event.Payload { return event.SamplingCompleted{RequestID: id} })
	if err != nil {
		return nil, err
	}
	if len(raw) == 0 || string(raw) == "null" {
		return nil, errors.New("the session's user has declined the sampling request")
	}
	return raw, nil
}

// AnswerSampling answers a sampling.requested event with a CreateMessageResult of
// MCP; null declines. It reports whether the answer counted.
func (h *Session) AnswerSampling(requestID string, response json.RawMessage) bool {
	return h.sess.questions.settle(aboutSampling, requestID, response)
}

// samplings are the sampling requests that are being answered, by the host's ids.
type samplings struct {
	mu   sync.Mutex
	open map[string]context.CancelFunc
}

// Sample has the session's model answer a sampling/createMessage request of MCP: a
// conversation of its own, without tools. id names it for [MCP.CancelSample].
func (m MCP) Sample(ctx context.Context, id string, request json.RawMessage) (json.RawMessage, error) {
	const op = "session.mcp.executeSampling"
	req, err := samplingRequest(request)
	if err != nil {
		return nil, &Error{Op: op, Kind: KindInvalidParams, SessionID: m.s.id, Msg: "the sampling request " + err.Error()}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	open := &m.s.sess.servers.samplings
	open.mu.Lock()
	if open.open == nil {
		open.open = map[string]context.CancelFunc{}
	}
	if _, taken := open.open[id]; taken {
		open.mu.Unlock()
		return nil, &Error{Op: op, Kind: KindConflict, SessionID: m.s.id, Msg: "a sampling request " + id + " is being answered already"}
	}
	open.open[id] = cancel
	open.mu.Unlock()
	defer func() {
		open.mu.Lock()
		defer open.mu.Unlock()
		delete(open.open, id)
	}()
	v := m.s.sess.View()
	req.Model, req.Stream, req.SessionID, req.InteractionID, req.Initiator = v.Model, true, v.SessionID, session.NewID(), "agent"
	req.Interaction = model.ForSampling
	p, err := m.s.sess.models.provider(ctx, req)
	if err != nil {
		return nil, wrap(op, m.s.id, err)
	}
	text, _, err := once(ctx, p, req, func(string) {})
	if err != nil {
		return nil, wrap(op, m.s.id, err)
	}
	raw, err := json.Marshal(map[string]any{
		"role": "assistant", "model": req.Model, "content": map[string]any{"type": "text", "text": text}, "stopReason": "endTurn",
	})
	return raw, wrap(op, m.s.id, err)
}

// CancelSample ends such a request; false where there is none of that id.
func (m MCP) CancelSample(id string) bool {
	open := &m.s.sess.servers.samplings
	open.mu.Lock()
	defer open.mu.Unlock()
	cancel, found := open.open[id]
	if found {
		cancel()
	}
	return found
}

// samplingRequest makes a model request of what MCP calls one.
func samplingRequest(raw json.RawMessage) (*model.Request, error) {
	type block struct {
		Type     string `json:"type"`
		Text     string `json:"text"`
		Data     string `json:"data"`
		MIMEType string `json:"mimeType"`
	}
	var in struct {
		System   string `json:"systemPrompt"`
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(raw, &in); err != nil {
		return nil, errors.New("cannot be read: " + err.Error())
	}
	if len(in.Messages) == 0 {
		return nil, errors.New("has no messages")
	}
	req := &model.Request{}
	if in.System != "" {
		req.Messages = append(req.Messages, model.Message{Role: model.System, Text: in.System})
	}
	for _, m := range in.Messages {
		var blocks []block
		if json.Unmarshal(m.Content, &blocks) != nil {
			var one block
			if err := json.Unmarshal(m.Content, &one); err != nil {
				return nil, errors.New("has a message whose content cannot be read")
			}
			blocks = []block{one}
		}
		var texts []string
		for _, b := range blocks {
			if b.Type != "text" {
				return nil, errors.New("has content of type " + b.Type + ", and only text is served")
			}
			texts = append(texts, b.Text)
		}
		role := model.User
		if m.Role == "assistant" {
			role = model.Assistant
		}
		req.Messages = append(req.Messages, model.Message{Role: role, Text: strings.Join(texts, "\n")})
	}
	return req, nil
}
