package jsonrpc2

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestAdmission: requests are admitted in order, one at a time, and answered in
// any order.
func TestAdmission(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var seen []ID
		parked := map[ID]*Responder{}
		c, p := dial(t, Config{Handler: HandlerFunc(func(_ context.Context, _ *Conn, r *Responder) {
			seen = append(seen, r.Request().ID)
			parked[r.Request().ID] = r
		})})
		for i := range 5 {
			p.send(request(i, "park", "{}"))
		}
		synctest.Wait()
		if diff := cmp.Diff([]ID{"0", "1", "2", "3", "4"}, seen); diff != "" {
			t.Error(diff)
		}
		if n := c.Stats().InFlight; n != 5 {
			t.Errorf("InFlight = %d", n)
		}
		for _, id := range []ID{"3", "0", "4", "2", "1"} {
			go parked[id].Reply(nil, nil)
			p.expect(`{"jsonrpc":"2.0","id":` + string(id) + `,"result":null}`)
		}
		_ = p.hangUp()
	})
}

// TestNested: a handler's answer may depend on requests that the peer makes
// while its own is unanswered, to any depth, both kinds of call mixed.
func TestNested(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const depth = 50
		_, p := dial(t, Config{Handler: HandlerFunc(func(_ context.Context, c *Conn, r *Responder) {
			r.Go(func(ctx context.Context) (any, error) {
				var level int
				if err := json.Unmarshal(r.Request().Params, &level); err != nil {
					return nil, err
				}
				return c.Call(ctx, "tool", level)
			})
		})})
		for level := range depth { // the tool asks back before it answers
			p.send(request(1000+level, "ask", fmt.Sprint(level)))
			p.expect(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tool","params":%d}`, level+1, level))
		}
		for level := depth - 1; level >= 0; level-- {
			p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":"done %d"}`, level+1, level))
			p.expect(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":"done %d"}`, 1000+level, level))
		}
		if err := p.hangUp(); err != nil {
			t.Error(err)
		}
	})
}

// TestReplyThen: what the after step enqueues follows the answer, however many
// others send at the same time.
func TestReplyThen(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_, p := dial(t, Config{Handler: HandlerFunc(func(_ context.Context, c *Conn, r *Responder) {
			go r.ReplyThen("made", nil, func() {
				for i := range 3 {
					_ = c.Notify("event", map[string]any{"of": r.Request().ID, "n": i})
				}
			})
		})})
		const many = 40
		go func() {
			for i := range many {
				p.send(request(i, "create", "{}"))
			}
		}()
		next := map[string]int{}
		for range many * 4 {
			var m struct {
				ID     json.RawMessage
				Params struct {
					Of json.RawMessage
					N  int
				}
			}
			if err := json.Unmarshal([]byte(p.next()), &m); err != nil {
				t.Fatal(err)
			}
			key, n := string(m.ID), 0
			if m.ID == nil {
				key, n = string(m.Params.Of), m.Params.N+1
			}
			if next[key] != n {
				t.Fatalf("request %s: message %d came when %d was due", key, n, next[key])
			}
			next[key]++
		}
		_ = p.hangUp()
	})
}

// TestReplyOnce: the first answer counts; later ones are dropped, counted and
// reported, and their after step does not run. Notifications get no answer.
func TestReplyOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var faults []error
		after := 0
		c, p := dial(t, Config{
			Report: func(err error) { faults = append(faults, err) },
			Handler: HandlerFunc(func(_ context.Context, _ *Conn, r *Responder) {
				r.ReplyThen(1, nil, func() { after++ })
				r.ReplyThen(2, nil, func() { after += 100 })
			}),
		})
		p.send(request(1, "m", "{}"))
		p.expect(`{"jsonrpc":"2.0","id":1,"result":1}`)
		p.send(`{"jsonrpc":"2.0","method":"m"}`)
		p.send(request(2, "m", "{}"))
		p.expect(`{"jsonrpc":"2.0","id":2,"result":1}`)
		_ = p.hangUp()
		if n := c.Stats().RepliedTwice; n != 3 || len(faults) != 3 || after != 3 {
			t.Errorf("RepliedTwice = %d, reported %d, after ran %d times; want 3 of each", n, len(faults), after)
		}
		for _, err := range faults {
			if !errors.Is(err, ErrRepliedTwice) {
				t.Error(err)
			}
		}
	})
}

