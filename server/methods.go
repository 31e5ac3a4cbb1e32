package server

import (
	"context"
	"maps"
	"slices"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/internal/jsonrpc2"
	"github.com/transom-run/transom/internal/lazy"
)

// handler takes a request on the reader. It must not block, and sees to it that
// the request is answered once.
type handler func(c *conn, r *jsonrpc2.Responder)

// methods is every method that is served. How each is admitted is said by the
// function that wraps it:
//
//   - plain: on the reader, answered at once
//   - aside: on a goroutine of its own, in no order
//   - posted: handed to an attached session in the order of arrival; answered by
//     the session
//   - read: in the order of arrival, on a goroutine of its own that reads an
//     attached session
//   - filed: like read, and each begins when the one before it has ended
//   - settled: answered by the session once all that came before is done
//   - the rest hold the session's lane: see lane.go
//
// They are put together when the first of them is asked for, which a start and a
// client's connect are not kept waiting for.
var methods = lazy.Value[map[string]handler]{Make: func() map[string]handler {
	out := map[string]handler{}
	for _, family := range []func() map[string]handler{
		coreMethods, compactionMethods, workspaceMethods, metadataMethods, queueMethods, commandMethods, permissionMethods,
		providerMethods, inferenceMethods, eventLogMethods, constantMethods, scheduleMethods, storeMethods, shellMethods, userMethods, skillMethods, pluginMethods, canvasMethods, factoryMethods, extensionMethods,
		instructionMethods, sessionFsMethods, mcpMethods, mcpConfigMethods, mcpAskedMethods, mcpOAuthMethods, mcpAppsMethods, historyMethods,
		agentMethods, taskMethods,
	} {
		maps.Copy(out, family())
	}
	return out
}}

func coreMethods() map[string]handler {
	return map[string]handler{
		"connect":          connect,
		"ping":             plain(ping),
		"status.get":       plain(status),
		"auth.getStatus":   aside(authStatus),
		"models.list":      aside(listModels),
		"runtime.shutdown": shutdown,

		"session.create":   createSession,
		"session.resume":   resumeSession,
		"session.destroy":  destroySession,
		"session.detach":   detachSession,
		"session.delete":   deleteSession,
		"session.shutdown": shutdownSession,
		"session.suspend":  suspendSession,

		"session.list":          aside(listSessions),
		"session.getMetadata":   aside(getMetadata),
		"session.getLastId":     aside(getLastID),
		"session.getForeground": plain(getForeground),
		"session.setForeground": plain(setForeground),
		"session.getMessages":   read(getMessages),

		"session.send":                        sending,
		"session.abort":                       posted(abort),
		"session.history.clearContext":        posted(clearContext),
		"session.log":                         posted(logNote),
		"session.tools.handlePendingToolCall": posted(answerTool),

		"session.permissions.handlePendingPermissionRequest": posted(answerPermission),
		"session.permissions.pendingRequests":                posted(pendingPermissions),

		"session.mode.get":         posted(getMode),
		"session.mode.set":         posted(setMode),
		"session.model.getCurrent": posted(currentModel),
		"session.model.switchTo":   posted(switchModel),
		"session.name.get":         posted(getName),
		"session.name.set":         posted(setName),
		"session.name.setAuto":     posted(setAutoName),
		"session.options.update":   posted(updateOptions),

		"session.remote.enable":                 posted(enableRemote),
		"session.remote.disable":                posted(disableRemote),
		"session.remote.notifySteerableChanged": posted(notifySteerable),

		"sessions.connect": connectRemote,
		"sessions.open":    openSession,

		"sessions.getRemoteControlStatus":   plain(controlState),
		"sessions.setRemoteControlSteering": plain(steerControl),
		"sessions.stopRemoteControl":        plain(stopControl),
		"sessions.transferRemoteControl":    plain(transferControl),
		"sessions.startRemoteControl":       aside(startControl),
	}
}

// plain is a method that touches no session and is answered at once.
func plain[P any](f func(c *conn, p *P) (any, error)) handler {
	return func(c *conn, r *jsonrpc2.Responder) {
		p := new(P)
		if err := decode(r.Request(), p); err != nil {
			r.Reply(nil, err)
			return
		}
		result, err := f(c, p)
		r.Reply(result, fail(r.Request().Method, err))
	}
}

// aside is a method that may take its time and needs no order.
func aside[P any](f func(ctx context.Context, c *conn, p *P) (any, error)) handler {
	return func(c *conn, r *jsonrpc2.Responder) {
		p := new(P)
		if err := decode(r.Request(), p); err != nil {
			r.Reply(nil, err)
			return
		}
		r.Go(func(ctx context.Context) (any, error) {
			result, err := f(ctx, c, p)
			return result, fail(r.Request().Method, err)
		})
	}
}

