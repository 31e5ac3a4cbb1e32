package transom

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/transom-run/transom/internal/prompt"
	"github.com/transom-run/transom/internal/turn"
)

// SystemMessage is the host's part of the system message.
type SystemMessage struct {
	// Mode is "append" (Content to the default message; also where empty),
	// "customize" (Sections of it, and Content at its end) or "replace" (Content is
	// all there is).
	Mode    string
	Content string
	// Sections are what is done with single sections, by the names that the SDKs
	// document, such as "tone" or "environment_context".
	Sections map[string]SystemSection
}

// SystemSection is what a host does with one section of the system message.
type SystemSection struct {
	// Action is "replace", "remove", "append", "prepend", "preserve", or "transform":
	// then the host is asked with "systemMessage.transform" before the first model
	// call, and again when the section has changed.
	Action  string `json:"action"`
	Content string `json:"content"`
}

func (m SystemMessage) config() (prompt.Config, error) {
	c := prompt.Config{Mode: m.Mode, Content: m.Content}
	if m.Sections != nil {
		c.Sections = map[string]prompt.Override{}
	}
	for id, s := range m.Sections {
		c.Sections[id] = prompt.Override{Action: s.Action, Content: s.Content}
	}
	if err := c.Check(); err != nil {
		return c, &Error{Kind: KindInvalidParams, Msg: err.Error(), Err: err}
	}
	return c, nil
}

// systemMessage makes the system message of a session, whenever there is a reason
// to make it anew.
type systemMessage struct {
	ask    func(ctx context.Context, method string, params any) (json.RawMessage, error)
	id     string // of the session
	agents *agentSet
	// servers are what MCP servers say that a kind of agent has; "" is the session's own.
	servers func(kind string) map[string]string

	mu           sync.Mutex
	config       prompt.Config
	directories  []string // of instructions that the host named, absolute
	organization string
	skip         bool              // no instruction files
	asked, made  map[string]string // the newest transformation: sections before and after
}

// instructionConfig is what a host says about custom instructions; nil leaves a
// part of it as it is.
type instructionConfig struct {
	directories  []string
	organization *string
	skip         *bool
}

