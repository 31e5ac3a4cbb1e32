package agents

import (
	"embed"
	"slices"
	"strings"

	"github.com/transom-run/transom/internal/lazy"
)

// Definition is an agent.
type Definition struct {
	// Name identifies it; it is what a model and hosts call it.
	Name        string
	DisplayName string
	Description string
	// Prompt is what the agent is told of itself.
	Prompt string
	// Tools are names or patterns of the tools that it may use; nil is all.
	Tools []string
	// NoInfer: only a person or a host starts it, not a model.
	NoInfer         bool
	Skills          []string
	Model           string
	ReasoningEffort string
	// MCPServers are its own servers, by name, as YAML or JSON has them.
	MCPServers map[string]any
	// Path is the file that it was read from; "" is none.
	Path string
	// Source is "user", "project" or "plugin" for one from a file, and Root the
	// directory of the plugin.
	Source string
	Root   string
}

//go:embed prompts/*.md
var prompts embed.FS

// reading are the tools of agents that change nothing themselves.
var reading = []string{"view", "grep", "glob", "bash", "read_bash", "stop_bash", "list_bash", "web_fetch", "mcp:*", "custom:*"}

// BuiltIn lists Transom's own agents, always in the same order, in a new slice.
func BuiltIn() []Definition { return slices.Clone(builtIn.Get()) }

var builtIn = lazy.Value[[]Definition]{Make: func() []Definition {
	list := []Definition{
		{Name: "explore", DisplayName: "Explore", Description: "Searches a code base and answers questions about it. Changes nothing.", Tools: []string{"view", "grep", "glob", "web_fetch", "mcp:*", "custom:*"}},
		{Name: "task", DisplayName: "Task", Description: "Runs a build, tests or another command and reports what matters of it."},
		{Name: "general-purpose", DisplayName: "General purpose", Description: "Does a piece of work of several steps on its own, with all tools."},
		{Name: "code-review", DisplayName: "Code review", Description: "Reviews changes for faults. Changes nothing.", Tools: reading},
		{Name: "research", DisplayName: "Research", Description: "Finds an answer from code, documentation and the web, with the evidence for it.", Tools: reading},
		{Name: "security-review", DisplayName: "Security review", Description: "Reviews code for weaknesses that can be exploited. Changes nothing.", Tools: reading},
	}
	for i := range list {
		b, err := prompts.ReadFile("prompts/" + list[i].Name + ".md")
		if err != nil {
			panic("agents: " + list[i].Name + " has no prompt: " + err.Error()) // impossible: a test reads them all
		}
		list[i].Prompt = strings.TrimSpace(string(b))
	}
	return list
}}
