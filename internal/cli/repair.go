package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/transom-run/transom/eventlog"
	"github.com/transom-run/transom/eventlog/filelog"
)

func repairCommand(home *string) *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use:   "repair ID",
		Short: "Put a log without its damaged places in the place of one with them",
		Long: `Write a log anew with its records alone, one a line, each byte for byte as it was,
and put it in the place of the old one, which is kept beside it. With --to the new
one is written to a file instead, and the session is left alone.

Transom resumes a damaged log as it is; other programs may not. What was damaged
cannot be read by anyone and is in the old log only. A session that another process
has open is not mended (exit code 5).`,
		Example: `  transom sessions repair 3f6c
  transom sessions repair 3f6c --to mended.jsonl`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("which session? Give one id: 'transom sessions verify' shows which logs are damaged.")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			s, dir, err := findSession(ctx, *home, args[0])
			if err != nil {
				return err
			}
			store, err := filelog.New(filelog.Config{Home: dir})
			if err != nil {
				return err
			}
			defer store.Close()
			var r filelog.Repaired
			if to == "" {
				r, err = store.Repair(ctx, s.ID)
			} else {
				r, err = copyTo(to, func(f *os.File) (filelog.Repaired, error) { return store.Copy(ctx, s.ID, f) })
			}
			var held *eventlog.HeldError
			if errors.As(err, &held) || errors.Is(err, eventlog.ErrInUse) {
				return &Error{CodeInUse, err}
			}
			if err != nil {
				return err
			}
			report(cmd, s.ID, to, r)
			return nil
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "write the mended log to this new file, and change nothing")
	return cmd
}

// copyTo writes a new file, and removes it again where that fails.
func copyTo(path string, write func(*os.File) (filelog.Repaired, error)) (filelog.Repaired, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return filelog.Repaired{}, err
	}
	r, err := write(f)
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(path)
	}
	return r, err
}

func report(cmd *cobra.Command, id, to string, r filelog.Repaired) {
	w := cmd.OutOrStdout()
	for _, d := range r.Damage {
		fmt.Fprintf(w, "left out, %s\n", printable(d.String()))
	}
	what := fmt.Sprintf("%s, %s", plural(r.Records, "record", "records"), size(r.Bytes))
	switch {
	case to != "":
		fmt.Fprintf(w, "%s: %s, in %s\n", printable(id), what, printable(to))
	case r.Kept == "":
		fmt.Fprintf(w, "%s: %s, nothing to mend\n", printable(id), what)
	default:
		fmt.Fprintf(w, "%s: mended, %s; the old log is kept in %s\n", printable(id), what, printable(filepath.Base(r.Kept)))
	}
}
