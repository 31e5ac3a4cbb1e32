package modeltest

import (
	"bytes"
	"context"
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/model/endpoint"
)

//go:embed streams
var streamFiles embed.FS

// The wires of the streams.
const (
	Chat      = "chat"      // OpenAI's chat completions
	Responses = "responses" // OpenAI's responses
	Messages  = "messages"  // Anthropic's messages
)

// Stream is one answer of a server and what must become of it. The files that
// hold them are in the directory streams, whose README describes their form.
type Stream struct {
	// Name is the file's name and, where it holds several, the number in it.
	Name  string
	About string
	Wire  string
	// Status, Header and Body are the answer. Cut says that the connection breaks
	// after it.
	Status int
	Header map[string]string
	Body   []byte
	Cut    bool
	// Taken are ids of calls that the conversation has already.
	Taken  []string
	Expect Expect
}

// Expect is what must become of a stream.
type Expect struct {
	Text      string       `yaml:"text"`
	Reasoning string       `yaml:"reasoning"`
	Calls     []ExpectCall `yaml:"calls"`
	Finish    string       `yaml:"finish"`
	Usage     *ExpectUsage `yaml:"usage"`
	Error     *ExpectError `yaml:"error"`
	// Back are texts that the next request, which holds the answer, must contain,
	// in this order; NotBack those that it must not. A request without the answer
	// contains none of either.
	Back    []string `yaml:"back"`
	NotBack []string `yaml:"not_back"`
}

// ExpectCall is a call; the id * is any that is not taken.
type ExpectCall struct {
	ID        string `yaml:"id"`
	Name      string `yaml:"name"`
	Arguments string `yaml:"arguments"`
}

// ExpectUsage is what an answer cost.
type ExpectUsage struct {
	Input      int `yaml:"input"`
	Output     int `yaml:"output"`
	CacheRead  int `yaml:"cache_read"`
	CacheWrite int `yaml:"cache_write"`
	Reasoning  int `yaml:"reasoning"`
}

// ExpectError is a failure. Says are texts that its message must contain.
type ExpectError struct {
	Kind       string   `yaml:"kind"`
	Status     int      `yaml:"status"`
	Code       string   `yaml:"code"`
	Retryable  bool     `yaml:"retryable"`
	RetryAfter string   `yaml:"retry_after"`
	Says       []string `yaml:"says"`
}

// streamFile is a file of streams.
type streamFile struct {
	About   string   `yaml:"about"`
	Taken   []string `yaml:"taken"`
	Expect  Expect   `yaml:"expect"`
	Streams []struct {
		Wire    string            `yaml:"wire"`
		Status  int               `yaml:"status"`
		Headers map[string]string `yaml:"headers"`
		Events  []string          `yaml:"events"`
		JSON    string            `yaml:"json"`
		Body    string            `yaml:"body"`
		Base64  string            `yaml:"base64"`
		Cut     bool              `yaml:"cut"`
		Expect  yaml.Node         `yaml:"expect"`
	} `yaml:"streams"`
}

// Streams returns all streams of the kit, sorted by name.
func Streams() ([]Stream, error) { return ReadStreams(streamFiles) }

// ReadStreams reads the streams of all .yaml files in a file system.
func ReadStreams(files fs.FS) ([]Stream, error) {
	var out []Stream
	err := fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".yaml") {
			return err
		}
		data, err := fs.ReadFile(files, path)
		if err != nil {
			return err
		}
		name := strings.TrimSuffix(path[strings.LastIndexByte(path, '/')+1:], ".yaml")
		list, err := parseStreams(name, data)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		out = append(out, list...)
		return nil
	})
	return out, err
}

func parseStreams(name string, data []byte) ([]Stream, error) {
	var f streamFile
	if err := yaml.Load(data, &f, yaml.WithKnownFields()); err != nil {
		return nil, err
	}
	if f.About == "" || len(f.Streams) == 0 {
		return nil, fmt.Errorf("needs about and streams")
	}
	var out []Stream
	for i, s := range f.Streams {
		st := Stream{Name: name, About: f.About, Wire: s.Wire, Status: s.Status, Header: map[string]string{}, Cut: s.Cut, Taken: f.Taken}
		if st.Status == 0 {
			st.Status = http.StatusOK
		}
		if len(f.Streams) > 1 {
			st.Name = fmt.Sprintf("%s-%d", name, i+1)
		}
		if err := expectation(data, &s.Expect, &st.Expect); err != nil {
			return nil, fmt.Errorf("streams[%d]: %w", i, err)
		}
		kind := "text/event-stream"
		switch {
		case s.Wire != Chat && s.Wire != Responses && s.Wire != Messages:
			return nil, fmt.Errorf("streams[%d]: wire %q; there are chat, responses and messages", i, s.Wire)
		case s.Events != nil:
			st.Body = eventBody(s.Wire, s.Events)
		case s.JSON != "":
			kind, st.Body = "application/json", []byte(s.JSON)
		case s.Base64 != "":
			body, err := base64.StdEncoding.DecodeString(s.Base64)
			if err != nil {
				return nil, fmt.Errorf("streams[%d]: %w", i, err)
			}
			st.Body = body
		default:
			st.Body = []byte(s.Body)
		}
		st.Header["Content-Type"] = kind
		for k, v := range s.Headers {
			st.Header[k] = v
		}
		out = append(out, st)
	}
	return out, nil
}

