package openai

import "github.com/transom-run/transom/model"

// fragment is a piece of a tool call as it stands in a chunk.
type fragment struct {
	choice   int
	index    int
	hasIndex bool
	id, name string
	args     string
}

// delta is what one event of a stream, or one whole answer, says.
type delta struct {
	id, model string
	choices   int
	text      string
	reasoning string
	finish    string
	calls     []fragment
	usage     *model.Usage
	errRaw    []byte // of "error"; nil where there is none
}

// decoder reads deltas. It keeps what lasts over a stream: halves of characters
// and the names that each chunk repeats.
type decoder struct {
	scanner
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
	dec.reset(data)
	for !dec.bad && dec.peek() != 0 {
		if dec.peek() != '{' {
			return false
		}
		dec.object(d)
	}
	return !dec.bad
}

func (dec *decoder) object(d *delta) {
	if !dec.open('{') {
		return
	}
	for first := true; dec.more('}', first); first = false {
		switch string(dec.key()) {
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
		case "error":
			if dec.peek() == 'n' { // null
				dec.skip()
			} else {
				d.errRaw = dec.raw()
			}
		default:
			dec.skip()
		}
	}
}

// same reads a text that is mostly the one before it.
func (dec *decoder) same(before string) string {
	seg, ok := dec.textBytes(nil)
	if ok && string(seg) == before {
		return before
	}
	return string(seg)
}

func (dec *decoder) choices(d *delta) {
	if !dec.open('[') {
		return
	}
	for first := true; dec.more(']', first); first = false {
		dec.choice = 0
		if dec.whole {
			dec.choice = d.choices
		}
		d.choices++
		dec.oneChoice(d)
	}
}

func (dec *decoder) oneChoice(d *delta) {
	if !dec.open('{') {
		return
	}
	for first := true; dec.more('}', first); first = false {
		switch string(dec.key()) {
		case "index":
			if n, ok := dec.integer(); ok && !dec.whole {
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
			dec.skip()
		}
	}
}

// finish returns the usual reasons without allocating.
func (dec *decoder) finish() string {
	seg, ok := dec.textBytes(nil)
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
	if !dec.open('{') {
		return
	}
	text, reasoning, refusal := "", "", ""
	for first := true; dec.more('}', first); first = false {
		switch string(dec.key()) {
		case "content":
			if dec.peek() == '[' {
				t, r := dec.parts()
				text += t
				reasoning += r
			} else {
				text += dec.text(&dec.textHalf)
			}
		case "refusal":
			refusal += dec.text(nil)
		case "reasoning_content", "reasoning":
			// Some servers send both, with the same text.
			if r := dec.text(&dec.thinkHalf); r != reasoning {
				reasoning += r
			}
		case "tool_calls":
			dec.calls(d)
		case "function_call":
			if dec.peek() == '{' {
				f := fragment{choice: dec.choice, hasIndex: !dec.whole}
				dec.function(&f)
				d.calls = append(d.calls, f)
			} else {
				dec.skip()
			}
		default:
			dec.skip()
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

// parts reads content in the form of a list.
func (dec *decoder) parts() (text, reasoning string) {
	if !dec.open('[') {
		return "", ""
	}
	for first := true; dec.more(']', first); first = false {
		if dec.peek() == '"' {
			text += dec.text(&dec.textHalf)
			continue
		}
		if !dec.open('{') {
			continue
		}
		for first := true; dec.more('}', first); first = false {
			switch string(dec.key()) {
			case "text", "refusal":
				text += dec.text(&dec.textHalf)
			case "thinking":
				if dec.peek() == '[' {
					inner, _ := dec.parts()
					reasoning += inner
				} else {
					reasoning += dec.text(&dec.thinkHalf)
				}
			default:
				dec.skip()
			}
		}
	}
	return text, reasoning
}

func (dec *decoder) calls(d *delta) {
	if !dec.open('[') {
		return
	}
	for first := true; dec.more(']', first); first = false {
		f := fragment{choice: dec.choice}
		if !dec.open('{') {
			continue
		}
		for first := true; dec.more('}', first); first = false {
			switch string(dec.key()) {
			case "index":
				n, ok := dec.integer()
				if ok && !dec.whole {
					f.index, f.hasIndex = n, true
				}
			case "id":
				f.id = dec.text(nil)
			case "function":
				dec.function(&f)
			default:
				dec.skip()
			}
		}
		d.calls = append(d.calls, f)
	}
}

func (dec *decoder) function(f *fragment) {
	if !dec.open('{') {
		return
	}
	for first := true; dec.more('}', first); first = false {
		switch string(dec.key()) {
		case "name":
			f.name = dec.text(nil)
		case "arguments":
			switch dec.peek() {
			case '"':
				f.args = dec.arguments(f)
			case 'n': // null
				dec.skip()
			default: // an object where a text is due
				f.args = string(dec.raw())
			}
		default:
			dec.skip()
		}
	}
}

// arguments reads a fragment of arguments. A half of a character waits for the
// next fragment of the same call.
func (dec *decoder) arguments(f *fragment) string {
	key := [2]int{f.choice, f.index}
	half := dec.argsHalf[key]
	if half == nil {
		if dec.whole {
			return dec.text(nil)
		}
		half = new(rune)
	}
	s := dec.text(half)
	if *half != 0 {
		if dec.argsHalf == nil {
			dec.argsHalf = make(map[[2]int]*rune)
		}
		dec.argsHalf[key] = half
	}
	return s
}

func (dec *decoder) usage(d *delta) {
	if dec.peek() != '{' {
		dec.skip()
		return
	}
	u := new(model.Usage)
	dec.open('{')
	for first := true; dec.more('}', first); first = false {
		switch string(dec.key()) {
		case "prompt_tokens":
			u.InputTokens, _ = dec.integer()
		case "completion_tokens":
			u.OutputTokens, _ = dec.integer()
		case "prompt_tokens_details", "completion_tokens_details":
			dec.usageDetails(u)
		case "prompt_cache_hit_tokens":
			u.CacheReadTokens, _ = dec.integer()
		case "cache_creation_input_tokens":
			u.CacheWriteTokens, _ = dec.integer()
		default:
			dec.skip()
		}
	}
	d.usage = u
}

func (dec *decoder) usageDetails(u *model.Usage) {
	if !dec.open('{') {
		return
	}
	for first := true; dec.more('}', first); first = false {
		switch string(dec.key()) {
		case "cached_tokens":
			u.CacheReadTokens, _ = dec.integer()
		case "cache_write_tokens", "cache_creation_tokens":
			u.CacheWriteTokens, _ = dec.integer()
		case "reasoning_tokens":
			u.ReasoningTokens, _ = dec.integer()
		default:
			dec.skip()
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
