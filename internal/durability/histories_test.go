package durability

import (
	"errors"
	"flag"
	"time"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/event"
)

var (
	full    = flag.Bool("durability.full", false, "kill at every point of every history, not at a few")
	samples = flag.Int("durability.points", 4, "how many points of each history to kill at")
	seed    = flag.Uint64("durability.seed", 0, "which points; 0 is by the clock")
)

// watchdog bounds one child and one resume.
const watchdog = 2 * time.Minute

// history is what a session goes through.
type history struct {
	run func(h *host) error
	// after and mark say what comes before: another history, whose process was killed
	// at a note in its journal.
	after, mark string
	// aborts: the turn is ended by the host, so that not all of its plan is done.
	aborts bool
	// kept: the host keeps the session's files itself. tracked: Transom's own tools
	// write files, which can be brought back. crew: the session has an agent.
	kept, tracked, crew bool
	// before and after are asked of a session that was resumed, around its last
	// prompt.
	before, then func(h *host, killed promises) error
}

var histories = map[string]history{
	"turns":         {run: says("«one»", "«two»", "«three»")},
	"batch":         {run: says("«one»", "«batch»")},
	"clear":         {run: says("«one»", "«clear»", "«two»")},
	"clear chain":   {run: says("«one»", "«chain»", "«two»")},
	"clear batch":   {run: says("«one»", "«sibs»", "«two»")},
	"clear open":    {run: says("«one»", "«open»", "«two»")},
	"clear abort":   {run: says("«one»", "«cut»", "«two»"), aborts: true},
	"queue":         {run: says("«one»", "«push»")},
	"permission":    {run: says("«one»", "«ask»")},
	"host tool":     {run: says("«one»", "«host»")},
	"abort":         {run: says("«one»", "«halt»", "«two»"), aborts: true},
	"large result":  {run: says("«large»", "«two»")},
	"compaction":    {run: compacted},
	"settings":      {run: configured},
	"truncate":      {run: goesBack(2, func(h *host, id string) error { _, err := h.s.History().Truncate(h.ctx, id); return err })},
	"truncate over": {run: goesBack(1, func(h *host, id string) error { _, err := h.s.History().Truncate(h.ctx, id); return err })},
	"rewind": {run: goesBack(2, func(h *host, id string) error {
		r, err := h.s.History().Rewind(h.ctx, id, false)
		if err == nil && r.Outcome != transom.Rewound {
			err = errors.New("the rewind came to " + string(r.Outcome))
		}
		return err
	})},
	"fork":          {run: forked},
	"kept":          {run: says("«one»", "«batch»", "«clear»", "«two»"), kept: true},
	"kept host":     {run: says("«one»", "«host»", "«push»"), kept: true},
	"kept back":     {run: goesBack(2, func(h *host, id string) error { _, err := h.s.History().Truncate(h.ctx, id); return err }), kept: true},
	"files":         {run: filesBack, tracked: true, then: (*host).filesAre},
	"schedules":     {run: scheduled, before: (*host).ticked, then: (*host).schedulesAre},
	"agent":         {run: says("«one»", "«agent»", "«two»"), crew: true},
	"crew":          {run: says("«crew»", "«two»"), crew: true},
	"crew clear":    {run: says("«crewclear»", "«two»"), crew: true},
	"deletion":      {run: deleted},
	"resumed":       {run: resumed, after: "turns", mark: "idle «two»"},
	"resumed model": {run: resumed, after: "turns", mark: "sent"},
	"resumed host":  {run: resumed, after: "host tool", mark: "asked host"},
	"resumed ask":   {run: resumed, after: "permission", mark: "question"},
	"resumed clear": {run: resumed, after: "clear", mark: "cleared"},
	"resumed chain": {run: resumed, after: "clear chain", mark: "cleared «chain3»"},
	"resumed sibs":  {run: resumed, after: "clear batch", mark: "cleared"},
	"resumed abort": {run: resumed, after: "clear abort", mark: "idle «cut»", aborts: true},
	"resumed agent": {run: resumed, after: "agent", mark: "effect g2", crew: true},
	"resumed crew":  {run: resumed, after: "crew", mark: "effect g2", crew: true},
	"resumed kept":  {run: resumed, after: "kept host", mark: "asked host", kept: true},
	"resumed queue": {run: resumed, after: "queue", mark: "pushed"},
}

// says sends prompts, each when the one before is done.
func says(prompts ...string) func(*host) error {
	return func(h *host) error {
		if err := h.create(); err != nil {
			return err
		}
		return h.converse(prompts...)
	}
}

func (h *host) converse(prompts ...string) error {
	for _, p := range prompts {
		if err := h.say(p); err != nil {
			return err
		}
	}
	return h.end()
}

func resumed(h *host) error {
	if err := h.resume(true); err != nil {
		return err
	}
	return h.converse("«again»", "«host2»")
}

func compacted(h *host) error {
	if err := h.create(); err != nil {
		return err
	}
	for _, p := range []string{"«one»", "«batch»"} {
		if err := h.say(p); err != nil {
			return err
		}
	}
	if _, err := h.s.History().Compact(h.ctx, ""); err != nil {
		return err
	}
	h.note("compacted")
	return h.converse("«two»", "«clear»")
}

func configured(h *host) error {
	if err := h.create(); err != nil {
		return err
	}
	name, mode := "a name", "plan"
	if err := h.s.Configure(h.ctx, transom.Configure{Name: &name}); err != nil {
		return err
	}
	h.note("named")
	if err := h.say("«one»"); err != nil {
		return err
	}
	if err := h.s.Configure(h.ctx, transom.Configure{Mode: &mode}); err != nil {
		return err
	}
	return h.converse("«two»")
}

func deleted(h *host) error {
	if err := h.create(); err != nil {
		return err
	}
	if err := h.say("«clear»"); err != nil {
		return err
	}
	h.note("deleting")
	if err := h.rt.DeleteSession(h.ctx, sessionID); err != nil {
		return err
	}
	h.note("deleted")
	h.s = nil
	return h.end()
}

// goesBack is a conversation with a clear in it that goes back to its nth prompt.
func goesBack(n int, back func(h *host, eventID string) error) func(*host) error {
	return func(h *host) error {
		if err := h.create(); err != nil {
			return err
		}
		for _, p := range []string{"«one»", "«batch»", "«clear»", "«two»"} {
			if err := h.say(p); err != nil {
				return err
			}
		}
		lines, err := h.s.Messages()
		if err != nil {
			return err
		}
		for _, line := range lines {
			e, err := event.Decode(line)
			if err != nil {
				return err
			}
			if e.Type == event.TypeUserMessage {
				if n--; n == 0 {
					if err := back(h, e.ID); err != nil {
						return err
					}
					h.note("truncated")
				}
			}
		}
		return h.converse("«three»", "«four»")
	}
}

func forked(h *host) error {
	if err := h.create(); err != nil {
		return err
	}
	if err := h.say("«batch»"); err != nil {
		return err
	}
	id, err := h.rt.ForkSession(h.ctx, transom.Fork{SessionID: sessionID})
	if err != nil {
		return err
	}
	h.note("forked %s", id)
	return h.converse("«one»")
}
