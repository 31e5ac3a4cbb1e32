// Package mcptest is an MCP server for tests: a process of its own, which is the test
// binary itself.
//
//	func TestMain(m *testing.M) {
//		mcptest.Main() // serves, where this process is to be a server
//		os.Exit(m.Run())
//	}
//
//	cfg := transom.MCPConfig{Servers: map[string]mcp.Server{"s": mcptest.Server("plain")}}
//
// # Ownership
//
// Nothing is shared between the test and its servers but their streams.
package mcptest

//lint:file-ignore SA1019 The newest protocol gives sampling and roots up; servers of today speak them.

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/transom-run/transom/mcp"
)

// Variable makes a process a server that serves on its stdin and stdout instead of
// testing. Its value says what kind of server it is.
const Variable = "TRANSOM_TEST_MCP_SERVER"

// Main serves, and ends the process, where this process is to be a server.
func Main() {
	if kind := os.Getenv(Variable); kind != "" {
		serveStdio(kind)
		os.Exit(0)
	}
}

// Server is the configuration of a server of some kind:
//
//	plain    by the official SDK, in the newer generation of the protocol
//	legacy   the same in the older generation
//	silent   an older program that passes over what it does not know
//	broken   plain, with tools whose definitions are at fault
//	slow     plain, with a tool that says how far it is
//	forks    plain, and starts a child that would outlive it
//	chatty   plain, and prints what is no message
//	early    legacy, and says that its tools changed before it answers anything
//	refuses  ends at once, and says why on stderr
//	garbage  is no server at all
//	wrong    answers with an error that is a text, from the beginning
//	wrongs   the same, to calls of its tool
func Server(kind string) mcp.Server {
	self, err := os.Executable()
	if err != nil {
		panic(err) // a test cannot go on
	}
	return mcp.Server{Command: self, Env: map[string]string{Variable: kind}}
}

