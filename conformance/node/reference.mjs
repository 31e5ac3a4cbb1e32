// A host whose MCP servers nobody here wrote: the reference servers of the MCP
// project, as npm has them (servers/package.json). The one that shows everything
// runs three times: as a process, over streamable HTTP and over SSE.
// cases/85-reference.yaml says what this prints, and what the model must have been
// shown. Called as `start NAME COMMAND…` it notes that NAME was started, and is the
// server.
import { spawn } from "node:child_process";
import { appendFileSync, mkdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath, pathToFileURL } from "node:url";
import { CopilotClient, RuntimeConnection, ToolSet } from "@github/copilot-sdk";
import { clearContext, say } from "./clear.mjs";

const package_ = (name) =>
  fileURLToPath(new URL(`servers/node_modules/@modelcontextprotocol/server-${name}/dist/index.js`, import.meta.url));

/** The server itself, in this process; each start leaves a line. */
async function start(name, ...args) {
  appendFileSync(process.env.STARTED, `${name}\n`);
  const program = package_(name);
  process.argv = [process.argv[0], program, ...args];
  await import(pathToFileURL(program));
}

/** A port that was free a moment ago. */
const freePort = () =>
  new Promise((done, failed) => {
    const probe = createServer().on("error", failed);
    probe.listen(0, "127.0.0.1", () => {
      const { port } = probe.address();
      probe.close(() => done(port));
    });
  });

const remotes = [];
process.on("exit", () => remotes.forEach((child) => child.kill("SIGKILL")));

/** Starts the everything server on the network; another port where somebody was faster. */
async function remote(transport) {
  for (let tries = 0; tries < 10; tries++) {
    const port = await freePort();
    const child = spawn(process.execPath, [package_("everything"), transport], {
      env: { ...process.env, PORT: `${port}` },
      stdio: ["ignore", "ignore", "pipe"],
    });
    remotes.push(child);
    let up = false;
    for await (const line of createInterface({ input: child.stderr })) {
      if ((up = line.includes(`port ${port}`) && !line.includes("Failed"))) break;
    }
    child.stderr.resume();
    if (up) return port;
  }
  throw new Error(`no ${transport} server came up`);
}

const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

async function host() {
  const work = join(realpathSync(process.env.COPILOT_HOME), "work");
  mkdirSync(work, { recursive: true });
  writeFileSync(join(work, "notes.txt"), "The door is green.");
  const started = join(work, "..", "started");
  const local = (name, ...args) => ({
    type: "local",
    command: process.execPath,
    args: [fileURLToPath(import.meta.url), "start", name, ...args],
    env: { STARTED: started, MEMORY_FILE_PATH: join(work, "..", "memory.jsonl") },
    tools: ["*"],
  });
  const [http, sse] = await Promise.all([remote("streamableHttp"), remote("sse")]);
  const all = ["http", "sse", "stdio"]; // where there is everything

  // Roots are where tools may work. With the directory for temporary files moved there,
  // too, there is one, and the files server takes relative paths below it.
  const env = { ...process.env, TMPDIR: work };
  const client = new CopilotClient({ connection: RuntimeConnection.forStdio(), workingDirectory: work, env });
  const asked = {};
  const forms = [];
  const session = await client.createSession({
    workingDirectory: work,
    availableTools: new ToolSet().addCustom("*").addMcp("*"),
    mcpServers: {
      stdio: local("everything", "stdio"),
      files: local("filesystem", work),
      memory: local("memory"),
      http: { type: "http", url: `http://127.0.0.1:${http}/mcp`, tools: ["*"] },
      sse: { type: "sse", url: `http://127.0.0.1:${sse}/sse`, tools: ["*"] },
    },
    tools: [clearContext(() => session)],
    onPermissionRequest: ({ kind, serverName }) => {
      asked[`${kind} ${serverName}`] = (asked[`${kind} ${serverName}`] ?? 0) + 1;
      return { kind: "approve-once" };
    },
    onElicitationRequest: ({ message, requestedSchema }) => {
      forms.push(`${message} (${Object.keys(requestedSchema.properties).length} fields)`);
      return { action: "accept", content: { name: "Ada", integer: 7 } };
    },
  });

  const progress = new Set(); // of the calls that take their time
  session.on("tool.execution_progress", ({ data }) => progress.add(`${data.toolCallId} ${/^[12] of 2$/.test(data.progressMessage)}`));

  // A server's wish for an answer of the model: this host lets the session's model give it.
  session.on("sampling.requested", async ({ data }) => {
    const done = await session.rpc.mcp.executeSampling({
      requestId: data.requestId,
      serverName: data.serverName,
      mcpRequestId: data.mcpRequestId,
      request: data.request,
    });
    await session.rpc.ui.handlePendingSampling({ requestId: data.requestId, response: done.result });
  });
  await session.rpc.eventLog.registerInterest({ eventType: "sampling.requested" });

  // The everything server has some tools only once it knows what its client can do.
  const tools = async () => {
    const { tools } = await session.rpc.tools.getCurrentMetadata();
    return (tools ?? []).map((t) => t.name).sort();
  };
  await session.rpc.mcp.list();
  const last = all.flatMap((s) => [`${s}-get-roots-list`, `${s}-trigger-elicitation-request`, `${s}-trigger-sampling-request`]);
  let before;
  do await sleep(20);
  while (((before = await tools()), ![...last, "files-read_text_file", "memory-read_graph"].every((t) => before.includes(t))));

  const answer = await session.sendAndWait("Work.", 25_000);
  say("answer", answer.data.content);
  const { servers } = await session.rpc.mcp.list();
  for (const s of servers.sort((a, b) => (a.name < b.name ? -1 : 1))) say("server", s.name, s.status, s.protocolVersion);
  say("started", readFileSync(started, "utf8").trim().split("\n").sort().join(", "));
  say("same tools", JSON.stringify(await tools()) === JSON.stringify(before), before.length > 60);
  say("asked", Object.keys(asked).sort().map((k) => `${k} ${asked[k]}`).join(", "));
  say("forms", [...new Set(forms)].join(" "), forms.length);

  // What a server's session made stands as long as it does: no server lost its session at the clear.
  for (const serverName of all) {
    const { contents } = await session.rpc.mcp.resources.read({ serverName, uri: `demo://resource/session/${serverName}.gz` });
    say("kept", serverName, contents[0].mimeType, contents[0].blob.length > 20);
  }
  const { resources } = await session.rpc.mcp.resources.list({ serverName: "stdio" });
  say("documents", resources.some((r) => r.uri === "demo://resource/static/document/features.md"));
  const { resourceTemplates } = await session.rpc.mcp.resources.listTemplates({ serverName: "http" });
  say("templates", resourceTemplates.map((t) => t.uriTemplate).sort().join(" "));

  const results = Object.fromEntries(
    (await session.getEvents()).filter((e) => e.type === "tool.execution_complete").map((e) => [e.data.toolCallId, e.data.result]),
  );
  const pictures = all.flatMap((s) => results[`tiny-image-${s}`].binaryResultsForLlm);
  say("images", pictures.map((b) => `${b.type} ${b.mimeType}`).join(", "));
  while (progress.size < all.length) await sleep(20);
  say("progress", [...progress].sort().join(", "));
  say("structured", JSON.stringify(results.weather.structuredContent));
  const environment = JSON.parse(results.environment.content);
  say("environment", environment.STARTED === started, "COPILOT_PROVIDER_API_KEY" in environment);
  await client.stop();
  process.exit(0);
}

const [what, ...rest] = process.argv.slice(2);
await (what === "start" ? start(...rest) : host());
