package tokens

import (
	"bufio"
	"encoding/json"
	"flag"
	"os"
	"slices"
	"testing"
)

var against = flag.String("against", "testdata/vectors.jsonl", "texts with the tokens that tiktoken makes of them")

// vector is a text and its tokens.
type vector struct {
	Text   string   `json:"text"`
	O200k  []uint32 `json:"o200k"`
	CL100k []uint32 `json:"cl100k"`
}

// TestTokensAreTiktokens holds every token against what tiktoken 0.14.0, OpenAI's own
// library, makes of the same text (testdata/vectors.py wrote the file).
func TestTokensAreTiktokens(t *testing.T) {
	f, err := os.Open(*against)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 64<<20)
	n, failed := 0, 0
	for lines.Scan() {
		var v vector
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		n++
		for _, c := range []struct {
			h    *holder
			want []uint32
		}{{&o200k, v.O200k}, {&cl100k, v.CL100k}} {
			if got := c.h.get().tokens(v.Text); !slices.Equal(got, c.want) && failed < 20 {
				failed++
				t.Errorf("%.200q\n got %v\nwant %v", v.Text, got, c.want)
			}
		}
	}
	if err := lines.Err(); err != nil || n < 100 {
		t.Fatalf("%d texts: %v", n, err)
	}
}

// tokens are the ranks of a text's tokens.
func (v *vocabulary) tokens(text string) (out []uint32) {
	work := new(merging)
	for i := 0; i < len(text); {
		j := v.next(text, i)
		work.piece = append(work.piece[:0], text[i:j]...)
		out = v.encode(out, work)
		i = j
	}
	return out
}
