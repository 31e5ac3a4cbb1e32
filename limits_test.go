package transom_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/model/modeltest"
)

// accountWorld is a runtime with a GitHub account whose API counts requests: the
// model "one" limits their rate, and each answer costs two credits, as the answer
// says itself or by the list's prices.
type accountWorld struct {
	rt *transom.Runtime

	mu     sync.Mutex
	asked  []string // models
	retry  string   // retry-after of the model "one"
	code   string
	models string
}

func newAccountWorld(t *testing.T) *accountWorld {
	w := &accountWorld{code: "user_weekly_rate_limited", retry: "1",
		models: `{"data":[{"id":"one"},{"id":"two","billing":{"token_prices":{"batch_size":1000,"default":{"input_price":1,"output_price":2}}}},{"id":"auto"}]}`}
	srv := modeltest.NewHandler(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(r.URL.Path, "/models") {
			io.WriteString(rw, w.models)
			return
		}
		var body struct{ Model string }
		json.NewDecoder(r.Body).Decode(&body)
		w.mu.Lock()
		w.asked = append(w.asked, body.Model)
		w.mu.Unlock()
		switch body.Model {
		case "one":
			rw.Header().Set("Retry-After", w.retry)
			rw.WriteHeader(http.StatusTooManyRequests)
			fmt.Fprintf(rw, `{"error":{"code":%q,"message":"the week is over"}}`, w.code)
		case "two": // 1000 in, 500 out: two credits by the list
			io.WriteString(rw, `{"choices":[{"message":{"content":"from two"}}],"usage":{"prompt_tokens":1000,"completion_tokens":500}}`)
		default:
			io.WriteString(rw, `{"choices":[{"message":{"content":"from auto"}}],"usage":{"prompt_tokens":9,"completion_tokens":9},"copilot_usage":{"total_nano_aiu":2000000000}}`)
		}
	}))
	srv.AddUser("token-of-octo", "octo", nil)
	w.rt = open(t, map[string]string{"GITHUB_TOKEN": "token-of-octo", "COPILOT_DEBUG_GITHUB_API_URL": srv.URL})
	return w
}

// run sends a prompt and returns its answer with the events of the kinds asked for.
func (w *accountWorld) run(t *testing.T, s *transom.Session, kinds ...string) (answer string, events []string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	sub := s.Subscribe()
	defer sub.Close()
	if _, err := s.Send(ctx, transom.Message{Prompt: "go"}); err != nil {
		t.Fatal(err)
	}
	for e, err := range sub.All(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range kinds {
			if e.Type == k {
				events = append(events, e.Type+" "+string(e.Data))
			}
		}
		switch e.Type {
		case event.TypeAssistantMessage:
			m, _ := event.As[event.AssistantMessage](e)
			answer = m.Content
		case event.TypeSessionError:
			m, _ := event.As[event.SessionError](e)
			err := fmt.Errorf("%s %s: %s", m.ErrorType, m.ErrorCode, m.Message)
			return answer, events, err
		case event.TypeSessionIdle:
			return answer, events, nil
		}
	}
	t.Fatal("no end")
	return "", nil, nil
}

// Where a model limits the user, the host is asked, and another model goes on in
// the same turn.
func TestAnotherModelGoesOn(t *testing.T) {
	for _, tt := range []struct {
		response string
		asks     int // in two prompts
		answers  string
		says     string // of the error
	}{
		{"yes", 1, "from auto, from auto", ""},
		{"yes_always", 1, "from auto, from auto", ""},
		{"no", 2, ", ", "rate_limit user_weekly_rate_limited"},
		{"", 2, ", ", "rate_limit user_weekly_rate_limited"}, // no answer of the documented form
	} {
		w := newAccountWorld(t)
		w.retry = "3600" // nobody waits so long
		asks := 0
		s, err := w.rt.CreateSession(t.Context(), transom.SessionConfig{Answers: []string{transom.AutoModeRequest},
			OnRequest: func(_ context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
				asks++
				var p struct {
					ErrorCode         string
					RetryAfterSeconds float64
				}
				if err := json.Unmarshal(params, &p); err != nil || method != "autoModeSwitch.request" || p.ErrorCode != "user_weekly_rate_limited" || p.RetryAfterSeconds != 3600 {
					t.Errorf("asked %s %s", method, params)
				}
				return json.Marshal(map[string]string{"response": tt.response})
			}})
		if err != nil {
			t.Fatal(err)
		}
		var answers []string
		for range 2 {
			answer, events, err := w.run(t, s, event.TypeModelChange, event.TypeAutoModeSwitchRequested, event.TypeAutoModeSwitchCompleted)
			answers = append(answers, answer)
			if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%q: %v", tt.response, err)
			}
			if all := strings.Join(events, "\n"); tt.says == "" && len(answers) == 1 &&
				(len(events) != 3 || !strings.Contains(all, `"cause":"rate_limit_auto_switch"`) || !strings.Contains(all, `"newModel":"auto"`)) {
				t.Errorf("%q: %s", tt.response, all)
			}
		}
		if got := strings.Join(answers, ", "); got != tt.answers || asks != tt.asks {
			t.Errorf("%q: answers %q, asked %d times", tt.response, got, asks)
		}
	}
}

