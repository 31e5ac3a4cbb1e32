package server_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/transom-run/transom/server"
)

// asked is a request that the server made of the client.
type asked struct {
	place  int
	id     json.RawMessage
	params obj
}

// awaitAsked returns the first request of a method from a place on.
func (c *client) awaitAsked(from int, method string) asked {
	c.t.Helper()
	i := c.await(from, method, func(f frame) bool { return f.Method == method })
	a := asked{place: i, id: c.at(i).ID}
	if err := json.Unmarshal(c.at(i).Params, &a.params); err != nil {
		c.t.Fatal(err)
	}
	return a
}

// answer answers a request of the server.
func (c *client) answer(a asked, result any) {
	c.t.Helper()
	b, err := json.Marshal(obj{"jsonrpc": "2.0", "id": a.id, "result": result})
	if err != nil {
		c.t.Fatal(err)
	}
	c.write(fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(b), b))
}

// inferring is a client that makes the requests to models.
func inferring(t *testing.T) (*world, *client) {
	t.Helper()
	w := newWorld(t, nil, server.Config{})
	c := w.connect(t)
	c.ok("llmInference.setProvider", obj{})
	return w, c
}

// exchange takes the next request to a model and acknowledges it.
func (c *client) exchange(from int) (start asked, body string) {
	c.t.Helper()
	start = c.awaitAsked(from, "llmInference.httpRequestStart")
	c.answer(start, obj{})
	for at := start.place; ; at++ {
		chunk := c.awaitAsked(at, "llmInference.httpRequestChunk")
		at = chunk.place
		if chunk.params["requestId"] != start.params["requestId"] {
			continue
		}
		c.answer(chunk, obj{})
		body += chunk.params["data"].(string)
		if chunk.params["end"] == true {
			return start, body
		}
	}
}

type accepted struct{ Accepted bool }

// respond answers a request to a model with a stream of chat completions, cut in
// the middle of a character.
func (c *client) respond(start asked, text string) {
	c.t.Helper()
	id := start.params["requestId"]
	var a accepted
	c.ok("llmInference.httpResponseStart", obj{"requestId": id, "status": 200, "headers": obj{
		"content-type": []string{"application/json"}, "content-encoding": []string{"gzip"}, "content-length": []string{"3"},
	}}, &a)
	if !a.Accepted {
		c.t.Fatal("the head was not accepted")
	}
	b, err := json.Marshal(obj{"choices": []obj{{"message": obj{"role": "assistant", "content": text}, "finish_reason": "stop"}}})
	if err != nil {
		c.t.Fatal(err)
	}
	cut := strings.Index(string(b), "é") + 1
	for i, piece := range [][]byte{b[:cut], b[cut:]} {
		c.ok("llmInference.httpResponseChunk", obj{"requestId": id, "data": base64.StdEncoding.EncodeToString(piece), "binary": true, "end": i == 1})
	}
	c.ok("llmInference.httpResponseChunk", obj{"requestId": id, "data": "late", "end": true}, &a)
	if a.Accepted {
		c.t.Error("a piece after the end was accepted")
	}
}

// Providers that the host names are asked through it: with a token of its own for
// every request, and under the names that they have there.
func TestModelRequestsThroughTheHost(t *testing.T) {
	_, c := inferring(t)
	c.ok("session.create", obj{
		"sessionId": "s", "model": "red/m",
		"providers": []obj{
			{"name": "red", "baseUrl": "https://red.invalid/v1", "hasBearerTokenProvider": true, "headers": obj{"X-Provider": "red"}},
			{"name": "blue", "baseUrl": "https://blue.invalid/v1", "apiKey": "blue-secret", "transport": "websockets"}, // no effect on completions
		},
		"models": []obj{{"id": "m", "provider": "red", "wireModel": "wire-m", "maxPromptTokens": 5000}, {"id": "m", "provider": "blue"}},
	})
	var warning struct{ Message string }
	c.awaitEvent("session.warning", &warning)
	if !strings.Contains(warning.Message, `providers["blue"].transport`) {
		t.Errorf("the warning is %q", warning.Message)
	}
	at := 0
	for n := range 2 {
		c.prompt("s", "hello")
		token := c.awaitAsked(at, "providerToken.getToken")
		if token.params["providerName"] != "red" || token.params["sessionId"] != "s" {
			t.Errorf("asked for a token with %v", token.params)
		}
		c.answer(token, obj{"token": fmt.Sprint("rotating-", n)})
		start, body := c.exchange(token.place)
		p := start.params
		headers := p["headers"].(map[string]any)
		if p["url"] != "https://red.invalid/v1/chat/completions" || p["method"] != "POST" || p["transport"] != "http" || p["sessionId"] != "s" ||
			p["agentId"] == nil || p["interactionType"] != "conversation-agent" || fmt.Sprint(headers["x-provider"]) != "[red]" ||
			fmt.Sprint(headers["authorization"]) != fmt.Sprintf("[Bearer rotating-%d]", n) {
			t.Errorf("the request is %v", p)
		}
		if !strings.Contains(body, `"wire-m"`) {
			t.Errorf("the body is %s", body)
		}
		c.respond(start, "héllo")
		var m struct{ Content string }
		at = c.eventFrom(start.place, "assistant.message", &m)
		if m.Content != "héllo" {
			t.Errorf("the answer is %q", m.Content)
		}
		at = c.idle(at)
	}
	c.ok("session.model.switchTo", obj{"sessionId": "s", "modelId": "blue/m"})
	place := c.count()
	c.ok("session.resume", obj{"sessionId": "s", "models": []obj{{"id": "m", "provider": "blue"}},
		"providers": []obj{{"name": "blue", "baseUrl": "https://blue.invalid/v1", "transport": "websockets"}}})
	c.eventAt(place, "session.warning")
	c.prompt("s", "hello")
	start, _ := c.exchange(at)
	if start.params["url"] != "https://blue.invalid/v1/chat/completions" {
		t.Errorf("after the switch the request goes to %v", start.params["url"])
	}
	c.respond(start, "héllo")
	c.idle(start.place)
}

