// Command example is a host on a version of the SDK that speaks another
// protocol. It is told so.
package main

import (
	"context"
	"log"
	"os"

	copilot "github.com/github/copilot-sdk/go"
)

func main() {
	client := copilot.NewClient(&copilot.ClientOptions{CLIPath: os.Getenv("COPILOT_CLI_PATH")})
	if err := client.Start(context.Background()); err != nil {
		log.Fatal(err)
	}
}
