package tokens

import (
	"context"
	"hash/maphash"
	"strings"
	"sync"

	"github.com/transom-run/transom/model"
)

// Encoding is how a family of models cuts text into tokens; "" is not known.
type Encoding string

// The encodings that are known here.
const (
	O200k  Encoding = "o200k_base"  // GPT-4o and later, o1, o3, o4, gpt-oss
	CL100k Encoding = "cl100k_base" // GPT-4, GPT-3.5
)

var (
	o200k  = holder{packed: o200kPacked, next: nextO200k}
	cl100k = holder{packed: cl100kPacked, next: nextCL100k}
)

func (e Encoding) holder() *holder {
	switch e {
	case O200k:
		return &o200k
	case CL100k:
		return &cl100k
	}
	return nil
}

// Named returns the encoding of a name, as GitHub's list of models has it in
// capabilities.tokenizer: "" where it is not one of those known here. o200k_harmony
// differs from o200k_base in tokens that no text has.
func Named(name string) Encoding {
	switch e := Encoding(name); e {
	case O200k, CL100k:
		return e
	case "o200k_harmony":
		return O200k
	}
	return ""
}

// families are the beginnings of names of models, as tiktoken lists them. A name is of
// a family where it is that, or goes on with a dash, dot or colon; longer ones go first.
var families = []struct {
	name     string
	encoding Encoding
}{
	{"chatgpt-4o", O200k}, {"gpt-4o", O200k}, {"gpt-4.1", O200k}, {"gpt-4.5", O200k}, {"gpt-5", O200k},
	{"gpt-oss", O200k}, {"o1", O200k}, {"o3", O200k}, {"o4-mini", O200k},
	{"gpt-4", CL100k}, {"gpt-3.5", CL100k}, {"gpt-35", CL100k},
}

// Of returns the encoding of a model by its name: "gpt-4o-2024-08-06",
// "openai/gpt-5-mini" (as gateways name it), "ft:gpt-4o:org" (a fine-tuned one). ""
// where it is not known.
func Of(modelID string) Encoding {
	name := strings.TrimPrefix(strings.ToLower(modelID[strings.LastIndexByte(modelID, '/')+1:]), "ft:")
	for _, f := range families {
		if rest, ok := strings.CutPrefix(name, f.name); ok && (rest == "" || strings.ContainsRune("-.:", rune(rest[0]))) {
			return f.encoding
		}
	}
	return ""
}

// Count returns how many tokens a text is, taken as text throughout: what looks like
// one of a model's special tokens is none. 0 for an encoding that is not known.
func (e Encoding) Count(text string) int {
	h := e.holder()
	if h == nil {
		return 0
	}
	return h.get().count(text, new(merging))
}

func (v *vocabulary) count(text string, work *merging) int {
	n := 0
	for i := 0; i < len(text); {
		j := v.next(text, i)
		work.piece = append(work.piece[:0], text[i:j]...)
		work.out = v.encode(work.out[:0], work)
		n += len(work.out)
		i = j
	}
	return n
}

// Size is the tokens of a request, by what they are for.
type Size struct{ System, Messages, Tools int }

// A Counter counts requests of a conversation that grows. It remembers what the texts
// of the conversation came to, so that only new ones are counted. The zero Counter is
// ready for use, by any number of goroutines.
type Counter struct {
	mu   sync.Mutex
	seed maphash.Seed
	seen map[text]int32
}

// text is what is remembered of a text.
type text struct {
	encoding Encoding
	hash     uint64
	length   int
}

// remembered is the length in bytes from which texts are remembered: counting a shorter
// one is as fast.
const remembered = 64

// Count counts a request: the system message, the messages behind it, and the tools.
// It ends early where ctx does.
func (c *Counter) Count(ctx context.Context, e Encoding, system string, messages []model.Message, tools []model.ToolDef) (Size, error) {
	h := e.holder()
	if h == nil {
		return Size{}, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.seen
	if before == nil {
		c.seed = maphash.MakeSeed()
	}
	c.seen = make(map[text]int32, len(before)) // without what is no longer in the conversation
	var v *vocabulary                          // kept for as long as this counts
	work := new(merging)
	count := func(s string) int {
		if s == "" || ctx.Err() != nil {
			return 0
		}
		key := text{e, 0, len(s)}
		if len(s) >= remembered {
			key.hash = maphash.String(c.seed, s)
			n, ok := before[key]
			if !ok {
				n, ok = c.seen[key]
			}
			if ok {
				c.seen[key] = n
				return int(n)
			}
		}
		if v == nil {
			v = h.get()
		}
		n := v.count(s, work)
		if len(s) >= remembered {
			c.seen[key] = int32(n)
		}
		return n
	}
	size := Size{System: count(system)}
	for i := range messages {
		size.Messages += model.SizeOfMessage(&messages[i], count)
	}
	for i := range tools {
		size.Tools += model.SizeOfTool(&tools[i], count)
	}
	if err := ctx.Err(); err != nil {
		c.seen = before
		return Size{}, err
	}
	return size, nil
}
