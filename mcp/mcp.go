// Package mcp says what a session needs of MCP servers: which there are, how they
// stand, what they ask back. It connects to none of them; package mcp/host does.
//
//	rt, err := transom.Open(transom.Config{MCP: host.New})
//	s, err := rt.CreateSession(ctx, transom.SessionConfig{
//		MCPServers: map[string]mcp.Server{"files": {Command: "file-server", Args: []string{"/srv"}}},
//	})
//
// # Ownership
//
// A [Host] belongs to one session, or to one agent in it, and ends with it: what it
// started has ended when Close returns.
//
// # Ordering
//
// A Host connects to nothing before Start. What it tells by the functions of its
// [Context] comes from its own goroutines, in no order among servers; the states
// of one server come in the order in which it had them.
//
// # Errors
//
// A server that cannot be reached is a [State], never an error of the session.
package mcp

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"reflect"
	"time"

	"github.com/transom-run/transom/tool"
)

// Server is how one server is reached, as hosts and configuration files write it.
type Server struct {
	// Type is "stdio" (also "local" or ""), "http" or "sse". Where it is "", a
	// server with a URL is "http".
	Type string `json:"type,omitempty"`

	// Command is started for a stdio server, with Args, in Dir ("" is the session's
	// working directory), with Env added to an environment without secrets.
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	Dir     string            `json:"cwd,omitempty"`

	// URL is where the others are, and Headers go with every request.
	URL     string            `json:"url,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`

	// Tools names the server's tools that may be offered, by pattern; nil is all.
	// ExcludeTools are not offered even so.
	Tools        []string `json:"tools,omitempty"`
	ExcludeTools []string `json:"excludeTools,omitempty"`
	// Timeout bounds connecting, listing and each call, in milliseconds; 0 is
	// [ConnectTime] for the first two and no limit for calls.
	Timeout int64 `json:"timeout,omitempty"`
	// DeferTools is "never" or "auto": whether a tool search may hold the tools back.
	DeferTools string `json:"deferTools,omitempty"`

	// OAuthClientID names a client that is registered with the authorization server of
	// a remote server; "" registers one where that is possible. OAuthClientSecret is
	// its secret, OAuthPublicClient says that it has none.
	OAuthClientID     string `json:"oauthClientId,omitempty"`
	OAuthClientSecret string `json:"oauthClientSecret,omitempty"`
	OAuthPublicClient *bool  `json:"oauthPublicClient,omitempty"`
	// OAuthGrantType is [ClientCredentials], or [AuthorizationCode], which "" means.
	OAuthGrantType string `json:"oauthGrantType,omitempty"`
	// Auth says how a remote server is logged in to; nil is the usual way.
	Auth *Auth `json:"auth,omitempty"`

	// Source says who configured the server; "" is the session's host. SourcePlugin
	// and SourcePluginVersion name the plugin where it was one.
	Source              Source `json:"-"`
	SourcePlugin        string `json:"-"`
	SourcePluginVersion string `json:"-"`
	// Reach says, when a connection is made, where the server is and with which bearer
	// token; nil: as URL and Headers say.
	Reach func(context.Context) (url, token string, err error) `json:"-"`
}

// The grants by which tokens of a server are got: a user approves in a browser, or
// the client shows its own secret.
const (
	AuthorizationCode = "authorization_code"
	ClientCredentials = "client_credentials"
)

// Source says who configured a server.
type Source string

// The sources, in the words of the protocol.
const (
	FromHost      Source = ""
	FromUser      Source = "user"
	FromWorkspace Source = "workspace"
	FromPlugin    Source = "plugin"
	BuiltIn       Source = "builtin"
)

// ConnectTime is how long connecting to a server and listing its tools may take
// where its configuration does not say.
const ConnectTime = 60 * time.Second

// Transport is "stdio", "http" or "sse".
func (s Server) Transport() string {
	switch s.Type {
	case "http", "sse":
		return s.Type
	case "", "local", "stdio":
		if s.Type == "" && s.URL != "" && s.Command == "" {
			return "http"
		}
		return "stdio"
	}
	return s.Type
}

