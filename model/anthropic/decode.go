package anthropic

import (
	"github.com/transom-run/transom/model/internal/wire"
)

// event is what one event of a stream says. Its bytes are valid until the next
// one is decoded.
type event struct {
	kind    string
	index   int    // of the block
	delta   []byte // a JSON object
	block   []byte
	message []byte
	usage   []byte
	errRaw  []byte
}

// blockDelta is what a delta says. Its texts are JSON texts.
type blockDelta struct {
	kind                           string
	text, thinking, signature, arg []byte
	stop                           string
}

// decoder reads events.
type decoder struct {
	wire.Scanner
	inner wire.Scanner // for the values within
}

func kindOf(b []byte) string {
	for _, k := range [...]string{"content_block_delta", "content_block_start", "content_block_stop", "message_delta", "message_start", "message_stop", "ping", "error",
		"text_delta", "input_json_delta", "thinking_delta", "signature_delta"} {
		if string(b) == k {
			return k
		}
	}
	return string(b)
}

// decode reads an event's data into ev. It returns false where it is not JSON.
func (dec *decoder) decode(data []byte, ev *event) bool {
	*ev = event{}
	dec.Reset(data)
	if dec.Peek() != '{' || !dec.Open('{') {
		return false
	}
	for first := true; dec.More('}', first); first = false {
		switch string(dec.Key()) {
		case "type":
			if b, ok := dec.TextBytes(nil); ok {
				ev.kind = kindOf(b)
			}
		case "index":
			ev.index, _ = dec.Integer()
		case "delta":
			ev.delta = dec.Raw()
		case "content_block":
			ev.block = dec.Raw()
		case "message":
			ev.message = dec.Raw()
		case "usage":
			ev.usage = dec.Raw()
		case "error":
			if dec.Peek() == 'n' { // null
				dec.Skip()
			} else {
				ev.errRaw = dec.Raw()
			}
		default:
			dec.Skip()
		}
	}
	return !dec.Bad()
}

// takeDelta reads the delta of an event.
func (dec *decoder) takeDelta(raw []byte) (d blockDelta) {
	s := &dec.inner
	s.Reset(raw)
	if len(raw) == 0 || !s.Open('{') {
		return d
	}
	for first := true; s.More('}', first); first = false {
		switch string(s.Key()) {
		case "type":
			if b, ok := s.TextBytes(nil); ok {
				d.kind = kindOf(b)
			}
		case "text":
			d.text = s.Raw()
		case "thinking":
			d.thinking = s.Raw()
		case "signature":
			d.signature = s.Raw()
		case "partial_json":
			d.arg = s.Raw()
		case "stop_reason":
			d.stop = s.Text(nil)
		default:
			s.Skip()
		}
	}
	return d
}

// plain reads a text within an event.
func (dec *decoder) plain(raw []byte, half *rune) string {
	if len(raw) == 0 {
		return ""
	}
	dec.inner.Reset(raw)
	return dec.inner.Text(half)
}
