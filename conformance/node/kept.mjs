// A host that keeps the files of its session itself, here in memory, and has the
// runtime write its traces to a file. It clears the session's context, and goes on
// with it in another process; cases/85-kept.yaml says what it prints, and what the
// model must have been shown.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { CopilotClient, RuntimeConnection, ToolSet } from "@github/copilot-sdk";
import { clearContext, say } from "./clear.mjs";

const missing = () => Object.assign(new Error("there is no such file"), { code: "ENOENT" });

/** Files by path. Directories are what the paths have in them. */
class Files {
  held = new Map();

  async readFile(path) {
    if (!this.held.has(path)) throw missing();
    return this.held.get(path);
  }
  async writeFile(path, content) {
    this.held.set(path, content);
  }
  async appendFile(path, content) {
    this.held.set(path, (this.held.get(path) ?? "") + content);
  }
  async exists(path) {
    return this.stat(path).then(
      () => true,
      () => false,
    );
  }
  async stat(path) {
    const isFile = this.held.has(path);
    const isDirectory = !isFile && [...this.held.keys()].some((p) => p.startsWith(`${path}/`));
    if (!isFile && !isDirectory) throw missing();
    const now = new Date().toISOString();
    return { isFile, isDirectory, size: isFile ? this.held.get(path).length : 0, mtime: now, birthtime: now };
  }
  async mkdir() {}
  async readdir(path) {
    return (await this.readdirWithTypes(path)).map((e) => e.name);
  }
  async readdirWithTypes(path) {
    const found = new Map();
    for (const p of this.held.keys()) {
      if (!p.startsWith(`${path}/`)) continue;
      const [name, ...below] = p.slice(path.length + 1).split("/");
      found.set(name, below.length > 0 ? "directory" : "file");
    }
    if (found.size === 0) throw missing();
    return [...found].map(([name, type]) => ({ name, type }));
  }
  async rm(path) {
    for (const p of [...this.held.keys()]) if (p === path || p.startsWith(`${path}/`)) this.held.delete(p);
  }
  async rename(src, dest) {
    this.held.set(dest, await this.readFile(src));
    this.held.delete(src);
  }
}

const home = process.env.COPILOT_HOME;
const traces = join(home, "traces.jsonl");
const kept = new Files();
const start = () =>
  new CopilotClient({
    connection: RuntimeConnection.forStdio(),
    workingDirectory: home,
    sessionFs: { initialCwd: home, sessionStatePath: "/state", conventions: "posix" },
    telemetry: { filePath: traces },
  });
let session;
const config = {
  availableTools: new ToolSet().addCustom("*"),
  createSessionFsProvider: () => kept,
  tools: [clearContext(() => session)],
};
const ask = async (prompt) => (await session.sendAndWait(prompt)).data.content;

let client = start();
session = await client.createSession(config);
say("answer", await ask("Start."));
const id = session.sessionId;
await session.disconnect();
await client.stop();
say("kept", (await kept.readFile("/state/events.jsonl")).includes('"session.context_cleared"'));

client = start();
session = await client.resumeSession(id, config);
say("answer", await ask("Still there?"));
const events = await session.getEvents();
say("history", events.filter((e) => e.type === "user.message").map((e) => e.data.content).join(" "));
await session.disconnect();
await client.stop();

let onDisk = [];
try {
  onDisk = readdirSync(join(home, "session-state"));
} catch (err) {
  if (err.code !== "ENOENT") throw err;
}
say("on disk", onDisk.length);
const lines = readFileSync(traces, "utf8").trimEnd().split("\n").map((l) => JSON.parse(l));
const spans = lines.filter((l) => l.type === "span");
const count = (name) => spans.filter((s) => s.name.split(" ")[0] === name).length;
say("spans", `${count("invoke_agent")} invoke_agent, ${count("chat")} chat, ${count("execute_tool")} execute_tool`);
say("traces", new Set(spans.map((s) => s.traceId)).size);
say("metrics", lines.some((l) => l.type === "metric"));
