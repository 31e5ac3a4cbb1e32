package builtin

import (
	"sync"
)

// maxPlans bounds the plans of calls that were never run.
const maxPlans = 256

// plan is what a person was shown about a call that writes. The call does that
// or nothing.
type plan struct {
	resolved string // the file, with every link followed
	diff     string // the change itself, without the lines around it
	refusal  string // the call cannot work, which is why nobody was asked
}

// plans keeps the plans of the calls that wait for an approval.
type plans struct {
	mu    sync.Mutex
	byID  map[string]plan
	order []string
}

func (p *plans) put(id string, pl plan) {
	if id == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byID == nil {
		p.byID = map[string]plan{}
	}
	if _, ok := p.byID[id]; !ok {
		p.order = append(p.order, id)
	}
	p.byID[id] = pl
	if len(p.order) > maxPlans {
		delete(p.byID, p.order[0])
		p.order = p.order[1:]
	}
}

// take gives a call's plan once. A call that nobody was asked about, because all
// is approved or because it was approved in an earlier process, has none.
func (p *plans) take(id string) (plan, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pl, ok := p.byID[id]
	if ok {
		delete(p.byID, id)
		for i, o := range p.order {
			if o == id {
				p.order = append(p.order[:i], p.order[i+1:]...)
				break
			}
		}
	}
	return pl, ok
}
