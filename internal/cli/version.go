package cli

import (
	"encoding/json"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/transom-run/transom"
)

// protocolVersion is the version of the SDKs' protocol that the server speaks.
const protocolVersion = 3

func versionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of transom, of its protocol, and of Go",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := cmd.OutOrStdout()
			platform := runtime.GOOS + "/" + runtime.GOARCH
			if asJSON {
				return json.NewEncoder(out).Encode(struct {
					Version  string `json:"version"`
					Protocol int    `json:"protocolVersion"`
					Go       string `json:"go"`
					Platform string `json:"platform"`
				}{transom.Version, protocolVersion, runtime.Version(), platform})
			}
			_, err := fmt.Fprintf(out, "transom %s (protocol %d, %s, %s)\n", transom.Version, protocolVersion, runtime.Version(), platform)
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it as a JSON object")
	return cmd
}
