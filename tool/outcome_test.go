package tool

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// TestWireTable: every kind of answer that a host can give.
func TestWireTable(t *testing.T) {
	const thrown = "Failed to execute `alpha` tool with arguments: {\"x\":\"hi\"} due to error: Error: Tool execution failed"
	ok := func(text string) Outcome {
		return Outcome{Success: true, Type: Success, ModelText: text, Content: text, DetailedContent: text}
	}
	bad := func(typ ResultType, model, event string) Outcome {
		return Outcome{Type: typ, Code: string(typ), ModelText: model, EventMessage: event}
	}
	unusable := func(what string) Outcome {
		return bad(Failure, "The tool answered with "+what+".", "the host answered with "+what+"; give a string, or an object with textResultForLlm and resultType")
	}
	with := func(o Outcome, f func(*Outcome)) Outcome { f(&o); return o }
	tests := []struct {
		name, result, thrown string
		want                 Outcome
	}{
		{"string", `"TEXT"`, ``, ok("TEXT")},
		{"empty string", `""`, ``, ok("")},
		{"success", `{"textResultForLlm":"T","resultType":"success","sessionLog":"S","toolTelemetry":{"metrics": {"a":1}}}`, ``,
			with(ok("T"), func(o *Outcome) { o.DetailedContent, o.Telemetry = "S", json.RawMessage(`{"metrics":{"a":1}}`) })},
		{"success with an error", `{"textResultForLlm":"T","resultType":"success","error":"E"}`, ``, ok("T")},
		{"empty text", `{"textResultForLlm":"","resultType":"success"}`, ``, ok("")},
		{"failure", `{"textResultForLlm":"T","resultType":"failure","error":"E"}`, ``, bad(Failure, "T", "E")},
		{"failure without error", `{"textResultForLlm":"T","resultType":"failure"}`, ``, bad(Failure, "T", "T")},
		{"failure without text", `{"resultType":"failure","error":"E"}`, ``, bad(Failure, "The tool 'alpha' failed and gave no text that says why.", "E")},
		{"failure with nothing", `{"textResultForLlm":" ","resultType":"failure"}`, ``,
			bad(Failure, "The tool 'alpha' failed and gave no text that says why.", "The tool 'alpha' failed and gave no text that says why.")},
		{"timeout", `{"textResultForLlm":"T","resultType":"timeout","error":"E"}`, ``, bad(Timeout, "T", "E")},
		{"timeout without error", `{"textResultForLlm":"T","resultType":"timeout"}`, ``, bad(Timeout, "T", "T")},
		{"denied", `{"textResultForLlm":"T","resultType":"denied","error":"E"}`, ``, bad(Denied, "T", "T")},
		{"rejected", `{"textResultForLlm":"T","resultType":"rejected","error":"E"}`, ``, bad(Rejected, "T", "T")},
		{"rejected without text", `{"resultType":"rejected"}`, ``, bad(Rejected,
			"The call of the tool 'alpha' was rejected; no reason was given.", "The call of the tool 'alpha' was rejected; no reason was given.")},
		{"unknown type with an error", `{"textResultForLlm":"T","resultType":"odd","error":"E"}`, ``, bad(Failure, "T", "E")},
		{"unknown type", `{"textResultForLlm":"T","resultType":"odd"}`, ``, ok("T")},
		{"no type", `{"textResultForLlm":"T"}`, ``, ok("T")},
		{"no type with an error", `{"textResultForLlm":"T","error":"E"}`, ``, bad(Failure, "T", "E")},
		{"type of a wrong kind", `{"textResultForLlm":"T","resultType":7}`, ``, ok("T")},
		{"thrown", ``, `"boom"`, bad(Failure, thrown, "boom")},
		{"thrown beside null", `null`, `"boom"`, bad(Failure, thrown, "boom")},
		{"thrown beside a result", `"TEXT"`, `"boom"`, bad(Failure, thrown, "boom")},
		{"thrown without a word", ``, `""`, bad(Failure, thrown, "Tool execution failed")},
		{"thrown object", ``, `{"message":"boom","stack":"s"}`, bad(Failure, thrown, "boom")},
		{"thrown something", ``, `[1]`, bad(Failure, thrown, "[1]")},
		{"result beside a null error", `"TEXT"`, `null`, ok("TEXT")},
		{"neither", ``, ``, unusable("neither a result nor an error")},
		{"null", `null`, ``, unusable("neither a result nor an error")},
		{"nonsense", `{"nonsense":1}`, ``, unusable("a result without text")},
		{"nonsense that calls itself a success", `{"nonsense":1,"resultType":"success"}`, ``, unusable("a result without text")},
		{"text of a wrong kind", `{"textResultForLlm":5,"resultType":"success"}`, ``, unusable("a result without text")},
		{"number", `5`, ``, unusable("a result that is a number, not a text")},
		{"boolean", `true`, ``, unusable("a result that is a boolean, not a text")},
		{"array", `["T"]`, ``, unusable("a result that is an array, not a text")},
		{"not JSON", `{`, ``, unusable("a result that is not readable JSON")},
		{"contents", `{"contents":[{"type":"text","text":"a"},{"type":"terminal","text":"b","exitCode":0},{"type":"resource","resource":{"uri":"u","text":"c"}}]}`, ``, ok("a\nb\nc")},
		{"unknown contents", `{"contents":[{"type":"hologram"}]}`, ``, unusable("a result without text")},
		{"image alone", `{"resultType":"success","binaryResultsForLlm":[{"data":"aGk=","mimeType":"image/png","type":"image","description":"d"}]}`, ``,
			with(ok(""), func(o *Outcome) { o.Binary = []Binary{{"aGk=", "image/png", "image", "d"}} })},
		{"image of the contents", `{"textResultForLlm":"T","contents":[{"type":"image","data":"aGk=","mimeType":"image/png"}]}`, ``,
			with(ok("T"), func(o *Outcome) { o.Binary = []Binary{{"aGk=", "image/png", "image", ""}} })},
		{"attachment without a kind", `{"textResultForLlm":"T","binaryResultsForLlm":[{"data":"aGk=","mimeType":"image/png"},{"data":"aGk="}]}`, ``,
			with(ok("T"), func(o *Outcome) {
				o.Binary = []Binary{{"aGk=", "image/png", "image", ""}, {"aGk=", "application/octet-stream", "resource", ""}}
			})},
		{"attachments that are none", `{"textResultForLlm":"T","binaryResultsForLlm":[{"data":"%%","mimeType":"image/png","type":"image"},{},7]}`, ``,
			ok("T\n\n(attachment 1 of this result is not valid base64 and was left out)\n\n(attachment 2 of this result is empty and was left out)\n\n(attachment 3 of this result is empty and was left out)")},
		{"tool search", `{"toolReferences":["a",1,"b"]}`, ``, with(ok(""), func(o *Outcome) { o.References = []string{"a", "b"} })},
		{"telemetry of a wrong kind", `{"textResultForLlm":"T","toolTelemetry":[1]}`, ``, ok("T")},
		{"lone surrogate", `"a\ud83d"`, ``, ok("a\ufffd")},
	}
	call := Call{Name: "alpha", Arguments: json.RawMessage(`{"x":"hi"}`)}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			res, err := ParseAnswer(json.RawMessage(tt.result), json.RawMessage(tt.thrown))
			if d := cmp.Diff(tt.want, Settle(call, res, err, nil)); d != "" {
				t.Errorf("outcome (-want +got):\n%s", d)
			}
		})
	}
}

