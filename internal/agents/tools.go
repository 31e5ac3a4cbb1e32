package agents

import (
	"embed"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/transom-run/transom/tool"
)

//go:embed tools/*.md
var texts embed.FS

// Tools defines the tools by which a model starts agents of the given kinds and
// talks to them; none where there are no kinds.
func Tools(kinds []Definition) ([]tool.Tool, error) {
	if len(kinds) == 0 {
		return nil, nil
	}
	names := make([]string, len(kinds))
	var list strings.Builder
	for i, k := range kinds {
		names[i] = k.Name
		fmt.Fprintf(&list, "\n- %s: %s", k.Name, strings.Join(strings.Fields(k.Description), " "))
	}
	enum, err := json.Marshal(names)
	if err != nil {
		return nil, err
	}
	out := []tool.Tool{
		{Name: "task", Parameters: json.RawMessage(fmt.Sprintf(taskSchema, enum))},
		{Name: "read_agent", Parameters: json.RawMessage(readSchema)},
		{Name: "list_agents", Parameters: json.RawMessage(listSchema)},
		{Name: "write_agent", Parameters: json.RawMessage(writeSchema)},
	}
	for i := range out {
		b, err := texts.ReadFile("tools/" + out[i].Name + ".md")
		if err != nil {
			return nil, err
		}
		out[i].Description = strings.TrimSpace(string(b))
		out[i].Source, out[i].Tolerant, out[i].SkipPermission = tool.BuiltIn, true, true
	}
	out[0].Description += "\n\nThe agent types:" + list.String()
	return out, nil
}

const taskSchema = `{
 "type": "object",
 "properties": {
  "name": {"type": "string", "description": "A short name for this agent, such as find-callers. It becomes the agent's id."},
  "prompt": {"type": "string", "description": "What the agent is to do. It sees nothing of this conversation: say everything that it needs."},
  "agent_type": {"type": "string", "enum": %s, "description": "Which kind of agent."},
  "description": {"type": "string", "description": "What it does, in a few words, for people."},
  "mode": {"type": "string", "enum": ["sync", "background"], "description": "sync, the default, waits for the agent's answer. background returns at once, and you are told when it has ended."},
  "model": {"type": "string", "description": "Another model than the agent's usual one."},
  "reasoning_effort": {"type": "string", "description": "Another reasoning effort than the usual one."}
 },
 "required": ["name", "prompt", "agent_type", "description"]
}`

const readSchema = `{
 "type": "object",
 "properties": {
  "agent_id": {"type": "string", "description": "The agent's id."},
  "wait": {"type": "boolean", "description": "Wait until the agent has ended, at most for the timeout."},
  "timeout": {"type": "number", "description": "How many seconds to wait; 30 where it is left out, at most 600."}
 },
 "required": ["agent_id"]
}`

const listSchema = `{
 "type": "object",
 "properties": {
  "include_completed": {"type": "boolean", "description": "Whether agents that have ended are listed, too; true where it is left out."}
 }
}`

const writeSchema = `{
 "type": "object",
 "properties": {
  "agent_id": {"type": "string", "description": "The agent's id."},
  "agent_ids": {"type": "array", "items": {"type": "string"}, "description": "Several agents that get the same message."},
  "message": {"type": "string", "description": "What the agent is told."}
 },
 "required": ["message"]
}`

// Fleet is what a model reads of a request that it is to work on with several
// agents.
func Fleet(prompt string) (string, error) {
	b, err := texts.ReadFile("tools/fleet.md")
	return strings.TrimSpace(string(b)) + "\n\nUser request: " + prompt, err
}
