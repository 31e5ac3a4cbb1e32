package jsonrpc2

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
)

func pipe() (net.Conn, net.Conn) { return net.Pipe() }

// TestSlowPeer: a peer that stops reading is closed at the hard cap, having
// cost no more than that, and nobody else notices.
func TestSlowPeer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const hard = 1 << 20
		c, p := dial(t, Config{MaxQueueBytes: hard, SoftQueueBytes: hard / 4})
		other, q := dial(t, Config{Handler: HandlerFunc(pong)})
		params := []byte(`"` + strings.Repeat("e", 1000) + `"`)
		var err error
		sent, most := 0, int64(0)
		for err == nil {
			if err = c.NotifyRaw("event", params); err == nil {
				sent++
			}
			most = max(most, c.QueuedBytes())
		}
		if !errors.Is(err, ErrClosed) || !errors.Is(err, ErrSlowPeer) {
			t.Errorf("err = %v", err)
		}
		if most > hard+2000 || sent < 900 {
			t.Errorf("%d messages, %d bytes held; the cap is %d", sent, most, hard)
		}
		q.ping("1")
		if err := <-p.served; !errors.Is(err, ErrSlowPeer) {
			t.Errorf("Serve = %v", err)
		}
		if err := c.WaitRoom(t.Context()); !errors.Is(err, ErrSlowPeer) {
			t.Errorf("WaitRoom = %v", err)
		}
		_ = p.conn.Close()
		if !other.HasRoom() {
			t.Error("the other connection has no room")
		}
		_ = q.hangUp()
	})
}

// TestSlowPeerStillServed: a peer that does not read for a while is read from
// all the same, answers to our calls included, and gets everything in the end.
func TestSlowPeerStillServed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		admitted := 0
		c, p := dial(t, Config{Handler: HandlerFunc(func(_ context.Context, _ *Conn, r *Responder) {
			admitted++
			r.Reply(admitted, nil)
		})})
		answered := false
		go func() {
			_, err := c.Call(context.Background(), "ask", nil)
			answered = err == nil
		}()
		synctest.Wait()
		for i := range 1000 {
			p.send(request(i, "m", "{}"))
		}
		p.send(`{"jsonrpc":"2.0","id":1,"result":1}`)
		synctest.Wait()
		if admitted != 1000 || !answered {
			t.Errorf("admitted %d, answered %v: the reader waits for the writer", admitted, answered)
		}
		p.expect(`{"jsonrpc":"2.0","id":1,"method":"ask"}`)
		for i := range 1000 {
			p.expect(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":%d}`, i, i+1))
		}
		_ = p.hangUp()
	})
}

// TestPumps: producers that wait hold the queue at the watermark, lose nothing
// and keep their order, with the peer as slow as it likes.
func TestPumps(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const soft, pumps, each = 64 << 10, 5, 400
		c, p := dial(t, Config{SoftQueueBytes: soft, MaxQueueBytes: soft + 3000})
		pad := strings.Repeat("p", 1000)
		for n := range pumps {
			go func() {
				for i := range each {
					if err := c.NotifyWait(t.Context(), "event", fmt.Appendf(nil, `"%d %d %s"`, n, i, pad)); err != nil {
						t.Errorf("pump %d: %v", n, err)
						return
					}
				}
			}()
		}
		synctest.Wait()
		if c.HasRoom() || c.QueuedBytes() > soft+2000 {
			t.Errorf("%d bytes queued; the mark is %d", c.QueuedBytes(), soft)
		}
		blocked, cancel := context.WithCancel(t.Context())
		cancel()
		if err := c.WaitRoom(blocked); !errors.Is(err, context.Canceled) {
			t.Errorf("WaitRoom = %v", err)
		}
		if err := c.NotifyWait(blocked, "m"); !errors.Is(err, context.Canceled) {
			t.Errorf("NotifyWait = %v", err)
		}
		next := [pumps]int{}
		for range pumps * each {
			var n, i int
			if _, err := fmt.Sscanf(p.next(), `{"jsonrpc":"2.0","method":"event","params":"%d %d`, &n, &i); err != nil {
				t.Fatal(err)
			}
			if next[n] != i {
				t.Fatalf("pump %d: event %d came when %d was due", n, i, next[n])
			}
			next[n]++
		}
		if err := c.WaitRoom(t.Context()); err != nil {
			t.Error(err)
		}
		_ = p.hangUp()
	})
}