// TestSettleInProcess: what only a handler of this process can return.
func TestSettleInProcess(t *testing.T) {
	call := Call{Name: "alpha"}
	if o := Settle(call, Result{}, nil, nil); !o.Success || o.Type != Success {
		t.Errorf("the zero result: %+v", o)
	}
	if o := Settle(call, Result{Text: "T", Type: "odd"}, nil, nil); o.Success || o.Type != Failure || o.EventMessage != "T" {
		t.Errorf("an unknown type: %+v", o)
	}
	if o := Settle(call, Result{Text: "a\xff", Detail: "\xff", Telemetry: json.RawMessage(`not json`)}, nil, nil); o.ModelText != "a\ufffd" || o.DetailedContent != "\ufffd" || o.Telemetry != nil {
		t.Errorf("broken texts: %+v", o)
	}
	o := Settle(call, Result{}, errors.New("token hunter2 refused"), func(s string) string { return strings.ReplaceAll(s, "hunter2", "***") })
	if o.EventMessage != "token *** refused" || !strings.Contains(o.ModelText, "arguments: {} due") {
		t.Errorf("redacted: %+v", o)
	}
}

// TestDetailIsCapped: the secret filter sees the whole detail, and the cut never
// halves a character.
func TestDetailIsCapped(t *testing.T) {
	for lead := range 4 {
		long := strings.Repeat("x", lead) + strings.Repeat("😀", MaxDetail)
		saw := 0
		o := Settle(Call{Name: "a", Arguments: json.RawMessage(`{"x":"` + long + `"}`)}, Result{}, errors.New(long), func(s string) string { saw = len(s); return s })
		if saw != len(long) || len(o.EventMessage) > MaxDetail+40 || !utf8.ValidString(o.EventMessage) || strings.Contains(o.EventMessage, "\ufffd") {
			t.Errorf("message of %d bytes, filter saw %d of %d", len(o.EventMessage), saw, len(long))
		}
		if len(o.ModelText) > 10000 || !utf8.ValidString(o.ModelText) {
			t.Errorf("model text of %d bytes", len(o.ModelText))
		}
	}
}

