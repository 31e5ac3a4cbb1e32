package transom

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"

	"github.com/transom-run/transom/eventlog"
	"github.com/transom-run/transom/mcp"
	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/tool"
	"github.com/transom-run/transom/trace"
)

// Config says what a [Runtime] works with. The zero Config is usable.
type Config struct {
	// Home is the directory of all state. "" is $COPILOT_HOME, else ~/.transom.
	Home string
	// Store keeps the sessions' logs. nil: files under Home.
	Store eventlog.Store
	// Provider answers for sessions that name no provider of their own. nil: what
	// the environment and the GitHub tokens give, see [Config.Getenv].
	Provider model.Provider
	// ContextWindow is the size of Provider's window in tokens; 0 is the
	// documented default.
	ContextWindow int
	// Model is the model of sessions that name none; "" is the provider's first.
	Model string
	// Getenv looks variables up; nil is os.Getenv.
	Getenv func(string) string
	// GitHubToken is the account of sessions that bring none; GitHubTokenSource
	// names where it came from, for errors.
	GitHubToken       string
	GitHubTokenSource string
	// NoAutoLogin leaves the GitHub tokens of the environment alone.
	NoAutoLogin bool
	// Retry decides about further attempts at a model call; the zero policy is
	// the documented one.
	Retry model.RetryPolicy
	// BuiltIns makes Transom's own tools for a session; nil: there are none.
	BuiltIns func(BuiltInContext) (BuiltIns, error)
	// MCP makes what connects a session to MCP servers, such as host.New of package
	// mcp/host; nil: sessions that have servers are refused.
	MCP func(mcp.Context) (mcp.Host, error)
	// ApproveAll lets every session's tools run without asking.
	ApproveAll bool
	// Observer is told what sessions did, for traces and metrics: see package
	// telemetry. nil: nobody is, and nothing is kept for it.
	Observer trace.Observer
	// Logger gets what no client is told; nil is silence.
	Logger *slog.Logger
	// Dir is the working directory of sessions that name none; "" is the
	// process's.
	Dir string
	// PluginDirectories are those of plugins that every session has.
	PluginDirectories []string
}

// SessionConfig says what a session begins with. The zero SessionConfig is
// usable: a new id, the runtime's model, no tools, nothing approved.
type SessionConfig struct {
	// ID names the session; "" makes a random one.
	ID string
	// Trace is the place in a trace that the session's work belongs to, where a
	// message names none of its own. It is not stored.
	Trace trace.Context
	// Model and ReasoningEffort are passed to the provider.
	Model           string
	ReasoningEffort string
	// ContextTier is "default" or "long_context", the larger window that some models of
	// an account have; "" is none.
	ContextTier string
	// Streaming asks the provider for pieces, and publishes them as they come.
	Streaming bool
	// Tools are what this host declares.
	Tools []tool.Tool
	// MCP says which MCP servers the session has; nil: none.
	MCP *MCPConfig
	// MCPLogin says how the session logs in to MCP servers.
	MCPLogin MCPLogin
	// AvailableTools limits what the model is offered, by name or pattern; nil is
	// no limit. ExcludedTools are never offered.
	AvailableTools []string
	ExcludedTools  []string
	// SystemMessage adds to the default system message or replaces it.
	SystemMessage SystemMessage
	// InstructionDirectories hold more custom instructions, as files
	// .github/instructions/NAME.instructions.md.
	InstructionDirectories []string
	// OrganizationInstructions are custom instructions as text.
	OrganizationInstructions string
	// SkipCustomInstructions leaves instruction files out of the system message:
	// those of the working directory, of its repository, and of
	// InstructionDirectories.
	SkipCustomInstructions bool
	// HiddenTools are not offered to the root agent, by name or pattern.
	HiddenTools []string
	// Agents are the host's own agents: the model can start them as sub-agents, and
	// the session's own agent can be one of them.
	Agents []Agent
	// Agent names what the session's own agent is at first; "" is the default one.
	Agent string
	// ExcludedAgents names those of Transom's own agents that are not there.
	ExcludedAgents []string
	// QuietAgents: this host does not want the pieces of sub-agents' answers, but all
	// their other events.
	QuietAgents bool
	// MaxAICredits is what the session may cost, in AI credits; 0 is anything. It is
	// told to the model, and once it is used up no model call is made unless the host
	// raises it: see [Session.Take]. Only accounts say what requests cost.
	MaxAICredits float64
	// ClientName is added to the User-Agent of model requests.
	ClientName string
	// ReasoningSummary asks for summaries of the model's reasoning ("auto",
	// "concise", "detailed") and Citations for citations of attached documents,
	// where the provider has them.
	ReasoningSummary string
	Citations        bool
	// Vision says whether the model takes pictures; nil: as its provider says.
	Vision *bool
	// Abilities is what else the host knows better of the model than its provider.
	Abilities *Abilities
	// ToolSearch holds tools back until the model looks for them; nil holds none
	// back. Not stored.
	ToolSearch *ToolSearch
	// NoSockets keeps requests to an account's models on HTTP, where those have
	// WebSockets.
	NoSockets bool
	// Compaction says when the window is summarised by itself; nil is the default.
	Compaction *Compaction
	// TrackFiles keeps the files that Transom's own tools create and edit write to as
	// they were before, so that a [Rewind] can bring them back.
	TrackFiles bool
	// Provider is the session's own access to a model.
	Provider *ProviderConfig
	// Providers and Models are further ones, named provider/id, beside whatever
	// else answers: a request goes to the provider of the model that it names.
	Providers []NamedProvider
	Models    []ModelConfig
	// Custom answers the session's model calls; it goes before Provider.
	Custom model.Provider
	// GitHubToken is the account whose models the session uses.
	GitHubToken string
	// Dir is the session's working directory; it must exist. "" is the runtime's.
	Dir string
	// OnPermission answers permission questions in this process. nil: see
	// RequestPermission; where neither is given, what needs approval is denied.
	OnPermission PermissionHandler
	// RequestPermission says that the host answers questions by
	// [AnswerPermission].
	RequestPermission bool
	// OnHook answers this host's hooks; nil: it has none.
	OnHook HookHandler
	// Elicits says that the host can ask its user for something: see
	// [Session.Elicit].
	Elicits bool
	// Commands are the slash commands that this host runs.
	Commands []Slash
	// OnRequest answers the requests of the protocol that Answers names, such as
	// "userInput.request".
	OnRequest RequestHandler
	Answers   []string
	// Skills says which skills the model can load.
	Skills SkillConfig
	// ConfigDiscovery looks for skills in the working directory, in those around it
	// up to the top of its repository, in the homes of the runtime and its user, and
	// in the plugins that are installed.
	ConfigDiscovery bool
	// PluginDirectories are those of the session's plugins, relative ones below the
	// working directory. One that is none is told of in a warning.
	PluginDirectories []string
	// Canvases are what this host shows, under the name of CanvasProvider.
	Canvases       []Canvas
	CanvasProvider CanvasProvider
	// Factories are what this host does when it is asked to.
	Factories []Factory
	// Unserved names settings that the host gave and Transom does not serve: one
	// warning tells of them.
	Unserved []string
}

