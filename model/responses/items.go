package responses

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/transom-run/transom/internal/jsonstring"
	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/model/internal/wire"
)

// item is an item of the answer: a message, a call, or reasoning.
type item struct {
	index int // on the wire; some servers give it twice
	seq   int // among the items
	id    string
	kind  string // "", until it is known
	told  bool   // its text, or its arguments, were passed on
	parts bool   // in pieces
	whole bool   // it is complete
	part  int    // the part of a summary that was told last
	call  int    // which call it is, from 1; 0: none yet
	half  rune   // of its arguments
	keep  []byte // reasoning to be sent back
}

// maxItems bounds the items of an answer.
const maxItems = 10_000

// item finds the item of an event: by its index, else by its id; else the newest
// is meant.
func (a *attempt) item(ev *event) *item {
	if ev.hasIndex {
		return a.at(ev.index)
	}
	if id := ev.itemID; len(id) > 2 {
		for _, it := range a.items {
			if it.id == string(id[1:len(id)-1]) {
				return it
			}
		}
	}
	if it := a.byWireID(ev.item); it != nil {
		return it
	}
	if len(ev.item) > 0 || len(a.items) == 0 {
		return a.at(len(a.items))
	}
	return a.items[len(a.items)-1]
}

// byWireID finds the item that another form of it names by its id.
func (a *attempt) byWireID(raw []byte) *item {
	var w struct {
		ID string `json:"id"`
	}
	if len(raw) == 0 || json.Unmarshal(raw, &w) != nil || w.ID == "" {
		return nil
	}
	for _, it := range a.items {
		if it.id == w.ID {
			return it
		}
	}
	return nil
}

// at returns the newest item of an output index, and makes it where there is
// none.
func (a *attempt) at(index int) *item {
	for i := len(a.items) - 1; i >= 0; i-- {
		if a.items[i].index == index {
			return a.items[i]
		}
	}
	return a.fresh(index)
}

// fresh makes an item: whatever has that index so far is over.
func (a *attempt) fresh(index int) *item {
	it := &item{index: index, seq: len(a.items)}
	if len(a.items) < maxItems {
		a.items = append(a.items, it)
	}
	return it
}

// wireItem is an item as the wire has it.
type wireItem struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Content   json.RawMessage `json:"content"`
	Summary   json.RawMessage `json:"summary"`
	Encrypted string          `json:"encrypted_content"`
}

// wirePart is a part of a message's content or of a summary.
type wirePart struct {
	Type    string `json:"type"`
	Text    string `json:"text"`
	Refusal string `json:"refusal"`
}

func parts(raw json.RawMessage) []wirePart {
	var list []wirePart
	if len(raw) == 0 || raw[0] != '[' || json.Unmarshal(raw, &list) != nil {
		var text string
		if json.Unmarshal(raw, &text) == nil && text != "" {
			return []wirePart{{Text: text}}
		}
		return nil
	}
	return list
}

// begin takes the start of an item.
func (a *attempt) begin(it *item, raw []byte) {
	var w wireItem
	if len(raw) == 0 || json.Unmarshal(raw, &w) != nil {
		return // what it is stands in its other events too
	}
	if it.kind != "" {
		it = a.fresh(it.index)
	}
	it.kind, it.id = w.Type, w.ID
	if w.Type == "function_call" {
		a.addCall(it, &w)
	}
}

// finishItems takes the items of the whole response. They are what the stream
// said already, but some servers leave a kind of them out of the stream; their
// indexes need not be those of the stream.
func (a *attempt) finishItems(output []json.RawMessage) {
	had := map[string]bool{}
	for _, it := range a.items {
		if it.told || it.whole {
			had[it.kind] = true
		}
	}
	for _, raw := range output {
		var w wireItem
		if json.Unmarshal(raw, &w) != nil {
			continue
		}
		it := a.byWireID(raw)
		if it == nil {
			if had[w.Type] {
				continue
			}
			next := 0
			for _, other := range a.items {
				next = max(next, other.index+1)
			}
			it = a.at(next)
		}
		a.complete(it, raw)
	}
}

