package conformance;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.github.copilot.CopilotClient;
import com.github.copilot.CopilotSession;
import com.github.copilot.SystemMessageMode;
import com.github.copilot.generated.rpc.SessionHistoryClearContextParams;
import com.github.copilot.generated.rpc.SessionHistoryTruncateParams;
import com.github.copilot.generated.rpc.SessionToolsHandlePendingToolCallParams;
import com.github.copilot.rpc.CopilotClientOptions;
import com.github.copilot.rpc.MessageOptions;
import com.github.copilot.rpc.PermissionHandler;
import com.github.copilot.rpc.PermissionInvocation;
import com.github.copilot.rpc.PermissionRequest;
import com.github.copilot.rpc.PermissionRequestResult;
import com.github.copilot.rpc.ProviderConfig;
import com.github.copilot.rpc.ResumeSessionConfig;
import com.github.copilot.rpc.SessionConfig;
import com.github.copilot.rpc.SystemMessageConfig;
import com.github.copilot.rpc.ToolDefinition;
import com.github.copilot.rpc.ToolInvocation;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * Plays one case. Handlers run on threads of their own, at the same time as the
 * main steps, so what they share is concurrent or synchronised.
 */
final class Player {

    /** The steps that need no open session. */
    private static final Set<String> SESSIONLESS =
            Set.of("create", "resume", "wait_gate", "open_gate", "wait_model", "release_model", "park");

    /** Handlers block, some for ever; the SDK's own executor is left alone. */
    private static final ExecutorService THREADS = Executors.newCachedThreadPool(task -> {
        var thread = new Thread(task, "handler");
        thread.setDaemon(true);
        return thread;
    });

    private final JsonNode order;
    private final ArrayNode log = Host.JSON.createArrayNode();
    private final Map<String, Seat> seats = new ConcurrentHashMap<>();
    private final Map<String, CountDownLatch> gates = new ConcurrentHashMap<>();
    private volatile String sessionId;

    Player(JsonNode order) {
        this.order = order;
    }

    ObjectNode play() {
        String error = "";
        try {
            run("host", "a", order.get("host"));
            for (Seat seat : seats.values()) {
                seat.client.stop().get();
            }
        } catch (Exception e) {
            error = e.toString();
        }
        ObjectNode observation = Host.JSON.createObjectNode();
        synchronized (log) {
            observation.set("log", log.deepCopy());
        }
        ObjectNode events = observation.putObject("events");
        seats.forEach((name, seat) -> events.putArray(name).addAll(seat.seen()));
        return observation.put("error", error);
    }

    /** Runs steps until one of them ends a handler, and returns that one. */
    private JsonNode run(String at, String client, JsonNode steps) {
        for (JsonNode step : steps) {
            String what = step.get("do").asText();
            if (Set.of("return", "throw", "decide").contains(what)) {
                return step;
            }
            Host.tell(at + ": " + what);
            ObjectNode entry = Host.JSON.createObjectNode();
            entry.put("at", at).put("do", what).put("as", step.path("as").asText()).put("error", "");
            try {
                entry.set("value", Host.JSON.valueToTree(step(what, step.path("client").asText(client), step)));
            } catch (Exception e) {
                entry.put("error", messageOf(e));
            }
            synchronized (log) {
                log.add(entry);
            }
        }
        return null;
    }

    private Object step(String what, String client, JsonNode step) throws Exception {
        Seat seat = seats.get(client);
        CopilotSession session = seat == null ? null : seat.session;
        if (session == null && !SESSIONLESS.contains(what)) {
            throw new IllegalStateException("client " + client + " has no session");
        }
        switch (what) {
            case "create":
                return create(client, step);
            case "resume":
                return resume(client, step);
            case "send":
                return session.send(message(step)).get();
            case "send_and_wait":
                var answer = session.sendAndWait(message(step)).get();
                seat.settle();
                return answer == null ? null : answer.getData().content();
            case "clear":
                var clear = new SessionHistoryClearContextParams(sessionId, step.get("prompt").asText());
                return session.getRpc().history.clearContext(clear).get();
            case "abort":
                return session.abort().get();
            case "answer":
                return session.getRpc().tools.handlePendingToolCall(new SessionToolsHandlePendingToolCallParams(
                        sessionId, requestOf(step.get("call").asText()), step.get("text").asText(), null)).get();
            case "truncate":
                var type = step.get("type").asText();
                var last = session.getMessages().get().stream().map(e -> (JsonNode) Host.JSON.valueToTree(e))
                        .filter(e -> Seat.is(e, type, "")).reduce((a, b) -> b).orElseThrow();
                var back = new SessionHistoryTruncateParams(sessionId, last.get("id").asText());
                return session.getRpc().history.truncate(back).get();
            case "get_events":
                return session.getMessages().get();
            case "get_mode":
                return session.getRpc().mode.get().get();
            case "get_model":
                return session.getRpc().model.getCurrent().get().modelId();
            case "wait_event":
                seat.until(step.get("type").asText(), step.path("call").asText(), step.path("count").asInt(1));
                return null;
            case "wait_gate":
                gate(step).await();
                return null;
            case "open_gate":
                gate(step).countDown();
                return null;
            case "wait_model":
                return Host.ask("GET", "model/wait/" + step.get("count").asInt(), null);
            case "release_model":
                return Host.ask("POST", "model/release/" + step.get("count").asInt(), null);
            case "disconnect":
                session.close();
                return null;
            case "stop":
                return seat.client.stop().get();
            case "kill": // SIGKILL to a runtime of our own, a closed socket to one we joined
                return seat.client.forceStop().get();
            case "park": // a handler that never returns
                new CountDownLatch(1).await();
                return null;
            default:
                throw new IllegalStateException("this host does not know the step " + what);
        }
    }