// HookHandler answers hooks: kind is one of the protocol's hook types, such as
// "preToolUse", input and output are its objects. A nil output is no verdict. An
// error, or no answer in time, is a denial: the call does not run, the message is
// not sent.
type HookHandler func(ctx context.Context, kind string, input json.RawMessage) (output json.RawMessage, err error)

// ResumeConfig says what a session goes on with. A nil field leaves a session
// that is loaded as it is; one that is stored takes what its log holds, else the
// default.
type ResumeConfig struct {
	// Trace is as in [SessionConfig]; the zero Context leaves what was there.
	Trace trace.Context
	// Model and ReasoningEffort are what the log says where nil.
	Model           *string
	ReasoningEffort *string
	// ContextTier is what the log says where nil; "" is none.
	ContextTier *string
	// Streaming is not stored: nil is false for a session that was.
	Streaming *bool
	// Tools are what this host declares; nil declares none. They are not stored: a
	// call that is open is answered by [AnswerTool], whether declared again or not.
	Tools []tool.Tool
	// MCP is as in [SessionConfig], and not stored. Servers that are there already, and
	// whose configuration is the same, keep their process.
	MCP *MCPConfig
	// MCPLogin is as in [SessionConfig], and not stored.
	MCPLogin *MCPLogin
	// AvailableTools and ExcludedTools are as in [SessionConfig]; not stored.
	AvailableTools *[]string
	ExcludedTools  *[]string
	// SystemMessage is as in [SessionConfig]; not stored: nil is the default for a
	// session that was.
	SystemMessage *SystemMessage
	// InstructionDirectories and the like are as in [SessionConfig].
	InstructionDirectories   []string
	OrganizationInstructions *string
	SkipCustomInstructions   *bool
	// HiddenTools and the like are as in [SessionConfig]; not stored.
	HiddenTools *[]string
	// Agents and ExcludedAgents are as in [SessionConfig]; not stored. Agent is; where
	// it is nil and there is no agent of the name any more, the default one is back.
	Agents         []Agent
	Agent          *string
	ExcludedAgents *[]string
	QuietAgents    bool
	// TrackFiles is as in [SessionConfig]. A session that keeps track goes on doing
	// so; one that has had a turn without does not begin.
	TrackFiles       bool
	MaxAICredits     *float64
	ClientName       *string
	ReasoningSummary *string
	Citations        *bool
	Vision           *bool
	Abilities        *Abilities
	ToolSearch       *ToolSearch
	NoSockets        *bool
	Compaction       *Compaction
	// Provider, Custom and GitHubToken are as in [SessionConfig]. They are never
	// stored: with none, the runtime's own model answers.
	Provider    *ProviderConfig
	Custom      model.Provider
	GitHubToken *string
	// Providers and Models are as in [SessionConfig], and are never stored; where
	// one of them is given, both take the place of what was there.
	Providers []NamedProvider
	Models    []ModelConfig
	// Dir is the working directory from now on; it must exist.
	Dir *string
	// OnPermission, RequestPermission, OnHook, OnRequest and Answers are as in
	// [SessionConfig], and this host's own.
	OnPermission      PermissionHandler
	RequestPermission bool
	OnHook            HookHandler
	OnRequest         RequestHandler
	Elicits           bool
	Commands          []Slash
	Answers           []string
	// ContinuePendingWork takes up what was under way when the session was last
	// left: open tool calls and questions, a seeded turn, the queue. Without it
	// open calls are closed as interrupted and messages wait.
	ContinuePendingWork bool
	// Quiet writes no session.resume event.
	Quiet bool
	// Skills, ConfigDiscovery and PluginDirectories are as in [SessionConfig]; not
	// stored.
	Skills            SkillConfig
	ConfigDiscovery   *bool
	PluginDirectories []string
	// Canvases and CanvasProvider are as in [SessionConfig], and this host's own;
	// OpenCanvases are those that it knows to be open.
	Canvases       []Canvas
	CanvasProvider CanvasProvider
	OpenCanvases   []OpenCanvas
	// Factories are what this host does when it is asked to.
	Factories []Factory
	// Unserved is as in [SessionConfig].
	Unserved []string
}

