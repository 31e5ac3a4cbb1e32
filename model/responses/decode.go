package responses

import (
	"github.com/transom-run/transom/model/internal/wire"
)

// event is what one event of a stream says. Its bytes are valid until the next
// one is decoded.
type event struct {
	kind     string
	index    int // of the item
	hasIndex bool
	part     int // of a summary
	itemID   []byte
	delta    []byte // a JSON text
	done     []byte // the whole text, in the event that ends it; a JSON text
	item     []byte
	response []byte
	errRaw   []byte
}

// decoder reads events.
type decoder struct {
	wire.Scanner
	text wire.Scanner // for the texts within
}

// kinds are the events that matter; a stream holds many of the first ones.
var kinds = []string{
	"response.output_text.delta", "response.function_call_arguments.delta",
	"response.reasoning_summary_text.delta", "response.reasoning_text.delta", "response.refusal.delta",
	"response.output_text.done", "response.refusal.done", "response.function_call_arguments.done",
	"response.reasoning_summary_text.done", "response.reasoning_text.done", "response.reasoning_summary_part.added",
	"response.output_item.added", "response.output_item.done",
	"response.created", "response.in_progress", "response.completed", "response.incomplete", "response.failed", "error",
}

func kindOf(b []byte) string {
	for _, k := range kinds {
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
		case "output_index":
			ev.index, ev.hasIndex = dec.Integer()
		case "summary_index":
			ev.part, _ = dec.Integer()
		case "item_id":
			ev.itemID = dec.Raw()
		case "delta":
			ev.delta = dec.Raw()
		case "text", "refusal", "arguments":
			ev.done = dec.Raw()
		case "item":
			ev.item = dec.Raw()
		case "response":
			ev.response = dec.Raw()
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

// plain reads a text within an event.
func (dec *decoder) plain(raw []byte, half *rune) string {
	if len(raw) == 0 {
		return ""
	}
	dec.text.Reset(raw)
	return dec.text.Text(half)
}
