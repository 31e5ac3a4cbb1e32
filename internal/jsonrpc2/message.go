package jsonrpc2

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"
)

// ID is a request id as raw JSON text, a number or a string (`7`, `"a-1"`). It
// goes back to the peer byte for byte, since clients compare ids in their own
// ways. The empty ID means that there is none.
type ID string

// MarshalJSON returns the raw text, or null for the empty ID.
func (id ID) MarshalJSON() ([]byte, error) {
	if id == "" {
		return []byte("null"), nil
	}
	return []byte(id), nil
}

// Request is an incoming request or notification.
type Request struct {
	// ID is what the answer will carry. A notification has none.
	ID ID
	// Method is the name as sent; any string, the empty one included.
	Method string
	// Params is the raw text as sent: an object, an array or (though the
	// standard has no such thing) a scalar. It is nil where the member is absent
	// or null. Lone surrogate escapes in it are the decoder's to replace.
	Params json.RawMessage
}

// IsNotification reports whether nobody waits for an answer.
func (r Request) IsNotification() bool { return r.ID == "" }

// Error codes. The first five are the standard's, the next two are those of the
// Language Server Protocol; -32015 is private to this server, in the range that
// the standard leaves to implementations.
const (
	CodeParseError       = -32700
	CodeInvalidRequest   = -32600
	CodeMethodNotFound   = -32601
	CodeInvalidParams    = -32602
	CodeInternalError    = -32603
	CodeRequestCancelled = -32800
	CodeDeadlineExceeded = -32802
	CodeOverloaded       = -32015
)

// Error is the error object of an answer, in either direction.
type Error struct {
	// Code is never 0 on the wire and fits 32 bits: some clients parse an i32.
	Code int
	// Message is what the peer reads.
	Message string
	// Data is optional detail, anything that encodes to JSON. In an error that
	// came from a peer it is a json.RawMessage, or nil.
	Data any
}

// Error returns the message alone, so that an *Error wrapped with %w gains
// context and not a number. The code is in Code.
func (e *Error) Error() string { return e.Message }

// Is reports whether target is an *Error with the same code, so that
// errors.Is(err, &Error{Code: CodeMethodNotFound}) asks for a code.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// Errorf makes an *Error.
func Errorf(code int, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// MethodNotFound is the answer to a method that the handler does not know. The
// text is what the clients look for when they fall back to an older handshake.
func MethodNotFound(method string) *Error {
	return Errorf(CodeMethodNotFound, "Unhandled method %s", method)
}

var (
	// ErrClosed is matched by every error that means "there is no connection":
	// of an outgoing call whose answer can no longer come, of what was to be
	// sent, and as the cause of the context of a request that lost its peer.
	ErrClosed = errors.New("jsonrpc2: connection closed")
	// ErrSlowPeer is why a connection was closed whose peer let more than
	// Config.MaxQueueBytes pile up without reading.
	ErrSlowPeer = errors.New("jsonrpc2: peer stopped reading: too many bytes wait to be sent")
	// ErrTooLarge is returned for a message over the limit for its direction. The
	// message was not sent; the connection lives.
	ErrTooLarge = errors.New("jsonrpc2: message is larger than a frame may be")
	// ErrCancelled is the cause of the context of a request that the peer
	// cancelled with $/cancelRequest.
	ErrCancelled = errors.New("jsonrpc2: request cancelled by the peer")
	// ErrRepliedTwice is reported for a second answer to one request. The second
	// answer is dropped.
	ErrRepliedTwice = errors.New("jsonrpc2: request answered twice")
)

// AsError turns any error into one with a code. It is total: an *Error
// (wrapped or not) keeps its code and data, with the wrapping's text; a
// cancelled request is -32800; an expired deadline is -32802; all else is
// -32603 with the error's text. A code that no client could read (0, or beyond
// 32 bits) becomes -32603. AsError(nil) is nil.
func AsError(err error) *Error {
	var coded *Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &coded) && coded != nil:
		e := &Error{Code: coded.Code, Message: err.Error(), Data: coded.Data}
		if e.Code == 0 || e.Code < math.MinInt32 || e.Code > math.MaxInt32 {
			e.Code = CodeInternalError
		}
		return e
	case errors.Is(err, ErrCancelled), errors.Is(err, context.Canceled):
		return Errorf(CodeRequestCancelled, "Request cancelled")
	case errors.Is(err, context.DeadlineExceeded):
		return Errorf(CodeDeadlineExceeded, "Deadline exceeded")
	default:
		return Errorf(CodeInternalError, "%s", err.Error())
	}
}

// message is one decoded body: a request (method set), or an answer.
type message struct {
	Request
	isRequest bool

	// Of an answer: the id as sent, and one of the two.
	result json.RawMessage
	err    *Error
	// fault is set where an answer names its call but is malformed; the call
	// fails with it, since nothing better will come.
	fault *Error
}

