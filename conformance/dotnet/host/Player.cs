using System.Collections.Concurrent;
using System.Text.Json.Nodes;
using GitHub.Copilot;
// The rest of this namespace has types of the same names as the one above.
using PermissionDecision = GitHub.Copilot.Rpc.PermissionDecision;

namespace Conformance;

/// <summary>Plays one case. Handlers run at the same time as the main steps.</summary>
internal sealed class Player(Order order)
{
    private static readonly Step Ok = new() { Do = "return", Text = "ok" };

    private readonly ConcurrentQueue<Entry> _log = new();
    private readonly ConcurrentDictionary<string, Seat> _seats = new();
    private readonly ConcurrentDictionary<string, TaskCompletionSource> _gates = new();
    private string _sessionId = "";

    public async Task<Observation> PlayAsync()
    {
        await RunAsync("host", "a", order.Host);
        var errors = new List<string>();
        foreach (var (name, seat) in _seats)
        {
            try
            {
                await seat.Client.StopAsync();
            }
            catch (Exception e)
            {
                errors.Add($"stop {name}: {e.Message}");
            }
        }

        var events = _seats.ToDictionary(seat => seat.Key, seat => ToJson(seat.Value.Seen()));
        return new Observation([.. _log], events, string.Join("\n", errors));
    }

    /// <summary>Runs steps until one of them ends a handler, and returns that one.</summary>
    private async Task<Step> RunAsync(string at, string client, List<Step> steps)
    {
        foreach (var step in steps)
        {
            if (step.Do is "return" or "throw" or "decide")
            {
                return step;
            }

            Console.Error.WriteLine($"{at}: {step.Do}"); // shown only where the case hangs
            JsonNode? value = null;
            var error = "";
            try
            {
                value = await StepAsync(step.Client == "" ? step with { Client = client } : step);
            }
            catch (Exception e)
            {
                error = e.Message;
            }

            _log.Enqueue(new Entry(at, step.Do, step.As, value, error));
        }

        return new Step();
    }

    private async Task<JsonNode?> StepAsync(Step step)
    {
        switch (step.Do)
        {
            case "create" or "resume":
                return await OpenAsync(step);
            case "wait_gate":
                await Gate(step.Gate).Task;
                return null;
            case "open_gate":
                Gate(step.Gate).TrySetResult();
                return null;
            case "wait_model":
                await Desk.AskAsync(HttpMethod.Get, $"model/wait/{step.Count}");
                return null;
            case "release_model":
                await Desk.AskAsync(HttpMethod.Post, $"model/release/{step.Count}");
                return null;
            case "park": // a handler that never returns
                await Task.Delay(Timeout.Infinite);
                return null;
        }

        if (!_seats.TryGetValue(step.Client, out var seat) || seat.Session is not { } session)
        {
            throw new InvalidOperationException($"client {step.Client} has no session");
        }

        return await UseAsync(seat, session, step);
    }

    /// <summary>A step on an open session.</summary>
    private async Task<JsonNode?> UseAsync(Seat seat, CopilotSession session, Step step)
    {
        switch (step.Do)
        {
            case "send":
                return await session.SendAsync(new MessageOptions
                {
                    Prompt = step.Prompt,
                    Mode = step.Mode == "" ? null : step.Mode,
                });
            case "send_and_wait":
                var answer = await session.SendAndWaitAsync(step.Prompt);
                return answer?.Data.Content;
            case "clear":
                var cleared = await session.Rpc.History.ClearContextAsync(step.Prompt);
                return new JsonObject { ["messagesCleared"] = cleared.MessagesCleared };
            case "truncate":
                var last = (await session.GetEventsAsync()).Last(e => e.Type == step.Type);
                var truncated = await session.Rpc.History.TruncateAsync(last.Id.ToString()!);
                return new JsonObject { ["eventsRemoved"] = truncated.EventsRemoved };
            case "answer":
                var handled = await session.Rpc.Tools.HandlePendingToolCallAsync(RequestOf(step.Call), step.Text);
                return new JsonObject { ["success"] = handled.Success };
            case "get_events":
                return ToJson(await session.GetEventsAsync());
            case "get_mode":
                return (await session.Rpc.Mode.GetAsync()).Value;
            case "get_model":
                return (await session.Rpc.Model.GetCurrentAsync()).ModelId;
            case "wait_event":
                await seat.UntilAsync(step.Type, step.Call, Math.Max(step.Count, 1));
                return null;
            case "abort":
                await session.AbortAsync();
                return null;
            case "disconnect":
                await session.DisposeAsync();
                return null;
            case "stop":
                await seat.Client.StopAsync();
                return null;
            case "kill": // SIGKILL to a runtime of our own, a closed socket to one we joined
                await seat.Client.ForceStopAsync();
                return null;
            default:
                throw new NotSupportedException($"this host does not know the step {step.Do}");
        }
    }

