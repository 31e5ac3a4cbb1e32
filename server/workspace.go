package server

import (
	"context"
	"path/filepath"
	"time"

	"github.com/transom-run/transom"
)

// The methods about the files that belong to a session.
func workspaceMethods() map[string]handler {
	return map[string]handler{
		"session.plan.read":   filed(readPlan),
		"session.plan.update": filed(updatePlan),
		"session.plan.delete": filed(deletePlan),

		"session.plan.readSqlTodos":                 read(readTodos),
		"session.plan.readSqlTodosWithDependencies": read(readTodosAndWaits),

		"session.workspaces.getWorkspace":    filed(getWorkspace),
		"session.workspaces.ensure":          filed(getWorkspace),
		"session.workspaces.listFiles":       filed(listFiles),
		"session.workspaces.createFile":      filed(createFile),
		"session.workspaces.readFile":        filed(readFile),
		"session.workspaces.statFile":        filed(statFile),
		"session.workspaces.createDirectory": filed(createDirectory),
		"session.workspaces.removePath":      filed(removePath),
		"session.workspaces.renamePath":      filed(renamePath),
		"session.workspaces.saveLargePaste":  filed(savePaste),
		"session.workspaces.listCheckpoints": filed(listCheckpoints),
		"session.workspaces.readCheckpoint":  filed(readCheckpoint),
		"session.workspaces.diff":            read(diffWorkspace),
	}
}

type planResult struct {
	Exists  bool    `json:"exists"`
	Content *string `json:"content"`
	Path    *string `json:"path"`
}

func readPlan(_ context.Context, s *transom.Session, _ *target) (any, error) {
	text, exists, err := s.Files().Plan()
	if err != nil {
		return nil, err
	}
	out := planResult{Exists: exists}
	if exists {
		out.Content = &text
	}
	if path := s.Files().PlanPath(); path != "" {
		out.Path = &path
	}
	return out, nil
}

type textParams struct {
	target
	Content *string `json:"content"`
}

func updatePlan(ctx context.Context, s *transom.Session, p *textParams) (any, error) {
	if p.Content == nil {
		return nil, invalid("session.plan.update", "session.plan.update needs content, a string")
	}
	return nil, s.Files().WritePlan(ctx, *p.Content)
}

func deletePlan(ctx context.Context, s *transom.Session, _ *target) (any, error) {
	return nil, s.Files().DeletePlan(ctx)
}

type todosResult struct {
	Rows []transom.Todo `json:"rows"`
}

func readTodos(ctx context.Context, s *transom.Session, _ *target) (any, error) {
	todos, _, err := s.Todos(ctx)
	return todosResult{Rows: append([]transom.Todo{}, todos...)}, err
}

type todosAndWaitsResult struct {
	todosResult
	Dependencies []transom.TodoDependency `json:"dependencies"`
}

func readTodosAndWaits(ctx context.Context, s *transom.Session, _ *target) (any, error) {
	todos, waits, err := s.Todos(ctx)
	return todosAndWaitsResult{
		todosResult:  todosResult{Rows: append([]transom.Todo{}, todos...)},
		Dependencies: append([]transom.TodoDependency{}, waits...),
	}, err
}

type workspaceResult struct {
	Workspace *workspace `json:"workspace"`
	Path      string     `json:"path,omitempty"`
}

// workspace describes a session's directory, in the words of the file that other
// runtimes keep there.
type workspace struct {
	ID         string `json:"id"`
	Cwd        string `json:"cwd,omitempty"`
	GitRoot    string `json:"git_root,omitempty"`
	Repository string `json:"repository,omitempty"`
	HostType   string `json:"host_type,omitempty"`
	Branch     string `json:"branch,omitempty"`
	Name       string `json:"name,omitempty"`
	UserNamed  bool   `json:"user_named"`
	CreatedAt  string `json:"created_at"`
	UpdatedAt  string `json:"updated_at"`
}

// workspaceOf is nil where the session has no directory.
func workspaceOf(s *transom.Session) *workspace {
	if s.Workspace() == "" {
		return nil
	}
	i := s.Info()
	return &workspace{
		ID: i.ID, Cwd: i.Dir, Name: i.Name, UserNamed: i.Name != "" && !i.AutoNamed, CreatedAt: wireTime(i.Started), UpdatedAt: wireTime(i.Modified),
		GitRoot: i.Repository.Root, Repository: i.Repository.Name, HostType: i.Repository.HostType, Branch: i.Repository.Branch,
	}
}

func getWorkspace(_ context.Context, s *transom.Session, _ *target) (any, error) {
	return workspaceResult{workspaceOf(s), s.Workspace()}, nil
}

func listFiles(_ context.Context, s *transom.Session, _ *target) (any, error) {
	files, err := s.Files().List()
	return map[string]any{"files": files}, err
}

type pathParams struct {
	target
	Path      string  `json:"path"`
	Content   *string `json:"content"`
	Recursive bool    `json:"recursive"`
	Force     bool    `json:"force"`
}

func createFile(ctx context.Context, s *transom.Session, p *pathParams) (any, error) {
	if p.Content == nil {
		return nil, invalid("session.workspaces.createFile", "session.workspaces.createFile needs content, a string")
	}
	return nil, s.Files().Write(ctx, p.Path, *p.Content)
}

