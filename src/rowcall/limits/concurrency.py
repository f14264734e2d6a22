"""How many calls may be in flight: one object that every part of a run reads."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

UNLIMITED = 1_000_000
"""More requests than can ever be in flight."""


class Concurrency:
    """The concurrency of one process of a run. It may change while the run is live.

    Args:
        wanted: requests in flight that the user allows for the whole run.
        fit: lowers a number to what the operating system's limit of open files allows.

    Attributes:
        records_per_request: 1, or the size of a group.
        waits_by_request: each request waits by itself until it may leave (handlers and groups). False: a job is one
            request, so that the API's limit counts for jobs.
        allowed: requests in flight for the whole run: what the user wants, lowered by ``fit``.
        requests: requests in flight for this process, at most.
        jobs: jobs that this process may work on at a time: one for each request, or enough to fill all groups.
        group: settlements that are worth a transaction of their own at full load.
        in_flight: requests of this process that have left and not ended.
    """

    def __init__(self, wanted: int, *, fit: Callable[[int], int] = int) -> None:
        self._fit = fit
        self.records_per_request = 1
        self.waits_by_request = False
        self._granted: int | None = None
        self._width = UNLIMITED
        self._subscribers: list[Callable[[], None]] = []
        self.in_flight = 0
        self.allowed = fit(wanted)
        self._derive()

    @property
    def now(self) -> int:
        """Requests of this process that may be in flight now: fewer than ``requests`` where the API takes no more."""
        return min(self.requests, self._width)

    @property
    def free(self) -> int:
        """How many more requests may leave now."""
        return max(0, self.now - self.in_flight)

    @property
    def slots(self) -> int:
        """Jobs that may be worked on now."""
        return self.jobs if self.waits_by_request else self.now

    def subscribe(self, changed: Callable[[], None]) -> None:
        """Have ``changed`` called after each change of what the user or the run allows."""
        self._subscribers.append(changed)

    def shape(self, records_per_request: int, *, waits_by_request: bool) -> None:
        """Note how the calls of this run are made; see the attributes."""
        self.records_per_request, self.waits_by_request = records_per_request, waits_by_request
        self._derive()

    def set(self, wanted: int) -> None:
        """Let the user allow another number from now on."""
        self._change(self._fit(wanted), self._granted)

    def grant(self, requests: int) -> None:
        """Give this process its share of a run that several processes work on."""
        self._change(self.allowed, requests)

    def narrow(self, width: int) -> None:
        """Note how many requests the API takes at a time now; nobody is woken for that."""
        self._width = width

    def _change(self, allowed: int, granted: int | None) -> None:
        if (allowed, granted) == (self.allowed, self._granted):
            return
        self.allowed, self._granted = allowed, granted
        self._derive()
        for changed in self._subscribers:
            changed()

    def _derive(self) -> None:
        size = self.records_per_request
        self.requests = self.allowed if self._granted is None else min(self._granted, self.allowed)
        # one more group than may be in flight, which gathers meanwhile
        self.jobs = self.requests if size == 1 or not self.requests else (self.requests + 1) * size
        self.group = min(self.jobs, 2 * max(self.requests, size))


class RequestSlots:
    """Slots for requests that wait by themselves, first come, first served.

    ``async with slots`` takes one of ``concurrency.requests`` slots; where that number falls, requests under way may
    end. ``room`` waits, just before a request leaves, until the API takes one more at a time.

    Attributes:
        taken: slots in use.
    """

    def __init__(self, concurrency: Concurrency) -> None:
        self._concurrency = concurrency
        concurrency.subscribe(self._hand_out)
        self.taken = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._leaving: deque[asyncio.Future[None]] = deque()

    async def __aenter__(self) -> None:
        if self.taken < self._concurrency.requests and not self._waiting:
            self.taken += 1
            return
        mine = asyncio.get_running_loop().create_future()
        self._waiting.append(mine)
        try:
            await mine
        except asyncio.CancelledError:
            if mine.done() and not mine.cancelled():
                self._give_back()
            raise

    async def __aexit__(self, *exc: object) -> None:
        self._give_back()

    async def room(self) -> None:
        """Wait until one more request may be in flight."""
        while not self._concurrency.free:
            woken = asyncio.get_running_loop().create_future()
            self._leaving.append(woken)
            try:
                await woken
            except asyncio.CancelledError:
                if woken in self._leaving:
                    self._leaving.remove(woken)
                self.wake()  # another one may have the turn that this one was given
                raise

    def wake(self) -> None:
        """Let as many requests leave as there is room for; to be called when a request has ended."""
        for _ in range(min(len(self._leaving), self._concurrency.free)):
            woken = self._leaving.popleft()
            if not woken.done():
                woken.set_result(None)

    def _give_back(self) -> None:
        self.taken -= 1
        self._hand_out()

    def _hand_out(self) -> None:
        while self._waiting and self.taken < self._concurrency.requests:
            first = self._waiting.popleft()
            if not first.done():
                self.taken += 1
                first.set_result(None)
