package jsonrpc2

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	sg "github.com/sourcegraph/jsonrpc2"
)

// TestIndependentPeer: an implementation that shares no code with this one
// talks to it over TCP, both sides asking at once and from within handlers.
func TestIndependentPeer(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	served := make(chan error, 1)
	go func() {
		here, err := l.Accept()
		if err != nil {
			served <- err
			return
		}
		served <- New(here, Config{Handler: HandlerFunc(func(ctx context.Context, c *Conn, r *Responder) {
			switch r.Request().Method {
			case "relay": // asks the peer back, with what it was sent
				r.Go(func(ctx context.Context) (any, error) { return c.Call(ctx, "tool", r.Request().Params) })
			case "relayAsync":
				c.Go(ctx, "tool", r.Request().Params, func(result json.RawMessage, err error) { r.Reply(result, err) })
			default:
				pong(ctx, c, r)
			}
		})}).Serve(ctx)
	}()
	there, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	client := sg.NewConn(ctx, sg.NewBufferedStream(there, sg.VSCodeObjectCodec{}), sg.AsyncHandler(
		sg.HandlerWithError(func(ctx context.Context, conn *sg.Conn, req *sg.Request) (any, error) {
			var n int
			if err := json.Unmarshal(*req.Params, &n); err != nil {
				return nil, err
			}
			if n%7 == 0 {
				return nil, &sg.Error{Code: -32011, Message: "seven"}
			}
			var again string // from inside the handler, back on the same connection
			if err := conn.Call(ctx, "ping", nil, &again); err != nil || again != "pong" {
				return nil, fmt.Errorf("nested ping: %q, %w", again, err)
			}
			return n * 2, nil
		})))
	var group sync.WaitGroup
	for n := 1; n <= 200; n++ {
		group.Go(func() {
			method := "relay"
			if n%2 == 0 {
				method = "relayAsync"
			}
			var opts []sg.CallOption
			if n%3 == 0 {
				opts = append(opts, sg.PickID(sg.ID{Str: fmt.Sprintf("text-%d", n), IsString: true}))
			}
			var result int
			err := client.Call(ctx, method, n, &result, opts...)
			var coded *sg.Error
			switch {
			case n%7 == 0 && (!errors.As(err, &coded) || coded.Code != -32011 || coded.Message != "seven"):
				t.Errorf("call %d: %v, want the tool's own error", n, err)
			case n%7 != 0 && (err != nil || result != n*2):
				t.Errorf("call %d = %d, %v", n, result, err)
			}
		})
	}
	group.Wait()
	_ = client.Close()
	if err := <-served; err != nil {
		t.Errorf("Serve = %v", err)
	}
}

// stdio is two pipes as one stream, the way a child process sees its parent.
type stdio struct{ in, out *os.File }

func (s stdio) Read(p []byte) (int, error)  { return s.in.Read(p) }
func (s stdio) Write(p []byte) (int, error) { return s.out.Write(p) }
func (s stdio) Close() error                { return errors.Join(s.in.Close(), s.out.Close()) }

// TestPipes: over OS pipes, the whole conversation between two Conns, ended by
// one side while both have work in flight.
func TestPipes(t *testing.T) {
	upR, upW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	downR, downW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	a := New(stdio{upR, downW}, Config{Handler: HandlerFunc(pong)})
	b := New(stdio{downR, upW}, Config{Handler: HandlerFunc(func(_ context.Context, c *Conn, r *Responder) {
		c.Go(context.Background(), "echo", r.Request().Params, func(result json.RawMessage, err error) { r.Reply(result, err) })
	})})
	served := make(chan error, 2)
	go func() { served <- a.Serve(context.Background()) }()
	go func() { served <- b.Serve(context.Background()) }()
	var group sync.WaitGroup
	for n := range 4 {
		group.Go(func() {
			for i := 0; ; i++ {
				want := fmt.Sprintf(`{"n":%d,"i":%d}`, n, i)
				got, err := a.Call(context.Background(), "roundabout", json.RawMessage(want))
				if err == nil && string(got) != want {
					t.Errorf("got %s, want %s", got, want)
				}
				if err != nil {
					if !errors.Is(err, ErrClosed) {
						t.Error(err)
					}
					return
				}
				if n == 0 && i == 200 {
					b.Close()
				}
			}
		})
	}
	group.Wait()
	<-a.Done()
	<-b.Done()
	for range 2 {
		// Whether the other side sees the end or a broken pipe first is chance.
		var failed *writeError
		if err := <-served; err != nil && !errors.As(err, &failed) {
			t.Errorf("Serve = %v", err)
		}
	}
}

// TestStorm: everything at once while the connection goes down, for the race
// detector; nothing hangs and every call ends.
func TestStorm(t *testing.T) {
	for round := range 30 {
		here, there := net.Pipe()
		ctx, cancel := context.WithCancel(context.Background())
		busy := HandlerFunc(func(_ context.Context, c *Conn, r *Responder) {
			r.Go(func(ctx context.Context) (any, error) {
				if !r.Request().IsNotification() { // else they would breed
					_ = c.Notify("n", r.Request().ID)
				}
				return 1, ctx.Err()
			})
		})
		a := New(here, Config{Handler: busy, SoftQueueBytes: 2000, MaxQueueBytes: 100_000, FlushTimeout: time.Millisecond})
		b := New(there, Config{Handler: busy, SoftQueueBytes: 2000, FlushTimeout: time.Millisecond})
		var group sync.WaitGroup
		group.Go(func() { _ = a.Serve(ctx) })
		group.Go(func() { _ = b.Serve(context.Background()) })
		for i := range 8 {
			c := []*Conn{a, b}[i%2]
			group.Go(func() {
				for n := 0; ; n++ {
					ended := make(chan struct{})
					mine, stop := context.WithCancel(context.Background())
					c.Go(mine, "m", nil, func(json.RawMessage, error) { close(ended) })
					if n%3 == 0 {
						stop()
					}
					_ = c.NotifyRaw("raw", []byte("1"))
					err := c.NotifyWait(context.Background(), "wait", []byte("2"))
					_, _ = c.Call(mine, "m", nil)
					<-ended
					stop()
					if err != nil {
						return
					}
					if i == 0 && n == round {
						switch round % 4 {
						case 0:
							a.Close()
						case 1:
							cancel()
						case 2:
							_ = there.Close()
						case 3:
							go a.Close()
							b.Close()
						}
					}
				}
			})
		}
		group.Wait()
		cancel()
	}
}
