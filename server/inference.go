package server

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/transom-run/transom/internal/jsonrpc2"
	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/model/endpoint"
)

// inference has a client make the HTTP requests of the model layer:
//
//	provider ─▶ RoundTrip ─▶ llmInference.httpRequestStart, httpRequestChunk ─▶ client
//	        ◀── response ◀── llmInference.httpResponseStart, httpResponseChunk ◀──┘
//
// The requests go out in order, without waiting for one another. What the client
// sends is taken on the reader and kept until the provider reads it.
type inference struct {
	c       *conn
	release func()

	serial atomic.Int64 // of requests

	mu      sync.Mutex
	pending map[string]*exchange // by request id
	closed  bool
}

// inferenceMethods are those by which a client makes the requests.
func inferenceMethods() map[string]handler {
	return map[string]handler{
		"llmInference.setProvider":       plain(setInference),
		"llmInference.httpResponseStart": plain(responseStart),
		"llmInference.httpResponseChunk": plain(responseChunk),
	}
}

// setInference makes the client the one who makes the requests, for as long as
// it is connected. There is one for the whole process.
func setInference(c *conn, _ *noParams) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inference == nil && !c.ended {
		in := &inference{c: c, pending: map[string]*exchange{}}
		release, err := c.srv.cfg.Runtime.Intercept(in)
		if err != nil {
			return nil, err
		}
		in.release = release
		c.inference = in
	}
	return successResult{true}, nil
}

// end fails what is under way: the client has gone.
func (in *inference) end() {
	if in == nil {
		return
	}
	in.release()
	in.mu.Lock()
	in.closed = true
	all := in.pending
	in.pending = nil
	in.mu.Unlock()
	for _, x := range all {
		x.finish(errGone)
	}
}

var errGone = errors.New("the client that makes the requests to models has gone")

type requestStart struct {
	RequestID         string              `json:"requestId"`
	SessionID         string              `json:"sessionId,omitempty"`
	Method            string              `json:"method"`
	URL               string              `json:"url"`
	Headers           map[string][]string `json:"headers"`
	Transport         string              `json:"transport"`
	AgentID           string              `json:"agentId,omitempty"`
	ParentAgentID     string              `json:"parentAgentId,omitempty"`
	AgentInvocationID string              `json:"agentInvocationId,omitempty"`
	InteractionType   string              `json:"interactionType,omitempty"`
}

type requestChunk struct {
	RequestID    string `json:"requestId"`
	Data         string `json:"data"`
	Binary       bool   `json:"binary,omitempty"`
	End          bool   `json:"end,omitempty"`
	Cancel       bool   `json:"cancel,omitempty"`
	CancelReason string `json:"cancelReason,omitempty"`
}

// RoundTrip has the client make a request; see [http.RoundTripper].
func (in *inference) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		var err error
		body, err = io.ReadAll(req.Body)
		req.Body.Close()
		if err != nil {
			return nil, err
		}
	}
	x := in.exchange(req)
	if !in.enter(x) {
		return nil, errGone
	}
	in.post(x, "llmInference.httpRequestStart", start(x.id, req))
	x.send(body)
	resp := <-x.head
	if resp == nil {
		return nil, x.failure()
	}
	return resp, nil
}

func (in *inference) exchange(req *http.Request) *exchange {
	return &exchange{
		in: in, id: "inference-" + strconv.FormatInt(in.serial.Add(1), 10), req: req,
		head: make(chan *http.Response, 1), wake: make(chan struct{}, 1),
	}
}

// enter adds an exchange to those under way, and has it end with its context.
func (in *inference) enter(x *exchange) bool {
	x.mu.Lock() // whoever ends it waits for unwatch
	defer x.mu.Unlock()
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		return false
	}
	in.pending[x.id] = x
	ctx := x.req.Context()
	x.unwatch = context.AfterFunc(ctx, func() { x.cancel(context.Cause(ctx)) })
	return true
}

// start describes a request.
func start(id string, req *http.Request) requestStart {
	s := requestStart{RequestID: id, Method: req.Method, URL: req.URL.String(), Headers: map[string][]string{}, Transport: "http"}
	for name, values := range req.Header {
		s.Headers[strings.ToLower(name)] = values
	}
	if asked := endpoint.Asked(req.Context()); asked != nil {
		// The agent that a session's user talks to has the session's own id.
		s.SessionID, s.AgentID, s.AgentInvocationID = asked.SessionID, asked.SessionID, asked.InteractionID
		s.InteractionType = string(cmp.Or(asked.Interaction, model.ForAgent))
		if asked.AgentID != "" {
			s.AgentID, s.ParentAgentID = asked.AgentID, asked.SessionID
		}
	}
	return s
}

// post sends the client a request whose answer says no more than that it came.
func (in *inference) post(x *exchange, method string, params any) {
	in.c.rpc.Go(in.c.rpc.Context(), method, params, func(_ json.RawMessage, err error) {
		var refused *jsonrpc2.Error
		if errors.As(err, &refused) {
			err = fmt.Errorf("the client refused %s: %s", method, refused.Message)
		}
		if err != nil {
			x.finish(err)
		}
	})
}

// maxPiece is the largest piece of a body in one message.
const maxPiece = 1 << 20

// send sends the body of a request.
func (x *exchange) send(body []byte) {
	binary := !utf8.Valid(body)
	for first := true; first || len(body) > 0; first = false {
		n := min(len(body), maxPiece)
		for !binary && n < len(body) && !utf8.RuneStart(body[n]) {
			n--
		}
		chunk := requestChunk{RequestID: x.id, Data: string(body[:n]), Binary: binary, End: n == len(body)}
		if binary {
			chunk.Data = base64.StdEncoding.EncodeToString(body[:n])
		}
		body = body[n:]
		x.in.post(x, "llmInference.httpRequestChunk", chunk)
	}
}

