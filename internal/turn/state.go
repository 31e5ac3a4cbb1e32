package turn

import (
	"encoding/json"
	"time"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/internal/policy"
	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/tool"
	"github.com/transom-run/transom/trace"
)

// State is a session. The zero State is one that has not begun.
type State struct {
	Durable
	Live Live
}

// Durable is what a session's log says: the fold of its records.
type Durable struct {
	SessionID string
	Started   time.Time
	Events    int64 // persisted public events, those behind a boundary too
	Thread

	Model     string
	Effort    string
	Tier      string // of the context window, as a host chose it; "" is none
	Mode      string
	Dir       string
	Name      string        // as a host set it
	AutoNamed bool          // Name is Transom's or a host's own guess
	Place     event.Context // what is known of Dir
	Title     string        // of the first prompt
	System    string        // the system message the model was last given

	Clears   uint64         // clears made: the number of the window
	Steering []event.Queued // to be shown at the next model call, in order
	Queue    []event.Queued // to have a turn each, in order
	Loop     Loop
	Origin   string   // id of the message that the newest loop goes back to
	Agents   []*Agent // sub-agents, oldest first
	Selected string   // the custom agent that the session's own agent is; "" is the default one

	Canvases              []event.CanvasRecorded // open, oldest first
	Found                 []string               // tools that searches found since the last clear, in their order
	Schedules             []Schedule             // by id; never changed in place
	Scheduled             int64                  // the highest id that a schedule was given
	Approved              []string               // what lasting approvals of the session cover
	Ordered               int64                  // how many messages came to wait so far
	AllowAll              bool                   // every call runs unasked, as the log says
	Prompts               int64                  // of users
	LastInput, LastOutput int64                  // tokens of the newest model call
	Usage                 map[string]event.ModelMetric
	APIMs                 int64
	Changes               event.CodeChanges // by tools, sub-agents' too

	ClientMetadata map[string]string // what clients keep with the session; never changed in place

	Boundaries int64              // truncations made
	Tracked    bool               // files that Transom's tools change are captured
	Rewind     *event.RewindBegun // a rewind whose files are not all back, or whose boundary is missing
}

// Loop is an agent loop: model calls and tool calls from one prompt to the end
// of the work on it. The zero Loop is none.
type Loop struct {
	Open          bool
	InteractionID string
	MessageID     string // of the message it goes back to
	ByHook        bool   // its first message is a hook's
	Turn          int    // number of the model call in the loop, from 0
	InTurn        bool   // a turn_start without its turn_end
	Answered      bool   // the model's answer of this turn is in the log
	Cleared       string // id of the clear made in this loop
	Calls         []Call // of the newest answer; never changed in place
}

// Call is one tool call.
type Call struct {
	ID       string
	Name     string
	Args     json.RawMessage
	Started  bool
	Done     bool
	Success  bool
	Type     tool.ResultType // how it ended; "" while open
	Terminal bool
	Orphan   bool // a clear was made while it was open

	Permission string          // id of its open permission question
	Ask        json.RawMessage // what was asked
	External   string          // id of its open request to a host
	Agent      string          // the sub-agent whose end it waits for
	Granted    bool            // its permission question was answered with yes
}

// open reports whether the loop waits for the call.
func (c *Call) open() bool { return !c.Done }

// Live is what only this process knows of a session.
type Live struct {
	Settings Settings
	Clients  []Client // in the order in which they attached
	Offers   *Offers  // the tools the model is offered; nil is none
	Gone     []string // tools withdrawn since the model was last told of its tools
	Fresh    bool     // the model's tools have changed since the last loop

	Agents  []*LiveAgent // sub-agents that work; never changed in place
	Readers []reader     // calls that wait for one of them; never changed in place
	Resting bool         // there is nothing to do until sub-agents have reported
	Failure string       // why a sub-agent could not go on

	Turn    uint64     // serial of the newest fence
	Model   *ModelCall // in flight; never changed in place
	Running []string   // ids of calls that run in this process

	// Parked: the loop stands in the log but nothing drives it, since the
	// process that did is gone.
	Parked bool
	// Headers are added to the model calls of the running loop.
	Headers map[string]string
	// Secret headers of messages that wait, by message id: never in the log.
	Waiting map[string]map[string]string
	Paused  bool // nothing that is queued gets its turn
	Titled  bool // the title was announced

	Compacting    *compaction // a summary being made
	CompactSerial uint64      // of the newest one
	CompactedAt   int         // size of the window after the newest attempt, in tokens
	Unmade        bool        // no summary came of that attempt
	Awaiting      bool        // the next model call waits for the summary, or to be counted
	// Squeezed: a summary was begun for a model call that does not fit, since the
	// model last answered. Overflow is the refusal that it is for; nil: an estimate.
	Squeezed bool
	Overflow *model.Error
	// Scale is how far estimates fall short of the figures of the model in use, and
	// Ceiling a size that it refused; 0 is not known.
	Scale   float64
	Ceiling int
	// Counted is the newest count of the window; nil: none. Counting is the one that the
	// next model call waits for.
	Counted     *count
	Counting    *count
	CountSerial uint64 // of the newest one

	Prep       *preparation      // messages that wait for hooks; nil: none
	Waits      []wait            // hooks that were asked; never changed in place
	HookSerial uint64            // of the newest hook asked
	Notes      map[string]string // what hooks added to results, by call; never changed in place
	Greeted    bool              // the session-start hook was asked
	Resumed    bool              // the session was loaded from its log
	StopActive bool              // the running loop was begun by an agent-stop hook
	Blocks     int               // how often such hooks went on for one prompt
	Asked      bool              // a model call was made in this process
	Closed     bool
	BackSerial uint64 // of the newest history that went back
	Noticed    notice // the newest Settings.Notice that the model was told
}