// update takes what a host configures and reports whether it is another message.
func (m *systemMessage) update(base string, msg *SystemMessage, in instructionConfig) (changed bool, err error) {
	var c prompt.Config
	if msg != nil {
		if c, err = msg.config(); err != nil {
			return false, err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if msg != nil {
		m.config, changed = c, true
		m.asked, m.made = nil, nil
	}
	if in.directories != nil {
		dirs := make([]string, 0, len(in.directories))
		for _, d := range in.directories {
			if !filepath.IsAbs(d) {
				d = filepath.Join(base, d)
			}
			dirs = append(dirs, filepath.Clean(d))
		}
		changed = changed || !slices.Equal(dirs, m.directories)
		m.directories = dirs
	}
	if in.organization != nil {
		changed = changed || *in.organization != m.organization
		m.organization = *in.organization
	}
	if in.skip != nil {
		changed = changed || *in.skip != m.skip
		m.skip = *in.skip
	}
	return changed, nil
}

// renew numbers a new system message in the settings, and makes it at once where
// nobody has to be asked for it.
func (m *systemMessage) renew(ctx context.Context, dir string, s *turn.Settings) error {
	s.Wanted++
	m.mu.Lock()
	later := m.config.Transforms()
	m.mu.Unlock()
	if later {
		return nil
	}
	text, err := m.compose(ctx, dir, "")
	s.System, s.Made = strings.ToValidUTF8(text, "\ufffd"), s.Wanted
	return err
}

// begin makes the first message of a new session.
func (m *systemMessage) begin(ctx context.Context, base string, cfg SessionConfig, s *turn.Settings) error {
	_, err := m.update(base, &cfg.SystemMessage, instructionConfig{cfg.InstructionDirectories, &cfg.OrganizationInstructions, &cfg.SkipCustomInstructions})
	if err != nil {
		return err
	}
	return m.renew(ctx, cfg.Dir, s)
}

// compose makes the message for a working directory: of the session's own agent,
// or of a kind of sub-agent.
func (m *systemMessage) compose(ctx context.Context, dir, kind string) (string, error) {
	if kind != "" {
		return m.agentMessage(ctx, dir, kind)
	}
	m.mu.Lock()
	c, s := m.config, prompt.Surroundings{Dir: dir, System: systemName(), Organization: m.organization}
	m.mu.Unlock()
	if role := m.agents.role(); role != "" {
		c.Content = strings.TrimPrefix(c.Content+"\n\n"+role, "\n\n")
	}
	if c.Mode != "replace" {
		s.Repository = prompt.Repository(dir)
		s.Instructions = m.instructions(dir)
		own, _ := m.agents.current() // what it was selected to be
		s.Servers = m.servers(own.Name)
	}
	return prompt.Compose(ctx, c, s, m.transform)
}

// instructions reads the instruction files that count for a directory.
func (m *systemMessage) instructions(dir string) []prompt.Source {
	m.mu.Lock()
	skip, more := m.skip, m.directories
	m.mu.Unlock()
	if skip {
		return nil
	}
	return prompt.ReadInstructions(dir, prompt.Repository(dir), more)
}

// wireSection is a section in a request to transform it.
type wireSection struct {
	Content string `json:"content"`
}

// transform asks the host, unless it was asked for the same before.
func (m *systemMessage) transform(ctx context.Context, sections map[string]string) (map[string]string, error) {
	m.mu.Lock()
	asked, made := m.asked, m.made
	m.mu.Unlock()
	if maps.Equal(asked, sections) {
		return made, nil
	}
	in := map[string]wireSection{}
	for id, text := range sections {
		in[id] = wireSection{text}
	}
	raw, err := m.ask(ctx, methodTransform, map[string]any{"sessionId": m.id, "sections": in})
	if err != nil {
		return nil, fmt.Errorf("the host was asked to transform sections of it, and failed: %w", err)
	}
	var out struct {
		Sections map[string]*wireSection `json:"sections"`
	}
	if err := json.Unmarshal(raw, &out); err != nil || out.Sections == nil {
		return nil, errors.New("the host was asked to transform sections of it, and its answer is not an object with sections")
	}
	made = map[string]string{}
	for id, s := range out.Sections {
		if s != nil {
			made[id] = s.Content
		}
	}
	m.mu.Lock()
	m.asked, m.made = maps.Clone(sections), made
	m.mu.Unlock()
	return made, nil
}

const methodTransform = "systemMessage.transform"

// systemName is the operating system as people call it.
func systemName() string {
	switch runtime.GOOS {
	case "darwin":
		return "macOS"
	case "windows":
		return "Windows"
	case "linux":
		return "Linux"
	}
	return runtime.GOOS
}

// Instruction is a file of custom instructions that a session's system message
// holds.
type Instruction struct {
	// Path is absolute; Name is the path below the directory it was found in.
	Path, Name string
	// Text is the file as it stands, up to the size that is read of one.
	Text string
	// ApplyTo are the patterns of the files that it is for; nil: all.
	ApplyTo     []string
	Description string
	// Repository tells whether it belongs to the repository around the working
	// directory, and not to the directory itself or to one that the host named.
	Repository bool
}

// Instructions reads the custom instructions that count for the session now.
func (h *Session) Instructions() []Instruction {
	dir := h.sess.View().Dir
	return publicInstructions(dir, h.sess.system.instructions(dir))
}

func publicInstructions(dir string, all []prompt.Source) (out []Instruction) {
	for _, s := range all {
		out = append(out, Instruction{s.Path, s.Label, s.Raw, s.ApplyTo, s.Description, s.Base != dir && s.Base == prompt.Repository(dir)})
	}
	return out
}

// DiscoverInstructions reads the custom instructions that count for a directory,
// outside of any session.
func (r *Runtime) DiscoverInstructions(dir string) []Instruction {
	dir = r.absolute(dir)
	return publicInstructions(dir, prompt.ReadInstructions(dir, prompt.Repository(dir), nil))
}

// InstructionPaths lists where custom instructions of a directory are looked for;
// new ones belong into the first. The last is a directory of files
// NAME.instructions.md.
func (r *Runtime) InstructionPaths(dir string) (out []string) {
	for _, name := range prompt.InstructionPaths() {
		out = append(out, filepath.Join(r.absolute(dir), filepath.FromSlash(name)))
	}
	return out
}

// limits is what the model is told of the session's limits.
func limits(credits float64) string {
	if credits <= 0 {
		return ""
	}
	return prompt.LimitsStatus(credits)
}

// unserved says which settings of a host have no effect.
func unserved(names []string) string {
	return "These settings are known but not served by this version of Transom, and have no effect: " + strings.Join(names, ", ") + ". See docs/protocol.md for what is served."
}
