package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/transom-run/transom/model/scripted"
)

func modelCommand() *cobra.Command {
	var script string
	var port int
	cmd := &cobra.Command{
		Use:   "model --script FILE",
		Short: "Serve a script as a model, for the tests of hosts",
		Long: `Serve the script in FILE as a model server on a port of this machine: chat
completions, responses and messages, streamed or whole, and the list of models.
Whatever speaks to a model server can be tried against it, without a network or an
account. The first line of stdout says where it listens. A request that the script
has no answer to gets status 400, and in its error what came closest.

docs/model-files.md says what a script looks like. Ctrl-C ends the server.`,
		Example: `  transom model --script hello.yaml --port 8080
  export COPILOT_PROVIDER_BASE_URL=http://127.0.0.1:8080/v1   # for hosts, and for 'transom run'`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if script == "" {
				return usage("which script? Give --script FILE: docs/model-files.md says what it looks like")
			}
			p, err := scripted.Open(script)
			if err != nil {
				return &Error{CodeUsage, err}
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			ln, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
			if err != nil {
				return fmt.Errorf("cannot serve on port %d: %w", port, err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "http://%s/v1\n", ln.Addr())
			return serveModel(ctx, ln, p)
		},
	}
	cmd.Flags().StringVar(&script, "script", "", "the script, a model `FILE`")
	cmd.Flags().IntVar(&port, "port", 0, "TCP `port` to serve on; 0 takes a free one")
	return cmd
}

// serveModel serves until ctx ends. What is under way then is cut off: a script may
// stall for ever.
func serveModel(ctx context.Context, ln net.Listener, p *scripted.Provider) error {
	s := &http.Server{Handler: p.Handler(), ReadHeaderTimeout: time.Minute}
	defer context.AfterFunc(ctx, func() { s.Close() })()
	if err := s.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
