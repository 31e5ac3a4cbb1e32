package scripted

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/model/anthropic"
	"github.com/transom-run/transom/model/modelfile"
	"github.com/transom-run/transom/model/openai"
	"github.com/transom-run/transom/model/responses"
)

// maxBody bounds a request to the handler, in bytes.
const maxBody = 64 << 20

// Handler serves the script as an endpoint of all three wires, streaming and not:
// POST …/chat/completions, …/responses (also as a WebSocket) and …/messages, and GET
// …/models, under any prefix. What a file says about failures happens on the connection: statuses,
// cuts, stalls. A request without a reply is answered with status 400 and the text
// of the difference.
func (p *Provider) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, wr := range wires {
			if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, wr.path) {
				p.serve(w, r, wr)
				return
			}
		}
		if wantsSocket(r) {
			p.serveSocket(w, r)
			return
		}
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/models") {
			p.serveModels(w)
			return
		}
		writeError(w, http.StatusNotFound, "not_found", fmt.Sprintf(
			"%s %s is not served here; use POST /chat/completions, /responses or /messages, or GET /models", r.Method, r.URL.Path))
	})
}

// wire is how one of the wires reads requests and writes answers.
type wire struct {
	path   string
	name   string // for people
	decode func(body []byte) (*model.Request, error)
	// whole is an answer that is not streamed: a value for JSON.
	whole func(p *Provider, pl *plan) any
	// stream begins one that is.
	stream func(pl *plan) events
}

// events writes an answer as server-sent events.
type events interface {
	// chunk returns the events of a chunk. The first chunk may bring more.
	chunk(c model.Chunk) []event
	// end returns the events after the last chunk.
	end() []event
}

// event is a server-sent event; name may be empty. data is a value for JSON, or
// a text that stands as it is.
type event struct {
	name string
	data any
}

var wires = []wire{
	{"/chat/completions", "chat completions", openai.DecodeRequest, wholeChat, streamChat},
	{"/responses", "responses", responses.DecodeRequest, wholeResponse, streamResponse},
	{"/messages", "messages", anthropic.DecodeRequest, wholeMessage, streamMessage},
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

func (p *Provider) serve(w http.ResponseWriter, r *http.Request, wr wire) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		writeError(w, http.StatusRequestEntityTooLarge, "request_too_large", err.Error())
		return
	}
	req, err := wr.decode(body)
	if err != nil {
		writeError(w, http.StatusBadRequest, "invalid_json", "the body is not a "+wr.name+" request: "+err.Error())
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
		p.serveStream(w, r, pl, wr.stream(pl))
	default:
		p.serveWhole(w, r, pl, wr.whole(p, pl))
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
	writeError(w, f.Status, f.Code, cmp.Or(f.Message, "The scripted model fails as its file says."))
}

func writeError(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// The form is that of all three wires.
	json.NewEncoder(w).Encode(map[string]any{"type": "error", "error": map[string]string{"type": cmp.Or(code, "error"), "message": message, "code": code}})
}

// serveWhole answers at once.
func (p *Provider) serveWhole(w http.ResponseWriter, r *http.Request, pl *plan, answer any) {
	if wait(r.Context(), pl.answer[0].Delay) != nil {
		return
	}
	data, err := json.Marshal(answer)
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
func (p *Provider) serveStream(w http.ResponseWriter, r *http.Request, pl *plan, ev events) {
	chunks := p.chunks(pl, true)
	limit, bytes, broken := limits(pl.failure, len(chunks))
	if wait(r.Context(), pl.answer[0].Delay) != nil {
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	out := &cutter{w: w, left: bytes}
	for i, c := range chunks[:limit] {
		if i > 0 && wait(r.Context(), pl.answer[0].ChunkDelay) != nil {
			return
		}
		if !writeEvents(out, ev.chunk(c)) {
			out.abort()
		}
		out.flush()
	}
	switch {
	case broken == nil:
		writeEvents(out, ev.end())
	case pl.failure.Stall != nil:
		out.flush()
		<-r.Context().Done()
	default:
		out.abort()
	}
}

func writeEvents(out *cutter, list []event) bool {
	for _, e := range list {
		text, ok := e.data.(string)
		if !ok {
			data, err := json.Marshal(e.data)
			if err != nil {
				return false
			}
			text = string(data)
		}
		if e.name != "" {
			text = "event: " + e.name + "\ndata: " + text + "\n\n"
		} else {
			text = "data: " + text + "\n\n"
		}
		if _, err := io.WriteString(out, text); err != nil {
			return false
		}
	}
	return true
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
