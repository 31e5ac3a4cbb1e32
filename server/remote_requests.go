package server

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/internal/jsonrpc2"
	"github.com/transom-run/transom/remote"
)

// isRemoteClear is the refusal of a clear on a remote session, in the words of
// the core's own; blankClear is the one that goes before it.
const (
	isRemoteClear = "session.history.clearContext is not possible on a remote session: make the call on the server that the session lives on"
	blankClear    = "session.history.clearContext needs a prompt that is not blank: it becomes the first user message of the fresh window"
)

// takeRemote takes a request about a session of a peer, on the reader; false
// where it is about none. What a client asks of such a session goes through its
// lane, and then to the peer, whatever it is, but for what follows here.
func (c *conn) takeRemote(r *jsonrpc2.Responder) bool {
	name := r.Request().Method
	if !strings.HasPrefix(name, "session.") || name == "session.getMetadata" || name == "session.setForeground" {
		return false
	}
	p := new(target)
	if decode(r.Request(), p) != nil || p.SessionID == "" {
		return false
	}
	id := p.SessionID
	c.mu.Lock()
	f := c.far[id]
	c.mu.Unlock()
	switch {
	case name == "session.create" && (f != nil || c.srv.exposedOn(id) != nil):
		r.Reply(nil, failKind(name, transom.KindConflict, "session "+id+" exists already, on a peer: resume it, or choose another id"))
		return true
	case f == nil:
		return name == "session.resume" && c.joinRemote(r, id)
	}
	switch name {
	case "session.delete":
		r.Reply(failure{Error: "session " + id + " lives on a peer: delete it there"}, nil)
	case "session.history.clearContext":
		f.enter(r, func(*remote.Session) bool { refuseClear(r); return false })
	case "session.destroy", "session.detach":
		f.end(r)
	case "session.resume":
		f.enter(r, func(s *remote.Session) bool { f.forward(r, s, asRemote); return false })
	case "session.metadata.snapshot":
		f.enter(r, func(s *remote.Session) bool { f.forward(r, s, f.snapshot); return false })
	default:
		f.enter(r, func(s *remote.Session) bool { f.forward(r, s, nil); return false })
	}
	return true
}

// enter runs g in the session's lane, with the session.
func (f *farSession) enter(r *jsonrpc2.Responder, g func(s *remote.Session) (held bool)) {
	f.c.enter(f.id, func(l *lane) bool {
		s := f.session()
		if s == nil {
			r.Reply(nil, notFound(r.Request().Method, f.id))
			return false
		}
		return g(s)
	})
}

// forward hands a request on and answers with what the peer answers.
func (f *farSession) forward(r *jsonrpc2.Responder, s *remote.Session, edit func(json.RawMessage) json.RawMessage) {
	req := r.Request()
	s.Forward(r.Context(), req.Method, req.Params, func(result json.RawMessage, err error) {
		if err != nil {
			r.Reply(nil, failRemote(req.Method, err))
			return
		}
		if edit != nil {
			result = edit(result)
		}
		r.Reply(result, nil)
	})
}

// refuseClear answers a clear: the window is the peer's, and what follows a clear
// is decided there.
func refuseClear(r *jsonrpc2.Responder) {
	p := new(clearParams)
	err := decode(r.Request(), p)
	switch {
	case err != nil:
	case p.Prompt == nil:
		err = noClearPrompt()
	case strings.TrimSpace(*p.Prompt) == "":
		err = invalid(r.Request().Method, blankClear)
	default:
		err = failKind(r.Request().Method, transom.KindUnsupported, isRemoteClear)
	}
	r.Reply(nil, err)
}

// end detaches the client here and there.
func (f *farSession) end(r *jsonrpc2.Responder) {
	method := r.Request().Method
	f.c.enter(f.id, func(l *lane) bool {
		s := f.session()
		if s == nil {
			r.Reply(successResult{method == "session.detach"}, nil)
			return false
		}
		r.Go(func(ctx context.Context) (any, error) {
			defer l.leave()
			result, err := s.Close(ctx, method)
			f.release()
			r.Reply(result, failRemote(method, err))
			return nil, nil
		})
		return true
	})
}

// joinRemote resumes a session that another client here is attached to; false
// where none is.
func (c *conn) joinRemote(r *jsonrpc2.Responder, id string) bool {
	peer := c.srv.exposedOn(id)
	if peer == nil {
		return false
	}
	req := r.Request()
	f, _, err := c.reserveFar(req.Method, id)
	if err != nil {
		r.Reply(nil, err)
		return true
	}
	c.enter(id, func(l *lane) bool {
		r.Go(func(ctx context.Context) (any, error) {
			defer l.leave()
			if err := c.attachAt(ctx, f, peer, req.Params, false); err != nil {
				f.release()
				return nil, failRemote(req.Method, err)
			}
			s := f.session()
			if s == nil {
				return nil, notFound(req.Method, id)
			}
			r.ReplyThen(asRemote(s.Opened()), nil, s.Start)
			return nil, nil
		})
		return true
	})
	return true
}

// asRemote makes an answer of the peer to session.resume one of this server: the
// session is remote, and its directory is not on this machine.
func asRemote(raw json.RawMessage) json.RawMessage {
	return editObject(raw, func(o map[string]json.RawMessage) {
		o["isRemote"] = json.RawMessage("true")
		delete(o, "workspacePath")
	})
}

// snapshot is asRemote for session.metadata.snapshot.
func (f *farSession) snapshot(raw json.RawMessage) json.RawMessage {
	where := map[string]any{"repository": repository{}}
	if p := f.c.srv.exposedOn(f.id); p != nil {
		where["resourceId"] = p.Name + "/" + f.id
	}
	about, err := json.Marshal(where)
	if err != nil {
		return raw
	}
	return editObject(raw, func(o map[string]json.RawMessage) {
		o["isRemote"] = json.RawMessage("true")
		o["remoteMetadata"] = about
		o["workspacePath"] = json.RawMessage("null")
		delete(o, "workspace")
	})
}

// editObject changes members of a JSON object. What is no object stays as it is.
func editObject(raw json.RawMessage, edit func(map[string]json.RawMessage)) json.RawMessage {
	var o map[string]json.RawMessage
	if json.Unmarshal(raw, &o) != nil || o == nil {
		return raw
	}
	edit(o)
	out, err := json.Marshal(o)
	if err != nil {
		return raw
	}
	return out
}
