package github

import (
	"encoding/json"
	"iter"

	"github.com/transom-run/transom/model"
)

// prices are what a model's tokens cost, in AI credits for a batch of so many.
type prices struct {
	Batch      float64 `json:"batch_size"`
	Input      float64 `json:"input_price"`
	Output     float64 `json:"output_price"`
	CacheRead  float64 `json:"cache_price"`
	CacheWrite float64 `json:"cache_write_price"`
}

// nano is how many units of cost an AI credit has.
const nano = 1e9

// cost is what a request costs, in billionths of an AI credit; 0 where nothing has
// a price.
func (p *prices) cost(u *model.Usage) int64 {
	if p == nil || p.Batch <= 0 {
		return 0
	}
	write := p.CacheWrite
	if write == 0 {
		write = p.Input
	}
	fresh := max(u.InputTokens-u.CacheReadTokens-u.CacheWriteTokens, 0)
	sum := float64(fresh)*p.Input + float64(u.CacheReadTokens)*p.CacheRead + float64(u.CacheWriteTokens)*write + float64(u.OutputTokens)*p.Output
	return int64(sum / p.Batch * nano)
}

// prices are those that the list of models, where it has been asked for, gives for
// one; nil where it gives none. Prices stand in billing.token_prices, in some
// versions of the list below default there.
func (a *Account) prices(id string) *prices {
	for i, info := range a.models.last() {
		if info.ID != id && (id != "" || i > 0) {
			continue
		}
		var m struct {
			Billing struct {
				Prices *struct {
					prices
					Default *prices `json:"default"`
				} `json:"token_prices"`
			} `json:"billing"`
		}
		if json.Unmarshal(info.Raw, &m) != nil || m.Billing.Prices == nil {
			return nil
		}
		p := m.Billing.Prices.prices
		if d := m.Billing.Prices.Default; d != nil {
			batch := p.Batch
			if p = *d; p.Batch == 0 {
				p.Batch = batch
			}
		}
		return &p
	}
	return nil
}

// priced fills in what a request costs where the answer does not say.
func (a *Account) priced(id string, answer iter.Seq2[model.Chunk, error]) iter.Seq2[model.Chunk, error] {
	p := a.prices(id)
	if p == nil {
		return answer
	}
	return func(yield func(model.Chunk, error) bool) {
		for c, err := range answer {
			if c.Usage != nil && c.Usage.NanoAIU == 0 {
				u := *c.Usage
				u.NanoAIU = p.cost(&u)
				c.Usage = &u
			}
			if !yield(c, err) {
				return
			}
		}
	}
}
