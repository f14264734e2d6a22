"""Lets a process that reads no input know whether others still bring records in, and how far all of them are."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from time import monotonic

from rowcall.model.errors import StoreError
from rowcall.model.job import Status
from rowcall.store.base import Reader
from rowcall.store.types import Counts, Role

EVERY = 1.0
"""Seconds between two looks at the store."""
RESTS = 20
"""After a count, no other one begins for this many times as long as it took: counting a large store is slow."""


class InputWatch:
    """Looks again and again whether records of a kind still come in.

    Args:
        reader: the store.
        kind: the kind.
        wait: more records may come at any time, even while no process brings any in.
    """

    def __init__(self, reader: Reader, kind: str, *, wait: bool) -> None:
        self._reader = reader
        self._kind = kind
        self._wait = wait
        self._over = self._was_fed = False
        self._counts = Counts({})
        self._count_at = 0.0
        self._ended_before: int | None = None
        self._looking: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """Watch until the block ends."""
        self._looking = asyncio.get_running_loop().create_task(self._watch())
        try:
            yield
        finally:
            self._looking.cancel()
            with suppress(asyncio.CancelledError):
                await self._looking

    def over(self) -> bool:
        """Return whether no more records will come.

        Raises:
            Exception: what made the watch fail.
        """
        if self._looking and self._looking.done() and not self._looking.cancelled():
            self._looking.result()
        return self._over

    @property
    def extent(self) -> tuple[int, int, int]:
        """Records of the kind without cancelled ones; those that are done; those that have failed."""
        counts = self._counts
        return counts.total - counts.of(Status.CANCELLED), counts.of(Status.DONE), counts.of(Status.FAILED)

    @property
    def ended(self) -> int:
        """Records that were done or failed since the first look, whichever process worked on them."""
        _, done, failed = self.extent
        return done + failed - (self._ended_before or 0)

    async def _watch(self) -> None:
        while True:
            with suppress(StoreError):  # the processes that write report that, and carry on or end
                await self._look()
            await asyncio.sleep(EVERY)

    async def _look(self) -> None:
        live = await self._reader.live_runs(self._kind)
        if monotonic() >= self._count_at:
            await self._count()
        is_fed = self._wait or any(run.role is not Role.WORK for run in live)
        self._over = (
            not is_fed and not self._was_fed
        )  # two looks in a row: after a database was unreachable, live sessions may seem gone for a moment
        self._was_fed = is_fed

    async def _count(self) -> None:
        began = monotonic()
        self._counts = await self._reader.counts(self._kind)
        self._count_at = monotonic() + RESTS * (monotonic() - began)
        if self._ended_before is None:
            _, done, failed = self.extent
            self._ended_before = done + failed
