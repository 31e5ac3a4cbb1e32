package endpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/coder/websocket"

	"github.com/transom-run/transom/model"
)

// Socket is a WebSocket to a server: a channel of whole text messages. One
// goroutine at a time may receive.
type Socket interface {
	Send(ctx context.Context, message []byte) error
	// Receive returns io.EOF once the server has closed the channel in order.
	Receive(ctx context.Context) ([]byte, error)
	Close() error
}

// SocketDialer is what an http.RoundTripper in [Server].HTTPClient may be besides:
// it opens the WebSocket for the URL (ws or wss) and the headers of a request.
// refused is the answer of a server that opened none; its body is short.
type SocketDialer interface {
	DialSocket(req *http.Request) (s Socket, refused *http.Response, err error)
}

// CodeNoSocket is the Code of an error for a server that opens no WebSocket.
const CodeNoSocket = "no_websocket"

// Converse makes one attempt over a WebSocket of its own: it sends one message and
// has read take apart those that come back, by [Answer].Next. The socket is closed
// after that, so that nothing of the exchange outlives it at the server.
//
// opened reports whether the server opened the WebSocket; where it did not, the
// request has not been made.
func (e *Endpoint) Converse(parent context.Context, req *model.Request, message []byte, read func(a *Answer) error) (opened bool, err error) {
	at := e.address(req.Model)
	a := &Answer{e: e, shown: socketURL(at.shown), Events: true}
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	hr, err := http.NewRequestWithContext(context.WithValue(ctx, askedKey{}, req), http.MethodGet, socketURL(at.url), nil)
	if err != nil {
		return false, a.transportError(parent, ctx, err)
	}
	if err := a.setHeaders(ctx, hr.Header, req); err != nil {
		if parent.Err() != nil {
			err = a.transportError(parent, ctx, err)
		}
		return false, err
	}
	timer := time.AfterFunc(e.cfg.HeaderTimeout, func() { cancel(errHeaderTimeout) })
	defer timer.Stop()
	socket, refused, err := e.dial(hr)
	switch {
	case refused != nil:
		defer refused.Body.Close()
		a.Body = refused.Body
		return false, a.noSocket(refused)
	case err != nil:
		return false, a.transportError(parent, ctx, err)
	}
	defer socket.Close()
	messages := &messages{socket: socket, ctx: ctx, begin: timer, left: e.cfg.MaxResponse}
	messages.idle = time.AfterFunc(e.cfg.IdleTimeout, func() { cancel(errIdleTimeout) })
	messages.idle.Stop() // until the answer has begun
	defer messages.idle.Stop()
	messages.timeout = e.cfg.IdleTimeout
	a.Next = messages.next
	if err := socket.Send(ctx, message); err != nil {
		return true, a.transportError(parent, ctx, err)
	}
	if err = read(a); err == nil {
		return true, nil
	}
	var me *model.Error
	if errors.As(err, &me) {
		return true, err
	}
	return true, a.transportError(parent, ctx, err)
}

// dial opens a WebSocket: by the client's transport where that can.
func (e *Endpoint) dial(req *http.Request) (Socket, *http.Response, error) {
	if d, ok := e.client.Transport.(SocketDialer); ok {
		return d.DialSocket(req)
	}
	return DialSocket(e.client, req)
}

// DialSocket opens a WebSocket with an HTTP client; see [SocketDialer].
func DialSocket(client *http.Client, req *http.Request) (Socket, *http.Response, error) {
	conn, resp, err := websocket.Dial(req.Context(), req.URL.String(), &websocket.DialOptions{HTTPClient: client, HTTPHeader: req.Header})
	if err != nil {
		if resp != nil && resp.StatusCode != http.StatusSwitchingProtocols && resp.Body != nil {
			return nil, resp, nil
		}
		return nil, nil, err
	}
	conn.SetReadLimit(-1) // the whole answer is counted
	return (*ownSocket)(conn), nil, nil
}

// ownSocket is a WebSocket of this process.
type ownSocket websocket.Conn

func (s *ownSocket) Send(ctx context.Context, message []byte) error {
	return (*websocket.Conn)(s).Write(ctx, websocket.MessageText, message)
}

func (s *ownSocket) Receive(ctx context.Context) ([]byte, error) {
	_, data, err := (*websocket.Conn)(s).Read(ctx)
	var ce websocket.CloseError
	switch {
	case errors.As(err, &ce) && ce.Code == websocket.StatusNormalClosure && ce.Reason == "":
		err = io.EOF
	case errors.As(err, &ce):
		err = &ClosedError{Reason: ce.Reason}
	}
	return data, err
}

// ClosedError is for a WebSocket that was closed before the answer was complete.
type ClosedError struct {
	Reason string // as the other side gave it; may be empty
}

func (e *ClosedError) Error() string { return "the WebSocket was closed: " + e.Reason }

// Unwrap makes it an answer that was cut.
func (e *ClosedError) Unwrap() error { return io.ErrUnexpectedEOF }

// Close does not wait for the server's word: the answer is complete, or of no use.
func (s *ownSocket) Close() error { return (*websocket.Conn)(s).CloseNow() }

// socketURL is the WebSocket's address for one of HTTP.
func socketURL(url string) string {
	if rest, ok := strings.CutPrefix(url, "http"); ok {
		return "ws" + rest
	}
	return url
}

// noSocket is for a server that opens no WebSocket: where it says why (a key, a
// rate), for that; else for the transport.
func (a *Answer) noSocket(resp *http.Response) *model.Error {
	e := a.statusError(resp)
	if e.Kind == model.Query && !e.Retryable {
		e.Code = CodeNoSocket
		e.Msg = fmt.Sprintf("The model endpoint %s opened no WebSocket (HTTP %d). Check the base URL, or set the provider's transport to http.", a.shown, resp.StatusCode)
	}
	return e
}

// messages reads the messages of a socket, counted and watched.
type messages struct {
	socket  Socket
	ctx     context.Context
	begin   *time.Timer // runs until the answer has begun
	idle    *time.Timer
	timeout time.Duration
	left    int64
}

func (m *messages) next() ([]byte, error) {
	data, err := m.socket.Receive(m.ctx)
	m.begin.Stop()
	if err != nil {
		return nil, err
	}
	if m.left -= int64(len(data)); m.left < 0 {
		return nil, errTooLarge
	}
	m.idle.Reset(m.timeout)
	return data, nil
}
