// The Node.js host: plays the cases it gets from the runner and reports what it
// saw. It judges nothing. See ../README.md for the steps.
import { connect, create, history, resume } from "./sdk.mjs";

const desk = process.env.CONFORMANCE_URL;

/** The steps that need no open session. */
const sessionless = ["create", "resume", "wait_gate", "open_gate", "wait_model", "release_model", "park"];

/** One client of a case: its connection, its session, and what it was told. */
class Seat {
  events = [];
  #waiting = new Set();

  constructor(client) {
    this.client = client;
  }

  /** Keeps an event and wakes whoever waits for it. */
  saw = (event) => {
    console.error(`  ${event.type}`);
    this.events.push(event);
    for (const check of this.#waiting) check();
  };

  /** Resolves once `count` events of a type were seen, for one call if named. */
  async until({ type, call, count = 1 }) {
    const enough = () =>
      this.events.filter((e) => e.type === type && (!call || e.data.toolCallId === call)).length >= count;
    if (enough()) return;
    await new Promise((resolve) => {
      const check = () => enough() && this.#waiting.delete(check) && resolve();
      this.#waiting.add(check);
    });
  }
}

/** Plays one case. */
class Player {
  log = [];
  seats = new Map();
  #gates = new Map();
  #sessionId;

  constructor(order) {
    this.order = order;
  }

  async play() {
    let error = "";
    try {
      await this.run("host", "a", this.order.host);
      for (const { client } of this.seats.values()) await client.stop();
    } catch (e) {
      error = e.stack;
    }
    const events = Object.fromEntries([...this.seats].map(([name, seat]) => [name, seat.events]));
    return { log: this.log, events, error };
  }

  /** Runs steps until one of them ends a handler, and returns that one. */
  async run(at, client, steps) {
    for (const step of steps) {
      if (["return", "throw", "decide"].includes(step.do)) return step;
      const entry = { at, do: step.do, as: step.as ?? "", error: "" };
      console.error(`${at}: ${step.do}`); // shown only where the case hangs
      try {
        entry.value = await this.step({ client, ...step });
      } catch (e) {
        entry.error = e.message || String(e);
      }
      this.log.push(entry);
    }
  }

  async step(step) {
    const seat = this.seats.get(step.client);
    const session = seat?.session;
    if (!session && !sessionless.includes(step.do)) throw new Error(`client ${step.client} has no session`);
    switch (step.do) {
      case "create":
        return this.open(step, ({ client, saw }) => create(client, this.config(step), saw));
      case "resume":
        return this.open(step, ({ client, saw }) =>
          onceFree(() => resume(client, this.#sessionId, this.config(step), saw)),
        );
      case "send":
        return session.send({ prompt: step.prompt, mode: step.mode });
      case "send_and_wait":
        return (await session.sendAndWait({ prompt: step.prompt }))?.data.content;
      case "clear":
        return session.rpc.history.clearContext({ prompt: step.prompt });
      case "truncate": {
        const last = (await history(session)).findLast((e) => e.type === step.type);
        return session.rpc.history.truncate({ eventId: last.id });
      }
      case "abort":
        return session.abort();
      case "answer":
        return session.rpc.tools.handlePendingToolCall({ requestId: this.requestOf(step.call), result: step.text });
      case "get_events":
        return history(session);
      case "get_mode":
        return session.rpc.mode.get();
      case "get_model":
        return (await session.rpc.model.getCurrent()).modelId;
      case "wait_event":
        return seat.until(step);
      case "wait_gate":
        return this.gate(step.gate).opened;
      case "open_gate":
        return this.gate(step.gate).open();
      case "wait_model":
        return ask(`model/wait/${step.count}`);
      case "release_model":
        return ask(`model/release/${step.count}`, { method: "POST" });
      case "disconnect":
        return session.disconnect();
      case "stop":
        await seat.client.stop();
        return;
      case "kill": // SIGKILL to a runtime of our own, a closed socket to one we joined
        return seat.client.forceStop();
      case "park": // a handler that never returns
        return new Promise(() => {});
      default:
        throw new Error(`this host does not know the step ${step.do}`);
    }
  }

  /** Seats a client and gives it a session. */
  async open(step, start) {
    const seat = new Seat(connect(this.order));
    this.seats.set(step.client, seat);
    seat.session = await start(seat);
    return (this.#sessionId = seat.session.sessionId);
  }

  /** What create and resume have in common. */
  config(step) {
    const { model, system, streaming, tools } = this.order;
    return {
      model: model.name,
      provider: { type: "openai", baseUrl: model.baseUrl, apiKey: "none" },
      systemMessage: { mode: "replace", content: system },
      streaming,
      tools: tools
        .filter((t) => step.tools.includes(t.name))
        .map((t) => ({ ...t, handler: (call) => this.handle(step.client, call) })),
      decide: (request) => this.decide(step.client, request.toolCallId),
      continue: step.continue ?? false,
    };
  }

  /** The handler of every tool: the call's id says what it does. */
  async handle(client, call) {
    const steps = this.order.handlers?.[call] ?? [{ do: "return", text: "ok" }];
    const end = await this.run(call, client, steps);
    if (end.do === "throw") throw new Error(end.text);
    return end.kind ? { textResultForLlm: end.text, resultType: end.kind } : end.text;
  }

  /** The permission handler: approve (no answer), unless the case says more. */
  async decide(client, call) {
    const steps = this.order.permissions?.[call];
    if (!steps) return undefined;
    const end = await this.run(`${call}/permission`, client, steps);
    if (end.do === "throw") throw new Error(end.text);
    return end.text ? { kind: end.kind, feedback: end.text } : { kind: end.kind };
  }

  /** The request id under which the runtime asked for a call. */
  requestOf(call) {
    const asked = [...this.seats.values()]
      .flatMap((seat) => seat.events)
      .find((e) => e.type === "external_tool.requested" && e.data.toolCallId === call);
    if (!asked) throw new Error(`nobody was asked for call ${call}`);
    return asked.data.requestId;
  }

  gate(name) {
    if (!this.#gates.has(name)) {
      const gate = {};
      gate.opened = new Promise((resolve) => (gate.open = resolve));
      this.#gates.set(name, gate);
    }
    return this.#gates.get(name);
  }
}

/** Asks again while a runtime that was just killed still holds the session. */
async function onceFree(resume) {
  for (;;) {
    try {
      return await resume();
    } catch (e) {
      if (!/busy in process/.test(e.message)) throw e;
      console.error(e.message);
    }
  }
}

/** Talks to the runner; an answer outside 2xx is an error. */
async function ask(path, init) {
  const reply = await fetch(`${desk}/${path}`, init);
  if (!reply.ok) throw new Error(`${path}: ${await reply.text()}`);
  return reply.status === 204 ? undefined : reply.json();
}

for (let order = await ask("next"); order; order = await ask("next")) {
  const observation = await new Player(order).play();
  await ask("result", { method: "POST", body: JSON.stringify(observation) });
}
process.exit(0); // parked handlers wait for ever
