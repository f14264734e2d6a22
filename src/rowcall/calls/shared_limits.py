"""Places that a run's requests wait for, where limits are set: reserved in the store, which all processes share."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import add
from time import monotonic
from typing import Protocol

from rowcall.config.units import Rates, TokenLimits
from rowcall.limits.outlook import Outlook
from rowcall.limits.rate_limits import WITHIN, Bucket, Cost
from rowcall.limits.token_estimates import Estimate, Estimator
from rowcall.model.errors import Busy, Full
from rowcall.model.events import Listener, StoreWaits
from rowcall.model.outcome import Usage
from rowcall.store.base import Store
from rowcall.store.types import Reserved

PATIENCE = 1.0
"""Seconds that a request waits with its slot; before a longer wait its record is put back."""
MOST = 256
"""Requests that ask at a time."""
_USUAL = 0.1
"""How much of what a call usually costs the latest one changes."""


@dataclass(frozen=True, slots=True, eq=False)
class _Request:
    """One that waits for its place: when it may leave, or None where it is put back."""

    estimate: Estimate
    patient: bool
    leaves: asyncio.Future[float | None]


class RequestPacing(Protocol):
    """Gives requests their places."""

    def estimate(self, body: Callable[[], bytes]) -> Estimate:
        """What a request will take."""

    async def place(self, estimate: Estimate, *, patient: bool = False) -> bool:
        """Wait until a request may leave; False where its record is better put back."""

    def correct(self, estimate: Estimate, usage: Usage) -> None:
        """A reply has told what its request took."""


class Unlimited(RequestPacing):
    """Every request may leave at once."""

    def estimate(self, body: Callable[[], bytes]) -> Estimate:
        """Nothing: nobody counts."""
        return Estimate()

    async def place(self, estimate: Estimate, *, patient: bool = False) -> bool:
        """True, at once."""
        return True

    def correct(self, estimate: Estimate, usage: Usage) -> None:
        """Nothing is owed."""


UNLIMITED = Unlimited()


class SharedLimits(RequestPacing):
    """Gives each request its place in the limits of a target; without limits at once, and no store is asked.

    Args:
        store: keeps the places of all processes.
        target: who is called.
        outlook: is told when the next places are free.
        emit: told of a store that is held by somebody else.
        rested: told how long the target rests, where another process was asked to.
        full: told when the disk is full.
    """

    def __init__(
        self,
        store: Store,
        target: str,
        outlook: Outlook,
        *,
        emit: Listener,
        rested: Callable[[float], None],
        full: Callable[[Full], None],
    ) -> None:
        self._store = store
        self._target = target
        self._outlook = outlook
        self._emit = emit
        self._rested = rested
        self._full = full
        self._buckets: tuple[Bucket, ...] = ()
        self._usual: Cost = ()
        self._owed: Cost = ()
        self._void_after = 0.0
        self._queue: deque[_Request] = deque()
        self._more = asyncio.Event()
        self._estimator = Estimator()

    @property
    def buckets(self) -> tuple[Bucket, ...]:
        """The limits that hold."""
        return self._buckets

    def limit(self, buckets: Sequence[Bucket]) -> None:
        """Let these limits hold from now on."""
        if tuple(buckets) == self._buckets:
            return
        self._buckets = tuple(buckets)
        self._usual = tuple(float(bucket.what == "requests") for bucket in buckets)
        self._owed = (0.0,) * len(self._buckets)
        self._void_after = min((bucket.void_after for bucket in buckets), default=0.0)
        self._outlook.free_at = monotonic()
        self._foresee()
        self.withdraw()

    def estimate(self, body: Callable[[], bytes]) -> Estimate:
        """What a request will take; its body is read only where tokens are limited."""
        counted = any(bucket.what != "requests" for bucket in self._buckets)
        return self._estimator.estimate(body()) if counted else Estimate()

    async def place(self, estimate: Estimate, *, patient: bool = False) -> bool:
        """Wait until a request may leave; True then, False where that is so far off that its record is put back.

        Args:
            estimate: what it will take.
            patient: it cannot be put back, and waits as long as it must.
        """
        while self._buckets:
            leaves = await self._asked(estimate, patient=patient)
            if leaves is None:
                return False
            await asyncio.sleep(leaves - monotonic())
            if monotonic() <= leaves + self._void_after:
                return True
        return True

    def correct(self, estimate: Estimate, usage: Usage) -> None:
        """A reply has told what its request took; the difference is paid with the next reservation."""
        if not estimate.characters or not (usage.input or usage.output):
            return
        self._estimator.learn(estimate, usage.input, usage.output)
        took = Estimate(usage.input, usage.output)
        more = (_cost(bucket, took) - _cost(bucket, estimate) for bucket in self._buckets)
        self._owed = tuple(owed + each for owed, each in zip(self._owed, more, strict=True))

    def withdraw(self) -> None:
        """Put back whoever waits; those that cannot be ask again."""
        for request in self._queue:
            if not request.patient and not request.leaves.done():
                request.leaves.set_result(None)

    async def run(self) -> None:
        """Serve those that wait, until cancelled."""
        while True:
            await self._more.wait()
            self._more.clear()
            while self._waiting():
                await self._serve()

    async def _asked(self, estimate: Estimate, *, patient: bool) -> float | None:
        request = _Request(estimate, patient, asyncio.get_running_loop().create_future())
        self._queue.append(request)
        self._outlook.waiting += 1
        self._more.set()
        try:
            return await request.leaves
        finally:
            self._outlook.waiting -= 1

    def _waiting(self) -> list[_Request]:
        """Those that still wait, in their order."""
        self._queue = deque(request for request in self._queue if not request.leaves.done())
        return list(self._queue)[:MOST]

    async def _serve(self) -> None:
        asking, buckets = self._waiting(), self._buckets
        if not buckets:
            return self._let_all_go(asking)
        reserved = await self._reserve(buckets, [tuple(_cost(b, each.estimate) for b in buckets) for each in asking])
        if reserved is None:
            self.withdraw()
            return await asyncio.sleep(PATIENCE)
        now = monotonic()
        if buckets == self._buckets:
            self._outlook.free_at = now + reserved.next_in
        for request, wait in zip(asking, reserved.leaves, strict=False):
            if not request.leaves.done():
                request.leaves.set_result(now + wait)
        if len(reserved.leaves) < len(asking):
            await self._wait(reserved.next_in)
        return None

    def _let_all_go(self, asking: Sequence[_Request]) -> None:
        now = monotonic()
        for request in asking:
            request.leaves.set_result(now)

    def _owe(self, buckets: tuple[Bucket, ...], owed: Cost) -> None:
        """What could not be told to the store is still to be paid."""
        if buckets == self._buckets:
            self._owed = tuple(map(add, self._owed, owed))

    async def _reserve(self, buckets: tuple[Bucket, ...], calls: list[Cost]) -> Reserved | None:
        """Ask the store; None where it cannot be asked now."""
        owed, self._owed = self._owed, (0.0,) * len(buckets)
        try:
            reserved = await self._store.reserve(self._target, buckets, calls, owed)
        except Busy as busy:
            self._owe(buckets, owed)
            self._emit(StoreWaits(busy.message))
            return None
        except Full as full:
            self._owe(buckets, owed)
            self._full(full)
            return None
        if reserved.rest:
            self._rested(reserved.rest)
        if buckets == self._buckets:
            self._usual = tuple(map(_mixed, self._usual, _mean(calls)))
            self._foresee()
        return reserved

    async def _wait(self, seconds: float) -> None:
        """Until the next place is near; others that share it may take it first."""
        if seconds > PATIENCE:
            self.withdraw()
        await asyncio.sleep(min(max(seconds - WITHIN, 0.0), PATIENCE))

    def _foresee(self) -> None:
        steps = (usual * bucket.step for usual, bucket in zip(self._usual, self._buckets, strict=True))
        self._outlook.step = max(steps, default=0.0)


def _cost(bucket: Bucket, estimate: Estimate) -> float:
    match bucket.what:
        case "requests":
            return 1.0
        case "input":
            return estimate.input
        case "output":
            return estimate.output
        case _:
            return estimate.input + estimate.output


def _mean(calls: Sequence[Cost]) -> Cost:
    return tuple(sum(costs) / len(calls) for costs in zip(*calls, strict=True))


def _mixed(usual: float, latest: float) -> float:
    return latest if not usual else usual + _USUAL * (latest - usual)


def buckets_of(requests: Rates, tokens: TokenLimits) -> tuple[Bucket, ...]:
    """The buckets that limits mean; of two with the same unit the lower one holds."""
    kinds = {"requests": requests, "tokens": tokens.total, "input": tokens.input, "output": tokens.output}
    lowest: dict[tuple[str, float], Bucket] = {}
    for bucket in (Bucket(what, rate.count, rate.per) for what, rates in kinds.items() for rate in rates):
        unit = (bucket.what, bucket.per)
        lowest[unit] = min(bucket, lowest.get(unit, bucket), key=lambda each: each.count)
    return tuple(lowest.values())
