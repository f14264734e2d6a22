"""Slots for requests in flight, whose number may change while they are in use."""

from __future__ import annotations

import asyncio
from collections import deque


class Slots:
    """At most so many at a time, first come, first served; where the number falls, those in use may end.

    Args:
        count: how many.

    Attributes:
        taken: how many are in use.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self.taken = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def __aenter__(self) -> None:
        if self.taken < self._count and not self._waiting:
            self.taken += 1
            return
        mine = asyncio.get_running_loop().create_future()
        self._waiting.append(mine)
        try:
            await mine
        except asyncio.CancelledError:
            if mine.done() and not mine.cancelled():
                self._give()
            raise

    async def __aexit__(self, *exc: object) -> None:
        self._give()

    def resize(self, count: int) -> None:
        """Let so many be in use from now on."""
        self._count = count
        self._hand_out()

    def _give(self) -> None:
        self.taken -= 1
        self._hand_out()

    def _hand_out(self) -> None:
        while self._waiting and self.taken < self._count:
            first = self._waiting.popleft()
            if not first.done():
                self.taken += 1
                first.set_result(None)
