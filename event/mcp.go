package event

import (
	"encoding/json"
	"slices"
	"strings"
)

// The types of the payloads about MCP servers.
const (
	TypeMCPServersLoaded        = "session.mcp_servers_loaded"
	TypeMCPServerStatusChanged  = "session.mcp_server_status_changed"
	TypeMCPToolsListChanged     = "mcp.tools.list_changed"
	TypeMCPPromptsListChanged   = "mcp.prompts.list_changed"
	TypeMCPResourcesListChanged = "mcp.resources.list_changed"
	TypeToolProgress            = "tool.execution_progress"
	TypeMCPOAuthRequired        = "mcp.oauth_required"
	TypeMCPOAuthCompleted       = "mcp.oauth_completed"
	TypeMCPAppToolCallComplete  = "mcp_app.tool_call_complete"
	TypeSamplingRequested       = "sampling.requested"
	TypeSamplingCompleted       = "sampling.completed"
)

// MCPServersLoaded says how the session's servers stand when the first message is
// sent to the model.
type MCPServersLoaded struct {
	Servers []MCPServerInfo `json:"servers"`
}

// MCPServerInfo is how a server stands. Source is "user", "workspace", "plugin" or
// "builtin"; "" is the session's host.
type MCPServerInfo struct {
	Name          string `json:"name"`
	Status        string `json:"status"`
	Source        string `json:"source,omitempty"`
	Error         string `json:"error,omitempty"`
	Transport     string `json:"transport,omitempty"` // "stdio", "http" or "sse"
	PluginName    string `json:"pluginName,omitempty"`
	PluginVersion string `json:"pluginVersion,omitempty"`
}

// MCPServerStatusChanged says what became of a server.
type MCPServerStatusChanged struct {
	ServerName string `json:"serverName"`
	Status     string `json:"status"`
	Error      string `json:"error,omitempty"`
}

// MCPToolsListChanged says that a server offers other tools.
type MCPToolsListChanged struct {
	ServerName string `json:"serverName"`
}

// ToolProgress says how far a call of a server's tool is.
type ToolProgress struct {
	ToolCallID      string `json:"toolCallId"`
	ProgressMessage string `json:"progressMessage"`
}

// MCPPromptsListChanged says that a server has other prompts.
type MCPPromptsListChanged struct {
	ServerName string `json:"serverName"`
}

// MCPResourcesListChanged says that a server has other resources.
type MCPResourcesListChanged struct {
	ServerName string `json:"serverName"`
}

// MCPOAuthRequired asks hosts for a token that a server accepts. Reason is
// "initial", "refresh", "upscope" or "reauth".
type MCPOAuthRequired struct {
	RequestID        string           `json:"requestId"`
	ServerName       string           `json:"serverName"`
	ServerURL        string           `json:"serverUrl"`
	Reason           string           `json:"reason"`
	Challenge        *MCPChallenge    `json:"wwwAuthenticateParams,omitempty"`
	ResourceMetadata string           `json:"resourceMetadata,omitempty"` // JSON as it came
	Client           *MCPOAuthClient  `json:"staticClientConfig,omitempty"`
	Response         *MCPAuthResponse `json:"httpResponse,omitempty"`
}

// MCPChallenge has the parameters of a WWW-Authenticate header.
type MCPChallenge struct {
	ResourceMetadataURL string `json:"resourceMetadataUrl,omitempty"`
	Scope               string `json:"scope,omitempty"`
	Error               string `json:"error,omitempty"`
}

// MCPOAuthClient is the client that a server's configuration names.
type MCPOAuthClient struct {
	ClientID     string `json:"clientId"`
	PublicClient *bool  `json:"publicClient,omitempty"`
	GrantType    string `json:"grantType,omitempty"`
}

// MCPAuthResponse is the response by which a server asked for a token.
type MCPAuthResponse struct {
	StatusCode int         `json:"statusCode"`
	Headers    []MCPHeader `json:"headers"`
	Body       string      `json:"body"`
}

