package openai

import (
	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/model/internal/wire"
)

// delta is what one event of a stream, or one whole answer, says.
type delta struct {
	id, model string
	choices   int
	text      string
	reasoning string
	field     string // the reasoning's
	opaque    string
	finish    string
	calls     []wire.Fragment
	usage     *model.Usage
	charge    int64  // what the provider charges; see wire.Charge
	errRaw    []byte // of "error"; nil where there is none
}

// decoder reads deltas. It keeps what lasts over a stream: halves of characters
// and the names that each chunk repeats.
type decoder struct {
	wire.Scanner
	whole     bool // answers that are not streamed: messages, not deltas
	textHalf  rune
	thinkHalf rune
	argsHalf  map[[2]int]*rune // by choice and index; most streams have none
	id, model string
	choice    int // while a choice is read
}

// decode reads an event's data into d. It returns false where it is not JSON.
// Several values after one another count as one event.
func (dec *decoder) decode(data []byte, d *delta) bool {
	*d = delta{calls: d.calls[:0]}
	dec.Reset(data)
	for !dec.Bad() && dec.Peek() != 0 {
		if dec.Peek() != '{' {
			return false
		}
		dec.object(d)
	}
	return !dec.Bad()
}

func (dec *decoder) object(d *delta) {
	if !dec.Open('{') {
		return
	}
	for first := true; dec.More('}', first); first = false {
		switch string(dec.Key()) {
		case "choices":
			dec.choices(d)
		case "id":
			dec.id = dec.same(dec.id)
			d.id = dec.id
		case "model":
			dec.model = dec.same(dec.model)
			d.model = dec.model
		case "usage":
			dec.usage(d)
		case "copilot_usage":
			d.charge = wire.Charge(dec.Raw())
		case "error":
			if dec.Peek() == 'n' { // null
				dec.Skip()
			} else {
				d.errRaw = dec.Raw()
			}
		default:
			dec.Skip()
		}
	}
}

// same reads a text that is mostly the one before it.
func (dec *decoder) same(before string) string {
	seg, ok := dec.TextBytes(nil)
	if ok && string(seg) == before {
		return before
	}
	return string(seg)
}

func (dec *decoder) choices(d *delta) {
	if !dec.Open('[') {
		return
	}
	for first := true; dec.More(']', first); first = false {
		dec.choice = 0
		if dec.whole {
			dec.choice = d.choices
		}
		d.choices++
		dec.oneChoice(d)
	}
}

func (dec *decoder) oneChoice(d *delta) {
	if !dec.Open('{') {
		return
	}
	for first := true; dec.More('}', first); first = false {
		switch string(dec.Key()) {
		case "index":
			if n, ok := dec.Integer(); ok && !dec.whole {
				dec.choice = n
			}
		case "delta", "message":
			dec.message(d)
		case "finish_reason":
			if f := dec.finish(); f != "" {
				d.finish = f
			}
		case "usage":
			dec.usage(d)
		default:
			dec.Skip()
		}
	}
}

// finish returns the usual reasons without allocating.
func (dec *decoder) finish() string {
	seg, ok := dec.TextBytes(nil)
	if !ok {
		return ""
	}
	switch string(seg) {
	case "stop":
		return "stop"
	case "tool_calls":
		return "tool_calls"
	case "length":
		return "length"
	}
	return string(seg)
}

func (dec *decoder) message(d *delta) {
	if !dec.Open('{') {
		return
	}
	text, reasoning, refusal := "", "", ""
	for first := true; dec.More('}', first); first = false {
		switch string(dec.Key()) {
		case "content":
			if dec.Peek() == '[' {
				t, r := dec.parts()
				text += t
				reasoning += r
			} else {
				text += dec.Text(&dec.textHalf)
			}
		case "refusal":
			refusal += dec.Text(nil)
		case "reasoning_content":
			reasoning = dec.reasoning(d, "reasoning_content", reasoning)
		case "reasoning":
			reasoning = dec.reasoning(d, "reasoning", reasoning)
		case "reasoning_text":
			reasoning = dec.reasoning(d, "reasoning_text", reasoning)
		case "reasoning_opaque":
			if o := dec.Text(nil); o != "" {
				d.opaque = o
			}
		case "tool_calls":
			dec.calls(d)
		case "function_call":
			if dec.Peek() == '{' {
				f := wire.Fragment{Choice: dec.choice, HasIndex: !dec.whole}
				dec.function(&f)
				d.calls = append(d.calls, f)
			} else {
				dec.Skip()
			}
		default:
			dec.Skip()
		}
	}
	if text == "" {
		text = refusal
	}
	if dec.whole && text != "" && d.text != "" {
		d.text += "\n\n" // of another choice
	}
	if d.text == "" {
		d.text = text
	} else {
		d.text += text
	}
	d.reasoning += reasoning
}

