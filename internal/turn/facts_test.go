package turn

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/internal/policy"
)

// fact is one line for an event about the state of a session; "" for others.
func fact(e *event.Event) string {
	switch d := e.Payload.(type) {
	case event.PermissionsChanged:
		return "permissions " + d.Mode
	case event.ApprovalsReset:
		return "approvals reset"
	case event.ContextChanged:
		return strings.TrimSpace("context " + d.Cwd + " " + d.Branch)
	case event.CapabilitiesChanged:
		return fmt.Sprintf("capabilities elicitation=%v", d.UI.Elicitation)
	case event.CommandsChanged:
		var names []string
		for _, c := range d.Commands {
			names = append(names, c.Name)
		}
		return fmt.Sprintf("commands %q", names)
	case event.QueueOrder:
		var steering, queue []event.Queued
		for _, q := range d.Items {
			if q.Steering {
				steering = append(steering, q)
			} else {
				queue = append(queue, q)
			}
		}
		return fmt.Sprintf("order %s steering %s", prompts(queue), prompts(steering))
	case event.Unqueued:
		return "unqueued"
	}
	return ""
}

// rules reads the options of a host's rules: deny=tool:a allow=tool:b.
func rules(o map[string]string) policy.Rules {
	r := policy.Rules{}
	if k, ok := o["deny"]; ok {
		r.Denied = []string{k}
	}
	if k, ok := o["allow"]; ok {
		r.Granted = []string{k}
	}
	return r
}

// arrange changes what waits: OP, the prompt of the item where one is meant, and
// at=N or a text.
func (p *player) arrange() {
	in := Arrange{Op: ArrangeOp(p.word())}
	item := func() string {
		prompt := p.word()
		for _, q := range append(p.s.Queue, p.s.Steering...) {
			if q.Prompt == prompt {
				return q.MessageID
			}
		}
		return "none"
	}
	switch in.Op {
	case ArrangePause:
		in.On = p.word() == "on"
	case ArrangeInsert:
		in.Message.Prompt = p.word()
	case ArrangeEdit:
		in.ID, in.Message.Prompt = item(), p.word()
	case ArrangeCopy, ArrangeMove, ArrangeSteer, ArrangeRemove:
		in.ID = item()
	}
	if at, ok := strings.CutPrefix(p.word(), "at="); ok {
		n, err := strconv.Atoi(at)
		if err != nil {
			p.t.Fatalf("at=%s: %v", at, err)
		}
		in.Position = n
	}
	p.do(in)
}

// ran ends the slash command that runs: stop leaves the queue waiting.
func (p *player) ran() {
	in := CommandDone{Stop: p.word() == "stop", ID: "other"}
	if p.s.Live.Prep != nil {
		in.ID = p.s.Live.Prep.command
	}
	p.do(in)
}
