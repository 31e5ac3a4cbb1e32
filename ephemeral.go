package transom

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/internal/session"
	"github.com/transom-run/transom/model"
)

// Ask puts a question to the model, with the conversation as it stands and no
// tools. Neither the question nor the answer becomes part of the conversation or
// of the log; clients see the answer as it comes, as ui.ephemeral_query events.
func (h *Session) Ask(ctx context.Context, question string) (string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		select {
		case <-h.sess.Done():
			cancel()
		case <-ended:
		}
	}()
	e := event.EphemeralQuery{RequestID: session.NewID(), Phase: "started"}
	h.sess.tell(e)
	answer, err := h.query(ctx, model.ForUser, question, func(text string) {
		h.sess.tell(event.EphemeralQuery{RequestID: e.RequestID, Phase: "chunk", Chunk: text})
	})
	switch {
	case err == nil:
		e.Phase, e.Answer = "completed", answer
	case ctx.Err() != nil:
		e.Phase = "aborted"
	default:
		e.Phase, e.Error = "failed", h.rt.keys.redact(err.Error())
	}
	h.sess.tell(e)
	return answer, wrap("session.ui.ephemeralQuery", h.id, err)
}

// query makes the model call. Pieces that were shown stay: an attempt that failed
// after its first piece is the last.
func (h *Session) query(ctx context.Context, kind model.Interaction, question string, show func(string)) (string, error) {
	v := h.sess.View()
	req := model.Request{
		Model: v.Model, ReasoningEffort: v.Effort, Stream: true, SessionID: v.SessionID, InteractionID: session.NewID(), Initiator: "user", Interaction: kind,
		Messages: append(slices.Clip(v.Window.Messages(v.Live.Settings.System)), model.Message{Role: model.User, Text: question}),
	}
	p, err := h.sess.models.provider(ctx, &req)
	if err == nil {
		err = h.sess.show(ctx, &req)
	}
	if err != nil {
		return "", err
	}
	var waited time.Duration
	for attempt := 1; ; attempt++ {
		text, shown, err := once(ctx, p, &req, show)
		if err == nil && text == "" {
			err = &model.Error{Kind: model.Query, Msg: "the model gave no answer: ask again"}
		}
		if err == nil || ctx.Err() != nil {
			return text, err
		}
		var failure *model.Error
		if !errors.As(err, &failure) {
			failure = &model.Error{Kind: model.Query, Msg: err.Error(), Err: err}
		}
		wait, again := h.rt.cfg.Retry.Next(attempt, failure, rand.Float64())
		if !again || shown {
			return "", h.rt.cfg.Retry.Final(attempt, waited, failure)
		}
		waited += wait
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

func once(ctx context.Context, p model.Provider, req *model.Request, show func(string)) (text string, shown bool, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the model provider failed inside Transom: %v", v)
		}
	}()
	var acc model.Accumulator
	for chunk, err := range p.Stream(ctx, req) {
		if err != nil {
			return "", shown, err
		}
		acc.Add(chunk)
		if chunk.Text != "" {
			show(chunk.Text)
			shown = true
		}
	}
	if err := context.Cause(ctx); err != nil {
		return "", shown, err
	}
	return acc.Response().Message.Text, shown, nil
}
