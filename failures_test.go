package transom_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/eventlog/memlog"
	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/model/anthropic"
	"github.com/transom-run/transom/model/endpoint"
	"github.com/transom-run/transom/model/openai"
	"github.com/transom-run/transom/model/responses"
)

// The table of docs/models.md says what becomes of each failure of a model's server.
// The test reads that table, and makes every failure of it happen over HTTP, on each
// wire: a row without a trial, or a trial without a row, fails.

// failureRow is a line of the table.
type failureRow struct {
	failure, kind, code, repeated string
	words                         []string
}

// failureTable reads the table of the page.
func failureTable(t *testing.T) (rows []failureRow) {
	page, err := os.ReadFile("docs/models.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Failures and retries\n")
	section, _, _ = strings.Cut(section, "\n## ")
	quoted := regexp.MustCompile(`"([^"]*)"`)
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if !strings.HasPrefix(line, "| ") || len(cells) != 4 || strings.HasPrefix(line, "| Failure ") {
			continue
		}
		r := failureRow{failure: strings.TrimSpace(cells[0]), kind: strings.Trim(cells[1], "` "), repeated: strings.TrimSpace(cells[2])}
		if kind, code, ok := strings.Cut(cells[1], ", code "); ok {
			r.kind, r.code = strings.Trim(kind, "` "), strings.Trim(code, "` ")
		}
		for _, q := range quoted.FindAllStringSubmatch(cells[3], -1) {
			r.words = append(r.words, q[1])
		}
		rows = append(rows, r)
	}
	if len(rows) < 20 {
		t.Fatalf("the table has %d rows: it is not read", len(rows))
	}
	return rows
}

// attempts is how often a request is made in all.
func (r *failureRow) attempts(t *testing.T) int {
	switch word, _, _ := strings.Cut(r.repeated, ","); word {
	case "no":
		return 1
	case "once":
		return 2
	case "yes":
		return model.DefaultRetry.MaxAttempts
	}
	t.Fatalf("%s: repeated %q", r.failure, r.repeated)
	return 0
}

// matcher is what words look like, with what stands for something in capitals.
func matcher(words, says string, status, attempts int) *regexp.Regexp {
	words = regexp.MustCompile(`\(HTTP \d+\)`).ReplaceAllString(words, fmt.Sprintf("(HTTP %d)", status))
	begin := "^"
	if strings.HasPrefix(words, "…") {
		begin = ""
	}
	text := regexp.QuoteMeta(words)
	for from, to := range map[string]string{
		"…": ".*", "SETTINGS": `provider\.apiKey or provider\.bearerToken of the session`,
		"REASON": ".*" + regexp.QuoteMeta(says) + ".*", "WHAT IT SAID": regexp.QuoteMeta(says), "BEGIN": regexp.QuoteMeta(fmt.Sprintf("%q", says)),
	} {
		text = strings.ReplaceAll(text, from, to)
	}
	end := "$"
	if attempts > 1 {
		end = fmt.Sprintf(` Gave up after %d attempts and [0-9.]+ seconds of waiting between them\.$`, attempts)
	}
	return regexp.MustCompile(begin + text + end)
}

// modelWire is one of the wires, and what its servers say.
type modelWire struct {
	name           string
	config         transom.ProviderConfig
	at             string // the address that is asked, where it is looked at
	open           func(endpoint.Server) (model.Provider, error)
	fine           string // an answer
	cut            string // a stream that goes on
	empty          map[string]string
	failed, blamed string // errors in a stream: the server's own, and the request's
	limited        string
}

func opened[T model.Provider](p T, err error) (model.Provider, error) { return p, err }

