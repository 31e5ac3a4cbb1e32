package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/eventlog"
	"github.com/transom-run/transom/eventlog/filelog"
	"github.com/transom-run/transom/internal/session"
)

const homeHelp = "directory of all state (default $COPILOT_HOME, else ~/.transom)"

func sessionsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sessions",
		Short: "List, read, check, mend and remove stored sessions",
		Long: `Sessions are kept as logs, one directory each, under

    HOME/session-state/ID/events.jsonl

where HOME is --home, else $COPILOT_HOME, else ~/.transom. A log keeps everything
that was said, also what a clear took out of the model's sight.`,
		Example: `  transom sessions list
  transom sessions show              # the newest one
  transom sessions show 3f6c         # the beginning of an id is enough
  transom sessions show 3f6c --window
  transom sessions verify            # whether the logs are whole
  transom sessions rm 3f6c0e9a-…`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var home string
	cmd.PersistentFlags().StringVar(&home, "home", "", homeHelp)
	cmd.AddCommand(listCommand(&home), showCommand(&home), removeCommand(&home), verifyCommand(&home), repairCommand(&home))
	return cmd
}

func listCommand(home *string) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the stored sessions, newest first",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, dir, err := storedSessions(cmd.Context(), *home)
			if err != nil {
				return err
			}
			if asJSON {
				return listJSON(cmd.OutOrStdout(), list)
			}
			if len(list) == 0 {
				fmt.Fprintf(cmd.ErrOrStderr(), "No sessions are stored in %s.\n", dir)
				return nil
			}
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "ID\tMODIFIED\tSIZE\tTITLE")
			for _, s := range list {
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", printable(s.ID), stamp(s.Modified), size(s.Bytes), oneLine(s.Title, 60))
			}
			return w.Flush()
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	return cmd
}

