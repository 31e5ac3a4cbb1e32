package session

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/transom-run/transom/internal/policy"
	"github.com/transom-run/transom/internal/turn"
	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/tool"
)

// start begins an effect. It ends with the context that is current now, and
// posts its outcome; the fence in the outcome says whether it still counts.
func (s *Session) start(e turn.Effect) {
	ctx := s.scope(e)
	switch e := e.(type) {
	case *turn.StartModel:
		s.running.Go(func() { s.askModel(ctx, e) })
	case *turn.StartTool:
		s.running.Go(func() {
			out := tool.Run(ctx, e.Tool, e.Call, s.cfg.Redact)
			s.box.post(item{body: turn.ToolDone{Fence: e.Fence, Outcome: out}})
		})
	case *turn.PreparePermission:
		s.running.Go(func() {
			p, err := preparePermission(ctx, e)
			s.box.post(item{body: turn.PermissionPrepared{Fence: e.Fence, Permission: p, Forced: e.Forced, Free: e.Free, Err: err}})
		})
	case *turn.StartTimer:
		s.running.Go(func() { s.wait(ctx, e) })
	case *turn.StartCompaction:
		cctx := ctx
		if e.Agent == "" {
			cctx, s.stopCompaction = context.WithCancel(context.Background())
		}
		s.running.Go(func() { s.summarise(cctx, e) })
	case *turn.StartCount:
		s.running.Go(func() { s.count(ctx, e) })
	case *turn.FindPast:
		s.running.Go(func() { s.box.post(item{body: s.findPast(e)}) })
	case *turn.ForgetCheckpoints:
		s.running.Go(func() { s.forgetCheckpoints(e.Above) })
	case *turn.RestoreFiles:
		s.running.Go(func() { s.box.post(item{body: s.restoreFiles(e)}) })
	case *turn.CallHook:
		s.running.Go(func() { s.callHook(ctx, e) })
	case *turn.RunCommand:
		s.running.Go(func() {
			stop := s.cfg.Command != nil && s.cfg.Command(ctx, e.Text)
			s.box.post(item{body: turn.CommandDone{ID: e.ID, Stop: stop}})
		})
	case *turn.AskPermission:
		s.ask(ctx, e)
	}
}

// preparePermission finds out what has to be asked. A tool that panics over it is
// not run.
func preparePermission(ctx context.Context, e *turn.PreparePermission) (p tool.Permission, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the tool %s could not say what it would do: %v", e.Tool.Name, v)
		}
	}()
	return e.Tool.Permission(ctx, e.Call)
}

// ask puts a question to the newest client in this process that answers.
func (s *Session) ask(ctx context.Context, e *turn.AskPermission) {
	for i := len(s.state.Live.Clients) - 1; i >= 0; i-- {
		v, ok := s.askers.Load(s.state.Live.Clients[i].ID)
		if !ok {
			continue
		}
		q := Question{RequestID: e.RequestID, Request: e.Request, Tool: e.Tool, CallID: e.Call, Arguments: e.Arguments}
		s.running.Go(func() {
			select {
			case d := <-answer(ctx, v.(Asker), q):
				s.box.post(item{body: turn.PermissionAnswer{RequestID: e.RequestID, Decision: d}})
			case <-ctx.Done(): // nobody waits for the answer
			}
		})
		return
	}
}

// answer asks, in a goroutine that outlives the question only where the handler
// ignores its context. A handler that does not return has not approved anything.
func answer(ctx context.Context, a Asker, q Question) <-chan policy.Decision {
	answered := make(chan policy.Decision, 1)
	go func() {
		d := policy.NotAvailable()
		defer func() {
			if recover() != nil {
				d = policy.NotAvailable()
			}
			answered <- d
		}()
		d = a(ctx, q)
	}()
	return answered
}

