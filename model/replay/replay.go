// Package replay records the traffic with a model into a readable file, and
// plays it back.
//
//	rec, err := replay.Record("session.yaml", provider, replay.Config{WorkDir: dir})
//	… run a session on rec …
//	err = rec.Close()
//
//	p, err := replay.Open("session.yaml", replay.Config{WorkDir: dir})
//	… run the same session on p: no network …
//	rest := p.Rest()      // what the second run did not ask for
//
// The file has the format of docs/model-files.md and can be edited. A replay is
// exact: every request must equal a recorded one, message by message, with the
// same model and tools, and each answer is given once. A request that differs
// fails with the first difference. What changes from run to run is taken out on
// both sides; the page has the list (dates, ids of calls, the working directory
// and other configured paths).
//
// # Ownership
//
// A [Recorder] may be used by any number of goroutines. It writes the file anew
// after each answer, whole or not at all, so that a killed process loses at most
// the answer under way.
//
// # Errors
//
// A file that cannot be written does not end a session: [Recorder.Close] returns
// the error. Keys are not part of what is recorded; texts that Config.Secrets
// names are cut out of the rest.
package replay

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/model/modelfile"
	"github.com/transom-run/transom/model/scripted"
)

// Config says how traffic is recorded and compared.
type Config struct {
	// WorkDir is the absolute working directory of the session; it becomes
	// ${workdir}.
	WorkDir string
	// Paths are more paths and their placeholders: {"home": "/home/a"}.
	Paths map[string]string
	// Secrets are texts that must not get into the file.
	Secrets []string
	// AnySystem records ${system} instead of the system message, so that a replay
	// does not depend on its text.
	AnySystem bool
	// Chunks records the pieces and times of streamed answers. Without it a replay
	// cuts answers evenly and sends them at once.
	Chunks bool
	// Models are written into the file as the models on offer; nil: those that
	// were asked.
	Models []modelfile.Model
}

func (c *Config) normalizer() modelfile.Normalizer {
	return modelfile.Normalizer{WorkDir: c.WorkDir, Paths: c.Paths, Secrets: c.Secrets}
}

// Open plays a recording. The provider's Rest lists what was not asked for.
func Open(path string, cfg Config) (*scripted.Provider, error) {
	f, err := modelfile.Load(path)
	if err != nil {
		return nil, err
	}
	return scripted.New(scripted.Config{File: f, Normalizer: cfg.normalizer(), Once: true, Record: true}), nil
}

// Recorder passes requests on to a provider and records them.
type Recorder struct {
	path string
	next model.Provider
	cfg  Config
	z    modelfile.Normalizer

	mu    sync.Mutex
	file  modelfile.File
	texts [][]modelfile.Message // the normal form of each conversation
	err   error                 // the first error of writing
}

// Record starts a recording. The file is made at once, so that a wrong path is
// noticed, and replaces an older one.
func Record(path string, next model.Provider, cfg Config) (*Recorder, error) {
	r := &Recorder{path: path, next: next, cfg: cfg, z: cfg.normalizer()}
	r.file.Models = slices.Clone(cfg.Models)
	if err := r.write(); err != nil {
		return nil, err
	}
	return r, nil
}

// Close ends the recording and returns the first error of writing it.
func (r *Recorder) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// Models asks the provider, where it knows.
func (r *Recorder) Models(ctx context.Context) ([]model.Info, error) {
	if l, ok := r.next.(model.Lister); ok {
		return l.Models(ctx)
	}
	return nil, nil
}

// Stream passes the request on.
func (r *Recorder) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		var acc model.Accumulator
		rec := exchange{begin: time.Now()}
		last := rec.begin
		for c, err := range r.next.Stream(ctx, req) {
			if err != nil {
				rec.err = err
				yield(c, err)
				break
			}
			acc.Add(c)
			if now := time.Now(); c.Text != "" {
				rec.chunks = append(rec.chunks, c.Text)
				rec.gaps = append(rec.gaps, now.Sub(last))
				last = now
			}
			if !yield(c, nil) {
				rec.err = context.Canceled // who left does not get the rest
				break
			}
		}
		if rec.response = acc.Response(); rec.response.Finish != "" && errors.Is(rec.err, context.Canceled) {
			rec.err = nil // all of it had come
		}
		r.add(req, &rec)
	}
}

// exchange is one attempt.
type exchange struct {
	begin    time.Time
	chunks   []string
	gaps     []time.Duration
	response *model.Response
	err      error
}

// add records an attempt.
func (r *Recorder) add(req *model.Request, x *exchange) {
	r.mu.Lock()
	defer r.mu.Unlock()
	request := r.messages(req)
	normal := r.z.Messages(request)
	c := r.find(req, request, normal)
	answer := &c.Messages[len(c.Messages)-1]
	if x.err != nil {
		answer.Failures = append(answer.Failures, failure(x.err, len(x.chunks), r.z.Shorten))
	} else {
		r.fill(answer, x)
	}
	r.setModels(req)
	if err := r.write(); err != nil && r.err == nil {
		r.err = err
	}
}

// messages are the request's, as they are written.
func (r *Recorder) messages(req *model.Request) []modelfile.Message {
	msgs := modelfile.FromRequest(req.Messages)
	for i := range msgs {
		m := &msgs[i]
		m.Reasoning = ""
		switch m.Role {
		case model.User:
			m.Content = r.z.Text(m.Content)
		case model.System:
			if r.cfg.AnySystem {
				m.Content = modelfile.SystemPlaceholder
			}
		}
		m.Content = r.z.Shorten(m.Content)
		m.ToolCalls = slices.Clone(m.ToolCalls)
		for j := range m.ToolCalls {
			m.ToolCalls[j].Arguments = r.z.Shorten(m.ToolCalls[j].Arguments)
		}
	}
	return msgs
}