// expectation reads the file's expectation, and over it that of the stream.
func expectation(file []byte, own *yaml.Node, to *Expect) error {
	var f struct {
		Expect Expect `yaml:"expect"`
	}
	if err := yaml.Load(file, &f); err != nil {
		return err
	}
	*to = f.Expect
	if own.IsZero() {
		return nil
	}
	return own.Decode(to)
}

// eventBody writes events as the wire has them: all but chat completions name
// each event by its type.
func eventBody(wire string, events []string) []byte {
	var b bytes.Buffer
	for _, e := range events {
		if wire != Chat {
			if _, rest, ok := strings.Cut(e, `"type":"`); ok {
				kind, _, _ := strings.Cut(rest, `"`)
				fmt.Fprintf(&b, "event: %s\n", kind)
			}
		}
		fmt.Fprintf(&b, "data: %s\n\n", e)
	}
	return b.Bytes()
}

// ask is the request that a stream answers.
func (s *Stream) ask(stream bool) *model.Request {
	req := &model.Request{Model: "demo", Stream: stream, Messages: []model.Message{
		{Role: model.System, Text: "Be brief."}, {Role: model.User, Text: "hi"}}}
	if len(s.Taken) > 0 {
		m := model.Message{Role: model.Assistant}
		for _, id := range s.Taken {
			m.Calls = append(m.Calls, model.Call{ID: id, Name: "before", Arguments: "{}"})
		}
		req.Messages = append(req.Messages, m)
		for _, id := range s.Taken {
			req.Messages = append(req.Messages, model.Message{Role: model.ToolRole, CallID: id, Text: "done"})
		}
	}
	return req
}

// RoundTrip answers any request with the stream, as the transport of an
// http.Client, and hands its body out in pieces of so many bytes.
func (s *Stream) roundTrip(piece int) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		h := http.Header{}
		for k, v := range s.Header {
			h.Set(k, v)
		}
		end := io.EOF
		if s.Cut {
			end = io.ErrUnexpectedEOF
		}
		return &http.Response{StatusCode: s.Status, Header: h, Body: io.NopCloser(&pieces{s.Body, piece, end}), Request: r}, nil
	}
}

type pieces struct {
	b   []byte
	n   int
	end error
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.b) == 0 {
		return 0, p.end
	}
	n := copy(b, p.b[:min(p.n, len(p.b))])
	p.b = p.b[n:]
	return n, nil
}

// transport is a function as an http.RoundTripper.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// RunStreams plays all streams of a wire to the providers that open returns, and
// checks what becomes of them: streamed and not, in one piece and byte by byte,
// and with the answer sent back.
func RunStreams(t *testing.T, wire string, open func(endpoint.Server) (model.Provider, error)) {
	all, err := Streams()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		if s.Wire != wire {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			for _, piece := range []int{1, 1 << 20} {
				for _, stream := range []bool{true, false} {
					s.run(t, open, piece, stream)
				}
			}
			if t.Failed() {
				t.Logf("%s\n%s", s.About, s.Body)
			}
		})
	}
}