// ProviderConfig is a session's own access to a model, as hosts give it.
type ProviderConfig struct {
	Type      string // openai, azure or anthropic; "openai" where empty
	WireAPI   string // completions or responses; "completions" where empty
	Transport string // http or websockets (responses only); "http" where empty
	BaseURL   string // such as http://localhost:11434/v1
	// AzureAPIVersion chooses Azure's versioned route; "" is the v1 route.
	AzureAPIVersion string
	APIKey          string // may be empty for local servers
	BearerToken     string // goes before APIKey
	// Token is asked for a bearer token before every request and goes before both;
	// what it returns is not kept. AsksToken has the host asked instead, by the
	// request providerToken.getToken: see [SessionConfig.Answers].
	Token         func(ctx context.Context) (string, error)
	AsksToken     bool
	Headers       map[string]string // added to every request
	ModelID       string            // the model where the session names none
	WireModel     string            // the name sent instead of the model's
	ContextWindow int               // tokens; 0 is the documented default
	MaxOutput     int               // tokens; 0 is the provider's
}

// NamedProvider is one of several providers of a session. Models have names of
// their own: ModelID and WireModel say nothing here.
type NamedProvider struct {
	// Name is unique, and has no slash in it.
	Name string
	ProviderConfig
}

// ModelConfig is a model of a [NamedProvider]. Sessions name it provider/id.
type ModelConfig struct {
	ID        string
	Provider  string // the name of a provider
	WireModel string // the name sent instead of ID
	ModelID   string // a well-known name of the same model, for what it can do
	Name      string // for people; "" is provider/id
	// The window is PromptTokens, else ContextTokens, else the provider's; 0 where
	// unknown.
	PromptTokens, ContextTokens, MaxOutput int
	Vision                                 bool
	Images                                 model.ImageLimits
}

// Abilities is what a host knows better of a model than its provider; zero fields
// leave it to that. It holds until the session changes to another model, and is not
// stored.
type Abilities struct {
	// Reasons says whether the model takes a reasoning effort. One that does not is
	// sent none.
	Reasons *bool
	// The window is PromptTokens, else ContextTokens; answers are bounded by
	// OutputTokens.
	PromptTokens, ContextTokens, OutputTokens int
	Images                                    model.ImageLimits
}

// window is the size of the window, in tokens; 0 where nothing is said of it.
func (a *Abilities) window() int {
	if a == nil {
		return 0
	}
	return cmp.Or(max(a.PromptTokens, 0), max(a.ContextTokens, 0))
}

// Decision answers a permission question.
type Decision struct {
	// Kind is one of the protocol's decisions. "approve-once" lets this call run;
	// "approve-for-session" and "approve-for-location" let those that are like it
	// run, too, without a further question, as long as the session is kept.
	// "reject" says that the user refused, "user-not-available" that nobody could
	// be asked; both are told to the model. "no-result" leaves the question open,
	// for another client to answer. Any other kind denies.
	Kind string `json:"kind"`
	// Feedback is told to the model with a "reject".
	Feedback string `json:"feedback,omitempty"`
}

// PermissionRequest is a call that needs approval.
type PermissionRequest struct {
	SessionID  string
	RequestID  string
	ToolCallID string
	ToolName   string
	Arguments  json.RawMessage
	// Raw is the question as clients on connections see it.
	Raw json.RawMessage
}

// PermissionHandler decides about a call. Its context ends when the turn is
// aborted. A handler that panics has approved nothing.
type PermissionHandler func(ctx context.Context, r PermissionRequest) Decision

// ApproveAll approves every call. Use it where the session's tools are safe, or
// where somebody else stands between them and the world.
func ApproveAll(context.Context, PermissionRequest) Decision { return Decision{Kind: "approve-once"} }
