"""A live run's ear and voice: it follows what a person sets, shares rests with other processes, tells how it goes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from typing import Any

from rowcall.config.live_settings import LiveSettings, parse_live
from rowcall.limits.rate import Rate
from rowcall.model.errors import Busy, Full
from rowcall.store.base import Store
from rowcall.store.types import Run

EVERY = 1.0
"""Seconds between two looks at the store: one read and one small write."""
SAME = 0.05
"""Seconds by which two accounts of one rest may differ."""
ASKED_ELSEWHERE = "another run was asked to wait"
"""The cause of a rest that the store tells of."""


@dataclass(frozen=True, slots=True)
class Helm:
    """What steering moves.

    Attributes:
        rate: the run's own rate, whose rests are shared.
        rest: lets the run leave its target alone for so many seconds.
        follow: lets settings hold from now on.
        totals: what the run has done so far, and how it goes; None: another process of the run tells that.
    """

    rate: Rate
    rest: Callable[[float, str], None]
    follow: Callable[[LiveSettings], None]
    totals: Callable[[], dict[str, Any]] | None


class StoreSync:
    """Steers one run by what its store says.

    Args:
        store: where orders come from, and where rests and totals go.
        run: the run.
        kind: its kind.
        target: who is called.
        helm: what is moved.
    """

    def __init__(self, store: Store, run: Run, kind: str, target: str, helm: Helm) -> None:
        self._store = store
        self._run = run
        self._kind = kind
        self._target = target
        self._helm = helm
        self._settings: Mapping[str, str] | None = None
        self._known_until = float("-inf")
        self._rested = asyncio.Event()
        helm.rate.on_rest = self._rested.set

    async def run(self) -> None:
        """Follow, share and tell until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._share())
            group.create_task(self._keep_up())

    async def look(self) -> None:
        """Follow what the store says now."""
        orders = await self._store.orders(self._kind, self._target)
        self.rest(orders.rest)
        if orders.settings != self._settings:
            self._settings = orders.settings
            with suppress(ValueError):  # written by hand: `rowcall set` lets nothing in that means nothing
                self._helm.follow(parse_live(orders.settings))

    def rest(self, seconds: float, cause: str = ASKED_ELSEWHERE) -> None:
        """The target is to be left alone for so long, as another process was asked to, or as the store says."""
        now = monotonic()
        if now + seconds > max(self._helm.rate.resting_until, now) + SAME:
            self._known_until = now + seconds
            self._helm.rest(seconds, cause)

    async def _keep_up(self) -> None:
        while True:
            with suppress(Busy, Full):  # the beat says so
                await self.look()
                if self._helm.totals:
                    await self._store.note(self._run, self._helm.totals())
            await asyncio.sleep(EVERY)

    async def _share(self) -> None:
        """Tell the others of a rest that this process was asked for."""
        while True:
            await self._rested.wait()
            self._rested.clear()
            until = self._helm.rate.resting_until
            if until > self._known_until + SAME:
                with suppress(Busy, Full):
                    await self._store.penalize(self._target, max(0.0, until - monotonic()))
                    self._known_until = until
