package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestSuiteFilesAgree(t *testing.T) {
	suite, err := loadSuite("../cases")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range suite.Cases {
		if c.Says == "" || len(c.Shows) == 0 {
			t.Errorf("%s does not say what it shows", c.ID)
		}
	}
}

func TestLanguages(t *testing.T) {
	langs, err := loadLanguages("..", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range langs {
		if l.Name == "" || len(l.Host) == 0 || len(l.Example) == 0 || len(l.Needs) == 0 {
			t.Errorf("%s/lang.yaml leaves a field out", l.Key)
		}
	}
	suite, err := loadSuite("../cases")
	if err != nil {
		t.Fatal(err)
	}
	if err := suite.checkLacks(langs); err != nil {
		t.Error(err)
	}
	if err := suite.checkLacks([]*Language{{Key: "x", Lacks: map[string]string{"wings": "no"}}}); err == nil {
		t.Error("a feature that nothing needs is no error")
	}
	if _, err := loadLanguages("..", []string{"klingon"}); err == nil {
		t.Error("a language that is not there is no error")
	}
}

// talk asks the server and returns status and body.
func talk(t *testing.T, method, url, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	reply, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply.StatusCode, string(text)
}

// TestDesk plays a whole case by hand: the host's side and the model's.
func TestDesk(t *testing.T) {
	suite := &Suite{Tools: []Tool{{Name: "look"}, {Name: "odd", Special: true}}}
	one := "1"
	c := &Case{
		ID: "one", Over: "stdio",
		Host: []Step{{Do: "create"}, {Do: "send_and_wait", Prompt: &one}},
		Conversations: []Conversation{{Messages: []Message{
			{Role: "system", Content: "${system}"}, {Role: "user", Content: "go"},
			{Role: "assistant", Failures: []Failure{{Status: 503, Message: "ill"}}, Hold: true, Content: "done"},
		}}},
	}
	d := newDesk(suite, &Language{Key: "x"}, "", "", t.TempDir(), []*Case{c})
	server := httptest.NewServer(d.handler())
	defer server.Close()

	_, text := talk(t, "GET", server.URL+"/next", "")
	var got order
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	if got.ID != "one" || !slices.Equal(got.Host[0].Tools, []string{"look"}) {
		t.Errorf("the host got %s", text)
	}
	request := `{"model":"m","messages":[{"role":"system","content":"S"},{"role":"user","content":"go"}],"tools":[{"function":{"name":"look"}}]}`
	if status, _ := talk(t, "POST", server.URL+"/model/one/v1/chat/completions", request); status != 503 {
		t.Errorf("the scripted failure is %d, not 503", status)
	}
	if status, _ := talk(t, "POST", server.URL+"/model/other/v1/chat/completions", request); status != http.StatusGone {
		t.Errorf("a request for another case is %d, not 410", status)
	}
	answered := make(chan string)
	go func() {
		reply, err := http.Post(server.URL+"/model/one/v1/chat/completions", "application/json", strings.NewReader(request))
		if err != nil {
			answered <- err.Error()
			return
		}
		defer reply.Body.Close()
		text, _ := io.ReadAll(reply.Body)
		answered <- string(text)
	}()
	talk(t, "GET", server.URL+"/model/wait/2", "")
	select {
	case text := <-answered:
		t.Errorf("a held reply was given: %s", text)
	default:
	}
	talk(t, "POST", server.URL+"/model/release/2", "")
	if text := <-answered; !strings.Contains(text, `"content":"done"`) {
		t.Errorf("the reply is %s", text)
	}
	talk(t, "POST", server.URL+"/result", `{"log":[],"events":{}}`)
	if status, _ := talk(t, "GET", server.URL+"/next", ""); status != http.StatusNoContent {
		t.Errorf("after the last case: %d", status)
	}
	if len(d.runs) != 1 || len(d.runs[0].errs) != 0 {
		t.Errorf("runs: %v", d.runs[0].errs)
	}
}

// TestStreamedReply joins the chunks of a streamed reply again.
func TestStreamedReply(t *testing.T) {
	m := newModelRun(&Case{Conversations: []Conversation{{Messages: []Message{
		{Role: "assistant", Content: "hällo", ToolCalls: []ToolCall{{ID: "c1", Name: "look", Arguments: map[string]any{"at": "it"}}}},
	}}}})
	server := httptest.NewServer(m)
	defer server.Close()
	_, text := talk(t, "POST", server.URL, `{"model":"m","stream":true}`)
	var content, args string
	for line := range strings.Lines(text) {
		data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: ")
		if !ok || data == "[DONE]" {
			continue
		}
		var chunk struct {
			Choices []struct {
				Delta struct {
					Content   string
					ToolCalls []wireCall `json:"tool_calls"`
				}
			}
		}
		if err := json.Unmarshal([]byte(data), &chunk); err != nil {
			t.Fatal(err)
		}
		for _, choice := range chunk.Choices {
			content += choice.Delta.Content
			for _, call := range choice.Delta.ToolCalls {
				args += call.Function.Arguments
			}
		}
	}
	if content != "hällo" || args != `{"at":"it"}` {
		t.Errorf("content %q, arguments %q", content, args)
	}
	if !strings.HasSuffix(text, "data: [DONE]\n\n") {
		t.Error("the stream does not end with [DONE]")
	}
}

// TestHostThatHangs: the watchdog costs a hanging host the case it is at, and
// what is left is still played.
func TestHostThatHangs(t *testing.T) {
	lang := &Language{Key: "x", Needs: []string{"sh", "curl"}, Host: []string{"sh", "-c", `curl -s "$CONFORMANCE_URL/next"; sleep 60`}}
	if program := lang.missing(); program != "" {
		t.Skip(program + " is not installed: nothing to hang")
	}
	old := watchdog
	watchdog = 5 * time.Second // enough for a shell to start and ask
	defer func() { watchdog = old }()
	suite := &Suite{}
	var queue []*Case
	for _, id := range []string{"a", "b"} {
		queue = append(queue, &Case{ID: id, Over: "stdio", Host: []Step{{Do: "create"}}})
	}
	d := newDesk(suite, lang, "", "", t.TempDir(), queue)
	server := httptest.NewServer(d.handler())
	defer server.Close()
	d.base = server.URL
	if err := d.play(context.Background()); err != nil {
		t.Fatal(err)
	}
	if len(d.runs) != 2 {
		t.Fatalf("%d cases were played, not 2", len(d.runs))
	}
	for _, r := range d.runs {
		wantErrors(t, r.errs, "the host did not get on")
	}
}

func TestTable(t *testing.T) {
	suite := &Suite{Statements: []Statement{{ID: "M1", Says: "one"}, {ID: "M2", Says: "two"}, {ID: "M9", Says: "nine", Elsewhere: "later"}}}
	lang := &Language{Name: "X"}
	good := &run{c: &Case{ID: "good", Shows: []string{"M1"}}, lang: lang}
	bad := &run{c: &Case{ID: "bad", Shows: []string{"M1", "M2"}, Says: "what it says"}, lang: lang, errs: []error{io.EOF}}
	var b strings.Builder
	passed, failed := printTable(&b, suite, []*column{{lang: lang, runs: []*run{good, bad}}, {lang: &Language{Name: "Y"}, notRun: "y is not installed"}}, true)
	if passed != 1 || failed != 1 {
		t.Errorf("%d passed, %d failed", passed, failed)
	}
	for _, want := range []string{"M1  FAIL        not run", "M9  -           -", "Y was not run: y is not installed", "FAIL X: bad (M1 M2)", "- EOF", "1 passed, 1 failed"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, b.String())
		}
	}
}
