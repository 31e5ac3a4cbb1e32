package openai

import (
	"encoding/json"

	"github.com/transom-run/transom/model"
)

// ParseModels reads a list of models as servers of OpenAI's wires send it.
func ParseModels(data []byte) ([]model.Info, error) {
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
			Billing struct {
				Prices struct {
					tier
					Default tier `json:"default"`
					Long    tier `json:"long_context"`
				} `json:"token_prices"`
			} `json:"billing"`
			Capabilities struct {
				Tokenizer string `json:"tokenizer"`
				Supports  struct {
					Vision bool `json:"vision"`
				} `json:"supports"`
				Limits struct {
					Prompt  int `json:"max_prompt_tokens"`
					Context int `json:"max_context_window_tokens"`
					Output  int `json:"max_output_tokens"`
					Vision  struct {
						Types []string `json:"supported_media_types"`
						Count int      `json:"max_prompt_images"`
						Bytes int      `json:"max_prompt_image_size"`
					} `json:"vision"`
				} `json:"limits"`
			} `json:"capabilities"`
		}
		// One odd entry does not hide the others.
		if json.Unmarshal(raw, &m) != nil || m.ID == "" {
			continue
		}
		info := model.Info{ID: m.ID, Name: m.Name, Vision: m.Capabilities.Supports.Vision,
			Images: model.ImageLimits(m.Capabilities.Limits.Vision), Tokenizer: m.Capabilities.Tokenizer, MaxOutput: m.Capabilities.Limits.Output, Raw: raw}
		if info.Name == "" {
			info.Name = m.ID
		}
		prices := &m.Billing.Prices
		for name, n := range map[string]int{"default": max(prices.size(), prices.Default.size()), model.LongContext: prices.Long.size()} {
			if n > 0 && prices.Long.size() > 0 {
				if info.Tiers == nil {
					info.Tiers = make(map[string]int)
				}
				info.Tiers[name] = n
			}
		}
		for _, n := range []int{m.Capabilities.Limits.Prompt, m.Capabilities.Limits.Context, m.ContextLength, m.MaxModelLen, m.Meta.Context} {
			if n > 0 {
				info.ContextWindow = n
				break
			}
		}
		infos = append(infos, info)
	}
	return infos, nil
}

// tier is what GitHub's list says of the size of a context tier, beside its prices.
type tier struct {
	Prompt int `json:"max_prompt_tokens"`
	Max    int `json:"context_max"` // as older lists name it
}

func (t *tier) size() int { return max(t.Prompt, t.Max) }
