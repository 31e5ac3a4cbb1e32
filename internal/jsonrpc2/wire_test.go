package jsonrpc2

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

// TestBodies: a body that is no message costs one error answer with id null,
// and the connection lives.
func TestBodies(t *testing.T) {
	for _, row := range []struct {
		name, body string
		code       int
	}{
		{"not JSON", `{"jsonrpc":`, CodeParseError},
		{"trailing text", `{"jsonrpc":"2.0","id":1,"method":"ping"} x`, CodeParseError},
		{"empty", ``, CodeParseError},
		{"blank", "  \r\n", CodeParseError},
		{"invalid UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"p\xff\"}", CodeParseError},
		{"byte order mark", "\ufeff{}", CodeParseError},
		{"nested beyond sense", strings.Repeat("[", 1<<20), CodeParseError},
		{"nested and closed", strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000), CodeParseError},
		{"batch", `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, CodeInvalidRequest},
		{"empty batch", `[]`, CodeInvalidRequest},
		{"scalar", `7`, CodeInvalidRequest},
		{"string", `"jsonrpc"`, CodeInvalidRequest},
		{"null", `null`, CodeInvalidRequest},
		{"empty object", `{}`, CodeInvalidRequest},
		{"no jsonrpc", `{"id":1,"method":"ping"}`, CodeInvalidRequest},
		{"jsonrpc 1.0", `{"jsonrpc":"1.0","id":1,"method":"ping"}`, CodeInvalidRequest},
		{"jsonrpc a number", `{"jsonrpc":2.0,"id":1,"method":"ping"}`, CodeInvalidRequest},
		{"names in another case", `{"JSONRPC":"2.0","ID":1,"METHOD":"ping"}`, CodeInvalidRequest},
		{"no method", `{"jsonrpc":"2.0","id":1}`, CodeInvalidRequest},
		{"method a number", `{"jsonrpc":"2.0","id":1,"method":5}`, CodeInvalidRequest},
		{"method null", `{"jsonrpc":"2.0","id":1,"method":null}`, CodeInvalidRequest},
		{"id null", `{"jsonrpc":"2.0","id":null,"method":"ping"}`, CodeInvalidRequest},
		{"id fractional", `{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, CodeInvalidRequest},
		{"id with exponent", `{"jsonrpc":"2.0","id":1e3,"method":"ping"}`, CodeInvalidRequest},
		{"id object", `{"jsonrpc":"2.0","id":{},"method":"ping"}`, CodeInvalidRequest},
		{"id array", `{"jsonrpc":"2.0","id":[1],"method":"ping"}`, CodeInvalidRequest},
		{"id bool", `{"jsonrpc":"2.0","id":true,"method":"ping"}`, CodeInvalidRequest},
		{"id twice", `{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`, CodeInvalidRequest},
		{"id twice, once escaped", `{"jsonrpc":"2.0","id":1,"\u0069d":2,"method":"ping"}`, CodeInvalidRequest},
	} {
		t.Run(row.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				c, p := dial(t, Config{Handler: HandlerFunc(pong)})
				p.send(row.body)
				p.expectError("null", row.code)
				p.ping("2")
				if err := p.hangUp(); err != nil {
					t.Errorf("Serve = %v", err)
				}
				if n := c.Stats().BadMessages; n != 1 {
					t.Errorf("BadMessages = %d, want 1", n)
				}
			})
		})
	}
}

