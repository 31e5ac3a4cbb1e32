package hostlog

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/eventlog"
	"github.com/transom-run/transom/eventlog/internal/record"
)

// TypeVoid is the type of the record that names records which an earlier append
// may have left in the file although it failed: they are not part of the log.
const TypeVoid = event.PrivatePrefix + "void"

// void is its payload.
type void struct {
	IDs []string `json:"ids"`
}

// EventType implements event.Payload.
func (void) EventType() string { return TypeVoid }

// Log is a session's log at its host.
type Log struct {
	store *Store
	id    string

	// writing is held by the one who appends, while the host is asked.
	writing sync.Mutex
	ragged  bool     // the file may end inside of a line
	voided  []string // ids of records that may be there and must not count

	mu      sync.Mutex
	closed  bool
	stored  bool
	lines   [][]byte // only grows; a line is never changed
	pending [][]byte // provisional ones behind them
	damage  []stretch
	bytes   int64 // of lines
}

// stretch is a damaged part of the file, before the record of a number.
type stretch struct {
	before int
	what   eventlog.Damage
}

// Waits says that an append waits for somebody else: see [eventlog.Waiting].
func (l *Log) Waits() {}

// mark is what of a record says which one it is.
type mark struct {
	ID        string    `json:"id"`
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"`
	Data      struct {
		IDs []string `json:"ids"`
	} `json:"data"`
}

// marked reads a line's mark; what cannot be read is not marked.
func marked(line []byte) (m mark) {
	if bytes.Contains(line, []byte(TypeVoid)) {
		if json.Unmarshal(line, &m) == nil && m.Type == TypeVoid {
			return m
		}
	}
	var head struct {
		ID string `json:"id"`
	}
	json.Unmarshal(line, &head) // one without an id is taken as it comes
	return mark{ID: head.ID}
}

// load takes the records of a file. A record that is there twice counts once: an
// append that failed and one that was made again may both have been carried out.
func (l *Log) load(text string) (damages []eventlog.Damage) {
	type found struct {
		line []byte
		id   string
		bad  *eventlog.Damage
	}
	var all []found
	gone := map[string]bool{}
	at, n := int64(0), 0
	for raw := range strings.SplitAfterSeq(text, "\n") {
		n++
		for _, seg := range record.Split([]byte(raw)) {
			part := []byte(raw[seg.Start:seg.End])
			if seg.Bad != "" {
				what := seg.Bad
				if !strings.HasSuffix(raw, "\n") {
					what = "torn last record"
				}
				all = append(all, found{bad: &eventlog.Damage{Line: n, Bytes: int64(seg.End - seg.Start), Reason: what}})
				continue
			}
			m := marked(part)
			if m.Type == TypeVoid {
				for _, id := range m.Data.IDs {
					gone[id] = true
				}
				continue
			}
			all = append(all, found{line: part, id: m.ID})
		}
		at += int64(len(raw))
	}
	l.ragged = at > 0 && !strings.HasSuffix(text, "\n")
	for _, f := range all {
		switch {
		case f.bad != nil:
			f.bad.Pos = eventlog.Position(len(l.lines))
			l.damage = append(l.damage, stretch{len(l.lines), *f.bad})
		case f.id != "" && gone[f.id]:
		default:
			if f.id != "" {
				gone[f.id] = true
			}
			l.lines = append(l.lines, f.line)
			l.bytes += int64(len(f.line)) + 1
		}
	}
	if k := len(l.damage); k > 0 && l.damage[k-1].before == len(l.lines) && l.ragged {
		damages = append(damages, l.damage[k-1].what) // the others are met by reading
		l.damage = l.damage[:k-1]
	}
	return damages
}

// newest and oldest are the times of the last and the first record.
func (l *Log) newest() time.Time { return l.time(len(l.lines) - 1) }
func (l *Log) oldest() time.Time { return l.time(0) }

func (l *Log) time(n int) time.Time {
	var m struct {
		Timestamp time.Time `json:"timestamp"`
	}
	if n >= 0 && n < len(l.lines) {
		json.Unmarshal(l.lines[n], &m)
	}
	if m.Timestamp.IsZero() {
		return time.Now()
	}
	return m.Timestamp
}

