package modeltest

import (
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/model/anthropic"
	"github.com/transom-run/transom/model/endpoint"
	"github.com/transom-run/transom/model/modelfile"
	"github.com/transom-run/transom/model/openai"
	"github.com/transom-run/transom/model/responses"
	"github.com/transom-run/transom/model/scripted"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestScripted(t *testing.T) {
	TestProvider(t, func(t *testing.T) model.Provider {
		f, err := modelfile.Parse("script.yaml", []byte(Script))
		if err != nil {
			t.Fatal(err)
		}
		return Watch(t, scripted.New(scripted.Config{File: f}))
	})
}

// TestWires: each wire keeps the contract against the scripted endpoint.
func TestWires(t *testing.T) {
	for name, open := range wires {
		t.Run(name, func(t *testing.T) {
			TestProvider(t, func(t *testing.T) model.Provider {
				p, err := open(endpoint.Server{BaseURL: NewServer(t, Script).URL})
				if err != nil {
					t.Fatal(err)
				}
				return p
			})
		})
	}
}

// wires opens a provider of each wire.
var wires = map[string]func(endpoint.Server) (model.Provider, error){
	"chat": func(s endpoint.Server) (model.Provider, error) { return openai.New(openai.Config{Server: s}) },
	"responses": func(s endpoint.Server) (model.Provider, error) {
		return responses.New(responses.Config{Server: s})
	},
	"messages": func(s endpoint.Server) (model.Provider, error) {
		return anthropic.New(anthropic.Config{Server: s})
	},
}

func TestCheckRequest(t *testing.T) {
	sys := model.Message{Role: model.System, Text: "s"}
	user := model.Message{Role: model.User, Text: "u"}
	call := func(ids ...string) model.Message {
		m := model.Message{Role: model.Assistant}
		for _, id := range ids {
			m.Calls = append(m.Calls, model.Call{ID: id, Name: "t", Arguments: "{}"})
		}
		return m
	}
	result := func(id string) model.Message { return model.Message{Role: model.ToolRole, CallID: id} }
	bad := func(args string) model.Message {
		return model.Message{Role: model.Assistant, Calls: []model.Call{{ID: "a", Name: "t", Arguments: args}}}
	}
	tests := []struct {
		name string
		msgs []model.Message
		want string
	}{
		{"good", []model.Message{sys, user, call("a", "b"), result("a"), result("b"), user}, ""},
		{"developer", []model.Message{sys, {Role: model.Developer, Text: "d"}, user}, ""},
		{"none", nil, "no messages"},
		{"late system", []model.Message{user, sys, user}, "not the first"},
		{"late developer", []model.Message{user, {Role: model.Developer}, user}, "developer message in the middle"},
		{"ends with assistant", []model.Message{user, {Role: model.Assistant, Text: "x"}}, "ends with"},
		{"no result", []model.Message{user, call("a"), user}, "no result directly after"},
		{"other order", []model.Message{user, call("a", "b"), result("b"), result("a")}, `for call "b" where that of "a" is due`},
		{"result twice", []model.Message{user, call("a"), result("a"), result("a")}, "does not make"},
		{"result alone", []model.Message{user, result("a")}, "does not make"},
		{"id twice", []model.Message{user, call("a"), result("a"), call("a"), result("a")}, "used twice"},
		{"not an object", []model.Message{user, bad("[]"), result("a")}, "not a JSON object"},
		{"null arguments", []model.Message{user, bad("null"), result("a")}, "not a JSON object"},
		{"UTF-8", []model.Message{{Role: model.User, Text: "\xff"}}, "not UTF-8"},
		{"empty user", []model.Message{{Role: model.User}}, "empty user"},
		{"role", []model.Message{{Role: "bot", Text: "x"}}, "role"},
	}
	for _, tt := range tests {
		err := CheckRequest(&model.Request{Messages: tt.msgs})
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	err := CheckRequest(&model.Request{Messages: []model.Message{user}, Tools: []model.ToolDef{{Name: "t", Parameters: []byte(`{"type":"array"}`)}}})
	if err == nil {
		t.Error("a tool with an odd schema passes")
	}
}

// TestStreams plays the kit to each wire.
func TestStreams(t *testing.T) {
	all, err := Streams()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 60 {
		t.Errorf("only %d streams: are they all embedded?", len(all))
	}
	for name, open := range wires {
		t.Run(name, func(t *testing.T) { RunStreams(t, name, open) })
	}
	t.Run("messages of a WebSocket", func(t *testing.T) {
		RunMessages(t, func(s endpoint.Server) (model.Provider, error) {
			return responses.New(responses.Config{Server: s, Sockets: responses.OnlySocket})
		})
	})
}
