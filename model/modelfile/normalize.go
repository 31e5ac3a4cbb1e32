package modelfile

import (
	"bytes"
	"encoding/json"
	"sort"
	"strconv"
	"strings"

	"github.com/transom-run/transom/internal/lazy"
	"github.com/transom-run/transom/model"
)

// Normalizer takes out of messages what differs from run to run, so that a
// request can be compared with a file. docs/model-files.md lists what it does.
// The rules are those of the replay server of the Copilot SDKs' suites, as far
// as a request of Transom's can differ from its recordings.
type Normalizer struct {
	// WorkDir is an absolute directory; it stands as ${workdir} in the file.
	WorkDir string
	// Paths are more absolute paths, by the name of their placeholder: {"home":
	// "/home/a"} stands as ${home}.
	Paths map[string]string
	// Secrets are texts that stand as [redacted] in the file.
	Secrets []string
}

// FromRequest returns the messages of a request in the form of a file. An image
// is a line [image] after the text, and after its name where it has one; those of
// tool results are a user message behind the results of their batch, as chat
// completions have them.
func FromRequest(msgs []model.Message) []Message {
	out := make([]Message, 0, len(msgs))
	var pictures []model.Image
	flush := func() {
		if len(pictures) > 0 {
			out = append(out, Message{Role: model.User, Content: withImages("", pictures)})
			pictures = nil
		}
	}
	for i := range msgs {
		m := &msgs[i]
		text := m.Text
		if m.Role == model.ToolRole {
			pictures = append(pictures, m.Images...)
		} else {
			flush()
			text = withImages(text, m.Images)
		}
		out = append(out, Message{Role: m.Role, Content: text, Reasoning: m.Reasoning, ToolCalls: m.Calls, ToolCallID: m.CallID})
	}
	flush()
	return out
}

func withImages(text string, images []model.Image) string {
	var lines []string
	if text != "" {
		lines = append(lines, text)
	}
	for i := range images {
		if images[i].Name != "" {
			lines = append(lines, images[i].Name)
		}
		lines = append(lines, "[image]")
	}
	return strings.Join(lines, "\n")
}

var (
	elements    = lazy.Regexp{Expr: `<current_datetime>.*?</current_datetime>|(?s)<reminder>.*?</reminder>|<system_reminder>.*?</system_reminder>|<agent_instructions>.*?</agent_instructions>`}
	planMark    = lazy.Regexp{Expr: `^\s*\[\[PLAN\]\]\s*`}
	compaction  = lazy.Regexp{Expr: `(?s)Please create a detailed summary of the conversation so far\. The history is being compacted.*`}
	agentNotice = lazy.Regexp{Expr: `Agent "([^"]+)" \(([^)]+)\) (?:has completed successfully|has finished processing and is now idle)\. Use read_agent with agent_id "[^"]+" to (?:retrieve (?:unread results|the full results)|read the results, or write_agent to send follow-up messages)\.`}
	skillMatter = lazy.Regexp{Expr: `(?s)(<skill-context[^>]*>\s*)---\r?\n.*?\r?\n---\r?\n\s*`}
	unknownTool = lazy.Regexp{Expr: `(Tool '[^']*' does not exist\.).*`}
	shellExit   = lazy.Regexp{Expr: `<shellId: [^ >]+ completed with exit code (-?\d+)>`}
	largeOutput = lazy.Regexp{Expr: `(?:[^\s"]*/session-state/temp/)?\d+-copilot-tool-output-[a-z0-9.]+`}
)

// shellNames are the tools of a shell, and what stands for each in a file.
var shellNames = [][2]string{
	{"bash", "${shell}"}, {"read_bash", "${read_shell}"}, {"write_bash", "${write_shell}"}, {"stop_bash", "${stop_shell}"}, {"list_bash", "${list_shell}"},
}

// shellNamed looks a shell's tool up by its name (of is 0) or by what stands for it
// (of is 1), and gives the other.
func shellNamed(of int, name string) (other string, ok bool) {
	for _, n := range shellNames {
		if n[of] == name {
			return n[1-of], true
		}
	}
	return "", false
}

// Text takes the changing parts out of a user message's text.
func (z Normalizer) Text(s string) string {
	if strings.IndexByte(s, '<') >= 0 {
		s = elements.Get().ReplaceAllString(s, "")
		s = skillMatter.Get().ReplaceAllString(s, "$1")
	}
	if strings.Contains(s, "[[PLAN]]") {
		s = planMark.Get().ReplaceAllString(s, "")
	}
	if strings.Contains(s, "Please create a detailed summary") {
		s = compaction.Get().ReplaceAllLiteralString(s, "${compaction_prompt}")
	}
	if strings.Contains(s, "read_agent") {
		s = agentNotice.Get().ReplaceAllString(s, `Agent "$1" ($2) has completed successfully. Use read_agent with agent_id "$1" to retrieve the full results.`)
	}
	return z.paths(strings.TrimSpace(s))
}

