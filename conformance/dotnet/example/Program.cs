// A host whose agent can clear its own context: the example of the documentation
// in C#, run against Transom. COPILOT_CLI_PATH says which runtime to start;
// COPILOT_PROVIDER_BASE_URL and COPILOT_MODEL say which model it talks to.
using GitHub.Copilot;
using Microsoft.Extensions.AI;

await using var client = new CopilotClient();
CopilotSession? session = null;

var clearContext = CopilotTool.DefineTool(
    async (string prompt) =>
    {
        // Back into the runtime while it waits for this very handler.
        var cleared = await session!.Rpc.History.ClearContextAsync(prompt);
        var text = $"Cleared {cleared.MessagesCleared} messages.";
        Console.WriteLine(text);
        return text;
    },
    new CopilotToolOptions
    {
        IsTerminal = true,              // success ends the turn: the result is not fed back
        Defer = CopilotToolDefer.Never, // the model is always told of this tool
    },
    new AIFunctionFactoryOptions
    {
        Name = "clear_context",
        Description = "Clear the conversation and start a fresh context window",
    });

session = await client.CreateSessionAsync(new SessionConfig
{
    OnPermissionRequest = PermissionHandler.ApproveAll,
    Tools = [clearContext],
});

// The wait ends after the seeded turn, so this is the answer from the fresh window.
var answer = await session.SendAndWaitAsync(
    "Call clear_context with the prompt \"Reply with exactly FRESH_CONTEXT.\" now.");
Console.WriteLine(answer?.Data.Content);

await session.DisposeAsync();