// TestGoReplyThen: a body may answer itself and have something follow.
func TestGoReplyThen(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_, p := dial(t, Config{Handler: HandlerFunc(func(_ context.Context, c *Conn, r *Responder) {
			r.Go(func(context.Context) (any, error) {
				r.ReplyThen("made", nil, func() { _ = c.NotifyRaw("event", []byte("1"), []byte("2")) })
				return nil, errors.New("ignored")
			})
		})})
		p.send(request(1, "create", "{}"))
		p.expect(`{"jsonrpc":"2.0","id":1,"result":"made"}`)
		p.expect(`{"jsonrpc":"2.0","method":"event","params":12}`)
		_ = p.hangUp()
	})
}

// TestDuplicateID: the second of two requests with one id fails, the first is
// unharmed, and the id is free again with the answer.
func TestDuplicateID(t *testing.T) {
	bubble(t, func(t *testing.T) {
		parked := make(chan *Responder, 10)
		_, p := dial(t, Config{Handler: HandlerFunc(func(_ context.Context, _ *Conn, r *Responder) { parked <- r })})
		for range 3 {
			p.send(`{"jsonrpc":"2.0","id":"d","method":"m"}`)
			first := <-parked
			p.send(`{"jsonrpc":"2.0","id":"d","method":"m"}`)
			p.expectError(`"d"`, CodeInvalidRequest)
			if err := first.Context().Err(); err != nil {
				t.Errorf("the first request's context: %v", err)
			}
			first.Reply("first", nil)
			p.expect(`{"jsonrpc":"2.0","id":"d","result":"first"}`)
		}
		_ = p.hangUp()
		if len(parked) != 0 {
			t.Error("a duplicate was admitted")
		}
	})
}

// TestCancel: $/cancelRequest ends the context of the request it names and of
// no other; the answer is still the handler's.
func TestCancel(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var calm *Responder
		_, p := dial(t, Config{Handler: HandlerFunc(func(_ context.Context, _ *Conn, r *Responder) {
			switch r.Request().Method {
			case "calm":
				calm = r
			case "stubborn":
				r.Go(func(ctx context.Context) (any, error) { <-ctx.Done(); return "done all the same", nil })
			default:
				r.Go(func(ctx context.Context) (any, error) {
					<-ctx.Done()
					if cause := context.Cause(ctx); !errors.Is(cause, ErrCancelled) {
						t.Errorf("cause = %v", cause)
					}
					return nil, ctx.Err()
				})
			}
		})})
		p.send(request(1, "calm", "{}"))
		p.send(`{"jsonrpc":"2.0","id":"a","method":"wait"}`)
		p.send(request(2, "stubborn", "{}"))
		for _, odd := range []string{``, `,"params":{}`, `,"params":[1]`, `,"params":{"id":{}}`, `,"params":{"id":404}`, `,"params":7`, `,"params":{"id":"1"}`} {
			p.send(`{"jsonrpc":"2.0","method":"$/cancelRequest"` + odd + `}`)
		}
		p.send(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id": "a" }}`)
		p.expect(`{"jsonrpc":"2.0","id":"a","error":{"code":-32800,"message":"Request cancelled"}}`)
		p.send(`{"jsonrpc":"2.0","id":3,"method":"$/cancelRequest","params":{"id":2}}`)
		got := map[string]bool{p.next(): true, p.next(): true}
		if !got[`{"jsonrpc":"2.0","id":2,"result":"done all the same"}`] || !got[`{"jsonrpc":"2.0","id":3,"result":null}`] {
			t.Errorf("got %v", got)
		}
		if calm.Context().Err() != nil {
			t.Error("a request was cancelled that nobody cancelled")
		}
		calm.Reply(nil, nil)
		p.next()
		if calm.Context().Err() == nil {
			t.Error("the context outlives the answer")
		}
		_ = p.hangUp()
	})
}

