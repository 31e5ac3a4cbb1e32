package remote

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/internal/jsonrpc2"
)

// Error is why a peer, or a session on it, cannot be used.
type Error struct {
	Kind      transom.Kind
	Peer      string // its name
	Msg       string // what happened, to what, and what to do
	Retryable bool   // the same may succeed a little later
	Err       error  // the cause, where there is one
}

func (e *Error) Error() string { return e.Msg }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// The codes of the protocol for a token that is missing or wrong.
const (
	codeTokenMissing = -32001
	codeTokenWrong   = -32002
	codeNotFound     = -32010
)

// codeOf is the code of an error that the peer answered with; 0 for others.
func codeOf(err error) int {
	var e *jsonrpc2.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}

// kindOf is the kind that the peer gave an error; "" where it gave none.
func kindOf(err error) transom.Kind {
	var e *jsonrpc2.Error
	if !errors.As(err, &e) {
		return ""
	}
	raw, ok := e.Data.(json.RawMessage)
	if !ok {
		return ""
	}
	var data struct {
		Kind transom.Kind `json:"kind"`
	}
	if json.Unmarshal(raw, &data) != nil {
		return ""
	}
	return data.Kind
}

func (p *Peer) unreachable(err error) *Error {
	return &Error{
		Kind: transom.KindPeerGone, Peer: p.Name, Retryable: true, Err: err,
		Msg: fmt.Sprintf("peer %s cannot be reached: %v; see that a server runs there, and try again", p.Name, err),
	}
}

func (p *Peer) noProtocol(err error) *Error {
	return &Error{
		Kind: transom.KindPeerGone, Peer: p.Name, Retryable: true, Err: err,
		Msg: fmt.Sprintf("peer %s (%s) did not answer as a server of this protocol does: %v", p.Name, p.Address, err),
	}
}

func (p *Peer) refused(err error) *Error {
	e := &Error{Kind: transom.KindUnauthenticated, Peer: p.Name, Err: err}
	e.Msg = fmt.Sprintf("peer %s does not accept the token it was shown: give the one it was started with, by token-env or token-file", p.Name)
	if p.Token == "" {
		e.Msg = fmt.Sprintf("peer %s asks for a token: give the one it was started with, by token-env or token-file", p.Name)
	}
	return e
}

func (p *Peer) otherVersion(theirs, ours int) *Error {
	return &Error{
		Kind: transom.KindUnsupported, Peer: p.Name,
		Msg: fmt.Sprintf("peer %s speaks version %d of the protocol, this server speaks version %d: run servers of like versions", p.Name, theirs, ours),
	}
}

// resumeFailed is why the peer did not let us attach.
func (p *Peer) resumeFailed(id string, err error) error {
	if codeOf(err) == codeNotFound || kindOf(err) == transom.KindNotFound {
		return &Error{Kind: transom.KindNotFound, Peer: p.Name, Err: err, Msg: fmt.Sprintf("Session not found: %s, on peer %s", id, p.Name)}
	}
	if errors.Is(err, jsonrpc2.ErrClosed) {
		return p.unreachable(err)
	}
	return err
}

// final reports whether trying again cannot help.
func final(err error) bool {
	var e *Error
	if errors.As(err, &e) {
		return !e.Retryable
	}
	return codeOf(err) == jsonrpc2.CodeInvalidParams
}

// down is the answer to a request while there is no link.
func (s *Session) down(method string) *Error {
	return &Error{
		Kind: transom.KindPeerGone, Peer: s.cfg.Peer.Name, Retryable: true,
		Msg: fmt.Sprintf("%s was not sent: the link to peer %s, where session %s lives, is broken and is being mended; try again", method, s.cfg.Peer.Name, s.cfg.SessionID),
	}
}

// lost is the answer to a request that went out before the link broke.
func (s *Session) lost(method string, err error) *Error {
	return &Error{
		Kind: transom.KindPeerGone, Peer: s.cfg.Peer.Name, Err: err,
		Msg: fmt.Sprintf("the link to peer %s broke before %s was answered: it may have been carried out; look at the events of session %s before you ask again", s.cfg.Peer.Name, method, s.cfg.SessionID),
	}
}