// take removes an exchange from those under way, and reports whether it was there.
func (in *inference) take(id string) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	_, ok := in.pending[id]
	delete(in.pending, id)
	return ok
}

// find returns the exchange that a client answers; nil where it has ended.
func (c *conn) exchange(id string) *exchange {
	c.mu.Lock()
	in := c.inference
	c.mu.Unlock()
	if in == nil {
		return nil
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.pending[id]
}

type accepted struct {
	Accepted bool `json:"accepted"`
}

type responseHead struct {
	RequestID  string              `json:"requestId"`
	Status     int                 `json:"status"`
	StatusText string              `json:"statusText"`
	Headers    map[string][]string `json:"headers"`
}

func responseStart(c *conn, p *responseHead) (any, error) {
	x := c.exchange(p.RequestID)
	return accepted{x != nil && x.begin(p)}, nil
}

type responsePiece struct {
	RequestID string `json:"requestId"`
	Data      string `json:"data"`
	Binary    bool   `json:"binary"`
	End       bool   `json:"end"`
	Error     *struct {
		Message string `json:"message"`
		Code    string `json:"code"`
	} `json:"error"`
}

func responseChunk(c *conn, p *responsePiece) (any, error) {
	x := c.exchange(p.RequestID)
	if x == nil {
		return accepted{}, nil
	}
	data := []byte(p.Data)
	if p.Binary {
		var err error
		if data, err = base64.StdEncoding.DecodeString(p.Data); err != nil {
			x.finish(errors.New("the client sent a piece of an answer that is not base64"))
			return nil, invalid("llmInference.httpResponseChunk", "data is not base64, although binary is set")
		}
	}
	if len(data) > 0 {
		x.add(data)
	}
	switch {
	case p.Error != nil:
		x.finish(errors.New("the client could not make the request: " + p.Error.Message))
	case p.End:
		x.finish(io.EOF)
	}
	return accepted{true}, nil
}

// maxHeld bounds what of an answer is kept that nobody has read yet.
const maxHeld = 64 << 20

// exchange is a request that the client makes, and the body of its answer.
type exchange struct {
	in      *inference
	id      string
	req     *http.Request
	unwatch func() bool
	// head gets the response once, or nil where there is none.
	head chan *http.Response
	wake chan struct{} // has a token when there is news for Read

	mu    sync.Mutex
	begun bool // head was sent
	held  bytes.Buffer
	// ends are the lengths of the messages of a WebSocket that held has.
	ends   []int
	socket bool  // it is one
	err    error // how it ended; nil while it goes on
}

// begin takes the head of the answer.
func (x *exchange) begin(p *responseHead) bool {
	h := http.Header{}
	for name, values := range p.Headers {
		switch strings.ToLower(name) {
		case "content-encoding", "content-length", "transfer-encoding":
			// The body comes as the client's own HTTP library read it: decoded.
		default:
			for _, v := range values {
				h.Add(name, v)
			}
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.begun || x.err != nil {
		return false
	}
	x.begun = true
	status := strings.TrimSpace(strconv.Itoa(p.Status) + " " + p.StatusText)
	x.head <- &http.Response{
		Status: status, StatusCode: p.Status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: h, Body: x, ContentLength: -1, Request: x.req,
	}
	return true
}

// add keeps a piece of the answer.
func (x *exchange) add(data []byte) {
	x.mu.Lock()
	full := x.held.Len()+len(data) > maxHeld
	if x.err == nil && !full {
		x.held.Write(data)
		if x.socket {
			x.ends = append(x.ends, len(data))
		}
	}
	x.mu.Unlock()
	if full {
		x.cancel(fmt.Errorf("the client sent more than %d bytes that nobody has read yet", maxHeld))
	}
	x.nudge()
}

func (x *exchange) nudge() {
	select {
	case x.wake <- struct{}{}:
	default:
	}
}

// finish ends the exchange: with io.EOF where the answer is complete.
func (x *exchange) finish(err error) {
	x.in.take(x.id)
	x.mu.Lock()
	x.unwatch()
	if x.err == nil {
		if x.err = err; err == io.EOF && !x.begun {
			x.err = io.ErrUnexpectedEOF
		}
		if !x.begun {
			x.begun = true
			x.head <- nil
		}
	}
	x.mu.Unlock()
	x.nudge()
}

// cancel ends an exchange that nobody waits for any more, and tells the client.
func (x *exchange) cancel(cause error) {
	if x.in.take(x.id) {
		reason := "the request was cancelled"
		if cause != nil && !errors.Is(cause, context.Canceled) {
			reason = cause.Error()
		}
		x.in.c.rpc.Go(x.in.c.rpc.Context(), "llmInference.httpRequestChunk", requestChunk{RequestID: x.id, End: true, Cancel: true, CancelReason: reason},
			func(json.RawMessage, error) {})
	}
	x.finish(cause)
}

func (x *exchange) failure() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.err
}

// Read reads the body of the answer.
func (x *exchange) Read(b []byte) (int, error) {
	for {
		x.mu.Lock()
		n, err := x.held.Len(), x.err
		if n > 0 && (err == nil || err == io.EOF) {
			n, _ = x.held.Read(b)
			x.mu.Unlock()
			return n, nil
		}
		x.mu.Unlock()
		if err != nil {
			return 0, err
		}
		<-x.wake
	}
}

// Close ends an answer that is not read to its end.
func (x *exchange) Close() error {
	x.cancel(errors.New("the rest of the answer is not needed"))
	return nil
}
