package responses_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/model/endpoint"
	"github.com/transom-run/transom/model/modeltest"
	"github.com/transom-run/transom/model/responses"
)

const socketScript = `
models: [m]
conversations:
  - messages:
      - {role: user, content: hi}
      - {role: assistant, content: hello}
      - {role: user, content: and}
      - {role: assistant, content: "", tool_calls: [{id: c1, type: function, function: {name: t, arguments: "{\"a\":1}"}}]}
`

func hi(text ...string) *model.Request {
	req := &model.Request{Model: "m", Stream: true, Messages: []model.Message{{Role: model.User, Text: "hi"}}}
	for i, s := range text {
		role := model.Assistant
		if i%2 == 1 {
			role = model.User
		}
		req.Messages = append(req.Messages, model.Message{Role: role, Text: s})
	}
	return req
}

func socketProvider(t *testing.T, url string, s responses.Sockets) *responses.Provider {
	t.Helper()
	p, err := responses.New(responses.Config{Server: endpoint.Server{BaseURL: url, APIKey: "secret-key"}, Sockets: s})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestSockets: every request has a WebSocket of its own, carries the whole window,
// and refers to nothing that the server may have kept.
func TestSockets(t *testing.T) {
	var sockets int
	srv := modeltest.NewServer(t, socketScript)
	p := socketProvider(t, srv.URL, responses.OnlySocket)
	for _, tt := range []struct {
		req  *model.Request
		text string
		call string
	}{{hi(), "hello", ""}, {hi("hello", "and"), "", "t"}} {
		got, err := model.Collect(p.Stream(t.Context(), tt.req))
		if err != nil || got.Message.Text != tt.text || (tt.call != "") != (len(got.Message.Calls) == 1) {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	for _, r := range srv.Requests() {
		if r.Header.Get("Upgrade") != "websocket" || r.Header.Get("Authorization") != "Bearer secret-key" {
			t.Errorf("%s %s %v", r.Method, r.Path, r.Header)
		}
		sockets++
	}
	if sockets != 2 {
		t.Errorf("%d WebSockets for 2 requests", sockets)
	}
}

// TestSocketRefused: what a server that opens none is told depends on the choice;
// one that blames the key is never asked again over HTTP.
func TestSocketRefused(t *testing.T) {
	for _, tt := range []struct {
		sockets      responses.Sockets
		status       int
		says         string // of the error; "" is none
		kind         model.ErrorKind
		gets, asking int // requests of each kind after two prompts
	}{
		{responses.OnlySocket, 404, "opened no WebSocket (HTTP 404). Check the base URL, or set the provider's transport to http", model.Query, 2, 0},
		{responses.OnlySocket, 401, "Check the API key", model.Authentication, 2, 0},
		{responses.TrySocket, 404, "", "", 1, 2},
		{responses.TrySocket, 503, "", "", 2, 2},
		{responses.TrySocket, 401, "Check the API key", model.Authentication, 2, 0},
		{responses.TrySocket, 429, "limits the rate", model.RateLimit, 2, 0},
	} {
		gets, posts := 0, 0
		srv := modeltest.NewHandler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				gets++
				http.Error(w, "no secret-key here", tt.status)
				return
			}
			posts++
			w.Header().Set("Content-Type", "application/json")
			w.Write([]byte(`{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"by HTTP"}]}]}`))
		}))
		p := socketProvider(t, srv.URL, tt.sockets)
		for range 2 {
			got, err := model.Collect(p.Stream(t.Context(), hi()))
			var me *model.Error
			switch {
			case tt.says == "":
				if err != nil || got.Message.Text != "by HTTP" {
					t.Errorf("%v %d: %+v, %v", tt.sockets, tt.status, got, err)
				}
			case !errors.As(err, &me) || me.Kind != tt.kind || !strings.Contains(me.Msg, tt.says) || strings.Contains(me.Msg, "secret"):
				t.Errorf("%v %d: %v", tt.sockets, tt.status, err)
			}
		}
		if gets != tt.gets || posts != tt.asking {
			t.Errorf("%v %d: %d WebSockets tried, %d requests over HTTP", tt.sockets, tt.status, gets, posts)
		}
	}
}

// TestSocketErrors: an error message has its status, and a socket that closes
// before the end is a cut answer.
func TestSocketErrors(t *testing.T) {
	for _, tt := range []struct {
		message string
		reason  string
		says    string
		kind    model.ErrorKind
		status  int
		again   bool
	}{
		{`{"type":"error","status":429,"error":{"type":"rate","message":"slow down"}}`, "", "limits the rate of requests (HTTP 429): slow down", model.RateLimit, 429, true},
		{`{"type":"error","error":{"code":"context_length_exceeded","message":"too long"}}`, "", "too long for the model", model.ContextLimit, 0, false},
		{`{"type":"response.output_text.delta","delta":"a"}`, "secret-key expired", "in the middle: [redacted] expired.", model.Query, 0, true},
		{`{"type":"response.output_text.delta","delta":"a"}`, "", "ended its answer in the middle.", model.Query, 0, true},
	} {
		srv := modeltest.NewHandler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			conn, err := websocket.Accept(w, r, nil)
			if err != nil {
				return
			}
			defer conn.CloseNow()
			conn.Read(r.Context())
			conn.Write(r.Context(), websocket.MessageText, []byte(tt.message))
			if tt.reason != "" {
				conn.Close(websocket.StatusPolicyViolation, tt.reason)
			} else {
				conn.Close(websocket.StatusNormalClosure, "")
			}
		}))
		_, err := model.Collect(socketProvider(t, srv.URL, responses.OnlySocket).Stream(t.Context(), hi()))
		var me *model.Error
		if !errors.As(err, &me) || me.Kind != tt.kind || me.Status != tt.status || me.Retryable != tt.again || !strings.Contains(me.Msg, tt.says) {
			t.Errorf("%s: %+v", tt.message, err)
		}
	}
}

// TestSocketEnds: a cancelled request closes its socket at once; a silent one ends
// by the timeouts.
func TestSocketEnds(t *testing.T) {
	ended := make(chan struct{}, 4)
	srv := modeltest.NewHandler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { ended <- struct{}{} }()
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer conn.CloseNow()
		conn.Read(r.Context())
		if r.URL.Query().Get("begin") != "" {
			conn.Write(r.Context(), websocket.MessageText, []byte(`{"type":"response.output_text.delta","delta":"a"}`))
		}
		conn.Read(r.Context()) // until it is closed
	}))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range socketProvider(t, srv.URL+"?begin=1", responses.OnlySocket).Stream(ctx, hi()) {
		cancel()
	}
	for _, tt := range []struct {
		query  string
		header time.Duration
		says   string
	}{{"", time.Second, "did not begin to answer within 1s"}, {"?begin=1", time.Minute, "sent nothing for 50ms in the middle"}} {
		p, err := responses.New(responses.Config{Server: endpoint.Server{BaseURL: srv.URL + tt.query, HeaderTimeout: tt.header, IdleTimeout: 50 * time.Millisecond}, Sockets: responses.OnlySocket})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := model.Collect(p.Stream(t.Context(), hi())); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%q: %v", tt.query, err)
		}
	}
	for range 3 {
		select {
		case <-ended:
		case <-time.After(2 * time.Minute):
			t.Fatal("a socket stayed open")
		}
	}
}
