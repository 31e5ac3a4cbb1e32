package transom

import (
	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/internal/turn"
)

// NoteSteerable writes into a session's log whether whoever follows it from afar
// may steer it. The session itself behaves the same. Result: the event's id
// (string).
type NoteSteerable struct{ Steerable bool }

func (NoteSteerable) op() string { return "session.remote.notifySteerableChanged" }
func (n NoteSteerable) body() (turn.Body, error) {
	return turn.Note{Payload: event.RemoteSteerableChanged{RemoteSteerable: n.Steerable}}, nil
}
