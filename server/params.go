package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/transom-run/transom/internal/jsonrpc2"
	"github.com/transom-run/transom/trace"
)

// decode reads a request's params into p, a pointer to a struct. Absent params
// and an array are an empty object, null members are absent, members that p does
// not have are passed over.
func decode(req jsonrpc2.Request, p any) error {
	raw := bytes.TrimLeft(req.Params, " \t\r\n")
	if len(raw) == 0 || raw[0] == '[' {
		return nil
	}
	if raw[0] != '{' {
		return invalid(req.Method, fmt.Sprintf("the params of %s must be an object", req.Method))
	}
	err := json.Unmarshal(raw, p)
	if err == nil {
		return nil
	}
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return invalid(req.Method, fmt.Sprintf("the params of %s: %s must be %s, not %s", req.Method, field(wrong.Field), kindName(wrong), wrong.Value))
	}
	return invalid(req.Method, fmt.Sprintf("the params of %s: %v", req.Method, err))
}

func field(path string) string {
	if path == "" {
		return "the value"
	}
	return path
}

// kindName says in JSON's words what was expected.
func kindName(e *json.UnmarshalTypeError) string {
	switch name := e.Type.Kind().String(); {
	case name == "string":
		return "a string"
	case name == "bool":
		return "true or false"
	case name == "slice":
		return "an array"
	case name == "struct" || name == "map":
		return "an object"
	case strings.HasPrefix(name, "int") || strings.HasPrefix(name, "float") || strings.HasPrefix(name, "uint"):
		return "a number"
	default:
		return "a " + name
	}
}

// target is the part of the params that names the session.
type target struct {
	SessionID string `json:"sessionId"`
}

func (t *target) id() string { return t.SessionID }

// aimed is implemented by pointers to params that embed target.
type aimed[P any] interface {
	*P
	id() string
}

// traceParams are a place in a trace, as clients give it.
type traceParams struct {
	Traceparent string `json:"traceparent"`
	Tracestate  string `json:"tracestate"`
}

// at is the place; what is none is passed over, as W3C Trace Context has it.
func (p traceParams) at() trace.Context {
	c, _ := trace.Parse(p.Traceparent, p.Tracestate)
	return c
}

// present reports whether a raw member holds a value.
func present(raw json.RawMessage) bool {
	return len(raw) > 0 && !bytes.Equal(raw, []byte("null"))
}