func TestWithText(t *testing.T) {
	o := Settle(Call{}, Result{Text: "long", Detail: "log"}, nil, nil).WithText("cut")
	if o.ModelText != "cut" || o.Content != "cut" || o.DetailedContent != "log" {
		t.Errorf("%+v", o)
	}
	if o = Settle(Call{}, Result{Text: "long"}, nil, nil).WithText("cut"); o.DetailedContent != "cut" {
		t.Errorf("%+v", o)
	}
	if o = Settle(Call{}, Result{Text: "long", Type: Failure}, nil, nil).WithText("cut"); o.ModelText != "cut" || o.Content != "" || o.EventMessage != "long" {
		t.Errorf("%+v", o)
	}
}

func TestOversizedNotice(t *testing.T) {
	big := strings.Repeat("x", 100_000)
	want := "Output too large to read at once (97.7 KB). Saved to: /s/session-state/temp/1774637043987-copilot-tool-output-tk7puw.txt\n" +
		"Consider using tools like grep (for searching), head/tail (for viewing start/end), view with view_range (for specific sections), or jq (for JSON) to examine portions of the output.\n" +
		"\nPreview (first 500 chars):\n" + strings.Repeat("x", 500)
	name := OutputFileName(time.UnixMilli(1774637043987), "TK7-puw")
	if got := OversizedNotice(big, "/s/session-state/temp/"+name); got != want {
		t.Errorf("notice %q", got)
	}
	hidden := OversizedNotice(big, "")
	if strings.Contains(hidden, "Saved") || strings.Contains(hidden, "grep") || !strings.HasPrefix(hidden, "Output too large to read at once (97.7 KB)") {
		t.Errorf("notice without a path %q", hidden)
	}
	if OutputFileName(time.UnixMilli(5), "../é") != "5-copilot-tool-output-0.txt" {
		t.Error(OutputFileName(time.UnixMilli(5), "../é"))
	}
	if Oversized(big[:MaxResultBytes]) || !Oversized(big[:MaxResultBytes+1]) {
		t.Errorf("the limit is not %d bytes", MaxResultBytes)
	}
	for lead := range 5 {
		s := strings.Repeat("x", 495+lead) + strings.Repeat("😀", 10_000)
		_, preview, _ := strings.Cut(OversizedNotice(s, "/p"), "chars):\n")
		if !utf8.ValidString(preview) || utf8.RuneCountInString(preview) != 500 {
			t.Errorf("preview of %d characters", utf8.RuneCountInString(preview))
		}
	}
}

func FuzzParseAnswer(f *testing.F) {
	for _, s := range []string{`"T"`, `{"textResultForLlm":"T","resultType":"denied","toolTelemetry":{"a":[1]}}`, `{"contents":[{"type":"image","data":"aGk="}]}`, `null`, `[]`, `{"binaryResultsForLlm":[{"data":"a==="}]}`} {
		f.Add(s, ``)
		f.Add(s, `"boom"`)
	}
	f.Fuzz(func(t *testing.T, result, thrown string) {
		res, err := ParseAnswer(json.RawMessage(result), json.RawMessage(thrown))
		o := Settle(Call{Name: "alpha"}, res, err, nil)
		for _, s := range []string{o.ModelText, o.EventMessage, o.Content, o.DetailedContent} {
			if !utf8.ValidString(s) {
				t.Fatalf("%q is not valid UTF-8", s)
			}
		}
		if o.Success != (o.Type == Success) || o.Success == (o.Code != "") || !o.Success && (o.ModelText == "" || o.EventMessage == "") {
			t.Fatalf("%q, %q: %+v", result, thrown, o)
		}
		if o.Telemetry != nil && !json.Valid(o.Telemetry) {
			t.Fatalf("telemetry %s", o.Telemetry)
		}
	})
}
