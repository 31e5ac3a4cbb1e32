// Command example is a host whose agent can clear its own context: the README's
// example, complete, in Go. COPILOT_CLI_PATH says which runtime to start;
// COPILOT_PROVIDER_BASE_URL and COPILOT_MODEL say which model it talks to.
package main

import (
	"context"
	"fmt"
	"log"

	copilot "github.com/github/copilot-sdk/go"
	"github.com/github/copilot-sdk/go/rpc"
)

// clearArgs are the arguments of the tool; the schema is derived from them.
type clearArgs struct {
	Prompt string `json:"prompt"`
}

func main() {
	ctx := context.Background()
	client := copilot.NewClient(nil)
	var session *copilot.Session

	clearContext := copilot.DefineTool("clear_context", "Clear the conversation and start a fresh context window",
		func(args clearArgs, _ copilot.ToolInvocation) (string, error) {
			// Back into the runtime while it waits for this very handler.
			cleared, err := session.RPC.History.ClearContext(ctx, &rpc.HistoryClearContextRequest{Prompt: args.Prompt})
			if err != nil {
				return "", err
			}
			text := fmt.Sprintf("Cleared %d messages.", cleared.MessagesCleared)
			fmt.Println(text)
			return text, nil
		})
	clearContext.IsTerminal = true              // success ends the turn: the result is not fed back
	clearContext.Defer = copilot.ToolDeferNever // the model is always told of this tool

	var err error
	session, err = client.CreateSession(ctx, &copilot.SessionConfig{
		OnPermissionRequest: copilot.PermissionHandler.ApproveAll,
		Tools:               []copilot.Tool{clearContext},
	})
	if err != nil {
		log.Fatal(err)
	}

	// The wait ends after the seeded turn, so this is the answer from the fresh
	// window.
	answer, err := session.SendPromptAndWait(ctx, `Call clear_context with the prompt "Reply with exactly FRESH_CONTEXT." now.`)
	if err != nil {
		log.Fatal(err)
	}
	if message, ok := answer.Data.(*copilot.AssistantMessageData); ok {
		fmt.Println(message.Content)
	}

	if err := session.Disconnect(); err != nil {
		log.Fatal(err)
	}
	if err := client.Stop(); err != nil {
		log.Fatal(err)
	}
}
