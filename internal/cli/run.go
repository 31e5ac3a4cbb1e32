package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/tool"
)

// runOptions are the flags of transom run.
type runOptions struct {
	prompt string
	access access

	home, dir, system, effort string
	resume                    string
	newest                    bool
	clear, yes                bool
	whole, raw, quiet         bool
}

func runCommand() *cobra.Command {
	o := new(runOptions)
	cmd := &cobra.Command{
		Use:   "run -p TEXT",
		Short: "Send one prompt to a model and print its answer",
		Long: `Send one prompt and print the answer as it comes. The answer goes to stdout,
everything else to stderr. The session is kept, and --resume or --continue goes on
with it.

Which model: the flags below; else COPILOT_PROVIDER_BASE_URL, COPILOT_PROVIDER_API_KEY
and COPILOT_MODEL; else the account of a GitHub token in COPILOT_GITHUB_TOKEN,
GH_TOKEN or GITHUB_TOKEN. A key is never an argument: --api-key-env names the
variable that holds it.

Tools: a run has none, unless --clear-tool gives the model the tool clear_context,
with which it can replace its context by a prompt of its own in the middle of its
work. Transom asks on the terminal before a tool runs, unless --yes is given; where
nobody can be asked, the call is denied.

Ctrl-C ends the turn and keeps the session; pressed twice, it ends the program.

Exit codes: 0 answered; 1 the turn failed; 2 the command is not right as written;
3 aborted; 4 no such session; 5 another process is at work on the session.`,
		Example: `  # a model on this machine
  transom run -p "Why is the sky blue?" --base-url http://localhost:11434/v1 --model qwen3
  # any server that speaks chat completions
  transom run -p - --base-url https://api.example.com/v1 --api-key-env EXAMPLE_KEY --model large < question.txt
  # go on with the newest session
  transom run -p "And at sunset?" --continue
  # a script instead of a model: docs/model-files.md
  transom run -p Hello --script hello.yaml
  # record what a model is asked and answers, and play it back without the model
  transom run -p Hello --record hello.yaml
  transom run -p Hello --replay hello.yaml`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			go func() { // the second signal is for the program
				<-ctx.Done()
				stop()
			}()
			return o.run(ctx, cmd)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVarP(&o.prompt, "prompt", "p", "", "what to ask; - reads it from stdin")
	o.access.register(f)
	f.StringVar(&o.effort, "reasoning-effort", "", "passed to the model, such as low, medium or high")
	f.StringVar(&o.system, "system", "", "added to the system message")
	f.StringVar(&o.resume, "resume", "", "go on with the session whose id is, or begins with, `ID`")
	f.BoolVar(&o.newest, "continue", false, "go on with the newest session")
	f.BoolVar(&o.clear, "clear-tool", false, "give the model the tool clear_context")
	f.BoolVarP(&o.yes, "yes", "y", false, "run tools without asking")
	f.BoolVar(&o.yes, "allow-all", false, "the same as --yes")
	f.StringVar(&o.dir, "dir", "", "the session's working directory (default: this one)")
	f.StringVar(&o.home, "home", "", homeHelp)
	f.BoolVar(&o.whole, "no-stream", false, "ask for the answer in one piece")
	f.BoolVar(&o.raw, "json", false, "print the session's events instead of the answer, one JSON object a line")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "print nothing to stderr but questions and errors")
	return cmd
}

// closeTime bounds how long the end of a run waits for a session that does not
// end.
const closeTime = 5 * time.Second

func (o *runOptions) run(ctx context.Context, cmd *cobra.Command) error {
	prompt, err := o.readPrompt(cmd.InOrStdin())
	if err != nil {
		return err
	}
	access, err := o.access.open(os.Getenv, o.dir)
	if err != nil {
		return err
	}
	err = o.converse(ctx, cmd, access, prompt)
	if end := access.close(); err == nil {
		err = end // beside a failure it would only distract
	}
	return err
}

