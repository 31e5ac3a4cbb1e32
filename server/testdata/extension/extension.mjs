// An extension without an SDK: it joins its session, tries what it may not do,
// brings a factory, and says what came of it in the session's log.
const sessionId = process.env.SESSION_ID;
const waiting = new Map();
let serial = 0;

function send(message) {
  const body = Buffer.from(JSON.stringify({ jsonrpc: "2.0", ...message }));
  process.stdout.write(`Content-Length: ${body.length}\r\n\r\n`);
  process.stdout.write(body);
}

function ask(method, params) {
  const id = ++serial;
  send({ id, method, params: { sessionId, ...params } });
  return new Promise((resolve) => waiting.set(id, resolve));
}

async function take(message) {
  if (message.method === "factory.execute") {
    const { runId, executionToken, args } = message.params;
    await ask("session.factory.log", { runId, executionToken, lines: [{ seq: 0, kind: "log", text: "working" }] });
    send({ id: message.id, result: { result: { doubled: args.n * 2 } } });
  } else if (message.method === undefined) {
    waiting.get(message.id)?.(message);
    waiting.delete(message.id);
  } else if (message.id !== undefined) {
    send({ id: message.id, result: {} });
  }
}

let buffer = Buffer.alloc(0);
process.stdin.on("data", (chunk) => {
  buffer = Buffer.concat([buffer, chunk]);
  for (;;) {
    const head = buffer.indexOf("\r\n\r\n");
    if (head < 0) return;
    const length = Number(/Content-Length: (\d+)/i.exec(buffer.subarray(0, head).toString())[1]);
    if (buffer.length < head + 4 + length) return;
    const body = buffer.subarray(head + 4, head + 4 + length);
    buffer = buffer.subarray(head + 4 + length);
    void take(JSON.parse(body.toString()));
  }
});
process.stdin.on("end", () => process.exit(0));

await ask("connect", {});
await ask("session.resume", { disableResume: true, requestPermission: true, factories: [{ name: "double", description: "Doubles.", phases: [] }] });
const outcome = async (method, params) => (await ask(method, params)).error?.code ?? "ok";
const tried = [
  await outcome("session.permissions.setApproveAll", { enabled: true }),
  await outcome("session.create", {}),
  await outcome("session.mode.get", { sessionId: "another" }),
  process.env.GITHUB_TOKEN ?? "no token",
];
await ask("session.log", { message: "joined: " + tried.join(" ") });
