package server

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/eventlog"
	"github.com/transom-run/transom/internal/jsonrpc2"
)

// openedResult answers session.create and session.resume.
type openedResult struct {
	SessionID       string       `json:"sessionId"`
	NativeSessionID string       `json:"nativeSessionId"`
	StartTime       string       `json:"startTime"`
	IsRemote        bool         `json:"isRemote"`
	Mode            string       `json:"mode"`
	WorkspacePath   string       `json:"workspacePath"`
	Capabilities    capabilities `json:"capabilities"`
	ModelState      modelState   `json:"modelState"`
	// OpenCanvases are of session.resume.
	OpenCanvases []transom.OpenCanvas `json:"openCanvases,omitempty"`
}

// capabilities says what of a client's user interface may be asked for.
type capabilities struct {
	UI struct {
		Elicitation bool `json:"elicitation"`
		MCPApps     bool `json:"mcpApps"`
		Canvases    bool `json:"canvases"`
	} `json:"ui"`
	Extensions bool `json:"extensions"`
}

func capabilitiesOf(s *transom.Session) (c capabilities) {
	c.UI.Elicitation, c.UI.MCPApps = s.Elicits(), s.MCP().Apps()
	return c
}

func opened(s *transom.Session) openedResult {
	i := s.Info()
	return openedResult{
		SessionID: i.ID, NativeSessionID: i.ID, StartTime: wireTime(i.Started), IsRemote: i.Remote, Mode: i.Mode,
		WorkspacePath: s.Workspace(), ModelState: modelState{i.Model, i.ReasoningEffort, i.ContextTier}, Capabilities: capabilitiesOf(s), OpenCanvases: s.OpenCanvases(),
	}
}

// opened answers the request, and starts the extensions that it asks for.
func (c *conn) opened(s *transom.Session, p *sessionParams) openedResult {
	c.launch(s, p)
	out := opened(s)
	out.Capabilities.Extensions = c.srv.extensionsOf(s.ID()) != nil
	return out
}

// createSession begins a session. The answer comes first, then its events.
func createSession(c *conn, r *jsonrpc2.Responder) {
	p := new(sessionParams)
	if err := p.decode(r.Request(), c.srv.cfg.Extensions); err != nil {
		r.Reply(nil, err)
		return
	}
	cfg := p.create(c)
	if cfg.ID == "" && c.keeps() {
		cfg.ID = transom.NewSessionID() // the client is asked for its files by it
	}
	c.claim(cfg.ID)
	if cfg.ID == "" { // nobody can ask for it before the answer: it needs no lane yet
		r.Go(func(ctx context.Context) (any, error) {
			s, err := c.srv.cfg.Runtime.CreateSession(ctx, cfg)
			if err != nil {
				return nil, fail(r.Request().Method, err)
			}
			c.enter(s.ID(), func(l *lane) bool {
				a := l.attach(s)
				r.ReplyThen(c.opened(s, p), nil, func() { c.startPump(l, a) })
				return false
			})
			return nil, nil
		})
		return
	}
	c.enter(cfg.ID, func(l *lane) bool {
		r.Go(func(ctx context.Context) (any, error) {
			defer l.leave()
			s, err := c.srv.cfg.Runtime.CreateSession(ctx, cfg)
			if err != nil {
				return nil, fail(r.Request().Method, err)
			}
			a := l.attach(s)
			r.ReplyThen(c.opened(s, p), nil, func() { c.startPump(l, a) })
			return nil, nil
		})
		return true
	})
}

// resumeSession attaches to a session, or takes one up again that is attached
// here already. The answer comes first, then the events.
func resumeSession(c *conn, r *jsonrpc2.Responder) {
	p := new(sessionParams)
	if err := p.decode(r.Request(), c.srv.cfg.Extensions); err != nil {
		r.Reply(nil, err)
		return
	}
	if p.SessionID == "" {
		r.Reply(nil, invalid(r.Request().Method, "Missing sessionId in session.resume request"))
		return
	}
	c.enter(p.SessionID, func(l *lane) bool {
		r.Go(func(ctx context.Context) (any, error) {
			defer l.leave()
			c.claim(p.SessionID)
			old := l.attached()
			if a := old; a != nil {
				err := c.resumeHere(ctx, r, a, p)
				if !errors.Is(err, eventlog.ErrMoved) && transom.KindOf(err) != transom.KindNotFound {
					return nil, err
				}
				// Another process has had the session since, or it was ended here a moment
				// ago: it is read anew, and the attachment ends with what was loaded.
			}
			c.srv.reap()
			c.claim(p.SessionID)
			s, err := c.srv.cfg.Runtime.ResumeSession(ctx, p.SessionID, p.resume(c))
			if err != nil {
				return nil, fail(r.Request().Method, err)
			}
			if old != nil {
				select {
				case <-old.delivered:
				case <-ctx.Done():
				}
			}
			a := l.attach(s)
			r.ReplyThen(c.opened(s, p), nil, func() { c.startPump(l, a) })
			return nil, nil
		})
		return true
	})
}

