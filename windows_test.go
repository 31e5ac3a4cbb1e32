package transom_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/eventlog/memlog"
	"github.com/transom-run/transom/model/catalog"
	"github.com/transom-run/transom/model/endpoint"
	"github.com/transom-run/transom/model/modeltest"
)

// TestWindowOfOwnProvider grows a conversation beyond what the model of a host's own
// provider takes. Where the host states the size of its window, summaries keep the
// conversation within it, and nothing is refused. Where nobody does, the documented
// default is what usage is told against, and a warning says so, until the model refuses: that is made good by a
// summary, and what was refused is the size from then on.
func TestWindowOfOwnProvider(t *testing.T) {
	defer endpoint.CloseIdleConnections()
	for _, wire := range modelWires {
		for _, stated := range []int{8000, 0} {
			t.Run(fmt.Sprintf("%s/%d", wire.name, stated), func(t *testing.T) { growing(t, &wire, stated) })
		}
	}
}

func growing(t *testing.T, wire *modelWire, stated int) {
	const takes = 60_000 // bytes of a request: more than 8,000 tokens by any count
	var refused atomic.Int64
	srv := modeltest.NewHandler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client has gone
		}
		w.Header().Set("Content-Type", "application/json")
		if len(body) > takes {
			refused.Add(1)
			w.WriteHeader(http.StatusBadRequest)
			io.WriteString(w, `{"error":{"code":"context_length_exceeded","message":"prompt is too long"}}`)
			return
		}
		io.WriteString(w, wire.fine)
	}))
	rt, err := transom.Open(transom.Config{Store: memlog.New(), Retry: atOnce, Getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close(context.Background())
	cfg := wire.config
	cfg.BaseURL, cfg.ContextWindow = srv.URL, stated
	s, err := rt.CreateSession(t.Context(), transom.SessionConfig{Model: "m", Provider: &cfg, SystemMessage: transom.SystemMessage{Mode: "replace", Content: "You listen."}})
	if err != nil {
		t.Fatal(err)
	}
	var sizes []int
	for n := range 18 {
		events := turnOf(t, s, fmt.Sprint(n, strings.Repeat(" some words", 360)))
		if errs := ofType[event.SessionError](t, events); len(errs) > 0 {
			t.Fatalf("turn %d: %+v", n, errs)
		}
		for _, u := range ofType[event.UsageInfo](t, events) {
			sizes = append(sizes, u.TokenLimit)
		}
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	var events []*event.Event
	for e, err := range s.Events().All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	if n := len(ofType[event.CompactionStart](t, events)); n == 0 || len(sizes) < 18 {
		t.Fatalf("%d summaries; usage is told against %v", n, sizes)
	}
	warned := 0
	for _, w := range ofType[event.SessionWarning](t, events) {
		if strings.Contains(w.Message, "the context window of m") && strings.Contains(w.Message, "128000 tokens") && strings.Contains(w.Message, "maxPromptTokens") {
			warned++
		}
	}
	if want := map[bool]int{true: 0, false: 1}[stated > 0]; warned != want {
		t.Errorf("%d warnings of a window that nobody states, want %d", warned, want)
	}
	newest := sizes[len(sizes)-1]
	if stated > 0 && (refused.Load() > 0 || sizes[0] != stated || newest != stated) {
		t.Errorf("%d requests were refused; usage is told against %v", refused.Load(), sizes)
	}
	if stated == 0 && (refused.Load() != 1 || sizes[0] != catalog.DefaultContextWindow || newest > takes/2) {
		t.Errorf("%d requests were refused; usage is told against %v", refused.Load(), sizes)
	}
}