var modelWires = []modelWire{{
	name:   "completions",
	config: transom.ProviderConfig{Type: "openai"},
	open:   func(s endpoint.Server) (model.Provider, error) { return opened(openai.New(openai.Config{Server: s})) },
	fine:   `{"choices":[{"message":{"content":"fine"},"finish_reason":"stop"}]}`,
	cut:    "data: {\"choices\":[{\"delta\":{\"content\":\"par\"}}]}\n\n",
	empty: map[string]string{
		"":       `{"choices":[{"message":{"content":""},"finish_reason":"stop"}]}`,
		"length": `{"choices":[{"message":{"content":""},"finish_reason":"length"}]}`,
		"reason": `{"choices":[{"message":{"reasoning":"r"},"finish_reason":"length"}]}`,
		"filter": `{"choices":[{"message":{"content":null},"finish_reason":"content_filter"}]}`,
	},
	failed:  "data: {\"error\":{\"message\":\"boom\",\"type\":\"server_error\"}}\n\n",
	blamed:  "data: {\"error\":{\"message\":\"boom\",\"type\":\"invalid_request_error\"}}\n\n",
	limited: "data: {\"error\":{\"message\":\"boom\",\"code\":\"rate_limit_exceeded\"}}\n\n",
}, {
	name:   "responses",
	config: transom.ProviderConfig{Type: "openai", WireAPI: "responses"},
	open: func(s endpoint.Server) (model.Provider, error) {
		return opened(responses.New(responses.Config{Server: s}))
	},
	fine: `{"id":"r","status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"fine"}]}]}`,
	cut:  "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"par\"}\n\n",
	empty: map[string]string{
		"":       `{"id":"r","status":"completed","output":[]}`,
		"length": `{"id":"r","status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[]}`,
		"reason": `{"id":"r","status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[{"type":"reasoning","summary":[{"type":"summary_text","text":"r"}]}]}`,
		"filter": `{"id":"r","status":"incomplete","incomplete_details":{"reason":"content_filter"},"output":[]}`,
	},
	failed:  "event: response.failed\ndata: {\"type\":\"response.failed\",\"response\":{\"error\":{\"code\":\"server_error\",\"message\":\"boom\"}}}\n\n",
	blamed:  "event: error\ndata: {\"type\":\"error\",\"code\":\"invalid_prompt\",\"message\":\"boom\"}\n\n",
	limited: "event: response.failed\ndata: {\"type\":\"response.failed\",\"response\":{\"error\":{\"code\":\"rate_limit_exceeded\",\"message\":\"boom\"}}}\n\n",
}, {
	name:   "messages",
	config: transom.ProviderConfig{Type: "anthropic"},
	open: func(s endpoint.Server) (model.Provider, error) {
		return opened(anthropic.New(anthropic.Config{Server: s}))
	},
	fine: `{"type":"message","role":"assistant","content":[{"type":"text","text":"fine"}],"stop_reason":"end_turn"}`,
	cut:  "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"par\"}}\n\n",
	empty: map[string]string{
		"":       `{"type":"message","role":"assistant","content":[],"stop_reason":"end_turn"}`,
		"length": `{"type":"message","role":"assistant","content":[],"stop_reason":"max_tokens"}`,
		"reason": `{"type":"message","role":"assistant","content":[{"type":"thinking","thinking":"r","signature":"s"}],"stop_reason":"max_tokens"}`,
		"filter": `{"type":"message","role":"assistant","content":[],"stop_reason":"refusal"}`,
	},
	failed:  "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"boom\"}}\n\n",
	blamed:  "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"boom\"}}\n\n",
	limited: "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\",\"message\":\"boom\"}}\n\n",
}}

// azureWires are the same two wires at Azure's addresses, where the deployment is the
// model and the key stands in a header of its own.
func azureWires() []modelWire {
	versioned, v1 := modelWires[0], modelWires[1]
	versioned.name, versioned.config = "azure", transom.ProviderConfig{Type: "azure", AzureAPIVersion: "2025-01-01"}
	versioned.at = "/openai/deployments/m/chat/completions?api-version=2025-01-01"
	v1.name, v1.config, v1.at = "azure v1", transom.ProviderConfig{Type: "azure", WireAPI: "responses"}, "/openai/v1/responses"
	return []modelWire{versioned, v1}
}

// trial makes a failure happen.
type trial struct {
	name     string
	status   int    // of the answer; 0 where it has none
	kind     string // the error type, where the row leaves it open
	words    int    // which of the row's words
	says     string
	attempts int  // where the row leaves it open
	unasked  bool // the server is not reached
	answer   func(w *modelWire) http.HandlerFunc
	provider func(p *transom.ProviderConfig)
	// server has the settings that no host has: limits that would take too long to reach.
	server *endpoint.Server
	limit  [2]string // how these stand in the words, and what stands there instead
	only   string    // the wire that has it; "" is all
	// untrusted: the server's certificate is one that nobody knows.
	untrusted bool
}

