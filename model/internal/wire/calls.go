package wire

import "github.com/transom-run/transom/model"

// Fragment is a piece of a tool call as it stands in an answer.
type Fragment struct {
	Choice   int
	Index    int
	HasIndex bool
	ID, Name string
	Args     string
}

// callState is a call that an answer has begun.
type callState struct {
	choice, index int
	hasIndex      bool
	wire          string // the id on the wire; id is another where that one is taken
	id, name      string
	sent          bool   // its first fragment was passed on
	held          string // arguments that came before that
}

// Calls sorts the fragments of an answer's calls. Servers differ: some leave
// out index, id or name, repeat them in every fragment, or send them late. What
// goes out is regular: every call has its own Index, and its first fragment has
// an id, unlike any in the conversation, and the name.
type Calls struct {
	Req   *model.Request // the ids in it are taken
	NewID func() string
	Whole bool                       // each fragment is a call
	Emit  func(model.CallChunk) bool // false: nobody listens any more

	states []callState
}

// Add takes a fragment; false: stop.
func (t *Calls) Add(f *Fragment) bool {
	i := -1
	if !t.Whole {
		i = t.find(f)
	}
	if i < 0 {
		if f.ID == "" && f.Name == "" && f.Args == "" {
			return true
		}
		// A call that begins ends the wait for what the one before it lacks.
		if !t.Flush() {
			return false
		}
		t.states = append(t.states, callState{choice: f.Choice, index: f.Index, hasIndex: f.HasIndex})
		i = len(t.states) - 1
	}
	s := &t.states[i]
	if s.id == "" && f.ID != "" && !s.sent {
		s.wire, s.id = f.ID, t.unique(f.ID, i)
	}
	if s.name == "" {
		s.name = f.Name
	}
	if s.sent {
		if f.Args == "" {
			return true
		}
		return t.Emit(model.CallChunk{Index: i, Arguments: f.Args})
	}
	s.held += f.Args
	if s.id == "" || s.name == "" {
		return true // until more is known
	}
	return t.send(i)
}

// find returns the call that a fragment continues, or -1.
func (t *Calls) find(f *Fragment) int {
	for i := len(t.states) - 1; i >= 0; i-- {
		s := &t.states[i]
		if s.choice != f.Choice {
			continue
		}
		if f.HasIndex && s.hasIndex {
			if s.index != f.Index {
				continue
			}
			// Another id and a name under the same index is another call: some
			// servers number all calls 0.
			if f.ID != "" && s.wire != "" && f.ID != s.wire && f.Name != "" {
				return -1
			}
			return i
		}
		if f.ID != "" {
			if s.wire == f.ID {
				return i
			}
			if s.wire != "" {
				continue
			}
		}
		// Neither index nor id: a name begins a call, its absence continues the
		// newest.
		if f.Name != "" && s.name != "" {
			return -1
		}
		return i
	}
	return -1
}

// Flush passes on what waits, with made-up ids.
func (t *Calls) Flush() bool {
	for i := range t.states {
		if !t.states[i].sent && !t.send(i) {
			return false
		}
	}
	return true
}

func (t *Calls) send(i int) bool {
	s := &t.states[i]
	if s.id == "" {
		s.id = t.NewID()
	}
	s.sent = true
	args := s.held
	s.held = ""
	return t.Emit(model.CallChunk{Index: i, ID: s.id, Name: s.name, Arguments: args})
}

// unique returns id, or another one where it is taken: a conversation in which
// two calls have one id cannot be sent to a strict server.
func (t *Calls) unique(id string, self int) string {
	for i := range t.states {
		if i != self && t.states[i].id == id {
			return t.NewID()
		}
	}
	for i := range t.Req.Messages {
		for j := range t.Req.Messages[i].Calls {
			if t.Req.Messages[i].Calls[j].ID == id {
				return t.NewID()
			}
		}
	}
	return id
}

// Len is how many calls have begun.
func (t *Calls) Len() int { return len(t.states) }
