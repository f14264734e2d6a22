"""Holds requests back that take their places by themselves, while the API takes no more at a time."""

from __future__ import annotations

import asyncio
from collections import deque

from rowcall.limits.server_limits import ServerLimits


class Room:
    """Room for one more request; who waits is woken when requests end."""

    def __init__(self, adaptive: ServerLimits) -> None:
        self._adaptive = adaptive
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def is_free(self) -> bool:
        """One more request may be in flight."""
        return self._adaptive.room > 0

    async def more(self) -> None:
        """Wait until there may be more room."""
        woken = asyncio.get_running_loop().create_future()
        self._waiting.append(woken)
        try:
            await woken
        except asyncio.CancelledError:
            if woken in self._waiting:
                self._waiting.remove(woken)
            self.wake()
            raise

    def wake(self) -> None:
        """A request has ended: wake as many as there is room for."""
        for _ in range(min(len(self._waiting), self._adaptive.room)):
            woken = self._waiting.popleft()
            if not woken.done():
                woken.set_result(None)
