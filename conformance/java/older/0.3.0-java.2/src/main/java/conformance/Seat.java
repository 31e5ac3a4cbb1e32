package conformance;

import com.fasterxml.jackson.databind.JsonNode;
import com.github.copilot.sdk.CopilotClient;
import com.github.copilot.sdk.CopilotSession;
import com.github.copilot.sdk.generated.SessionEvent;
import java.util.ArrayList;
import java.util.List;

/** One client of a case: its connection, its session, and what it was told. */
final class Seat {

    final CopilotClient client;
    volatile CopilotSession session;
    private final List<JsonNode> events = new ArrayList<>();

    Seat(CopilotClient client) {
        this.client = client;
    }

    /** Keeps an event and wakes whoever waits for it. */
    synchronized void saw(SessionEvent event) {
        Host.tell("  " + event.getType());
        events.add(Host.JSON.valueToTree(event));
        notifyAll();
    }

    /**
     * Returns once the SDK is done with the events that came so far. sendAndWait
     * may return while the last of them is still handed around, and who
     * subscribes then, as the next sendAndWait does, gets that old event.
     */
    void settle() throws Exception {
        client.ping("settle").get(); // answered behind the events, on the same thread
    }

    synchronized List<JsonNode> seen() {
        return List.copyOf(events);
    }

    /** Returns once {@code count} events of a type were seen, for one call if named. */
    synchronized void until(String type, String call, int count) throws InterruptedException {
        while (events.stream().filter(e -> is(e, type, call)).count() < count) {
            wait();
        }
    }

    /** Whether an event is of a type, and about a call if one is named. */
    static boolean is(JsonNode event, String type, String call) {
        return event.path("type").asText().equals(type)
                && (call.isEmpty() || event.path("data").path("toolCallId").asText().equals(call));
    }
}
