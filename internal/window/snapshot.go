package window

import (
	"encoding/json"

	"github.com/transom-run/transom/model"
)

// snapshot is a window as a checkpoint keeps it.
type snapshot struct {
	Settled []model.Message  `json:",omitempty"`
	Tokens  int              `json:",omitempty"`
	Batch   *model.Message   `json:",omitempty"`
	Results []*model.Message `json:",omitempty"`
	Later   []model.Message  `json:",omitempty"`
	Seed    *Seed            `json:",omitempty"`
	Prompts []string         `json:",omitempty"`
	Mark    int              `json:",omitempty"`
	Marked  int              `json:",omitempty"`
}

// MarshalJSON encodes the window for a checkpoint.
func (w Window) MarshalJSON() ([]byte, error) {
	return json.Marshal(snapshot{w.settled, w.tokens, w.batch, w.results, w.later, w.seed, w.prompts, w.mark, w.marked})
}

// UnmarshalJSON decodes what MarshalJSON encoded.
func (w *Window) UnmarshalJSON(data []byte) error {
	var s snapshot
	if err := json.Unmarshal(data, &s); err != nil {
		return err
	}
	*w = Window{settled: s.Settled, tokens: s.Tokens, batch: s.Batch, results: s.Results, later: s.Later, seed: s.Seed, prompts: s.Prompts, mark: s.Mark, marked: s.Marked}
	return nil
}
