package catalog

import (
	"strings"
	"testing"

	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/model/modeltest"
)

// TestRequestSettings: a request's bound, citations and summaries reach the wires
// that have them, and no other.
func TestRequestSettings(t *testing.T) {
	srv := modeltest.NewServer(t, script)
	const bound, cited, summed = "77", `"citations":{"enabled":true}`, `summar`
	for name, tt := range map[string]struct {
		p    Provider
		has  []string
		none []string
	}{
		"completions": {Provider{}, []string{`"max_tokens":` + bound}, []string{"citations", summed}},
		"responses":   {Provider{WireAPI: "responses"}, []string{`"max_output_tokens":` + bound, `"summary":"detailed"`}, []string{"citations"}},
		"messages":    {Provider{Type: "anthropic", WireModel: "claude-opus-4-6"}, []string{`"max_tokens":` + bound, cited, `"display":"summarized"`}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			tt.p.BaseURL, tt.p.APIKey, tt.p.MaxOutputTokens = srv.URL, "key", 900
			c, err := Resolve(Config{Provider: &tt.p, Model: "first", Getenv: env()})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := model.Collect(c.Provider.Stream(t.Context(), &model.Request{
				Model: "first", MaxOutput: 77, Citations: true, ReasoningEffort: "high", ReasoningSummary: "detailed",
				Messages: []model.Message{{Role: model.User, Text: "x", Documents: []model.Document{{Title: "p", MIMEType: "application/pdf", Data: "UERG"}}}},
			})); err != nil {
				t.Log(err) // the script may not know the model's name: what was asked counts
			}
			reqs := srv.Requests()
			body := string(reqs[len(reqs)-1].Body)
			for _, want := range tt.has {
				if !strings.Contains(body, want) {
					t.Errorf("no %s in %s", want, body)
				}
			}
			for _, not := range tt.none {
				if strings.Contains(body, not) {
					t.Errorf("%s in %s", not, body)
				}
			}
		})
	}
}
