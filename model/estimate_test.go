package model

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEstimateOfTexts holds what docs/models.md says of the estimates. The counts
// are those of js-tiktoken 1.0.21, taken once, of texts that the weights were not fitted to.
func TestEstimateOfTexts(t *testing.T) {
	const dir = "testdata/estimate"
	raw, err := os.ReadFile(filepath.Join(dir, "counts.json"))
	if err != nil {
		t.Fatal(err)
	}
	var counts map[string]struct{ O200k, CL100k int }
	if err := json.Unmarshal(raw, &counts); err != nil {
		t.Fatal(err)
	}
	within := map[string]float64{"doc": 0.05, "code": 0.05, "json": 0.20, "natural": 0.10, "noise": 0.25}
	for name, n := range counts {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		kind, _, _ := strings.Cut(name, "_")
		got := float64(EstimateText(string(text)))
		off, older := got/float64(n.O200k)-1, got/float64(n.CL100k)-1
		t.Logf("%-20s %6.0f tokens: %+3.0f %% of o200k_base, %+3.0f %% of cl100k_base", name, got, 100*off, 100*older)
		if band := within[kind]; band == 0 || off > band || off < -band {
			t.Errorf("%s: off by %.0f %%, the documented bound for %s is %.0f %%", name, 100*off, kind, 100*band)
		}
		// Compaction errs on the safe side: a window that is full by the vocabulary is
		// at least 80 % full by the estimate, where a summary begins by default; with
		// older vocabularies code and JSON are too, and all else once a provider's own
		// figure has corrected the estimate, by up to 4 times.
		if got < 0.8*float64(n.O200k) {
			t.Errorf("%s: a full window would be taken for one that is %.0f %% full", name, 100*(1+off))
		}
		if plain := kind == "code" || kind == "json" || kind == "doc"; plain && got < 0.8*float64(n.CL100k) || 4*got < float64(n.CL100k) {
			t.Errorf("%s: with cl100k_base a full window would be taken for one that is %.0f %% full", name, 100*(1+older))
		}
	}
}