// askModel makes a model call, with further attempts where that may help.
func (s *Session) askModel(ctx context.Context, e *turn.StartModel) {
	req := e.Request
	provider, err := s.allowed(ctx, &req)
	if err != nil {
		if ctx.Err() == nil {
			s.box.post(item{body: turn.ModelFailed{Fence: e.Fence, Err: s.modelError(err)}})
		}
		return
	}
	var waited time.Duration
	switched := false
	for attempt := 1; ; attempt++ {
		begun := time.Now()
		response, err := s.attempt(ctx, provider, &req, e.Fence)
		took := time.Since(begun)
		if err == nil {
			s.box.post(item{body: turn.ModelDone{Fence: e.Fence, Response: *response, Took: took}})
			return
		}
		if ctx.Err() != nil {
			return // aborted: nobody waits for the outcome
		}
		failure := s.modelError(err)
		wait, again := s.cfg.Retry.Next(attempt, failure, rand.Float64())
		if next := s.another(ctx, e.Request.Model, failure, !again, switched); next != "" {
			other := e.Request
			other.Model = next
			if p, err := s.resolve(ctx, &other); err == nil {
				s.box.post(item{body: turn.ModelRetry{Fence: e.Fence, Err: failure, Took: took}})
				provider, req, switched, attempt = p, other, true, 0
				continue
			}
		}
		if ctx.Err() != nil {
			return
		}
		if !again {
			failure = s.cfg.Retry.Final(attempt, waited, failure)
			s.box.post(item{body: turn.ModelFailed{Fence: e.Fence, Err: failure, Took: took}})
			return
		}
		waited += wait
		s.box.post(item{body: turn.ModelRetry{Fence: e.Fence, Err: failure, Took: took, Wait: wait}})
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

// allowed resolves the provider of a model call of a loop, if it may be made.
func (s *Session) allowed(ctx context.Context, req *model.Request) (model.Provider, error) {
	if s.cfg.Allow != nil {
		if err := s.cfg.Allow(ctx); err != nil {
			return nil, err
		}
	}
	return s.resolve(ctx, req)
}

// another names the model to ask instead of one that limits the rate of requests:
// once for a model call.
func (s *Session) another(ctx context.Context, limited string, err *model.Error, last, switched bool) string {
	if err.Kind != model.RateLimit || switched || s.cfg.Another == nil {
		return ""
	}
	return s.cfg.Another(ctx, limited, err, last)
}

// summarise asks the model for a summary of the window.
func (s *Session) summarise(ctx context.Context, e *turn.StartCompaction) {
	begun := time.Now()
	in := turn.CompactionDone{Agent: e.Agent, ID: e.ID}
	req := e.Request
	provider, err := s.resolve(ctx, &req)
	for attempt := 1; err == nil; attempt++ {
		var r *model.Response
		r, err = s.attempt(ctx, provider, &req, turn.Fence{})
		if err == nil {
			in.Response = *r
			break
		}
		wait, again := s.cfg.Retry.Next(attempt, s.modelError(err), rand.Float64())
		if !again || attempt >= summaryAttempts || ctx.Err() != nil {
			break
		}
		err = nil
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
	if ctx.Err() != nil {
		return // nobody waits for it
	}
	if err != nil {
		in.Err = s.modelError(err)
	}
	in.Took = time.Since(begun)
	s.box.post(item{body: in})
}

// count counts a model call with the vocabulary of its model.
func (s *Session) count(ctx context.Context, e *turn.StartCount) {
	in := turn.Counted{Agent: e.Agent, ID: e.ID}
	if s.cfg.Encoding != nil {
		in.Encoding = s.cfg.Encoding(ctx, e.Model)
	}
	var err error
	if in.Size, err = s.counter.Count(ctx, in.Encoding, e.System, e.Messages, e.Tools); err != nil {
		return // aborted: nobody waits for it
	}
	s.box.post(item{body: in})
}

// summaryAttempts bounds the attempts at one summary: the next turn that needs one
// asks again.
const summaryAttempts = 2

func (s *Session) resolve(ctx context.Context, req *model.Request) (p model.Provider, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = crashed(v)
		}
	}()
	if s.cfg.Model == nil {
		return nil, &model.Error{Kind: model.Setup, Msg: "no model is configured for this session"}
	}
	return s.cfg.Model(ctx, req)
}

// attempt makes one request and passes its pieces on as they come.
func (s *Session) attempt(ctx context.Context, p model.Provider, req *model.Request, f turn.Fence) (r *model.Response, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = crashed(v)
		}
	}()
	var acc model.Accumulator
	for chunk, err := range p.Stream(ctx, req) {
		if err != nil {
			return r, err
		}
		acc.Add(chunk)
		if req.Stream && (chunk.Text != "" || chunk.Reasoning != "" || chunk.Call != nil) {
			s.box.post(item{body: turn.ModelChunk{Fence: f, Chunk: chunk}})
		}
	}
	if err := context.Cause(ctx); err != nil {
		return r, err
	}
	return acc.Response(), nil
}

// crashed is the failure of a provider that panicked.
func crashed(v any) *model.Error {
	return &model.Error{Kind: model.Query, Msg: fmt.Sprintf("the model provider failed inside Transom: %v", v)}
}

// modelError is an error as it may be written down: secrets that the runtime was
// given are taken out, whoever repeated them.
func (s *Session) modelError(err error) *model.Error {
	var e *model.Error
	if !errors.As(err, &e) {
		e = &model.Error{Kind: model.Query, Msg: "the model request failed: " + err.Error(), Err: err}
	}
	if s.cfg.Redact == nil {
		return e
	}
	out := *e
	out.Msg, out.Code = s.cfg.Redact(e.Error()), s.cfg.Redact(e.Code)
	return &out
}
