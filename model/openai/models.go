package openai

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"time"

	"github.com/transom-run/transom/model"
)

// listTimeout bounds the request for the list of models.
const listTimeout = 30 * time.Second

// Models asks the server for its list of models, in its order. Where the server
// says how long a context may be, that is taken over: the fields of GitHub,
// OpenRouter, vLLM and llama.cpp are known.
func (p *Provider) Models(parent context.Context) ([]model.Info, error) {
	ctx, cancel := context.WithTimeoutCause(parent, listTimeout, errHeaderTimeout)
	defer cancel()
	hr, err := http.NewRequestWithContext(ctx, http.MethodGet, p.models, nil)
	if err != nil {
		return nil, p.transportError(parent, ctx, err)
	}
	p.setHeaders(hr.Header, nil)
	hr.Header.Set("Accept", "application/json")
	resp, err := p.client.Do(hr)
	if err != nil {
		return nil, p.transportError(parent, ctx, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return nil, p.statusError(resp, resp.Body)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, p.cfg.MaxResponse))
	if err != nil {
		return nil, p.transportError(parent, ctx, err)
	}
	infos, err := parseModels(data)
	if err != nil {
		return nil, p.notJSON(data)
	}
	return infos, nil
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
			ID            string `json:"id"`
			Name          string `json:"name"`
			ContextLength int    `json:"context_length"` // OpenRouter
			MaxModelLen   int    `json:"max_model_len"`  // vLLM
			Meta          struct {
				Context int `json:"n_ctx_train"` // llama.cpp
			} `json:"meta"`
			Capabilities struct {
				Supports struct {
					Vision bool `json:"vision"`
				} `json:"supports"`
				Limits struct {
					Context int `json:"max_context_window_tokens"`
					Output  int `json:"max_output_tokens"`
				} `json:"limits"`
			} `json:"capabilities"`
		}
		// One odd entry does not hide the others.
		if json.Unmarshal(raw, &m) != nil || m.ID == "" {
			continue
		}
		info := model.Info{ID: m.ID, Name: m.Name, Vision: m.Capabilities.Supports.Vision,
			MaxOutput: m.Capabilities.Limits.Output, Raw: raw}
		if info.Name == "" {
			info.Name = m.ID
		}
		for _, n := range []int{m.Capabilities.Limits.Context, m.ContextLength, m.MaxModelLen, m.Meta.Context} {
			if n > 0 {
				info.ContextWindow = n
				break
			}
		}
		infos = append(infos, info)
	}
	return infos, nil
}
