package durability

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/eventlog"
	"github.com/transom-run/transom/model"
)

// promises is what the journal of a process that was killed says.
type promises struct {
	events    []string          // ids of events that were published
	sent      []string          // ids of messages that were taken, in order
	steered   map[string]bool   // those that steer
	cleared   []string          // seeds of clears that were answered
	effects   map[string]int    // calls that ran, by id
	truncated int               // truncations and rewinds that were answered
	forked    []string          // ids of copies
	broken    []string          // requests that no provider would take
	said      map[string]bool   // everything else, by its first word
	prompts   map[string]string // of messages, by id
}

func readJournal(path string) (promises, error) {
	p := promises{steered: map[string]bool{}, effects: map[string]int{}, said: map[string]bool{}, prompts: map[string]string{}}
	raw, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return p, err
	}
	for line := range strings.Lines(string(raw)) {
		verb, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		id, more, _ := strings.Cut(rest, " ")
		switch verb {
		case "event":
			if more != event.TypeSessionStart { // kept only once something has happened
				p.events = append(p.events, id)
			}
		case "sent":
			steers, prompt, _ := strings.Cut(more, " ")
			p.sent, p.steered[id], p.prompts[id] = append(p.sent, id), steers == "true", prompt
		case "cleared":
			p.cleared = append(p.cleared, rest)
		case "effect":
			p.effects[rest]++
		case "truncated":
			p.truncated++
		case "forked":
			p.forked = append(p.forked, rest)
		case "broken":
			p.broken = append(p.broken, rest)
		default:
			p.said[verb] = true
		}
	}
	return p, nil
}

// verify resumes the session of a killed process in this one, gives it another
// prompt, and says what is not as it has to be. home holds session-state/s and the
// journal.
func verify(ctx context.Context, home string, hist history, goOn bool) error {
	path := hist.log(home)
	before, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	killed, err := readJournal(filepath.Join(home, "journal"))
	if err != nil {
		return err
	}
	h, store, err := hist.open(ctx, home, nil)
	if err != nil {
		return err
	}
	err = h.resume(goOn)
	if errors.Is(err, eventlog.ErrNotFound) {
		if err = h.end(); err == nil && len(killed.sent) > 0 && !killed.said["deleting"] {
			err = fmt.Errorf("the session is gone, though %d messages had been taken", len(killed.sent))
		}
		return err
	}
	if err != nil && bytes.IndexByte(before, '\n') < 0 && len(killed.sent) == 0 {
		// Killed within the very first write: there is nothing to take up. The id is
		// free again once that is deleted.
		if err = h.rt.DeleteSession(ctx, sessionID); err == nil {
			err = h.create()
		}
		return errors.Join(err, h.end())
	}
	if err == nil && killed.said["deleted"] {
		err = errors.New("the session was deleted, and is there")
	}
	if err == nil && hist.before != nil {
		err = hist.before(h, killed)
	}
	if err == nil {
		err = h.say("«final»")
	}
	if err == nil && hist.then != nil {
		err = hist.then(h, killed)
	}
	if err = errors.Join(err, h.end()); err != nil {
		return err
	}
	after, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if whole := before[:bytes.LastIndexByte(before, '\n')+1]; !bytes.HasPrefix(after, whole) {
		return errors.New("the log has not only grown")
	}
	for _, id := range killed.forked {
		log, damage, err := store.Open(ctx, id)
		if err != nil || len(damage) > 0 {
			return fmt.Errorf("a copy was made, and is %v, %v", damage, err)
		}
		if t, err := tell(log); err != nil || len(t.users) == 0 {
			return fmt.Errorf("a copy holds no message: %w", err)
		}
		if err := log.Close(); err != nil {
			return err
		}
	}
	return judge(ctx, store, filepath.Join(home, "journal"), killed, h.model.last(), hist, goOn)
}

// tale is what the log says in the end.
type tale struct {
	ids        []string
	users      []event.UserMessage
	clears     map[string]string // seed by the id of the clear
	taken      map[string]int    // how often a clear's seed began a turn
	calls      []event.ToolRequest
	starts     map[string]int
	ends       map[string]int
	asked      map[string]int // requests to hosts, by call
	window     []string       // the users' messages that the model is to see, in order
	boundaries int            // of truncations and rewinds
	compact    bool           // a summary stands before them
	outlived   []string       // texts that it is not to see any more
}

