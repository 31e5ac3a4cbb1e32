using System.Net;
using System.Text;
using System.Text.Json;
using System.Text.Json.Nodes;
using System.Text.Json.Serialization;

namespace Conformance;

/// <summary>A case as the runner hands it out.</summary>
internal sealed record Order(
    string Over,
    OrderServer? Server,
    string Home,
    OrderModel Model,
    [property: JsonPropertyName("system")] string SystemText,
    bool Streaming,
    List<OrderTool> Tools,
    Dictionary<string, List<Step>>? Handlers,
    Dictionary<string, List<Step>>? Permissions,
    List<Step> Host);

/// <summary>A runtime to join, where the case has one.</summary>
internal sealed record OrderServer(string Url, string Token);

internal sealed record OrderModel(string BaseUrl, string Name);

internal sealed record OrderTool(string Name, string Description, JsonElement? Parameters, bool Terminal, bool DeferNever);

/// <summary>One thing to do.</summary>
internal sealed record Step
{
    public string Do { get; init; } = "";
    public string Client { get; init; } = "";
    public string As { get; init; } = "";
    public string Prompt { get; init; } = "";
    public string Mode { get; init; } = "";
    public string Type { get; init; } = "";
    public string Call { get; init; } = "";
    public int Count { get; init; }
    public string Gate { get; init; } = "";
    public List<string>? Tools { get; init; }
    public bool Continue { get; init; }
    public string Text { get; init; } = "";
    public string Kind { get; init; } = "";
}

/// <summary>The outcome of one step.</summary>
internal sealed record Entry(string At, string Do, string As, JsonNode? Value, string Error);

/// <summary>What the runner gets back.</summary>
internal sealed record Observation(List<Entry> Log, Dictionary<string, JsonArray> Events, string Error);

/// <summary>The way to the runner.</summary>
internal static class Desk
{
    private static readonly JsonSerializerOptions Json = new(JsonSerializerDefaults.Web);

    private static readonly HttpClient Http = new()
    {
        BaseAddress = new Uri(Environment.GetEnvironmentVariable("CONFORMANCE_URL") + "/"),
    };

    /// <summary>The next case, or null where all are played.</summary>
    public static async Task<Order?> NextAsync()
    {
        var text = await AskAsync(HttpMethod.Get, "next");
        return text is null ? null : JsonSerializer.Deserialize<Order>(text, Json);
    }

    /// <summary>Hands in what was seen of a case.</summary>
    public static async Task ReportAsync(Observation observation) =>
        await AskAsync(HttpMethod.Post, "result", JsonSerializer.Serialize(observation, Json));

    /// <summary>Talks to the runner; an answer outside 2xx is an error, and null means that it had nothing to say.</summary>
    public static async Task<string?> AskAsync(HttpMethod method, string path, string body = "")
    {
        using var request = new HttpRequestMessage(method, path);
        if (method == HttpMethod.Post)
        {
            request.Content = new StringContent(body, Encoding.UTF8, "application/json");
        }

        using var reply = await Http.SendAsync(request);
        var text = await reply.Content.ReadAsStringAsync();
        if (!reply.IsSuccessStatusCode)
        {
            throw new HttpRequestException($"{path}: {text.Trim()}");
        }

        return reply.StatusCode == HttpStatusCode.NoContent ? null : text;
    }
}
