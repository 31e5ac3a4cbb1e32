package model

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestRetryPolicy(t *testing.T) {
	query := &Error{Kind: Query, Retryable: true}
	limited := &Error{Kind: RateLimit, Retryable: true}
	asked := func(d time.Duration) *Error { return &Error{Kind: RateLimit, Retryable: true, RetryAfter: d} }
	tests := []struct {
		name    string
		attempt int
		err     *Error
		rand    float64
		wait    time.Duration
		again   bool
	}{
		{"first, middle of the spread", 1, query, 0.5, 500 * time.Millisecond, true},
		{"second", 2, query, 0.5, time.Second, true},
		{"fourth", 4, query, 0.5, 4 * time.Second, true},
		{"last", 5, query, 0.5, 0, false},
		{"beyond", 9, query, 0.5, 0, false},
		{"low end of the spread", 1, query, 0, 375 * time.Millisecond, true},
		{"rate limit", 1, limited, 0.5, 2 * time.Second, true},
		{"rate limit, fourth", 4, limited, 0.5, 16 * time.Second, true},
		{"asked for a wait", 1, asked(time.Second), 0, time.Second, true},
		{"asked, spread upwards only", 1, asked(10 * time.Second), 0.5, 10500 * time.Millisecond, true},
		{"asked for too long", 1, asked(time.Hour), 0, 0, false},
		{"asked, but the last", 5, asked(time.Second), 0, 0, false},
		{"not retryable", 1, &Error{Kind: Authentication}, 0, 0, false},
		{"empty answer", 1, &Error{Kind: Query, Retryable: true, Code: CodeEmptyAnswer}, 0.5, 500 * time.Millisecond, true},
		{"empty answer again", 2, &Error{Kind: Query, Retryable: true, Code: CodeEmptyAnswer}, 0.5, 0, false},
		{"no error", 1, nil, 0, 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			wait, again := RetryPolicy{}.Next(tt.attempt, tt.err, tt.rand)
			if wait != tt.wait || again != tt.again {
				t.Errorf("got %v, %v; want %v, %v", wait, again, tt.wait, tt.again)
			}
		})
	}
}

// TestRetryBounds: whatever comes, the attempts end, no wait is negative or
// longer than what is stated, and a wait means another attempt.
func TestRetryBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := RetryPolicy{MaxAttempts: rapid.IntRange(0, 12).Draw(t, "max")}
		err := &Error{
			Kind:       rapid.SampledFrom([]ErrorKind{Query, RateLimit}).Draw(t, "kind"),
			Retryable:  rapid.Bool().Draw(t, "retryable"),
			RetryAfter: time.Duration(rapid.Int64().Draw(t, "after")),
		}
		most := max(p.MaxAttempts, DefaultRetry.MaxAttempts)
		for attempt := 1; ; attempt++ {
			wait, again := p.Next(attempt, err, rapid.Float64Range(0, 0.999).Draw(t, "rand"))
			if wait < 0 || wait > 70*time.Second || !again && wait != 0 {
				t.Fatalf("attempt %d: %v, %v", attempt, wait, again)
			}
			if !again {
				break
			}
			if attempt >= most {
				t.Fatalf("attempt %d is not the last", attempt)
			}
		}
	})
}

func TestRetryFinal(t *testing.T) {
	e := &Error{Msg: "It failed.", Retryable: true, Status: 503}
	got := RetryPolicy{}.Final(5, 7500*time.Millisecond, e)
	if got.Msg != "It failed. Gave up after 5 attempts and 7.5 seconds of waiting between them." || got.Status != 503 {
		t.Errorf("got %+v", got)
	}
	e.RetryAfter = 10 * time.Minute
	got = RetryPolicy{}.Final(1, 0, e)
	if got.Msg != "It failed. The provider asks to wait 10m0s, longer than the limit of 1m0s: send the prompt again later." {
		t.Errorf("got %q", got.Msg)
	}
	if got := (RetryPolicy{}).Final(1, 0, &Error{Msg: "No."}); got.Msg != "No." {
		t.Errorf("got %q", got.Msg)
	}
}

func TestClassify(t *testing.T) {
	tests := []struct {
		status     int
		code, text string
		kind       ErrorKind
		again      bool
	}{
		{401, "", "", Authentication, false},
		{403, "", "", Authentication, false},
		{402, "", "", Quota, false},
		{429, "", "", RateLimit, true},
		{429, "insufficient_quota", "", Quota, false},
		{429, "user_weekly_rate_limited", "", RateLimit, true},
		{400, "", "bad field", Query, false},
		{400, "context_length_exceeded", "", ContextLimit, false},
		{400, "", "This model's maximum context length is 8192 tokens", ContextLimit, false},
		{413, "", "", ContextLimit, false},
		{404, "", "", Query, false},
		{408, "", "", Query, true},
		{409, "", "", Query, true},
		{425, "", "", Query, true},
		{500, "", "", Query, true},
		{501, "", "", Query, false},
		{503, "", "", Query, true},
		{529, "", "", Query, true},
	}
	for _, tt := range tests {
		kind, again := Classify(tt.status, tt.code, tt.text)
		if kind != tt.kind || again != tt.again {
			t.Errorf("%d %s %q: got %s, %v", tt.status, tt.code, tt.text, kind, again)
		}
	}
}