// TestHeaders: a header that is none costs an error answer and the connection.
func TestHeaders(t *testing.T) {
	const after = "Content-Length: 2\r\n\r\n{}"
	for _, row := range []struct{ name, raw, reason string }{
		{"no length", "Content-Type: x\r\n\r\n" + after, "no Content-Length"},
		{"empty block", "\r\n" + after, "no Content-Length"},
		{"word", "Content-Length: abc\r\n\r\n" + after, `decimal number of bytes, got "abc"`},
		{"negative", "Content-Length: -1\r\n\r\n" + after, "decimal number"},
		{"signed", "Content-Length: +2\r\n\r\n" + after, "decimal number"},
		{"fraction", "Content-Length: 2.0\r\n\r\n" + after, "decimal number"},
		{"hexadecimal", "Content-Length: 0x10\r\n\r\n" + after, "decimal number"},
		{"blank inside", "Content-Length: 1 0\r\n\r\n" + after, "decimal number"},
		{"stray CR", "Content-Length: 2\r\r\n\r\n" + after, "decimal number"},
		{"no value", "Content-Length:\r\n\r\n" + after, "is empty"},
		{"beyond 1 TiB", "Content-Length: 1099511627777\r\n\r\n" + after, "beyond any message"},
		{"beyond 64 bits", "Content-Length: 99999999999999999999\r\n\r\n" + after, "beyond any message"},
		{"two lengths", "Content-Length: 2\r\nContent-Length: 3\r\n\r\n" + after, "two values"},
		{"no colon", "Content-Length 2\r\n\r\n" + after, "no ':'"},
		{"HTTP", "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "no ':'"},
		{"HTTP with a colon", "POST /a:b HTTP/1.1\r\n" + after, "has no name"},
		{"HTTP with tabs", "POST\t/a:b\tHTTP/1.1\r\n" + after, "has no name"},
		{"no name", ": x\r\n" + after, "has no name"},
		{"a bare body", `{"jsonrpc","2.0"}` + "\n" + after, "no ':'"},
		{"one line over 64 KiB", "X: " + longName(70_000) + "\r\nContent-Length: 2\r\n\r\n{}", "longer than 65536"},
		{"many lines over 64 KiB", strings.Repeat("X: y\r\n", 12_000) + after, "longer than 65536"},
	} {
		t.Run(row.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				_, p := dial(t, Config{Handler: HandlerFunc(pong)})
				p.ping("1")
				wrote := make(chan struct{})
				go func() { // what follows is drained or refused: never a hang
					defer close(wrote)
					_, _ = io.WriteString(p.conn, row.raw)
				}()
				p.expectError("null", CodeParseError)
				if body, err := p.read(); !errors.Is(err, io.EOF) {
					t.Errorf("after the error: %q, %v; want the end", body, err)
				}
				err := <-p.served
				var bad *FrameError
				if !errors.As(err, &bad) || !strings.Contains(bad.Reason, row.reason) {
					t.Errorf("Serve = %v, want a FrameError with %q", err, row.reason)
				}
				<-wrote
				_ = p.conn.Close()
			})
		})
	}
}

// TestHeaderForms: what is unusual but clear is accepted, in step.
func TestHeaderForms(t *testing.T) {
	const body = `{"jsonrpc":"2.0","id":1,"method":"ping"}` // 40 bytes
	for _, row := range []struct{ name, header string }{
		{"plain", "Content-Length: 40\r\n\r\n"},
		{"lower case", "content-length: 40\r\n\r\n"},
		{"upper case", "CONTENT-LENGTH:40\r\n\r\n"},
		{"blanks", "Content-Length \t: \t40 \r\n\r\n"},
		{"zeros in front", "Content-Length: 0040\r\n\r\n"},
		{"other headers", "Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length: 40\r\nX-Y:\r\n\r\n"},
		{"said twice", "Content-Length: 40\r\ncontent-length: 40\r\n\r\n"},
		{"bare LF", "Content-Length: 40\n\n"},
		{"mixed line ends", "X: y\nContent-Length: 40\r\n\n"},
		{"63 KiB of headers", strings.Repeat("X: yy\r\n", 9_000) + "Content-Length: 40\r\n\r\n"},
	} {
		t.Run(row.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				_, p := dial(t, Config{Handler: HandlerFunc(pong)})
				for range 2 {
					p.write(row.header + body)
					p.expect(`{"jsonrpc":"2.0","id":1,"result":"pong"}`)
				}
				if err := p.hangUp(); err != nil {
					t.Errorf("Serve = %v", err)
				}
			})
		})
	}
}