func readFile(_ context.Context, s *transom.Session, p *pathParams) (any, error) {
	text, err := s.Files().Read(p.Path)
	return map[string]any{"content": text}, err
}

type statResult struct {
	IsFile      bool    `json:"isFile"`
	IsDirectory bool    `json:"isDirectory"`
	Size        int64   `json:"size"`
	MtimeMs     float64 `json:"mtimeMs"`
	BirthtimeMs float64 `json:"birthtimeMs"`
}

// statFile gives the time of the last change as that of the creation too, which
// file systems do not all keep.
func statFile(_ context.Context, s *transom.Session, p *pathParams) (any, error) {
	i, err := s.Files().Stat(p.Path)
	if err != nil {
		return nil, err
	}
	ms := float64(i.Modified.UnixNano()) / float64(time.Millisecond)
	return statResult{!i.Dir, i.Dir, i.Bytes, ms, ms}, nil
}

func createDirectory(_ context.Context, s *transom.Session, p *pathParams) (any, error) {
	return nil, s.Files().MakeDir(p.Path, p.Recursive)
}

func removePath(_ context.Context, s *transom.Session, p *pathParams) (any, error) {
	return nil, s.Files().Remove(p.Path, p.Recursive, p.Force)
}

type renameParams struct {
	target
	Source      string `json:"source"`
	Destination string `json:"destination"`
}

func renamePath(_ context.Context, s *transom.Session, p *renameParams) (any, error) {
	return nil, s.Files().Rename(p.Source, p.Destination)
}

type savedPaste struct {
	Filename  string `json:"filename"`
	FilePath  string `json:"filePath"`
	SizeBytes int    `json:"sizeBytes"`
}

func savePaste(ctx context.Context, s *transom.Session, p *textParams) (any, error) {
	if p.Content == nil {
		return nil, invalid("session.workspaces.saveLargePaste", "session.workspaces.saveLargePaste needs content, a string")
	}
	if s.Workspace() == "" {
		return map[string]any{"saved": nil}, nil
	}
	name, full, err := s.Files().SavePaste(ctx, *p.Content)
	if err != nil {
		return nil, err
	}
	return map[string]any{"saved": savedPaste{name, filepath.ToSlash(full), len(*p.Content)}}, nil
}

// listCheckpoints lists the summaries of compactions.
func listCheckpoints(_ context.Context, s *transom.Session, _ *target) (any, error) {
	list, err := s.History().Checkpoints()
	if err != nil {
		return nil, err
	}
	out := make([]map[string]any, len(list))
	for i, c := range list {
		out[i] = map[string]any{"number": c.Number, "title": c.Title, "filename": c.File}
	}
	return map[string]any{"checkpoints": out}, nil
}

type checkpointParams struct {
	target
	Number int64 `json:"number"`
}

// readCheckpoint reads one of them; null where there is none of the number.
func readCheckpoint(_ context.Context, s *transom.Session, p *checkpointParams) (any, error) {
	list, err := s.History().Checkpoints()
	if err != nil {
		return nil, err
	}
	var content *string
	if p.Number >= 1 && p.Number <= int64(len(list)) {
		content = &list[p.Number-1].Text
	}
	return map[string]any{"content": content}, nil
}

type diffParams struct {
	target
	Mode             string `json:"mode"`
	IgnoreWhitespace bool   `json:"ignoreWhitespace"`
}

type diffResult struct {
	RequestedMode     string       `json:"requestedMode"`
	Mode              string       `json:"mode"`
	IsFallback        bool         `json:"isFallback"`
	BaseBranch        string       `json:"baseBranch,omitempty"`
	UnavailableReason string       `json:"unavailableReason,omitempty"`
	Changes           []diffChange `json:"changes"`
}

type diffChange struct {
	Path        string `json:"path"`
	OldPath     string `json:"oldPath,omitempty"`
	ChangeType  string `json:"changeType"`
	Diff        string `json:"diff"`
	IsTruncated bool   `json:"isTruncated,omitempty"`
}

// diffWorkspace compares the working directory with its repository. What the
// session itself changed is not tracked, so that mode falls back.
func diffWorkspace(ctx context.Context, s *transom.Session, p *diffParams) (any, error) {
	out := diffResult{RequestedMode: p.Mode, Mode: p.Mode, Changes: []diffChange{}}
	switch p.Mode {
	case "unstaged", "branch":
	case "session":
		out.Mode, out.IsFallback, out.UnavailableReason = "unstaged", true, "file-change-tracking-disabled"
	default:
		return nil, invalid("session.workspaces.diff", "session.workspaces.diff needs a mode: unstaged, branch or session, not "+p.Mode)
	}
	d, err := s.Diff(ctx, out.Mode == "branch", p.IgnoreWhitespace)
	if err != nil {
		return nil, err
	}
	if out.Mode == "branch" {
		out.BaseBranch = d.Base
		if d.Base == "" {
			out.Mode, out.IsFallback = "unstaged", true
		}
	}
	for _, c := range d.Changes {
		out.Changes = append(out.Changes, diffChange{c.Path, c.OldPath, c.Type, c.Diff, c.Truncated})
	}
	return out, nil
}
