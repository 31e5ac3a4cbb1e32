package skill

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/transom-run/transom/tool"
)

// ToolName is what the model calls to load a skill.
const ToolName = "skill"

//go:embed skill.md
var text string

// loaded is the result of a call that loaded a skill. Hosts' recordings pin it
// (test "skills" of the SDKs).
func loaded(name string) string {
	return fmt.Sprintf("Skill %q loaded successfully. Follow the instructions in the skill context.", name)
}

const parameters = `{"type":"object","properties":{"skill":{"type":"string","description":"The name of the skill, as the list has it"}},"required":["skill"]}`

// maxList bounds what the descriptions of the skills take of every model call, in
// bytes; beyond it skills are listed by name.
const maxList = 24 << 10

// Usable are the skills that the model may load: those that are enabled and not
// kept from it.
func Usable(c *Catalog, enabled func(name string) bool) []Skill {
	var out []Skill
	for _, s := range c.All() {
		if !s.Hidden && enabled(s.Name) {
			out = append(out, s)
		}
	}
	return out
}

// Tool is the tool that loads one of the skills. find looks a skill up when it is
// called, since what is enabled may have changed.
func Tool(usable []Skill, find func(name string) (Skill, error)) tool.Tool {
	return tool.Tool{
		Name: ToolName, Description: describe(usable), Parameters: json.RawMessage(parameters), Source: tool.BuiltIn, Tolerant: true,
		SkipPermission: true,
		Permission: func(context.Context, tool.Call) (tool.Permission, error) {
			return tool.Permission{None: true}, nil
		},
		Handler: func(_ context.Context, call tool.Call) (tool.Result, error) {
			var in struct {
				Skill string `json:"skill"`
			}
			if err := json.Unmarshal(call.Arguments, &in); err != nil {
				return tool.Result{}, err
			}
			s, err := find(in.Skill)
			if err == nil {
				var t tool.Skill
				if t, err = s.Read(); err == nil {
					return tool.Result{Text: loaded(s.Name), Skill: &t}, nil
				}
			}
			return tool.Result{Text: err.Error(), Type: tool.Failure}, nil
		},
	}
}

// describe is what the model reads of the tool: how it is used, and what there is.
func describe(usable []Skill) string {
	var b strings.Builder
	b.WriteString(strings.TrimSpace(text))
	b.WriteString("\n\n<available_skills>\n")
	for _, s := range usable {
		b.WriteString("- " + s.Name)
		if s.Description != "" && b.Len()+len(s.Description) < maxList {
			b.WriteString(": " + s.Description)
		}
		b.WriteByte('\n')
	}
	b.WriteString("</available_skills>")
	return b.String()
}
