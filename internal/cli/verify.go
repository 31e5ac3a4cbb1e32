package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/eventlog"
	"github.com/transom-run/transom/eventlog/filelog"
	"github.com/transom-run/transom/internal/session"
)

func verifyCommand(home *string) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "verify [ID]",
		Short: "Say whether logs can be read whole, and what is wrong with them",
		Long: `Read every record of a log, and say what is in it that is none: where, how long,
and what becomes of it. A session can be resumed all the same; what is damaged is
passed over. Nothing is changed, and a session may be in use meanwhile.

ID may be the beginning of an id; without one all sessions are read. The exit code
is 1 where a log is damaged. 'transom sessions repair' mends one.

With --json there is an object a line for each log: id, log (its file), ok, records (how
many), recordBytes (how much of the log these are), damage, open (calls without a
result), checkpoint (ok, none or unusable) and inUse. Each damage has the line, the
offset of its first byte in the log, its length in bytes, a reason, and tail where the
next append cuts it off.`,
		Example: `  transom sessions verify
  transom sessions verify 3f6c --json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage("%s reads one log or all, but was given %d ids", cmd.CommandPath(), len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			ids, dir, err := chosen(ctx, *home, args)
			if err != nil {
				return err
			}
			store, err := filelog.New(filelog.Config{Home: dir})
			if err != nil {
				return err
			}
			defer store.Close()
			bad := 0
			for _, id := range ids {
				v, err := verify(ctx, store, id)
				if err != nil {
					return err
				}
				if !v.OK {
					bad++
				}
				if err := v.print(cmd.OutOrStdout(), asJSON); err != nil {
					return err
				}
			}
			if bad > 0 {
				return fmt.Errorf("%s of %s damaged: 'transom sessions repair ID' mends a log and keeps the old one", plural(bad, "log", "logs"), isAre(len(ids), bad))
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object a session, one a line")
	return cmd
}

func isAre(all, bad int) string {
	if bad == 1 {
		return fmt.Sprintf("%d is", all)
	}
	return fmt.Sprintf("%d are", all)
}

// chosen are the sessions that an argument names, or all.
func chosen(ctx context.Context, home string, args []string) (ids []string, dir string, err error) {
	if len(args) > 0 {
		s, dir, err := findSession(ctx, home, args[0])
		return []string{s.ID}, dir, err
	}
	list, dir, err := storedSessions(ctx, home)
	for _, s := range list {
		ids = append(ids, s.ID)
	}
	return ids, dir, err
}

// finding is what was found out about a log.
type finding struct {
	ID      string `json:"id"`
	Log     string `json:"log"`
	OK      bool   `json:"ok"`
	Records int    `json:"records"`
	// RecordBytes is how much of the log the records are, with their line feeds.
	RecordBytes int64     `json:"recordBytes"`
	Damage      []damaged `json:"damage"`
	// Open are calls without a result, all but those of a turn that is still open
	// at the end: each reads as interrupted.
	Open []string `json:"open"`
	// Checkpoint is "ok", "none", or "unusable".
	Checkpoint string `json:"checkpoint"`
	InUse      bool   `json:"inUse"`
}

type damaged struct {
	Line   int    `json:"line,omitempty"` // from 1
	Offset int64  `json:"offset"`         // where it begins, in bytes from the beginning of the log
	Length int64  `json:"length"`         // in bytes
	Reason string `json:"reason"`
	Tail   bool   `json:"tail"` // the next append cuts it off
}

// verify reads a log from end to end.
func verify(ctx context.Context, store *filelog.Store, id string) (*finding, error) {
	log, tail, err := store.Open(ctx, id)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	v := &finding{ID: id, Log: filepath.Join(store.Dir(id), "events.jsonl"), Damage: []damaged{}, Open: []string{}}
	note := func(d eventlog.Damage) {
		v.Damage = append(v.Damage, damaged{d.Line, int64(d.Pos), d.Bytes, d.Reason, d.Dropped})
	}
	calls := calls{open: map[string]bool{}}
	unread := func(rec eventlog.Record, err error) {
		note(eventlog.Damage{Pos: rec.Pos, Bytes: int64(rec.Next - rec.Pos), Reason: err.Error()})
	}
	for rec, err := range log.Read(0) {
		var d *eventlog.DamageError
		if errors.As(err, &d) {
			note(d.Damage)
			continue
		}
		if err != nil {
			return nil, err
		}
		e, err := event.Decode(rec.Line)
		if err != nil {
			unread(rec, err)
			continue
		}
		v.Records, v.RecordBytes = v.Records+1, v.RecordBytes+int64(len(rec.Line))+1
		if err := calls.record(e); err != nil {
			unread(rec, err)
		}
	}
	for _, d := range tail {
		note(d)
	}
	v.Open = append(v.Open, calls.left()...)
	v.OK = len(v.Damage) == 0
	v.Checkpoint = checkpoint(log)
	if hold, err := store.Hold(id); err == nil {
		v.InUse, _ = hold.Others()
		_ = hold.Release()
	}
	return v, nil
}

// checkpoint says whether the next resume begins at a checkpoint.
func checkpoint(log eventlog.Log) string {
	c, ok := log.(eventlog.Checkpointer)
	if !ok {
		return "none"
	}
	switch _, data, ok := c.LoadCheckpoint(); {
	case !ok:
		return "none"
	case session.Usable(data):
		return "ok"
	}
	return "unusable"
}

// calls keeps account of the tool calls of a log.
type calls struct {
	open  map[string]bool
	order []string
}

func (c *calls) record(e *event.Event) error {
	switch e.Type {
	case event.TypeAssistantMessage:
		p, err := event.As[event.AssistantMessage](e)
		if err != nil {
			return err
		}
		for _, r := range p.ToolRequests {
			c.open[r.ToolCallID] = true
			c.order = append(c.order, r.ToolCallID)
		}
	case event.TypeToolComplete:
		p, err := event.As[event.ToolComplete](e)
		if err != nil {
			return err
		}
		delete(c.open, p.ToolCallID)
	}
	return nil
}

// left are the calls that never got a result.
func (c *calls) left() (ids []string) {
	for _, id := range c.order {
		if c.open[id] {
			ids = append(ids, id)
			delete(c.open, id)
		}
	}
	return ids
}

func (v *finding) print(w io.Writer, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		return enc.Encode(v)
	}
	state := "ok"
	if !v.OK {
		state = "damaged"
	}
	out := fmt.Sprintf("%-8s %s  %s, %s", state, printable(v.ID), plural(v.Records, "record", "records"), size(v.RecordBytes))
	if v.InUse {
		out += ", in use"
	}
	out += "\n"
	for _, d := range v.Damage {
		where := fmt.Sprintf("byte %d", d.Offset)
		if d.Line > 0 {
			where = fmt.Sprintf("line %d, byte %d", d.Line, d.Offset)
		}
		fate := "passed over"
		if d.Tail {
			fate = "cut off by the next append"
		}
		out += fmt.Sprintf("         %s: %s, %s: %s\n", where, printable(d.Reason), plural(int(d.Length), "byte", "bytes"), fate)
	}
	for _, id := range v.Open {
		out += fmt.Sprintf("         the call %s has no result: it reads as interrupted, or waits for a resume\n", printable(id))
	}
	if v.Checkpoint == "unusable" {
		out += "         the checkpoint is of another version: the next resume reads the whole log\n"
	}
	_, err := io.WriteString(w, out)
	return err
}
