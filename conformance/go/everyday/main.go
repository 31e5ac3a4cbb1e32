// Command everyday is a day of an ordinary host: one session that uses much of
// what the SDK offers, each part in its usual way. It prints what it saw;
// cases/70-everyday.yaml says what that must be, and what the model must have
// been shown.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"sync"

	copilot "github.com/github/copilot-sdk/go"
	"github.com/github/copilot-sdk/go/rpc"
)

// day is the host.
type day struct {
	work    string
	client  *copilot.Client
	session *copilot.Session

	mu       sync.Mutex
	streamed strings.Builder
	errors   int
}

func main() {
	d := &day{work: filepath.Join(os.Getenv("COPILOT_HOME"), "work")}
	must(os.MkdirAll(d.work, 0o755))
	notes := filepath.Join(d.work, "notes.txt")
	must(os.WriteFile(notes, []byte("The door is green.\n"), 0o644))
	ctx := context.Background()
	d.start(ctx)
	d.session = is(d.client.CreateSession(ctx, d.config()))
	id := d.session.SessionID

	// Tools of the host and built-in ones, hooks, permission with feedback, a
	// question to the user, an attachment; the answer is streamed.
	answer := d.ask(ctx, "Paint it.", &copilot.AttachmentFile{Path: notes, DisplayName: "notes.txt"})
	d.mu.Lock()
	say("streamed", d.streamed.String() == answer)
	d.mu.Unlock()
	_, err := os.Stat(filepath.Join(d.work, "door.txt"))
	say("written", err == nil)
	d.ask(ctx, "Helo.")

	// A slash command of the host.
	is(d.session.RPC.Commands.Execute(ctx, &rpc.ExecuteCommandParams{CommandName: "today", Args: "Monday"}))

	// A name, the mode, and what the session says of itself.
	is(d.session.RPC.Name.Set(ctx, &rpc.NameSetRequest{Name: "Paint"}))
	is(d.session.RPC.Mode.Set(ctx, &rpc.ModeSetRequest{Mode: "plan"}))
	is(d.session.RPC.Mode.Set(ctx, &rpc.ModeSetRequest{Mode: "interactive"}))
	say("name", *is(d.session.RPC.Name.Get(ctx)).Name, *is(d.session.RPC.Mode.Get(ctx)))

	// A compaction, by hand: the model sums up, and goes on from the summary.
	say("compacted", is(d.session.RPC.History.Compact(ctx)).Success)
	d.ask(ctx, "Which colour?")

	// A fork goes its own way.
	name := "Other"
	forked := is(d.client.RPC.Sessions.Fork(ctx, &rpc.SessionsForkRequest{SessionID: id, Name: &name}))
	original := d.session
	d.resume(ctx, forked.SessionID)
	d.ask(ctx, "Red instead.")
	must(d.session.Disconnect())
	d.session = original

	// A clear, from a terminal tool; then the runtime is left and comes back.
	d.ask(ctx, "Start over.")
	must(d.session.Disconnect())
	must(d.client.Stop())
	d.start(ctx)
	d.resume(ctx, id)
	d.ask(ctx, "Still there?")
	d.report(ctx)
	must(d.client.Stop())
}

func (d *day) start(ctx context.Context) {
	d.client = copilot.NewClient(&copilot.ClientOptions{Connection: copilot.StdioConnection{}, WorkingDirectory: d.work})
	must(d.client.Start(ctx))
}

func (d *day) resume(ctx context.Context, id string) {
	c := d.config()
	d.session = is(d.client.ResumeSession(ctx, id, &copilot.ResumeSessionConfig{
		WorkingDirectory: c.WorkingDirectory, Streaming: c.Streaming, SystemMessage: c.SystemMessage, AvailableTools: c.AvailableTools,
		Tools: c.Tools, Commands: c.Commands, OnPermissionRequest: c.OnPermissionRequest, OnUserInputRequest: c.OnUserInputRequest,
		Hooks: c.Hooks, OnEvent: c.OnEvent,
	}))
}

// ask sends a prompt, waits for the answer and prints both.
func (d *day) ask(ctx context.Context, prompt string, attachments ...copilot.Attachment) string {
	d.mu.Lock()
	d.streamed.Reset()
	d.mu.Unlock()
	e := is(d.session.SendAndWait(ctx, copilot.MessageOptions{Prompt: prompt, Attachments: attachments}))
	answer := e.Data.(*copilot.AssistantMessageData).Content
	say(prompt, answer)
	return answer
}

