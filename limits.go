package transom

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/internal/turn"
	"github.com/transom-run/transom/model"
)

// AutoModeRequest is the request of the protocol by which a host is asked whether
// another model may go on where the one in use limits the rate of requests.
const AutoModeRequest = "autoModeSwitch.request"

// switching says what hosts have said of other models.
type switching struct {
	always atomic.Bool // nobody needs to be asked any more
}

// another names the model that goes on for one that limits the rate of requests;
// "" where none may. The host is asked once no attempt is left, or at once where
// the provider says that it is the user whom it limits: waiting helps little then.
func (s *loaded) another(ctx context.Context, limited string, err *model.Error, last bool) string {
	if !last && !strings.HasPrefix(err.Code, "user_") {
		return ""
	}
	if s.switching.always.Load() || s.answered(AutoModeRequest) || s.taker(event.TypeAutoModeSwitchRequested) {
		next := s.models.other(ctx, limited)
		if next == "" || !s.switching.always.Load() && !s.agreed(ctx, err) {
			return ""
		}
		if _, err := s.Do(ctx, turn.Configure{Model: &next, Cause: "rate_limit_auto_switch"}, nil); err == nil {
			return next
		}
	}
	return ""
}

// agreed asks a host whether another model may go on: by a request and by an event,
// whichever is answered first.
func (s *loaded) agreed(ctx context.Context, err *model.Error) bool {
	var seconds *float64
	if err.RetryAfter > 0 {
		n := err.RetryAfter.Seconds()
		seconds = &n
	}
	asking, stop := context.WithCancel(ctx)
	var wait sync.WaitGroup
	defer wait.Wait()
	defer stop()
	asked := func(id string, _ json.RawMessage) event.Payload {
		if s.answered(AutoModeRequest) {
			wait.Go(func() {
				params := struct {
					SessionID string   `json:"sessionId"`
					Code      string   `json:"errorCode,omitempty"`
					Seconds   *float64 `json:"retryAfterSeconds,omitempty"`
				}{s.ID(), err.Code, seconds}
				answer, _ := s.ask(asking, AutoModeRequest, params)
				s.questions.settle(aboutAutoMode, id, answer)
			})
		}
		return event.AutoModeSwitchRequested{RequestID: id, ErrorCode: err.Code, RetryAfterSeconds: seconds}
	}
	parse := func(raw json.RawMessage) string {
		var a struct {
			Response string `json:"response"`
		}
		if json.Unmarshal(raw, &a) != nil {
			return "no"
		}
		return cmp.Or(a.Response, "no")
	}
	raw, failed := s.question(ctx, aboutAutoMode, "", asked, func(id string, raw json.RawMessage) event.Payload {
		return event.AutoModeSwitchCompleted{RequestID: id, Response: parse(raw)}
	})
	if failed != nil {
		return false
	}
	switch parse(raw) {
	case "yes_always":
		s.switching.always.Store(true)
		return true
	case "yes":
		return true
	}
	return false
}

// AnswerAutoMode answers whether another model may go on: "yes", "yes_always" or
// "no". It reports whether the answer counted.
func (h *Session) AnswerAutoMode(requestID, response string) bool {
	raw, _ := json.Marshal(map[string]string{"response": response}) // strings always encode
	return h.sess.questions.settle(aboutAutoMode, requestID, raw)
}

// other names a model of the account, or of the registry, that is not the one that
// is limited: "auto" where there is one, else the first. "" where there is none.
func (m *models) other(ctx context.Context, limited string) string {
	m.mu.Lock()
	choice, answers, registry := m.choice, m.answers, m.registry
	m.mu.Unlock()
	var list []model.Info
	if l, ok := answers.(model.Lister); ok {
		list, _ = l.Models(ctx)
	} else if choice != nil && choice.Account != nil {
		list, _ = choice.Account.Refresh(ctx)
	}
	if limited == "" && len(list) > 0 {
		limited = list[0].ID
	}
	next := ""
	for _, info := range append(list[:len(list):len(list)], registry.Models()...) {
		switch {
		case info.ID == limited:
		case info.ID == "auto":
			return info.ID
		case next == "":
			next = info.ID
		}
	}
	return next
}

// nano is how many units of cost an AI credit has.
const nano = 1e9

// Credits is what the session has cost, in AI credits, and what it may cost; 0 is
// anything. Only accounts say what requests cost: others cost nothing here.
func (h *Session) Credits() (used, limit float64) { return credits(h.sess.View()) }

func credits(v *turn.State) (used, limit float64) {
	return float64(v.NanoAIU()) / nano, v.Live.Settings.Credits
}

// affordable lets a model call be made unless the session has cost what it may. A
// host that takes the question decides then.
func (s *loaded) affordable(ctx context.Context) error {
	for {
		used, limit := credits(s.View())
		if limit <= 0 || used < limit {
			return nil
		}
		spent := &model.Error{Kind: model.Quota, Code: "session_limits_exhausted", Msg: fmt.Sprintf(
			"The session has used %.3g of the %.3g AI credits that it may (sessionLimits.maxAiCredits). Raise the limit to go on.", used, limit)}
		if !s.taker(event.TypeSessionLimitsExhaustedRequested) {
			return spent
		}
		var a event.LimitsResponse
		parse := func(raw json.RawMessage) event.LimitsResponse {
			a := event.LimitsResponse{Action: "cancel"}
			if json.Unmarshal(raw, &a) != nil {
				a = event.LimitsResponse{Action: "cancel"}
			}
			return a
		}
		raw, err := s.question(ctx, aboutLimits, "", func(id string, _ json.RawMessage) event.Payload {
			return event.SessionLimitsExhaustedRequested{RequestID: id, MaxAICredits: limit, UsedAICredits: used}
		}, func(id string, raw json.RawMessage) event.Payload {
			return event.SessionLimitsExhaustedCompleted{RequestID: id, Response: parse(raw)}
		})
		if err != nil {
			return err
		}
		switch a = parse(raw); {
		case a.Action == "add" && a.Additional > 0:
			err = s.setLimit(ctx, limit+a.Additional)
		case a.Action == "set" && a.MaxAICredits > used:
			err = s.setLimit(ctx, a.MaxAICredits)
		case a.Action == "unset":
			err = s.setLimit(ctx, 0)
		default:
			return spent
		}
		if err != nil {
			return err
		}
	}
}

// setLimit says what the session may cost from now on, in AI credits; 0 is anything.
func (s *loaded) setLimit(ctx context.Context, credits float64) error {
	body, err := Configure{MaxAICredits: &credits}.body()
	if err == nil {
		_, err = s.Do(ctx, body, nil)
	}
	return err
}

// AnswerLimits answers what is to be done, since the session has cost what it may.
// It reports whether the answer counted.
func (h *Session) AnswerLimits(requestID string, a event.LimitsResponse) bool {
	raw, _ := json.Marshal(a) // strings and finite numbers always encode
	return h.sess.questions.settle(aboutLimits, requestID, raw)
}
