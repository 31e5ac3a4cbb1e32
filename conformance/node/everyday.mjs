// A day of an ordinary host: one session that uses much of what the SDK offers,
// each part in its usual way. It prints what it saw; cases/70-everyday.yaml says
// what that must be, and what the model must have been shown.
import { mkdirSync, writeFileSync, existsSync } from "node:fs";
import { join } from "node:path";
import { CopilotClient, defineTool, RuntimeConnection, ToolSet } from "@github/copilot-sdk";
import { z } from "zod";
import { clearContext, say } from "./clear.mjs";

const work = join(process.env.COPILOT_HOME, "work");
mkdirSync(work, { recursive: true });
writeFileSync(join(work, "notes.txt"), "The door is green.\n");

const start = async () => {
  const client = new CopilotClient({ connection: RuntimeConnection.forStdio(), workingDirectory: work });
  await client.start();
  return client;
};

let client = await start();
let session;
let streamed = "";
const seen = [];
const config = {
  workingDirectory: work,
  streaming: true,
  systemMessage: { mode: "append", content: "Answer in one sentence." },
  availableTools: new ToolSet().addCustom("*").addBuiltIn(["view", "create", "ask_user"]),
  tools: [
    defineTool("lookup", {
      description: "Look up a word",
      parameters: z.object({ word: z.string() }),
      skipPermission: true,
      handler: ({ word }) => `${word} means ${word.length}`,
    }),
    clearContext(() => session),
  ],
  commands: [{ name: "today", description: "Say the day", handler: ({ args }) => say("command", args) }],
  onPermissionRequest: (request) => {
    say("permission", request.kind);
    return request.kind === "write" ? { kind: "reject", feedback: "Ask me first." } : { kind: "approve-once" };
  },
  onUserInputRequest: ({ question, choices }) => {
    say("asked", question, choices.join("|"));
    return { answer: "blue", wasFreeform: false };
  },
  hooks: {
    onSessionStart: ({ source }) => {
      say("started", source);
      return source === "new" ? { additionalContext: "The user is called Ada." } : undefined;
    },
    onUserPromptSubmitted: ({ prompt }) => (prompt === "Helo." ? { modifiedPrompt: "Hello." } : undefined),
    onPreToolUse: ({ toolName }) => say("before", toolName),
    onPostToolUse: ({ toolName }) =>
      toolName === "lookup" ? { modifiedResult: { textResultForLlm: "a leaf", resultType: "success" } } : undefined,
  },
  onEvent: (event) => {
    seen.push(event);
    if (event.type === "assistant.message_delta") streamed += event.data.deltaContent;
  },
};
session = await client.createSession(config);
const id = session.sessionId;
const ask = async (prompt, attachments) => {
  streamed = "";
  const answer = (await session.sendAndWait({ prompt, attachments })).data.content;
  say(prompt, answer);
  return answer;
};

// Tools of the host and built-in ones, hooks, permission with feedback, a
// question to the user, an attachment; the answer is streamed.
const answer = await ask("Paint it.", [{ type: "file", path: join(work, "notes.txt"), displayName: "notes.txt" }]);
say("streamed", streamed === answer);
say("written", existsSync(join(work, "door.txt")));
await ask("Helo.");

// A slash command of the host.
await session.rpc.commands.execute({ commandName: "today", args: "Monday" });

// A name, the mode, and what the session says of itself.
await session.rpc.name.set({ name: "Paint" });
await session.rpc.mode.set({ mode: "plan" });
await session.rpc.mode.set({ mode: "interactive" });
say("name", (await session.rpc.name.get()).name, await session.rpc.mode.get());

// A compaction, by hand: the model sums up, and goes on from the summary.
say("compacted", (await session.rpc.history.compact()).success);
await ask("Which colour?");

// A fork goes its own way.
const { sessionId: forked } = await client.rpc.sessions.fork({ sessionId: id, name: "Other" });
const original = session;
session = await client.resumeSession(forked, config);
await ask("Red instead.");
await session.disconnect();
session = original;

// A clear, from a terminal tool; then the runtime is left and comes back.
await ask("Start over.");
await session.disconnect();
await client.stop();
client = await start();
session = await client.resumeSession(id, config);
await ask("Still there?");
const events = await session.getEvents();
const prompts = events.filter((e) => e.type === "user.message" && !e.data.source).map((e) => e.data.content);
say("prompts", prompts.join(" "));
say("once", new Set(events.map((e) => e.id)).size === events.length);
say("errors", seen.filter((e) => e.type === "session.error").length);
await client.stop();