// Same reports whether two configurations reach the same server in the same way.
// Functions are not compared: they belong to the session.
func (s Server) Same(other Server) bool {
	s.Reach, other.Reach = nil, nil
	return reflect.DeepEqual(s, other)
}

// Remote reports whether the server is reached over the network.
func (s Server) Remote() bool { t := s.Transport(); return t == "http" || t == "sse" }

// Status is how a server stands. Its values are those of the protocol.
type Status string

// The states of a server.
const (
	NotStarted Status = "not_configured" // nothing was connected yet
	Pending    Status = "pending"        // being connected to
	Connected  Status = "connected"
	Failed     Status = "failed"
	NeedsAuth  Status = "needs-auth"
	Disabled   Status = "disabled"
	Stopped    Status = "stopped"
)

// State describes one server.
type State struct {
	Name      string
	Status    Status
	Error     string // why it failed
	Transport string
	// Protocol is the version that was agreed on, such as "2025-11-25"; "" where
	// the server is not connected.
	Protocol string
	PID      int       // of a stdio server's process; 0 is none
	Retry    bool      // it broke down: the next Start connects to it again
	Since    time.Time // when it came to stand so
	Config   Server
}

// Tool is a tool as its server describes it.
type Tool struct {
	Name        string
	Title       string
	Description string
	ReadOnly    bool
	// Meta is the tool's own "_meta"; nil is none.
	Meta json.RawMessage
	// Raw is the whole description.
	Raw json.RawMessage
}

// Host keeps servers. Its methods may be called from any goroutine.
type Host interface {
	// Set says which servers there are and which of them must not run. Servers whose
	// configuration did not change keep their process; others end, or begin where the
	// host was started.
	Set(servers map[string]Server, disabled []string)
	// Start begins to connect to the servers that are enabled, several at a time, and
	// returns at once. Those that failed since are tried again.
	Start()
	// Settle waits until nothing is being connected to.
	Settle(ctx context.Context) error
	// States describes the servers, by name.
	States() []State
	// Tools are those of the connected servers, in the order of the servers' names.
	Tools() []tool.Tool
	// ListTools lists all tools of a connected server, filtered or not.
	ListTools(name string) ([]Tool, error)
	// Instructions are what connected servers say about themselves, by name.
	Instructions() map[string]string
	// Enable and Disable say whether a server may run, and have it so.
	Enable(name string) error
	Disable(ctx context.Context, name string) error
	// Run connects to a server, anew where it runs; cfg, where given, is its
	// configuration from now on. Stop disconnects it. Both wait.
	Run(ctx context.Context, name string, cfg *Server) error
	Stop(ctx context.Context, name string) error
	// Call sends a request of the protocol to a connected server and returns its
	// result: "tools/call", "resources/list", "resources/templates/list" or
	// "resources/read".
	Call(ctx context.Context, name, method string, params json.RawMessage) (json.RawMessage, error)
	// Login gets a token for a remote server. page is what the user has to open; the
	// rest happens in the background, and how it came out is the server's next state.
	// "" is nothing to open: the server is connected to. A login that is under way is
	// joined.
	Login(ctx context.Context, name string, l Login) (page string, err error)
	// Probe asks a remote server whether it wants a token, or takes the one that is
	// there. It changes nothing.
	Probe(ctx context.Context, name string) Probe
	// Renewed connects anew to a remote server, or to all that need a token where name
	// is "": what they are authorised with was changed elsewhere. fresh gets a new
	// token first, where the server has a refresh token.
	Renewed(ctx context.Context, name string, fresh bool) error
	// Close ends everything that was started.
	Close() error
}