// decode reads one body. The error, if any, is the answer to give with id null.
// The message points into body.
func decode(body []byte) (message, *Error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return message{}, Errorf(CodeParseError, "Parse error: the body is empty")
	}
	if !utf8.Valid(body) {
		return message{}, Errorf(CodeParseError, "Parse error: the body is not valid UTF-8")
	}
	if !json.Valid(body) {
		return message{}, Errorf(CodeParseError, "Parse error: %s", syntaxError(body))
	}
	var o outline
	o.feed(body)
	switch {
	case bytes.TrimLeft(body, " \t\r\n")[0] == '[':
		return message{}, Errorf(CodeInvalidRequest, "Invalid request: batches are not served; send each message in its own frame")
	case !o.isObject:
		return message{}, Errorf(CodeInvalidRequest, "Invalid request: a message is a JSON object")
	case o.repeated:
		return message{}, Errorf(CodeInvalidRequest, "Invalid request: a member occurs twice")
	case !o.spans[memberMethod].found():
		return decodeAnswer(body, &o)
	}
	if e := checkVersion(body, &o); e != nil {
		return message{}, e
	}
	m := message{isRequest: true}
	if s := o.spans[memberID]; s.found() {
		raw := s.of(body)
		if !validID(raw) {
			return message{}, Errorf(CodeInvalidRequest, "Invalid request: id must be an integer or a string, got %s", quoteHead(raw))
		}
		m.ID = ID(raw)
	}
	name, ok := plainString(o.spans[memberMethod].of(body))
	if !ok {
		return message{}, Errorf(CodeInvalidRequest, "Invalid request: method must be a string")
	}
	m.Method = name
	if s := o.spans[memberParams]; s.found() {
		if raw := s.of(body); string(raw) != "null" {
			m.Params = raw
		}
	}
	return m, nil
}

// decodeAnswer reads a body without a method.
func decodeAnswer(body []byte, o *outline) (message, *Error) {
	hasResult, hasError := o.spans[memberResult].found(), o.spans[memberError].found()
	var m message
	if s := o.spans[memberID]; s.found() {
		m.ID = ID(s.of(body))
	}
	switch versionFault := checkVersion(body, o); {
	case versionFault != nil:
		m.fault = versionFault
		return m, versionFault
	case !hasResult && !hasError || !o.spans[memberID].found():
		m.fault = Errorf(CodeInvalidRequest, "Invalid request: no method, and no id with a result or an error: neither a request nor an answer")
		return m, m.fault
	case hasError && string(o.spans[memberError].of(body)) != "null":
		m.err = decodeError(o.spans[memberError].of(body))
	case hasResult:
		m.result = o.spans[memberResult].of(body)
	default:
		m.err = Errorf(CodeInternalError, "the peer answered with error null and no result")
	}
	return m, nil
}

func checkVersion(body []byte, o *outline) *Error {
	s := o.spans[memberVersion]
	if !s.found() {
		return Errorf(CodeInvalidRequest, "Invalid request: member jsonrpc is missing; it must be \"2.0\"")
	}
	if v, ok := plainString(s.of(body)); !ok || v != "2.0" {
		return Errorf(CodeInvalidRequest, "Invalid request: jsonrpc must be \"2.0\", got %s", quoteHead(s.of(body)))
	}
	return nil
}

// decodeError reads the error object of an answer, whatever shape the peer gave
// it: a failed call must fail, even badly described.
func decodeError(raw []byte) *Error {
	var wire struct {
		Code    json.Number     `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(raw, &wire); err != nil {
		return Errorf(CodeInternalError, "the peer answered with a malformed error: %s", quoteHead(raw))
	}
	e := &Error{Code: CodeInternalError, Message: wire.Message}
	if n, err := strconv.ParseInt(wire.Code.String(), 10, 32); err == nil && n != 0 {
		e.Code = int(n)
	}
	if wire.Data != nil {
		e.Data = wire.Data
	}
	return e
}

// validID accepts a JSON string, or a number written as an integer. Fractions
// and exponents are refused: clients disagree on which of them are the same id.
func validID(raw []byte) bool {
	if len(raw) == 0 {
		return false
	}
	if raw[0] == '"' {
		return len(raw) >= 2 && json.Valid(raw)
	}
	digits := bytes.TrimPrefix(raw, []byte("-"))
	for _, b := range digits {
		if b < '0' || b > '9' {
			return false
		}
	}
	return len(digits) > 0 && (len(digits) == 1 || digits[0] != '0')
}

// plainString decodes raw where it is a JSON string.
func plainString(raw []byte) (string, bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1]), true
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return "", false
	}
	return s, true
}

// syntaxError says what the JSON decoder has against body.
func syntaxError(body []byte) string {
	var any json.RawMessage
	err := json.Unmarshal(body, &any)
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Sprintf("%v at byte %d of the body", err, syntax.Offset)
	}
	return fmt.Sprint(err)
}
