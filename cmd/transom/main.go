// Command transom is the agent runtime: hosts launch it as their server, people
// use its sub-commands.
package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/transom-run/transom/internal/cli"
)

func main() {
	root := &cobra.Command{
		Use:   "transom",
		Short: "An agent runtime whose hosts control what the model remembers",
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.AddCommand(cli.Commands()...)
	os.Exit(cli.Execute(root))
}
