package conformance;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.datatype.jsr310.JavaTimeModule;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;

/**
 * The Java host: plays the cases it gets from the runner and reports what it
 * saw. It judges nothing. See ../README.md for the steps.
 */
public final class Host {

    /** JSON as the SDK's own types are written. */
    static final ObjectMapper JSON = new ObjectMapper().registerModule(new JavaTimeModule());

    private static final HttpClient HTTP = HttpClient.newHttpClient();
    private static final String DESK = System.getenv("CONFORMANCE_URL");

    private Host() {
    }

    public static void main(String[] args) throws Exception {
        for (JsonNode order = ask("GET", "next", null); order != null; order = ask("GET", "next", null)) {
            ask("POST", "result", new Player(order).play());
        }
        System.exit(0); // parked handlers wait for ever
    }

    /** Talks to the runner; null where it has nothing to say. */
    static JsonNode ask(String method, String path, JsonNode body) throws IOException, InterruptedException {
        var publisher = body == null ? BodyPublishers.noBody() : BodyPublishers.ofByteArray(JSON.writeValueAsBytes(body));
        var request = HttpRequest.newBuilder(URI.create(DESK + "/" + path)).method(method, publisher).build();
        var reply = HTTP.send(request, BodyHandlers.ofString());
        return switch (reply.statusCode()) {
            case 200 -> JSON.readTree(reply.body());
            case 204 -> null;
            default -> throw new IOException(path + ": " + reply.body());
        };
    }

    /** Shown only where a case hangs. */
    static void tell(String line) {
        System.err.println(line);
    }
}