// Messages returns the normal form: texts without their changing parts, call ids
// numbered in order of appearance, arguments as compact JSON, the results of one
// batch in the order of their calls, and assistant messages that follow one
// another as one. What says how a reply is
// played is dropped.
func (z Normalizer) Messages(msgs []Message) []Message {
	out := make([]Message, 0, len(msgs))
	ids := make(map[string]string)
	rename := func(id string) string {
		if id == "" {
			return ""
		}
		name, ok := ids[id]
		if !ok {
			name = "toolcall_" + strconv.Itoa(len(ids))
			ids[id] = name
		}
		return name
	}
	for i := range msgs {
		m := &msgs[i]
		n := Message{Line: m.Line, Role: m.Role, Content: m.Content}
		switch m.Role {
		case model.System, model.Developer:
			n.Content = z.paths(m.Content)
		case model.User:
			n.Content = z.Text(m.Content)
		case model.ToolRole:
			n.Content = z.toolText(m.Content)
			n.ToolCallID = rename(m.ToolCallID)
		case model.Assistant:
			n.Content = z.paths(m.Content)
			if m.Content == "" {
				n.Content = z.paths(m.Refusal)
			}
			n.ToolCalls = make([]model.Call, 0, len(m.ToolCalls))
			for _, c := range m.ToolCalls {
				name := c.Name
				if p, ok := shellNamed(0, name); ok {
					name = p
				}
				n.ToolCalls = append(n.ToolCalls, model.Call{ID: rename(c.ID), Name: name, Arguments: z.arguments(c.Arguments)})
			}
			if last := len(out) - 1; last >= 0 && out[last].Role == model.Assistant {
				out[last].Content = JoinTexts(out[last].Content, n.Content)
				out[last].ToolCalls = append(out[last].ToolCalls, n.ToolCalls...)
				continue
			}
		}
		out = append(out, n)
	}
	sortResults(out)
	return out
}

// JoinTexts joins the texts of the parts of one answer: with a blank line where
// both have one.
func JoinTexts(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n\n" + b
}

// sortResults puts the results of each batch in one order. Which order results
// have is not what a recording is about.
func sortResults(msgs []Message) {
	for i := 0; i < len(msgs); {
		j := i
		for j < len(msgs) && msgs[j].Role == model.ToolRole {
			j++
		}
		if j > i+1 {
			run := msgs[i:j]
			sort.SliceStable(run, func(a, b int) bool {
				x, y := run[a].ToolCallID, run[b].ToolCallID
				if len(x) != len(y) {
					return len(x) < len(y)
				}
				return x < y
			})
		}
		i = max(j, i+1)
	}
}

func (z Normalizer) toolText(s string) string {
	if v, ok := canonical(s); ok {
		return z.paths(v)
	}
	s = strings.TrimSpace(s)
	if strings.Contains(s, "does not exist.") {
		s = unknownTool.Get().ReplaceAllString(s, "$1")
	}
	if strings.Contains(s, "<shellId:") {
		s = shellExit.Get().ReplaceAllString(s, "<exited with exit code $1>")
	}
	if strings.Contains(s, "-copilot-tool-output-") {
		s = largeOutput.Get().ReplaceAllLiteralString(s, "${tool_output}")
	}
	return z.paths(s)
}

// canonical rewrites a JSON text with sorted keys; of a successful result in its
// envelope it keeps the text.
func canonical(s string) (string, bool) {
	dec := json.NewDecoder(strings.NewReader(s))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil || dec.InputOffset() != int64(len(strings.TrimRight(s, " \t\r\n"))) {
		return "", false
	}
	if obj, ok := v.(map[string]any); ok && obj["resultType"] == "success" {
		if text, ok := obj["textResultForLlm"]; ok {
			if t, ok := text.(string); ok {
				return t, true
			}
			v = text
		}
	}
	return marshal(v), true
}

func (z Normalizer) arguments(s string) string {
	if strings.TrimSpace(s) == "" {
		return "{}"
	}
	var b bytes.Buffer
	if json.Compact(&b, []byte(s)) != nil {
		return z.paths(s)
	}
	return z.paths(b.String())
}

// marshal writes JSON without escaping HTML, as other languages write it.
func marshal(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) != nil {
		return ""
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// replacements are the paths and their placeholders, longest path first.
func (z Normalizer) replacements() [][2]string {
	var all [][2]string
	if z.WorkDir != "" {
		all = append(all, [2]string{z.WorkDir, "${workdir}"})
	}
	for name, path := range z.Paths {
		if path != "" {
			all = append(all, [2]string{path, "${" + name + "}"})
		}
	}
	sort.Slice(all, func(i, j int) bool {
		if len(all[i][0]) != len(all[j][0]) {
			return len(all[i][0]) > len(all[j][0])
		}
		return all[i][0] < all[j][0]
	})
	return all
}

// Shorten puts the placeholders of paths and secrets into a text, and makes it
// valid UTF-8, which a file must be.
func (z Normalizer) Shorten(s string) string { return z.paths(s) }

func (z Normalizer) paths(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	for _, secret := range z.Secrets {
		if secret != "" {
			s = strings.ReplaceAll(s, secret, "[redacted]")
		}
	}
	if z.WorkDir == "" && len(z.Paths) == 0 {
		return s
	}
	for _, r := range z.replacements() {
		s = strings.ReplaceAll(s, r[0], r[1])
	}
	return s
}

// Expand puts the placeholders of paths and shell tools in a reply back. In
// arguments, which are JSON, paths are escaped.
func (z Normalizer) Expand(m Message) Message {
	m.Content = z.expand(m.Content, false)
	m.Refusal = z.expand(m.Refusal, false)
	if m.Chunks != nil {
		chunks := make([]string, len(m.Chunks))
		for i, c := range m.Chunks {
			chunks[i] = z.expand(c, false)
		}
		m.Chunks = chunks
	}
	calls := make([]model.Call, len(m.ToolCalls))
	for i, c := range m.ToolCalls {
		if name, ok := shellNamed(1, c.Name); ok {
			c.Name = name
		}
		c.Arguments = z.expand(c.Arguments, true)
		calls[i] = c
	}
	m.ToolCalls = calls
	return m
}

func (z Normalizer) expand(s string, inJSON bool) string {
	if !strings.Contains(s, "${") {
		return s
	}
	for _, r := range z.replacements() {
		path := r[0]
		if inJSON {
			path = strings.Trim(marshal(path), `"`)
		}
		s = strings.ReplaceAll(s, r[1], path)
	}
	return s
}
