package server

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/event"
)

// The methods that say how a session stands.
func metadataMethods() map[string]handler {
	return map[string]handler{
		"session.metadata.getClientMetadata":          settled(getClientMetadata),
		"session.metadata.updateClientMetadata":       filed(updateClientMetadata),
		"session.metadata.snapshot":                   settled(snapshot),
		"session.metadata.setWorkingDirectory":        posted(setDirectory),
		"session.metadata.recordContextChange":        posted(recordContext),
		"session.metadata.isProcessing":               settled(isProcessing),
		"session.metadata.activity":                   settled(activity),
		"session.metadata.contextInfo":                settled(contextInfo),
		"session.metadata.recomputeContextTokens":     settled(recomputeTokens),
		"session.metadata.getContextAttribution":      settled(attribution),
		"session.metadata.getContextHeaviestMessages": settled(heaviest),
		"session.usage.getMetrics":                    settled(usageMetrics),
		"session.model.list":                          read(sessionModels),
		"session.model.setReasoningEffort":            posted(setEffort),
		"session.tools.getCurrentMetadata":            settled(currentTools),
		"session.tools.initializeAndValidate":         settled(validateTools),
	}
}

type snapshotResult struct {
	SessionID        string     `json:"sessionId"`
	StartTime        string     `json:"startTime"`
	ModifiedTime     string     `json:"modifiedTime"`
	IsRemote         bool       `json:"isRemote"`
	AlreadyInUse     bool       `json:"alreadyInUse"`
	CurrentMode      string     `json:"currentMode"`
	SelectedModel    string     `json:"selectedModel,omitempty"`
	Summary          string     `json:"summary,omitempty"`
	WorkingDirectory string     `json:"workingDirectory"`
	Workspace        *workspace `json:"workspace,omitempty"`
	WorkspacePath    *string    `json:"workspacePath"`
	SessionLimits    any        `json:"sessionLimits"`
}

func snapshot(s *transom.Session, _ *target) (any, error) {
	i := s.Info()
	out := snapshotResult{
		SessionID: i.ID, StartTime: wireTime(i.Started), ModifiedTime: wireTime(i.Modified), IsRemote: i.Remote, AlreadyInUse: s.InUseElsewhere(),
		CurrentMode: i.Mode, SelectedModel: i.Model, Summary: i.Title, WorkingDirectory: i.Dir, Workspace: workspaceOf(s),
	}
	if dir := s.Workspace(); dir != "" {
		out.WorkspacePath = &dir
	}
	if _, limit := s.Credits(); limit > 0 {
		out.SessionLimits = event.SessionLimits{MaxAICredits: limit}
	}
	return out, nil
}

type directoryParams struct {
	target
	WorkingDirectory string `json:"workingDirectory"`
}

// setDirectory moves a session. The directory is looked at before anything
// changes.
func setDirectory(q *call, p *directoryParams) {
	dir := filepath.Clean(p.WorkingDirectory)
	if !filepath.IsAbs(dir) {
		q.Reply(nil, invalid(q.op(), fmt.Sprintf("%s needs an absolute path, not %q", q.op(), p.WorkingDirectory)))
		return
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		q.Reply(nil, invalid(q.op(), fmt.Sprintf("%s: there is no directory %s", q.op(), dir)))
		return
	}
	q.sess.Post(transom.Configure{Dir: &dir}, q.answer(func(any) any { return map[string]any{"workingDirectory": dir} }))
}

type contextParams struct {
	target
	Context *struct {
		Cwd            string `json:"cwd"`
		GitRoot        string `json:"gitRoot"`
		Branch         string `json:"branch"`
		Repository     string `json:"repository"`
		RepositoryHost string `json:"repositoryHost"`
		HostType       string `json:"hostType"`
		HeadCommit     string `json:"headCommit"`
		BaseCommit     string `json:"baseCommit"`
	} `json:"context"`
}

func recordContext(q *call, p *contextParams) {
	c := p.Context
	if c == nil || c.Cwd == "" {
		q.Reply(nil, invalid(q.op(), q.op()+" needs a context with a cwd"))
		return
	}
	note := transom.NoteRepository{Dir: c.Cwd, Repository: transom.Repository{
		Root: c.GitRoot, Branch: c.Branch, Name: c.Repository, Host: c.RepositoryHost, HostType: c.HostType,
		HeadCommit: c.HeadCommit, BaseCommit: c.BaseCommit,
	}}
	q.sess.Post(note, q.answer(func(any) any { return struct{}{} }))
}

func isProcessing(s *transom.Session, _ *target) (any, error) {
	return map[string]any{"processing": s.Info().Processing}, nil
}

func activity(s *transom.Session, _ *target) (any, error) {
	busy := s.Info().Processing
	return map[string]any{"hasActiveWork": busy, "abortable": busy}, nil
}

type contextInfoParams struct {
	target
	PromptTokenLimit int    `json:"promptTokenLimit"`
	OutputTokenLimit int    `json:"outputTokenLimit"`
	SelectedModel    string `json:"selectedModel"`
}

