package transom

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/internal/plugin"
	"github.com/transom-run/transom/mcp"
)

// gitHubServer is the name of GitHub's own MCP server.
const gitHubServer = "github-mcp-server"

// serverFile is the user's configuration of MCP servers: mcp-config.json under the
// runtime's home.
type serverFile struct {
	Servers  map[string]json.RawMessage `json:"mcpServers"`
	Disabled []string                   `json:"disabledServers,omitempty"`
}

// workspaceFiles are where a project says which servers it has, the first to name a
// server counts. Each has them under "mcpServers" or "servers".
var workspaceFiles = []string{".mcp.json", ".github/mcp.json", ".vscode/mcp.json"}

// maxServerFile bounds such a file.
const maxServerFile = 1 << 20

// configured are all servers of a session, and which of them must not run: the
// host's own, those of its plugins, and, with discovery, those of the project and
// of the user. The first to name a server counts.
func (r *Runtime) configured(s *loaded, cfg *MCPConfig, dir string) (all map[string]mcp.Server, disabled []string, err error) {
	all, disabled = map[string]mcp.Server{}, slices.Clone(cfg.Disabled)
	for name, server := range cfg.Servers {
		if strings.TrimSpace(name) == "" {
			return nil, nil, &Error{Kind: KindInvalidParams, Msg: "an MCP server has no name: give each a name of its own"}
		}
		all[name] = server
	}
	if cfg.GitHub != nil {
		if _, taken := all[gitHubServer]; !taken {
			all[gitHubServer] = r.gitHubMCP(s, cfg.GitHub)
		}
	}
	for _, p := range s.plugins.all() {
		s.add(all, p.Servers, mcp.Server{Source: mcp.FromPlugin, SourcePlugin: p.Name, SourcePluginVersion: p.Version, Dir: p.Dir})
	}
	if s.skills.discovers() {
		found, problems := workspaceServers(dir)
		s.add(all, found, mcp.Server{Source: mcp.FromWorkspace})
		for _, p := range problems {
			s.tell(event.SessionWarning{WarningType: "mcp", Message: p})
		}
		user, err := r.mcpFile.read()
		if err != nil {
			return nil, nil, err
		}
		s.add(all, user.Servers, mcp.Server{Source: mcp.FromUser})
		disabled = append(disabled, user.Disabled...)
	}
	for _, server := range all {
		r.keys.server(server)
	}
	return all, disabled, nil
}

// add adds servers of a file, where no other has their name. One that cannot be
// read is one that fails, and says why.
func (s *loaded) add(all map[string]mcp.Server, found map[string]json.RawMessage, of mcp.Server) {
	for name, raw := range found {
		if _, taken := all[name]; taken || strings.TrimSpace(name) == "" {
			continue
		}
		server, err := mcp.Parse(raw)
		if err != nil {
			server = mcp.Server{Type: "unreadable: " + err.Error()}
		}
		server.Source, server.SourcePlugin, server.SourcePluginVersion = of.Source, of.SourcePlugin, of.SourcePluginVersion
		if of.Dir != "" && !filepath.IsAbs(server.Dir) {
			server.Dir = filepath.Join(of.Dir, server.Dir)
		}
		all[name] = server
	}
}

// workspaceServers reads the files of a project.
func workspaceServers(dir string) (found map[string]json.RawMessage, problems []string) {
	found = map[string]json.RawMessage{}
	if dir == "" {
		return found, nil
	}
	for _, name := range workspaceFiles {
		path := filepath.Join(dir, name)
		servers, err := readServers(path)
		if err != nil {
			problems = append(problems, fmt.Sprintf("The MCP servers of %s are left out: %v.", path, err))
		}
		for name, raw := range servers {
			if _, taken := found[name]; !taken {
				found[name] = raw
			}
		}
	}
	return found, problems
}