// reasoning reads a piece of reasoning from one of the fields that servers use.
// Some send two of them, with the same text.
func (dec *decoder) reasoning(d *delta, field, before string) string {
	r := dec.Text(&dec.thinkHalf)
	if r == "" || r == before {
		return before
	}
	if d.field == "" {
		d.field = field
	}
	return before + r
}

// parts reads content in the form of a list.
func (dec *decoder) parts() (text, reasoning string) {
	if !dec.Open('[') {
		return "", ""
	}
	for first := true; dec.More(']', first); first = false {
		if dec.Peek() == '"' {
			text += dec.Text(&dec.textHalf)
			continue
		}
		if !dec.Open('{') {
			continue
		}
		for first := true; dec.More('}', first); first = false {
			switch string(dec.Key()) {
			case "text", "refusal":
				text += dec.Text(&dec.textHalf)
			case "thinking":
				if dec.Peek() == '[' {
					inner, _ := dec.parts()
					reasoning += inner
				} else {
					reasoning += dec.Text(&dec.thinkHalf)
				}
			default:
				dec.Skip()
			}
		}
	}
	return text, reasoning
}

func (dec *decoder) calls(d *delta) {
	if !dec.Open('[') {
		return
	}
	for first := true; dec.More(']', first); first = false {
		f := wire.Fragment{Choice: dec.choice}
		if !dec.Open('{') {
			continue
		}
		for first := true; dec.More('}', first); first = false {
			switch string(dec.Key()) {
			case "index":
				n, ok := dec.Integer()
				if ok && !dec.whole {
					f.Index, f.HasIndex = n, true
				}
			case "id":
				f.ID = dec.Text(nil)
			case "function":
				dec.function(&f)
			default:
				dec.Skip()
			}
		}
		d.calls = append(d.calls, f)
	}
}

func (dec *decoder) function(f *wire.Fragment) {
	if !dec.Open('{') {
		return
	}
	for first := true; dec.More('}', first); first = false {
		switch string(dec.Key()) {
		case "name":
			f.Name = dec.Text(nil)
		case "arguments":
			switch dec.Peek() {
			case '"':
				f.Args = dec.arguments(f)
			case 'n': // null
				dec.Skip()
			default: // an object where a text is due
				f.Args = string(dec.Raw())
			}
		default:
			dec.Skip()
		}
	}
}

// arguments reads a fragment of arguments. A half of a character waits for the
// next fragment of the same call.
func (dec *decoder) arguments(f *wire.Fragment) string {
	key := [2]int{f.Choice, f.Index}
	half := dec.argsHalf[key]
	if half == nil {
		if dec.whole {
			return dec.Text(nil)
		}
		half = new(rune)
	}
	s := dec.Text(half)
	if *half != 0 {
		if dec.argsHalf == nil {
			dec.argsHalf = make(map[[2]int]*rune)
		}
		dec.argsHalf[key] = half
	}
	return s
}

func (dec *decoder) usage(d *delta) {
	if dec.Peek() != '{' {
		dec.Skip()
		return
	}
	u := new(model.Usage)
	dec.Open('{')
	for first := true; dec.More('}', first); first = false {
		switch string(dec.Key()) {
		case "prompt_tokens":
			u.InputTokens, _ = dec.Integer()
		case "completion_tokens":
			u.OutputTokens, _ = dec.Integer()
		case "prompt_tokens_details", "completion_tokens_details":
			dec.usageDetails(u)
		case "prompt_cache_hit_tokens":
			u.CacheReadTokens, _ = dec.Integer()
		case "cache_creation_input_tokens":
			u.CacheWriteTokens, _ = dec.Integer()
		default:
			dec.Skip()
		}
	}
	d.usage = u
}

func (dec *decoder) usageDetails(u *model.Usage) {
	if !dec.Open('{') {
		return
	}
	for first := true; dec.More('}', first); first = false {
		switch string(dec.Key()) {
		case "cached_tokens":
			u.CacheReadTokens, _ = dec.Integer()
		case "cache_write_tokens", "cache_creation_tokens":
			u.CacheWriteTokens, _ = dec.Integer()
		case "reasoning_tokens":
			u.ReasoningTokens, _ = dec.Integer()
		default:
			dec.Skip()
		}
	}
}

// rest returns the half characters that never got their other half, as U+FFFD.
func (dec *decoder) rest() (text, reasoning string) {
	if dec.textHalf != 0 {
		text = "\uFFFD"
	}
	if dec.thinkHalf != 0 {
		reasoning = "\uFFFD"
	}
	return text, reasoning
}