func tell(log eventlog.Log) (*tale, error) {
	t := &tale{clears: map[string]string{}, taken: map[string]int{}, starts: map[string]int{}, ends: map[string]int{}, asked: map[string]int{}}
	var shown []*event.Event // what no boundary hides
	for rec, err := range log.Read(0) {
		var damage *eventlog.DamageError
		if errors.As(err, &damage) {
			continue // judge decides whether there may be some
		}
		if err != nil {
			return nil, err
		}
		e, err := event.Decode(rec.Line)
		if err != nil {
			return nil, err
		}
		t.ids = append(t.ids, e.ID)
		if e.Type == event.TypeTruncated {
			p, err := event.As[event.Truncated](e)
			if err != nil {
				return nil, err
			}
			t.boundaries++
			from := slices.IndexFunc(shown, func(e *event.Event) bool { return e.ID == p.UpToEventID })
			if from < 0 {
				return nil, fmt.Errorf("a boundary names the event %s, which is not shown", p.UpToEventID)
			}
			for _, old := range shown[from:] {
				if p, err := event.As[event.UserMessage](old); err == nil && old.Type == event.TypeUserMessage {
					t.outlived = append(t.outlived, p.Content)
				}
			}
			shown = shown[:from]
			continue
		}
		shown = append(shown, e)
		if err := t.record(e); err != nil {
			return nil, err
		}
	}
	return t, t.see(shown)
}

// record takes what is true of a record whether it is still shown or not.
func (t *tale) record(e *event.Event) error {
	if e.AgentID != "" && (e.Type == event.TypeUserMessage || e.Type == event.TypeContextCleared) {
		return nil // an agent's own
	}
	switch e.Type {
	case event.TypeUserMessage:
		p, err := event.As[event.UserMessage](e)
		if err != nil {
			return err
		}
		t.users = append(t.users, p)
		if _, ok := t.clears[p.MessageID]; ok {
			t.taken[p.MessageID]++
		}
	case event.TypeContextCleared:
		p, err := event.As[event.ContextCleared](e)
		if err != nil {
			return err
		}
		t.clears[e.ID] = p.InitialMessage
	case event.TypeAssistantMessage:
		p, err := event.As[event.AssistantMessage](e)
		if err != nil {
			return err
		}
		t.calls = append(t.calls, p.ToolRequests...)
	case event.TypeToolStart:
		if p, err := event.As[event.ToolStart](e); err == nil {
			t.starts[p.ToolCallID]++
		}
	case event.TypeToolComplete:
		if p, err := event.As[event.ToolComplete](e); err == nil {
			t.ends[p.ToolCallID]++
		}
	case event.TypeExternalToolRequested:
		if p, err := event.As[event.ExternalToolRequested](e); err == nil {
			t.asked[p.ToolCallID]++
		}
	}
	return nil
}

// see works out what the model is to see of what is shown.
func (t *tale) see(shown []*event.Event) error {
	seed, seedID := "", ""
	for _, e := range shown {
		if e.AgentID != "" {
			continue
		}
		switch e.Type {
		case event.TypeUserMessage:
			p, err := event.As[event.UserMessage](e)
			if err != nil {
				return err
			}
			if seed != "" && p.MessageID != seedID {
				t.window = append(t.window, seed)
			}
			seed = ""
			t.window = append(t.window, p.Content)
		case event.TypeContextCleared:
			t.outlived = append(t.outlived, t.window...)
			t.window, t.compact, seed, seedID = nil, false, t.clears[e.ID], e.ID
		case event.TypeCompactionComplete:
			if p, err := event.As[event.CompactionComplete](e); err != nil {
				return err
			} else if p.Success {
				t.window, t.compact = nil, true
			}
		}
	}
	return nil
}

