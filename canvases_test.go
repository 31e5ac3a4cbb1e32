package transom_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/eventlog/memlog"
)

// shower answers for canvases and keeps what it was asked.
type shower struct {
	asked chan string
	fails bool
}

func (s *shower) handle(_ context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	var p struct {
		CanvasID, InstanceID, ExtensionID, ActionName string
		Input                                         json.RawMessage
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, err
	}
	s.asked <- fmt.Sprintf("%s %s %s %s %s %s", method, p.ExtensionID, p.CanvasID, p.InstanceID, p.ActionName, p.Input)
	if s.fails {
		return nil, errors.New("no screen")
	}
	switch method {
	case "canvas.open":
		return json.RawMessage(`{"url":"http://localhost/c","title":"T","status":"ready"}`), nil
	case "canvas.action.invoke":
		return json.RawMessage(`{"value":2}`), nil
	}
	return nil, nil
}

func (s *shower) took(t *testing.T, want string) {
	t.Helper()
	select {
	case got := <-s.asked:
		if got != want {
			t.Errorf("asked %q, want %q", got, want)
		}
	default:
		t.Errorf("nothing was asked, want %q", want)
	}
}

func TestCanvases(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	store := memlog.New()
	open := func() *transom.Runtime {
		rt, err := transom.Open(transom.Config{Store: store, Provider: &script{}, Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		return rt
	}
	rt := open()
	sh := &shower{asked: make(chan string, 9)}
	counter := []transom.Canvas{{ID: "counter", DisplayName: "Counter", Description: "d", Actions: []transom.CanvasAction{{Name: "add"}}}}
	cfg := transom.SessionConfig{ID: "s", Canvases: counter, CanvasProvider: transom.CanvasProvider{ID: "app:1", Name: "App"}, OnRequest: sh.handle}
	s, err := rt.CreateSession(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	kind := func(err error) transom.Kind {
		var e *transom.Error
		if !errors.As(err, &e) {
			return ""
		}
		return e.Kind
	}
	if _, err := s.OpenCanvas(ctx, transom.CanvasOpening{CanvasID: "other", InstanceID: "i"}); kind(err) != transom.KindNotFound {
		t.Errorf("a canvas that nobody shows: %v", err)
	}
	want := transom.OpenCanvas{InstanceID: "i", ExtensionID: "app:1", ExtensionName: "App", CanvasID: "counter", Title: "T", Status: "ready", URL: "http://localhost/c", Input: json.RawMessage(`{"start":1}`)}
	got, err := s.OpenCanvas(ctx, transom.CanvasOpening{CanvasID: "counter", InstanceID: "i", Input: json.RawMessage(`{"start":1}`)})
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	sh.took(t, `canvas.open app:1 counter i  {"start":1}`)
	raw, err := s.InvokeCanvas(ctx, "i", "add", json.RawMessage(`{"n":1}`))
	if err != nil || string(raw) != `{"value":2}` {
		t.Errorf("%s, %v", raw, err)
	}
	sh.took(t, `canvas.action.invoke app:1 counter i add {"n":1}`)
	if _, err := s.InvokeCanvas(ctx, "i", "sub", nil); kind(err) != transom.KindInvalidParams {
		t.Errorf("an action that there is not: %v", err)
	}
	if _, err := s.InvokeCanvas(ctx, "j", "add", nil); kind(err) != transom.KindNotFound {
		t.Errorf("an instance that there is not: %v", err)
	}
	// A second client has a canvas of the same id: it has to be named.
	other := &shower{asked: make(chan string, 9), fails: true}
	s2, err := rt.ResumeSession(ctx, "s", transom.ResumeConfig{Canvases: counter, OnRequest: other.handle, CanvasProvider: transom.CanvasProvider{ID: "app:2"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s2.OpenCanvas(ctx, transom.CanvasOpening{CanvasID: "counter", InstanceID: "k"}); kind(err) != transom.KindInvalidParams {
		t.Errorf("two clients: %v", err)
	}
	if _, err := s2.OpenCanvas(ctx, transom.CanvasOpening{CanvasID: "counter", InstanceID: "k", ExtensionID: "app:2"}); kind(err) != transom.KindUpstream {
		t.Errorf("a client that fails: %v", err)
	}
	if n := len(s.OpenCanvases()); n != 1 {
		t.Errorf("%d canvases are open", n)
	}
	if err := s2.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := s.OpenCanvas(ctx, transom.CanvasOpening{CanvasID: "counter", InstanceID: "k"}); err != nil {
		t.Error(err)
	}
	if err := s.CloseCanvas(ctx, "k"); err != nil {
		t.Error(err)
	}
	if err := rt.Close(ctx); err != nil {
		t.Fatal(err)
	}

	// After a restart the open one is known, and unavailable until its client is back.
	rt = open()
	defer rt.Close(ctx)
	s, err = rt.ResumeSession(ctx, "s", transom.ResumeConfig{})
	if err != nil {
		t.Fatal(err)
	}
	want = transom.OpenCanvas{InstanceID: "i", ExtensionID: "app:1", CanvasID: "counter", Title: "T", Status: "unavailable", Input: json.RawMessage(`{"start":1}`)}
	if diff := cmp.Diff([]transom.OpenCanvas{want}, s.OpenCanvases()); diff != "" {
		t.Error(diff)
	}
	events := s.Subscribe()
	defer events.Close()
	back := &shower{asked: make(chan string, 9)}
	s2, err = rt.ResumeSession(ctx, "s", transom.ResumeConfig{Canvases: counter, CanvasProvider: cfg.CanvasProvider, OnRequest: back.handle,
		OpenCanvases: []transom.OpenCanvas{{InstanceID: "i", ExtensionID: "app:1", CanvasID: "counter", Title: "T", URL: "http://localhost/d"}}})
	if err != nil {
		t.Fatal(err)
	}
	if list := s2.OpenCanvases(); len(list) != 1 || list[0].Status != "" || list[0].URL != "http://localhost/d" {
		t.Errorf("%+v", list)
	}
	if _, err := s.InvokeCanvas(ctx, "i", "add", nil); err != nil {
		t.Error(err)
	}
	if err := s2.Close(ctx); err != nil {
		t.Fatal(err)
	}
	var types []string
	for e, err := range events.All(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		switch e.Payload.(type) {
		case event.CanvasRegistry, event.CanvasUnavailable:
			types = append(types, e.Type)
		}
		if len(types) == 3 {
			break
		}
	}
	if diff := cmp.Diff([]string{event.TypeCanvasRegistry, event.TypeCanvasUnavailable, event.TypeCanvasRegistry}, types); diff != "" {
		t.Error(diff)
	}
	if _, err := s.InvokeCanvas(ctx, "i", "add", nil); kind(err) != transom.KindNotFound {
		t.Errorf("the client has gone: %v", err)
	}
	if err := s.CloseCanvas(ctx, "i"); err != nil || s.OpenCanvases() != nil && len(s.OpenCanvases()) != 0 {
		t.Errorf("%v, %v", err, s.OpenCanvases())
	}
}