// Context is what a [Host] may use of its session. Functions may be nil where a
// comment says so.
type Context struct {
	SessionID string
	// Agent is the kind of agent whose own the servers are; "" is the session.
	Agent string
	// Dir is the working directory; it may change. Roots are all directories where
	// tools may work, Dir among them.
	Dir   func() string
	Roots func() []string
	// Environ is the environment of servers before their own is added.
	Environ func() []string
	// Getenv resolves references in configurations, where Indirect says that there may
	// be some; nil takes values as they are.
	Getenv   func(string) string
	Indirect func() bool
	// HTTPClient reaches remote servers; nil is the default one.
	HTTPClient *http.Client
	// Redact takes secrets out of texts; nil leaves them.
	Redact func(string) string
	// Changed is called after the tools or the state of servers changed.
	Changed func()
	// StateChanged tells of each state that a server comes to; nil: nobody is told.
	StateChanged func(State)
	// ListChanged tells that a server's "tools", "prompts" or "resources" changed.
	ListChanged func(server, what string)
	// Warn is told what a person should know, such as a tool that cannot be offered.
	Warn func(text string)
	// Progress tells how far a call of the model is, in words; nil: nobody is told. done
	// is called once it was told: what a server says meanwhile is passed over. The call
	// may have ended by then; its arguments are left out.
	Progress func(call tool.Call, message string, done func())
	// BeforeCall may replace the "_meta" of a call; an error keeps it from running.
	BeforeCall func(context.Context, PreCall) (meta map[string]any, err error)
	// Elicit asks the session's user for something; nil: nobody can be asked. Elicits
	// says whether anybody can at the moment; nil is yes.
	Elicits func() bool
	Elicit  func(ctx context.Context, server string, e Elicitation) (ElicitationAnswer, error)
	// Sample answers a sampling/createMessage request; nil: it is refused. Samples says
	// whether anybody can at the moment; nil is yes.
	Samples func() bool
	Sample  func(ctx context.Context, server string, params json.RawMessage) (json.RawMessage, error)
	// Authorize asks for a token that a remote server accepts; nil: nobody has one.
	Authorize func(context.Context, AuthRequest) (Token, error)
	// Vault keeps the tokens of logins; nil: they are kept in memory.
	Vault Vault
	// Secret is told of each token and key before it is used, so that nothing shows it;
	// of is what it belongs to, and its newer ones take the place of older ones.
	Secret func(of string, values ...string)
	// ClientMetadata is the address of a document that describes this client, for
	// authorization servers that take it in place of a registration; nil is none.
	ClientMetadata func() string
	// Apps tells servers that pages of theirs can be shown.
	Apps bool
	// Logger gets what nobody else is told; nil is silence.
	Logger *slog.Logger
}

// PreCall is a call that is about to be made.
type PreCall struct {
	CallID    string // the model's id of the call
	AgentID   string // the sub-agent that calls; "" is the session's own agent
	Server    string
	Tool      string // as the server calls it
	Arguments json.RawMessage
}

// Elicitation is what a server wants to know of the user.
type Elicitation struct {
	Message string
	Schema  json.RawMessage // of a form
	Mode    string          // "form" or "url"
	URL     string
}

// ElicitationAnswer is "accept", "decline" or "cancel", and an accepted form's
// content.
type ElicitationAnswer struct {
	Action  string
	Content json.RawMessage
}

// AuthRequest asks for a token.
type AuthRequest struct {
	Server string
	URL    string
	// Reason is "initial", "refresh", "upscope" or "reauth".
	Reason string
	// Challenge has the parameters of the server's WWW-Authenticate header.
	Challenge map[string]string
	// Metadata is the server's protected-resource metadata as it came; "" is none.
	Metadata string
	// StatusCode, Header and Body are the response that made it necessary.
	StatusCode int
	Header     http.Header
	Body       string
	Config     Server
}

// Token is what requests are authorised with, until the server refuses it.
type Token struct {
	Value string
	Type  string // "" is Bearer
}

// ErrNoToken says that nobody gave a token: the server needs one.
type ErrNoToken struct{ Msg string }

func (e *ErrNoToken) Error() string { return e.Msg }
