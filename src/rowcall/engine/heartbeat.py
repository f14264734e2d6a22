"""Keeps a session alive in the store, and learns there what was cancelled and what all processes have spent."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from time import monotonic
from typing import Protocol

from rowcall.engine.run_state import RunState
from rowcall.engine.settler import Settler
from rowcall.model.errors import Busy, Full
from rowcall.model.job import Job
from rowcall.store.base import Store
from rowcall.store.types import Claim

SURE_FOR = 12
"""Beats after which a silent process can no longer be sure of its claims: another one may have taken them over."""


class Holder(Protocol):
    """Holds claimed jobs."""

    def in_hand(self) -> Iterable[Job]:
        """Return all jobs that are claimed and not settled."""

    def drop_cancelled(self, cancelled: set[Claim]) -> None:
        """Drop these claims: a person has cancelled them."""


class Heartbeat:
    """Says every few seconds that the session is alive and which jobs it holds.

    Args:
        store: where the session is.
        state: of the run; its budget learns what was spent.
        settler: puts back what may no longer be this process's own.
        session: this process, as the store knows it.
        kind: the batch job whose spending counts.
        every: seconds between two beats.
    """

    def __init__(
        self, store: Store, state: RunState, settler: Settler, *, session: int, kind: str, every: float
    ) -> None:
        self._store = store
        self._state = state
        self._settler = settler
        self._session = session
        self._kind = kind
        self._every = every
        self._heard_at = monotonic()

    def heard(self, asked: float) -> None:
        """Note that the store gave or confirmed claims when it was asked at this monotonic time."""
        self._heard_at = asked

    def doubt(self) -> None:
        """Put ready jobs back if this process, or the store, stood still so long that others may have claimed them."""
        if monotonic() > self._heard_at + SURE_FOR * self._every:
            self._settler.put_back_ready()

    async def run(self, holder: Holder) -> None:
        """Beat until cancelled."""
        while True:
            try:
                await self._beat(holder)
            except Busy:
                pass
            except Full as full:
                self._state.stop_full(full)
            await asyncio.sleep(self._every)

    async def reap(self) -> bool:
        """Take back what dead processes held; returns whether that was anything.

        Raises:
            Full: there is no space to write it.
        """
        with suppress(Busy):
            if await self._store.reap():
                self._state.notice()
                return True
        return False

    async def _beat(self, holder: Holder) -> None:
        self.doubt()
        began = monotonic()
        held = [(job.row, job.epoch) for job in holder.in_hand()]
        cancelled = await self._store.beat(self._session, held)
        self.heard(began)
        holder.drop_cancelled(set(cancelled))
        budget = self._state.door.budget
        if budget and budget.limit is not None:
            budget.learn(await self._store.spent(self._kind))
        await self.reap()
