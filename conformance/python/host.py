"""The Python host: plays the cases it gets from the runner and reports what it
saw. It judges nothing. See ../README.md for the steps.
"""

import asyncio
import os
import sys
import traceback
from enum import Enum

import httpx
from copilot import CopilotClient, PermissionHandler, RuntimeConnection, Tool, ToolResult, ToolSet
from copilot.rpc import (
    HandlePendingToolCallRequest,
    HistoryClearContextRequest,
    HistoryTruncateRequest,
    PermissionDecisionApproveOnce,
    PermissionDecisionReject,
    PermissionDecisionUserNotAvailable,
)

# The steps that need no open session.
SESSIONLESS = {"create", "resume", "wait_gate", "open_gate", "wait_model", "release_model", "park"}


class Desk:
    """Talks to the runner; an answer outside 2xx is an error."""

    def __init__(self, url: str):
        self._http = httpx.AsyncClient(base_url=url + "/", timeout=None)

    async def get(self, path: str):
        return self._read(await self._http.get(path))

    async def post(self, path: str, body=None):
        return self._read(await self._http.post(path, json=body))

    @staticmethod
    def _read(reply: httpx.Response):
        if reply.is_error:
            raise RuntimeError(f"{reply.request.url.path}: {reply.text}")
        return None if reply.status_code == 204 else reply.json()


class Seat:
    """One client of a case: its connection, its session, and what it was told."""

    def __init__(self, client: CopilotClient):
        self.client = client
        self.session = None
        self.events: list[dict] = []
        self._more = asyncio.Condition()
        self._notes: set[asyncio.Task] = set()

    def saw(self, event) -> None:
        """Keeps an event and wakes whoever waits for it."""
        told(f"  {event.type.value}")
        self.events.append(event.to_dict())
        note = asyncio.ensure_future(self._note())
        self._notes.add(note)
        note.add_done_callback(self._notes.discard)

    async def _note(self) -> None:
        async with self._more:
            self._more.notify_all()

    async def until(self, kind: str, call: str | None, count: int) -> None:
        """Returns once `count` events of a type were seen, for one call if named."""

        def enough() -> bool:
            hits = [e for e in self.events if e["type"] == kind]
            return sum(not call or e["data"].get("toolCallId") == call for e in hits) >= count

        async with self._more:
            await self._more.wait_for(enough)


