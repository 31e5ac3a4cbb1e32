package transom_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/eventlog/memlog"
	"github.com/transom-run/transom/mcp"
	"github.com/transom-run/transom/mcp/host"
	"github.com/transom-run/transom/mcp/mcptest"
	"github.com/transom-run/transom/model/modelfile"
	"github.com/transom-run/transom/model/scripted"
	"github.com/transom-run/transom/tool"
)

// play opens a runtime whose model says what it is told to, so that the examples
// run anywhere and always end the same. Sessions are kept in memory.
//
// With a real model, leave Provider out: the environment says which one it is
// (COPILOT_PROVIDER_BASE_URL and COPILOT_MODEL). Leave Store out, and sessions are
// kept in files.
func play(replies ...modelfile.Message) *transom.Runtime {
	rt, err := transom.Open(transom.Config{
		Provider: scripted.New(scripted.Config{Replies: replies}),
		Model:    "scripted",
		Store:    memlog.New(),
	})
	if err != nil {
		log.Fatal(err)
	}
	return rt
}

// A tool clears the context that it was called from. The model goes on with the
// prompt that the tool gave, and with nothing else.
func ExampleHistory_ClearContext() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	rt := play(
		scripted.Say("Noted."),
		scripted.Call("clear_context", `{"prompt":"Write the summary."}`),
		scripted.Say("Here is the summary."),
	)
	defer rt.Close(ctx)

	var s *transom.Session
	clear, err := tool.Func("clear_context", "Clear the conversation and start a fresh context window",
		func(ctx context.Context, in struct {
			Prompt string `json:"prompt"`
		}) (string, error) {
			n, err := s.History().ClearContext(ctx, in.Prompt)
			return fmt.Sprintf("Cleared %d messages.", n), err
		})
	if err != nil {
		log.Fatal(err)
	}
	clear.IsTerminal = true // its success ends the turn
	clear.Defer = "never"   // the model is always told of it
	s, err = rt.CreateSession(ctx, transom.SessionConfig{
		Tools:        []tool.Tool{clear},
		OnPermission: transom.ApproveAll,
	})
	if err != nil {
		log.Fatal(err)
	}

	for _, prompt := range []string{"Remember these figures: 17, 25.", "That was all. Sum it up afresh."} {
		answer, err := s.SendAndWait(ctx, transom.Message{Prompt: prompt})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(answer.Content)
	}
	fmt.Println("in the window now:", s.Info().Messages, "messages")
	// Output:
	// Noted.
	// Here is the summary.
	// in the window now: 2 messages
}

// Events come in order, persisted ones and those that are only seen live. What a
// model writes comes in pieces where the session asks for streaming.
func ExampleSession_Events() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	say := scripted.Say("Well, hello.")
	say.Chunks = []string{"Well, ", "hello."}
	rt := play(say)
	defer rt.Close(ctx)
	s, err := rt.CreateSession(ctx, transom.SessionConfig{Streaming: true})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := s.Send(ctx, transom.Message{Prompt: "Hello"}); err != nil {
		log.Fatal(err)
	}
	for e, err := range s.Events().All(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		switch p := e.Payload.(type) {
		case event.MessageDelta:
			fmt.Printf("piece %q\n", p.DeltaContent)
		case event.AssistantMessage:
			fmt.Printf("whole %q\n", p.Content)
		case event.SessionIdle:
			return
		}
	}
	// Output:
	// piece "Well, "
	// piece "hello."
	// whole "Well, hello."
}

