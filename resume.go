package transom

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/eventlog"
	"github.com/transom-run/transom/internal/session"
	"github.com/transom-run/transom/internal/turn"
)

// ResumeSession attaches to a session: one that is loaded in this process, or one
// that is stored. NotFound where there is none; Conflict where another process is
// at work on it.
func (r *Runtime) ResumeSession(ctx context.Context, id string, cfg ResumeConfig) (*Session, error) {
	const op = "session.resume"
	h, err := newHandle(r, cfg.Tools, cfg.OnPermission, cfg.RequestPermission, cfg.OnHook)
	if err == nil && cfg.TrackFiles {
		err = r.trackable(id)
	}
	if err != nil {
		return nil, wrap(op, id, err)
	}
	h.asked = requester{cfg.Answers, cfg.OnRequest}
	h.offers(cfg.Elicits, cfg.Commands)
	h.client.Quiet = cfg.QuietAgents
	for {
		sl, mine, err := r.find(ctx, op, id)
		if err != nil {
			return nil, err
		}
		if mine {
			err = r.reload(ctx, sl, id, h, cfg)
		} else {
			err = h.resume(ctx, sl.sess, cfg, h.events.sub)
			if errors.Is(err, eventlog.ErrMoved) {
				// Another process has written to the session since: what is loaded here is
				// of the past, and ends without a record. The log is read anew.
				sl.sess.Post(turn.Suspend{}, nil, nil)
				err = session.ErrUnloaded
			}
			if errors.Is(err, session.ErrUnloaded) {
				select {
				case <-sl.gone:
				case <-ctx.Done():
					return nil, wrap(op, id, context.Cause(ctx))
				}
				h.events, h.sess = newEvents(h.client.ID), nil // of what is gone; nobody has the handle yet
				continue
			}
		}
		if err != nil {
			return nil, wrap(op, id, err)
		}
		h.warn(cfg.Unserved)
		if cfg.brings() {
			h.warnProvider()
		}
		return h, nil
	}
}

// reload loads a stored session and resumes it. The pen is taken before the log
// is read, so that nobody writes meanwhile; the session gives it back once it has
// nothing more to do.
func (r *Runtime) reload(ctx context.Context, sl *slot, id string, h *Session, cfg ResumeConfig) error {
	hold, others, err := r.hold(id)
	if err != nil {
		r.free(id, sl, nil)
		return err
	}
	state, log, damages, err := r.read(ctx, id, hold)
	if err != nil {
		hold.Release()
		r.free(id, sl, nil)
		return err
	}
	token := ""
	if cfg.GitHubToken != nil {
		token = *cfg.GitHubToken
	}
	model := state.Model
	if cfg.Model != nil {
		model = *cfg.Model
	}
	models := r.models(id, access{cfg.Provider, cfg.Custom, token, cfg.Providers, cfg.Models, model})
	sess := r.load(id, log, hold, state, models)
	h.others = others
	if err := h.resume(ctx, sess, cfg, h.events.sub); err != nil {
		sess.Post(turn.Suspend{}, nil, nil)
		<-sess.Done()
		r.free(id, sl, nil)
		return err
	}
	r.fill(id, sl, sess)
	h.warnDamage(damages, state.Window.Gaps())
	return nil
}

// warnDamage tells what of the log could not be read, and how many calls in it have
// no result, though more follows them.
func (h *Session) warnDamage(damages []eventlog.Damage, gaps int) {
	for _, d := range damages {
		h.sess.Post(turn.Note{Payload: event.SessionWarning{WarningType: "session_log", Message: "Part of the session's log could not be read and was passed over: " + d.String()}}, nil, nil)
	}
	if gaps > 0 {
		h.sess.Post(turn.Note{Payload: event.SessionWarning{WarningType: "session_log", Message: fmt.Sprintf("The session's log does not tell the results of some tool calls (%d): the model reads that they were interrupted.", gaps)}}, nil, nil)
	}
}

// hold marks a session as loaded here, and says whether others have it too.
func (r *Runtime) hold(id string) (eventlog.Hold, bool, error) {
	hold, err := r.storage().Hold(id)
	if err != nil {
		return nil, false, err
	}
	others, err := hold.Others()
	if err != nil {
		hold.Release()
		return nil, false, err
	}
	return hold, others, nil
}

// read folds a stored log while the pen is held.
func (r *Runtime) read(ctx context.Context, id string, hold eventlog.Hold) (turn.State, eventlog.Log, []eventlog.Damage, error) {
	if err := takePen(ctx, hold); err != nil {
		return turn.State{}, nil, nil, err
	}
	log, damages, err := r.storage().Open(ctx, id)
	if err != nil {
		return turn.State{}, nil, nil, err
	}
	state, unread, err := session.Load(log)
	if err == nil && state.SessionID == "" && state.Events > 0 {
		state.SessionID, state.Mode = id, "interactive" // its first record is damaged
	}
	if err == nil && state.SessionID == "" {
		err = &Error{Op: "session.resume", Kind: KindInternal, SessionID: id, Msg: fmt.Sprintf("the log of session %s has no record that can be read: nothing of it can be taken up. Delete the session to use its id again", id)}
	}
	if err != nil {
		log.Close()
		return turn.State{}, nil, nil, err
	}
	return state, log, append(damages, unread...), nil
}

// dyingTime is how long a process that was killed may go on holding the pen while
// the system ends it.
const dyingTime = 500 * time.Millisecond

// takePen takes the pen, waiting a moment for a holder that is on its way out.
func takePen(ctx context.Context, hold eventlog.Hold) error {
	deadline := time.After(dyingTime)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		err := hold.TakePen()
		var held *eventlog.HeldError
		if !errors.As(err, &held) || held.PID == os.Getpid() {
			return err
		}
		select {
		case <-tick.C:
		case <-deadline:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