class Player:
    """Plays one case."""

    def __init__(self, desk: Desk, order: dict):
        self.desk = desk
        self.order = order
        self.log: list[dict] = []
        self.seats: dict[str, Seat] = {}
        self.gates: dict[str, asyncio.Event] = {}
        self.session_id = ""

    async def play(self) -> dict:
        error = ""
        try:
            await self.run("host", "a", self.order["host"])
            for seat in self.seats.values():
                await seat.client.stop()
        except Exception:
            error = traceback.format_exc()
        return {"log": self.log, "events": {name: s.events for name, s in self.seats.items()}, "error": error}

    async def run(self, at: str, client: str, steps: list[dict]) -> dict | None:
        """Runs steps until one of them ends a handler, and returns that one."""
        for step in steps:
            if step["do"] in ("return", "throw", "decide"):
                return step
            entry = {"at": at, "do": step["do"], "as": step.get("as", ""), "error": ""}
            told(f"{at}: {step['do']}")  # shown only where the case hangs
            try:
                entry["value"] = plain(await self.step({"client": client, **step}))
            except Exception as e:
                entry["error"] = str(e) or repr(e)
            self.log.append(entry)
        return None

    async def step(self, step: dict):
        seat = self.seats.get(step["client"])
        session = seat and seat.session
        if session is None and step["do"] not in SESSIONLESS:
            raise RuntimeError(f"client {step['client']} has no session")
        match step["do"]:
            case "create":
                seat = self.connect(step["client"])
                return self.seated(seat, await seat.client.create_session(on_event=seat.saw, **self.config(step)))
            case "resume":
                return await self.resume(step)
            case "send":
                return await session.send(step["prompt"], mode=step.get("mode"))
            case "send_and_wait":
                answer = await session.send_and_wait(step["prompt"])
                return answer and answer.data.content
            case "clear":
                return await session.rpc.history.clear_context(HistoryClearContextRequest(step["prompt"]))
            case "truncate":
                last = [e for e in await session.get_events() if e.type.value == step["type"]][-1]
                return await session.rpc.history.truncate(HistoryTruncateRequest(str(last.id)))
            case "abort":
                return await session.abort()
            case "answer":
                answer = HandlePendingToolCallRequest(self.request_of(step["call"]), result=step["text"])
                return await session.rpc.tools.handle_pending_tool_call(answer)
            case "get_events":
                return await session.get_events()
            case "get_mode":
                return await session.rpc.mode.get()
            case "get_model":
                return (await session.rpc.model.get_current()).model_id
            case "wait_event":
                return await seat.until(step["type"], step.get("call"), step.get("count", 1))
            case "wait_gate":
                await self.gate(step["gate"]).wait()
            case "open_gate":
                self.gate(step["gate"]).set()
            case "wait_model":
                return await self.desk.get(f"model/wait/{step['count']}")
            case "release_model":
                return await self.desk.post(f"model/release/{step['count']}")
            case "disconnect":
                return await session.disconnect()
            case "stop":
                return await seat.client.stop()
            case "kill":  # SIGKILL to a runtime of our own, a closed socket to one we joined
                return await seat.client.force_stop()
            case "park":  # a handler that never returns
                await asyncio.Event().wait()
            case do:
                raise RuntimeError(f"this host does not know the step {do}")

    async def resume(self, step: dict) -> str:
        """Asks again while a runtime that was just killed still holds the session."""
        seat = self.connect(step["client"])
        config = {**self.config(step), "continue_pending_work": step.get("continue", False)}
        while True:
            try:
                resumed = await seat.client.resume_session(self.session_id, on_event=seat.saw, **config)
                return self.seated(seat, resumed)
            except Exception as e:
                if "busy in process" not in str(e):
                    raise
                told(str(e))

    def connect(self, name: str) -> Seat:
        """Seats a client on the runtime the case asks for."""
        match self.order["over"]:
            case "tcp":
                connection = RuntimeConnection.for_tcp()
            case "server":
                server = self.order["server"]
                connection = RuntimeConnection.for_uri(server["url"], connection_token=server["token"])
            case _:  # the binary is COPILOT_CLI_PATH
                connection = RuntimeConnection.for_stdio()
        seat = Seat(CopilotClient(connection=connection, base_directory=self.order["home"]))
        self.seats[name] = seat
        return seat

    def seated(self, seat: Seat, session) -> str:
        seat.session = session
        self.session_id = session.session_id
        return session.session_id

    def config(self, step: dict) -> dict:
        """What create and resume have in common."""
        order, client = self.order, step["client"]
        return {
            "model": order["model"]["name"],
            "provider": {"type": "openai", "base_url": order["model"]["baseUrl"], "api_key": "none"},
            "system_message": {"mode": "replace", "content": order["system"]},
            "available_tools": ToolSet().add_custom("*"),  # ours only, none of the runtime's
            "streaming": order["streaming"],
            "tools": [self.tool(t, client) for t in order["tools"] if t["name"] in step["tools"]],
            "on_permission_request": lambda request, invocation: self.permission(client, request, invocation),
        }

    def tool(self, tool: dict, client: str) -> Tool:
        async def handler(invocation) -> ToolResult:
            call = invocation.tool_call_id
            steps = (self.order.get("handlers") or {}).get(call) or [{"do": "return", "text": "ok"}]
            # The SDK cancels a handler whose call is over. The steps go on all
            # the same: they are the case's, and some of them come after that.
            end = await asyncio.shield(asyncio.ensure_future(self.run(call, client, steps)))
            if end["do"] == "throw":
                raise RuntimeError(end["text"])
            return ToolResult(text_result_for_llm=end["text"], result_type=end.get("kind", "success"))

        return Tool(
            name=tool["name"],
            description=tool["description"],
            parameters=tool.get("parameters"),
            is_terminal=tool.get("terminal", False),
            defer="never" if tool.get("deferNever") else None,
            handler=handler,
        )

    async def permission(self, client: str, request, invocation):
        steps = (self.order.get("permissions") or {}).get(request.tool_call_id)
        if not steps:
            return PermissionHandler.approve_all(request, invocation)
        end = await self.run(f"{request.tool_call_id}/permission", client, steps)
        if end["do"] == "throw":
            raise RuntimeError(end["text"])
        match end["kind"]:
            case "approve-once":
                return PermissionDecisionApproveOnce()
            case "reject":
                return PermissionDecisionReject(feedback=end.get("text"))
            case "user-not-available":
                return PermissionDecisionUserNotAvailable()
            case kind:
                raise RuntimeError(f"this host does not know the decision {kind}")

    def request_of(self, call: str) -> str:
        """The request id under which the runtime asked for a call."""
        for seat in self.seats.values():
            for e in seat.events:
                if e["type"] == "external_tool.requested" and e["data"]["toolCallId"] == call:
                    return e["data"]["requestId"]
        raise RuntimeError(f"nobody was asked for call {call}")

    def gate(self, name: str) -> asyncio.Event:
        return self.gates.setdefault(name, asyncio.Event())


def plain(value):
    """A value of the SDK as JSON has it."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, list):
        return [plain(v) for v in value]
    return value.to_dict() if hasattr(value, "to_dict") else value


def told(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


async def main() -> None:
    desk = Desk(os.environ["CONFORMANCE_URL"])
    while order := await desk.get("next"):
        await desk.post("result", await Player(desk, order).play())


asyncio.run(main())
