package window

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

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

// AppendMessages appends the settled messages and prompts to b, for
// TakeMessages. Numbers are uvarints, a text is its length and its bytes, and a
// list is its length and its elements.
func (w Window) AppendMessages(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(w.settled)))
	for i := range w.settled {
		m := &w.settled[i]
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
	b = binary.AppendUvarint(b, uint64(len(w.prompts)))
	return appendTexts(b, w.prompts...)
}

func appendTexts(b []byte, texts ...string) []byte {
	for _, s := range texts {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	return b
}

// TakeMessages gives a window that UnmarshalJSON made the messages and prompts
// that AppendMessages wrote. The texts are parts of data and keep it alive. An
// error says that data is none of AppendMessages'; the window is then useless.
func (w *Window) TakeMessages(data string) error {
	r := reader{rest: data}
	if n := r.count(); n > 0 {
		w.settled = make([]model.Message, n)
	}
	for i := range w.settled {
		m := &w.settled[i]
		m.Role = model.Role(r.text())
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
	}
	if n := r.count(); n > 0 {
		w.prompts = make([]string, n)
	}
	for i := range w.prompts {
		w.prompts[i] = r.text()
	}
	if r.err == nil && r.rest != "" {
		r.err = fmt.Errorf("%d bytes after the last message", len(r.rest))
	}
	return r.err
}

// reader takes a string apart. After an error everything is empty.
type reader struct {
	rest string
	err  error
}

var errShort = errors.New("the messages end early")

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
