package jsonrpc2

import (
	"context"
	"encoding/json"
	"net"
	"strings"
	"testing"
)

// tcpPair is two ends of one loopback connection.
func tcpPair(b *testing.B) (net.Conn, net.Conn) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	there, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	here, err := l.Accept()
	if err != nil {
		b.Fatal(err)
	}
	return here, there
}

// discard is a stream that takes everything and says nothing.
type discard struct{ closed chan struct{} }

func (d discard) Read([]byte) (int, error)    { <-d.closed; return 0, net.ErrClosed }
func (d discard) Write(p []byte) (int, error) { return len(p), nil }
func (d discard) Close() error                { close(d.closed); return nil }

var delta = []byte(`{"sessionId":"0b5f2f0e-6d3e-4a53-9a0c-1f2e3d4c5b6a","event":{"type":"assistant.message_delta","data":{"messageId":"m-1","deltaContent":"some words of a reply"},"id":"1c9f0a52-8f0e-4a7b-9a55-7d5f0e3b2a11","timestamp":"2026-11-30T15:00:00.000Z","parentId":null,"ephemeral":true}}`)

// BenchmarkNotifyRaw is one delta of some 300 bytes through the queue, with the
// pump's back-pressure, on a stream that costs nothing and on loopback TCP.
func BenchmarkNotifyRaw(b *testing.B) {
	b.Run("stream=none", func(b *testing.B) {
		benchNotify(b, discard{make(chan struct{})})
	})
	b.Run("stream=tcp", func(b *testing.B) {
		here, there := tcpPair(b)
		go func() { newFrameReader(there).drain() }()
		benchNotify(b, here)
	})
}

func benchNotify(b *testing.B, stream interface {
	Read([]byte) (int, error)
	Write([]byte) (int, error)
	Close() error
}) {
	c := New(stream, Config{})
	go func() { _ = c.Serve(context.Background()) }()
	b.ReportAllocs()
	b.SetBytes(int64(len(delta)))
	for b.Loop() {
		if err := c.NotifyWait(context.Background(), "session.event", delta); err != nil {
			b.Fatal(err)
		}
	}
	c.Close()
	<-c.Done()
}

// BenchmarkRoundTrip is a request and its answer over loopback TCP, one at a
// time and many at once.
func BenchmarkRoundTrip(b *testing.B) {
	for _, row := range []struct {
		name  string
		width int
	}{{"atOnce=1", 1}, {"atOnce=64", 64}} {
		b.Run(row.name, func(b *testing.B) {
			here, there := tcpPair(b)
			server := New(here, Config{Handler: HandlerFunc(pong)})
			client := New(there, Config{})
			go func() { _ = server.Serve(context.Background()) }()
			go func() { _ = client.Serve(context.Background()) }()
			params := json.RawMessage(`{"sessionId":"s","requestId":"r","result":"ok"}`)
			places := make(chan struct{}, row.width)
			b.ReportAllocs()
			for b.Loop() {
				places <- struct{}{}
				client.Go(context.Background(), "echo", params, func(_ json.RawMessage, err error) {
					if err != nil {
						b.Error(err)
					}
					<-places
				})
			}
			for range row.width {
				places <- struct{}{}
			}
			client.Close()
			<-client.Done()
			<-server.Done()
		})
	}
}

// BenchmarkLargeBody is the cost of a large message's bytes on their way in.
func BenchmarkLargeBody(b *testing.B) {
	body := []byte(request(1, "m", `{"s":"`+strings.Repeat("text with \\n some escapes ", 400_000)+`"}`))
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, bad := decode(body); bad != nil {
			b.Fatal(bad)
		}
	}
}