// MCPHeader is one header of a response.
type MCPHeader struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// MCPHeaders are the headers of a response, by name.
func MCPHeaders(headers map[string][]string) []MCPHeader {
	out := []MCPHeader{}
	for name, values := range headers {
		for _, v := range values {
			out = append(out, MCPHeader{Name: strings.ToLower(name), Value: v})
		}
	}
	slices.SortStableFunc(out, func(a, b MCPHeader) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// MCPOAuthCompleted says that a token was given ("token") or none ("cancelled").
type MCPOAuthCompleted struct {
	RequestID string `json:"requestId"`
	Outcome   string `json:"outcome"`
}

// MCPAppToolCallComplete says that a page of a server has called one of its tools.
type MCPAppToolCallComplete struct {
	ServerName string          `json:"serverName"`
	ToolName   string          `json:"toolName"`
	Arguments  json.RawMessage `json:"arguments,omitempty"`
	Success    bool            `json:"success"`
	DurationMs int64           `json:"durationMs"`
	Result     json.RawMessage `json:"result,omitempty"`
	Error      *MCPAppError    `json:"error,omitempty"`
}

// MCPAppError is why a call had no result.
type MCPAppError struct {
	Message string `json:"message"`
}

// SamplingRequested says that a server wants the model to answer something.
type SamplingRequested struct {
	RequestID    string `json:"requestId"`
	ServerName   string `json:"serverName"`
	MCPRequestID string `json:"mcpRequestId"`
	// Request is what the server asks, as MCP has it.
	Request json.RawMessage `json:"request,omitempty"`
}

// SamplingCompleted says that such a request is settled.
type SamplingCompleted struct {
	RequestID string `json:"requestId"`
}

// EventType returns "session.mcp_servers_loaded".
func (MCPServersLoaded) EventType() string { return TypeMCPServersLoaded }

// EventType returns "session.mcp_server_status_changed".
func (MCPServerStatusChanged) EventType() string { return TypeMCPServerStatusChanged }

// EventType returns "mcp.tools.list_changed".
func (MCPToolsListChanged) EventType() string { return TypeMCPToolsListChanged }

// EventType returns "tool.execution_progress".
func (ToolProgress) EventType() string { return TypeToolProgress }

// EventType returns "mcp.prompts.list_changed".
func (MCPPromptsListChanged) EventType() string { return TypeMCPPromptsListChanged }

// EventType returns "mcp.resources.list_changed".
func (MCPResourcesListChanged) EventType() string { return TypeMCPResourcesListChanged }

// EventType returns "mcp.oauth_required".
func (MCPOAuthRequired) EventType() string { return TypeMCPOAuthRequired }

// EventType returns "mcp.oauth_completed".
func (MCPOAuthCompleted) EventType() string { return TypeMCPOAuthCompleted }

// EventType returns "mcp_app.tool_call_complete".
func (MCPAppToolCallComplete) EventType() string { return TypeMCPAppToolCallComplete }

// EventType returns "sampling.requested".
func (SamplingRequested) EventType() string { return TypeSamplingRequested }

// EventType returns "sampling.completed".
func (SamplingCompleted) EventType() string { return TypeSamplingCompleted }

func (MCPServersLoaded) ephemeralEvent()        {}
func (MCPServerStatusChanged) ephemeralEvent()  {}
func (MCPToolsListChanged) ephemeralEvent()     {}
func (ToolProgress) ephemeralEvent()            {}
func (MCPPromptsListChanged) ephemeralEvent()   {}
func (MCPResourcesListChanged) ephemeralEvent() {}
func (MCPOAuthRequired) ephemeralEvent()        {}
func (MCPOAuthCompleted) ephemeralEvent()       {}
func (MCPAppToolCallComplete) ephemeralEvent()  {}
func (SamplingRequested) ephemeralEvent()       {}
func (SamplingCompleted) ephemeralEvent()       {}
