// A session that lives in another server: attach, prompt, answer a tool, be
// refused the clear, and live through the death of the other server. It starts
// two runtimes of its own (COPILOT_CLI_PATH) and prints what it sees.
import { spawn } from "node:child_process";
import { mkdirSync } from "node:fs";
import { createInterface } from "node:readline";
import { join } from "node:path";
import { approveAll, CopilotClient, defineTool, RuntimeConnection } from "@github/copilot-sdk";
import { z } from "zod";

const bin = process.env.COPILOT_CLI_PATH;
const token = "far-token";
const home = (name) => {
  const dir = join(process.env.COPILOT_HOME, name);
  mkdirSync(dir, { recursive: true });
  return dir;
};

/** Starts the far server; resolves once it listens. */
async function startFar(port = 0) {
  const env = { ...process.env, COPILOT_HOME: home("far"), COPILOT_CONNECTION_TOKEN: token };
  const child = spawn(bin, ["--headless", "--port", `${port}`], { env, stdio: ["ignore", "pipe", "ignore"] });
  for await (const line of createInterface({ input: child.stdout })) {
    const listening = /listening on port (\d+)/.exec(line);
    if (listening) return { child, port: Number(listening[1]) };
  }
  throw new Error("the far server ended before it listened");
}

/** A promise that is resolved from outside. */
function signal() {
  const s = {};
  s.promise = new Promise((resolve) => (s.resolve = resolve));
  return s;
}

/** Kills a server as a crash does. */
async function kill({ child }) {
  const gone = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGKILL");
  await gone;
}

const tools = (clear, look) => [
  defineTool("clear_context", { description: "Clear the conversation", parameters: z.object({ prompt: z.string() }), handler: clear }),
  defineTool("look", { description: "Look at something", parameters: z.object({}), handler: look }),
];
const unasked = () => {
  throw new Error("the wrong host was asked");
};

let far = await startFar();
process.on("exit", () => far.child.kill("SIGKILL"));

// The session is made by a host of the far server, which then leaves it.
const owner = new CopilotClient({ connection: RuntimeConnection.forUri(`127.0.0.1:${far.port}`, { connectionToken: token }) });
const made = await owner.createSession({ onPermissionRequest: approveAll, tools: tools(unasked, unasked) });
const id = made.sessionId;
await made.sendAndWait("Remember OLDWORD.");

// The near server knows the far one by name.
const near = new CopilotClient({
  connection: RuntimeConnection.forStdio({ path: bin, args: ["--peer", `far=tcp://127.0.0.1:${far.port}?token-env=FAR_TOKEN`] }),
  env: { ...process.env, COPILOT_HOME: home("near"), FAR_TOKEN: token },
});
await near.start();
const { metadata } = await near.rpc.sessions.connect({ sessionId: id });
console.log(`connected: ${metadata.kind}, ${metadata.resourceId === `far/${id}`}`);

let session;
let refused = "not asked";
const seen = [];
const lost = signal();
const restored = signal();
session = await near.resumeSession(id, {
  onPermissionRequest: approveAll,
  tools: tools(
    async ({ prompt }) => {
      try {
        refused = await session.rpc.history.clearContext({ prompt });
      } catch (e) {
        refused = e.message;
      }
      return "The context was not cleared.";
    },
    async () => {
      await kill(far);
      await lost.promise;
      far = await startFar(far.port);
      return "seen"; // given while there may be no link yet: it waits for one
    },
  ),
  onEvent: (event) => {
    seen.push(event);
    if (event.data.warningType === "remote_link_lost") lost.resolve();
    if (event.data.infoType === "remote_link_restored") restored.resolve();
  },
});
await made.disconnect();
await owner.stop();

console.log(`remote: ${(await near.getSessionMetadata(id)).isRemote}`);
const history = await session.getEvents();
console.log(`history: ${history.filter((e) => e.type === "user.message").map((e) => e.data.content)}`);
console.log((await session.sendAndWait("Clear.")).data.content);
console.log(`refused: ${/remote session/.test(refused)}`);
console.log((await session.sendAndWait("Look.")).data.content);
await restored.promise;

const live = seen.filter((e) => !e.ephemeral).map((e) => e.id);
const log = (await session.getEvents()).map((e) => e.id);
console.log(`each event once: ${live.length > 20 && JSON.stringify(live) === JSON.stringify(log.slice(-live.length))}`);
console.log(`cleared: ${seen.some((e) => e.type === "session.context_cleared")}`);

await session.disconnect();
await near.stop();
await kill(far);
