package server

import (
	"context"
	"slices"

	"github.com/transom-run/transom"
)

// The methods about sub-agents at work.
func taskMethods() map[string]handler {
	return map[string]handler{
		"session.tasks.list":                       settled(listTasks),
		"session.tasks.refresh":                    settled(refreshTasks),
		"session.tasks.waitForPending":             read(waitTasks),
		"session.tasks.getProgress":                settled(taskProgress),
		"session.tasks.getCurrentPromotable":       settled(promotableTask),
		"session.tasks.promoteCurrentToBackground": filed(promoteCurrent),
		"session.tasks.promoteToBackground":        filed(promoteTask),
		"session.tasks.cancel":                     filed(cancelTask),
		"session.tasks.remove":                     filed(removeTask),
		"session.tasks.sendMessage":                filed(tellTask),
		"session.tasks.startAgent":                 filed(startTask),
		"session.cancelAllBackgroundAgents":        filed(cancelTasks),
	}
}

// taskInfo describes a sub-agent.
type taskInfo struct {
	Type            string  `json:"type"` // "agent"
	ID              string  `json:"id"`
	AgentType       string  `json:"agentType"`
	DisplayName     string  `json:"displayName,omitempty"`
	Description     string  `json:"description"`
	Prompt          string  `json:"prompt"`
	Status          string  `json:"status"`
	ToolCallID      string  `json:"toolCallId"`
	ExecutionMode   string  `json:"executionMode"`
	CanPromote      bool    `json:"canPromoteToBackground"`
	StartedAt       string  `json:"startedAt"`
	ActiveStartedAt string  `json:"activeStartedAt,omitempty"`
	CompletedAt     string  `json:"completedAt,omitempty"`
	Model           string  `json:"model,omitempty"`
	ResolvedModel   string  `json:"resolvedModel,omitempty"`
	LatestResponse  *string `json:"latestResponse,omitempty"`
	Result          *string `json:"result,omitempty"`
	Error           *string `json:"error,omitempty"`
}

func taskOf(t transom.Task) taskInfo {
	i := taskInfo{
		Type: "agent", ID: t.ID, AgentType: t.Kind, DisplayName: t.Name, Description: t.Description, Prompt: t.Prompt, Status: t.Status,
		ToolCallID: t.ToolCallID, ExecutionMode: "sync", StartedAt: wireTime(t.Started), Model: t.Asked, ResolvedModel: t.Model,
	}
	if t.Background {
		i.ExecutionMode = "background"
	}
	switch t.Status {
	case "running":
		i.CanPromote = !t.Background
		i.ActiveStartedAt = wireTime(t.Started)
	case "completed":
		i.Result = &t.Answer
	case "failed":
		i.Error = &t.Error
	}
	if t.Answer != "" {
		i.LatestResponse = &t.Answer
	}
	if !t.Ended.IsZero() {
		i.CompletedAt = wireTime(t.Ended)
	}
	return i
}

func listTasks(s *transom.Session, _ *target) (any, error) {
	out := []taskInfo{}
	for _, t := range s.Tasks() {
		out = append(out, taskOf(t))
	}
	return map[string]any{"tasks": out}, nil
}

// refreshTasks: the list is always as it is.
func refreshTasks(*transom.Session, *target) (any, error) { return struct{}{}, nil }

func waitTasks(ctx context.Context, s *transom.Session, _ *target) (any, error) {
	return struct{}{}, s.WaitTasks(ctx)
}

type taskParams struct {
	target
	ID      string `json:"id"`
	Message string `json:"message"`
}

type progressLine struct {
	Message   string `json:"message"`
	Timestamp string `json:"timestamp"`
}

func taskProgress(s *transom.Session, p *taskParams) (any, error) {
	list := s.Tasks()
	i := slices.IndexFunc(list, func(t transom.Task) bool { return t.ID == p.ID })
	if i < 0 {
		return map[string]any{"progress": nil}, nil
	}
	lines := []progressLine{}
	for _, name := range list[i].Calls {
		lines = append(lines, progressLine{"▸ " + name, wireTime(list[i].Started)})
	}
	return map[string]any{"progress": map[string]any{"type": "agent", "recentActivity": lines}}, nil
}

// promotable is the first sub-agent whose end a call waits for.
func promotable(s *transom.Session) (transom.Task, bool) {
	list := s.Tasks()
	i := slices.IndexFunc(list, func(t transom.Task) bool { return t.Status == "running" && !t.Background })
	if i < 0 {
		return transom.Task{}, false
	}
	return list[i], true
}

type taskResult struct {
	Task *taskInfo `json:"task,omitempty"`
}

func promotableTask(s *transom.Session, _ *target) (any, error) {
	t, ok := promotable(s)
	if !ok {
		return taskResult{}, nil
	}
	i := taskOf(t)
	return taskResult{&i}, nil
}

func promoteCurrent(ctx context.Context, s *transom.Session, _ *target) (any, error) {
	t, ok := promotable(s)
	if !ok {
		return taskResult{}, nil
	}
	done, err := s.PromoteTask(ctx, t.ID)
	if err != nil || !done {
		return taskResult{}, err
	}
	t.Background = true
	i := taskOf(t)
	return taskResult{&i}, nil
}

func promoteTask(ctx context.Context, s *transom.Session, p *taskParams) (any, error) {
	done, err := s.PromoteTask(ctx, p.ID)
	return map[string]bool{"promoted": done}, err
}

func cancelTask(ctx context.Context, s *transom.Session, p *taskParams) (any, error) {
	done, err := s.CancelTask(ctx, p.ID)
	return map[string]bool{"cancelled": done}, err
}

func removeTask(ctx context.Context, s *transom.Session, p *taskParams) (any, error) {
	done, err := s.RemoveTask(ctx, p.ID)
	return map[string]bool{"removed": done}, err
}

type toldResult struct {
	Sent  bool   `json:"sent"`
	Error string `json:"error,omitempty"`
}

func tellTask(ctx context.Context, s *transom.Session, p *taskParams) (any, error) {
	why, err := s.TellTask(ctx, p.ID, p.Message)
	return toldResult{why == "", why}, err
}

type startTaskParams struct {
	target
	AgentType   string `json:"agentType"`
	Name        string `json:"name"`
	Prompt      string `json:"prompt"`
	Description string `json:"description"`
	Model       string `json:"model"`
}

func startTask(ctx context.Context, s *transom.Session, p *startTaskParams) (any, error) {
	id, err := s.StartTask(ctx, transom.StartTask{Kind: p.AgentType, Name: p.Name, Prompt: p.Prompt, Description: p.Description, Model: p.Model})
	if err != nil {
		return nil, err
	}
	return map[string]string{"agentId": id}, nil
}

// cancelTasks answers with how many there were.
func cancelTasks(ctx context.Context, s *transom.Session, _ *target) (any, error) {
	ids, err := s.CancelTasks(ctx)
	return len(ids), err
}
