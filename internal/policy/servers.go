package policy

import (
	"encoding/json"
	"strings"

	"github.com/transom-run/transom/tool"
)

// agentMCP is the kind of keys of servers that are an agent's own. A session may have
// another server of the same name: what is approved of the one is not of the other.
const agentMCP = "agent-mcp"

// serverKey is the key of a server's tools, up to the tool.
func serverKey(agent, server string) string {
	if agent == "" {
		return "mcp:" + server + "/"
	}
	return agentMCP + ":" + tool.PlainName(agent) + "/" + server + "/"
}

// bareKey is the key of a call by the tool's own name, where no name that models call
// tools of the server by could be meant: those begin with the server's. "" is none.
func bareKey(raw json.RawMessage) string {
	var r request
	if json.Unmarshal(raw, &r) != nil || r.Kind != "mcp" {
		return ""
	}
	prefix := tool.PlainName(r.Server) + "-"
	bare, ok := strings.CutPrefix(r.ToolName, prefix)
	if !ok || bare == "" || bare == "*" || strings.HasPrefix(bare, prefix) {
		return ""
	}
	return serverKey(r.Agent, r.Server) + bare
}

// deniesTool reports whether a rule forbids a server's tool, by whichever of its names,
// and whoever's own a server of this name is.
func deniesTool(denied []string, raw json.RawMessage) bool {
	var r request
	if json.Unmarshal(raw, &r) != nil || r.Kind != "mcp" {
		return false
	}
	for _, key := range denied {
		if key == "mcp:*" || key == "tool:"+r.ToolName {
			return true
		}
		name, ok := strings.CutPrefix(key, "mcp:"+r.Server+"/")
		if ok && (name == "*" || tool.PlainName(name) == r.ToolName || tool.PlainName(r.Server+"-"+name) == r.ToolName) {
			return true
		}
	}
	return false
}
