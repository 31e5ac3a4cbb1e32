package event

// The types of the payloads below.
const (
	TypeSkillInvoked = "skill.invoked"
	TypeSkillsLoaded = "session.skills_loaded"

	TypeToolSearchActivated = "tool_search.activated"
)

// What began a skill.
const (
	SkillByAgent = "agent-invoked" // the model called the tool skill: its text follows the results of that batch
	SkillByUser  = "user-invoked"  // a user named it: its text stands in the prompt
	SkillByLoad  = "context-load"  // it is part of something else, such as an agent's prompt
)

// SkillInvoked says that a skill's text came into the conversation.
type SkillInvoked struct {
	Name                   string   `json:"name"`
	Path                   string   `json:"path"`    // of its SKILL.md, absolute
	Content                string   `json:"content"` // without the front matter
	Description            string   `json:"description,omitempty"`
	AllowedTools           []string `json:"allowedTools,omitempty"`
	DisableModelInvocation bool     `json:"disableModelInvocation,omitempty"`
	Source                 string   `json:"source,omitempty"`
	PluginName             string   `json:"pluginName,omitempty"`
	PluginVersion          string   `json:"pluginVersion,omitempty"`
	Trigger                string   `json:"trigger,omitempty"` // one of the constants above
	Model                  string   `json:"model,omitempty"`
}

// SkillsLoaded lists the skills of a session, after every change of the list.
type SkillsLoaded struct {
	Skills []SkillInfo `json:"skills"`
}

// SkillInfo describes a skill for people.
type SkillInfo struct {
	Name          string `json:"name"`
	CommandName   string `json:"commandName,omitempty"` // of its slash command, without the slash
	Description   string `json:"description"`
	ArgumentHint  string `json:"argumentHint,omitempty"`
	Source        string `json:"source"`
	UserInvocable bool   `json:"userInvocable"`
	Enabled       bool   `json:"enabled"`
	Path          string `json:"path,omitempty"`
}

// EventType returns "skill.invoked".
func (SkillInvoked) EventType() string { return TypeSkillInvoked }

// EventType returns "session.skills_loaded".
func (SkillsLoaded) EventType() string { return TypeSkillsLoaded }

func (SkillsLoaded) ephemeralEvent() {}

// ToolSearchActivated says which tools a tool search has put into the model's list.
type ToolSearchActivated struct {
	Strategy  string   `json:"strategy"` // "client": the runtime searched
	ToolNames []string `json:"toolNames"`
}

// EventType returns "tool_search.activated".
func (ToolSearchActivated) EventType() string { return TypeToolSearchActivated }
