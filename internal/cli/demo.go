package cli

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/model/modelfile"
	"github.com/transom-run/transom/model/scripted"
	"github.com/transom-run/transom/tool"
)

//go:embed demo.yaml
var demoScript []byte

// demoPrompts are what the demo's host sends.
var demoPrompts = []string{
	"Friday we are six for dinner. We can spend 120 euros, and Ines does not eat fish. What is in season?",
	"Agreed. That settles the menu; now we need the shopping list. Start it with a clear head.",
}

const demoSystem = "You help with dinners. When a piece of work is settled, clear the context and go on with what matters."

func demoCommand() *cobra.Command {
	var home string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show a host clearing its model's context: no network, no account",
		Long: `Play the main job of transom from beginning to end, with a model that is a script
inside this program. Shown are what the model sees before the clear, the clear
itself, what the model sees after it, the answer, and where the session's log is.

Needs no network, no account and no settings. Writes one session, to a new
directory under the system's one for temporary files, or to --home.`,
		Example: `  transom demo
  transom demo --home ./state && transom sessions show --home ./state`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := demoHome(home)
			if err != nil {
				return err
			}
			d, err := playDemo(cmd.Context(), dir)
			if err != nil {
				return fmt.Errorf("the demo did not work: %w", err)
			}
			p := &page{w: cmd.OutOrStdout()}
			d.tell(p)
			d.tellLog(p, command(cmd), dir, home == "")
			return p.err
		},
	}
	cmd.Flags().StringVar(&home, "home", "", "keep the session under this directory (default: a new temporary one)")
	return cmd
}

func demoHome(home string) (string, error) {
	if home != "" {
		return filepath.Abs(home)
	}
	return os.MkdirTemp("", "transom-demo-")
}

// demo is what happened.
type demo struct {
	sessionID string
	requests  []model.Request // to the model
	events    []*event.Event  // as the host saw them
	answer    string
}

// playDemo is the host: it opens a session with two tools, and sends two prompts.
func playDemo(ctx context.Context, home string) (*demo, error) {
	file, err := modelfile.Parse("demo.yaml", demoScript)
	if err != nil {
		return nil, err
	}
	script := scripted.New(scripted.Config{File: file, Record: true})
	rt, err := transom.Open(transom.Config{Home: home, Provider: script, Model: "demo"})
	if err != nil {
		return nil, err
	}
	defer rt.Close(context.WithoutCancel(ctx))

	var s *transom.Session
	season, err := tool.Func("in_season", "What is in season in a month", func(context.Context, struct {
		Month string `json:"month"`
	}) (string, error) {
		return "pumpkin, leek, pear, walnut", nil
	})
	if err != nil {
		return nil, err
	}
	clear, err := clearTool(func() *transom.Session { return s })
	if err != nil {
		return nil, err
	}
	s, err = rt.CreateSession(ctx, transom.SessionConfig{
		Tools:         []tool.Tool{season, clear},
		OnPermission:  transom.ApproveAll,
		SystemMessage: transom.SystemMessage{Mode: "replace", Content: demoSystem},
	})
	if err != nil {
		return nil, err
	}
	d := &demo{sessionID: s.ID()}
	for _, prompt := range demoPrompts {
		m, err := s.SendAndWait(ctx, transom.Message{Prompt: prompt})
		if err != nil {
			return nil, err
		}
		if m == nil {
			return nil, errors.New("the model gave no answer")
		}
		d.answer = m.Content
	}
	if err := s.Close(ctx); err != nil {
		return nil, err
	}
	for e, err := range s.Events().All(ctx) {
		if err != nil {
			return nil, err
		}
		d.events = append(d.events, e)
	}
	d.requests = script.Requests()
	return d, nil
}

// clearTool is the tool with which a model clears its own context: what a host
// needs for it is these few lines.
func clearTool(session func() *transom.Session) (tool.Tool, error) {
	t, err := tool.Func("clear_context", "Clear the conversation and start a fresh context window. "+
		"The prompt is all that is known in it: say there what has to be done and what has to be known for that.",
		func(ctx context.Context, in struct {
			Prompt string `json:"prompt" jsonschema:"the first message of the fresh window"`
		}) (string, error) {
			n, err := session().History().ClearContext(ctx, in.Prompt)
			return fmt.Sprintf("Cleared %d messages.", n), err
		})
	t.IsTerminal, t.Defer = true, "never"
	return t, err
}