// TestEcho: ids and params come back byte for byte.
func TestEcho(t *testing.T) {
	for _, row := range []struct{ name, id, params, want string }{
		{"number", `7`, `{"a":1}`, `{"a":1}`},
		{"zero", `0`, `{}`, `{}`},
		{"negative", `-3`, `{}`, `{}`},
		{"huge number", `123456789012345678901234567890`, `{}`, `{}`},
		{"string", `"a-1"`, `{}`, `{}`},
		{"empty string", `""`, `{}`, `{}`},
		{"escaped string", `"\u0041\"\/"`, `{}`, `{}`},
		{"array", `1`, `[1,2]`, `[1,2]`},
		{"scalar", `1`, `5`, `5`},
		{"null is absent", `1`, `null`, `null`},
		{"blanks inside", `1`, `{ "a" : [ 1 , 2 ] }`, `{ "a" : [ 1 , 2 ] }`},
		{"lone surrogate", `1`, `{"s":"\ud800"}`, `{"s":"\ud800"}`},
		{"not ASCII", `"é"`, `{"s":"日本語 🙂"}`, `{"s":"日本語 🙂"}`},
		{"braces in strings", `"}{"`, `{"s":"}],{[\"\\"}`, `{"s":"}],{[\"\\"}`},
		{"our names further in", `1`, `{"id":9,"method":"x","jsonrpc":1}`, `{"id":9,"method":"x","jsonrpc":1}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				_, p := dial(t, Config{Handler: HandlerFunc(pong)})
				want := `{"jsonrpc":"2.0","id":` + row.id + `,"result":` + row.want + `}`
				p.send(`{"jsonrpc":"2.0","id":` + row.id + `,"method":"echo","params":` + row.params + `}`)
				p.expect(want)
				p.send(` { "params" : ` + row.params + ` , "meth\u006fd" : "ech\u006f", "extra":[{}], "id" : ` + row.id + ` , "jsonrpc" : "2.0" } `)
				p.expect(want)
				_ = p.hangUp()
			})
		})
	}
}

// TestUnknown: an unknown method is an error answer, an unknown notification
// nothing, an answer to no call nothing but a count.
func TestUnknown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		reported := 0
		c, p := dial(t, Config{Handler: HandlerFunc(pong), Report: func(error) { reported++ }})
		p.send(`{"jsonrpc":"2.0","id":"x","method":"no.such"}`)
		p.expect(`{"jsonrpc":"2.0","id":"x","error":{"code":-32601,"message":"Unhandled method no.such"}}`)
		p.send(`{"jsonrpc":"2.0","method":"no.such"}`)
		p.send(`{"jsonrpc":"2.0","id":99,"result":1}`)
		p.send(`{"jsonrpc":"2.0","id":"99","result":1}`)
		p.send(`{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m"}}`)
		p.ping("1")
		_ = p.hangUp()
		if n := c.Stats().UnknownAnswers; n != 3 || reported != 3 {
			t.Errorf("UnknownAnswers = %d, reported %d, want 3", n, reported)
		}
	})
}

// TestCutShort: a stream that ends inside a message ends the connection with an
// error that says so, and sends nothing.
func TestCutShort(t *testing.T) {
	for _, raw := range []string{"C", "Content-Length: 5", "Content-Length: 5\r\n\r\n", "Content-Length: 5\r\n\r\nabc", "Content-Length: 200\r\n\r\nabc"} {
		bubble(t, func(t *testing.T) {
			_, p := dial(t, Config{MaxFrameBytes: 100, MaxSendBytes: 100})
			p.write(raw)
			if err := p.hangUp(); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("after %q: Serve = %v, want unexpected EOF", raw, err)
			}
		})
	}
}

// TestTooLarge: a message over the limit is passed over, and the one request or
// call it belongs to fails.
func TestTooLarge(t *testing.T) {
	big := `"` + strings.Repeat(`x\"}`, 100_000) + `"`
	for _, row := range []struct{ name, body, id string }{
		{"id in front", `{"jsonrpc":"2.0","id":5,"method":"m","params":` + big + `}`, "5"},
		{"id last", `{"params":` + big + `,"method":"m","jsonrpc":"2.0","id" : "a\"b" }`, `"a\"b"`},
		{"notification", `{"jsonrpc":"2.0","method":"m","params":` + big + `}`, "null"},
		{"an id further in", `{"jsonrpc":"2.0","method":"m","params":{"id":1,"s":` + big + `}}`, "null"},
		{"bad id", `{"jsonrpc":"2.0","id":1.5,"method":"m","params":` + big + `}`, "null"},
		{"endless id", `{"jsonrpc":"2.0","id":` + big + `,"method":"m"}`, "null"},
		{"two ids", `{"jsonrpc":"2.0","id":1,"id":2,"method":"m","params":` + big + `}`, "null"},
		{"answer to nothing", `{"jsonrpc":"2.0","id":77,"result":` + big + `}`, "null"},
		{"batch", `[{"jsonrpc":"2.0","id":1,"method":"m","params":` + big + `}]`, "null"},
		{"not JSON", strings.Repeat("}]", 100_000), "null"},
	} {
		t.Run(row.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				_, p := dial(t, Config{Handler: HandlerFunc(pong), MaxFrameBytes: 100_000, MaxSendBytes: 100_000})
				p.send(row.body)
				p.expectError(row.id, CodeInvalidRequest)
				p.ping("2")
				_ = p.hangUp()
			})
		})
	}
	t.Run("answer to a call", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			c, p := dial(t, Config{MaxFrameBytes: 100_000, MaxSendBytes: 100_000})
			failed := make(chan error, 1)
			c.Go(t.Context(), "read", nil, func(_ json.RawMessage, err error) { failed <- err })
			p.expect(`{"jsonrpc":"2.0","id":1,"method":"read"}`)
			p.send(`{"jsonrpc":"2.0","result":` + big + `,"id":1}`)
			if err := <-failed; !errors.Is(err, ErrTooLarge) {
				t.Errorf("call = %v, want ErrTooLarge", err)
			}
			_ = p.hangUp()
		})
	})
}

