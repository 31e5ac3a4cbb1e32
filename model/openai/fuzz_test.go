package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/transom-run/transom/model"
)

// oracle is a chunk as encoding/json reads it.
type oracle struct {
	ID      *string `json:"id"`
	Choices []struct {
		Delta struct {
			Content   *string `json:"content"`
			ToolCalls []struct {
				ID       *string `json:"id"`
				Function struct {
					Name      *string `json:"name"`
					Arguments *string `json:"arguments"`
				} `json:"function"`
			} `json:"tool_calls"`
		} `json:"delta"`
		FinishReason *string `json:"finish_reason"`
	} `json:"choices"`
}

func str(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// plain reports whether no object in the text has a key twice, or a key that
// encoding/json would match by its letters alone. The two readers may differ
// there.
func plain(data []byte) bool {
	var walk func(dec *json.Decoder) bool
	walk = func(dec *json.Decoder) bool {
		tok, err := dec.Token()
		if err != nil {
			return false
		}
		d, ok := tok.(json.Delim)
		if !ok {
			return true
		}
		seen := map[string]bool{}
		for dec.More() {
			if d == '{' {
				key, err := dec.Token()
				k, _ := key.(string)
				if err != nil || seen[strings.ToLower(k)] || k != strings.ToLower(k) {
					return false
				}
				for _, other := range []string{"message", "refusal", "reasoning", "reasoning_content", "function_call", "ſ", "K"} {
					if strings.Contains(k, other) {
						return false
					}
				}
				seen[strings.ToLower(k)] = true
			}
			if !walk(dec) {
				return false
			}
		}
		_, err = dec.Token()
		return err == nil
	}
	return walk(json.NewDecoder(bytes.NewReader(data)))
}

// FuzzChunk compares the scanner with encoding/json, and checks that nothing in
// a chunk breaks it.
func FuzzChunk(f *testing.F) {
	for _, s := range []string{
		choice(`{"content":"a\u00e9\ud83d\ude00\n"}`), finish("stop"),
		calls(`{"index":0,"id":"c","function":{"name":"n","arguments":"{\"a\":1}"}}`),
		`{"choices":[],"usage":{"prompt_tokens":1e3,"completion_tokens":"7"}}`,
		`{"a":[[{}]],"b":"\\\"","choices":[{"delta":{"content":null}}]}`,
		`{"error":{"message":"x"}}`, `{"id":"\ud83d"}`, "{\"id\":\"\xff\"}", `{`, `{"a":}`, `{"a" "b"}`, `[1,2`, `{"choices":[{"delta":{"content":[{"text":"x"}]}}]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var dec decoder
		var d delta
		ok := dec.decode(data, &d)
		whole := decoder{whole: true}
		var w delta
		whole.decode(data, &w)

		var o oracle
		if !bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("{")) || json.Unmarshal(data, &o) != nil || !plain(data) {
			return
		}
		if !ok {
			t.Fatalf("refused %q", data)
		}
		text, fin := "", ""
		var ids, names, args []string
		for _, c := range o.Choices {
			text += str(c.Delta.Content)
			if s := str(c.FinishReason); s != "" {
				fin = s
			}
			for _, tc := range c.Delta.ToolCalls {
				ids, names, args = append(ids, str(tc.ID)), append(names, str(tc.Function.Name)), append(args, str(tc.Function.Arguments))
			}
		}
		if bytes.Contains(data, []byte(`\u`)) {
			// Halves of characters that meet across texts are joined here only.
			rest, _ := dec.rest()
			if strings.Count(d.text+rest, "\uFFFD") != strings.Count(text, "\uFFFD") {
				return
			}
			d.text += rest
		}
		if d.text != text || d.finish != fin || d.id != str(o.ID) || len(d.calls) < len(ids) {
			t.Fatalf("%q:\ngot  %+v\nwant %q %q %q %d", data, d, text, fin, str(o.ID), len(ids))
		}
		for i := range ids {
			c := d.calls[i]
			if c.id != ids[i] || c.name != names[i] || c.args != args[i] && !bytes.Contains(data, []byte(`\u`)) {
				t.Fatalf("%q: call %d: got %+v, want %q %q %q", data, i, c, ids[i], names[i], args[i])
			}
		}
	})
}

// slow gives a stream out in pieces of n bytes.
type slow struct {
	s string
	n int
}

func (r *slow) Read(b []byte) (int, error) {
	if r.s == "" {
		return 0, io.EOF
	}
	n := copy(b, r.s[:min(r.n, len(r.s), len(b))])
	r.s = r.s[n:]
	return n, nil
}

// FuzzSSE checks that how a stream is cut into reads changes nothing, and that
// data lines come out as they went in.
func FuzzSSE(f *testing.F) {
	f.Add("data: a\n\ndata: b\n\n", 3)
	f.Add("data:a\r\ndata: b\r\n\r\n: c\n\nevent: error\ndata\n\n", 1)
	f.Add("\xef\xbb\xbfdata: "+strings.Repeat("x", 17000)+"\n\ndata: y", 1000)
	f.Fuzz(func(t *testing.T, stream string, n int) {
		if n <= 0 || n > 1<<16 {
			n = 1
		}
		read := func(r io.Reader) (out []string) {
			ev := newEvents(r, 1<<20)
			defer ev.release()
			for {
				data, err := ev.next()
				if err != nil {
					if !errors.Is(err, io.EOF) {
						t.Fatal(err)
					}
					return out
				}
				out = append(out, string(data)+"|"+ev.name)
			}
		}
		whole, pieces := read(strings.NewReader(stream)), read(&slow{stream, n})
		if strings.Join(whole, "\n") != strings.Join(pieces, "\n") || len(whole) != len(pieces) {
			t.Fatalf("whole %q\npieces %q", whole, pieces)
		}
		// The plain reading of the format.
		var want []string
		var data []string
		name := ""
		lines := strings.Split(strings.TrimPrefix(stream, "\xef\xbb\xbf"), "\n")
		for i, line := range lines {
			line = strings.TrimSuffix(line, "\r")
			last := i == len(lines)-1
			if line == "" || last {
				if v, ok := strings.CutPrefix(line, "data:"); ok && last {
					data = append(data, strings.TrimPrefix(v, " "))
				} else if line == "data" && last {
					data = append(data, "")
				}
				if data != nil {
					want = append(want, strings.Join(data, "\n"))
				}
				data, name = nil, ""
				continue
			}
			if v, ok := strings.CutPrefix(line, "data:"); ok {
				data = append(data, strings.TrimPrefix(v, " "))
			} else if line == "data" {
				data = append(data, "")
			}
		}
		_ = name
		if len(want) != len(whole) {
			t.Fatalf("%q: got %q, want %q", stream, whole, want)
		}
		for i := range want {
			if got := whole[i][:strings.LastIndexByte(whole[i], '|')]; got != want[i] {
				t.Fatalf("%q: got %q, want %q", stream, got, want[i])
			}
		}
	})
}

// FuzzEscape: what is written is JSON, and encoding/json reads the same text.
func FuzzEscape(f *testing.F) {
	f.Add("a\"\\\n\x00\x7f\xffé😀\u2028")
	f.Fuzz(func(t *testing.T, s string) {
		var got string
		if err := json.Unmarshal(appendString(nil, s), &got); err != nil || got != strings.ToValidUTF8(s, "\uFFFD") && !sameRunes(got, s) {
			t.Fatalf("%q: got %q, %v", s, got, err)
		}
	})
}

// sameRunes compares where each bad byte is one replacement (ToValidUTF8 makes
// one of a run).
func sameRunes(got, s string) bool { return got == string([]rune(s)) }

// FuzzAnswer: no stream breaks the provider's reading, and calls come out whole.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(sse(calls(`{"index":0,"function":{"name":"x"}}`), "[DONE]")))
	f.Add([]byte(sse(choice(`{"content":"a"}`), finish("stop"))))
	p, err := New(Config{BaseURL: "http://x"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var acc model.Accumulator
		ids := map[string]bool{}
		a := attempt{p: p, req: ask, yield: func(c model.Chunk, err error) bool {
			if c.Call != nil && c.Call.ID != "" {
				if ids[c.Call.ID] || c.Call.ID == "taken" {
					t.Fatalf("id %q twice", c.Call.ID)
				}
				ids[c.Call.ID] = true
			}
			acc.Add(c)
			return true
		}}
		a.calls = tracker{req: ask, newID: randomID, emit: a.emitCall}
		if a.readStream(bytes.NewReader(data)) == nil {
			a.end()
		}
		for _, c := range acc.Response().Message.Calls {
			if c.ID == "" {
				t.Fatalf("a call without an id in %q", data)
			}
		}
	})
}
