package openai

import "github.com/transom-run/transom/model"

// callState is a call that an answer has begun.
type callState struct {
	choice, index int
	hasIndex      bool
	wire          string // the id on the wire; id is another where that one is taken
	id, name      string
	sent          bool   // its first fragment was passed on
	held          string // arguments that came before that
}

// tracker sorts the fragments of an answer's calls. Servers differ: some leave
// out index, id or name, repeat them in every fragment, or send them late. What
// goes out is regular: every call has its own Index, and its first fragment has
// an id, unlike any in the conversation, and the name.
type tracker struct {
	req    *model.Request // the ids in it are taken
	newID  func() string
	whole  bool // each fragment is a call
	states []callState
	emit   func(model.CallChunk) bool // false: nobody listens any more
}

// add takes a fragment; false: stop.
func (t *tracker) add(f *fragment) bool {
	i := -1
	if !t.whole {
		i = t.find(f)
	}
	if i < 0 {
		if f.id == "" && f.name == "" && f.args == "" {
			return true
		}
		// A call that begins ends the wait for what the one before it lacks.
		if !t.flush() {
			return false
		}
		t.states = append(t.states, callState{choice: f.choice, index: f.index, hasIndex: f.hasIndex})
		i = len(t.states) - 1
	}
	s := &t.states[i]
	if s.id == "" && f.id != "" && !s.sent {
		s.wire, s.id = f.id, t.unique(f.id, i)
	}
	if s.name == "" {
		s.name = f.name
	}
	if s.sent {
		if f.args == "" {
			return true
		}
		return t.emit(model.CallChunk{Index: i, Arguments: f.args})
	}
	s.held += f.args
	if s.id == "" || s.name == "" {
		return true // until more is known
	}
	return t.send(i)
}

// find returns the call that a fragment continues, or -1.
func (t *tracker) find(f *fragment) int {
	for i := len(t.states) - 1; i >= 0; i-- {
		s := &t.states[i]
		if s.choice != f.choice {
			continue
		}
		if f.hasIndex && s.hasIndex {
			if s.index != f.index {
				continue
			}
			// Another id and a name under the same index is another call: some
			// servers number all calls 0.
			if f.id != "" && s.wire != "" && f.id != s.wire && f.name != "" {
				return -1
			}
			return i
		}
		if f.id != "" {
			if s.wire == f.id {
				return i
			}
			if s.wire != "" {
				continue
			}
		}
		// Neither index nor id: a name begins a call, its absence continues the
		// newest.
		if f.name != "" && s.name != "" {
			return -1
		}
		return i
	}
	return -1
}

// flush passes on what waits, with made-up ids.
func (t *tracker) flush() bool {
	for i := range t.states {
		if !t.states[i].sent && !t.send(i) {
			return false
		}
	}
	return true
}

func (t *tracker) send(i int) bool {
	s := &t.states[i]
	if s.id == "" {
		s.id = t.newID()
	}
	s.sent = true
	args := s.held
	s.held = ""
	return t.emit(model.CallChunk{Index: i, ID: s.id, Name: s.name, Arguments: args})
}

// unique returns id, or another one where it is taken: a conversation in which
// two calls have one id cannot be sent to a strict server.
func (t *tracker) unique(id string, self int) string {
	for i := range t.states {
		if i != self && t.states[i].id == id {
			return t.newID()
		}
	}
	for i := range t.req.Messages {
		for j := range t.req.Messages[i].Calls {
			if t.req.Messages[i].Calls[j].ID == id {
				return t.newID()
			}
		}
	}
	return id
}
