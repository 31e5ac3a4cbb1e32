package conformance;

import com.github.copilot.rpc.ToolDefer;
import com.github.copilot.rpc.ToolInvocation;
import com.github.copilot.tool.CopilotTool;
import com.github.copilot.tool.CopilotToolParam;
import java.util.concurrent.CompletableFuture;
import java.util.function.Function;

/** The clearing tool as an annotated method; its schema is made of the parameters. */
public final class ClearTool {

    private final Function<ToolInvocation, CompletableFuture<String>> handler;

    ClearTool(Function<ToolInvocation, CompletableFuture<String>> handler) {
        this.handler = handler;
    }

    @CopilotTool(
            name = "clear_context",
            value = "Clear the conversation and start a fresh context window",
            isTerminal = true,
            defer = ToolDefer.NEVER)
    public CompletableFuture<String> clearContext(
            @CopilotToolParam("First message of the fresh window") String prompt, ToolInvocation invocation) {
        return handler.apply(invocation); // what it does with the prompt is up to the case
    }
}