// complete takes a whole item, and passes on what has not been told of it.
func (a *attempt) complete(it *item, raw []byte) {
	var w wireItem
	if len(raw) == 0 || json.Unmarshal(raw, &w) != nil || it.whole || a.stopped {
		return
	}
	it.kind, it.whole = w.Type, true
	switch w.Type {
	case "message":
		if it.told {
			break
		}
		it.told = true
		for _, p := range parts(w.Content) {
			a.send(model.Chunk{Text: p.Text + p.Refusal})
		}
	case "function_call":
		a.addCall(it, &w)
		if !it.told {
			a.addArguments(it, w.Arguments)
		}
	case "reasoning":
		if !it.told {
			it.told = true
			a.send(model.Chunk{Reasoning: reasoningText(&w)})
		}
		it.keep = keep(&w)
	}
}

func reasoningText(w *wireItem) string {
	list := parts(w.Summary)
	if len(list) == 0 {
		list = parts(w.Content)
	}
	texts := make([]string, len(list))
	for i, p := range list {
		texts[i] = p.Text
	}
	return strings.Join(texts, "\n\n")
}

// addCall begins a call, or adds the id and name that it lacks.
func (a *attempt) addCall(it *item, w *wireItem) {
	id := w.CallID
	if id == "" {
		id = w.ID
	}
	a.fragment(it, wire.Fragment{ID: id, Name: w.Name})
}

// addArguments adds to a call's arguments. raw is a JSON text, or the arguments
// themselves where a server sends an object.
func (a *attempt) addArguments(it *item, raw []byte) {
	args := ""
	switch {
	case len(raw) == 0 || string(raw) == "null":
	case raw[0] == '"':
		args = a.dec.plain(raw, &it.half)
	default:
		args = string(raw)
	}
	if args != "" {
		it.told = true
		a.fragment(it, wire.Fragment{Args: args})
	}
}

func (a *attempt) fragment(it *item, f wire.Fragment) {
	if a.stopped {
		return
	}
	f.Index, f.HasIndex = it.seq, true
	before := a.calls.Len()
	a.calls.Add(&f)
	if it.call == 0 && a.calls.Len() > before {
		it.call = a.calls.Len()
	}
}

// keep is a reasoning item in the form in which it goes back; nil where the
// server would not know it again: without its encrypted content, or its text, an
// item is only an id of something that was not stored.
func keep(w *wireItem) []byte {
	texts := parts(w.Content)
	if w.Encrypted == "" && len(texts) == 0 {
		return nil
	}
	b := []byte(`{"type":"reasoning"`)
	if w.ID != "" {
		b = append(b, `,"id":`...)
		b = jsonstring.Append(b, w.ID)
	}
	b = append(b, `,"summary":[`...)
	for i, p := range parts(w.Summary) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"type":"summary_text","text":`...)
		b = jsonstring.Append(b, p.Text)
		b = append(b, '}')
	}
	b = append(b, ']')
	if len(texts) > 0 {
		b = append(b, `,"content":[`...)
		for i, p := range texts {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(b, `{"type":"reasoning_text","text":`...)
			b = jsonstring.Append(b, p.Text)
			b = append(b, '}')
		}
		b = append(b, ']')
	}
	if w.Encrypted != "" {
		b = append(b, `,"encrypted_content":`...)
		b = jsonstring.Append(b, w.Encrypted)
	}
	return append(b, '}')
}

// encrypted is Message.EncryptedContent: the reasoning items in order, with
// "text" where the text stood between them and a number where a call did. It is
// empty where nothing must go back.
func (a *attempt) encrypted() string {
	b, any, text := []byte{'['}, false, false
	for _, it := range a.items {
		var e []byte
		switch {
		case it.kind == "reasoning":
			e, any = it.keep, any || it.keep != nil
		case it.kind == "message" && !text:
			e, text = []byte(`"text"`), true
		case it.call > 0:
			e = strconv.AppendInt(nil, int64(it.call-1), 10)
		}
		if e == nil {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(b, e...)
	}
	if !any {
		return ""
	}
	return string(append(b, ']'))
}
