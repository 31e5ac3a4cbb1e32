package anthropic

import (
	"cmp"
	"context"
	"encoding/json"
	"iter"

	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/model/endpoint"
	"github.com/transom-run/transom/model/internal/wire"
)

// Version is the version of the wire that requests name.
const Version = "2023-06-01"

// Config says where a server is and how it is talked to. A key is sent as
// x-api-key, a bearer token as Authorization. The base URL may end in /v1.
type Config struct {
	endpoint.Server
	// NoCache leaves the marks out that ask the server to cache the prompt.
	NoCache bool
}

// Provider is a server.
type Provider struct {
	end     *endpoint.Endpoint
	noCache bool
}

// New checks the settings. It makes no connection.
func New(cfg Config) (*Provider, error) {
	end, err := endpoint.New(cfg.Server, endpoint.Wire{
		Name: "messages", Path: "v1/messages", Base: "v1", KeyHeader: "x-api-key",
		Header: map[string]string{"anthropic-version": Version},
		Hint:   "it is what stands before /v1/messages.",
	})
	if err != nil {
		return nil, err
	}
	return &Provider{end: end, noCache: cfg.NoCache}, nil
}

// Endpoint is the URL that is asked, without user info and query.
func (p *Provider) Endpoint() string { return p.end.URL("") }

// Stream makes one attempt; see [model.Provider].
func (p *Provider) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		enc := Encoding{Model: p.end.Model(req), MaxTokens: cmp.Or(req.MaxOutput, p.end.Settings().MaxOutput), Cache: !p.noCache}
		a := attempt{p: p, req: req, yield: yield}
		body := AppendRequest(make([]byte, 0, wire.RequestSize(req)), req, enc)
		if err := p.end.Post(ctx, req, body, a.read); err != nil && !a.stopped {
			yield(model.Chunk{}, err)
		}
	}
}

// Models asks the server for its list of models, in its order.
func (p *Provider) Models(ctx context.Context) ([]model.Info, error) {
	return p.end.List(ctx, parseModels)
}

func parseModels(data []byte) ([]model.Info, error) {
	var list struct {
		Data []json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, err
	}
	infos := make([]model.Info, 0, len(list.Data))
	for _, raw := range list.Data {
		var m struct {
			ID           string `json:"id"`
			DisplayName  string `json:"display_name"`
			MaxInput     int    `json:"max_input_tokens"`
			MaxTokens    int    `json:"max_tokens"`
			Capabilities struct {
				Image struct {
					Supported bool `json:"supported"`
				} `json:"image_input"`
			} `json:"capabilities"`
		}
		// One odd entry does not hide the others.
		if json.Unmarshal(raw, &m) != nil || m.ID == "" {
			continue
		}
		info := model.Info{ID: m.ID, Name: m.DisplayName, ContextWindow: m.MaxInput, MaxOutput: m.MaxTokens,
			Vision: m.Capabilities.Image.Supported, Raw: raw}
		if info.Name == "" {
			info.Name = m.ID
		}
		infos = append(infos, info)
	}
	return infos, nil
}
