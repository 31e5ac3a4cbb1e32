package tokens

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/transom-run/transom/model"
)

// texts are those by which the estimates are measured, with the tokens that
// js-tiktoken counts in them.
func texts(t testing.TB) (counts map[string]struct{ O200k, CL100k int }, text func(string) string) {
	const dir = "../testdata/estimate"
	raw, err := os.ReadFile(filepath.Join(dir, "counts.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &counts); err != nil || len(counts) < 18 {
		t.Fatalf("%d texts: %v", len(counts), err)
	}
	return counts, func(name string) string {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
}

// TestCountOfTexts: whole texts come to what another implementation counts.
func TestCountOfTexts(t *testing.T) {
	counts, text := texts(t)
	for name, want := range counts {
		s := text(name)
		if got := O200k.Count(s); got != want.O200k {
			t.Errorf("%s: %d tokens of o200k_base, want %d", name, got, want.O200k)
		}
		if got := CL100k.Count(s); got != want.CL100k {
			t.Errorf("%s: %d tokens of cl100k_base, want %d", name, got, want.CL100k)
		}
	}
	if n := Encoding("").Count("text"); n != 0 {
		t.Errorf("an unknown encoding counts %d", n)
	}
}

// TestOf: names of models, as providers and gateways write them.
func TestOf(t *testing.T) {
	for name, want := range map[string]Encoding{
		"gpt-4o": O200k, "gpt-4o-mini-2024-07-18": O200k, "chatgpt-4o-latest": O200k, "gpt-4.1": O200k, "gpt-4.1-nano": O200k,
		"gpt-5": O200k, "gpt-5.1-codex-mini": O200k, "GPT-5": O200k, "openai/gpt-5-mini": O200k, "o1": O200k, "o1-pro": O200k, "o3-mini": O200k,
		"o4-mini": O200k, "gpt-oss-120b": O200k, "openai/gpt-oss-20b:free": O200k, "gpt-oss:20b": O200k, "ft:gpt-4o-mini:me::id": O200k,
		"gpt-4": CL100k, "gpt-4-turbo": CL100k, "gpt-4-0314": CL100k, "gpt-3.5-turbo-16k": CL100k, "gpt-35-turbo": CL100k, "ft:gpt-4:me": CL100k,
		"": "", "gpt-40": "", "gpt-6": "", "o10": "", "claude-sonnet-4.5": "", "qwen3": "", "llama3": "", "openai/": "", "o1/x": "",
	} {
		if got := Of(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
	for name, want := range map[string]Encoding{"o200k_base": O200k, "o200k_harmony": O200k, "cl100k_base": CL100k, "p50k_base": "", "": ""} {
		if got := Named(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

// TestASCII: the quick way says what Unicode's tables say.
func TestASCII(t *testing.T) {
	for c := range byte(utf8.RuneSelf) {
		if got, want := ascii(c), kindOf(rune(c)); got != want {
			t.Errorf("%q is of kind %d, want %d", c, got, want)
		}
	}
}

// TestCounter: a request is the sum of its texts and of what stands around them, as
// in an estimate; what was counted is remembered, and what has left the conversation is
// forgotten.
func TestCounter(t *testing.T) {
	long := strings.Repeat("The quick brown fox. ", 20)
	messages := []model.Message{
		{Role: model.User, Text: long, Images: []model.Image{{Name: "a picture"}}},
		{Role: model.Assistant, Calls: []model.Call{{ID: "c1", Name: "search", Arguments: `{"q":"x"}`}}},
	}
	tools := []model.ToolDef{{Name: "search", Description: long, Parameters: json.RawMessage(`{"type":"object"}`)}}
	var c Counter
	got, err := c.Count(t.Context(), O200k, "You help.", messages, tools)
	count := O200k.Count
	want := Size{
		System:   count("You help."),
		Messages: 4 + count(long) + 800 + count("a picture") + 4 + 8 + count("search") + count(`{"q":"x"}`),
		Tools:    10 + count("search") + count(long) + count(`{"type":"object"}`),
	}
	if err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	if len(c.seen) != 1 {
		t.Errorf("%d texts are remembered, not one", len(c.seen))
	}
	for key := range c.seen { // what is remembered is what counts
		c.seen[key] += 1000
	}
	if got, _ = c.Count(t.Context(), O200k, "", messages[:1], nil); got.Messages != 4+count(long)+1000+800+count("a picture") {
		t.Errorf("a text was counted again: %+v", got)
	}
	if got, _ = c.Count(t.Context(), CL100k, "", messages[:1], nil); got.Messages != 4+CL100k.Count(long)+800+CL100k.Count("a picture") {
		t.Errorf("the count of another encoding was taken: %+v", got)
	}
	if got, _ = c.Count(t.Context(), O200k, "You help.", nil, nil); got != (Size{System: want.System}) || len(c.seen) != 0 {
		t.Errorf("%+v, and %d texts are remembered", got, len(c.seen))
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("over"))
	if got, err = c.Count(ctx, O200k, long, nil, nil); err == nil || got != (Size{}) {
		t.Errorf("%+v, %v after its context has ended", got, err)
	}
	if got, err = c.Count(t.Context(), "", long, messages, tools); err != nil || got != (Size{}) {
		t.Errorf("an unknown encoding: %+v, %v", got, err)
	}
}

// TestVocabularyGoes: a vocabulary that nobody counts with takes no memory, and comes
// back.
func TestVocabularyGoes(t *testing.T) {
	h := holder{packed: cl100kPacked, next: nextCL100k}
	if n := h.get().count("hello world", new(merging)); n != 2 {
		t.Errorf("%d tokens", n)
	}
	for range 10 {
		runtime.GC()
		if h.kept.Value() == nil {
			break
		}
	}
	if h.kept.Value() != nil {
		t.Error("the vocabulary is still there after ten collections")
	}
	if n := h.get().count("hello world", new(merging)); n != 2 {
		t.Errorf("%d tokens with the vocabulary unpacked anew", n)
	}
}

// TestLongPieces: a text that is one piece takes no more than its length and a little.
func TestLongPieces(t *testing.T) {
	for _, s := range []string{strings.Repeat("a", 1<<17), strings.Repeat("日本", 1<<14), strings.Repeat(" ", 1<<16), strings.Repeat("=", 1<<16), strings.Repeat("\xff", 1<<15)} {
		if n := O200k.Count(s); n < 1 || n > len(s) {
			t.Errorf("%.10q: %d tokens", s, n)
		}
	}
}

// FuzzCount: the tokens of any text, put together, are the text.
func FuzzCount(f *testing.F) {
	for _, s := range []string{"", "hello world", "don't 'S", "\r\n  x \t", "日A", "a\u0301b", "1234567", "\xff\xfe", "x'ſ", "//\n/", strings.Repeat("ab", 100)} {
		f.Add(s)
	}
	vs := []*vocabulary{o200k.get(), cl100k.get()}
	f.Fuzz(func(t *testing.T, s string) {
		for _, v := range vs {
			var b strings.Builder
			for _, rank := range v.tokens(s) {
				if rank == none {
					t.Fatalf("%q has a token that there is not", s)
				}
				b.Write(v.token(rank))
			}
			if b.String() != s {
				t.Fatalf("%q became %q", s, b.String())
			}
		}
		for i := 0; i < len(s); {
			j := nextO200k(s, i)
			if k := nextCL100k(s, i); j <= i || k <= i || utf8.ValidString(s) && !utf8.ValidString(s[i:j]) {
				t.Fatalf("%q: the piece at %d ends at %d and %d", s, i, j, k)
			}
			i = j
		}
	})
}

func BenchmarkCount(b *testing.B) {
	counts, text := texts(b)
	var all strings.Builder
	for name := range counts {
		all.WriteString(text(name))
	}
	s := all.String()
	v := o200k.get()
	b.SetBytes(int64(len(s)))
	b.ReportAllocs()
	work := new(merging)
	for b.Loop() {
		v.count(s, work)
	}
}

func BenchmarkUnpack(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		h := holder{packed: o200kPacked, next: nextO200k}
		h.get()
	}
}