// TestOutgoingTooLarge: what does not fit a frame fails alone.
func TestOutgoingTooLarge(t *testing.T) {
	bubble(t, func(t *testing.T) {
		long := strings.Repeat("y", 2000)
		c, p := dial(t, Config{MaxFrameBytes: 1000, MaxSendBytes: 1000, Handler: HandlerFunc(func(_ context.Context, _ *Conn, r *Responder) {
			switch r.Request().Method {
			case "big":
				r.Reply(long, nil)
			case "bigError":
				r.Reply(nil, Errorf(-32011, "%s", long))
			case "odd":
				r.Reply(func() {}, nil)
			case "bomb":
				r.Reply(bomb{}, nil)
			case "bombError":
				r.Reply(nil, &Error{Code: -32012, Message: "m", Data: bomb{}})
			default:
				r.Reply("pong", nil)
			}
		})})
		for method, code := range map[string]int{"big": CodeInternalError, "bigError": -32011, "odd": CodeInternalError, "bomb": CodeInternalError, "bombError": -32012} {
			p.send(request(1, method, "{}"))
			p.expectError("1", code)
		}
		if err := c.Notify("n", long); !errors.Is(err, ErrTooLarge) {
			t.Errorf("Notify = %v", err)
		}
		if err := c.NotifyRaw("n", []byte(`"`), []byte(long), []byte(`"`)); !errors.Is(err, ErrTooLarge) {
			t.Errorf("NotifyRaw = %v", err)
		}
		if err := c.Notify("n", func() {}); err == nil || errors.Is(err, ErrClosed) {
			t.Errorf("Notify of a func = %v", err)
		}
		if _, err := c.Call(t.Context(), "n", long); !errors.Is(err, ErrTooLarge) {
			t.Errorf("Call = %v", err)
		}
		if n := c.Stats().Pending; n != 0 {
			t.Errorf("Pending = %d", n)
		}
		p.ping("2")
		_ = p.hangUp()
	})
}

type bomb struct{}

func (bomb) MarshalJSON() ([]byte, error) { panic("boom") }

// TestLargeFrames: 40 MiB pass in both directions, next to small ones.
func TestLargeFrames(t *testing.T) {
	c, p := dial(t, Config{Handler: HandlerFunc(pong)})
	go func() { // both directions at once
		params := `{"s":"` + strings.Repeat("z", 40<<20) + `"}`
		p.write(frame(request(1, "echo", params)))
		p.write(frame(request(2, "ping", "{}")))
	}()
	answer := p.next()
	if want := len(`{"jsonrpc":"2.0","id":1,"result":{"s":""}}`) + 40<<20; len(answer) != want {
		t.Errorf("answer has %d bytes, want %d", len(answer), want)
	}
	if strings.Trim(answer[len(`{"jsonrpc":"2.0","id":1,"result":{"s":"`):len(answer)-3], "z") != "" {
		t.Error("the answer is not what was sent")
	}
	p.expect(`{"jsonrpc":"2.0","id":2,"result":"pong"}`)
	if err := p.hangUp(); err != nil {
		t.Error(err)
	}
	select {
	case <-c.Done():
	case <-time.After(time.Minute):
		t.Error("Done is not closed")
	}
}