// TestPanics: a panic anywhere in a handler costs one error answer.
func TestPanics(t *testing.T) {
	bubble(t, func(t *testing.T) {
		reported := 0
		c, p := dial(t, Config{
			Report: func(error) { reported++ },
			Handler: HandlerFunc(func(_ context.Context, c *Conn, r *Responder) {
				switch r.Request().Method {
				case "admit":
					panic("in Admit")
				case "go":
					r.Go(func(context.Context) (any, error) { panic("in Go") })
				case "exit":
					r.Go(func(context.Context) (any, error) { runtime.Goexit(); return nil, nil })
				case "late":
					r.Reply("answered", nil)
					panic("after the answer")
				case "callback":
					c.Go(r.Context(), "ask", nil, func(json.RawMessage, error) { r.Reply("asked", nil); panic("in the callback") })
				default:
					r.Reply("pong", nil)
				}
			}),
		})
		for i, method := range []string{"admit", "go", "exit"} {
			p.send(request(i, method, "{}"))
			p.expectError(fmt.Sprint(i), CodeInternalError)
		}
		p.send(request(4, "late", "{}"))
		p.expect(`{"jsonrpc":"2.0","id":4,"result":"answered"}`)
		p.send(`{"jsonrpc":"2.0","method":"admit"}`)
		p.send(request(5, "callback", "{}"))
		p.expect(`{"jsonrpc":"2.0","id":1,"method":"ask"}`)
		p.send(`{"jsonrpc":"2.0","id":1,"result":{}}`)
		p.expect(`{"jsonrpc":"2.0","id":5,"result":"asked"}`)
		p.ping("6")
		_ = p.hangUp()
		if n := c.Stats().Panics; n != 6 || reported != 6 {
			t.Errorf("Panics = %d, reported %d, want 6", n, reported)
		}
	})
}

// TestCalls: every shape of answer ends a call.
func TestCalls(t *testing.T) {
	for _, row := range []struct {
		name, answer string
		result       string
		code         int
		message      string
	}{
		{"result", `{"jsonrpc":"2.0","id":1,"result":{"a":1}}`, `{"a":1}`, 0, ""},
		{"null result", `{"jsonrpc":"2.0","id":1,"result":null}`, `null`, 0, ""},
		{"result and null error", `{"jsonrpc":"2.0","id":1,"result":1,"error":null}`, `1`, 0, ""},
		{"error", `{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"no"}}`, ``, -32001, "no"},
		{"error without code", `{"jsonrpc":"2.0","id":1,"error":{"message":"no"}}`, ``, CodeInternalError, "no"},
		{"error with an odd code", `{"jsonrpc":"2.0","id":1,"error":{"code":1e99,"message":"no"}}`, ``, CodeInternalError, "no"},
		{"error a string", `{"jsonrpc":"2.0","id":1,"error":"no"}`, ``, CodeInternalError, "malformed error"},
		{"error null", `{"jsonrpc":"2.0","id":1,"error":null}`, ``, CodeInternalError, "error null"},
		{"neither", `{"jsonrpc":"2.0","id":1}`, ``, CodeInternalError, "malformed"},
		{"no jsonrpc", `{"id":1,"result":1}`, ``, CodeInternalError, "malformed"},
	} {
		t.Run(row.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				c, p := dial(t, Config{})
				go func() {
					p.expect(`{"jsonrpc":"2.0","id":1,"method":"ask","params":{"q":"<&>"}}`)
					p.send(row.answer)
				}()
				result, err := c.Call(t.Context(), "ask", map[string]string{"q": "<&>"})
				if string(result) != row.result {
					t.Errorf("result = %s, want %s", result, row.result)
				}
				var e *Error
				if errors.As(err, &e) != (row.code != 0) {
					t.Fatalf("err = %v", err)
				}
				if e != nil && (e.Code != row.code || !strings.Contains(e.Message, row.message)) {
					t.Errorf("err = %d %s, want %d %s", e.Code, e.Message, row.code, row.message)
				}
				_ = p.hangUp()
			})
		})
	}
}