// notice is a text that was told in a window.
type notice struct {
	Window uint64 // number of clears made
	Text   string
}

// Settings is what hosts configure.
type Settings struct {
	Streaming bool
	// Traced: somebody makes traces of the session. Trace is the place in a trace that
	// its host gave for work which names none of its own.
	Traced bool
	Trace  trace.Context
	System string // the system message; "" is none
	// Wanted is the number of the system message that the next model call needs,
	// Made the number of System. Where they differ, the next one is composed first;
	// where Wanted is 0, System is as the host gave it and stays so.
	Wanted, Made uint64
	// Awaited counts what the session was given of MCP servers, Arrived how much of
	// that was waited for: where they differ, the next model call waits.
	Awaited, Arrived uint64
	// Kind is which kind of agent this one is; "" is the default one. OwnArrived is
	// what was waited for of the servers that its kind has of its own.
	Kind       string
	OwnArrived uint64
	// OwnServers are the MCP servers that kinds of agents have of their own, by kind;
	// nil is none. It is never changed in place.
	OwnServers map[string]OwnServers
	TokenLimit int // of the window
	// Count: windows can be counted, where the vocabulary of the model is known.
	Count      bool
	ApproveAll bool
	Compaction Compaction
	Rules      policy.Rules // of hosts
	Paths      Paths
	BuiltIns   *tool.Registry // Transom's own tools; nil is none
	Servers    *tool.Registry // tools of MCP servers; nil is none
	FilesDir   string         // where results too large for the window are kept
	Remote     bool           // the session lives on another server
	Transcript string         // where the log can be read, for hooks; "" is nowhere
	Version    string
	Available  Filter     // tools that may be offered; the zero Filter is all
	Excluded   Filter     // tools that may not be
	Hidden     Filter     // tools that this agent is not offered
	Agent      Filter     // what the agent's own definition lets it use
	Agents     []AgentDef // the kinds of agents that can be started
	Search     Search     // which tools are held back
	Credits    float64    // what the session may cost, in AI credits; 0 is anything
	FileHooks  bool       // hooks of files are asked, before those of clients
	Notice     string     // what the model is told behind a prompt, once in a window; "" is nothing
}

// OwnServers are the MCP servers of one kind of agent, which are offered to the
// agents of that kind alone.
type OwnServers struct {
	// Awaited numbers what the kind was given of them, among all kinds.
	Awaited uint64
	Tools   *tool.Registry // of those that are connected to; nil is none
}

// Paths is where tools may work, besides the working directory.
type Paths struct {
	Primary string   // instead of the working directory; "" is that
	Extra   []string // absolute
	NoTemp  bool     // the system's directory for temporary files is not one of them
	Any     bool     // everywhere
}

// ModelCall is a request under way.
type ModelCall struct {
	Fence     Fence
	MessageID string
	Shown     bool // a message_start was published
	Started   time.Time
	// Tokens is the size of the whole request, as far as it was known; Estimate is the
	// estimate alone.
	Tokens, Estimate int
}

// Fence says which state of the session an effect belongs to.
type Fence struct {
	Agent  string // the sub-agent; "" is the session's own
	Turn   uint64 // serial of the model call or batch
	Window uint64 // number of clears made
	Call   string // the tool call; "" for a model call
}

// Phase is where a session stands.
type Phase string

// The phases.
const (
	// Unborn: no session.start was written yet.
	Unborn Phase = "unborn"
	// Idle: nothing to do; a queue may wait for the next message.
	Idle Phase = "idle"
	// Preparing: messages, or the end of a loop, wait for hooks, or messages for a
	// history that goes back.
	Preparing Phase = "preparing"
	// Thinking: a model call is under way.
	Thinking Phase = "thinking"
	// Acting: tool calls are open.
	Acting Phase = "acting"
	// Stranded: the log holds an unfinished loop that nothing drives.
	Stranded Phase = "stranded"
	// Ending: the last client has left; the session-end hook is asked.
	Ending Phase = "ending"
	// Closed: the session has ended in this process.
	Closed Phase = "closed"
)

// Phase returns where the session stands.
func (s *State) Phase() Phase {
	switch {
	case s.Live.Closed:
		return Closed
	case s.SessionID == "":
		return Unborn
	case s.Live.Prep != nil && s.Live.Prep.ending:
		return Ending
	case s.Live.Prep != nil:
		return Preparing
	case !s.Loop.Open:
		return Idle
	case s.Live.Parked:
		return Stranded
	case s.Live.Model != nil || s.Live.Awaiting:
		return Thinking
	default:
		return Acting
	}
}

// Busy reports whether the session has work that goes on by itself or waits for
// an attached client: while it has, its process keeps the right to write.
func (s *State) Busy() bool {
	switch s.Phase() {
	case Thinking, Ending:
		return true
	case Acting, Preparing:
		if len(s.Live.Clients) > 0 || len(s.Live.Running) > 0 || s.goingBack() != nil {
			return true
		}
	}
	return s.awaited() && (len(s.Live.Clients) > 0 || s.agentsWork())
}

// Abandoned reports whether nobody is attached and nothing runs: the session can
// be unloaded, to be resumed from its log.
func (s *State) Abandoned() bool {
	return len(s.Live.Clients) == 0 && !s.Live.works() && !s.agentsWork() && s.goingBack() == nil
}
