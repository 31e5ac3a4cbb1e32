package conformance;

import com.fasterxml.jackson.databind.JsonNode;
import com.github.copilot.rpc.ToolDefer;
import com.github.copilot.rpc.ToolDefinition;
import com.github.copilot.rpc.ToolInvocation;
import com.github.copilot.rpc.ToolResultObject;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.function.Function;

/**
 * The tools of a case, in both of the SDK's forms: clear_context is an annotated
 * method, all others are ToolDefinitions. An annotated method returns text and
 * nothing else, so a case in which a result has a kind declares clear_context as
 * the others.
 */
final class Tools {

    private Tools() {
    }

    /**
     * Makes the tools that a step names. {@code play} is what a handler does: it
     * plays the call's steps and gives the one that ended them.
     */
    static List<ToolDefinition> of(JsonNode order, JsonNode names, Function<ToolInvocation, CompletableFuture<JsonNode>> play) {
        boolean kinds = order.path("handlers").findValuesAsText("kind").size() > 0;
        List<ToolDefinition> tools = new ArrayList<>();
        for (JsonNode tool : order.get("tools")) {
            String name = tool.get("name").asText();
            if (!contains(names, name)) {
                continue;
            }
            if (name.equals("clear_context") && !kinds) {
                tools.addAll(ToolDefinition.fromObject(new ClearTool(call -> play.apply(call).thenApply(Tools::text))));
            } else {
                tools.add(defined(tool, play));
            }
        }
        return tools;
    }

    private static ToolDefinition defined(JsonNode tool, Function<ToolInvocation, CompletableFuture<JsonNode>> play) {
        @SuppressWarnings("unchecked")
        Map<String, Object> parameters = Host.JSON.convertValue(tool.get("parameters"), Map.class);
        var definition = ToolDefinition.create(tool.get("name").asText(), tool.get("description").asText(), parameters,
                call -> play.apply(call).thenApply(Tools::result));
        if (tool.path("terminal").asBoolean()) {
            definition = definition.isTerminal(true);
        }
        return tool.path("deferNever").asBoolean() ? definition.defer(ToolDefer.NEVER) : definition;
    }

    /** The result that a handler's last step stands for; throws where that is to throw. */
    private static Object result(JsonNode end) {
        String text = text(end);
        return end.has("kind")
                ? new ToolResultObject(end.get("kind").asText(), text, null, null, null, null)
                : text;
    }

    private static String text(JsonNode end) {
        if (end.get("do").asText().equals("throw")) {
            throw new IllegalStateException(end.get("text").asText());
        }
        return end.path("text").asText();
    }

    private static boolean contains(JsonNode names, String name) {
        for (JsonNode n : names) {
            if (n.asText().equals(name)) {
                return true;
            }
        }
        return false;
    }
}
