package openai

import (
	"cmp"
	"context"
	"iter"
	"strings"

	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/model/endpoint"
	"github.com/transom-run/transom/model/internal/wire"
)

// Config says where a server is and how it is talked to.
type Config struct {
	endpoint.Server
	// ReasoningField is the field that carries the model's earlier reasoning
	// back, such as reasoning_content. Empty: it goes back in the field in which
	// it came, and not at all where that is unknown.
	ReasoningField string
}

// Provider is a server.
type Provider struct {
	end *endpoint.Endpoint
	enc Encoding // but for the model
}

// New checks the settings. It makes no connection.
func New(cfg Config) (*Provider, error) {
	end, err := endpoint.New(cfg.Server, endpoint.Wire{
		Name: "chat completions", Path: "chat/completions",
		Hint: "what serves chat completions mostly ends in /v1.",
	})
	if err != nil {
		return nil, err
	}
	p := &Provider{end: end, enc: Encoding{ReasoningField: cfg.ReasoningField, MaxTokens: cfg.MaxOutput, MaxTokensField: "max_tokens"}}
	// OpenAI's reasoning models refuse the older name, which is the one that every
	// other server knows.
	if cfg.Azure != nil || strings.HasPrefix(end.URL(""), "https://api.openai.com/") {
		p.enc.MaxTokensField = "max_completion_tokens"
	}
	return p, nil
}

// Endpoint is the URL that is asked, without user info and query. On Azure's
// versioned route it depends on the model.
func (p *Provider) Endpoint() string { return p.end.URL("") }

// Stream makes one attempt; see [model.Provider].
func (p *Provider) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		a := attempt{p: p, req: req, yield: yield}
		enc := p.enc
		enc.Model, enc.MaxTokens = p.end.Model(req), cmp.Or(req.MaxOutput, enc.MaxTokens)
		body := AppendRequest(make([]byte, 0, wire.RequestSize(req)), req, enc)
		if err := p.end.Post(ctx, req, body, a.read); err != nil && !a.stopped {
			yield(model.Chunk{}, err)
		}
	}
}

// Models asks the server for its list of models, in its order. Where the server
// says how long a context may be, that is taken over: the fields of GitHub,
// OpenRouter, vLLM and llama.cpp are known.
func (p *Provider) Models(ctx context.Context) ([]model.Info, error) {
	return p.end.List(ctx, ParseModels)
}
