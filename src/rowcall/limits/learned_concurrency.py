"""How many requests an API takes at a time, found by trying. Pure; times are monotonic seconds.

- Slow start: 32 requests at first, and two more with every success of a call that left while all slots were in use.
  So the number triples with each round trip.
- A call that is refused (429) or that overloads the server (503, 529) was one too many, and so is each further one of
  the same round trip, down to half of what was in flight. Only a call sent after a cut can begin the next cut. So one
  cut goes straight to what the server did take: 20 refusals out of 40 cost no more than one round trip.
- After a cut the limit is held for 2, then 5, 10 and 20 seconds, and then grows by 1, 2, 4, ... slots a second. Once
  the limit is known there is at most one refusal in 20 seconds, and 200 slots are back within 30 seconds.
- A refusal says nothing about concurrency if as many calls as there are slots went well at that level or above. It
  costs one slot for a second. Nor does a refusal count while less than half of the slots are in use: then the rate
  was too high.
- Other trouble (5xx, timeouts) only pauses growth.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from rowcall.limits.concurrency import Concurrency

START = 32
"""Slots of a run before its first reply."""
GAIN = 2
"""Slots that each success adds in slow start."""
STEP = 1.0
"""Seconds between two steps of growth."""
HOLDS = (2.0, 5.0, 10.0, 20.0)
"""Seconds without growth after a cut; the last one repeats."""


@dataclass(frozen=True, slots=True)
class RequestStart:
    """A request when it left: its number, and how many were then in flight, itself included."""

    number: int
    in_flight: int


class LearnedConcurrency:
    """The number of requests that an API takes at a time, as far as it is known.

    Args:
        concurrency: what the user allows, which may change.

    Attributes:
        taken: what the API takes, whatever the user allows.
    """

    def __init__(self, concurrency: Concurrency) -> None:
        self._concurrency = concurrency
        self.taken = min(START, concurrency.requests)
        self._slow_start = True
        self._cut_at = 0  # calls up to this number belong to the round trip of the last cut
        self._least = 1  # what the refusals of that round trip may cut it to
        self._before = self.taken
        self._refused_at = 0
        self._hold = 0
        self._grows_at = float("-inf")
        self._step = 1
        self._full = False
        self._good: Counter[int] = Counter()  # calls that went well since the last step, by how many were in flight

    @property
    def limit(self) -> int:
        """Requests that may be in flight now: from 1 to what the user allows."""
        return min(self.taken, self._concurrency.requests)

    def depart(self, in_flight: int) -> None:
        """Note that a request left, as the last of ``in_flight``."""
        self._full = self._full or in_flight >= self.limit

    def accept(self, in_flight: int, now: float) -> None:
        """Note an answer to a request that had left as the last of ``in_flight``."""
        self._good[in_flight] += 1
        if now >= self._grows_at and self._full and self.taken < self._concurrency.requests:
            self._grow(now)

    def refuse(self, start: RequestStart, sent: int, in_flight: int, now: float) -> bool:
        """Note a request that was one too many; returns whether that begins a cut.

        Args:
            start: the request when it left.
            sent: the number of the latest request.
            in_flight: requests in flight, this one included.
            now: the time.
        """
        if start.number <= self._cut_at:
            self.taken = max(self._least, self.taken - 1)
            return False
        if in_flight * 2 < self.taken:
            return False
        self._cut_at, self._least, self._before = sent, max(1, in_flight // 2), self.taken
        self.taken = max(1, min(self.taken, in_flight) - 1)
        return self._rest(start.in_flight, in_flight, now)

    def pause(self, now: float) -> None:
        """Note other trouble of the server: no growth for a second."""
        self._grows_at = max(self._grows_at, now + STEP)

    def outage(self, sent: int) -> None:
        """Note that the server is gone. That says nothing about concurrency, so a cut made for it is undone."""
        if not self._good:
            self.taken = self._before
        self._cut_at, self._least = sent, self.taken

    def _grow(self, now: float) -> None:
        if self._slow_start:
            self.taken = min(self._concurrency.requests, self.taken + GAIN)
            return
        self.taken = min(self._concurrency.requests, self.taken + self._step)
        self._step *= 2
        self._grows_at = now + STEP
        self._full, self._good = False, Counter()
        if self.taken > self._refused_at * 1.1 + 1:
            self._hold = 0

    def _rest(self, level: int, in_flight: int, now: float) -> bool:
        """Stop growth for a while, longer where this level was refused before; returns whether the limit is real."""
        by_chance = sum(count for other, count in self._good.items() if other >= level) >= self.taken
        if by_chance:
            self._grows_at = now + STEP
        else:
            self._grows_at = now + HOLDS[self._hold]
            self._hold = min(self._hold + 1, len(HOLDS) - 1)
            self._slow_start, self._refused_at = False, in_flight
        self._full, self._good, self._step = False, Counter(), 1
        return not by_chance
