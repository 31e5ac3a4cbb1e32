package server

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"unicode/utf8"

	"github.com/transom-run/transom/model/endpoint"
)

// DialSocket has the client open a WebSocket; see [endpoint.SocketDialer]. The
// client says that it is open with the head of an answer, and each piece of a body
// is one message from then on.
func (in *inference) DialSocket(req *http.Request) (endpoint.Socket, *http.Response, error) {
	x := in.exchange(req)
	x.socket = true
	if !in.enter(x) {
		return nil, nil, errGone
	}
	s := start(x.id, req)
	s.Transport = "websocket"
	in.post(x, "llmInference.httpRequestStart", s)
	resp := <-x.head
	switch {
	case resp == nil:
		return nil, nil, x.failure()
	case resp.StatusCode != http.StatusSwitchingProtocols && resp.StatusCode/100 != 2:
		return nil, resp, nil
	}
	return hostSocket{x}, nil, nil
}

// hostSocket is a WebSocket that the client holds.
type hostSocket struct{ x *exchange }

// Send passes a message on. It ends with the socket, not with ctx: the client is
// sent messages in order, without waiting for it.
func (s hostSocket) Send(_ context.Context, message []byte) error {
	if !utf8.Valid(message) {
		return errors.New("a message that is not UTF-8")
	}
	s.x.in.post(s.x, "llmInference.httpRequestChunk", requestChunk{RequestID: s.x.id, Data: string(message)})
	return nil
}

// Receive returns the next message. The socket ends with the context of its
// request.
func (s hostSocket) Receive(context.Context) ([]byte, error) {
	x := s.x
	for {
		x.mu.Lock()
		if len(x.ends) > 0 && (x.err == nil || x.err == io.EOF) {
			data := bytes.Clone(x.held.Next(x.ends[0]))
			x.ends = x.ends[1:]
			x.mu.Unlock()
			return data, nil
		}
		err := x.err
		x.mu.Unlock()
		if err != nil {
			return nil, err
		}
		<-x.wake
	}
}

// Close tells the client that no more is sent.
func (s hostSocket) Close() error {
	if s.x.in.take(s.x.id) {
		s.x.in.post(s.x, "llmInference.httpRequestChunk", requestChunk{RequestID: s.x.id, End: true})
	}
	s.x.finish(io.EOF)
	return nil
}
