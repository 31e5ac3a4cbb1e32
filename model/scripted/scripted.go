package scripted

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/model/modelfile"
)

// CodeNoReply is the Code of the error for a request that the script does not
// answer.
const CodeNoReply = "no_reply"

// here stands where errors of other providers have a URL.
const here = "scripted:"

// Config says what is played. Exactly one of File and Replies is set.
type Config struct {
	// File chooses the reply by the request.
	File *modelfile.File
	// Replies follow one another, a request each. See [Say], [Call], [Fail].
	Replies []modelfile.Message
	// Models are on offer with Replies; nil: one named "scripted".
	Models []modelfile.Model
	// Normalizer prepares requests for the comparison with File.
	Normalizer modelfile.Normalizer
	// Once plays each answer of File once: what a replay of recorded traffic wants.
	Once bool
	// Record keeps every request, for [Provider.Requests]. With Replies requests
	// are always kept.
	Record bool
	// NewID makes ids for calls that have none in the script. nil: call_ and 16
	// random hexadecimal digits.
	NewID func() string
}

// Provider plays a script.
type Provider struct {
	cfg     Config
	matcher *modelfile.Matcher
	models  []modelfile.Model

	mu       sync.Mutex
	played   int            // replies of Replies that are done
	answers  int            // answers begun, for response ids
	attempts map[place]int  // failed attempts before a reply, until it is played
	done     map[place]bool // the answers that are played, with Once
	requests []model.Request
}

// place is where a script fails on purpose, for one session.
type place struct {
	conversation, index int
	session             string
}

// Open plays the file at path.
func Open(path string) (*Provider, error) {
	f, err := modelfile.Load(path)
	if err != nil {
		return nil, err
	}
	return New(Config{File: f}), nil
}

// New plays what cfg says. A Config without File and Replies plays nothing:
// every request fails.
func New(cfg Config) *Provider {
	p := &Provider{cfg: cfg, models: cfg.Models, attempts: make(map[place]int), done: make(map[place]bool)}
	if cfg.File != nil {
		p.matcher = modelfile.NewMatcher(cfg.File, cfg.Normalizer)
		p.models = cfg.File.Models
	} else {
		p.cfg.Record = true
	}
	if len(p.models) == 0 {
		p.models = []modelfile.Model{{ID: "scripted", Name: "Scripted model"}}
	}
	if p.cfg.NewID == nil {
		p.cfg.NewID = func() string { return fmt.Sprintf("call_%016x", rand.Uint64()) }
	}
	return p
}

// Say is a reply of text.
func Say(text string) modelfile.Message {
	return modelfile.Message{Role: model.Assistant, Content: text}
}

// Call is a reply that calls a tool; arguments are JSON text.
func Call(name, arguments string) modelfile.Message {
	return Calls(model.Call{Name: name, Arguments: arguments})
}

// Calls is a reply of several calls. Those without an ID get one.
func Calls(calls ...model.Call) modelfile.Message {
	return modelfile.Message{Role: model.Assistant, ToolCalls: calls}
}

// Fail is a request that fails with an HTTP status, every time; the reply after
// it is never reached. For a failure and then success, set Failures of a reply.
func Fail(status int, message string) modelfile.Message {
	return modelfile.Message{Role: model.Assistant, Failures: []modelfile.Failure{{Status: status, Message: message, Times: modelfile.Always}}}
}

// Models lists the models of the script.
func (p *Provider) Models(context.Context) ([]model.Info, error) {
	infos := make([]model.Info, len(p.models))
	for i, m := range p.models {
		infos[i] = m.Info()
	}
	return infos, nil
}

// Requests returns the requests so far, in the order of their arrival. They
// share messages with what was passed in, which nobody changes.
func (p *Provider) Requests() []model.Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.requests)
}

// plan is what to do with a request.
type plan struct {
	answer  []modelfile.Message // several are the choices of one answer
	failure *modelfile.Failure  // how this attempt fails
	silent  bool                // never answer
	id      string              // of the response
	model   string
}

