"""The rate limits that all processes of a target share: requests wait here until they may leave."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import add
from time import monotonic
from typing import Protocol

from rowcall.config.units import Rates, TokenLimits
from rowcall.limits.rate_limits import WITHIN, Bucket, Cost
from rowcall.limits.token_estimates import Estimate, Estimator
from rowcall.model.errors import Busy, Full
from rowcall.model.events import Listener, StoreWaits
from rowcall.model.outcome import Usage
from rowcall.store.base import Store
from rowcall.store.types import Reserved

PATIENCE = 1.0
"""Seconds that a request waits while it occupies a slot; before a longer wait its record is put back."""
MOST = 256
"""Requests that are reserved for at a time."""
_LATEST_SHARE = 0.1
"""Weight of the latest calls in the usual cost of a call."""


class NoLimits:
    """No rate limits at all: every request may leave at once.

    Attributes:
        text: the limits in force, as a person reads them.
        free_at: when the next request may leave, as far as this process knows; ``-inf``: at any time.
    """

    def __init__(self) -> None:
        self.text = ""
        self.free_at = -math.inf

    def estimate(self, body: Callable[[], bytes]) -> Estimate:
        """Return what a request will take; ``body`` is called only where tokens are counted."""
        return Estimate()

    async def wait(self, estimate: Estimate, *, patient: bool = False) -> bool:
        """Wait until a request may leave; return False where its record should be put back instead.

        Args:
            estimate: what the request will take.
            patient: its record cannot be put back, so it waits as long as it takes.
        """
        return True

    def correct(self, estimate: Estimate, usage: Usage) -> None:
        """Take in what a request really took, as its reply says."""

    def next_at(self, now: float) -> float:
        """Return the monotonic time at which one more call would leave, after those that wait."""
        return now

    def places(self, now: float, horizon: float, most: int) -> int:
        """Return how many more calls, up to ``most``, would leave within ``horizon`` seconds."""
        return most


@dataclass(frozen=True, slots=True, eq=False)
class _Waiting:
    """A request that waits: ``leaves`` becomes the time at which it may leave, or None where it is put back."""

    estimate: Estimate
    patient: bool
    leaves: asyncio.Future[float | None]


class LimitObserver(Protocol):
    """Learns what the store says while limits are reserved."""

    def rest_elsewhere(self, seconds: float) -> None:
        """The target rests for so long, because another process was asked to wait."""

    def stop_full(self, full: Full) -> None:
        """The disk of the store is full."""


class SharedLimits(NoLimits):
    """Reserves in the store for each request. While no limit is set, requests leave at once and no store is asked.

    Args:
        store: holds what all processes have reserved.
        target: whose limits these are.
        observer: learns of rests and of a full disk.
        emit: learns of a store that somebody else keeps busy.

    Attributes:
        buckets: the limits in force.
        waiting: requests of this process that wait.
    """

    def __init__(self, store: Store, target: str, observer: LimitObserver, *, emit: Listener) -> None:
        super().__init__()
        self._store = store
        self._target = target
        self._observer = observer
        self._emit = emit
        self.buckets: tuple[Bucket, ...] = ()
        self.waiting = 0
        self._step = 0.0  # seconds between two calls of the usual cost
        self._usual: Cost = ()
        self._owed: Cost = ()
        self._expires_after = 0.0
        self._queue: deque[_Waiting] = deque()
        self._more = asyncio.Event()
        self._estimator = Estimator()

    def limit(self, buckets: Sequence[Bucket]) -> None:
        """Let these limits hold from now on."""
        if tuple(buckets) == self.buckets:
            return
        self.buckets = tuple(buckets)
        self.text = ", ".join(map(str, buckets))
        self._usual = tuple(float(bucket.what == "requests") for bucket in buckets)
        self._owed = (0.0,) * len(self.buckets)
        self._expires_after = min((bucket.expires_after for bucket in buckets), default=0.0)
        self.free_at = monotonic()
        self._update_step()
        self.withdraw()

    def estimate(self, body: Callable[[], bytes]) -> Estimate:
        """Return what a request will take; ``body`` is called only where tokens are counted."""
        counted = any(bucket.what != "requests" for bucket in self.buckets)
        return self._estimator.estimate(body()) if counted else Estimate()

    async def wait(self, estimate: Estimate, *, patient: bool = False) -> bool:
        """Wait until a request may leave; return False where that is so far off that its record is put back."""
        while self.buckets:
            leaves = await self._reserved(estimate, patient=patient)
            if leaves is None:
                return False
            await asyncio.sleep(leaves - monotonic())
            if monotonic() <= leaves + self._expires_after:
                return True
        return True

    def correct(self, estimate: Estimate, usage: Usage) -> None:
        """Take in what a request really took; the difference is paid with the next reservation."""
        if not estimate.characters or not (usage.input or usage.output):
            return
        self._estimator.learn(estimate, usage.input, usage.output)
        took = Estimate(usage.input, usage.output)
        more = (_cost(bucket, took) - _cost(bucket, estimate) for bucket in self.buckets)
        self._owed = tuple(owed + each for owed, each in zip(self._owed, more, strict=True))

    def next_at(self, now: float) -> float:
        """Return the monotonic time at which one more call would leave, after those that wait."""
        return max(now, self.free_at) + self.waiting * self._step if self._step else now

    def places(self, now: float, horizon: float, most: int) -> int:
        """Return how many more calls, up to ``most``, would leave within ``horizon`` seconds."""
        if not self._step:
            return most
        left = now + horizon - self.next_at(now)
        return min(most, 1 + int(left / self._step)) if left >= 0 else 0

    def withdraw(self) -> None:
        """Put back the records of all requests that wait; patient ones stay."""
        for request in self._queue:
            if not request.patient and not request.leaves.done():
                request.leaves.set_result(None)

    async def run(self) -> None:
        """Serve the requests that wait, until cancelled."""
        while True:
            await self._more.wait()
            self._more.clear()
            while asking := self._first_waiting():
                await self._serve(asking)

    async def _reserved(self, estimate: Estimate, *, patient: bool) -> float | None:
        request = _Waiting(estimate, patient, asyncio.get_running_loop().create_future())
        self._queue.append(request)
        self.waiting += 1
        self._more.set()
        try:
            return await request.leaves
        finally:
            self.waiting -= 1

    def _first_waiting(self) -> list[_Waiting]:
        self._queue = deque(request for request in self._queue if not request.leaves.done())
        return list(self._queue)[:MOST]

    async def _serve(self, asking: Sequence[_Waiting]) -> None:
        buckets, now = self.buckets, monotonic()
        if not buckets:
            for request in asking:
                request.leaves.set_result(now)
            return
        reserved = await self._reserve(buckets, [tuple(_cost(b, each.estimate) for b in buckets) for each in asking])
        if reserved is None:
            self.withdraw()
            await asyncio.sleep(PATIENCE)
            return
        now = monotonic()
        if buckets == self.buckets:
            self.free_at = now + reserved.next_in
        for request, wait in zip(asking, reserved.leaves, strict=False):
            if not request.leaves.done():
                request.leaves.set_result(now + wait)
        if len(reserved.leaves) < len(asking):
            await self._wait_for_next(reserved.next_in)

    async def _reserve(self, buckets: tuple[Bucket, ...], calls: list[Cost]) -> Reserved | None:
        """Ask the store; None where it cannot be asked now."""
        owed, self._owed = self._owed, (0.0,) * len(buckets)
        try:
            reserved = await self._store.reserve(self._target, buckets, calls, owed)
        except (Busy, Full) as error:
            if buckets == self.buckets:  # what the store was not told is still to be paid
                self._owed = tuple(map(add, self._owed, owed))
            if isinstance(error, Full):
                self._observer.stop_full(error)
            else:
                self._emit(StoreWaits(error.message))
            return None
        if reserved.rest:
            self._observer.rest_elsewhere(reserved.rest)
        if buckets == self.buckets:
            self._usual = tuple(map(_mixed, self._usual, _mean(calls)))
            self._update_step()
        return reserved

    async def _wait_for_next(self, seconds: float) -> None:
        """Wait until shortly before the next reservation is possible, 1 s at most: other processes may take it."""
        if seconds > PATIENCE:
            self.withdraw()
        await asyncio.sleep(min(max(seconds - WITHIN, 0.0), PATIENCE))

    def _update_step(self) -> None:
        steps = (usual * bucket.step for usual, bucket in zip(self._usual, self.buckets, strict=True))
        self._step = max(steps, default=0.0)


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
    return latest if not usual else usual + _LATEST_SHARE * (latest - usual)


def buckets_of(requests: Rates, tokens: TokenLimits) -> tuple[Bucket, ...]:
    """Return the buckets for configured limits; of two limits with the same unit the lower one holds."""
    kinds = {"requests": requests, "tokens": tokens.total, "input": tokens.input, "output": tokens.output}
    lowest: dict[tuple[str, float], Bucket] = {}
    for bucket in (Bucket(what, rate.count, rate.per) for what, rates in kinds.items() for rate in rates):
        unit = (bucket.what, bucket.per)
        lowest[unit] = min(bucket, lowest.get(unit, bucket), key=lambda each: each.count)
    return tuple(lowest.values())