    private String create(String client, JsonNode step) throws Exception {
        Seat seat = connect(client);
        return seated(seat, seat.client.createSession(new SessionConfig()
                .setModel(order.get("model").get("name").asText())
                .setProvider(provider())
                .setSystemMessage(system())
                .setAvailableTools(List.of("custom:*")) // ours only, none of the runtime's
                .setStreaming(order.get("streaming").asBoolean())
                .setTools(tools(client, step))
                .setOnPermissionRequest((request, invocation) -> permission(client, request, invocation))
                .setOnEvent(seat::saw)).get());
    }

    /** Resumes, and asks again while a runtime that was just killed still holds the session. */
    private String resume(String client, JsonNode step) throws Exception {
        Seat seat = connect(client);
        var config = new ResumeSessionConfig()
                .setModel(order.get("model").get("name").asText())
                .setProvider(provider())
                .setSystemMessage(system())
                .setAvailableTools(List.of("custom:*"))
                .setStreaming(order.get("streaming").asBoolean())
                .setTools(tools(client, step))
                .setOnPermissionRequest((request, invocation) -> permission(client, request, invocation))
                .setOnEvent(seat::saw);
        while (true) {
            try {
                return seated(seat, seat.client.resumeSession(sessionId, config).get());
            } catch (ExecutionException e) {
                if (!messageOf(e).contains("busy in process")) {
                    throw e;
                }
                Host.tell(messageOf(e));
            }
        }
    }

    /** Seats a client on the runtime the case asks for. */
    private Seat connect(String client) {
        var options = new CopilotClientOptions().setCopilotHome(order.get("home").asText());
        if (order.get("over").asText().equals("server")) {
            JsonNode server = order.get("server");
            options.setCliUrl(server.get("url").asText()).setTcpConnectionToken(server.get("token").asText());
        } else {
            options.setCliPath(System.getenv("COPILOT_CLI_PATH")).setUseStdio(!order.get("over").asText().equals("tcp"));
        }
        Seat seat = new Seat(new CopilotClient(options));
        seats.put(client, seat);
        return seat;
    }

    private String seated(Seat seat, CopilotSession session) {
        seat.session = session;
        sessionId = session.getSessionId();
        return sessionId;
    }

    private ProviderConfig provider() {
        return new ProviderConfig().setType("openai").setBaseUrl(order.get("model").get("baseUrl").asText()).setApiKey("none");
    }

    private SystemMessageConfig system() {
        return new SystemMessageConfig().setMode(SystemMessageMode.REPLACE).setContent(order.get("system").asText());
    }

    private static MessageOptions message(JsonNode step) {
        var message = new MessageOptions().setPrompt(step.get("prompt").asText());
        return step.has("mode") ? message.setMode(step.get("mode").asText()) : message;
    }

    private List<ToolDefinition> tools(String client, JsonNode step) {
        return Tools.of(order, step.get("tools"), call -> played(client, call));
    }

    /** Plays the steps of a call on a thread of its own and gives the last one. */
    private CompletableFuture<JsonNode> played(String client, ToolInvocation call) {
        String id = call.getToolCallId();
        JsonNode steps = order.path("handlers").path(id);
        return CompletableFuture.supplyAsync(() -> {
            JsonNode end = run(id, client, steps);
            return end != null ? end : Host.JSON.createObjectNode().put("do", "return").put("text", "ok");
        }, THREADS);
    }

    private CompletableFuture<PermissionRequestResult> permission(
            String client, PermissionRequest request, PermissionInvocation invocation) {
        String call = request.getToolCallId();
        JsonNode steps = order.path("permissions").path(call);
        if (steps.isMissingNode()) {
            return PermissionHandler.APPROVE_ALL.handle(request, invocation);
        }
        return CompletableFuture.supplyAsync(() -> {
            JsonNode end = run(call + "/permission", client, steps);
            if (end.get("do").asText().equals("throw")) {
                throw new IllegalStateException(end.get("text").asText());
            }
            return switch (end.get("kind").asText()) {
                case "approve-once" -> PermissionRequestResult.approveOnce();
                case "reject" -> PermissionRequestResult.reject(end.path("text").asText(null));
                case "user-not-available" -> PermissionRequestResult.userNotAvailable();
                default -> throw new IllegalStateException("this host does not know the decision " + end.get("kind"));
            };
        }, THREADS);
    }

    /** The request id under which the runtime asked for a call. */
    private String requestOf(String call) {
        return seats.values().stream()
                .flatMap(seat -> seat.seen().stream())
                .filter(e -> Seat.is(e, "external_tool.requested", call))
                .findFirst()
                .orElseThrow(() -> new IllegalStateException("nobody was asked for call " + call))
                .path("data").path("requestId").asText();
    }

    private CountDownLatch gate(JsonNode step) {
        return gates.computeIfAbsent(step.get("gate").asText(), name -> new CountDownLatch(1));
    }

    /** The message of what went wrong, without the wrapping of futures. */
    private static String messageOf(Throwable e) {
        while ((e instanceof ExecutionException || e instanceof CompletionException) && e.getCause() != null) {
            e = e.getCause();
        }
        return e.getMessage() != null ? e.getMessage() : e.toString();
    }
}