// A permission handler decides about each call. Without one, nothing that needs
// approval runs.
func ExamplePermissionHandler() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	rt := play(
		scripted.Call("remove", `{"file":"notes.txt"}`),
		scripted.Say("Then I leave it where it is."),
	)
	defer rt.Close(ctx)
	remove, err := tool.Func("remove", "Remove a file", func(context.Context, struct {
		File string `json:"file"`
	}) (string, error) {
		fmt.Println("never reached")
		return "removed", nil
	})
	if err != nil {
		log.Fatal(err)
	}
	s, err := rt.CreateSession(ctx, transom.SessionConfig{
		Tools: []tool.Tool{remove},
		OnPermission: func(_ context.Context, r transom.PermissionRequest) transom.Decision {
			fmt.Println("asked about", r.ToolName, string(r.Arguments))
			return transom.Decision{Kind: "reject", Feedback: "The notes are still needed."}
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	answer, err := s.SendAndWait(ctx, transom.Message{Prompt: "Tidy up."})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer.Content)
	// Output:
	// asked about remove {"file":"notes.txt"}
	// Then I leave it where it is.
}

// A session outlives its attachments: it is taken up again from its log, by this
// process or another.
func ExampleRuntime_ResumeSession() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	rt := play(scripted.Say("I will remember."), scripted.Say("It was 42."))
	defer rt.Close(ctx)
	s, err := rt.CreateSession(ctx, transom.SessionConfig{ID: "numbers"})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := s.SendAndWait(ctx, transom.Message{Prompt: "The number is 42."}); err != nil {
		log.Fatal(err)
	}
	if err := s.Close(ctx); err != nil {
		log.Fatal(err)
	}

	s, err = rt.ResumeSession(ctx, "numbers", transom.ResumeConfig{})
	if err != nil {
		log.Fatal(err)
	}
	answer, err := s.SendAndWait(ctx, transom.Message{Prompt: "What was it?"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer.Content)

	_, err = rt.ResumeSession(ctx, "letters", transom.ResumeConfig{})
	fmt.Println(errors.Is(err, &transom.Error{Kind: transom.KindNotFound}), err)
	// Output:
	// It was 42.
	// true Session not found: letters
}

// A Go function becomes a tool: the schema of its arguments comes from their
// type, and arguments that do not fit never reach it. The model reads what was
// wrong and tries again.
func ExampleSessionConfig_tools() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	rt := play(
		scripted.Call("forecast", `{"city":"Oslo","days":"two"}`),
		scripted.Call("forecast", `{"city":"Oslo","days":2}`),
		scripted.Say("It rains until Sunday."),
	)
	defer rt.Close(ctx)

	type args struct {
		City string `json:"city" jsonschema:"the city, in English"`
		Days int    `json:"days,omitempty" jsonschema:"1 to 7"`
	}
	type day struct {
		Day, Weather string
	}
	forecast, err := tool.Func("forecast", "The weather of the next days", func(_ context.Context, in args) ([]day, error) {
		fmt.Println("called for", in.City, in.Days)
		return []day{{"Saturday", "rain"}, {"Sunday", "rain"}}, nil
	})
	if err != nil {
		log.Fatal(err)
	}
	forecast.SkipPermission = true // it changes nothing: nobody needs to be asked
	s, err := rt.CreateSession(ctx, transom.SessionConfig{Tools: []tool.Tool{forecast}})
	if err != nil {
		log.Fatal(err)
	}
	answer, err := s.SendAndWait(ctx, transom.Message{Prompt: "How is the weather in Oslo?"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer.Content)
	// Output:
	// called for Oslo 2
	// It rains until Sunday.
}

// A session with an MCP server: a program whose tools the model calls.
func ExampleMCPConfig() {
	ctx := context.Background()
	rt, err := transom.Open(transom.Config{Store: memlog.New(), MCP: host.New})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close(ctx)
	s, err := rt.CreateSession(ctx, transom.SessionConfig{
		OnPermission: transom.ApproveAll,
		MCP: &transom.MCPConfig{Servers: map[string]mcp.Server{
			"env": mcptest.Server("plain"), // {Command: "my-server", Args: []string{"--stdio"}}
		}},
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := s.MCP().Settle(ctx); err != nil {
		log.Fatal(err)
	}
	for _, server := range s.MCP().List() {
		fmt.Println(server.Name, server.Status, server.Protocol)
	}
	tools, err := s.MCP().Tools("env")
	if err != nil {
		log.Fatal(err)
	}
	for _, t := range tools {
		if t.ReadOnly {
			fmt.Println(t.Name, "reads only:", t.Title)
		}
	}
	// Output:
	// env connected 2026-07-28
	// get_env reads only: Environment
}