// plan decides about a request and counts it.
func (p *Provider) plan(req *model.Request) (*plan, *model.Error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cfg.Record {
		kept := *req
		kept.Messages, kept.Tools = slices.Clone(req.Messages), slices.Clone(req.Tools)
		p.requests = append(p.requests, kept)
	}
	p.answers++
	pl := &plan{id: fmt.Sprintf("scripted-%d", p.answers), model: req.Model}
	if p.matcher == nil {
		return p.next(pl, req)
	}
	match, err := p.matcher.Find(req, func(conversation, index int) bool {
		if conversation >= 0 {
			return !p.done[place{conversation, index, ""}]
		}
		times := p.cfg.File.Errors[index].Failure.Times
		at := place{conversation, index, req.SessionID}
		if times == modelfile.Always {
			return true
		}
		p.attempts[at]++
		return p.attempts[at] <= max(times, 1)
	})
	if err != nil {
		return nil, noReply(err)
	}
	switch {
	case match.Rule != nil:
		pl.failure = &match.Rule.Failure
	case match.Silent:
		pl.silent = true
		p.finished(match)
	default:
		pl.answer = match.Answer
		pl.failure = p.failure(place{match.Conversation, match.Index, req.SessionID}, match.Answer[0].Failures)
		if pl.failure == nil {
			p.finished(match)
		}
	}
	return pl, nil
}

// finished notes that an answer is played.
func (p *Provider) finished(m *modelfile.Match) {
	if p.cfg.Once {
		p.done[place{m.Conversation, m.Index, ""}] = true
	}
}

// Rest lists the recorded answers that no request has asked for yet, for people:
// a replay that leaves some was not the run that was recorded.
func (p *Provider) Rest() []string {
	if p.matcher == nil || !p.cfg.Once {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []string
	for i, c := range p.cfg.File.Conversations {
		at := -1 // the index in the normal form
		for k := range c.Messages {
			m := &c.Messages[k]
			if k > 0 && m.Role == model.Assistant && c.Messages[k-1].Role == model.Assistant {
				continue
			}
			at++
			fails := len(m.Failures) > 0 && m.Failures[len(m.Failures)-1].Times == modelfile.Always
			if m.Role == model.Assistant && !fails && !p.done[place{i, at, ""}] {
				out = append(out, fmt.Sprintf("conversations[%d].messages[%d] (line %d): %.60q", i, k, m.Line, cmp.Or(m.Content, "a call")))
			}
		}
	}
	return out
}

// next plans the next of Replies.
func (p *Provider) next(pl *plan, req *model.Request) (*plan, *model.Error) {
	if p.played >= len(p.cfg.Replies) {
		last := "none"
		if n := len(req.Messages); n > 0 {
			last = fmt.Sprintf("%s %.80q", req.Messages[n-1].Role, req.Messages[n-1].Text)
		}
		return nil, noReply(fmt.Errorf("the script has %d replies, and all are played; this request has %d messages, the last: %s",
			len(p.cfg.Replies), len(req.Messages), last))
	}
	reply := p.cfg.Replies[p.played]
	pl.failure = p.failure(place{0, p.played, ""}, reply.Failures)
	if pl.failure == nil {
		p.played++
	}
	pl.answer = []modelfile.Message{reply}
	return pl, nil
}

// failure counts an attempt and returns how it fails; nil where it succeeds.
func (p *Provider) failure(at place, list []modelfile.Failure) *modelfile.Failure {
	if len(list) == 0 {
		return nil
	}
	n := p.attempts[at]
	for i := range list {
		times := max(list[i].Times, 1)
		if list[i].Times == modelfile.Always || n < times {
			p.attempts[at]++
			return &list[i]
		}
		n -= times
	}
	delete(p.attempts, at)
	return nil
}

func noReply(err error) *model.Error {
	return &model.Error{Kind: model.Query, Code: CodeNoReply, Endpoint: here, Err: err,
		Msg: "The scripted model has no reply: " + err.Error()}
}

// Stream plays the answer; see [model.Provider].
func (p *Provider) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		pl, e := p.plan(req)
		if e != nil {
			yield(model.Chunk{}, e)
			return
		}
		stopped := false
		err := p.play(ctx, pl, req.Stream, func(c model.Chunk) bool {
			stopped = !yield(c, nil)
			return !stopped
		})
		if err != nil && !stopped {
			yield(model.Chunk{}, err)
		}
	}
}

func (p *Provider) play(ctx context.Context, pl *plan, stream bool, emit func(model.Chunk) bool) error {
	if f := pl.failure; f != nil && f.Status != 0 {
		kind, again := model.Classify(f.Status, f.Code, f.Message)
		return &model.Error{Kind: kind, Status: f.Status, Code: f.Code, Retryable: again, RetryAfter: f.RetryAfter, Endpoint: here,
			Msg: fmt.Sprintf("The scripted model failed (HTTP %d): %s.", f.Status, cmp.Or(f.Message, "as its file says"))}
	}
	if pl.silent {
		return wait(ctx, -1)
	}
	chunks := p.chunks(pl, stream)
	limit, bytes, broken := limits(pl.failure, len(chunks))
	if err := wait(ctx, pl.answer[0].Delay); err != nil {
		return err
	}
	if !stream && broken != nil {
		limit = 0
	}
	for i, c := range chunks[:limit] {
		if i > 0 && stream {
			if err := wait(ctx, pl.answer[0].ChunkDelay); err != nil {
				return err
			}
		}
		if bytes -= size(c); bytes < 0 {
			break
		}
		if err := ctx.Err(); err != nil {
			return cancelled(err)
		}
		if !emit(c) {
			return nil
		}
	}
	switch {
	case broken == nil:
		return nil
	case pl.failure.Stall != nil:
		return wait(ctx, -1)
	default:
		return broken
	}
}