// serveStdio is a server in a process of its own.
func serveStdio(kind string) {
	switch kind {
	case "silent": // an older program that passes over what it does not know
		_ = reply(os.Stdin, os.Stdout, func(method string) any {
			switch method {
			case "initialize":
				return map[string]any{"protocolVersion": "2024-11-05", "capabilities": map[string]any{"tools": map[string]any{}}, "serverInfo": map[string]any{"name": "old", "version": "1"}}
			case "tools/list":
				return map[string]any{"tools": []any{map[string]any{"name": "old", "inputSchema": map[string]any{"type": "object"}}}}
			}
			return nil
		})
		return
	case "wrong", "wrongs": // it goes on, whatever becomes of its answer
		_ = reply(os.Stdin, os.Stdout, func(method string) any {
			switch {
			case kind == "wrong" || method == "tools/call":
				return refusal{"boom"}
			case method == "initialize":
				return map[string]any{"protocolVersion": "2025-11-25", "capabilities": map[string]any{"tools": map[string]any{}}, "serverInfo": map[string]any{"name": "wrong", "version": "1"}}
			case method == "tools/list":
				return map[string]any{"tools": []any{map[string]any{"name": "old", "inputSchema": map[string]any{"type": "object"}}}}
			case method == "server/discover":
				return refusal{map[string]any{"code": -32601, "message": "not known"}}
			}
			return nil
		})
		return
	case "garbage":
		fmt.Fprintln(os.Stdout, "this is no MCP server")
		return
	case "refuses":
		fmt.Fprintln(os.Stderr, "the licence has run out")
		os.Exit(3)
	case "forks":
		child := exec.Command("sleep", "300")
		if err := child.Start(); err != nil {
			os.Exit(4)
		}
		fmt.Fprintln(os.Stderr, "child", child.Process.Pid)
	case "chatty":
		fmt.Fprintln(os.Stdout, "Starting the server ...")
	case "early":
		fmt.Fprintln(os.Stdout, `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		kind = "legacy"
	}
	_ = New(kind).Run(context.Background(), &sdk.StdioTransport{})
}

// refusal is an answer that is an error.
type refusal struct{ err any }

// reply answers requests line by line, with what f returns; nil is no answer.
func reply(in *os.File, out *os.File, f func(method string) any) error {
	d := json.NewDecoder(in)
	for {
		var req struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		if err := d.Decode(&req); err != nil {
			return err
		}
		if res := f(req.Method); res != nil {
			answer := map[string]any{"jsonrpc": "2.0", "id": req.ID}
			if no, ok := res.(refusal); ok {
				answer["error"] = no.err
			} else {
				answer["result"] = res
			}
			raw, err := json.Marshal(answer)
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "%s\n", raw)
		}
	}
}

type nothing struct{}

// New is a server by the official SDK, for a transport of the caller's.
func New(kind string) *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ServerOptions{Instructions: "Be kind to it."})
	addPlain(s)
	addResults(s)
	addAsking(s, kind)
	switch kind {
	case "broken":
		addBroken(s)
	case "slow":
		addSlow(s)
	}
	if kind == "legacy" { // what older servers say to the question of the newer generation
		s.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
			return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
				if method == "server/discover" {
					return nil, &jsonrpc.Error{Code: -32601, Message: "Method not found"}
				}
				return next(ctx, method, r)
			}
		})
	}
	s.AddResource(&sdk.Resource{Name: "readme", URI: "test://readme"}, func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: "test://readme", Text: "Read me."}}}, nil
	})
	return s
}

func text(t string) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: t}}}
}

// addPlain adds tools that tell where the server runs, and how it can go wrong.
func addPlain(s *sdk.Server) {
	type name struct {
		Name string `json:"name"`
	}
	sdk.AddTool(s, &sdk.Tool{Name: "get_env", Description: "A variable", Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true, Title: "Environment"}}, func(_ context.Context, _ *sdk.CallToolRequest, in name) (*sdk.CallToolResult, any, error) {
		return text(os.Getenv(in.Name)), nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "where"}, func(context.Context, *sdk.CallToolRequest, nothing) (*sdk.CallToolResult, any, error) {
		dir, err := os.Getwd()
		return text(dir), nil, err
	})
	sdk.AddTool(s, &sdk.Tool{Name: "pid"}, func(context.Context, *sdk.CallToolRequest, nothing) (*sdk.CallToolResult, any, error) {
		return text(fmt.Sprint(os.Getpid())), nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "fails"}, func(context.Context, *sdk.CallToolRequest, nothing) (*sdk.CallToolResult, any, error) {
		return nil, nil, fmt.Errorf("the disk is full")
	})
	sdk.AddTool(s, &sdk.Tool{Name: "dies"}, func(context.Context, *sdk.CallToolRequest, nothing) (*sdk.CallToolResult, any, error) {
		fmt.Fprintln(os.Stderr, "a fatal fault")
		os.Exit(7)
		return nil, nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "hangs"}, func(ctx context.Context, _ *sdk.CallToolRequest, _ nothing) (*sdk.CallToolResult, any, error) {
		<-ctx.Done()
		return nil, nil, ctx.Err()
	})
	sdk.AddTool(s, &sdk.Tool{Name: "grow"}, func(context.Context, *sdk.CallToolRequest, nothing) (*sdk.CallToolResult, any, error) {
		sdk.AddTool(s, &sdk.Tool{Name: "grown"}, func(context.Context, *sdk.CallToolRequest, nothing) (*sdk.CallToolResult, any, error) {
			return text("grown"), nil, nil
		})
		return text("growing"), nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "large"}, func(context.Context, *sdk.CallToolRequest, nothing) (*sdk.CallToolResult, any, error) {
		return text(strings.Repeat("x", 33<<20)), nil, nil
	})
}

// addResults adds tools whose results are not only text.
func addResults(s *sdk.Server) {
	sdk.AddTool(s, &sdk.Tool{Name: "mixed"}, func(context.Context, *sdk.CallToolRequest, nothing) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{
			&sdk.TextContent{Text: "one"}, &sdk.ImageContent{Data: []byte("PNG"), MIMEType: "image/png"}, &sdk.TextContent{Text: "two"},
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///a", Text: "three"}},
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///b", MIMEType: "application/pdf", Blob: []byte("PDF")}},
			&sdk.ResourceLink{Name: "four", URI: "file:///c"}, &sdk.AudioContent{Data: []byte("WAV"), MIMEType: "audio/wav"},
		}}, nil, nil
	})
	type sum struct {
		Sum int `json:"sum"`
	}
	s.AddTool(&sdk.Tool{Name: "structured", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{}, StructuredContent: sum{5}}, nil
	})
}

// addAsking adds tools that ask the client for something: in its call, as older
// servers do, or by its result.
func addAsking(s *sdk.Server, kind string) {
	sdk.AddTool(s, &sdk.Tool{Name: "meta"}, func(_ context.Context, r *sdk.CallToolRequest, _ nothing) (*sdk.CallToolResult, any, error) {
		raw, err := json.Marshal(r.Params.Meta)
		return text(string(raw)), nil, err
	})
	sdk.AddTool(s, &sdk.Tool{Name: "ask"}, func(ctx context.Context, r *sdk.CallToolRequest, _ nothing) (*sdk.CallToolResult, any, error) {
		question := &sdk.ElicitParams{Message: "Which?", RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{"which": map[string]any{"type": "string"}}}}
		if kind != "legacy" { // asked by the call's result, and answered by calling again
			if answer, ok := r.Params.InputResponses["q"].(*sdk.ElicitResult); ok {
				return text(fmt.Sprint(answer.Action, " ", answer.Content["which"])), nil, nil
			}
			return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{"q": question}}, nil, nil
		}
		res, err := r.Session.Elicit(ctx, question)
		if err != nil {
			return nil, nil, err
		}
		return text(fmt.Sprint(res.Action, " ", res.Content["which"])), nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "roots"}, func(ctx context.Context, r *sdk.CallToolRequest, _ nothing) (*sdk.CallToolResult, any, error) {
		res, asked := r.Params.InputResponses["roots"].(*sdk.ListRootsResult)
		if !asked && kind != "legacy" {
			return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{"roots": &sdk.ListRootsParams{}}}, nil, nil
		}
		if !asked {
			var err error
			if res, err = r.Session.ListRoots(ctx, nil); err != nil {
				return nil, nil, err
			}
		}
		var uris []string
		for _, root := range res.Roots {
			uris = append(uris, root.URI)
		}
		slices.Sort(uris) // the SDK keeps no order
		return text(strings.Join(uris, " ")), nil, nil
	})
}

// addBroken adds tools of which two cannot be offered.
func addBroken(s *sdk.Server) {
	for name, schema := range map[string]string{
		"odd": `{"type":"object","properties":{"a":{"type":"strange"}}}`, "dotted.name": `{"type":"object"}`, "true": `{"type":"object"}`,
		"worse": `{"type":"object","properties":{"a":{"$ref":"#/nowhere"}}}`,
	} {
		s.AddTool(&sdk.Tool{Name: name, InputSchema: json.RawMessage(schema)}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return text(name), nil
		})
	}
}

// addSlow adds a tool that says many times how far it is.
func addSlow(s *sdk.Server) {
	type steps struct {
		Steps   int    `json:"steps"`
		Message string `json:"message,omitempty"`
	}
	sdk.AddTool(s, &sdk.Tool{Name: "work"}, func(ctx context.Context, r *sdk.CallToolRequest, in steps) (*sdk.CallToolResult, any, error) {
		for i := range in.Steps {
			p := &sdk.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: float64(i + 1), Total: float64(in.Steps), Message: in.Message}
			if err := r.Session.NotifyProgress(ctx, p); err != nil {
				return nil, nil, err
			}
		}
		// A progress that is nobody's is passed over.
		return text("worked"), nil, r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: "of nobody", Progress: 1})
	})
}
