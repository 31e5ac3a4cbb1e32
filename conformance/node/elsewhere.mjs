// A host whose tools come from elsewhere: two MCP servers, an agent and a skill.
// It clears its context in the middle of their work; cases/80-elsewhere.yaml says
// what it prints, and what the model must have been shown. Called with the name of
// a server it is that server.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { CopilotClient, RuntimeConnection, ToolSet } from "@github/copilot-sdk";
import { clearContext, say } from "./clear.mjs";

/** An MCP server that counts how often it was called: the same process goes on counting. */
async function serve(name) {
  let calls = 0;
  const server = new McpServer({ name, version: "1.0.0" });
  server.registerTool("count", { description: "Counts calls", inputSchema: {} }, () => ({
    content: [{ type: "text", text: `${name} ${++calls}` }],
  }));
  await server.connect(new StdioServerTransport());
}

async function host() {
  const work = join(process.env.COPILOT_HOME, "work");
  mkdirSync(join(work, "skills", "measure"), { recursive: true });
  writeFileSync(
    join(work, "skills", "measure", "SKILL.md"),
    "---\nname: measure\ndescription: How to measure\n---\nMeasure twice, cut once.\n",
  );
  const server = (name) => ({
    type: "local",
    command: process.execPath,
    args: [fileURLToPath(import.meta.url), name],
    tools: ["*"],
  });
  const client = new CopilotClient({ connection: RuntimeConnection.forStdio(), workingDirectory: work });
  const states = async () => {
    const { servers } = await session.rpc.mcp.list();
    return servers.map((s) => `${s.name} ${s.status}`).sort().join(", ");
  };
  const asked = [];
  const session = await client.createSession({
    workingDirectory: work,
    availableTools: new ToolSet().addCustom("*").addMcp("*").addBuiltIn(["skill", "task"]),
    mcpServers: { saw: server("saw"), drill: server("drill") },
    skillDirectories: [join(work, "skills")],
    customAgents: [{ name: "joiner", description: "Joins wood", prompt: "You join wood.", tools: ["saw-count"] }],
    tools: [clearContext(() => session)],
    onPermissionRequest: (request) => {
      asked.push(`${request.kind} ${request.serverName}`);
      return { kind: "approve-once" };
    },
  });
  session.on("subagent.started", (event) => say("agent", event.data.agentName));
  session.on("skill.invoked", (event) => say("skill", event.data.name));
  say("answer", (await session.sendAndWait("Work.")).data.content);
  say("servers", await states());
  say("permissions", asked.sort().join(", "));
  const events = await session.getEvents();
  const results = (mine) =>
    events
      .filter((e) => e.type === "tool.execution_complete" && e.data.success && mine(e))
      .sort((a, b) => (a.data.toolCallId < b.data.toolCallId ? -1 : 1)) // calls of one batch run at once
      .map((e) => e.data.result.content)
      .filter((text) => /^(saw|drill) \d+$/.test(text));
  say("counted", results((e) => !e.agentId).join(", "));
  say("agent counted", results((e) => e.agentId).join(", "));
  await client.stop();
}

await (process.argv[2] ? serve(process.argv[2]) : host());
