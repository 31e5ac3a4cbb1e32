// What the host needs of the SDK, as version 0.1 has it: a client hears of its
// session only once it has it.
import { approveAll, CopilotClient, defineTool } from "@github/copilot-sdk";

/** A client of the runtime that the case asks for. */
export function connect({ over, home }) {
  return new CopilotClient({
    cliPath: process.env.COPILOT_CLI_PATH,
    useStdio: over === "stdio",
    env: { ...process.env, COPILOT_HOME: home },
  });
}

export const create = async (client, config, saw) => listen(await client.createSession(sdkConfig(config)), saw);

export const resume = async (client, id, config, saw) => listen(await client.resumeSession(id, sdkConfig(config)), saw);

export const history = (session) => session.getMessages();

function listen(session, saw) {
  session.on(saw);
  return session;
}

function sdkConfig({ model, provider, systemMessage, streaming, tools, decide }) {
  return {
    model,
    provider,
    systemMessage,
    streaming,
    availableTools: tools.map(({ name }) => name), // ours only, none of the runtime's
    tools: tools.map(({ name, description, parameters, handler }) =>
      defineTool(name, { description, parameters, handler: (_args, { toolCallId }) => handler(toolCallId) }),
    ),
    onPermissionRequest: async (request, invocation) => (await decide(request)) ?? approveAll(request, invocation),
  };
}