// find returns the conversation that the request goes on with, an answer to be
// filled in at its end.
func (r *Recorder) find(req *model.Request, request, normal []modelfile.Message) *modelfile.Conversation {
	tools := make([]string, len(req.Tools))
	for i, t := range req.Tools {
		tools[i] = t.Name
	}
	for i := range r.file.Conversations {
		c := &r.file.Conversations[i]
		if c.When.Model != req.Model || !slices.Equal(c.Tools, tools) {
			continue
		}
		have := r.texts[i]
		open := unanswered(c) // its last answer is still to come
		n := len(have)
		if open {
			n--
		}
		if n > len(normal) || !same(have[:n], normal[:n]) {
			continue
		}
		switch {
		case open && n == len(normal): // the request again
			return c
		case !open && n < len(normal):
			c.Messages = append(c.Messages, request[len(request)-(len(normal)-n):]...)
			return r.begin(i)
		}
	}
	r.file.Conversations = append(r.file.Conversations, modelfile.Conversation{
		When: &modelfile.When{Model: req.Model}, Tools: tools, Messages: slices.Clone(request)})
	r.texts = append(r.texts, nil)
	return r.begin(len(r.file.Conversations) - 1)
}

// begin appends an answer to be filled in.
func (r *Recorder) begin(i int) *modelfile.Conversation {
	c := &r.file.Conversations[i]
	c.Messages = append(c.Messages, modelfile.Message{Role: model.Assistant})
	r.texts[i] = r.z.Messages(c.Messages)
	return c
}

func unanswered(c *modelfile.Conversation) bool {
	last := &c.Messages[len(c.Messages)-1]
	return last.Content == "" && len(last.ToolCalls) == 0
}

func same(a, b []modelfile.Message) bool {
	for i := range a {
		if modelfile.Diff(&a[i], &b[i]) != nil {
			return false
		}
	}
	return true
}

// fill writes the answer down.
func (r *Recorder) fill(answer *modelfile.Message, x *exchange) {
	m := &x.response.Message
	answer.Content, answer.Reasoning = r.z.Shorten(m.Text), r.z.Shorten(m.Reasoning)
	answer.ToolCalls = slices.Clone(m.Calls)
	for i := range answer.ToolCalls {
		answer.ToolCalls[i].Arguments = r.z.Shorten(answer.ToolCalls[i].Arguments)
	}
	answer.Usage = x.response.Usage
	if answer.Finish = x.response.Finish; answer.Finish != "" {
		plain := *answer
		plain.Finish = ""
		if plain.FinishReason() == answer.Finish {
			answer.Finish = ""
		}
	}
	if r.cfg.Chunks && len(x.chunks) > 1 && strings.Join(x.chunks, "") == answer.Content {
		answer.Chunks = x.chunks
		answer.Delay = x.gaps[0].Round(time.Millisecond)
		var sum time.Duration
		for _, g := range x.gaps[1:] {
			sum += g
		}
		answer.ChunkDelay = (sum / time.Duration(len(x.gaps)-1)).Round(100 * time.Microsecond)
	}
	for i := range r.file.Conversations {
		c := &r.file.Conversations[i]
		if &c.Messages[len(c.Messages)-1] == answer {
			r.texts[i] = r.z.Messages(c.Messages)
		}
	}
}

// failure writes a failed attempt down. One that was cancelled is a model that
// does not answer.
func failure(err error, chunks int, clean func(string) string) modelfile.Failure {
	var e *model.Error
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return modelfile.Failure{Stall: new(int)}
	case errors.As(err, &e) && e.Status >= 400 && e.Status < 600:
		return modelfile.Failure{Status: e.Status, Code: clean(e.Code), Message: clean(e.Msg), RetryAfter: e.RetryAfter}
	default:
		return modelfile.Failure{Cut: &chunks}
	}
}

// setModels lists the models that were asked, unless Config did.
func (r *Recorder) setModels(req *model.Request) {
	if r.cfg.Models != nil || req.Model == "" {
		return
	}
	for _, m := range r.file.Models {
		if m.ID == req.Model {
			return
		}
	}
	r.file.Models = append(r.file.Models, modelfile.Model{ID: req.Model})
}

// write replaces the file.
func (r *Recorder) write() error {
	out := r.file
	out.Conversations = slices.Clone(r.file.Conversations)
	for i := range out.Conversations {
		c := &out.Conversations[i]
		if c.When.Model == "" {
			c.When = nil
		}
		if len(c.Messages) == 0 || !unanswered(c) {
			continue
		}
		// No attempt has succeeded yet: the last failure stands for all that follow.
		c.Messages = slices.Clone(c.Messages)
		last := &c.Messages[len(c.Messages)-1]
		last.Failures = slices.Clone(last.Failures)
		if n := len(last.Failures); n > 0 {
			last.Failures[n-1].Times = modelfile.Always
		}
	}
	data, err := out.Encode()
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(r.path), filepath.Base(r.path)+".*.tmp")
	if err != nil {
		return fmt.Errorf("write the recording %s: %w", r.path, err)
	}
	_, err = tmp.Write(data)
	if cerr := tmp.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(tmp.Name(), r.path)
	}
	if err != nil {
		os.Remove(tmp.Name())
		return fmt.Errorf("write the recording %s: %w", r.path, err)
	}
	return nil
}
