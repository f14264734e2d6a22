"""What the mock API saw: every call, how many at once, and who came back too early."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson


@dataclass(slots=True, eq=False)
class RecordedCall:
    """One request as the server saw it. Times are monotonic seconds.

    Attributes:
        method: ``POST``.
        path: with its query, as it was sent.
        text: what it asks about: the last user message, the word, the sentence.
        record: stands for the record: a digest of its Idempotency-Key, or else of method, path and body.
        number: which try of the record this is since its last good answer, from 1.
        connection: the client's port: another port is another connection.
        arrived: when the whole request was there.
        early: it came before the Retry-After of the record's last 429 was over.
        ended: when its answer was ready or its connection gone; None while it is in flight.
        status: the HTTP status of the answer, or what took its place: ``reset``, ``closed``, ``html``,
            ``dropped`` (the client left, or the server went down); None while it is in flight.
        headers: what was sent, keys included.
        body: what was sent.
        id: what the answer carries as ``x-request-id``.
    """

    method: str
    path: str
    text: str
    record: bytes = field(repr=False)
    number: int
    connection: int
    arrived: float
    early: bool
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    id: str
    ended: float | None = None
    status: int | str | None = None

    def json(self) -> Any:
        """The body, parsed."""
        return orjson.loads(self.body)


class CallLog:
    """A server's memory of its calls. ``keep=False`` counts them and forgets them, for runs of any length.

    Attributes:
        calls: all of them in the order of their arrival; empty with ``keep=False``.
        arrived: how many came.
        early: how many came before their record's Retry-After was over.
        in_flight: how many are being answered now.
        max_in_flight: the most that were at any time.
        served: how many ended how, by ``Call.status``.
    """

    def __init__(self, *, keep: bool) -> None:
        self.calls: list[RecordedCall] = []
        self.arrived = self.early = self.in_flight = self.max_in_flight = 0
        self.served: Counter[int | str] = Counter()
        self._keep = keep
        self._by_text: defaultdict[str, list[RecordedCall]] = defaultdict(list)
        self._tries: dict[bytes, int] = {}
        self._not_before: dict[bytes, float] = {}
        self._waiting: list[tuple[Callable[[], bool], asyncio.Future[None]]] = []

    def calls_of(self, text: str) -> list[RecordedCall]:
        """The calls about a text, first to last."""
        return list(self._by_text.get(text, ()))

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds, however short: it is looked at whenever a call arrives or ends."""
        if holds():
            return
        told = asyncio.get_running_loop().create_future()
        self._waiting.append((holds, told))
        await told

    async def wait_for_calls(self, count: int) -> None:
        """Wait until so many calls have come since the start."""
        await self.until(lambda: self.arrived >= count)

    async def wait_in_flight(self, count: int) -> None:
        """Wait until exactly so many calls are in flight."""
        await self.until(lambda: self.in_flight == count)

    def _number(self, record: bytes) -> int:
        """Which try of the record begins now."""
        self._tries[record] = self._tries.get(record, 0) + 1
        return self._tries[record]

    def _too_early(self, record: bytes) -> bool:
        return time.monotonic() < self._not_before.pop(record, 0.0)

    def _rest(self, call: RecordedCall, seconds: float) -> None:
        """The record of this call must not come again for so long."""
        self._not_before[call.record] = time.monotonic() + seconds

    def _begin(self, call: RecordedCall) -> None:
        self.arrived += 1
        self.early += call.early
        self.in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self.in_flight)
        if self._keep:
            self.calls.append(call)
            self._by_text[call.text].append(call)
        self._tell()

    def _end(self, call: RecordedCall, status: int | str) -> None:
        """A call is over; a good answer ends the record's tries."""
        call.status, call.ended = status, time.monotonic()
        if isinstance(status, int) and status < 400:
            self._tries.pop(call.record, None)
        self.served[status] += 1
        self.in_flight -= 1
        self._tell()

    def _tell(self) -> None:
        if self._waiting:
            self._waiting = [waiter for waiter in self._waiting if not _told(*waiter)]


def _told(holds: Callable[[], bool], told: asyncio.Future[None]) -> bool:
    if told.done():
        return True
    if holds():
        told.set_result(None)
    return told.done()
