"""Groups settlements into transactions.

A group is what came in while the last one was being written; under load it waits up to 20 ms to grow. Two groups at
most exist, one filling and one being written. At 2 x concurrency unwritten settlements, handing over waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from time import monotonic
from typing import TypeVar

from rowcall.model.errors import Busy, Full
from rowcall.model.events import LateOutcome, Listener, Shared
from rowcall.model.job import Job
from rowcall.model.outcome import Action, Settlement
from rowcall.store.base import Store

T = TypeVar("T")
W = TypeVar("W")

GROW_FOR = 0.02
"""Seconds that a small group may wait for more, while calls are in flight."""
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
        share: an answer is for all pending records that send the same.
        written: told what was written.
    """

    def __init__(
        self,
        store: Store,
        *,
        concurrency: int,
        emit: Listener,
        loaded: Callable[[], bool],
        full: Callable[[Full], None],
        share: bool = False,
        written: Callable[[Sequence[Settlement]], None] = lambda group: None,
    ) -> None:
        self._store = store
        self._concurrency = concurrency
        self._emit = emit
        self._loaded = loaded
        self._full = full
        self._share = share
        self._tell = written
        self._hurried = False
        self._given: list[Job] = []
        self._filling: list[Settlement] = []
        self._writing: list[Settlement] = []
        self._more = asyncio.Event()
        self._enough = asyncio.Event()
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
        if len(self._filling) >= self._concurrency:
            self._enough.set()

    def give_on(self, answered: list[Job]) -> None:
        """Let the pending twins of jobs that are done have their answers, those that are put back till then too."""
        if self._share and answered:
            self._given.extend(answered)
            self._more.set()

    async def room(self) -> None:
        """Return when there is room for more, which is at once unless the store is behind."""
        while self.unwritten > 2 * self._concurrency:
            self._written.clear()
            await self._written.wait()

    async def flush(self) -> None:
        """Return when everything put so far is written, and given on."""
        while self.unwritten or self._given:
            self._written.clear()
            await self._written.wait()

    async def run(self) -> None:
        """Write until ``close``; Busy is waited out, Full for 60 s.

        Raises:
            StoreError: what the store raises; settlements that were not written are lost.
        """
        while self._filling or self._given or not self._closing:
            await self._more.wait()
            self._more.clear()
            if self._loaded() and len(self._filling) < self._concurrency // 2:
                await self._grow()
            await self._write()

    def hurry(self) -> None:
        """Do not wait for space any more."""
        self._hurried = True

    def close(self) -> None:
        """Let ``run`` end once everything is written."""
        self._closing = True
        self._more.set()
        self._enough.set()

    async def _grow(self) -> None:
        """Let a small group grow, until it holds one for every slot: all slots may wait for it by then."""
        self._enough.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(GROW_FOR):
                await self._enough.wait()

    async def _write(self) -> None:
        self._writing, self._filling = self._filling, []
        given, self._given = self._given, []
        late = await self._patiently(self._store.settle, self._writing) if self._writing else []
        await self._give_on(given)
        written, self._writing = self._writing, []
        self._tell(written)
        self.give_on([each.job for each in written if each.action is Action.DONE])
        self._written.set()
        for settlement in late:
            self._emit(LateOutcome(settlement.job.key, settlement.job.epoch))

    async def _give_on(self, answered: list[Job]) -> None:
        """Answers are for the twins of their records too."""
        if answered and (count := await self._patiently(self._store.answer_pending, answered)):
            self._emit(Shared(count))

    async def _patiently(self, write: Callable[[list[W]], Awaitable[T]], group: list[W]) -> T:
        since = monotonic()
        while True:
            try:
                return await write(group)
            except Busy:  # the store has waited long already, and said so, and the answers are paid for
                continue
            except Full as full:
                self._full(full)
                if self._hurried or monotonic() > since + SPACE_FOR:
                    raise
                await asyncio.sleep(LOOK_FOR_SPACE)
