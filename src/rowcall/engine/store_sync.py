"""Keeps a live run and its store in step: settings that a person changes, rests, and how the run is doing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from time import monotonic
from typing import Any, Protocol

from rowcall.calls.door import Door
from rowcall.config.live_settings import LiveSettings, parse_live
from rowcall.engine.rests import SAME, Rests
from rowcall.model.errors import Busy, Full
from rowcall.store.base import Store
from rowcall.store.types import Run

EVERY = 1.0
"""Seconds between two looks at the store: one read and one small write."""


class Steered(Protocol):
    """A live run that can be steered."""

    def follow(self, settings: LiveSettings) -> None:
        """Let these settings hold from now on, over those of the config."""


class StoreSync:
    """Exchanges news between one run and its store.

    Args:
        store: where orders come from, and where rests and totals go.
        run: the run, as the store knows it.
        kind: its batch job.
        target: whose rests are shared.
        door: knows the run's own rests.
        rests: begins rests that the store reports.
        totals: returns what the run has done so far; None: another process of the run writes that.
    """

    def __init__(
        self,
        store: Store,
        run: Run,
        kind: str,
        target: str,
        *,
        door: Door,
        rests: Rests,
        totals: Callable[[], dict[str, Any]] | None,
    ) -> None:
        self._store = store
        self._run = run
        self._kind = kind
        self._target = target
        self._door = door
        self._rests = rests
        self._totals = totals
        self._settings: Mapping[str, str] | None = None

    async def run(self, steered: Steered) -> None:
        """Exchange news until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._share_rests())
            group.create_task(self._keep_in_step(steered))

    async def look(self, steered: Steered) -> None:
        """Follow what the store says now."""
        orders = await self._store.orders(self._kind, self._target)
        self._rests.rest_elsewhere(orders.rest)
        if orders.settings != self._settings:
            self._settings = orders.settings
            with suppress(ValueError):  # somebody edited the table by hand; `rowcall set` checks what it writes
                steered.follow(parse_live(orders.settings))

    async def _keep_in_step(self, steered: Steered) -> None:
        while True:
            with suppress(Busy, Full):  # the heartbeat reports that
                await self.look(steered)
                if self._totals:
                    await self._store.note(self._run, self._totals())
            await asyncio.sleep(EVERY)

    async def _share_rests(self) -> None:
        """Tell other processes of rests that this process was asked for."""
        while True:
            await self._door.rested.wait()
            self._door.rested.clear()
            until = self._door.resting_until
            if until > self._rests.known_until + SAME:
                with suppress(Busy, Full):
                    await self._store.penalize(self._target, max(0.0, until - monotonic()))
                    self._rests.known_until = until
