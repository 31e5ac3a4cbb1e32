// Command elsewhere is a host whose tools come from elsewhere: two MCP servers,
// an agent and a skill. It clears its context in the middle of their work;
// cases/80-elsewhere.yaml says what it prints, and what the model must have been
// shown. Called with the name of a server it is that server.
package main

import (
	"context"
	"fmt"
	"log"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	copilot "github.com/github/copilot-sdk/go"
	"github.com/github/copilot-sdk/go/rpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	ctx := context.Background()
	if len(os.Args) > 1 {
		must(serve(ctx, os.Args[1]))
		return
	}
	work := filepath.Join(os.Getenv("COPILOT_HOME"), "work")
	skills := filepath.Join(work, "skills")
	must(os.MkdirAll(filepath.Join(skills, "measure"), 0o755))
	skill := "---\nname: measure\ndescription: How to measure\n---\nMeasure twice, cut once.\n"
	must(os.WriteFile(filepath.Join(skills, "measure", "SKILL.md"), []byte(skill), 0o644))

	client := copilot.NewClient(&copilot.ClientOptions{Connection: copilot.StdioConnection{}, WorkingDirectory: work})
	var session *copilot.Session
	var mu sync.Mutex
	var asked []string
	note := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, what)
	}
	config := config(work, skills, note, func(prompt string) (string, error) {
		r, err := session.RPC.History.ClearContext(ctx, &rpc.HistoryClearContextRequest{Prompt: prompt})
		if err != nil {
			return "", err
		}
		say("cleared", r.MessagesCleared)
		return "Cleared.", nil
	})
	session = is(client.CreateSession(ctx, config))
	answer := is(session.SendAndWait(ctx, copilot.MessageOptions{Prompt: "Work."}))
	say("answer", answer.Data.(*copilot.AssistantMessageData).Content)
	say("servers", states(ctx, session))
	say("permissions", strings.Join(slices.Sorted(slices.Values(asked)), ", "))
	events := is(session.GetEvents(ctx))
	say("counted", counted(events, false))
	say("agent counted", counted(events, true))
	must(client.Stop())
}

// serve is an MCP server that counts how often it was called: the same process
// goes on counting.
func serve(ctx context.Context, name string) error {
	calls := 0
	server := mcp.NewServer(&mcp.Implementation{Name: name, Version: "1.0.0"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "count", Description: "Counts calls"},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			calls++
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf("%s %d", name, calls)}}}, nil, nil
		})
	return server.Run(ctx, &mcp.StdioTransport{})
}

func config(work, skills string, note func(asked string), clear func(prompt string) (string, error)) *copilot.SessionConfig {
	type seed struct {
		Prompt string `json:"prompt"`
	}
	clearing := copilot.DefineTool("clear_context", "Start over", func(s seed, _ copilot.ToolInvocation) (string, error) {
		return clear(s.Prompt)
	})
	clearing.IsTerminal, clearing.SkipPermission = true, true
	server := func(name string) copilot.MCPServerConfig {
		return copilot.MCPStdioServerConfig{Command: os.Args[0], Args: []string{name}, Tools: []string{"*"}}
	}
	return &copilot.SessionConfig{
		WorkingDirectory: work,
		AvailableTools:   copilot.NewToolSet().AddCustom("*").AddMCP("*").AddBuiltIn("skill", "task").ToSlice(),
		MCPServers:       map[string]copilot.MCPServerConfig{"saw": server("saw"), "drill": server("drill")},
		SkillDirectories: []string{skills},
		CustomAgents: []copilot.CustomAgentConfig{
			{Name: "joiner", Description: "Joins wood", Prompt: "You join wood.", Tools: []string{"saw-count"}},
		},
		Tools: []copilot.Tool{clearing},
		OnPermissionRequest: func(r copilot.PermissionRequest, _ copilot.PermissionInvocation) (rpc.PermissionDecision, error) {
			server := ""
			if m, ok := r.(*copilot.PermissionRequestMCP); ok {
				server = m.ServerName
			}
			note(fmt.Sprint(r.Kind(), " ", server))
			return &rpc.PermissionDecisionApproveOnce{}, nil
		},
		OnEvent: func(e copilot.SessionEvent) {
			switch d := e.Data.(type) {
			case *copilot.SubagentStartedData:
				say("agent", d.AgentName)
			case *copilot.SkillInvokedData:
				say("skill", d.Name)
			}
		},
	}
}

// states says how the session's MCP servers are.
func states(ctx context.Context, session *copilot.Session) string {
	var out []string
	for _, s := range is(session.RPC.MCP.List(ctx)).Servers {
		out = append(out, fmt.Sprintf("%s %s", s.Name, s.Status))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

var count = regexp.MustCompile(`^(saw|drill) \d+$`)

// counted are the results of the servers, as the history has them: those of calls
// of an agent, or of the session itself.
func counted(events []copilot.SessionEvent, agent bool) string {
	out := map[string]string{} // by call: those of one batch run at once
	for _, e := range events {
		d, ok := e.Data.(*copilot.ToolExecutionCompleteData)
		if ok && d.Result != nil && (e.AgentID != nil) == agent && count.MatchString(d.Result.Content) {
			out[d.ToolCallID] = d.Result.Content
		}
	}
	var texts []string
	for _, id := range slices.Sorted(maps.Keys(out)) {
		texts = append(texts, out[id])
	}
	return strings.Join(texts, ", ")
}

func say(what string, rest ...any) { fmt.Println(append([]any{what + ":"}, rest...)...) }

// is returns what a call gave, or ends the program with its error.
func is[T any](v T, err error) T {
	must(err)
	return v
}

func must(err error) {
	if err != nil {
		log.Output(3, err.Error())
		os.Exit(1)
	}
}
