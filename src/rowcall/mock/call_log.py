"""Records what the mock API receives: every call, how many at once, and retries that come too early."""

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
    """One request as the server received it. Times are monotonic seconds.

    Attributes:
        method: the HTTP method, such as ``POST``.
        path: the path with its query, as it was sent.
        text: what the request asks about: the last user message, the word or the sentence.
        record: identifies the record: a digest of its Idempotency-Key, or else of method, path and body.
        number: the number of this try since the record's last good answer, from 1.
        connection: the client's port, which differs for every connection.
        arrived: when the whole request had been received.
        early: it came before the Retry-After of the record's last 429 was over.
        ended: when its answer was ready or its connection closed; None while it is in flight.
        status: the HTTP status of the answer, or what was done instead: ``reset``, ``closed``, ``html``,
            ``dropped`` (the client left, or the server shut down); None while it is in flight.
        headers: the request's headers, including keys.
        body: the request's body.
        id: the answer's ``x-request-id``.
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
        """Parse the body as JSON."""
        return orjson.loads(self.body)


class CallLog:
    """The calls that a server has received. With ``keep=False`` they are only counted, so that memory stays flat.

    Attributes:
        calls: all calls in the order of arrival; empty with ``keep=False``.
        arrived: the number of calls.
        early: the number of calls that came before their record's Retry-After was over.
        in_flight: the number of calls being answered now.
        max_in_flight: the most calls that were in flight at any time.
        served: the number of ended calls by ``RecordedCall.status``.
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
        """Return the calls about a text, oldest first."""
        return list(self._by_text.get(text, ()))

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until a condition holds, if only for a moment. It is tested whenever a call arrives or ends."""
        if holds():
            return
        reached = asyncio.get_running_loop().create_future()
        self._waiting.append((holds, reached))
        await reached

    async def wait_for_calls(self, count: int) -> None:
        """Wait until ``count`` calls have arrived since the start."""
        await self.until(lambda: self.arrived >= count)

    async def wait_in_flight(self, count: int) -> None:
        """Wait until exactly ``count`` calls are in flight."""
        await self.until(lambda: self.in_flight == count)

    def _number(self, record: bytes) -> int:
        """Count a try of the record and return its number."""
        self._tries[record] = self._tries.get(record, 0) + 1
        return self._tries[record]

    def _too_early(self, record: bytes) -> bool:
        return time.monotonic() < self._not_before.pop(record, 0.0)

    def _rest(self, call: RecordedCall, seconds: float) -> None:
        """Count the record as early if it comes again within these seconds."""
        self._not_before[call.record] = time.monotonic() + seconds

    def _begin(self, call: RecordedCall) -> None:
        self.arrived += 1
        self.early += call.early
        self.in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self.in_flight)
        if self._keep:
            self.calls.append(call)
            self._by_text[call.text].append(call)
        self._wake_waiters()

    def _end(self, call: RecordedCall, status: int | str) -> None:
        """Log the end of a call. A good answer resets the record's number of tries."""
        call.status, call.ended = status, time.monotonic()
        if isinstance(status, int) and status < 400:
            self._tries.pop(call.record, None)
        self.served[status] += 1
        self.in_flight -= 1
        self._wake_waiters()

    def _wake_waiters(self) -> None:
        if self._waiting:
            for holds, reached in self._waiting:
                if not reached.done() and holds():
                    reached.set_result(None)
            self._waiting = [(holds, reached) for holds, reached in self._waiting if not reached.done()]
