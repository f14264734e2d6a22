"""What the tests of workers share."""

from __future__ import annotations

import asyncio


async def until(condition):
    """Wait for something that happens in another process or pipeline."""
    async with asyncio.timeout(15):
        while not condition():  # noqa: ASYNC110  what another process does is no event of this loop
            await asyncio.sleep(0.02)