func (s *Stream) run(t *testing.T, open func(endpoint.Server) (model.Provider, error), piece int, stream bool) {
	t.Helper()
	p, err := open(endpoint.Server{BaseURL: "http://model.test", HTTPClient: &http.Client{Transport: transport(s.roundTrip(piece))}})
	if err != nil {
		t.Fatal(err)
	}
	req := s.ask(stream)
	got, err := model.Collect(p.Stream(t.Context(), req))
	at := fmt.Sprintf("pieces of %d, stream %v", piece, stream)
	for _, bad := range s.Expect.differences(got, err, s.Taken) {
		t.Errorf("%s: %s", at, bad)
	}
	if err != nil || t.Failed() {
		return
	}
	// What came must be fit to be sent back.
	for i := range got.Message.Calls {
		if c := &got.Message.Calls[i]; !isObject(c.Arguments) {
			c.Arguments = "{}" // as the loop does before it runs a call
		}
	}
	before := s.body(t, open, req)
	req.Messages = append(req.Messages, got.Message)
	for _, c := range got.Message.Calls {
		req.Messages = append(req.Messages, model.Message{Role: model.ToolRole, CallID: c.ID, Text: "result"})
	}
	if len(got.Message.Calls) == 0 {
		req.Messages = append(req.Messages, model.Message{Role: model.User, Text: "and?"})
	}
	after := s.body(t, open, req)
	rest := after
	for _, text := range s.Expect.Back {
		i := strings.Index(rest, text)
		if i < 0 {
			t.Errorf("%s: the next request lacks %q, or has it elsewhere:\n%s", at, text, after)
			break
		}
		rest = rest[i+len(text):]
		if strings.Contains(before, text) {
			t.Errorf("%s: a request without the answer has %q:\n%s", at, text, before)
		}
	}
	for _, text := range s.Expect.NotBack {
		if strings.Contains(after, text) {
			t.Errorf("%s: the next request has %q:\n%s", at, text, after)
		}
	}
}

// body returns the body of a request, checked.
func (s *Stream) body(t *testing.T, open func(endpoint.Server) (model.Provider, error), req *model.Request) string {
	t.Helper()
	var body []byte
	p, err := open(endpoint.Server{BaseURL: "http://model.test", HTTPClient: &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		if _, err := decode(r.URL.Path, body); err != nil {
			t.Errorf("a request that strict providers refuse: %v\n%s", err, body)
		}
		return nil, errors.New("seen")
	})}})
	if err != nil {
		t.Fatal(err)
	}
	for range p.Stream(context.Background(), req) {
	}
	return string(body)
}

// differences lists how an answer differs from what is expected.
func (x *Expect) differences(got *model.Response, err error, taken []string) (out []string) {
	add := func(what string, got, want any) {
		if got != want {
			out = append(out, fmt.Sprintf("%s: got %#v, want %#v", what, got, want))
		}
	}
	if x.Error != nil || err != nil {
		out = append(out, x.Error.differences(err)...)
	}
	add("text", got.Message.Text, x.Text)
	add("reasoning", got.Message.Reasoning, x.Reasoning)
	if err == nil {
		add("finish", got.Finish, x.Finish)
	}
	add("calls", len(got.Message.Calls), len(x.Calls))
	ids := map[string]bool{}
	for _, id := range taken {
		ids[id] = true
	}
	for i, c := range got.Message.Calls {
		if ids[c.ID] || c.ID == "" {
			out = append(out, fmt.Sprintf("calls[%d]: id %q is empty or taken", i, c.ID))
		}
		ids[c.ID] = true
		if i >= len(x.Calls) {
			break
		}
		want := x.Calls[i]
		if want.ID != "*" {
			add(fmt.Sprintf("calls[%d].id", i), c.ID, want.ID)
		}
		add(fmt.Sprintf("calls[%d].name", i), c.Name, want.Name)
		add(fmt.Sprintf("calls[%d].arguments", i), c.Arguments, want.Arguments)
	}
	switch u := got.Usage; {
	case x.Usage == nil || err != nil:
	case u == nil:
		out = append(out, "no usage")
	default:
		add("usage", ExpectUsage{u.InputTokens, u.OutputTokens, u.CacheReadTokens, u.CacheWriteTokens, u.ReasoningTokens}, *x.Usage)
	}
	return out
}

func (x *ExpectError) differences(err error) (out []string) {
	var e *model.Error
	switch {
	case x == nil:
		return []string{"failed: " + err.Error()}
	case !errors.As(err, &e):
		return []string{fmt.Sprintf("no failure, or one that is no *model.Error: %v", err)}
	}
	wait := e.RetryAfter.String()
	if e.RetryAfter == 0 {
		wait = ""
	}
	if want, perr := time.ParseDuration(x.RetryAfter); perr == nil {
		x = &ExpectError{x.Kind, x.Status, x.Code, x.Retryable, want.String(), x.Says}
	}
	if string(e.Kind) != x.Kind || e.Status != x.Status || e.Retryable != x.Retryable || wait != x.RetryAfter || x.Code != "" && e.Code != x.Code {
		out = append(out, fmt.Sprintf("error: got kind %s, status %d, code %q, retryable %v, wait %q: %s", e.Kind, e.Status, e.Code, e.Retryable, wait, e.Msg))
	}
	for _, text := range x.Says {
		if !strings.Contains(e.Msg, text) {
			out = append(out, fmt.Sprintf("error: %q does not say %q", e.Msg, text))
		}
	}
	return out
}