// TestCallCancelled: a caller who gives up gets the cause of its context, the
// peer is told, and a late answer is ignored without a fuss.
func TestCallCancelled(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cause := errors.New("changed my mind")
		c, p := dial(t, Config{}) // fails the test on a report
		for id, call := range map[int]func(ctx context.Context) error{
			1: func(ctx context.Context) error { _, err := c.Call(ctx, "ask", nil); return err },
			2: func(ctx context.Context) error {
				failed := make(chan error, 1)
				c.Go(ctx, "ask", nil, func(_ json.RawMessage, err error) { failed <- err })
				return <-failed
			},
		} {
			base := c.Stats().UnknownAnswers
			ctx, cancel := context.WithCancelCause(t.Context())
			failed := make(chan error, 1)
			go func() { failed <- call(ctx) }()
			n := base + 1 // ids follow the order of the calls, not of the map
			p.expect(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ask"}`, n))
			cancel(cause)
			p.expect(fmt.Sprintf(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":%d}}`, n))
			if err := <-failed; !errors.Is(err, cause) {
				t.Errorf("call %d = %v", id, err)
			}
			p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":1}`, n))
			synctest.Wait()
			if err := call(ctx); !errors.Is(err, cause) {
				t.Errorf("call %d with a dead context = %v", id, err)
			}
		}
		if s := c.Stats(); s.Pending != 0 || s.UnknownAnswers != 2 {
			t.Errorf("%+v", s)
		}
		_ = p.hangUp()
	})
}

// TestEnd: however a connection ends, calls fail, contexts end with a cause,
// late answers vanish, and Serve returns once all bodies have ended.
func TestEnd(t *testing.T) {
	own := errors.New("shutting down")
	for _, row := range []struct {
		name string
		end  func(c *Conn, p *peer, cancel context.CancelCauseFunc)
		want error // of Serve
	}{
		{"peer hangs up", func(_ *Conn, p *peer, _ context.CancelCauseFunc) { _ = p.conn.Close() }, nil},
		{"Close", func(c *Conn, _ *peer, _ context.CancelCauseFunc) { c.Close(); c.Close() }, nil},
		{"context", func(_ *Conn, _ *peer, cancel context.CancelCauseFunc) { cancel(own) }, own},
	} {
		t.Run(row.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				p := &peer{t: t, served: make(chan error, 1)}
				bodyEnded, after := false, 0
				var parked *Responder
				here, there := pipe()
				p.conn, p.in = there, newFrameReader(there)
				c := New(here, Config{Handler: HandlerFunc(func(_ context.Context, c *Conn, r *Responder) {
					if r.Request().Method == "park" {
						parked = r
						return
					}
					r.Go(func(ctx context.Context) (any, error) {
						_, err := c.Call(context.Background(), "never", nil)
						<-ctx.Done()
						if !errors.Is(err, ErrClosed) || !errors.Is(context.Cause(ctx), ErrClosed) {
							t.Errorf("call: %v, cause: %v; want ErrClosed", err, context.Cause(ctx))
						}
						<-time.After(time.Hour) // slow to end: Serve waits
						bodyEnded = true
						return 1, nil
					})
				})})
				go func() { p.served <- c.Serve(ctx) }()
				p.send(request(1, "park", "{}"))
				p.send(request(2, "body", "{}"))
				p.expect(`{"jsonrpc":"2.0","id":1,"method":"never"}`)
				row.end(c, p, cancel)
				if err := <-p.served; !errors.Is(err, row.want) || (row.want == nil) != (err == nil) {
					t.Errorf("Serve = %v, want %v", err, row.want)
				}
				if !bodyEnded {
					t.Error("Serve did not wait for the handler")
				}
				<-c.Done()
				parked.ReplyThen(1, nil, func() { after++ })
				parked.Go(func(context.Context) (any, error) { t.Error("run after the end"); return nil, nil })
				if !errors.Is(context.Cause(c.Context()), ErrClosed) || after != 1 {
					t.Errorf("cause %v, after %d", context.Cause(c.Context()), after)
				}
				_, err := c.Call(context.Background(), "m", nil)
				for _, err := range []error{err, c.Notify("m", nil), c.NotifyRaw("m"), c.NotifyWait(context.Background(), "m"), c.WaitRoom(context.Background())} {
					if !errors.Is(err, ErrClosed) {
						t.Errorf("after the end: %v", err)
					}
				}
				if s := c.Stats(); s.InFlight != 0 || s.Pending != 0 || s.DroppedReplies != 2 {
					t.Errorf("%+v", s)
				}
				_ = p.conn.Close()
				cancel(nil)
			})
		})
	}
}

