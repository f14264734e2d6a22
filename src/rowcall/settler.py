"""Groups settlements into transactions.

A group is what came in while the last one was being written; under load it waits up to 20 ms to grow. Two groups at
most exist, one filling and one being written. At 2 x concurrency unwritten settlements, handing over waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from time import monotonic

from rowcall.errors import Busy, Full
from rowcall.events import LateOutcome, Listener
from rowcall.outcome import Settlement
from rowcall.store.base import Store

GROW_FOR = 0.02
"""Seconds that a group may wait for more, while calls are in flight."""
SPACE_FOR = 60.0
"""Seconds that answers in hand wait for space on a full disk."""
LOOK_FOR_SPACE = 0.5
"""Seconds between two looks whether there is some."""


class Settler:
    """Writes settlements in groups, in the order they were put.

    Args:
        store: where they go.
        concurrency: most calls in flight; twice that many unwritten settlements hold ``room`` up.
        emit: told of outcomes that came too late.
        loaded: whether more will soon come, so that a group is worth a short wait.
        full: told when the disk is full, so that no more is begun.
    """

    def __init__(
        self,
        store: Store,
        *,
        concurrency: int,
        emit: Listener,
        loaded: Callable[[], bool],
        full: Callable[[Full], None],
    ) -> None:
        self._store = store
        self._concurrency = concurrency
        self._emit = emit
        self._loaded = loaded
        self._full = full
        self._hurried = False
        self._filling: list[Settlement] = []
        self._writing: list[Settlement] = []
        self._more = asyncio.Event()
        self._written = asyncio.Event()
        self._closing = False

    @property
    def unwritten(self) -> int:
        """Settlements that a crash would lose now."""
        return len(self._filling) + len(self._writing)

    def resize(self, concurrency: int) -> None:
        """So many calls may be in flight from now on."""
        self._concurrency = concurrency

    def put(self, settlements: Iterable[Settlement]) -> None:
        """Take settlements over."""
        self._filling.extend(settlements)
        self._more.set()

    async def room(self) -> None:
        """Return when there is room for more, which is at once unless the store is behind."""
        await self._until(2 * self._concurrency)

    async def flush(self) -> None:
        """Return when everything put so far is written."""
        await self._until(0)

    async def run(self) -> None:
        """Write until ``close``; Busy is waited out, Full for 60 s.

        Raises:
            StoreError: what the store raises; settlements that were not written are lost.
        """
        while self._filling or not self._closing:
            await self._more.wait()
            self._more.clear()
            if self._loaded() and len(self._filling) < self._concurrency // 2:
                await asyncio.sleep(GROW_FOR)
            await self._write()

    def hurry(self) -> None:
        """Do not wait for space any more."""
        self._hurried = True

    def close(self) -> None:
        """Let ``run`` end once everything is written."""
        self._closing = True
        self._more.set()

    async def _until(self, most: int) -> None:
        while self.unwritten > most:
            self._written.clear()
            await self._written.wait()

    async def _write(self) -> None:
        self._writing, self._filling = self._filling, []
        late = await self._settle(self._writing) if self._writing else []
        self._writing = []
        self._written.set()
        for settlement in late:
            self._emit(LateOutcome(settlement.job.key, settlement.job.epoch))

    async def _settle(self, group: list[Settlement]) -> list[Settlement]:
        since = monotonic()
        while True:
            try:
                return await self._store.settle(group)
            except Busy:  # the store has waited long already, and said so, and the answers are paid for
                continue
            except Full as full:
                self._full(full)
                if self._hurried or monotonic() > since + SPACE_FOR:
                    raise
                await asyncio.sleep(LOOK_FOR_SPACE)