// tell prints what happened.
func (d *demo) tell(p *page) {
	first, last := d.requests[len(d.requests)-2], d.requests[len(d.requests)-1]
	p.para("A host clears what its model remembers, in the middle of a turn.")
	p.line("")
	p.para("The model is a script inside this program. It answers only where it is sent exactly the messages that the script expects. (The date and time before each user message are left out here.)")

	p.head("Window 1")
	p.para("The host has sent two prompts. This is all the model was sent with the second:")
	p.line("")
	d.messages(p, first.Messages)
	p.line("")
	p.para("It answers by calling a tool of the host:")
	p.line("")
	call := d.first(func(e *event.Event) bool {
		s, ok := e.Payload.(event.ToolStart)
		return ok && s.ToolName == "clear_context"
	})
	if s, ok := payload[event.ToolStart](call); ok {
		p.item("call", s.ToolName+" "+string(s.Arguments))
	}

	p.head("The clear")
	p.para("The tool's handler calls session.history.clearContext while the runtime waits for that same handler. The host sees these events:")
	p.line("")
	d.clear(p)
	p.line("")
	p.para("The six messages are the conversation above with the call that cleared it. The tool is terminal: its success ends the turn, and the model never sees its result. The runtime then starts the next turn by itself, with the prompt of the clear (its seed): the host sends nothing.")

	p.head("Window 2")
	p.para("This is all the model was sent in that turn:")
	p.line("")
	d.messages(p, last.Messages)

	p.head("The answer")
	p.item("assistant", d.answer)
}

// messages prints a window without what stands before each user message in every
// session: the date and time.
func (d *demo) messages(p *page, msgs []model.Message) {
	shown := slices.Clone(msgs)
	for i := range shown {
		if at := strings.Index(shown[i].Text, dateEnd); at >= 0 && strings.HasPrefix(shown[i].Text, "<current_datetime>") {
			shown[i].Text = strings.TrimLeft(shown[i].Text[at+len(dateEnd):], "\n")
		}
	}
	short := *p
	short.cut = resultLines
	showMessages(&short, shown)
	p.err = short.err
}

const dateEnd = "</current_datetime>"

// clear prints the events of the clear, up to the beginning of the seeded turn.
func (d *demo) clear(p *page) {
	cleared := d.first(func(e *event.Event) bool { return e.Type == event.TypeContextCleared })
	for _, e := range d.events[max(0, slices.Index(d.events, cleared)):] {
		switch c := e.Payload.(type) {
		case event.ContextCleared:
			p.line("  %s", e.Type)
			p.item("", fmt.Sprintf("messagesCleared: %d", c.MessagesCleared))
			p.item("", "initialMessage: "+c.InitialMessage)
		case event.ToolComplete:
			p.line("  %s", e.Type)
			if c.Result != nil {
				p.item("", "content: "+c.Result.Content)
			}
		case event.UserMessage:
			p.line("  %s", e.Type)
			p.item("", "source: "+c.Source)
			p.item("", "content: "+c.Content)
			return
		}
	}
}

func (d *demo) first(is func(*event.Event) bool) *event.Event {
	if i := slices.IndexFunc(d.events, is); i >= 0 {
		return d.events[i]
	}
	return nil
}

func payload[T event.Payload](e *event.Event) (p T, ok bool) {
	if e == nil {
		return p, false
	}
	p, ok = e.Payload.(T)
	return p, ok
}

// tellLog says where the log is and how it is read.
func (d *demo) tellLog(p *page, self, home string, temporary bool) {
	p.head("The log")
	p.para("A clear deletes nothing. The session's log holds both windows:")
	p.line("")
	p.line("  %s", filepath.Join(home, "session-state", d.sessionID, "events.jsonl"))
	p.line("")
	p.line("  %s sessions show --home %s", self, shellWord(home))
	if temporary {
		p.line("  rm -r %s", shellWord(home))
	}
}

// command is how the user started this program, as far as it can be typed again.
func command(cmd *cobra.Command) string {
	if strings.Contains(filepath.ToSlash(os.Args[0]), "/go-build") {
		return "go run ./cmd/transom"
	}
	if strings.ContainsRune(os.Args[0], filepath.Separator) {
		return shellWord(os.Args[0])
	}
	return cmd.Root().Name()
}

// shellWord quotes what a shell would take apart.
func shellWord(s string) string {
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !strings.ContainsRune("-_./:=@,+\\", r) && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
