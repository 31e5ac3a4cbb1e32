package scripted

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/model/modelfile"
	"github.com/transom-run/transom/model/openai"
)

// maxBody bounds a request to the handler, in bytes.
const maxBody = 64 << 20

// Handler serves the script as a chat completions endpoint, streaming and not:
// POST …/chat/completions and GET …/models, under any prefix. What a file says
// about failures happens on the connection: statuses, cuts, stalls. A request
// without a reply is answered with status 400 and the text of the difference.
func (p *Provider) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/chat/completions"):
			p.serveChat(w, r)
		case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/models"):
			p.serveModels(w)
		default:
			writeError(w, http.StatusNotFound, "not_found", fmt.Sprintf("%s %s is not served here; use POST /chat/completions or GET /models", r.Method, r.URL.Path))
		}
	})
}

func (p *Provider) serveModels(w http.ResponseWriter) {
	type entry struct {
		ID           string         `json:"id"`
		Object       string         `json:"object"`
		Name         string         `json:"name"`
		Capabilities map[string]any `json:"capabilities"`
	}
	list := make([]entry, len(p.models))
	for i, m := range p.models {
		info := m.Info()
		limits := map[string]int{}
		if m.ContextWindow > 0 {
			limits["max_context_window_tokens"] = m.ContextWindow
		}
		if m.MaxOutput > 0 {
			limits["max_output_tokens"] = m.MaxOutput
		}
		list[i] = entry{m.ID, "model", info.Name, map[string]any{"supports": map[string]bool{"vision": m.Vision}, "limits": limits}}
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(map[string]any{"object": "list", "data": list})
}

func (p *Provider) serveChat(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		writeError(w, http.StatusRequestEntityTooLarge, "request_too_large", err.Error())
		return
	}
	req, err := openai.DecodeRequest(body)
	if err != nil {
		writeError(w, http.StatusBadRequest, "invalid_json", "the body is not a chat completions request: "+err.Error())
		return
	}
	pl, e := p.plan(req)
	switch {
	case e != nil:
		writeError(w, http.StatusBadRequest, e.Code, e.Msg)
	case pl.failure != nil && pl.failure.Status != 0:
		writeFailure(w, pl.failure)
	case pl.silent:
		<-r.Context().Done()
	case req.Stream:
		p.serveStream(w, r, pl)
	default:
		p.serveWhole(w, r, pl)
	}
}

func writeFailure(w http.ResponseWriter, f *modelfile.Failure) {
	if f.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(f.RetryAfter.Seconds()))))
		w.Header().Set("Retry-After-Ms", strconv.FormatInt(f.RetryAfter.Milliseconds(), 10))
	}
	for name, value := range f.Headers {
		w.Header().Set(name, value)
	}
	if f.Body != "" {
		w.WriteHeader(f.Status)
		io.WriteString(w, f.Body)
		return
	}
	writeError(w, f.Status, f.Code, orText(f.Message, "The scripted model fails as its file says."))
}

func writeError(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(map[string]any{"error": map[string]string{"message": message, "code": code}})
}

type wireCall struct {
	Index    *int         `json:"index,omitempty"`
	ID       string       `json:"id,omitempty"`
	Type     string       `json:"type,omitempty"`
	Function wireFunction `json:"function"`
}

type wireFunction struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

type wireMessage struct {
	Role      string     `json:"role,omitempty"`
	Content   *string    `json:"content,omitempty"`
	Reasoning string     `json:"reasoning_content,omitempty"`
	Refusal   string     `json:"refusal,omitempty"`
	ToolCalls []wireCall `json:"tool_calls,omitempty"`
}

type wireChoice struct {
	Index   int          `json:"index"`
	Delta   *wireMessage `json:"delta,omitempty"`
	Message *wireMessage `json:"message,omitempty"`
	Finish  *string      `json:"finish_reason"`
}

type wireUsage struct {
	Prompt     int            `json:"prompt_tokens"`
	Completion int            `json:"completion_tokens"`
	Total      int            `json:"total_tokens"`
	In         map[string]int `json:"prompt_tokens_details,omitempty"`
	Out        map[string]int `json:"completion_tokens_details,omitempty"`
}

type wireAnswer struct {
	ID      string       `json:"id"`
	Object  string       `json:"object"`
	Created int64        `json:"created"`
	Model   string       `json:"model"`
	Choices []wireChoice `json:"choices"`
	Usage   *wireUsage   `json:"usage,omitempty"`
}

func toWireUsage(u *model.Usage) *wireUsage {
	if u == nil {
		return nil
	}
	return &wireUsage{u.InputTokens, u.OutputTokens, u.InputTokens + u.OutputTokens,
		map[string]int{"cached_tokens": u.CacheReadTokens, "cache_write_tokens": u.CacheWriteTokens},
		map[string]int{"reasoning_tokens": u.ReasoningTokens}}
}