    /// <summary>Seats a client and gives it a session: a new one, or the case's.</summary>
    private async Task<JsonNode?> OpenAsync(Step step)
    {
        var seat = new Seat(new CopilotClient(new CopilotClientOptions
        {
            BaseDirectory = order.Home,
            Connection = order.Over switch
            {
                "tcp" => RuntimeConnection.ForTcp(),
                "server" => RuntimeConnection.ForUri("http://" + order.Server!.Url, order.Server.Token),
                _ => RuntimeConnection.ForStdio(), // the binary is COPILOT_CLI_PATH
            },
        }));
        _seats[step.Client] = seat;
        seat.Session = step.Do == "create"
            ? await seat.Client.CreateSessionAsync(Configure(new SessionConfig(), seat, step))
            : await ResumeAsync(seat, step);
        return _sessionId = seat.Session.SessionId;
    }

    private async Task<CopilotSession> ResumeAsync(Seat seat, Step step)
    {
        while (true)
        {
            var config = Configure(new ResumeSessionConfig { ContinuePendingWork = step.Continue }, seat, step);
            try
            {
                return await seat.Client.ResumeSessionAsync(_sessionId, config);
            }
            catch (Exception e) when (e.Message.Contains("busy in process"))
            {
                // A runtime that was just killed may still hold the session for a moment.
                Console.Error.WriteLine(e.Message);
            }
        }
    }

    /// <summary>What create and resume have in common.</summary>
    private T Configure<T>(T config, Seat seat, Step step)
        where T : SessionConfigBase
    {
        config.Model = order.Model.Name;
        config.Provider = new ProviderConfig { Type = "openai", BaseUrl = order.Model.BaseUrl, ApiKey = "none" };
        config.SystemMessage = new SystemMessageConfig { Mode = SystemMessageMode.Replace, Content = order.SystemText };
        config.AvailableTools = new ToolSet().AddCustom("*"); // ours only, none of the runtime's
        config.Streaming = order.Streaming;
        config.Tools =
        [
            .. from tool in order.Tools
               where step.Tools!.Contains(tool.Name)
               select new ScriptedTool(tool, call => HandleAsync(step.Client, call)),
        ];
        config.OnPermissionRequest = (request, _) => DecideAsync(step.Client, request);
        config.OnEvent = seat.Saw;
        return config;
    }

    /// <summary>The handler of every tool: the call's id says what it does.</summary>
    private async Task<ToolResultObject> HandleAsync(string client, ToolInvocation call)
    {
        var end = order.Handlers?.GetValueOrDefault(call.ToolCallId) is { } steps
            ? await RunAsync(call.ToolCallId, client, steps)
            : Ok;
        if (end.Do == "throw")
        {
            throw new InvalidOperationException(end.Text);
        }

        return new ToolResultObject
        {
            TextResultForLlm = end.Text,
            ResultType = end.Kind == "" ? "success" : end.Kind,
        };
    }

    /// <summary>The permission handler: approve, unless the case says more.</summary>
    private async Task<PermissionDecision> DecideAsync(string client, PermissionRequest request)
    {
        var call = (request as PermissionRequestCustomTool)?.ToolCallId ?? "";
        if (order.Permissions?.GetValueOrDefault(call) is not { } steps)
        {
            return PermissionDecision.ApproveOnce();
        }

        var end = await RunAsync($"{call}/permission", client, steps);
        return (end.Do, end.Kind) switch
        {
            ("throw", _) => throw new InvalidOperationException(end.Text),
            (_, "approve-once") => PermissionDecision.ApproveOnce(),
            (_, "user-not-available") => PermissionDecision.UserNotAvailable(),
            (_, "reject") => PermissionDecision.Reject(end.Text == "" ? null : end.Text),
            _ => throw new NotSupportedException($"this host does not know the decision {end.Kind}"),
        };
    }

    /// <summary>The request id under which the runtime asked for a call.</summary>
    private string RequestOf(string call) =>
        _seats.Values
            .SelectMany(seat => seat.Seen())
            .OfType<ExternalToolRequestedEvent>()
            .FirstOrDefault(e => e.Data.ToolCallId == call)?.Data.RequestId
        ?? throw new InvalidOperationException($"nobody was asked for call {call}");

    private TaskCompletionSource Gate(string name) =>
        _gates.GetOrAdd(name, _ => new TaskCompletionSource(TaskCreationOptions.RunContinuationsAsynchronously));

    private static JsonArray ToJson(IEnumerable<SessionEvent> events) =>
        new(events.Select(e => JsonNode.Parse(e.ToJson())).ToArray());
}
