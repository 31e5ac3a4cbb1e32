"""Connects, which this SDK must not be able to: it speaks protocol 2."""

import asyncio
import os

from copilot import CopilotClient


async def main() -> None:
    client = CopilotClient({"cli_path": os.environ["COPILOT_CLI_PATH"]})
    try:
        await client.start()
    finally:
        await client.force_stop()


asyncio.run(main())
