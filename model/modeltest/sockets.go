package modeltest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/model/endpoint"
	"github.com/transom-run/transom/model/internal/wire"
)

// RunMessages plays the streams of responses to the providers that open returns
// as the messages of a WebSocket, and checks what becomes of them as [RunStreams]
// does. Streams that are no sequence of events are left out.
func RunMessages(t *testing.T, open func(endpoint.Server) (model.Provider, error)) {
	all, err := Streams()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, s := range all {
		if s.Wire != Responses || s.Status != http.StatusOK || !strings.HasPrefix(s.Header["Content-Type"], "text/event-stream") {
			continue
		}
		n++
		t.Run(s.Name, func(t *testing.T) {
			p, err := open(endpoint.Server{BaseURL: "http://model.test", HTTPClient: &http.Client{Transport: &socket{events: wire.NewEvents(bytes.NewReader(s.Body), len(s.Body)+1), cut: s.Cut}}})
			if err != nil {
				t.Fatal(err)
			}
			got, err := model.Collect(p.Stream(t.Context(), s.ask(true)))
			for _, bad := range s.Expect.differences(got, err, s.Taken) {
				t.Error(bad)
			}
			if t.Failed() {
				t.Logf("%s\n%s", s.About, s.Body)
			}
		})
	}
	if n < 20 {
		t.Errorf("only %d streams were played", n)
	}
}

// socket is a WebSocket whose other side sends the events of a stream.
type socket struct {
	events *wire.Events
	cut    bool
}

func (s *socket) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("asked over HTTP")
}

func (s *socket) DialSocket(*http.Request) (endpoint.Socket, *http.Response, error) {
	return s, nil, nil
}

func (s *socket) Send(_ context.Context, message []byte) error {
	var m map[string]json.RawMessage
	if err := json.Unmarshal(message, &m); err != nil || string(m["type"]) != `"response.create"` || m["stream"] != nil {
		return fmt.Errorf("not a message of the wire: %s", message)
	}
	return nil
}

func (s *socket) Receive(context.Context) ([]byte, error) {
	data, err := s.events.Next()
	if err == io.EOF && s.cut {
		err = io.ErrUnexpectedEOF
	}
	return data, err
}

func (s *socket) Close() error { return nil }