// resumeHere takes up a session on the attachment it has: its events come once.
func (c *conn) resumeHere(ctx context.Context, r *jsonrpc2.Responder, a *attachment, p *sessionParams) error {
	select {
	case a.gate <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	err := a.sess.Resume(ctx, p.resume(c))
	if err != nil {
		<-a.gate
		if errors.Is(err, eventlog.ErrMoved) || transom.KindOf(err) == transom.KindNotFound {
			return err
		}
		return fail(r.Request().Method, err)
	}
	r.ReplyThen(opened(a.sess), nil, func() { <-a.gate })
	return nil
}

// sessionParams is what session.create and session.resume are given.
type sessionParams struct {
	SessionID          string        `json:"sessionId"`
	Model              *string       `json:"model"`
	ReasoningEffort    *string       `json:"reasoningEffort"`
	ContextTier        *string       `json:"contextTier"`
	Streaming          *bool         `json:"streaming"`
	Tools              []wireTool    `json:"tools"`
	AvailableTools     *[]string     `json:"availableTools"`
	ExcludedTools      *[]string     `json:"excludedTools"`
	SystemMessage      *wireSystem   `json:"systemMessage"`
	Provider           *wireProvider `json:"provider"`
	Providers          []wireNamed   `json:"providers"`
	Models             []wireModel   `json:"models"`
	GitHubToken        *string       `json:"gitHubToken"`
	WorkingDirectory   *string       `json:"workingDirectory"`
	RequestPermission  bool          `json:"requestPermission"`
	Hooks              bool          `json:"hooks"`
	InfiniteSessions   *wireInfinite `json:"infiniteSessions"`
	TrackFiles         bool          `json:"enableFileChangeTracking"`
	RequestElicitation bool          `json:"requestElicitation"`
	Commands           []wireCommand `json:"commands"`
	shapeParams
	mcpParams
	skillParams
	canvasParams
	factoryParams
	extensionParams

	RequestUserInput      bool `json:"requestUserInput"`
	RequestExitPlanMode   bool `json:"requestExitPlanMode"`
	RequestAutoModeSwitch bool `json:"requestAutoModeSwitch"`

	DisableResume       bool `json:"disableResume"`
	ContinuePendingWork bool `json:"continuePendingWork"`

	traceParams

	unserved []string
}

// wireCommand is a slash command as hosts register it.
type wireCommand struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

// wireTool is a tool as hosts declare it.
type wireTool struct {
	Name                 string          `json:"name"`
	Description          string          `json:"description"`
	Parameters           json.RawMessage `json:"parameters"`
	IsTerminal           bool            `json:"isTerminal"`
	SkipPermission       bool            `json:"skipPermission"`
	OverridesBuiltInTool bool            `json:"overridesBuiltInTool"`
	Defer                string          `json:"defer"`
	Metadata             json.RawMessage `json:"metadata"`
}

// wireSystem is a system message as hosts give it.
type wireSystem struct {
	Mode     string                           `json:"mode"`
	Content  string                           `json:"content"`
	Sections map[string]transom.SystemSection `json:"sections"`
}

// wireProvider is a session's own access to a model as hosts give it.
type wireProvider struct {
	Type                   string            `json:"type"`
	WireAPI                string            `json:"wireApi"`
	Transport              string            `json:"transport"`
	BaseURL                string            `json:"baseUrl"`
	APIKey                 string            `json:"apiKey"`
	BearerToken            string            `json:"bearerToken"`
	Azure                  wireAzure         `json:"azure"`
	Headers                map[string]string `json:"headers"`
	ModelID                string            `json:"modelId"`
	WireModel              string            `json:"wireModel"`
	MaxPromptTokens        int               `json:"maxPromptTokens"`
	MaxOutputTokens        int               `json:"maxOutputTokens"`
	HasBearerTokenProvider bool              `json:"hasBearerTokenProvider"`
}

type wireAzure struct {
	APIVersion string `json:"apiVersion"`
}