// Append implements eventlog.Log. It waits for the host's answer.
func (l *Log) Append(b eventlog.Batch) (eventlog.Position, error) {
	for _, line := range b.Lines {
		if err := record.Check(line); err != nil {
			return 0, fmt.Errorf("append to session %s: %w", l.id, err)
		}
	}
	l.writing.Lock()
	defer l.writing.Unlock()
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return 0, fmt.Errorf("append to session %s: %w", l.id, eventlog.ErrClosed)
	}
	pos := eventlog.Position(len(l.lines) + len(l.pending))
	fresh := make([][]byte, len(b.Lines))
	for i, line := range b.Lines {
		fresh[i] = bytes.Clone(line)
	}
	if b.Provisional && !b.Sync {
		l.pending = append(l.pending, fresh...)
		l.mu.Unlock()
		return pos, nil
	}
	held := len(l.pending)
	lines := append(l.pending[:held:held], fresh...)
	first := !l.stored
	l.mu.Unlock()
	if len(lines) == 0 && !first {
		return pos, nil
	}
	if err := l.write(lines, first); err != nil {
		for _, line := range fresh {
			if id := marked(line).ID; id != "" {
				l.voided = append(l.voided, id)
			}
		}
		l.ragged = true
		return 0, fmt.Errorf("append to session %s: %w", l.id, err)
	}
	l.voided, l.ragged = nil, false
	l.commit(lines)
	return pos, nil
}

// write has the host append lines. writing is held.
func (l *Log) write(lines [][]byte, first bool) error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), l.store.cfg.AppendTime, fmt.Errorf("the host that keeps the session has not answered for %v: what was to be written counts as not written", l.store.cfg.AppendTime))
	defer cancel()
	files, err := l.store.cfg.Open(l.id)
	if err != nil {
		return err
	}
	if begin := l.store.cfg.Begin; first && begin != nil {
		if err := begin(ctx, l.id, files, lines); err != nil {
			return err
		}
	}
	var text []byte
	if l.ragged && !first {
		text = append(text, '\n')
	}
	text = record.Join(text, lines)
	if len(l.voided) > 0 {
		e, err := event.New(void{l.voided}, "void-"+l.voided[0], "", time.Now())
		if err != nil {
			return err
		}
		text = record.Join(text, [][]byte{e.Line})
	}
	return files.AppendFile(ctx, l.store.cfg.Layout.Must(File), string(text), 0o600)
}

// commit makes lines that the host has part of the log.
func (l *Log) commit(lines [][]byte) {
	l.mu.Lock()
	for _, line := range lines {
		l.bytes += int64(len(line)) + 1
	}
	l.lines, l.pending, l.stored = append(l.lines, lines...), nil, true
	size := l.bytes
	l.mu.Unlock()
	l.store.note(l.id, func(i *eventlog.Info) {
		i.Bytes, i.Modified = size, time.Now()
		if i.Started.IsZero() {
			i.Started = i.Modified
		}
	})
}

// Read implements eventlog.Log. It does not wait for the host.
func (l *Log) Read(from eventlog.Position) iter.Seq2[eventlog.Record, error] {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.lines)
	written, pending, damage := l.lines[:n:n], l.pending[:len(l.pending):len(l.pending)], l.damage
	var err error
	switch end := n + len(pending); {
	case l.closed:
		err = fmt.Errorf("read session %s: %w", l.id, eventlog.ErrClosed)
	case from < 0 || int(from) > end:
		err = fmt.Errorf("read session %s: position %d is not in the log, which ends at %d", l.id, from, end)
	}
	return func(yield func(eventlog.Record, error) bool) {
		if err != nil {
			yield(eventlog.Record{}, err)
			return
		}
		for i := int(from); i <= len(written)+len(pending); i++ {
			for _, d := range damage {
				if d.before == i && !yield(eventlog.Record{}, &eventlog.DamageError{Damage: d.what}) {
					return
				}
			}
			var line []byte
			switch {
			case i < len(written):
				line = written[i]
			case i < len(written)+len(pending):
				line = pending[i-len(written)]
			default:
				return
			}
			pos := eventlog.Position(i)
			if !yield(eventlog.Record{Pos: pos, Next: pos + 1, Line: bytes.Clone(line)}, nil) {
				return
			}
		}
	}
}

// End implements eventlog.Log.
func (l *Log) End() eventlog.Position {
	l.mu.Lock()
	defer l.mu.Unlock()
	return eventlog.Position(len(l.lines) + len(l.pending))
}

// Bytes implements eventlog.Sized.
func (l *Log) Bytes() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bytes
}

// Close implements eventlog.Log. It does not wait for an append that is under way.
// A second Close does nothing.
func (l *Log) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed, l.pending = true, nil
	never := !l.stored
	l.mu.Unlock()
	if never {
		l.store.drop(l.id)
	}
	return nil
}

// drop forgets a session that never came to be.
func (s *Store) drop(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.known[id]; e != nil && !e.stored {
		delete(s.known, id)
	}
}
