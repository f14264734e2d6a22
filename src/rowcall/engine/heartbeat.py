"""A process's signs of life in the store, and what it hears when it gives one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from time import monotonic
from typing import Protocol

from rowcall.limits.budget import Budget
from rowcall.model.errors import Busy, Full
from rowcall.model.job import Job
from rowcall.store.base import Store
from rowcall.store.types import Claim

SURE_FOR = 12
"""Beats for which a claim is surely this process's own; after a longer stop others may have taken it over."""


class Holder(Protocol):
    """Who has jobs in hand."""

    def doubt(self) -> None:
        """Put back what is not surely its own any more and has not been sent."""

    def in_hand(self) -> Iterable[Job]:
        """All that it has claimed and not settled."""

    def drop_cancelled(self, cancelled: set[Claim]) -> None:
        """A person cancelled these claims."""

    def notice(self) -> None:
        """There may be more to claim."""

    def stop_full(self, full: Full) -> None:
        """The disk is full."""


class Heartbeat:
    """Says every few seconds that the session lives and what it holds; hears of cancels and of what was spent.

    Args:
        store: where.
        session: this process there.
        kind: whose money is counted.
        every: seconds between two beats.
        budget: learns what all processes spent; None: any amount may be.
    """

    def __init__(self, store: Store, session: int, kind: str, every: float, budget: Budget | None) -> None:
        self._store = store
        self._session = session
        self._kind = kind
        self._every = every
        self._budget = budget
        self._heard_at = monotonic()

    @property
    def sure(self) -> bool:
        """What was claimed is surely still this process's own: it has not stopped, nor the store, for too long."""
        return monotonic() <= self._heard_at + SURE_FOR * self._every

    def heard(self, asked: float) -> None:
        """The store gave or kept claims when it was asked, at that monotonic time."""
        self._heard_at = asked

    async def run(self, holder: Holder) -> None:
        """Beat until cancelled."""
        while True:
            try:
                await self._beat(holder)
            except Busy:
                pass
            except Full as full:
                holder.stop_full(full)
            await asyncio.sleep(self._every)

    async def reap(self, holder: Holder) -> bool:
        """Take back what dead processes held; whether there was something.

        Raises:
            Full: there is no space to write it.
        """
        with suppress(Busy):
            if await self._store.reap():
                holder.notice()
                return True
        return False

    async def _beat(self, holder: Holder) -> None:
        holder.doubt()
        began = monotonic()
        held = [(job.row, job.epoch) for job in holder.in_hand()]
        cancelled = await self._store.beat(self._session, held)
        self.heard(began)
        holder.drop_cancelled(set(cancelled))
        if self._budget and self._budget.limit is not None:
            self._budget.learn(await self._store.spent(self._kind))
        await self.reap(holder)