// An abort tells the host that nobody waits for its answer; an answer that could
// not be had fails the turn.
func TestModelRequestEnds(t *testing.T) {
	w, c := inferring(t)
	c.ok("session.create", obj{"sessionId": "s", "model": "m", "provider": obj{"baseUrl": "https://one.invalid/v1"}})
	c.prompt("s", "hello")
	start, _ := c.exchange(0)
	c.ok("session.abort", obj{"sessionId": "s"})
	c.await(start.place, "the cancellation", func(f frame) bool {
		var p struct {
			RequestID string
			Cancel    bool
		}
		return f.Method == "llmInference.httpRequestChunk" && json.Unmarshal(f.Params, &p) == nil && p.Cancel && p.RequestID == start.params["requestId"]
	})
	var a accepted
	c.ok("llmInference.httpResponseStart", obj{"requestId": start.params["requestId"], "status": 200, "headers": obj{}}, &a)
	if a.Accepted {
		t.Error("an answer that came too late was accepted")
	}

	at := c.count()
	c.prompt("s", "again")
	start, _ = c.exchange(at)
	c.ok("llmInference.httpResponseStart", obj{"requestId": start.params["requestId"], "status": 404, "headers": obj{}})
	c.ok("llmInference.httpResponseChunk", obj{"requestId": start.params["requestId"], "data": `{"error":{"message":"nothing here"}}`, "end": true})
	var failure struct{ Message string }
	c.eventFrom(start.place, "session.error", &failure)
	if !strings.Contains(failure.Message, "one.invalid") {
		t.Errorf("the failure is %q", failure.Message)
	}

	// The place is taken until its holder goes; what is under way fails then.
	other := w.connect(t)
	if msg := other.fails(-32012, "llmInference.setProvider", obj{}); !strings.Contains(msg, "Another client") {
		t.Errorf("a second client hears %q", msg)
	}
	at = c.count()
	other.ok("session.resume", obj{"sessionId": "s"})
	c.prompt("s", "once more")
	c.exchange(at)
	c.conn.Close()
	var call struct{ ErrorMessage string }
	other.awaitEvent("model.call_failure", &call)
	other.ok("session.abort", obj{"sessionId": "s"})
	other.ok("llmInference.setProvider", obj{})
}

// Providers come later, too; what is wrong with them is said and changes nothing.
func TestAddProviders(t *testing.T) {
	_, c := inferring(t)
	c.ok("session.create", obj{"sessionId": "s", "providers": []obj{{"name": "a", "baseUrl": "https://a.invalid"}}, "models": []obj{{"id": "m", "provider": "a"}}})
	var list struct{ List, Models []struct{ ID string } }
	c.ok("session.provider.add", obj{
		"sessionId": "s", "providers": []obj{{"name": "b", "type": "anthropic", "baseUrl": "https://b.invalid", "hasBearerTokenProvider": true}},
		"models": []obj{{"id": "n", "provider": "b", "capabilities": obj{"supports": obj{"vision": true}}}},
	}, &list)
	if len(list.Models) != 1 || list.Models[0].ID != "b/n" {
		t.Errorf("added %v", list.Models)
	}
	c.ok("session.model.list", obj{"sessionId": "s"}, &list)
	if len(list.List) != 2 || list.List[0].ID != "a/m" || list.List[1].ID != "b/n" {
		t.Errorf("listed %v", list.List)
	}
	for _, bad := range []obj{
		{"providers": []obj{{"name": "a", "baseUrl": "https://c.invalid"}}},
		{"providers": []obj{{"name": "c/d", "baseUrl": "https://c.invalid"}}},
		{"models": []obj{{"id": "x", "provider": "nobody"}}},
		{"models": []obj{{"id": "m", "provider": "a"}}},
	} {
		bad["sessionId"] = "s"
		c.fails(-32602, "session.provider.add", bad)
	}
	c.fails(-32602, "session.create", obj{"sessionId": "t", "models": []obj{{"id": "x", "provider": "nobody"}}})
	refused := c.fails(-32602, "session.create", obj{"sessionId": "t", "provider": obj{"baseUrl": "https://c.invalid", "maxPromptTokens": -5}})
	if !strings.Contains(refused, "provider.maxPromptTokens is -5") {
		t.Errorf("refused by %q", refused)
	}
	c.ok("session.model.switchTo", obj{"sessionId": "s", "modelId": "b/n"})
	c.prompt("s", "hello")
	token := c.awaitAsked(0, "providerToken.getToken")
	c.answer(token, obj{"token": "late-token"})
	start, _ := c.exchange(token.place)
	if start.params["url"] != "https://b.invalid/v1/messages" {
		t.Errorf("the request goes to %v", start.params["url"])
	}
	c.ok("session.abort", obj{"sessionId": "s"})
	c.fails(-32014, "session.provider.getEndpoint", obj{"sessionId": "s"})
}

