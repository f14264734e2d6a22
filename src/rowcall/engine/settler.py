"""Groups settlements into transactions.

A group is what came in while the previous group was being written; under load it waits up to 20 ms to grow. Two groups
exist at most, one filling and one being written. Handing over waits while there are more unwritten settlements than
two full groups.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from time import monotonic
from typing import TypeVar

from rowcall.engine.duplicate_jobs import DuplicateJobs
from rowcall.engine.run_state import RunState
from rowcall.model.errors import Busy, Full
from rowcall.model.events import LateOutcome, Listener, Shared
from rowcall.model.job import Job
from rowcall.model.outcome import Action, Settlement, put_back
from rowcall.store.base import Store

T = TypeVar("T")
W = TypeVar("W")

GROW_FOR = 0.02
"""Seconds that a small group may wait for more settlements while calls are in flight."""
SPACE_FOR = 60.0
"""Seconds that answers wait for space on a full disk."""
LOOK_FOR_SPACE = 0.5
"""Seconds between two attempts to write to a full disk."""


class Settler:
    """Writes settlements in groups, in the order in which they were put.

    Args:
        store: where they are written.
        state: of the run: how many calls are in flight, and which jobs are ready.
        emit: learns of outcomes that came too late.
        share: an answer also settles all pending records that would send the same.
        duplicates: jobs that wait for another job's answer; they are put back once it is written. None: none do.
    """

    def __init__(
        self,
        store: Store,
        state: RunState,
        *,
        emit: Listener,
        share: bool = False,
        duplicates: DuplicateJobs | None = None,
    ) -> None:
        self._store = store
        self._state = state
        self._emit = emit
        self._share = share
        self._duplicates = duplicates
        self._concurrency = state.door.concurrency
        self._hurried = False
        self._to_share: list[Job] = []
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

    def put(self, settlements: Iterable[Settlement]) -> None:
        """Take settlements, to be written soon."""
        self._filling.extend(settlements)
        self._more.set()
        if len(self._filling) >= self._concurrency.group:
            self._enough.set()

    def put_back_ready(self) -> None:
        """Put back the claimed jobs whose calls were not started."""
        ready = self._state.ready
        self.put(put_back(job) for job in ready)
        ready.clear()

    def release_duplicates(self, jobs: Iterable[Job]) -> None:
        """Put back the jobs that waited for these: they get their answer, or are called themselves."""
        for job in jobs if self._duplicates else ():
            if self._duplicates and (waiting := self._duplicates.end(job)):
                self.put(map(put_back, waiting))
                self._state.notice()

    def share_answers(self, answered: list[Job]) -> None:
        """Give the answers of jobs that are done to the pending duplicates of their records."""
        if self._share and answered:
            self._to_share.extend(answered)
            self._more.set()

    async def room(self) -> None:
        """Wait until there is room for more settlements, which is at once unless the store is slow."""
        while self.unwritten > 2 * self._concurrency.group:
            self._written.clear()
            await self._written.wait()

    async def flush(self) -> None:
        """Wait until everything put so far is written and shared."""
        while self.unwritten or self._to_share:
            self._written.clear()
            await self._written.wait()

    async def run(self) -> None:
        """Write until ``close``. A busy store is waited for without end, a full disk for 60 s.

        Raises:
            StoreError: what the store raises; settlements that were not written are lost.
        """
        while self._filling or self._to_share or not self._closing:
            await self._more.wait()
            self._more.clear()
            if self._state.in_flight > 0 and len(self._filling) < self._concurrency.group // 2:
                await self._grow()
            await self._write()

    def hurry(self) -> None:
        """Stop waiting for space on a full disk."""
        self._hurried = True

    def close(self) -> None:
        """Let ``run`` end once everything is written."""
        self._closing = True
        self._more.set()
        self._enough.set()

    async def _grow(self) -> None:
        """Let a small group grow until it is full: by then every slot may be waiting for it."""
        self._enough.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(GROW_FOR):
                await self._enough.wait()

    async def _write(self) -> None:
        self._writing, self._filling = self._filling, []
        to_share, self._to_share = self._to_share, []
        late = await self._patiently(self._store.settle, self._writing) if self._writing else []
        if to_share and (count := await self._patiently(self._store.answer_pending, to_share)):
            self._emit(Shared(count))
        written, self._writing = self._writing, []
        self.release_duplicates(each.job for each in written)
        self.share_answers([each.job for each in written if each.action is Action.DONE])
        self._written.set()
        for settlement in late:
            self._emit(LateOutcome(settlement.job.key, settlement.job.epoch))

    async def _patiently(self, write: Callable[[list[W]], Awaitable[T]], group: list[W]) -> T:
        since = monotonic()
        while True:
            try:
                return await write(group)
            except Busy:  # the store has waited long and has said so, and the answers are paid for
                continue
            except Full as full:
                self._state.stop_full(full)
                if self._hurried or monotonic() > since + SPACE_FOR:
                    raise
                await asyncio.sleep(LOOK_FOR_SPACE)
