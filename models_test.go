package transom

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/transom-run/transom/eventlog/memlog"
	"github.com/transom-run/transom/model"
)

// The window has the size of the model that is asked, also after changes to and
// fro; the same size is told once.
func TestWindowOfTheModelAsked(t *testing.T) {
	rt, err := Open(Config{Store: memlog.New(), Getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close(context.Background())
	m := rt.models("s", access{model: "a/small",
		providers: []NamedProvider{{Name: "a", ProviderConfig: ProviderConfig{BaseURL: "http://a.invalid", ContextWindow: 9000}}},
		entries:   []ModelConfig{{ID: "small", Provider: "a", PromptTokens: 1000}, {ID: "large", Provider: "a", ContextTokens: 500_000}, {ID: "plain", Provider: "a"}},
	})
	if got := m.window(); got != 1000 {
		t.Errorf("the window begins with %d tokens", got)
	}
	var sizes []int
	m.sized = func(n int) { sizes = append(sizes, n) }
	for _, id := range []string{"a/small", "a/large", "a/large", "a/plain", "", "a/small"} {
		if _, err := m.provider(context.Background(), &model.Request{Model: id}); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]int{500_000, 9000, 1000}, sizes); diff != "" {
		t.Errorf("sizes (-want +got)\n%s", diff)
	}
}
