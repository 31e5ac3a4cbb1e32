"""A host whose agent can clear its own context: the example of the README in
Python, run against Transom. COPILOT_CLI_PATH says which runtime to start;
COPILOT_PROVIDER_BASE_URL and COPILOT_MODEL say which model it talks to.
"""

import asyncio

from copilot import CopilotClient, PermissionHandler, define_tool
from copilot.rpc import HistoryClearContextRequest
from pydantic import BaseModel


class ClearArgs(BaseModel):
    """The arguments of the tool; the schema is derived from them."""

    prompt: str


async def main() -> None:
    @define_tool(
        "clear_context",
        description="Clear the conversation and start a fresh context window",
        is_terminal=True,  # success ends the turn: the result is not fed back
        defer="never",  # the model is always told of this tool
    )
    async def clear_context(args: ClearArgs) -> str:
        # Back into the runtime while it waits for this very handler.
        cleared = await session.rpc.history.clear_context(HistoryClearContextRequest(prompt=args.prompt))
        print(f"Cleared {cleared.messages_cleared} messages.")
        return f"Cleared {cleared.messages_cleared} messages."

    async with CopilotClient() as client:
        session = await client.create_session(
            on_permission_request=PermissionHandler.approve_all,
            tools=[clear_context],
        )
        # The wait ends after the seeded turn, so this is the answer from the
        # fresh window.
        answer = await session.send_and_wait(
            'Call clear_context with the prompt "Reply with exactly FRESH_CONTEXT." now.'
        )
        print(answer.data.content)
        await session.disconnect()


asyncio.run(main())