// serveWhole answers with every message of the plan as a choice.
func (p *Provider) serveWhole(w http.ResponseWriter, r *http.Request, pl *plan) {
	a := wireAnswer{ID: pl.id, Object: "chat.completion", Created: time.Now().Unix(), Model: pl.model}
	for i := range pl.answer {
		m := &pl.answer[i]
		msg := &wireMessage{Role: "assistant", Reasoning: m.Reasoning, Refusal: m.Refusal}
		if m.Content != "" || len(m.ToolCalls) == 0 && m.Refusal == "" {
			msg.Content = &m.Content
		}
		for _, c := range m.ToolCalls {
			msg.ToolCalls = append(msg.ToolCalls, wireCall{ID: orID(c.ID, p), Type: "function", Function: wireFunction{c.Name, c.Arguments}})
		}
		finish := m.FinishReason()
		a.Choices = append(a.Choices, wireChoice{Index: i, Message: msg, Finish: &finish})
		if m.Usage != nil {
			a.Usage = toWireUsage(m.Usage)
		}
	}
	if wait(r.Context(), pl.answer[0].Delay) != nil {
		return
	}
	data, err := json.Marshal(a)
	if err != nil {
		writeError(w, http.StatusInternalServerError, "internal", err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/json")
	out := &cutter{w: w, left: math.MaxInt}
	if f := pl.failure; f != nil {
		switch {
		case f.Stall != nil:
			<-r.Context().Done()
			return
		case f.CutBytes != nil:
			out.left = *f.CutBytes
		default:
			out.left = 0
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(data)+1))
	}
	out.Write(data)
	if pl.failure != nil {
		out.abort()
	}
}

func orID(id string, p *Provider) string {
	if id == "" {
		return p.cfg.NewID()
	}
	return id
}

// serveStream answers with events.
func (p *Provider) serveStream(w http.ResponseWriter, r *http.Request, pl *plan) {
	chunks := p.chunks(pl, true)
	limit, bytes, broken := limits(pl.failure, len(chunks))
	if wait(r.Context(), pl.answer[0].Delay) != nil {
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	out := &cutter{w: w, left: bytes}
	created := time.Now().Unix()
	for i, c := range chunks[:limit] {
		if i > 0 && wait(r.Context(), pl.answer[0].ChunkDelay) != nil {
			return
		}
		if !p.writeChunk(out, pl, created, i == 0, c) {
			out.abort()
		}
		out.flush()
	}
	switch {
	case broken == nil:
		io.WriteString(out, "data: [DONE]\n\n")
	case pl.failure.Stall != nil:
		out.flush()
		<-r.Context().Done()
	default:
		out.abort()
	}
}

// writeChunk writes one event, and usage as an event of its own.
func (p *Provider) writeChunk(out *cutter, pl *plan, created int64, first bool, c model.Chunk) bool {
	a := wireAnswer{ID: pl.id, Object: "chat.completion.chunk", Created: created, Model: pl.model}
	d := &wireMessage{Reasoning: c.Reasoning}
	if first {
		d.Role = "assistant"
	}
	if c.Text != "" {
		d.Content = &c.Text
	}
	if c.Call != nil {
		call := wireCall{Index: &c.Call.Index, ID: c.Call.ID, Function: wireFunction{c.Call.Name, c.Call.Arguments}}
		if call.ID != "" {
			call.Type = "function"
		}
		d.ToolCalls = []wireCall{call}
	}
	choice := wireChoice{Delta: d}
	if c.Finish != "" {
		choice.Finish = &c.Finish
	}
	a.Choices = []wireChoice{choice}
	if !writeEvent(out, a) {
		return false
	}
	if c.Usage == nil {
		return true
	}
	a.Choices, a.Usage = []wireChoice{}, toWireUsage(c.Usage)
	return writeEvent(out, a)
}

func writeEvent(out *cutter, a wireAnswer) bool {
	data, err := json.Marshal(a)
	if err != nil {
		return false
	}
	_, err = out.Write([]byte("data: " + string(data) + "\n\n"))
	return err == nil
}

// errCut says that a cutter's bytes are used up.
var errCut = errors.New("cut")

// cutter writes so many bytes, and no more.
type cutter struct {
	w    http.ResponseWriter
	left int
}

func (c *cutter) Write(b []byte) (int, error) {
	if len(b) > c.left {
		n, _ := c.w.Write(b[:c.left])
		c.left = 0
		return n, errCut
	}
	c.left -= len(b)
	return c.w.Write(b)
}

func (c *cutter) flush() {
	if f, ok := c.w.(http.Flusher); ok {
		f.Flush()
	}
}

// abort breaks the connection, so that the client does not take what came for
// the whole answer.
func (c *cutter) abort() {
	c.flush()
	panic(http.ErrAbortHandler)
}
