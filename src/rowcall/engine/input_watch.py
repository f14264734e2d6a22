"""What a process without an input knows of those that have one: whether more may come, and how all of it stands."""

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
"""Seconds between two looks."""
RESTS = 20
"""Counting a large store takes long: it is not counted again for so many times as long."""


class InputWatch:
    """Looks, again and again, at who brings records of a kind in.

    Args:
        reader: the store.
        kind: the kind.
        wait: more may come at any time, also while nobody brings anything in.
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
        """Look until the block ends."""
        self._looking = asyncio.get_running_loop().create_task(self._look_again_and_again())
        try:
            yield
        finally:
            self._looking.cancel()
            with suppress(asyncio.CancelledError):
                await self._looking

    def over(self) -> bool:
        """Whether no more records will come; raises what went wrong with looking."""
        if self._looking and self._looking.done():
            self._looking.result()
        return self._over

    @property
    def extent(self) -> tuple[int, int, int]:
        """Records of the kind, without cancelled ones; those done; those failed."""
        counts = self._counts
        return counts.total - counts.of(Status.CANCELLED), counts.of(Status.DONE), counts.of(Status.FAILED)

    @property
    def ended(self) -> int:
        """Records that were done or failed, by whomever, since the first look."""
        _, done, failed = self.extent
        return done + failed - (self._ended_before or 0)

    async def _look_again_and_again(self) -> None:
        while True:
            with suppress(StoreError):  # whoever writes says so, and goes on or ends
                await self._look()
            await asyncio.sleep(EVERY)

    async def _look(self) -> None:
        live = await self._reader.live_runs(self._kind)
        if monotonic() >= self._count_at:
            await self._count()
        is_fed = self._wait or any(run.role is not Role.WORK for run in live)
        self._over = not is_fed and not self._was_fed  # at two looks: a server that was away loses sight of the living
        self._was_fed = is_fed

    async def _count(self) -> None:
        began = monotonic()
        self._counts = await self._reader.counts(self._kind)
        self._count_at = monotonic() + RESTS * (monotonic() - began)
        if self._ended_before is None:
            _, done, failed = self.extent
            self._ended_before = done + failed