// refuses is an error as all servers say it.
func refuses(status int, code, message string) func(*modelWire) http.HandlerFunc {
	return func(*modelWire) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"error":{"message":%q,"code":%q}}`, message, code)
		}
	}
}

// sends is a body with status 200.
func sends(typ string, body func(*modelWire) string) func(*modelWire) http.HandlerFunc {
	return func(wire *modelWire) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", typ)
			io.WriteString(w, body(wire))
		}
	}
}

func refusal(n int) trial {
	return trial{name: fmt.Sprint(n), status: n, says: "no", answer: refuses(n, "", "no.")}
}

func coded(n int, code string) trial {
	return trial{name: code, status: n, says: "no", answer: refuses(n, code, "no.")}
}

// hang goes on until the client has gone.
func hang(begin func(*modelWire) string) func(*modelWire) http.HandlerFunc {
	return func(wire *modelWire) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body) // only then the server notices that the client goes
			if begin != nil {
				w.Header().Set("Content-Type", "text/event-stream")
				io.WriteString(w, begin(wire))
				w.(http.Flusher).Flush()
			}
			<-r.Context().Done()
		}
	}
}

var cut = func(w *modelWire) string { return w.cut }

func emptied(reason string) func(*modelWire) http.HandlerFunc {
	return sends("application/json", func(w *modelWire) string { return w.empty[reason] })
}

// trials are those of the rows, by their first cell.
var trials = map[string][]trial{
	"401": {refusal(401)},
	"403": {refusal(403)},
	"the host gives no bearer token": {{says: "the vault is shut", unasked: true, provider: func(p *transom.ProviderConfig) {
		p.Token = func(context.Context) (string, error) { return "", errors.New("the vault is shut") }
	}}},
	"402; codes such as `insufficient_quota`, `billing_error`; 400 \"credit balance\"": {
		refusal(402), coded(429, "insufficient_quota"), coded(400, "billing_error"),
		{name: "credit balance", status: 400, answer: refuses(400, "", "Your credit balance is too low.")},
	},
	"429; codes `rate_limit_exceeded`, `rate_limit_error`": {refusal(429), coded(400, "rate_limit_exceeded"), coded(529, "rate_limit_error")},
	"404": {refusal(404)},
	"408, 409, 425, 5xx (but 501 and 505), 529 `overloaded_error`": {
		refusal(408), refusal(409), refusal(425), refusal(500), refusal(502), refusal(503), refusal(504), coded(529, "overloaded_error"),
	},
	"other 4xx, 501, 505": {refusal(400), refusal(405), refusal(418), refusal(422), refusal(501), refusal(505)},
	"an error in the stream (`error`, `response.failed`)": {
		{name: "failed", kind: "query", says: "boom", answer: sends("text/event-stream", func(w *modelWire) string { return w.cut + w.failed })},
		{name: "blamed", kind: "query", says: "boom", words: 1, attempts: 1, answer: sends("text/event-stream", func(w *modelWire) string { return w.cut + w.blamed })},
		{name: "limited", kind: "rate_limit", words: -1, answer: sends("text/event-stream", func(w *modelWire) string { return w.cut + w.limited })},
	},
	"no connection": {{says: "refused", unasked: true, provider: func(p *transom.ProviderConfig) {
		srv := httptest.NewServer(http.NotFoundHandler())
		srv.Close() // nobody listens there any more
		p.BaseURL = srv.URL
	}}},
	"cut stream": {
		{name: "ended", answer: sends("text/event-stream", cut)},
		{name: "broken", answer: func(wire *modelWire) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				io.WriteString(w, wire.cut)
				w.(http.Flusher).Flush()
				panic(http.ErrAbortHandler)
			}
		}},
	},
	"no begin of an answer for 10 minutes": {{
		answer: hang(nil), server: &endpoint.Server{HeaderTimeout: 20 * time.Millisecond}, limit: [2]string{endpoint.DefaultHeaderTimeout.String(), "20ms"},
	}},
	"nothing for 5 minutes within an answer": {{
		answer: hang(cut), server: &endpoint.Server{IdleTimeout: 20 * time.Millisecond}, limit: [2]string{endpoint.DefaultIdleTimeout.String(), "20ms"},
	}},
	"answer that is not JSON": {{says: "oops", answer: sends("application/json", func(*modelWire) string { return "oops" })}},
	"empty answer":            {{answer: emptied("")}},
	"empty answer, finish reason `length` or `content_filter`": {
		{name: "length", answer: emptied("length")}, {name: "reasoning", words: 1, answer: emptied("reason")}, {name: "filter", words: 2, answer: emptied("filter")},
	},
	"answer over 64 MiB": {{
		answer: sends("text/event-stream", func(w *modelWire) string { return strings.Repeat(w.cut, 100) }),
		server: &endpoint.Server{MaxResponse: 1000}, limit: [2]string{fmt.Sprint(endpoint.DefaultMaxResponse), "1000"},
	}},
	"web page": {{answer: sends("text/html", func(*modelWire) string { return "<!DOCTYPE html><html></html>" })}},
	"no WebSocket where `transport` asks for one": {{only: "responses", status: 404, answer: refuses(404, "", "no"), provider: func(p *transom.ProviderConfig) { p.Transport = "websockets" }}},
	"redirect to another host, untrusted certificate": {
		{name: "redirect", says: "", answer: func(*modelWire) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "http://localhost.invalid/", http.StatusTemporaryRedirect)
			}
		}},
		{name: "certificate", unasked: true, untrusted: true},
	},
}

// inOtherWorlds are rows that need more than a server that fails.
var inOtherWorlds = map[string]func(t *testing.T, r *failureRow){
	"code `context_length_exceeded`; 413; 400 and 422 whose text says so": tooLongForTheModel,
	"`sessionLimits.maxAiCredits` used up":                                creditsUsedUp,
	"nothing configured, a setting that is not served":                    nothingConfigured,
}

func TestTableOfFailures(t *testing.T) {
	seen := map[string]bool{}
	wires := append(slices.Clone(modelWires), azureWires()...)
	for _, row := range failureTable(t) {
		seen[row.failure] = true
		if drive := inOtherWorlds[row.failure]; drive != nil {
			t.Run(row.failure, func(t *testing.T) { drive(t, &row) })
			continue
		}
		if len(trials[row.failure]) == 0 || len(row.words) == 0 {
			t.Errorf("nothing tries %q, which the page lists with the words %q", row.failure, row.words)
		}
		for _, try := range trials[row.failure] {
			for i := range wires {
				if wire := &wires[i]; try.only == "" || try.only == wire.name {
					t.Run(strings.Join([]string{row.failure, try.name, wire.name}, "/"), func(t *testing.T) { try.drive(t, &row, wire) })
				}
			}
		}
	}
	for name := range trials {
		if !seen[name] {
			t.Errorf("the page has no row %q any more", name)
		}
	}
	for name := range inOtherWorlds {
		if !seen[name] {
			t.Errorf("the page has no row %q any more", name)
		}
	}
}

// atOnce repeats without waiting.
var atOnce = model.RetryPolicy{Base: 1, Cap: 1, RateLimitBase: 1, RateLimitCap: 1}

func (try *trial) drive(t *testing.T, row *failureRow, wire *modelWire) {
	var asked atomic.Int64
	handler := http.NotFound
	if try.answer != nil {
		handler = try.answer(wire)
	}
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if wire.at != "" && try.server == nil && (r.URL.RequestURI() != wire.at || r.Header.Get("Api-Key") == "") {
			t.Errorf("asked at %s, want %s with a key", r.URL.RequestURI(), wire.at)
		}
		handler(w, r)
	}))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	if try.untrusted {
		srv.StartTLS()
	} else {
		srv.Start()
	}
	defer srv.Close()
	defer endpoint.CloseIdleConnections()
	rt, err := transom.Open(transom.Config{Store: memlog.New(), Retry: atOnce, Getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close(context.Background())
	cfg := transom.SessionConfig{Model: "m", Streaming: true}
	if try.server != nil {
		s := *try.server
		s.BaseURL = srv.URL
		if cfg.Custom, err = wire.open(s); err != nil {
			t.Fatal(err)
		}
	} else {
		p := wire.config
		p.BaseURL, p.APIKey = srv.URL, "key-of-the-test"
		if try.provider != nil {
			try.provider(&p)
		}
		cfg.Provider = &p
	}
	s, err := rt.CreateSession(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	want := row.attempts(t)
	if try.attempts > 0 {
		want = try.attempts
	}
	kind := row.kind
	if try.kind != "" {
		kind = try.kind
	}
	words := regexp.MustCompile("")
	if try.words >= 0 {
		text := row.words[try.words]
		if try.limit[0] != "" {
			if !strings.Contains(text, try.limit[0]) {
				t.Errorf("the words %q do not name the limit %s", text, try.limit[0])
			}
			text = strings.ReplaceAll(text, try.limit[0], try.limit[1])
		}
		words = matcher(text, try.says, try.status, want)
	}
	checkFailure(t, turnOf(t, s, "hello"), want, kind, row.code, try.status, words)
	if n := int(asked.Load()); !try.unasked && n != want || try.unasked && n != 0 {
		t.Errorf("the server was asked %d times, want %d", n, want)
	}
}

// checkFailure: every attempt that failed is an event, and the turn ends with one error.
func checkFailure(t *testing.T, events []*event.Event, attempts int, kind, code string, status int, words *regexp.Regexp) {
	t.Helper()
	failures, failed := 0, []event.SessionError{}
	for _, e := range events {
		switch e.Type {
		case event.TypeModelCallFailure:
			failures++
		case event.TypeSessionError:
			p, err := event.As[event.SessionError](e)
			if err != nil {
				t.Fatal(err)
			}
			failed = append(failed, p)
		}
		if strings.Contains(string(e.Data), "key-of-the-test") {
			t.Errorf("%s holds the key", e.Type)
		}
	}
	if failures != attempts || len(failed) != 1 {
		t.Fatalf("%d failed attempts and %d errors, want %d and one", failures, len(failed), attempts)
	}
	got := failed[0]
	if got.ErrorType != kind || code != "" && got.ErrorCode != code || status >= 400 && got.StatusCode != status {
		t.Errorf("the error has type %s, code %q and status %d, want %s, %q and %d", got.ErrorType, got.ErrorCode, got.StatusCode, kind, code, status)
	}
	if !words.MatchString(got.Message) {
		t.Errorf("the words are\n%s\nand not\n%s", got.Message, words)
	}
}

// tooLongForTheModel: the conversation is too long, it is compacted once, and what is
// left is too long again.
func tooLongForTheModel(t *testing.T, row *failureRow) {
	if !strings.HasPrefix(row.repeated, "once, with a summary") || len(row.words) != 1 {
		t.Fatalf("the row says %q: %q", row.repeated, row.words)
	}
	for i := range modelWires {
		wire := &modelWires[i]
		for _, try := range []struct {
			status     int
			code, says string
		}{{400, "context_length_exceeded", "no."}, {413, "", "no."}, {400, "", "The maximum context length is 8192 tokens."}, {422, "", "The prompt is too long."}} {
			t.Run(fmt.Sprint(wire.name, " ", try), func(t *testing.T) {
				var prompts, summaries, refused atomic.Int64
				srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					body, _ := io.ReadAll(r.Body)
					switch {
					case strings.Contains(string(body), "create a detailed summary"):
						summaries.Add(1)
					case prompts.Add(1) > 1:
						refused.Add(1)
						refuses(try.status, try.code, try.says)(wire)(w, r)
						return
					}
					w.Header().Set("Content-Type", "application/json")
					io.WriteString(w, wire.fine)
				}))
				defer srv.Close()
				defer endpoint.CloseIdleConnections()
				p := wire.config
				p.BaseURL = srv.URL
				s, err := open(t, nil).CreateSession(t.Context(), transom.SessionConfig{Model: "m", Provider: &p})
				if err != nil {
					t.Fatal(err)
				}
				turnOf(t, s, "hello")
				events := turnOf(t, s, "and on")
				checkFailure(t, events, 2, row.kind, "", try.status, matcher(row.words[0], "", try.status, 1))
				begun := 0
				for _, e := range events {
					if e.Type == event.TypeCompactionStart && strings.Contains(string(e.Data), `"context_limit_retry"`) {
						begun++
					}
				}
				if refused.Load() != 2 || summaries.Load() != 1 || begun != 1 {
					t.Errorf("%d requests were refused, %d summaries made, %d told of", refused.Load(), summaries.Load(), begun)
				}
			})
		}
	}
}

func creditsUsedUp(t *testing.T, row *failureRow) {
	w := newAccountWorld(t)
	s, err := w.rt.CreateSession(t.Context(), transom.SessionConfig{Model: "two", MaxAICredits: 3})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		turnOf(t, s, "hello")
	}
	events := turnOf(t, s, "and on")
	checkFailure(t, events, row.attempts(t), row.kind, row.code, 0, matcher(row.words[0], "", 0, 1))
	if len(w.asked) != 2 {
		t.Errorf("the model was asked %v", w.asked)
	}
}

func nothingConfigured(t *testing.T, row *failureRow) {
	s, err := open(t, nil).CreateSession(t.Context(), transom.SessionConfig{})
	if err != nil {
		t.Fatal(err)
	}
	checkFailure(t, turnOf(t, s, "hello"), row.attempts(t), row.kind, row.code, 0, regexp.MustCompile("COPILOT_PROVIDER_BASE_URL"))
	_, err = open(t, nil).CreateSession(t.Context(), transom.SessionConfig{Provider: &transom.ProviderConfig{BaseURL: "http://127.0.0.1:9", WireAPI: "telepathy"}})
	var e *model.Error
	if !errors.As(err, &e) || string(e.Kind) != row.kind || !strings.Contains(e.Msg, "provider.wireApi") {
		t.Errorf("a wire that is not served: %v", err)
	}
}
