package conformance;

import com.fasterxml.jackson.databind.JsonNode;
import com.github.copilot.sdk.json.ToolDefinition;
import com.github.copilot.sdk.json.ToolInvocation;
import com.github.copilot.sdk.json.ToolResultObject;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.function.Function;

/** The tools of a case. This version knows neither terminal nor deferred ones. */
final class Tools {

    private Tools() {
    }

    /**
     * Makes the tools that a step names. {@code play} is what a handler does: it
     * plays the call's steps and gives the one that ended them.
     */
    static List<ToolDefinition> of(JsonNode order, JsonNode names, Function<ToolInvocation, CompletableFuture<JsonNode>> play) {
        List<ToolDefinition> tools = new ArrayList<>();
        for (JsonNode tool : order.get("tools")) {
            if (contains(names, tool.get("name").asText())) {
                tools.add(defined(tool, play));
            }
        }
        return tools;
    }

    private static ToolDefinition defined(JsonNode tool, Function<ToolInvocation, CompletableFuture<JsonNode>> play) {
        @SuppressWarnings("unchecked")
        Map<String, Object> parameters = Host.JSON.convertValue(tool.get("parameters"), Map.class);
        return ToolDefinition.create(tool.get("name").asText(), tool.get("description").asText(), parameters,
                call -> play.apply(call).thenApply(Tools::result));
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