// readServers reads one file; one that is not there has none.
func readServers(path string) (map[string]json.RawMessage, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && (!info.Mode().IsRegular() || info.Size() > maxServerFile) {
		err = fmt.Errorf("it is no file of at most %d bytes", maxServerFile)
	}
	if err != nil {
		return nil, err
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parseServers(raw)
}

// parseServers reads the text of such a file.
func parseServers(raw []byte) (map[string]json.RawMessage, error) {
	var file struct {
		MCPServers map[string]json.RawMessage `json:"mcpServers"`
		Servers    map[string]json.RawMessage `json:"servers"`
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		return nil, err
	}
	if file.MCPServers == nil {
		return file.Servers, nil
	}
	maps.Copy(file.MCPServers, file.Servers)
	return file.MCPServers, nil
}

// gitHubMCP is GitHub's own server, reached with the session's account.
func (r *Runtime) gitHubMCP(s *loaded, g *GitHubMCP) mcp.Server {
	server := mcp.Server{Type: "http", Source: mcp.BuiltIn, Headers: map[string]string{}}
	path := "/mcp/readonly"
	switch {
	case g.AllTools:
		path = "/mcp"
		server.Headers["X-MCP-Toolsets"] = "all"
	case len(g.Toolsets) > 0:
		path = "/mcp"
		server.Headers["X-MCP-Toolsets"] = strings.Join(append([]string{"default"}, g.Toolsets...), ",")
	}
	if len(g.Tools) > 0 {
		server.Headers["X-MCP-Tools"] = strings.Join(g.Tools, ",")
		path = "/mcp"
	}
	if g.Insiders {
		server.Headers["X-MCP-Insiders"] = "true"
	}
	server.Reach = func(ctx context.Context) (string, string, error) {
		e, err := s.models.gitHub(ctx)
		if err != nil {
			return "", "", err
		}
		return strings.TrimSuffix(e.BaseURL, "/") + path, e.Token, nil
	}
	return server
}

// MCPServers are the servers of the user's configuration, each as it was given.
func (r *Runtime) MCPServers() (map[string]json.RawMessage, error) {
	f, err := r.mcpFile.read()
	if f.Servers == nil {
		f.Servers = map[string]json.RawMessage{}
	}
	return f.Servers, wrap("mcp.config.list", "", err)
}

// SetMCPServer writes a server of the user's configuration: one that is new, or one
// that is there already (replace).
func (r *Runtime) SetMCPServer(name string, config json.RawMessage, replace bool) error {
	op := "mcp.config.add"
	if replace {
		op = "mcp.config.update"
	}
	if strings.TrimSpace(name) == "" {
		return &Error{Op: op, Kind: KindInvalidParams, Msg: op + " needs the name of an MCP server"}
	}
	if _, err := mcp.Parse(config); err != nil {
		return &Error{Op: op, Kind: KindInvalidParams, Msg: fmt.Sprintf("the config of the MCP server %q cannot be read: %v", name, err), Err: err}
	}
	return r.changeServers(op, func(f *serverFile) error {
		_, there := f.Servers[name]
		switch {
		case there && !replace:
			return &Error{Op: op, Kind: KindConflict, Msg: fmt.Sprintf("there is an MCP server %q already: use mcp.config.update, or another name", name)}
		case !there && replace:
			return &Error{Op: op, Kind: KindNotFound, Msg: fmt.Sprintf("there is no MCP server %q to change: use mcp.config.add", name)}
		}
		if f.Servers == nil {
			f.Servers = map[string]json.RawMessage{}
		}
		f.Servers[name] = config
		return nil
	})
}

// RemoveMCPServer takes a server out of the user's configuration; NotFound where
// there is none of that name.
func (r *Runtime) RemoveMCPServer(name string) error {
	const op = "mcp.config.remove"
	return r.changeServers(op, func(f *serverFile) error {
		if _, there := f.Servers[name]; !there {
			return &Error{Op: op, Kind: KindNotFound, Msg: fmt.Sprintf("there is no MCP server %q in the user's configuration", name)}
		}
		delete(f.Servers, name)
		f.Disabled = slices.DeleteFunc(f.Disabled, func(n string) bool { return n == name })
		return nil
	})
}

// EnableMCPServers says whether new sessions may run servers, by name; those that
// run already go on.
func (r *Runtime) EnableMCPServers(names []string, enabled bool) error {
	op := "mcp.config.disable"
	if enabled {
		op = "mcp.config.enable"
	}
	return r.changeServers(op, func(f *serverFile) error {
		f.Disabled = slices.DeleteFunc(f.Disabled, func(n string) bool { return slices.Contains(names, n) })
		if !enabled {
			f.Disabled = append(f.Disabled, names...)
			slices.Sort(f.Disabled)
			f.Disabled = slices.Compact(f.Disabled)
		}
		return nil
	})
}

func (r *Runtime) changeServers(op string, change func(*serverFile) error) error {
	var refused error
	err := r.mcpFile.change(func(f *serverFile) {
		f.Servers = maps.Clone(f.Servers)
		refused = change(f)
	})
	if refused != nil {
		return refused
	}
	return wrap(op, "", err)
}

// DiscoveredMCP is a server that a session with discovery would have.
type DiscoveredMCP struct {
	Name    string
	Config  mcp.Server
	Enabled bool
}

// DiscoverMCP lists the servers of the user's configuration and of a project; ""
// is none.
func (r *Runtime) DiscoverMCP(dir string) ([]DiscoveredMCP, error) {
	user, err := r.mcpFile.read()
	if err != nil {
		return nil, wrap("mcp.discover", "", err)
	}
	all := map[string]mcp.Server{}
	project, _ := workspaceServers(dir)
	var s loaded
	s.add(all, project, mcp.Server{Source: mcp.FromWorkspace})
	for _, p := range r.enabledPlugins() {
		if read, err := plugin.Load(filepath.Clean(p.Dir)); err == nil {
			s.add(all, read.Servers, mcp.Server{Source: mcp.FromPlugin, SourcePlugin: read.Name, SourcePluginVersion: read.Version, Dir: read.Dir})
		}
	}
	s.add(all, user.Servers, mcp.Server{Source: mcp.FromUser})
	var out []DiscoveredMCP
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out = append(out, DiscoveredMCP{name, all[name], !slices.Contains(user.Disabled, name)})
	}
	return out, nil
}
