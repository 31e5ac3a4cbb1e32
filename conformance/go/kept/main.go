// Command kept is a host that keeps the files of its session itself, here in
// memory, and has the runtime write its traces to a file. It clears the session's
// context, and goes on with it in another process; cases/85-kept.yaml says what it
// prints, and what the model must have been shown.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	copilot "github.com/github/copilot-sdk/go"
	"github.com/github/copilot-sdk/go/rpc"
)

func main() {
	home := os.Getenv("COPILOT_HOME")
	traces := filepath.Join(home, "traces.jsonl")
	kept := &files{held: map[string]string{}}
	ctx := context.Background()
	start := func() *copilot.Client {
		client := copilot.NewClient(&copilot.ClientOptions{
			Connection: copilot.StdioConnection{}, WorkingDirectory: home,
			SessionFS: &copilot.SessionFSConfig{InitialWorkingDirectory: home, SessionStatePath: "/state", Conventions: rpc.SessionFSSetProviderConventionsPosix},
			Telemetry: &copilot.TelemetryConfig{FilePath: traces},
		})
		must(client.Start(ctx))
		return client
	}
	var session *copilot.Session
	clear := copilot.DefineTool("clear_context", "Start over", func(s struct {
		Prompt string `json:"prompt"`
	}, _ copilot.ToolInvocation) (string, error) {
		r, err := session.RPC.History.ClearContext(ctx, &rpc.HistoryClearContextRequest{Prompt: s.Prompt})
		if err != nil {
			return "", err
		}
		say("cleared", r.MessagesCleared)
		return "Cleared.", nil
	})
	clear.SkipPermission, clear.IsTerminal = true, true
	provider := func(*copilot.Session) copilot.SessionFSProvider { return kept }
	tools := copilot.NewToolSet().AddCustom("*").ToSlice()

	client := start()
	session = is(client.CreateSession(ctx, &copilot.SessionConfig{Tools: []copilot.Tool{clear}, AvailableTools: tools, CreateSessionFSProvider: provider}))
	say("answer", ask(ctx, session, "Start."))
	id := session.SessionID
	must(session.Disconnect())
	must(client.Stop())
	events, err := kept.ReadFile("/state/events.jsonl")
	say("kept", err == nil && strings.Contains(events, `"session.context_cleared"`))

	client = start()
	session = is(client.ResumeSession(ctx, id, &copilot.ResumeSessionConfig{Tools: []copilot.Tool{clear}, AvailableTools: tools, CreateSessionFSProvider: provider}))
	say("answer", ask(ctx, session, "Still there?"))
	var said []string
	for _, e := range is(session.GetEvents(ctx)) {
		if m, ok := e.Data.(*copilot.UserMessageData); ok {
			said = append(said, m.Content)
		}
	}
	say("history", strings.Join(said, " "))
	must(session.Disconnect())
	must(client.Stop())
	onDisk, _ := filepath.Glob(filepath.Join(home, "session-state", "*"))
	say("on disk", len(onDisk))
	report(traces)
}

func ask(ctx context.Context, s *copilot.Session, prompt string) string {
	e := is(s.SendAndWait(ctx, copilot.MessageOptions{Prompt: prompt}))
	return e.Data.(*copilot.AssistantMessageData).Content
}

// report prints what the file of traces holds.
func report(file string) {
	f := is(os.Open(file))
	defer f.Close()
	spans, ids, metrics := map[string]int{}, map[string]bool{}, false
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var l struct {
			Type, Name, TraceID string
		}
		must(json.Unmarshal(lines.Bytes(), &l))
		metrics = metrics || l.Type == "metric"
		if l.Type == "span" {
			kind, _, _ := strings.Cut(l.Name, " ")
			spans[kind]++
			ids[l.TraceID] = true
		}
	}
	must(lines.Err())
	say("spans", fmt.Sprintf("%d invoke_agent, %d chat, %d execute_tool", spans["invoke_agent"], spans["chat"], spans["execute_tool"]))
	say("traces", len(ids))
	say("metrics", metrics)
}

// files are a session's, by path. Directories are what the paths have in them.
type files struct {
	mu   sync.Mutex
	held map[string]string
}

func (f *files) ReadFile(path string) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	text, ok := f.held[path]
	if !ok {
		return "", os.ErrNotExist
	}
	return text, nil
}

func (f *files) WriteFile(path, content string, _ *int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held[path] = content
	return nil
}

func (f *files) AppendFile(path, content string, _ *int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held[path] += content
	return nil
}

func (f *files) Exists(path string) (bool, error) {
	_, err := f.Stat(path)
	return err == nil, nil
}

func (f *files) Stat(path string) (*copilot.SessionFSFileInfo, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if text, ok := f.held[path]; ok {
		return &copilot.SessionFSFileInfo{IsFile: true, Size: int64(len(text)), Mtime: time.Now(), Birthtime: time.Now()}, nil
	}
	for p := range f.held {
		if strings.HasPrefix(p, path+"/") {
			return &copilot.SessionFSFileInfo{IsDirectory: true, Mtime: time.Now(), Birthtime: time.Now()}, nil
		}
	}
	return nil, os.ErrNotExist
}

func (f *files) MakeDirectory(string, bool, *int) error { return nil }

func (f *files) ReadDirectory(path string) ([]string, error) {
	entries, err := f.ReadDirectoryWithTypes(path)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name)
	}
	return names, err
}

func (f *files) ReadDirectoryWithTypes(path string) ([]rpc.SessionFSReaddirWithTypesEntry, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	found := map[string]rpc.SessionFSReaddirWithTypesEntryType{}
	for p := range f.held {
		rest, ok := strings.CutPrefix(p, path+"/")
		if !ok {
			continue
		}
		name, _, below := strings.Cut(rest, "/")
		found[name] = rpc.SessionFSReaddirWithTypesEntryTypeFile
		if below {
			found[name] = rpc.SessionFSReaddirWithTypesEntryTypeDirectory
		}
	}
	if len(found) == 0 {
		return nil, os.ErrNotExist
	}
	var out []rpc.SessionFSReaddirWithTypesEntry
	for name, kind := range found {
		out = append(out, rpc.SessionFSReaddirWithTypesEntry{Name: name, Type: kind})
	}
	return out, nil
}

func (f *files) Remove(path string, _, _ bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for p := range f.held {
		if p == path || strings.HasPrefix(p, path+"/") {
			delete(f.held, p)
		}
	}
	return nil
}

func (f *files) Rename(src, dest string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	text, ok := f.held[src]
	if !ok {
		return os.ErrNotExist
	}
	delete(f.held, src)
	f.held[dest] = text
	return nil
}

var printing sync.Mutex

func say(what string, value any) {
	printing.Lock()
	defer printing.Unlock()
	fmt.Printf("%s: %v\n", what, value)
}

// is returns what a call gave, or ends the program with its error.
func is[T any](v T, err error) T {
	must(err)
	return v
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
