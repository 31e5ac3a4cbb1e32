// Package event defines the records of a session: the envelope every client
// sees, the payloads Transom itself writes, and their one encoding.
//
// A record is one line of JSON. Once encoded it is kept as those bytes: the log
// stores them, every client is sent them, and nothing is ever encoded again.
//
//	{"type":"user.message","data":{…},"id":"…","timestamp":"…","parentId":"…"}
//
// # Kinds
//
// A persisted event is part of the session's history. An ephemeral event
// ("ephemeral":true: deltas, idle, usage figures) is seen live and forgotten. A
// private record (type prefix [PrivatePrefix]) is kept in the log for Transom's
// own use: it is never sent to a client, never part of the history and never a
// parent.
//
// # Errors
//
// [Decode] names what is wrong with a line; it never panics, whatever the bytes.
package event

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/transom-run/transom/internal/jsonstring"
)

// PrivatePrefix begins the type of every private record.
const PrivatePrefix = "transom."

// TimeFormat is how times are written: UTC, milliseconds.
const TimeFormat = "2006-01-02T15:04:05.000Z"

// Payload is the data of an event that Transom writes.
type Payload interface {
	// EventType is the type as it stands on the wire, such as "user.message".
	EventType() string
}

// ephemeral is implemented by the payloads of events that are not persisted.
type ephemeral interface{ ephemeralEvent() }

// Event is one record of a session.
type Event struct {
	Type      string
	ID        string
	ParentID  string // "" is null: the first event of a session
	Timestamp time.Time
	Ephemeral bool
	AgentID   string // "" for the root agent

	// Data is the payload as it stands in Line.
	Data json.RawMessage
	// Line is the whole record, one line without its line feed. It is never
	// changed after the event was made.
	Line []byte
	// Payload is what Data was encoded from, where this process made the event;
	// nil where it was read from a log.
	Payload Payload
}

// Private reports whether the record is Transom's own: see [PrivatePrefix].
func (e *Event) Private() bool { return strings.HasPrefix(e.Type, PrivatePrefix) }

// Persisted reports whether the record is part of the log.
func (e *Event) Persisted() bool { return !e.Ephemeral }

// Public reports whether clients may see the event.
func (e *Event) Public() bool { return !e.Private() }

// New makes an event. Its id, parent and time come from the caller, so that a
// session's decisions can be replayed.
func New(p Payload, id, parent string, at time.Time) (*Event, error) {
	return NewOf(p, "", id, parent, at)
}

// NewOf makes an event of a sub-agent; "" is the root agent.
func NewOf(p Payload, agent, id, parent string, at time.Time) (*Event, error) {
	data, err := marshal(p)
	if err != nil {
		return nil, fmt.Errorf("encode %s event: %w", p.EventType(), err)
	}
	_, eph := p.(ephemeral)
	e := &Event{Type: p.EventType(), ID: id, ParentID: parent, Timestamp: at.UTC(), Ephemeral: eph, AgentID: agent, Payload: p}
	e.encode(data)
	return e, nil
}

func (e *Event) encode(data []byte) {
	b := make([]byte, 0, len(data)+len(e.Type)+192)
	b = append(b, `{"type":`...)
	b = jsonstring.Append(b, e.Type)
	b = append(b, `,"data":`...)
	at := len(b)
	b = append(b, data...)
	end := len(b)
	b = append(b, `,"id":`...)
	b = jsonstring.Append(b, e.ID)
	b = append(b, `,"timestamp":"`...)
	b = e.Timestamp.AppendFormat(b, TimeFormat)
	b = append(b, `","parentId":`...)
	if e.ParentID == "" {
		b = append(b, "null"...)
	} else {
		b = jsonstring.Append(b, e.ParentID)
	}
	if e.Ephemeral {
		b = append(b, `,"ephemeral":true`...)
	}
	if e.AgentID != "" {
		b = append(b, `,"agentId":`...)
		b = jsonstring.Append(b, e.AgentID)
	}
	b = append(b, '}')
	e.Line, e.Data = b, b[at:end:end]
}

// Decode reads one line of a log. The bytes are kept, not copied: the caller
// must not change them. Unknown types are fine; unknown members are kept in
// Line. A line that is not a JSON object with a type and an id is an error.
func Decode(line []byte) (*Event, error) {
	var h struct {
		Type      string          `json:"type"`
		Data      json.RawMessage `json:"data"`
		ID        string          `json:"id"`
		Timestamp string          `json:"timestamp"`
		ParentID  *string         `json:"parentId"`
		Ephemeral bool            `json:"ephemeral"`
		AgentID   string          `json:"agentId"`
	}
	line = bytes.TrimSuffix(line, []byte("\r"))
	if !utf8.Valid(line) {
		return nil, fmt.Errorf("event line is not valid UTF-8")
	}
	if err := json.Unmarshal(line, &h); err != nil {
		return nil, fmt.Errorf("event line is not a JSON object: %w", err)
	}
	if h.Type == "" {
		return nil, fmt.Errorf("event line has no type")
	}
	if h.ID == "" {
		return nil, fmt.Errorf("event line of type %q has no id", h.Type)
	}
	e := &Event{Type: h.Type, ID: h.ID, Ephemeral: h.Ephemeral, AgentID: h.AgentID, Data: h.Data, Line: line}
	if h.ParentID != nil {
		e.ParentID = *h.ParentID
	}
	if t, err := time.Parse(time.RFC3339Nano, h.Timestamp); err == nil {
		e.Timestamp = t
	}
	return e, nil
}

// Into decodes the event's payload into p.
func (e *Event) Into(p any) error {
	if len(e.Data) == 0 {
		return nil
	}
	if err := json.Unmarshal(e.Data, p); err != nil {
		return fmt.Errorf("payload of %s event %s: %w", e.Type, e.ID, err)
	}
	return nil
}

// As returns the payload of an event as T: what the event was made from, or what
// its data decodes to.
func As[T Payload](e *Event) (T, error) {
	if p, ok := e.Payload.(T); ok {
		return p, nil
	}
	var p T
	err := e.Into(&p)
	return p, err
}

// marshal encodes without HTML escapes and without the final line feed. Line
// separators that stand raw in embedded JSON are escaped, as everywhere.
func marshal(v any) ([]byte, error) {
	if a, ok := v.(appender); ok {
		return a.appendJSON(make([]byte, 0, 128)), nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	out := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	if bytes.Contains(out, []byte("\u2028"[:2])) {
		out = bytes.ReplaceAll(out, []byte("\u2028"), []byte(`\u2028`))
		out = bytes.ReplaceAll(out, []byte("\u2029"), []byte(`\u2029`))
	}
	return out, nil
}

// appender is implemented by the few payloads that are made thousands of times
// a second.
type appender interface{ appendJSON(b []byte) []byte }
