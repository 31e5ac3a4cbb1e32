package wire

import "encoding/json"

// Charge reads what an account's model API charges for a request, from its
// copilot_usage: billionths of an AI credit; 0 where it does not say.
func Charge(raw []byte) int64 {
	var u struct {
		Total float64 `json:"total_nano_aiu"`
	}
	if len(raw) == 0 || json.Unmarshal(raw, &u) != nil || !(u.Total > 0 && u.Total < 1<<62) {
		return 0
	}
	return int64(u.Total)
}
