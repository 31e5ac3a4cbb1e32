// Command transom is the agent runtime: hosts launch it as their server, people
// use its sub-commands.
//
//	transom --headless --stdio      serve the one client on stdin and stdout
//	transom --headless --port 3000  serve clients on a TCP port
//	transom sessions list           see what is stored
package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/transom-run/transom/internal/cli"
	_ "github.com/transom-run/transom/internal/stack/atstart"
)

func main() {
	o := new(options)
	root := &cobra.Command{
		Use:   "transom",
		Short: "An agent runtime whose hosts control what the model remembers",
		Long: `An agent runtime whose hosts control what the model remembers.

Hosts written with the Copilot SDKs launch transom as their server: set
COPILOT_CLI_PATH to this program. People use the commands below; 'transom demo'
shows what it is about and needs no network.`,
		Example: `  transom demo
  transom run -p "Why is the sky blue?" --base-url http://localhost:11434/v1 --model qwen3
  transom sessions show
  transom --headless --port 3000     # a server for many clients`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !o.headless {
				if err := servesNothing(cmd.Flags()); err != nil {
					return err
				}
				return cmd.Help()
			}
			return o.serve(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	o.register(root.Flags())
	if servesOnly(os.Args[1:]) {
		root.Args = cobra.NoArgs
	} else {
		root.AddCommand(cli.Commands()...)
	}
	code := cli.Execute(root)
	if code != cli.CodeOK && !o.serving && launchedAsServer(os.Args[1:]) {
		drainStdin()
	}
	os.Exit(code)
}
