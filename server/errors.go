package server

import (
	"errors"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/internal/jsonrpc2"
)

// The codes of this server's own errors. They lie in the range that JSON-RPC
// leaves to servers; -32001 and -32002 are the protocol's.
const (
	codeAuthenticationRequired = -32001
	codeAuthenticationFailed   = -32002
	codeNotFound               = -32010
	codeWrongState             = -32011
	codeConflict               = -32012
	codeDenied                 = -32013
	codeUnsupported            = -32014
	codeClosing                = -32016
	codeUpstream               = -32017
	codePeerGone               = -32018
)

// Code is the JSON-RPC code of a kind of error. It is total: a kind that it does
// not know is an internal error.
func Code(k transom.Kind) int {
	switch k {
	case transom.KindInvalidParams:
		return jsonrpc2.CodeInvalidParams
	case transom.KindCancelled:
		return jsonrpc2.CodeRequestCancelled
	case transom.KindDeadline:
		return jsonrpc2.CodeDeadlineExceeded
	case transom.KindNotFound:
		return codeNotFound
	case transom.KindWrongState:
		return codeWrongState
	case transom.KindConflict:
		return codeConflict
	case transom.KindDenied:
		return codeDenied
	case transom.KindUnauthenticated:
		return codeAuthenticationRequired
	case transom.KindUnsupported:
		return codeUnsupported
	case transom.KindOverloaded:
		return jsonrpc2.CodeOverloaded
	case transom.KindClosing:
		return codeClosing
	case transom.KindUpstream:
		return codeUpstream
	case transom.KindPeerGone:
		return codePeerGone
	case transom.KindInternal:
	}
	return jsonrpc2.CodeInternalError
}

// errorData is the data member of every error.
type errorData struct {
	Kind      string `json:"kind"`
	Op        string `json:"op"`
	Retryable bool   `json:"retryable"`
}

// fail turns an error into the one that the client reads. nil stays nil.
func fail(op string, err error) error {
	if err == nil {
		return nil
	}
	var wire *jsonrpc2.Error
	if errors.As(err, &wire) {
		return err
	}
	kind := transom.KindOf(err)
	return &jsonrpc2.Error{Code: Code(kind), Message: err.Error(), Data: errorData{string(kind), op, transom.Retryable(err)}}
}

func failKind(op string, k transom.Kind, msg string) error {
	return fail(op, &transom.Error{Op: op, Kind: k, Msg: msg})
}

func invalid(op, msg string) error { return failKind(op, transom.KindInvalidParams, msg) }

func notFound(op, id string) error {
	return failKind(op, transom.KindNotFound, "Session not found: "+id)
}