// TestCloseFlushes: what was queued before Close arrives, at the reader's pace;
// a peer that does not read delays the end by FlushTimeout and no more.
func TestCloseFlushes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c, p := dial(t, Config{})
		synctest.Wait() // until it is being served
		for i := range 100 {
			_ = c.Notify("n", i)
		}
		c.Close()
		for i := range 100 {
			p.expect(fmt.Sprintf(`{"jsonrpc":"2.0","method":"n","params":%d}`, i))
		}
		if err := p.hangUp(); err != nil {
			t.Error(err)
		}
	})
	bubble(t, func(t *testing.T) {
		c, p := dial(t, Config{FlushTimeout: 3 * time.Second})
		synctest.Wait()
		_ = c.Notify("n", 1)
		start := time.Now()
		c.Close()
		if err := <-p.served; err != nil || time.Since(start) != 3*time.Second {
			t.Errorf("Serve = %v after %v", err, time.Since(start))
		}
		_ = p.conn.Close()
	})
}

// TestUnserved: a connection closed before it was served leaves nothing behind.
func TestUnserved(t *testing.T) {
	bubble(t, func(t *testing.T) {
		here, there := pipe()
		c := New(here, Config{})
		failed := make(chan error, 1)
		c.Go(context.Background(), "m", nil, func(_ json.RawMessage, err error) { failed <- err })
		c.Close()
		<-c.Done()
		if err := <-failed; !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
		if err := c.Serve(context.Background()); err != nil {
			t.Errorf("Serve after Close = %v", err)
		}
		if _, err := there.Read(make([]byte, 1)); err == nil {
			t.Error("the stream is open")
		}
	})
	bubble(t, func(t *testing.T) {
		c, p := dial(t, Config{})
		synctest.Wait()
		if err := c.Serve(context.Background()); err == nil {
			t.Error("served twice")
		}
		_ = p.hangUp()
	})
}

// TestAsError: the mapping from errors to codes is total.
func TestAsError(t *testing.T) {
	base := Errorf(-32011, "refused")
	for _, row := range []struct {
		err     error
		code    int
		message string
	}{
		{base, -32011, "refused"},
		{fmt.Errorf("clear: %w", base), -32011, "clear: refused"},
		{&Error{Message: "no code"}, CodeInternalError, "no code"},
		{&Error{Code: 1 << 40, Message: "m"}, CodeInternalError, "m"},
		{context.Canceled, CodeRequestCancelled, "Request cancelled"},
		{fmt.Errorf("x: %w", ErrCancelled), CodeRequestCancelled, "Request cancelled"},
		{context.DeadlineExceeded, CodeDeadlineExceeded, "Deadline exceeded"},
		{errors.New("disk full"), CodeInternalError, "disk full"},
	} {
		e := AsError(row.err)
		if e.Code != row.code || e.Message != row.message {
			t.Errorf("AsError(%v) = %d %q, want %d %q", row.err, e.Code, e.Message, row.code, row.message)
		}
	}
	if AsError(nil) != nil {
		t.Error("AsError(nil) is not nil")
	}
	if !errors.Is(fmt.Errorf("x: %w", MethodNotFound("m")), &Error{Code: CodeMethodNotFound}) {
		t.Error("errors.Is does not compare codes")
	}
}
