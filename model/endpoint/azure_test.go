package endpoint

import (
	"testing"

	"github.com/transom-run/transom/model"
)

func TestAddresses(t *testing.T) {
	chat := Wire{Path: "chat/completions"}
	resp := Wire{Path: "responses"}
	messages := Wire{Path: "v1/messages", Base: "v1"}
	azure := func(version string) *Azure { return &Azure{APIVersion: version} }
	tests := []struct {
		base      string
		azure     *Azure
		wire      Wire
		model     string // of the request
		wireModel string
		url, list string
	}{
		{"https://api.openai.com/v1", nil, chat, "m", "", "https://api.openai.com/v1/chat/completions", "https://api.openai.com/v1/models"},
		{"https://api.openai.com/v1/responses/", nil, resp, "m", "", "https://api.openai.com/v1/responses", "https://api.openai.com/v1/models"},
		{"http://x", nil, messages, "m", "", "http://x/v1/messages", "http://x/v1/models"},
		{"http://x/v1", nil, messages, "m", "", "http://x/v1/messages", "http://x/v1/models"},
		{"https://r.openai.azure.com", azure(""), chat, "m", "", "https://r.openai.azure.com/openai/v1/chat/completions", "https://r.openai.azure.com/openai/v1/models"},
		{"https://r.openai.azure.com/openai/v1/", azure(""), resp, "m", "", "https://r.openai.azure.com/openai/v1/responses", "https://r.openai.azure.com/openai/v1/models"},
		{"https://r.openai.azure.com", azure("2024-10-21"), chat, "m", "", "https://r.openai.azure.com/openai/deployments/m/chat/completions?api-version=2024-10-21", "https://r.openai.azure.com/openai/models?api-version=2024-10-21"},
		{"https://r.openai.azure.com/openai", azure("V"), chat, "m", "my deployment", "https://r.openai.azure.com/openai/deployments/my%20deployment/chat/completions?api-version=V", "https://r.openai.azure.com/openai/models?api-version=V"},
		{"https://r.openai.azure.com/openai/deployments/d/chat/completions?api-version=old", azure("V"), chat, "m", "", "https://r.openai.azure.com/openai/deployments/d/chat/completions?api-version=V", "https://r.openai.azure.com/openai/models?api-version=V"},
		{"https://r.openai.azure.com", azure("V"), resp, "m", "", "https://r.openai.azure.com/openai/responses?api-version=V", "https://r.openai.azure.com/openai/models?api-version=V"},
		{"https://gate.example/team/openai/v1?sub=1", azure(""), chat, "a/b", "", "https://gate.example/team/openai/v1/chat/completions?sub=1", "https://gate.example/team/openai/v1/models?sub=1"},
		{"https://r.openai.azure.com", azure("V"), chat, "a/b", "", "https://r.openai.azure.com/openai/deployments/a%2Fb/chat/completions?api-version=V", "https://r.openai.azure.com/openai/models?api-version=V"},
	}
	for _, tt := range tests {
		e, err := New(Server{BaseURL: tt.base, Azure: tt.azure, WireModel: tt.wireModel}, tt.wire)
		if err != nil {
			t.Errorf("%s: %v", tt.base, err)
			continue
		}
		if got := e.address(tt.model).url; got != tt.url || e.models != tt.list {
			t.Errorf("%s:\ngot  %s, %s\nwant %s, %s", tt.base, got, e.models, tt.url, tt.list)
		}
	}
	e, err := New(Server{BaseURL: "https://r.openai.azure.com/openai/deployments/d", Azure: azure("V")}, chat)
	if err != nil || e.Model(&model.Request{Model: "m"}) != "d" {
		t.Errorf("the deployment of the base URL is not used: %v", err)
	}
}
