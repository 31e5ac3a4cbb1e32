// What the programs beside the host share: how they print what they saw, and the tool
// by which their model starts over.
import { defineTool } from "@github/copilot-sdk";
import { z } from "zod";

export const say = (what, ...rest) => console.log(`${what}:`, ...rest);

/** A terminal tool that clears the context of the session which `current` returns. */
export const clearContext = (current) =>
  defineTool("clear_context", {
    description: "Start over",
    parameters: z.object({ prompt: z.string() }),
    isTerminal: true,
    skipPermission: true,
    handler: async ({ prompt }) => {
      const { messagesCleared } = await current().rpc.history.clearContext({ prompt });
      say("cleared", messagesCleared);
      return "Cleared.";
    },
  });