// judge compares what was promised with what the log says and the model was asked.
func judge(ctx context.Context, store eventlog.Store, journal string, killed promises, last *model.Request, hist history, goOn bool) error {
	log, damage, err := store.Open(ctx, sessionID)
	if err != nil {
		return err
	}
	defer log.Close()
	if len(damage) > 0 && !hist.kept { // files of hosts only grow: what was torn stays in them
		return fmt.Errorf("the log ends in %v", damage)
	}
	t, err := tell(log)
	if err != nil {
		return err
	}
	all, err := readJournal(journal)
	if err != nil {
		return err
	}
	var wrong []string
	expect := func(ok bool, format string, args ...any) {
		if !ok {
			wrong = append(wrong, fmt.Sprintf(format, args...))
		}
	}
	expect(len(all.broken) == 0, "the model was sent %v", all.broken)
	for _, id := range killed.events {
		expect(slices.Contains(t.ids, id), "the event %s was published, and is not in the log", id)
	}
	slices.Sort(t.ids)
	expect(len(slices.Compact(t.ids)) == len(t.ids), "an event stands in the log twice")
	expect(killed.truncated <= t.boundaries, "%d truncations were answered, and %d are in the log", killed.truncated, t.boundaries)
	t.messages(all, expect)
	t.seeds(killed, hist, goOn, expect)
	t.effects(all, goOn, expect)
	t.sight(last, expect)
	if len(wrong) > 0 {
		return errors.New(strings.Join(wrong, "; "))
	}
	return nil
}

// messages: each message that was taken had its turn, once, in order.
func (t *tale) messages(all promises, expect func(bool, string, ...any)) {
	var order []string
	count := map[string]int{}
	for _, u := range t.users {
		count[u.MessageID]++
		if slices.Contains(all.sent, u.MessageID) && !all.steered[u.MessageID] {
			order = append(order, u.MessageID)
		}
	}
	var want []string
	for _, id := range all.sent {
		expect(count[id] == 1, "the message %s was taken, and stands %d times in the log", all.prompts[id], count[id])
		if !all.steered[id] {
			want = append(want, id)
		}
	}
	for id, n := range count {
		expect(n == 1, "the message %s stands %d times in the log", id, n)
	}
	expect(slices.Equal(order, want), "messages had their turns in another order: %v, not %v", order, want)
}

// seeds: a clear that was answered is there; its seed was taken up once, or waits.
func (t *tale) seeds(killed promises, hist history, goOn bool, expect func(bool, string, ...any)) {
	times := map[string]int{}
	for id, seed := range t.clears {
		times[seed]++
		expect(t.taken[id] <= 1, "the seed %s began %d turns", seed, t.taken[id])
		expect(t.taken[id] == 1 || !goOn || hist.aborts, "the seed %s never began its turn", seed)
	}
	for _, seed := range killed.cleared {
		expect(times[seed] == 1, "the clear with %s was answered, and stands %d times in the log", seed, times[seed])
	}
	for _, c := range t.calls {
		if strings.HasPrefix(c.Name, "clear") && goOn && !hist.aborts {
			var args struct{ Prompt string }
			_ = json.Unmarshal(c.Arguments, &args)
			if t.asked[c.ToolCallID] == 0 {
				continue // it was killed in the middle of the write that begins the call: whether it ran is not known
			}
			expect(times[args.Prompt] == 1, "the call that clears with %s led to %d clears", args.Prompt, times[args.Prompt])
		}
	}
}

// effects: each call began once, ended once, and ran at most once; only a host that
// asked to continue is asked again, under the same request.
func (t *tale) effects(all promises, goOn bool, expect func(bool, string, ...any)) {
	for _, c := range t.calls {
		id := c.ToolCallID
		expect(t.starts[id] == 1 && t.ends[id] == 1, "the call %s began %d times and ended %d times", id, t.starts[id], t.ends[id])
	}
	for id, n := range all.effects {
		expect(n == 1, "the call %s ran %d times", id, n)
		expect(t.starts[id] == 1, "the call %s ran, and the log does not tell of it", id)
	}
	for id, n := range t.asked {
		expect(n == 1, "the host was asked for the call %s under %d ids", id, n)
	}
}

// sight: the model sees exactly the window that the log tells of.
func (t *tale) sight(last *model.Request, expect func(bool, string, ...any)) {
	if last == nil {
		expect(false, "the model was never asked")
		return
	}
	var users []string
	for _, m := range last.Messages {
		if m.Role == model.User {
			users = append(users, m.Text)
		}
		for _, old := range t.outlived {
			expect(!strings.Contains(m.Text, old), "the model sees %s of an older window", old)
		}
	}
	if t.compact && len(users) > 0 {
		expect(strings.HasPrefix(users[0], "Some of the conversation history"), "no summary, but %q", users[0])
		users = users[1:]
	}
	ok := len(users) == len(t.window)
	for i := range min(len(users), len(t.window)) {
		ok = ok && strings.Contains(users[i], t.window[i])
	}
	expect(ok, "the model sees %q, and the window is %q", users, t.window)
}