// What a request is for is told in the protocol's words.
func TestInteractionTypes(t *testing.T) {
	_, c := inferring(t)
	c.ok("session.create", obj{"sessionId": "s", "model": "m", "provider": obj{"baseUrl": "https://one.invalid/v1"}})
	c.prompt("s", "hello")
	start, _ := c.exchange(0)
	if start.params["interactionType"] != "conversation-agent" {
		t.Errorf("a prompt: %v", start.params["interactionType"])
	}
	c.respond(start, "é")
	at := c.idle(start.place)
	for method, want := range map[string]string{
		"session.ui.ephemeralQuery": "conversation-user", "session.history.summarizeForHandoff": "conversation-background", "session.history.compact": "conversation-compaction",
	} {
		id := c.send(method, obj{"sessionId": "s", "question": "why?"})
		start, _ := c.exchange(at)
		if start.params["interactionType"] != want || start.params["sessionId"] != "s" {
			t.Errorf("%s: %v", method, start.params)
		}
		c.respond(start, "é")
		if r := c.reply(id); r.Error != nil {
			t.Errorf("%s: %v", method, r.Error)
		}
		at = start.place + 1
	}
}

// A host that makes the requests opens WebSockets, too, where a provider wants
// them: each piece of a body is a message.
func TestWebSocketThroughTheHost(t *testing.T) {
	_, c := inferring(t)
	c.ok("session.create", obj{"sessionId": "s", "model": "m", "streaming": true,
		"provider": obj{"baseUrl": "https://one.invalid/v1", "wireApi": "responses", "transport": "websockets", "apiKey": "key-of-one"}})
	at := 0
	for _, text := range []string{"héllo", "again"} {
		c.prompt("s", "hello")
		start := c.awaitAsked(at, "llmInference.httpRequestStart")
		c.answer(start, obj{})
		id := start.params["requestId"]
		headers := start.params["headers"].(map[string]any)
		if start.params["transport"] != "websocket" || start.params["url"] != "wss://one.invalid/v1/responses" || start.params["method"] != "GET" ||
			fmt.Sprint(headers["authorization"]) != "[Bearer key-of-one]" || start.params["interactionType"] != "conversation-agent" {
			t.Errorf("the request is %v", start.params)
		}
		c.ok("llmInference.httpResponseStart", obj{"requestId": id, "status": 101, "headers": obj{}})
		chunk := c.awaitAsked(start.place, "llmInference.httpRequestChunk")
		c.answer(chunk, obj{})
		var message struct {
			Type, Model string
			Stream      *bool
			Input       []obj
		}
		if err := json.Unmarshal([]byte(chunk.params["data"].(string)), &message); err != nil || message.Type != "response.create" || message.Model != "m" ||
			message.Stream != nil || chunk.params["end"] == true || strings.Contains(chunk.params["data"].(string), "previous_response_id") {
			t.Errorf("the message is %v, %v", chunk.params, err)
		}
		for _, e := range []obj{
			{"type": "response.output_text.delta", "delta": text},
			{"type": "response.completed", "response": obj{"id": "r", "status": "completed", "output": []obj{}}},
		} {
			b, _ := json.Marshal(e)
			c.ok("llmInference.httpResponseChunk", obj{"requestId": id, "data": string(b)})
		}
		var m struct{ Content string }
		c.eventFrom(start.place, "assistant.message", &m)
		if m.Content != text {
			t.Errorf("the answer is %q", m.Content)
		}
		end := c.awaitAsked(chunk.place+1, "llmInference.httpRequestChunk")
		c.answer(end, obj{})
		if end.params["end"] != true || end.params["cancel"] == true {
			t.Errorf("the socket ends with %v", end.params)
		}
		at = c.idle(chunk.place)
	}
	// A host without WebSockets says so with a status, and the turn with words.
	c.prompt("s", "hello")
	start := c.awaitAsked(at, "llmInference.httpRequestStart")
	c.answer(start, obj{})
	c.ok("llmInference.httpResponseStart", obj{"requestId": start.params["requestId"], "status": 404, "headers": obj{}})
	c.ok("llmInference.httpResponseChunk", obj{"requestId": start.params["requestId"], "data": "", "end": true})
	var failure struct{ Message, ErrorCode string }
	c.eventFrom(start.place, "session.error", &failure)
	if failure.ErrorCode != "no_websocket" || !strings.Contains(failure.Message, "transport to http") {
		t.Errorf("the failure is %+v", failure)
	}
}