// TestWaitersEnd: whoever waits for room learns that the connection is gone.
func TestWaitersEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c, p := dial(t, Config{SoftQueueBytes: 10})
		_ = c.Notify("first", nil)
		_ = c.Notify("second", nil)
		failed := make(chan error, 2)
		go func() { failed <- c.WaitRoom(context.Background()) }()
		go func() { failed <- c.NotifyWait(context.Background(), "third") }()
		synctest.Wait()
		_ = p.hangUp()
		for range 2 {
			if err := <-failed; !errors.Is(err, ErrClosed) {
				t.Error(err)
			}
		}
	})
}

// TestManyLargeResults: results of Responder.Go wait for the peer outside the
// queue, so that a peer that asks much and reads steadily is not cut off.
func TestManyLargeResults(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const size, many = 100_000, 30
		c, p := dial(t, Config{SoftQueueBytes: size, MaxQueueBytes: 3 * size, Handler: HandlerFunc(func(_ context.Context, _ *Conn, r *Responder) {
			r.Go(func(context.Context) (any, error) { return strings.Repeat("r", size), nil })
		})})
		for i := range many {
			p.send(request(i, "read", "{}"))
		}
		synctest.Wait()
		if n := c.QueuedBytes(); n > 3*size {
			t.Errorf("%d bytes queued", n)
		}
		for range many {
			if got := len(p.next()); got < size {
				t.Errorf("answer of %d bytes", got)
			}
		}
		_ = p.hangUp()
	})
}

// TestOverloaded: requests beyond MaxInFlight are refused one by one.
func TestOverloaded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var parked []*Responder
		_, p := dial(t, Config{MaxInFlight: 2, Handler: HandlerFunc(func(_ context.Context, _ *Conn, r *Responder) { parked = append(parked, r) })})
		p.send(request(1, "m", "{}"))
		p.send(request(2, "m", "{}"))
		p.send(request(3, "m", "{}"))
		p.expectError("3", CodeOverloaded)
		parked[0].Reply(nil, nil)
		p.next()
		p.send(request(3, "m", "{}"))
		synctest.Wait()
		if len(parked) != 3 {
			t.Errorf("%d admitted, want 3", len(parked))
		}
		_ = p.hangUp()
	})
}

// brokenStream reads like its pipe, and fails every write.
type brokenStream struct{ net.Conn }

func (brokenStream) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

// TestPeerClosesItsReadSide: a stream that cannot be written ends the
// connection with the error, although the peer goes on sending.
func TestPeerClosesItsReadSide(t *testing.T) {
	bubble(t, func(t *testing.T) {
		here, there := pipe()
		c := New(brokenStream{here}, Config{Handler: HandlerFunc(pong)})
		served := make(chan error, 1)
		go func() { served <- c.Serve(context.Background()) }()
		go func() {
			for {
				if _, err := io.WriteString(there, frame(request(1, "ping", "{}"))); err != nil {
					return
				}
			}
		}()
		if err := <-served; err == nil || !strings.Contains(err.Error(), "broken pipe") {
			t.Errorf("Serve = %v", err)
		}
		_ = there.Close()
	})
}

// TestQueueBytes: whatever mixture of parts goes in, the bytes that come out are
// the frames in order, and few writes carry many small ones.
func TestQueueBytes(t *testing.T) {
	q := newQueue(1<<20, 1<<30, func() {})
	var want bytes.Buffer
	for i, size := range []int{0, 1, 300, copyLimit, copyLimit + 1, 10, smallChunk + 5, chunkSize, chunkSize + 1, 3, 3 * chunkSize, 0, 5} {
		for _, parts := range [][][]byte{{bytes.Repeat([]byte{byte('a' + i)}, size), []byte("}")}, {[]byte("tail")}} {
			head := []byte("head")
			if _, err := q.put(head, parts...); err != nil {
				t.Fatal(err)
			}
			body := append(head, bytes.Join(parts, nil)...)
			want.Write(appendHeader(nil, len(body)))
			want.Write(body)
		}
	}
	if q.size() != int64(want.Len()) {
		t.Errorf("size = %d, want %d", q.size(), want.Len())
	}
	q.close(ErrClosed, false)
	var got bytes.Buffer
	if err := q.drainTo(&got); err != nil || !bytes.Equal(got.Bytes(), want.Bytes()) {
		t.Errorf("%v; %d bytes came out, %d went in", err, got.Len(), want.Len())
	}
	if q.size() != 0 {
		t.Errorf("size = %d at the end", q.size())
	}

	q = newQueue(1<<20, 1<<30, func() {})
	for range 10_000 {
		_, _ = q.put(nil, make([]byte, 300))
	}
	q.close(ErrClosed, false)
	var writes countingWriter
	_ = q.drainTo(&writes)
	if writes > 60 {
		t.Errorf("%d writes for 10,000 small messages", writes)
	}
}

type countingWriter int

func (w *countingWriter) Write(p []byte) (int, error) { *w++; return len(p), nil }
