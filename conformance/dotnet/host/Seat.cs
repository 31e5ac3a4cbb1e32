using GitHub.Copilot;

namespace Conformance;

/// <summary>One client of a case: its connection, its session, and what it was told.</summary>
internal sealed class Seat(CopilotClient client)
{
    private readonly object _lock = new();
    private readonly List<SessionEvent> _events = [];
    private TaskCompletionSource _changed = NewSignal();

    public CopilotClient Client { get; } = client;

    public CopilotSession? Session { get; set; }

    /// <summary>Keeps an event and wakes whoever waits for it.</summary>
    public void Saw(SessionEvent e)
    {
        Console.Error.WriteLine($"  {e.Type}");
        TaskCompletionSource changed;
        lock (_lock)
        {
            _events.Add(e);
            changed = _changed;
            _changed = NewSignal();
        }

        changed.SetResult();
    }

    public List<SessionEvent> Seen()
    {
        lock (_lock)
        {
            return [.. _events];
        }
    }

    /// <summary>Returns once so many events of a type were seen, for one call if named.</summary>
    public async Task UntilAsync(string type, string call, int count)
    {
        while (true)
        {
            Task changed;
            lock (_lock)
            {
                if (_events.Count(e => e.Type == type && (call == "" || CallOf(e) == call)) >= count)
                {
                    return;
                }

                changed = _changed.Task;
            }

            await changed;
        }
    }

    /// <summary>The call that an event is about.</summary>
    private static string? CallOf(SessionEvent e) => e switch
    {
        ToolExecutionStartEvent start => start.Data.ToolCallId,
        ToolExecutionCompleteEvent complete => complete.Data.ToolCallId,
        ExternalToolRequestedEvent requested => requested.Data.ToolCallId,
        _ => null,
    };

    private static TaskCompletionSource NewSignal() => new(TaskCreationOptions.RunContinuationsAsynchronously);
}
