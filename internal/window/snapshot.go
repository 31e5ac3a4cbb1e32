package window

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/transom-run/transom/model"
)

// snapshot is a window as a checkpoint keeps it, but for its settled messages
// and prompts, which are most of it: AppendMessages and TakeMessages keep those
// in a form that is read back without looking at every byte.
type snapshot struct {
	Tokens  int              `json:",omitempty"`
	Batch   *model.Message   `json:",omitempty"`
	Results []*model.Message `json:",omitempty"`
	Later   []model.Message  `json:",omitempty"`
	Seed    *Seed            `json:",omitempty"`
	Mark    int              `json:",omitempty"`
	Marked  int              `json:",omitempty"`
	Left    int              `json:",omitempty"`
	Share   int              `json:",omitempty"`
}

// MarshalJSON encodes the window for a checkpoint, without its settled messages.
func (w Window) MarshalJSON() ([]byte, error) {
	return json.Marshal(snapshot{w.tokens, w.batch, w.results, w.later, w.seed, w.mark, w.marked, w.left, w.share})
}

// UnmarshalJSON decodes what MarshalJSON encoded.
func (w *Window) UnmarshalJSON(data []byte) error {
	var s snapshot
	if err := json.Unmarshal(data, &s); err != nil {
		return err
	}
	*w = Window{tokens: s.Tokens, batch: s.Batch, results: s.Results, later: s.Later, seed: s.Seed, mark: s.Mark, marked: s.Marked, left: s.Left, share: s.Share}
	return nil
}

// Mark is how far a window's messages and prompts were kept. The zero Mark is that
// nothing was.
type Mark struct {
	used              *used
	messages, prompts int
}

// Mark returns what AppendSince goes on from.
func (w Window) Mark() Mark { return Mark{w.used, len(w.settled), len(w.prompts)} }

// AppendMessages appends the settled messages and prompts to b, for
// TakeMessages: how many there are of both, then the messages, then the prompts.
// Numbers are uvarints, a text is its length and its bytes, and a list is its
// length and its elements. A prompt that stands in a message is told by its place
// there: the number of the message, from 1, the offset and the length; any other is
// 0 and its text.
func (w Window) AppendMessages(b []byte) []byte { return w.append(b, Mark{}) }

// AppendSince appends what has come since a mark; ok is false where the window does
// not begin with what it held then.
func (w Window) AppendSince(b []byte, m Mark) (data []byte, ok bool) {
	if m.used == nil || m.used != w.used {
		return b, false
	}
	return w.append(b, m), true
}

func (w Window) append(b []byte, from Mark) []byte {
	b = binary.AppendUvarint(b, uint64(len(w.settled)-from.messages))
	b = binary.AppendUvarint(b, uint64(len(w.prompts)-from.prompts))
	for i := range w.settled[from.messages:] {
		m := &w.settled[from.messages+i]
		b = appendTexts(b, string(m.Role), m.Text, m.CallID, m.Reasoning, m.ReasoningField, m.ReasoningOpaque, m.EncryptedContent)
		b = binary.AppendUvarint(b, uint64(len(m.Images)))
		for _, p := range m.Images {
			b = appendTexts(b, p.Name, p.MIMEType, p.Data)
		}
		b = binary.AppendUvarint(b, uint64(len(m.Documents)))
		for _, p := range m.Documents {
			b = appendTexts(b, p.Title, p.MIMEType, p.Data)
		}
		b = binary.AppendUvarint(b, uint64(len(m.Calls)))
		for _, c := range m.Calls {
			b = appendTexts(b, c.ID, c.Name, c.Arguments)
		}
	}
	at := from.messages
	for _, p := range w.prompts[from.prompts:] {
		i, offset := w.said(p, at)
		if i < 0 {
			b = appendTexts(append(b, 0), p)
			continue
		}
		at = i
		b = binary.AppendUvarint(b, uint64(i)+1)
		b = binary.AppendUvarint(b, uint64(offset))
		b = binary.AppendUvarint(b, uint64(len(p)))
	}
	return b
}

