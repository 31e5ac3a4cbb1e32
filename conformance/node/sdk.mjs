// What the host needs of the SDK. Older versions have a file of their own.
import { approveAll, CopilotClient, defineTool, RuntimeConnection, ToolSet } from "@github/copilot-sdk";

/** A client of the runtime that the case asks for. */
export function connect({ over, server, home }) {
  const connection = {
    stdio: () => RuntimeConnection.forStdio(), // the binary is COPILOT_CLI_PATH
    tcp: () => RuntimeConnection.forTcp(),
    server: () => RuntimeConnection.forUri(server.url, { connectionToken: server.token }),
  }[over]();
  return new CopilotClient({ connection, baseDirectory: home });
}

export const create = (client, config, saw) => client.createSession({ ...sdkConfig(config), onEvent: saw });

export const resume = (client, id, config, saw) =>
  client.resumeSession(id, { ...sdkConfig(config), continuePendingWork: config.continue, onEvent: saw });

export const history = (session) => session.getEvents();

function sdkConfig({ model, provider, systemMessage, streaming, tools, decide }) {
  return {
    model,
    provider,
    systemMessage,
    streaming,
    availableTools: new ToolSet().addCustom("*"), // ours only, none of the runtime's
    tools: tools.map(({ name, description, parameters, terminal, deferNever, handler }) =>
      defineTool(name, {
        description,
        parameters,
        isTerminal: terminal,
        defer: deferNever ? "never" : undefined,
        handler: (_args, { toolCallId }) => handler(toolCallId),
      }),
    ),
    onPermissionRequest: async (request, invocation) => (await decide(request)) ?? approveAll(request, invocation),
  };
}