// Without another model, or without a host that answers, the limit is the end, and
// nobody is asked.
func TestNoOtherModel(t *testing.T) {
	w := newAccountWorld(t)
	w.retry, w.models = "3600", `{"data":[{"id":"one"}]}`
	s, err := w.rt.CreateSession(t.Context(), transom.SessionConfig{Answers: []string{transom.AutoModeRequest},
		OnRequest: func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
			t.Error("asked")
			return nil, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.run(t, s); err == nil || !strings.Contains(err.Error(), "longer than the limit of 1m0s") {
		t.Errorf("%v", err)
	}
	if len(w.asked) != 1 {
		t.Errorf("asked %v", w.asked)
	}
}

// What a session costs is counted, as the answer says or by the list's prices, and
// beyond its limit no model call is made unless the host raises it.
func TestSessionLimits(t *testing.T) {
	for _, name := range []string{"two", "auto"} {
		w := newAccountWorld(t)
		s, err := w.rt.CreateSession(t.Context(), transom.SessionConfig{Model: name, MaxAICredits: 3})
		if err != nil {
			t.Fatal(err)
		}
		for i, limited := range []bool{false, false, true} { // usage is checked before a call: one may go beyond
			answer, events, err := w.run(t, s, event.TypeUsageCheckpoint, event.TypeAssistantUsage)
			if limited {
				if err == nil || !strings.Contains(err.Error(), "quota session_limits_exhausted: The session has used 4 of the 3 AI credits") {
					t.Errorf("%s: %v", name, err)
				}
				continue
			}
			all := strings.Join(events, "\n")
			if err != nil || answer != "from "+name || !strings.Contains(all, fmt.Sprintf(`{"totalNanoAiu":%d}`, (i+1)*2e9)) || !strings.Contains(all, `"copilotUsage":{"totalNanoAiu":2000000000}`) {
				t.Errorf("%s: %q, %v\n%s", name, answer, err, all)
			}
		}
		if used, limit := s.Credits(); used != 4 || limit != 3 || len(w.asked) != 2 {
			t.Errorf("%s: used %v of %v, asked %v", name, used, limit, w.asked)
		}
		// A host that takes the question decides.
		s.Take(event.TypeSessionLimitsExhaustedRequested, true)
		sub := s.Subscribe()
		answers := []event.LimitsResponse{{Action: "cancel"}, {Action: "set", MaxAICredits: 4}, {Action: "add", Additional: 2}, {Action: "unset"}}
		done := make(chan struct{})
		go func() {
			defer close(done)
			for e, err := range sub.All(context.Background()) {
				if err != nil {
					return
				}
				if q, err := event.As[event.SessionLimitsExhaustedRequested](e); e.Type == event.TypeSessionLimitsExhaustedRequested && err == nil {
					if len(answers) == 0 || q.UsedAICredits < q.MaxAICredits || !s.AnswerLimits(q.RequestID, answers[0]) {
						t.Errorf("%+v with %d answers left", q, len(answers))
						return
					}
					answers = answers[1:]
				}
			}
		}()
		for i, want := range []struct {
			fails   bool
			changed string
		}{{true, ""}, {true, ""}, {false, `{"sessionLimits":{"maxAiCredits":5}}`}, {false, `{"sessionLimits":null}`}, {false, ""}} {
			answer, events, err := w.run(t, s, event.TypeSessionLimitsChanged)
			if (err != nil) != want.fails || err == nil && answer == "" || (want.changed != "") != (len(events) == 1) || want.changed != "" && !strings.HasSuffix(events[0], want.changed) {
				t.Errorf("%s, answer %d: %q, %v, %v", name, i, answer, err, events)
			}
		}
		sub.Close()
		<-done
	}
}
