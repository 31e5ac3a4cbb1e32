// A host whose agent can clear its own context: the README's example,
// complete. COPILOT_CLI_PATH says which runtime to start;
// COPILOT_PROVIDER_BASE_URL and COPILOT_MODEL say which model it talks to.
import { approveAll, CopilotClient, defineTool } from "@github/copilot-sdk";
import { z } from "zod";

const client = new CopilotClient();
let session;

session = await client.createSession({
  onPermissionRequest: approveAll,
  tools: [
    defineTool("clear_context", {
      description: "Clear the conversation and start a fresh context window",
      parameters: z.object({ prompt: z.string() }),
      isTerminal: true, // success ends the turn: the result is not fed back
      defer: "never", // the model is always told of this tool
      handler: async ({ prompt }) => {
        // Back into the runtime while it waits for this very handler.
        const { messagesCleared } = await session.rpc.history.clearContext({ prompt });
        console.log(`Cleared ${messagesCleared} messages.`);
        return `Cleared ${messagesCleared} messages.`;
      },
    }),
  ],
});

// The wait ends after the seeded turn, so this is the answer from the fresh window.
const answer = await session.sendAndWait(
  'Call clear_context with the prompt "Reply with exactly FRESH_CONTEXT." now.',
);
console.log(answer.data.content);

await session.disconnect();
await client.stop();