type contextInfoResult struct {
	ModelName             string `json:"modelName"`
	PromptTokenLimit      int    `json:"promptTokenLimit"`
	Limit                 int    `json:"limit"`
	TotalTokens           int    `json:"totalTokens"`
	SystemTokens          int    `json:"systemTokens"`
	ConversationTokens    int    `json:"conversationTokens"`
	ToolDefinitionsTokens int    `json:"toolDefinitionsTokens"`
	MCPToolsTokens        int    `json:"mcpToolsTokens"`
	BufferTokens          int    `json:"bufferTokens"`
	CompactionThreshold   int    `json:"compactionThreshold"`
}

// limits of a window, in tokens.
type limits struct{ prompt, all, buffer, compaction int }

// limitsOf is what the session's own thresholds come to with a limit.
func limitsOf(w transom.Window, prompt, output int) limits {
	share := func(part int) int {
		if w.Limit <= 0 {
			return prompt
		}
		return int(float64(prompt) * float64(part) / float64(w.Limit))
	}
	return limits{prompt: prompt, all: prompt + output, buffer: output + prompt - share(w.Blocking), compaction: share(w.Background)}
}

// contextInfo measures the window with the estimate that all models share.
func contextInfo(s *transom.Session, p *contextInfoParams) (any, error) {
	w := s.Window()
	prompt := p.PromptTokenLimit
	if prompt <= 0 {
		prompt = w.Limit
	}
	l := limitsOf(w, prompt, max(0, p.OutputTokenLimit))
	out := contextInfoResult{
		ModelName: cmp.Or(p.SelectedModel, s.Info().Model, "default"), PromptTokenLimit: prompt, Limit: l.all, TotalTokens: w.Tokens(),
		SystemTokens: w.SystemTokens, ConversationTokens: w.MessageTokens(), ToolDefinitionsTokens: w.ToolTokens,
		BufferTokens: l.buffer, CompactionThreshold: l.compaction,
	}
	for _, t := range w.Tools {
		if t.Source == "mcp" {
			out.MCPToolsTokens += t.Tokens
		}
	}
	return map[string]any{"contextInfo": out}, nil
}

func recomputeTokens(s *transom.Session, _ *target) (any, error) {
	w := s.Window()
	n := w.MessageTokens()
	return map[string]any{"systemTokenCount": w.SystemTokens, "messagesTokenCount": n, "totalTokens": w.SystemTokens + n}, nil
}

type attributionEntry struct {
	ID         string            `json:"id"`
	Kind       string            `json:"kind"`
	Label      string            `json:"label"`
	ParentID   string            `json:"parentId,omitempty"`
	Tokens     int               `json:"tokens"`
	Attributes map[string]string `json:"attributes,omitempty"`
}

type attributionResult struct {
	ModelID             string             `json:"modelId"`
	ModelSource         string             `json:"modelSource"`
	PromptTokenLimit    int                `json:"promptTokenLimit"`
	Limit               int                `json:"limit"`
	BufferTokens        int                `json:"bufferTokens"`
	CompactionThreshold int                `json:"compactionThreshold"`
	TotalTokens         int                `json:"totalTokens"`
	Categories          map[string]int     `json:"categories"`
	Compactions         map[string]int     `json:"compactions"`
	Entries             []attributionEntry `json:"entries"`
}

// attribution says what takes up the window: the system message, each tool's
// definition, and each tool's results.
func attribution(s *transom.Session, _ *target) (any, error) {
	w, model := s.Window(), s.Info().Model
	l := limitsOf(w, w.Limit, 0)
	out := attributionResult{
		ModelID: cmp.Or(model, "default"), ModelSource: "selected", PromptTokenLimit: w.Limit, Limit: l.all,
		BufferTokens: l.buffer, CompactionThreshold: l.compaction, TotalTokens: w.Tokens(), Compactions: map[string]int{"count": w.Compactions},
		Entries: []attributionEntry{{ID: "system", Kind: "system", Label: "System message", Tokens: w.SystemTokens}},
	}
	if model == "" {
		out.ModelSource = "default"
	}
	mcp := 0
	for _, t := range w.Tools {
		out.Entries = append(out.Entries, attributionEntry{ID: "toolDefinition:" + t.Name, Kind: "toolDefinition", Label: t.Name, ParentID: "system", Tokens: t.Tokens})
		if t.Source == "mcp" {
			mcp += t.Tokens
		}
	}
	sizes, counts, order := map[string]int{}, map[string]int{}, []string{}
	for _, m := range w.Messages {
		if m.Tool == "" {
			continue
		}
		if counts[m.Tool] == 0 {
			order = append(order, m.Tool)
		}
		sizes[m.Tool] += m.Tokens
		counts[m.Tool]++
	}
	for _, name := range order {
		out.Entries = append(out.Entries, attributionEntry{
			ID: "tool:" + name, Kind: "tool", Label: name, Tokens: sizes[name], Attributes: map[string]string{"messageCount": fmt.Sprint(counts[name])},
		})
	}
	out.Categories = map[string]int{
		"systemPrompt": w.SystemTokens, "customInstructions": 0, "mcpTools": mcp, "systemTools": w.ToolTokens - mcp,
		"messages": w.MessageTokens(), "buffer": l.buffer, "freeSpace": max(0, l.all-l.buffer-w.Tokens()),
	}
	return map[string]any{"contextAttribution": out}, nil
}

