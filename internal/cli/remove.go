package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/eventlog"
	"github.com/transom-run/transom/eventlog/filelog"
)

func removeCommand(home *string) *cobra.Command {
	var yes, force bool
	cmd := &cobra.Command{
		Use:     "rm ID…",
		Aliases: []string{"remove"},
		Short:   "Remove sessions for good",
		Long: `Remove the logs of sessions, and everything kept beside them, for good. Asks
before it does, unless -y is given. Ids must be whole.

A session that another process is at work on is not removed (exit code 5). One
that another process merely has open is removed with --force.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage("which sessions? Give their ids: 'transom sessions list' shows them.")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, ids []string) error {
			ctx := cmd.Context()
			list, dir, err := storedSessions(ctx, *home)
			if err != nil {
				return err
			}
			titles := map[string]transom.Stored{}
			for _, s := range list {
				titles[s.ID] = s
			}
			for _, id := range ids { // all or nothing, as far as it can be told
				if _, ok := titles[id]; ok {
					continue
				}
				for _, s := range list {
					if id != "" && strings.HasPrefix(s.ID, id) {
						return &Error{CodeNotFound, fmt.Errorf("no session %q in %s: 'rm' needs whole ids, and %s begins so. Nothing was removed", id, dir, s.ID)}
					}
				}
				return &Error{CodeNotFound, fmt.Errorf("no session %q in %s: 'transom sessions list' shows what there is. Nothing was removed", id, dir)}
			}
			if !yes {
				for _, id := range ids {
					fmt.Fprintf(cmd.ErrOrStderr(), "  %s  %s\n", id, oneLine(titles[id].Title, 60))
				}
				fmt.Fprintf(cmd.ErrOrStderr(), "Remove %s for good? [y/N] ", plural(len(ids), "session", "sessions"))
				if answer, _ := newAsker(cmd.InOrStdin()).line(ctx); answer != "y" && answer != "yes" {
					return &Error{CodeAborted, errors.New("nothing was removed")}
				}
			}
			store, err := filelog.New(filelog.Config{Home: dir})
			if err != nil {
				return err
			}
			defer store.Close()
			for _, id := range ids {
				if err := remove(ctx, store, id, force); err != nil {
					return err
				}
				fmt.Fprintf(cmd.ErrOrStderr(), "removed %s\n", id)
			}
			return nil
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	cmd.Flags().BoolVar(&force, "force", false, "also where another process has the session open and is not at work on it")
	return cmd
}

// remove deletes a session that nobody else needs. It holds the pen meanwhile, so
// that no work begins on what is about to go.
func remove(ctx context.Context, store eventlog.Store, id string, force bool) error {
	hold, err := store.Hold(id)
	if err != nil {
		return err
	}
	defer hold.Release()
	if err := hold.TakePen(); err != nil {
		var held *eventlog.HeldError
		if errors.As(err, &held) {
			return &Error{CodeInUse, fmt.Errorf("session %s is being worked on by process %d: end that work first. It was not removed", id, held.PID)}
		}
		return err
	}
	others, err := hold.Others()
	if err != nil {
		return err
	}
	if others && !force {
		return &Error{CodeInUse, fmt.Errorf("another process has session %s open: end it first, or give --force. It was not removed", id)}
	}
	return store.Delete(ctx, id)
}