// converse opens a session and has the prompt answered in it.
func (o *runOptions) converse(ctx context.Context, cmd *cobra.Command, access *accessed, prompt string) error {
	rt, err := transom.Open(transom.Config{Home: o.home, Dir: o.dir, ApproveAll: o.yes, ContextWindow: o.access.window})
	if err != nil {
		return err
	}
	show := newShow(cmd, o)
	s, err := o.session(ctx, rt, access)
	if err == nil {
		show.note("session %s", s.ID())
		err = converse(ctx, s, prompt, show)
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	if s != nil {
		err = errors.Join(err, s.Close(end))
	}
	return errors.Join(err, rt.Close(end))
}

func (o *runOptions) readPrompt(in io.Reader) (string, error) {
	text := o.prompt
	if text == "-" {
		b, err := io.ReadAll(in)
		if err != nil {
			return "", fmt.Errorf("read the prompt from stdin: %w", err)
		}
		text = string(b)
	}
	if strings.TrimSpace(text) == "" {
		return "", usage("what should the model be asked? Give -p TEXT, or -p - to read the text from stdin.")
	}
	return text, nil
}

// session creates a session, or takes one up.
func (o *runOptions) session(ctx context.Context, rt *transom.Runtime, a *accessed) (s *transom.Session, err error) {
	var tools []tool.Tool
	if o.clear {
		clear, err := clearTool(func() *transom.Session { return s })
		if err != nil {
			return nil, err
		}
		tools = append(tools, clear)
	}
	system := transom.SystemMessage{Content: o.system}
	if o.resume == "" && !o.newest {
		s, err = rt.CreateSession(ctx, transom.SessionConfig{
			Model: a.model, ReasoningEffort: o.effort, Streaming: !o.whole, Tools: tools, SystemMessage: system,
			Provider: a.provider, Custom: a.custom, RequestPermission: true,
		})
		return s, err
	}
	if o.resume != "" && o.newest {
		return nil, usage("--resume and --continue exclude each other: this session, or the newest")
	}
	stored, _, err := findSession(ctx, rt.Home(), o.resume)
	if err != nil {
		return nil, err
	}
	streaming := !o.whole
	cfg := transom.ResumeConfig{
		Streaming: &streaming, Tools: tools, SystemMessage: &system, Provider: a.provider, Custom: a.custom, RequestPermission: true,
		Model: given(o.access.model), ReasoningEffort: given(o.effort), Dir: given(o.dir),
	}
	s, err = rt.ResumeSession(ctx, stored.ID, cfg)
	return s, err
}

// given is nil for a flag that was left out.
func given(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// converse sends the prompt and shows what comes of it, until the session is idle
// again: seeded turns and what waited from before included.
func converse(ctx context.Context, s *transom.Session, prompt string, show *show) error {
	if _, err := s.Send(ctx, transom.Message{Prompt: prompt}); err != nil {
		return err
	}
	idle, err := show.follow(ctx, s)
	if err == nil || idle || ctx.Err() == nil {
		return err
	}
	// Ctrl-C: the turn is ended in order, so that its log is whole.
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	show.ending = true
	if err := s.Abort(end); err != nil {
		return err
	}
	if _, err := show.follow(end, s); err != nil {
		return err
	}
	return errAborted
}

var errAborted = &Error{CodeAborted, errors.New("aborted; the session is kept")}

// show is what the user of a run sees.
type show struct {
	out, err   io.Writer
	raw, quiet bool
	safe       bool // stdout is a terminal: disarm what is printed

	in   *asker
	echo bool // answers are typed at a terminal, which shows them

	message string // whose text is being printed
	newline bool   // the text so far ends a line
	failure error  // of the last turn
	retried string // why the model was asked again last
	ending  bool   // no more questions
}

func newShow(cmd *cobra.Command, o *runOptions) *show {
	return &show{
		out: cmd.OutOrStdout(), err: cmd.ErrOrStderr(), in: newAsker(cmd.InOrStdin()), echo: isTerminal(cmd.InOrStdin()),
		raw: o.raw, quiet: o.quiet, safe: isTerminal(cmd.OutOrStdout()), newline: true,
	}
}

// note tells something beside the answer.
func (w *show) note(format string, args ...any) {
	if !w.quiet && !w.raw {
		w.breakLine()
		fmt.Fprintf(w.err, "· "+format+"\n", args...)
	}
}

// breakLine ends the line of the answer that is being printed.
func (w *show) breakLine() {
	if !w.newline {
		w.newline = true
		io.WriteString(w.out, "\n")
	}
}

func (w *show) text(s string) error {
	if s == "" {
		return nil
	}
	if w.safe {
		s = printable(s)
	}
	w.newline = strings.HasSuffix(s, "\n")
	_, err := io.WriteString(w.out, s)
	return err
}

// follow shows the session's events until it is idle.
func (w *show) follow(ctx context.Context, s *transom.Session) (idle bool, err error) {
	for e, err := range s.Events().All(ctx) {
		if err != nil {
			return false, err
		}
		if err := w.event(e); err != nil {
			return false, fmt.Errorf("write the answer: %w", err)
		}
		switch p := e.Payload.(type) {
		case event.PermissionRequested:
			if w.ending {
				continue
			}
			if err := w.decide(ctx, s, p); err != nil {
				return false, err
			}
		case event.SessionIdle:
			w.breakLine()
			if p.Aborted {
				return true, errAborted
			}
			return true, w.failure
		}
	}
	return false, errors.New("the session ended before the turn did")
}

// decide answers a permission question. Questions stand in the stream of events
// like everything else, so that what is printed keeps its order.
func (w *show) decide(ctx context.Context, s *transom.Session, p event.PermissionRequested) error {
	var q struct {
		ToolName string          `json:"toolName"`
		Args     json.RawMessage `json:"args"`
	}
	if err := json.Unmarshal(p.PermissionRequest, &q); err != nil {
		return fmt.Errorf("read the permission question: %w", err)
	}
	d := w.ask(ctx, q.ToolName, q.Args)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	raw, err := json.Marshal(d)
	if err == nil {
		s.Post(transom.AnswerPermission{RequestID: p.RequestID, Decision: raw}, nil)
	}
	return err
}

func (w *show) event(e *event.Event) error {
	if w.raw {
		if p, ok := e.Payload.(event.SessionError); ok {
			w.failure = errors.New(p.Message)
		}
		if e.Private() {
			return nil
		}
		_, err := fmt.Fprintf(w.out, "%s\n", e.Line)
		return err
	}
	switch p := e.Payload.(type) {
	case event.MessageDelta:
		w.message = p.MessageID
		return w.text(p.DeltaContent)
	case event.AssistantMessage:
		w.failure = nil
		if w.message != p.MessageID {
			if err := w.text(p.Content); err != nil {
				return err
			}
		}
		w.breakLine()
	case event.TurnRetry:
		if p.Reason == w.retried {
			w.note("the model is asked again, for the same reason")
			return nil
		}
		w.retried = p.Reason
		w.note("the model is asked again: %s", oneLine(p.Reason, 200))
	case event.ToolStart:
		w.note("%s %s", printable(p.ToolName), oneLine(string(p.Arguments), 200))
	case event.ToolComplete:
		w.note("%s", oneLine(outcome(p), 200))
	case event.ContextCleared:
		w.note("context cleared: %s removed; the model goes on with the prompt that the clear gave", plural(p.MessagesCleared, "message", "messages"))
	case event.SessionWarning:
		w.note("warning: %s", printable(p.Message))
	case event.SessionInfo:
		w.note("%s", printable(p.Message))
	case event.SessionError:
		w.failure = errors.New(printable(p.Message))
	}
	return nil
}

// outcome is how a call ended, in words.
func outcome(p event.ToolComplete) string {
	switch {
	case p.Error != nil:
		return "failed: " + p.Error.Message
	case p.Result != nil:
		return "done: " + p.Result.Content
	}
	return "done"
}

// ask asks the user whether a call may run.
func (w *show) ask(ctx context.Context, name string, args json.RawMessage) transom.Decision {
	for {
		w.breakLine()
		fmt.Fprintf(w.err, "? Run %s %s\n  [y]es, [a]lways in this session, [n]o: ", printable(name), oneLine(string(args), 600))
		answer, ok := w.in.line(ctx)
		if !w.echo {
			fmt.Fprintln(w.err, answer)
		}
		switch {
		case ctx.Err() != nil:
			fmt.Fprintln(w.err)
			return transom.Decision{Kind: "user-not-available"}
		case !ok:
			fmt.Fprintln(w.err, "  nobody answers: denied. Give --yes to run tools without asking.")
			return transom.Decision{Kind: "user-not-available"}
		case answer == "y" || answer == "yes":
			return transom.Decision{Kind: "approve-once"}
		case answer == "a" || answer == "always":
			return transom.Decision{Kind: "approve-for-session"}
		case answer == "n" || answer == "no":
			return transom.Decision{Kind: "reject"}
		}
	}
}