func (d *day) config() *copilot.SessionConfig {
	type word struct {
		Word string `json:"word"`
	}
	type seed struct {
		Prompt string `json:"prompt"`
	}
	lookup := copilot.DefineTool("lookup", "Look up a word", func(w word, _ copilot.ToolInvocation) (string, error) {
		return fmt.Sprintf("%s means %d", w.Word, len(w.Word)), nil
	})
	lookup.SkipPermission = true
	clear := copilot.DefineTool("clear_context", "Start over", func(s seed, _ copilot.ToolInvocation) (string, error) {
		r, err := d.session.RPC.History.ClearContext(context.Background(), &rpc.HistoryClearContextRequest{Prompt: s.Prompt})
		if err != nil {
			return "", err
		}
		say("cleared", r.MessagesCleared)
		return "Cleared.", nil
	})
	clear.SkipPermission, clear.IsTerminal = true, true
	return &copilot.SessionConfig{
		WorkingDirectory: d.work,
		Streaming:        copilot.Bool(true),
		SystemMessage:    &copilot.SystemMessageConfig{Mode: "append", Content: "Answer in one sentence."},
		AvailableTools:   copilot.NewToolSet().AddCustom("*").AddBuiltIn("view", "create", "ask_user").ToSlice(),
		Tools:            []copilot.Tool{lookup, clear},
		Commands: []copilot.CommandDefinition{{Name: "today", Description: "Say the day", Handler: func(c copilot.CommandContext) error {
			say("command", c.Args)
			return nil
		}}},
		OnPermissionRequest: func(r copilot.PermissionRequest, _ copilot.PermissionInvocation) (rpc.PermissionDecision, error) {
			say("permission", r.Kind())
			if _, ok := r.(*copilot.PermissionRequestWrite); ok {
				feedback := "Ask me first."
				return &rpc.PermissionDecisionReject{Feedback: &feedback}, nil
			}
			return &rpc.PermissionDecisionApproveOnce{}, nil
		},
		OnUserInputRequest: func(r copilot.UserInputRequest, _ copilot.UserInputInvocation) (copilot.UserInputResponse, error) {
			say("asked", r.Question, strings.Join(r.Choices, "|"))
			return copilot.UserInputResponse{Answer: "blue"}, nil
		},
		Hooks:   hooks(),
		OnEvent: d.saw,
	}
}

func hooks() *copilot.SessionHooks {
	return &copilot.SessionHooks{
		OnSessionStart: func(in copilot.SessionStartHookInput, _ copilot.HookInvocation) (*copilot.SessionStartHookOutput, error) {
			say("started", in.Source)
			if in.Source == "new" {
				return &copilot.SessionStartHookOutput{AdditionalContext: "The user is called Ada."}, nil
			}
			return nil, nil
		},
		OnUserPromptSubmitted: func(in copilot.UserPromptSubmittedHookInput, _ copilot.HookInvocation) (*copilot.UserPromptSubmittedHookOutput, error) {
			if in.Prompt == "Helo." {
				return &copilot.UserPromptSubmittedHookOutput{ModifiedPrompt: "Hello."}, nil
			}
			return nil, nil
		},
		OnPreToolUse: func(in copilot.PreToolUseHookInput, _ copilot.HookInvocation) (*copilot.PreToolUseHookOutput, error) {
			say("before", in.ToolName)
			return nil, nil
		},
		OnPostToolUse: func(in copilot.PostToolUseHookInput, _ copilot.HookInvocation) (*copilot.PostToolUseHookOutput, error) {
			if in.ToolName == "lookup" {
				return &copilot.PostToolUseHookOutput{ModifiedResult: copilot.ToolResult{TextResultForLLM: "a leaf", ResultType: "success"}}, nil
			}
			return nil, nil
		},
	}
}

func (d *day) saw(e copilot.SessionEvent) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch data := e.Data.(type) {
	case *copilot.AssistantMessageDeltaData:
		d.streamed.WriteString(data.DeltaContent)
	case *copilot.SessionErrorData:
		d.errors++
	}
}

// report prints what the session's history holds.
func (d *day) report(ctx context.Context) {
	var prompts []string
	ids := map[string]bool{}
	events := is(d.session.GetEvents(ctx))
	for _, e := range events {
		ids[e.ID] = true
		if m, ok := e.Data.(*copilot.UserMessageData); ok && m.Source == nil {
			prompts = append(prompts, m.Content)
		}
	}
	say("prompts", strings.Join(prompts, " "))
	say("once", len(ids) == len(events))
	d.mu.Lock()
	say("errors", d.errors)
	d.mu.Unlock()
}

var printing sync.Mutex

func say(what string, rest ...any) {
	printing.Lock()
	defer printing.Unlock()
	fmt.Print(what, ":")
	for _, v := range rest {
		fmt.Print(" ", v)
	}
	fmt.Println()
}

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
