package responses

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"strings"
	"sync/atomic"

	"github.com/transom-run/transom/internal/lazy"
	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/model/endpoint"
	"github.com/transom-run/transom/model/internal/wire"
	"github.com/transom-run/transom/model/openai"
)

// Config says where a server is and how it is talked to.
type Config struct {
	endpoint.Server
	// Reasoning says whether the model's reasoning is asked for in encrypted form,
	// to be sent back: models that do not reason refuse the question. nil: yes for
	// requests with an effort, and for models that reason by their names.
	Reasoning *bool
	// Sockets says whether requests go over WebSockets.
	Sockets Sockets
}

// Sockets says whether requests go over WebSockets, each over one of its own: a
// server keeps what it needs to go on with a conversation for as long as one is
// open, and a conversation that was cleared is not to be kept.
type Sockets int

// The choices. [model.Request].NoSockets goes before them.
const (
	NoSockets  Sockets = iota
	OnlySocket         // a server that opens none is an error
	TrySocket          // a server that opens none is asked over HTTP, from then on
)

// Provider is a server.
type Provider struct {
	end       *endpoint.Endpoint
	reasoning *bool
	sockets   Sockets
	refused   atomic.Bool // TrySocket: the server opened none
}

// New checks the settings. It makes no connection.
func New(cfg Config) (*Provider, error) {
	end, err := endpoint.New(cfg.Server, endpoint.Wire{
		Name: "responses", Path: "responses",
		Hint: "what serves responses mostly ends in /v1.",
	})
	if err != nil {
		return nil, err
	}
	return &Provider{end: end, reasoning: cfg.Reasoning, sockets: cfg.Sockets}, nil
}

// Endpoint is the URL that is asked, without user info and query.
func (p *Provider) Endpoint() string { return p.end.URL("") }

// Stream makes one attempt; see [model.Provider].
func (p *Provider) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		enc := Encoding{Model: p.end.Model(req), MaxTokens: cmp.Or(req.MaxOutput, p.end.Settings().MaxOutput)}
		if p.reasoning != nil {
			enc.Encrypted = *p.reasoning
		} else {
			enc.Encrypted = req.ReasoningEffort != "" || reasons(enc.Model) || reasons(req.Model)
		}
		a := attempt{p: p, req: req, yield: yield}
		if err := p.exchange(ctx, &a, enc); err != nil && !a.stopped {
			yield(model.Chunk{}, err)
		}
	}
}

// exchange makes the request by the transport that is due.
func (p *Provider) exchange(ctx context.Context, a *attempt, enc Encoding) error {
	if p.sockets != NoSockets && !a.req.NoSockets && !p.refused.Load() {
		enc.Message = true
		message := AppendRequest(make([]byte, 0, wire.RequestSize(a.req)), a.req, enc)
		opened, err := p.end.Converse(ctx, a.req, message, a.read)
		var me *model.Error
		if opened || p.sockets == OnlySocket || !errors.As(err, &me) || me.Kind != model.Query || ctx.Err() != nil {
			return err
		}
		p.refused.Store(me.Code == endpoint.CodeNoSocket)
		enc.Message = false
	}
	body := AppendRequest(make([]byte, 0, wire.RequestSize(a.req)), a.req, enc)
	return p.end.Post(ctx, a.req, body, a.read)
}

// Models asks the server for its list of models, in its order.
func (p *Provider) Models(ctx context.Context) ([]model.Info, error) {
	return p.end.List(ctx, openai.ParseModels)
}

// reasoners are OpenAI's reasoning models by their names.
var reasoners = lazy.Regexp{Expr: `^(?:o[1-9]|gpt-(?:[5-9]|[1-9][0-9])|codex|computer-use)`}

func reasons(name string) bool {
	name = name[strings.LastIndexByte(name, '/')+1:]
	return reasoners.Get().MatchString(name) && !strings.Contains(name, "-chat")
}