func TestAccumulator(t *testing.T) {
	u1, u2 := &Usage{InputTokens: 1}, &Usage{InputTokens: 9, OutputTokens: 3}
	seq := func(yield func(Chunk, error) bool) {
		for _, c := range []Chunk{
			{ID: "r1", Model: "m"},
			{Reasoning: "hm"},
			{Text: "a"},
			{Call: &CallChunk{Index: 4, ID: "c1", Name: "one"}},
			{Call: &CallChunk{Index: 7, ID: "c2", Name: "two", Arguments: "{"}},
			{Call: &CallChunk{Index: 4, ID: "c1", Arguments: `{"x":`}},
			{Usage: u1},
			{Call: &CallChunk{Index: 7, Arguments: "}"}},
			{Call: &CallChunk{Index: 4, Name: "one", Arguments: "1}"}},
			{Text: "b\xff"},
			{Finish: "stop", Usage: u2},
		} {
			if !yield(c, nil) {
				return
			}
		}
	}
	got, err := Collect(seq)
	want := &Response{
		Message: Message{Role: Assistant, Text: "ab\uFFFD", Reasoning: "hm", Calls: []Call{
			{ID: "c1", Name: "one", Arguments: `{"x":1}`}, {ID: "c2", Name: "two", Arguments: "{}"}}},
		Usage: u2, Finish: "stop", ID: "r1", Model: "m",
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Fatalf("%v\n%s", err, diff)
	}
}

func TestCollectError(t *testing.T) {
	broken := &Error{Msg: "cut"}
	got, err := Collect(func(yield func(Chunk, error) bool) {
		_ = yield(Chunk{Text: "par"}, nil) && yield(Chunk{}, broken)
	})
	var me *Error
	if !errors.As(err, &me) || got.Message.Text != "par" {
		t.Fatalf("got %+v, %v", got, err)
	}
}

// TestAccumulatorPieces: how an answer is cut does not matter, and what comes
// out is valid UTF-8.
func TestAccumulatorPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var a Accumulator
		var text string
		args := make([]string, 3)
		for range rapid.IntRange(0, 30).Draw(t, "n") {
			s := string(rapid.SliceOfN(rapid.Byte(), 0, 4).Draw(t, "piece"))
			if i := rapid.IntRange(-1, 2).Draw(t, "where"); i < 0 {
				text += s
				a.Add(Chunk{Text: s})
			} else {
				args[i] += s
				a.Add(Chunk{Call: &CallChunk{Index: i, ID: string(rune('a' + i)), Name: "t", Arguments: s}})
			}
		}
		r := a.Response()
		if r.Message.Text != strings.ToValidUTF8(text, "\uFFFD") {
			t.Fatalf("text %q of %q", r.Message.Text, text)
		}
		for _, c := range r.Message.Calls {
			if !utf8.ValidString(c.Arguments) || c.Arguments != strings.ToValidUTF8(args[c.ID[0]-'a'], "\uFFFD") {
				t.Fatalf("call %+v", c)
			}
		}
	})
}

// TestEstimateText compares with counts of the o200k vocabulary, taken once.
func TestEstimateText(t *testing.T) {
	tests := []struct {
		name  string
		text  string
		truth int
		band  float64
	}{
		{"english", "The runtime keeps an append-only log of every session. Clearing the conversation removes what the model sees, not what was written: a person can still read all of it, and the session keeps its name, its tools and its settings.", 47, 0.15},
		{"go", "func (a *Accumulator) Add(c Chunk) {\n\tif c.Text != \"\" {\n\t\ta.text.WriteString(c.Text)\n\t}\n\tfor i := len(a.calls) - 1; i >= 0; i-- {\n\t\tif a.calls[i].index == c.Index {\n\t\t\treturn\n\t\t}\n\t}\n}\n", 66, 0.15},
		{"json", "{\"type\":\"object\",\"properties\":{\"city\":{\"type\":\"string\",\"description\":\"Name of the city\"},\"days\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":14}},\"required\":[\"city\"],\"additionalProperties\":false}", 46, 0.15},
		{"chinese", "模型调用工具是指语言模型在处理请求时，能够动态调用外部工具以扩展其功能。今天的天气怎么样？", 29, 0.15},
		{"russian", "Сначала мы узнаем название города, затем получаем температуру и возвращаем результат пользователю.", 20, 0.25},
		{"spanish", "Primero buscamos el nombre de la ciudad, después obtenemos la temperatura y por último devolvemos el resultado al usuario.", 24, 0.15},
		{"ids", "0b8f5a52-3c1e-4d0b-9a56-7f1f0c2d3e4a 2026-11-30T15:24:01.123456Z", 51, 0.25},
		{"nothing", "", 0, 0},
	}
	for _, tt := range tests {
		got := EstimateText(tt.text)
		if math.Abs(float64(got-tt.truth)) > tt.band*float64(tt.truth)+0.5 {
			t.Errorf("%s: %d, truth %d", tt.name, got, tt.truth)
		}
	}
	if n := testing.AllocsPerRun(10, func() { EstimateText(tests[0].text) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	req := &Request{Messages: []Message{{Role: User, Text: "hi"}}, Tools: []ToolDef{{Name: "t"}}}
	if got, want := EstimateRequest(req), 3+EstimateMessage(&req.Messages[0])+EstimateTool(&req.Tools[0]); got != want {
		t.Errorf("request %d, want %d", got, want)
	}
}

func FuzzEstimateText(f *testing.F) {
	f.Add("a b\n1,2 é字\xff😀")
	f.Fuzz(func(t *testing.T, s string) {
		n := EstimateText(s)
		if n < 0 || n > 3*len(s) || s != "" && strings.TrimSpace(s) != "" && n == 0 {
			t.Errorf("%d tokens for %d bytes", n, len(s))
		}
	})
}

func BenchmarkEstimateText(b *testing.B) {
	text := strings.Repeat("The session keeps its name, its 12 tools and its settings.\n", 1000)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		EstimateText(text)
	}
}