// inLane decodes params that name a session and calls f in its lane.
func inLane[P any, T aimed[P]](c *conn, r *jsonrpc2.Responder, f func(l *lane, p *P) (held bool)) {
	if p, ok := aim[P, T](r); ok {
		c.enter(T(p).id(), func(l *lane) bool { return f(l, p) })
	}
}

// attached decodes params that name a session and calls f, in its lane, where the
// client is attached to it.
func attached[P any, T aimed[P]](c *conn, r *jsonrpc2.Responder, f func(l *lane, a *attachment, p *P)) {
	p, ok := aim[P, T](r)
	if !ok {
		return
	}
	c.pass(T(p).id(), func(l *lane) {
		if a := l.attached(); a != nil {
			f(l, a, p)
			return
		}
		r.Reply(nil, notFound(r.Request().Method, l.id))
	})
}

// aim decodes params that name a session; false where they do not, and the request
// is answered.
func aim[P any, T aimed[P]](r *jsonrpc2.Responder) (*P, bool) {
	p := new(P)
	name := r.Request().Method
	if err := decode(r.Request(), T(p)); err != nil {
		r.Reply(nil, err)
		return nil, false
	}
	if T(p).id() == "" {
		r.Reply(nil, invalid(name, "Missing sessionId in "+name+" request"))
		return nil, false
	}
	return p, true
}

// call is a request for an attached session.
type call struct {
	*jsonrpc2.Responder
	c    *conn
	lane *lane
	att  *attachment
	sess *transom.Session
}

// op is the method's name.
func (q *call) op() string { return q.Request().Method }

// answer replies with what a command's done callback was given; result turns a
// command's result into the method's.
func (q *call) answer(result func(v any) any) func(any, error) {
	return func(v any, err error) {
		if err != nil {
			q.Reply(nil, fail(q.op(), err))
			return
		}
		q.Reply(result(v), nil)
	}
}

// posted is a method that hands an attached session something, in order.
func posted[P any, T aimed[P]](f func(q *call, p *P)) handler {
	return func(c *conn, r *jsonrpc2.Responder) {
		attached[P, T](c, r, func(l *lane, a *attachment, p *P) { f(&call{r, c, l, a, a.sess}, p) })
	}
}

// read is a method that reads an attached session on a goroutine of its own.
func read[P any, T aimed[P]](f func(ctx context.Context, s *transom.Session, p *P) (any, error)) handler {
	return func(c *conn, r *jsonrpc2.Responder) {
		attached[P, T](c, r, func(_ *lane, a *attachment, p *P) {
			a.reads.Add(1)
			r.Go(func(ctx context.Context) (any, error) {
				defer a.reads.Done()
				result, err := f(ctx, a.sess, p)
				return result, fail(r.Request().Method, err)
			})
		})
	}
}

// filed is a method that works on the files of an attached session: one after the
// other, in the order of arrival.
func filed[P any, T aimed[P]](f func(ctx context.Context, s *transom.Session, p *P) (any, error)) handler {
	return func(c *conn, r *jsonrpc2.Responder) {
		attached[P, T](c, r, func(_ *lane, a *attachment, p *P) {
			a.reads.Add(1)
			before, done := a.filing, make(chan struct{})
			a.filing = done
			r.Go(func(ctx context.Context) (any, error) {
				defer a.reads.Done()
				defer close(done)
				if before != nil {
					<-before
				}
				result, err := f(ctx, a.sess, p)
				return result, fail(r.Request().Method, err)
			})
		})
	}
}

// settled is a method that answers from a session's state, once all that came
// before it is done.
func settled[P any, T aimed[P]](f func(s *transom.Session, p *P) (any, error)) handler {
	return posted[P, T](func(q *call, p *P) {
		q.sess.Post(transom.Configure{}, func(_ any, err error) {
			if err != nil {
				q.Reply(nil, fail(q.op(), err))
				return
			}
			result, err := f(q.sess, p)
			q.Reply(result, fail(q.op(), err))
		})
	})
}

// Methods returns the names of the methods that are served, sorted.
func Methods() []string { return slices.Sorted(maps.Keys(methods.Get())) }

// Refused returns the methods of the protocol that are known and not served, by
// name, each with the reason that its callers read.
func Refused() map[string]string {
	out := make(map[string]string, len(refusals))
	for _, r := range refusals {
		out[r.method] = r.reason
	}
	return out
}