type heaviestParams struct {
	target
	Limit *int `json:"limit"`
}

type heavyMessage struct {
	ID     string `json:"id"`
	Role   string `json:"role"`
	Label  string `json:"label"`
	Tokens int    `json:"tokens"`
}

// manyMessages is how many messages are returned where no limit is given.
const manyMessages = 10

func heaviest(s *transom.Session, p *heaviestParams) (any, error) {
	w := s.Window()
	list := make([]heavyMessage, 0, len(w.Messages))
	for i, m := range w.Messages {
		label := m.Role
		if m.Tool != "" {
			label = "tool: " + m.Tool
		}
		list = append(list, heavyMessage{fmt.Sprintf("message:%d", i), m.Role, label, m.Tokens})
	}
	slices.SortStableFunc(list, func(a, b heavyMessage) int { return b.Tokens - a.Tokens })
	n := manyMessages
	if p.Limit != nil {
		n = max(0, *p.Limit)
	}
	return map[string]any{"messages": list[:min(n, len(list))], "totalTokens": w.Tokens()}, nil
}

type metricsResult struct {
	SessionStartTime        string         `json:"sessionStartTime"`
	CurrentModel            string         `json:"currentModel,omitempty"`
	LastCallInputTokens     int64          `json:"lastCallInputTokens"`
	LastCallOutputTokens    int64          `json:"lastCallOutputTokens"`
	TotalUserRequests       int64          `json:"totalUserRequests"`
	TotalPremiumRequestCost float64        `json:"totalPremiumRequestCost"`
	TotalNanoAIU            int64          `json:"totalNanoAiu"`
	TotalAPIDurationMs      int64          `json:"totalApiDurationMs"`
	ModelMetrics            any            `json:"modelMetrics"`
	CodeChanges             metricsChanges `json:"codeChanges"`
}

type metricsChanges struct {
	LinesAdded         int64    `json:"linesAdded"`
	LinesRemoved       int64    `json:"linesRemoved"`
	FilesModified      []string `json:"filesModified"`
	FilesModifiedCount int64    `json:"filesModifiedCount"`
}

// usageMetrics counts tokens, requests, and the lines that create and edit wrote;
// a price have the models of accounts whose list says so.
func usageMetrics(s *transom.Session, _ *target) (any, error) {
	i, u := s.Info(), s.Usage()
	var charged int64
	for _, m := range u.Models {
		charged += m.NanoAIU
	}
	return metricsResult{
		TotalNanoAIU:     charged,
		SessionStartTime: wireTime(i.Started), CurrentModel: i.Model, LastCallInputTokens: u.LastInput, LastCallOutputTokens: u.LastOutput,
		TotalUserRequests: u.Prompts, TotalAPIDurationMs: u.APITime.Milliseconds(), ModelMetrics: u.Models,
		CodeChanges: metricsChanges{u.Changes.LinesAdded, u.Changes.LinesRemoved, u.Changes.FilesModified, int64(len(u.Changes.FilesModified))},
	}, nil
}

func sessionModels(ctx context.Context, s *transom.Session, _ *target) (any, error) {
	models, err := s.Models(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]any, 0, len(models))
	for _, m := range models {
		list = append(list, describeModel(m))
	}
	return map[string]any{"list": list}, nil
}

type effortParams struct {
	target
	ReasoningEffort string `json:"reasoningEffort"`
}

func setEffort(q *call, p *effortParams) {
	if p.ReasoningEffort == "" {
		q.Reply(nil, invalid(q.op(), q.op()+" needs a reasoningEffort, such as high"))
		return
	}
	q.sess.Post(transom.Configure{ReasoningEffort: &p.ReasoningEffort}, q.answer(func(any) any {
		return map[string]any{"reasoningEffort": q.sess.Info().ReasoningEffort}
	}))
}

type currentTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema,omitempty"`
	Deferred    bool            `json:"deferLoading,omitempty"`
}

func currentTools(s *transom.Session, _ *target) (any, error) {
	list := []currentTool{}
	for _, t := range s.Tools() {
		list = append(list, currentTool{t.Name, t.Description, t.Parameters, t.Held})
	}
	return map[string]any{"tools": list}, nil
}

// validateTools has nothing left to do: tools are checked when they are declared,
// and one that is not valid fails that request.
func validateTools(*transom.Session, *target) (any, error) { return struct{}{}, nil }
