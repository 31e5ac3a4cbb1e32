package server

import (
	"context"
	"encoding/json"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/mcp"
)

// The methods about the tokens of remote MCP servers.
func mcpOAuthMethods() map[string]handler {
	return map[string]handler{
		"session.mcp.oauth.handlePendingRequest":       posted(answerOAuth),
		"session.mcp.oauth.respond":                    posted(declineOAuth),
		"session.mcp.oauth.login":                      read(loginServer),
		"session.mcp.oauth.probe":                      read(probeServer),
		"session.mcp.oauth.authenticationStateChanged": read(loginChanged),
		"session.mcp.moveLoadingToBackground":          posted(loadInBackground),
	}
}

type oauthAnswerParams struct {
	target
	RequestID string          `json:"requestId"`
	Result    json.RawMessage `json:"result"`
}

func answerOAuth(q *call, p *oauthAnswerParams) {
	q.Reply(successResult{q.sess.MCP().Answer(p.RequestID, p.Result)}, nil)
}

// declineOAuth answers without a token: this method has no field for one.
func declineOAuth(q *call, p *oauthAnswerParams) {
	q.Reply(successResult{q.sess.MCP().Decline(p.RequestID)}, nil)
}

type loginServerParams struct {
	target
	ServerName   string `json:"serverName"`
	ForceReauth  bool   `json:"forceReauth"`
	ClientName   string `json:"clientName"`
	ClientID     string `json:"clientId"`
	ClientSecret string `json:"clientSecret"`
	PublicClient *bool  `json:"publicClient"`
	GrantType    string `json:"grantType"`
	Message      string `json:"callbackSuccessMessage"`
}

type loginServerResult struct {
	AuthorizationURL string `json:"authorizationUrl,omitempty"`
}

func loginServer(ctx context.Context, s *transom.Session, p *loginServerParams) (any, error) {
	page, err := s.MCP().Login(ctx, p.ServerName, mcp.Login{
		Anew: p.ForceReauth, ClientName: p.ClientName, ClientID: p.ClientID, ClientSecret: p.ClientSecret, PublicClient: p.PublicClient,
		GrantType: p.GrantType, Message: p.Message,
	})
	return loginServerResult{page}, err
}

type probeResult struct {
	Status    string              `json:"status"`
	Reason    string              `json:"reason,omitempty"`
	Error     string              `json:"error,omitempty"`
	Challenge *event.MCPChallenge `json:"wwwAuthenticateParams,omitempty"`
	Response  *probeResponse      `json:"httpResponse,omitempty"`
}

type probeResponse struct {
	StatusCode int               `json:"statusCode"`
	Headers    []event.MCPHeader `json:"headers"`
	Body       *string           `json:"body,omitempty"`
}

// probeServer answers with what came of it, failures included.
func probeServer(ctx context.Context, s *transom.Session, p *serverParams) (any, error) {
	if err := p.named("session.mcp.oauth.probe"); err != nil {
		return nil, err
	}
	got := s.MCP().Probe(ctx, p.ServerName)
	out := probeResult{Status: got.Status, Reason: got.Reason, Error: got.Error}
	if got.StatusCode != 0 {
		out.Response = &probeResponse{got.StatusCode, event.MCPHeaders(got.Header), got.Body}
	}
	if len(got.Challenge) > 0 && got.Status == mcp.ProbeNeedsAuth {
		out.Challenge = &event.MCPChallenge{ResourceMetadataURL: got.Challenge["resource_metadata"], Scope: got.Challenge["scope"], Error: got.Challenge["error"]}
	}
	return out, nil
}

type loginChangedParams struct {
	target
	ServerName          string `json:"serverName"`
	RefreshSessionToken bool   `json:"refreshSessionToken"`
}

func loginChanged(ctx context.Context, s *transom.Session, p *loginChangedParams) (any, error) {
	return nil, s.MCP().LoginChanged(ctx, p.ServerName, p.RefreshSessionToken)
}

func loadInBackground(q *call, _ *target) {
	q.Reply(map[string]any{"movedToBackground": q.sess.MCP().ToBackground()}, nil)
}
