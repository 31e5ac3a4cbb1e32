using System.Text.Json;
using GitHub.Copilot;
using Microsoft.Extensions.AI;

namespace Conformance;

/// <summary>
/// A tool as a case declares it. <see cref="CopilotTool.DefineTool"/> would derive the schema from a
/// method's parameters; here the schema is given, so it defines everything but that.
/// </summary>
internal sealed class ScriptedTool(OrderTool tool, Func<ToolInvocation, Task<ToolResultObject>> handle) : AIFunction
{
    private readonly JsonElement? _schema = tool.Parameters;

    private readonly AIFunction _defined = CopilotTool.DefineTool(
        () => { },
        new CopilotToolOptions
        {
            IsTerminal = tool.Terminal,
            Defer = tool.DeferNever ? CopilotToolDefer.Never : null,
        },
        new AIFunctionFactoryOptions { Name = tool.Name, Description = tool.Description });

    public override string Name => _defined.Name;

    public override string Description => _defined.Description;

    public override JsonElement JsonSchema => _schema ?? base.JsonSchema;

    public override IReadOnlyDictionary<string, object?> AdditionalProperties => _defined.AdditionalProperties;

    protected override async ValueTask<object?> InvokeCoreAsync(AIFunctionArguments arguments, CancellationToken cancellationToken)
    {
        // The SDK puts the call it is about beside the arguments.
        var invocation = (ToolInvocation)arguments.Context![typeof(ToolInvocation)]!;
        return new ToolResultAIContent(await handle(invocation));
    }
}