func listJSON(w io.Writer, list []transom.Stored) error {
	type row struct {
		ID        string    `json:"id"`
		Title     string    `json:"title"`
		Directory string    `json:"directory"`
		Started   time.Time `json:"started"`
		Modified  time.Time `json:"modified"`
		Bytes     int64     `json:"bytes"`
	}
	rows := make([]row, len(list))
	for i, s := range list {
		rows[i] = row{s.ID, s.Title, s.Dir, s.Started.UTC(), s.Modified.UTC(), s.Bytes}
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(rows)
}

// storedSessions lists what a home holds, and returns which one that is.
func storedSessions(ctx context.Context, home string) ([]transom.Stored, string, error) {
	rt, err := transom.Open(transom.Config{Home: home})
	if err != nil {
		return nil, "", err
	}
	defer rt.Close(ctx)
	list, err := rt.Sessions(ctx)
	return list, rt.Home(), err
}

// findSession returns the session whose id is, or begins with, prefix; the newest
// one where prefix is "".
func findSession(ctx context.Context, home, prefix string) (transom.Stored, string, error) {
	list, dir, err := storedSessions(ctx, home)
	if err != nil {
		return transom.Stored{}, dir, err
	}
	var found []transom.Stored
	for _, s := range list {
		if s.ID == prefix || prefix == "" {
			return s, dir, nil
		}
		if strings.HasPrefix(s.ID, prefix) {
			found = append(found, s)
		}
	}
	switch len(found) {
	case 1:
		return found[0], dir, nil
	case 0:
		if prefix == "" {
			return transom.Stored{}, dir, &Error{CodeNotFound, fmt.Errorf("no sessions are stored in %s", dir)}
		}
		return transom.Stored{}, dir, &Error{CodeNotFound, fmt.Errorf("no session in %s has an id that is, or begins with, %q: 'transom sessions list' shows what there is", dir, prefix)}
	}
	return transom.Stored{}, dir, usage("%d sessions have an id that begins with %q: give more of it", len(found), prefix)
}

func showCommand(home *string) *cobra.Command {
	var raw, now, full bool
	cmd := &cobra.Command{
		Use:   "show [ID]",
		Short: "Print a session's log, window by window",
		Long: `Print what happened in a session: each window of the model, numbered, with its
messages, tool calls and results, and where and by what a clear replaced it.
Damaged places of the log are reported and passed over. Nothing is changed, and a
session that another process is at work on can be read as well.

ID may be the beginning of an id; without one the newest session is shown.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage("%s shows one session, but was given %d ids", cmd.CommandPath(), len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if raw && now {
				return usage("--json and --window exclude each other: the log, or what the model sees")
			}
			id := ""
			if len(args) > 0 {
				id = args[0]
			}
			s, dir, err := findSession(cmd.Context(), *home, id)
			if err != nil {
				return err
			}
			store, err := filelog.New(filelog.Config{Home: dir})
			if err != nil {
				return err
			}
			defer store.Close()
			log, tail, err := store.Open(cmd.Context(), s.ID)
			if err != nil {
				return err
			}
			defer log.Close()
			out := bufio.NewWriter(cmd.OutOrStdout())
			p := &page{w: out, cut: resultLines}
			if full {
				p.cut = 0
			}
			switch {
			case raw:
				err = showRaw(out, cmd.ErrOrStderr(), log, tail)
			case now:
				err = showWindow(p, log)
			default:
				err = showLog(p, s, store.Dir(s.ID), log, tail)
			}
			return errors.Join(err, p.err, out.Flush())
		},
	}
	cmd.Flags().BoolVar(&raw, "json", false, "print the records as they stand in the log, one JSON object a line")
	cmd.Flags().BoolVar(&now, "window", false, "print what the model would see now, and nothing else")
	cmd.Flags().BoolVar(&full, "full", false, "cut nothing: show long texts whole")
	return cmd
}

// resultLines is how much is shown of one text unless all is asked for.
const resultLines = 12

func showLog(p *page, s transom.Stored, dir string, log eventlog.Log, tail []eventlog.Damage) error {
	p.line("Session %s", printable(s.ID))
	if s.Title != "" {
		p.item("title", oneLine(s.Title, pageWidth-labelWidth))
	}
	p.line("  %-*s%s (%s)", labelWidth-2, "log", printable(filepath.Join(dir, "events.jsonl")), size(s.Bytes)) // never cut: it is copied
	t := newTranscript(p)
	err := eachRecord(log, t.record, t.damage)
	for _, d := range tail {
		t.damage(d)
	}
	if err != nil {
		return fmt.Errorf("read the log of session %s: %w", s.ID, err)
	}
	if t.fold.Boundaries > 0 { // what a truncation left stands before it
		now, _, err := session.Load(log)
		if err != nil {
			return fmt.Errorf("read the log of session %s: %w", s.ID, err)
		}
		t.fold = now.Durable
	}
	t.end()
	return nil
}

// showWindow prints what a model call made now would hold.
func showWindow(p *page, log eventlog.Log) error {
	now, _, err := session.Load(log)
	if err != nil {
		return err
	}
	showMessages(p, now.Window.Messages(now.System))
	if s := now.Window.Seed(); s != nil {
		p.item("seed", s.Text)
	}
	return nil
}

func showRaw(out, stderr io.Writer, log eventlog.Log, tail []eventlog.Damage) error {
	var failed error
	report := func(d eventlog.Damage) { fmt.Fprintf(stderr, "transom: damaged, %s\n", d) }
	err := eachRecord(log, func(r eventlog.Record) {
		if failed == nil {
			_, failed = fmt.Fprintf(out, "%s\n", r.Line)
		}
	}, report)
	for _, d := range tail {
		report(d)
	}
	return errors.Join(err, failed)
}

// eachRecord reads a log to its end.
func eachRecord(log eventlog.Log, record func(eventlog.Record), damage func(eventlog.Damage)) error {
	for rec, err := range log.Read(0) {
		var d *eventlog.DamageError
		switch {
		case errors.As(err, &d):
			damage(d.Damage)
		case err != nil:
			return err
		default:
			record(rec)
		}
	}
	return nil
}