// said finds a prompt in one of the next messages of users: they are in one order.
func (w Window) said(prompt string, from int) (message, offset int) {
	if prompt == "" {
		return -1, 0
	}
	for i, looked := from, 0; i < len(w.settled) && looked < 3; i++ {
		if w.settled[i].Role == model.User {
			if at := strings.Index(w.settled[i].Text, prompt); at >= 0 {
				return i, at
			}
			looked++
		}
	}
	return -1, 0
}

func appendTexts(b []byte, texts ...string) []byte {
	for _, s := range texts {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	return b
}

// TakeMessages gives a window that UnmarshalJSON made the messages and prompts
// that AppendMessages wrote, and then those of AppendSince. The texts are parts of
// data and keep it alive. An error says that data is neither's; the window is then
// useless.
func (w *Window) TakeMessages(data string) error {
	r := reader{rest: data}
	messages, prompts := r.count(), r.count()
	for range messages {
		m := model.Message{Role: model.Role(r.text())}
		for _, s := range []*string{&m.Text, &m.CallID, &m.Reasoning, &m.ReasoningField, &m.ReasoningOpaque, &m.EncryptedContent} {
			*s = r.text()
		}
		if n := r.count(); n > 0 {
			m.Images = make([]model.Image, n)
		}
		for i := range m.Images {
			m.Images[i] = model.Image{Name: r.text(), MIMEType: r.text(), Data: r.text()}
		}
		if n := r.count(); n > 0 {
			m.Documents = make([]model.Document, n)
		}
		for i := range m.Documents {
			m.Documents[i] = model.Document{Title: r.text(), MIMEType: r.text(), Data: r.text()}
		}
		if n := r.count(); n > 0 {
			m.Calls = make([]model.Call, n)
		}
		for i := range m.Calls {
			m.Calls[i] = model.Call{ID: r.text(), Name: r.text(), Arguments: r.text()}
		}
		w.settled = append(w.settled, m)
	}
	for range prompts {
		w.prompts = append(w.prompts, w.prompt(&r))
	}
	if r.err == nil && r.rest != "" {
		r.err = fmt.Errorf("%d bytes after the last message", len(r.rest))
	}
	w.used = &used{len(w.settled), len(w.prompts)}
	return r.err
}

// roomAhead is for how many messages more there is room than are read: those of the
// log's end, and of the next turns.
const roomAhead = 32

// Reserve makes room for the messages of all pieces that will be taken, and for some
// more.
func (w *Window) Reserve(pieces ...string) {
	messages, prompts := roomAhead, roomAhead
	for _, data := range pieces {
		r := reader{rest: data}
		messages += r.count()
		prompts += r.count()
	}
	w.settled, w.prompts = slices.Grow(w.settled, messages), slices.Grow(w.prompts, prompts)
}

// prompt reads a prompt, which may stand in a message.
func (w *Window) prompt(r *reader) string {
	i := r.uvarint()
	if i == 0 {
		return r.text()
	}
	from, n := r.uvarint(), r.uvarint()
	if r.err != nil || i > uint64(len(w.settled)) || from > uint64(len(w.settled[i-1].Text)) || n > uint64(len(w.settled[i-1].Text))-from {
		r.err, r.rest = errShort, ""
		return ""
	}
	return w.settled[i-1].Text[from : from+n]
}

// Cut takes a text with its length before it off the front of data, as the messages'
// own texts are encoded.
func Cut(data string) (text, rest string, err error) {
	r := reader{rest: data}
	text = r.text()
	return text, r.rest, r.err
}

// reader takes a string apart. After an error everything is empty.
type reader struct {
	rest string
	err  error
}

var errShort = errors.New("it ends early")

func (r *reader) uvarint() uint64 {
	var n uint64
	for i := 0; i < len(r.rest) && i < binary.MaxVarintLen64; i++ {
		c := r.rest[i]
		n |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			r.rest = r.rest[i+1:]
			return n
		}
	}
	r.err, r.rest = errShort, ""
	return 0
}

// count is the length of a list, whose elements take a byte each at least.
func (r *reader) count() int {
	n := r.uvarint()
	if n > uint64(len(r.rest)) {
		r.err, r.rest, n = errShort, "", 0
	}
	return int(n)
}

func (r *reader) text() string {
	n := r.count()
	s := r.rest[:n]
	r.rest = r.rest[n:]
	return s
}
