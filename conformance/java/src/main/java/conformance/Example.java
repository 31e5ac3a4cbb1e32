package conformance;

import com.github.copilot.CopilotClient;
import com.github.copilot.CopilotSession;
import com.github.copilot.generated.rpc.SessionHistoryClearContextParams;
import com.github.copilot.rpc.CopilotClientOptions;
import com.github.copilot.rpc.MessageOptions;
import com.github.copilot.rpc.PermissionHandler;
import com.github.copilot.rpc.SessionConfig;
import com.github.copilot.rpc.ToolDefer;
import com.github.copilot.rpc.ToolDefinition;
import com.github.copilot.tool.Param;
import java.util.List;
import java.util.concurrent.CompletableFuture;

/**
 * A host whose agent can clear its own context: the example of the README in
 * Java, run against Transom. COPILOT_CLI_PATH says which runtime to start;
 * COPILOT_PROVIDER_BASE_URL and COPILOT_MODEL say which model it talks to.
 */
public final class Example {

    private static CopilotSession session;

    private Example() {
    }

    public static void main(String[] args) throws Exception {
        var clearContext = ToolDefinition
                .fromAsync("clear_context", "Clear the conversation and start a fresh context window",
                        Param.of(String.class, "prompt", "First message of the fresh window"), Example::clear)
                .isTerminal(true) // success ends the turn: the result is not fed back
                .defer(ToolDefer.NEVER); // the model is always told of this tool

        var options = new CopilotClientOptions().setCliPath(System.getenv("COPILOT_CLI_PATH"));
        try (var client = new CopilotClient(options)) {
            session = client.createSession(new SessionConfig()
                    .setOnPermissionRequest(PermissionHandler.APPROVE_ALL)
                    .setTools(List.of(clearContext))).get();

            // The wait ends after the seeded turn, so this is the answer from the
            // fresh window.
            var answer = session.sendAndWait(new MessageOptions()
                    .setPrompt("Call clear_context with the prompt \"Reply with exactly FRESH_CONTEXT.\" now.")).get();
            System.out.println(answer.getData().content());
            session.close();
        }
    }

    private static CompletableFuture<String> clear(String prompt) {
        // Back into the runtime while it waits for this very handler.
        var params = new SessionHistoryClearContextParams(session.getSessionId(), prompt);
        return session.getRpc().history.clearContext(params).thenApply(cleared -> {
            System.out.println("Cleared " + cleared.messagesCleared() + " messages.");
            return "Cleared " + cleared.messagesCleared() + " messages.";
        });
    }
}