// limits says after how many chunks and bytes an attempt breaks, and with what.
func limits(f *modelfile.Failure, all int) (chunks, bytes int, broken error) {
	chunks, bytes = all, 1<<62
	if f == nil {
		return chunks, bytes, nil
	}
	broken = &model.Error{Kind: model.Query, Retryable: true, Endpoint: here, Err: io.ErrUnexpectedEOF,
		Msg: "The scripted model ended its answer in the middle, as its file says."}
	switch {
	case f.Cut != nil:
		chunks = min(*f.Cut, all)
	case f.Stall != nil:
		chunks = min(*f.Stall, all)
	case f.CutBytes != nil:
		bytes = *f.CutBytes
	}
	return chunks, bytes, broken
}

func size(c model.Chunk) int {
	n := len(c.Text) + len(c.Reasoning)
	if c.Call != nil {
		n += len(c.Call.Arguments)
	}
	return n
}

// chunks cuts an answer. One that is not streamed comes whole: text, then each
// call, then the end.
func (p *Provider) chunks(pl *plan, stream bool) []model.Chunk {
	var out []model.Chunk
	text := ""
	var finish string
	var usage *model.Usage
	for i := range pl.answer {
		m := &pl.answer[i]
		n := m.ChunkSize
		if n == 0 {
			n = modelfile.DefaultChunkSize
		}
		if !stream {
			n = 0
		}
		for _, s := range pieces(m.Reasoning, n) {
			out = append(out, model.Chunk{Reasoning: s})
		}
		content := cmp.Or(m.Content, m.Refusal)
		parts := m.Chunks
		if parts == nil || !stream {
			parts = pieces(content, n)
		}
		for k, s := range parts {
			if k == 0 && text != "" {
				s = "\n\n" + s // as the texts of several choices are joined
			}
			out = append(out, model.Chunk{Text: s})
		}
		text += content
		finish = m.FinishReason()
		if m.Usage != nil {
			usage = m.Usage
		}
	}
	index := 0
	for i := range pl.answer {
		for _, c := range pl.answer[i].ToolCalls {
			out = append(out, p.callChunks(c, index, stream, pl.answer[i].ChunkSize)...)
			index++
		}
	}
	if index > 0 && pl.answer[len(pl.answer)-1].Finish == "" {
		finish = "tool_calls"
	}
	out = append(out, model.Chunk{Finish: finish, Usage: usage})
	out[0].ID, out[0].Model = pl.id, pl.model
	return out
}

func (p *Provider) callChunks(c model.Call, index int, stream bool, n int) []model.Chunk {
	if c.ID == "" {
		c.ID = p.cfg.NewID()
	}
	if n == 0 {
		n = modelfile.DefaultChunkSize
	}
	if !stream {
		n = 0
	}
	parts := pieces(c.Arguments, n)
	if parts == nil {
		parts = []string{""}
	}
	out := make([]model.Chunk, len(parts))
	for i, s := range parts {
		out[i].Call = &model.CallChunk{Index: index, Arguments: s}
	}
	out[0].Call.ID, out[0].Call.Name = c.ID, c.Name
	return out
}

// pieces cuts a text into pieces of n characters; n 0 is one piece.
func pieces(s string, n int) []string {
	if s == "" {
		return nil
	}
	if n <= 0 {
		return []string{s}
	}
	var out []string
	for s != "" {
		end, count := 0, 0
		for end < len(s) && count < n {
			_, w := utf8.DecodeRuneInString(s[end:])
			end += w
			count++
		}
		out = append(out, s[:end])
		s = s[end:]
	}
	return out
}

// wait waits; a negative time is until the context ends.
func wait(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return nil
	}
	var after <-chan time.Time
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		after = t.C
	}
	select {
	case <-after:
		return nil
	case <-ctx.Done():
		return cancelled(ctx.Err())
	}
}

func cancelled(err error) error {
	return &model.Error{Kind: model.Query, Endpoint: here, Err: err, Msg: "The request to the scripted model was cancelled."}
}
