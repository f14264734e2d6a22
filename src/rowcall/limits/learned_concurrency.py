"""How many calls may be in flight: as many as the server takes, found by trying. Pure; times are monotonic seconds.

- Slow start: 32 at first, two more with every success that came of full slots, so that they triple in a round trip.
- A call that is refused (429) or overloads the server (503, 529) is one too many: so is each further one of the same
  round trip, down to half of what was in flight. Only a call sent after a cut can begin the next one. So a cut goes
  at once to what the server did take, and 20 of 40 refused cost no more than one round trip.
- After a cut the limit is held for 2, 5, 10, then 20 s each time, and after that grows by 1, 2, 4, ... slots a
  second: one refusal in 20 s at the most once the limit is known, and 200 slots are back within 30 s.
- A refusal after as many calls went well as there are slots, each as one of at least as many in flight as the refused
  one, says nothing about concurrency: it costs one slot for a second. Nor does one count while less than half of the
  slots are in use: then it is the rate.
- Other trouble (5xx, timeouts) only pauses growth.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

START = 32
"""Slots of a run that has not been answered yet."""
GAIN = 2
"""Slots that come with a success in slow start."""
STEP = 1.0
"""Seconds between two steps of growth."""
HOLDS = (2.0, 5.0, 10.0, 20.0)
"""Seconds without growth after a cut; the last one repeats."""


@dataclass(frozen=True, slots=True)
class RequestStart:
    """A request under way: its number, and how many were in flight when it left, itself included."""

    number: int
    in_flight: int


class LearnedConcurrency:
    """The limit of calls in flight, from 1 to ``most``."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._limit = min(START, most)
        self._slow_start = True
        self._cut_at = 0  # calls sent by then belong to the round trip of the last cut
        self._least = 1  # for cuts of that round trip
        self._before = self._limit
        self._refused_at = 0
        self._hold = 0
        self._grows_at = float("-inf")
        self._step = 1
        self._full = False
        self._good: Counter[int] = Counter()  # calls that went well since the last step, by how many were in flight

    @property
    def limit(self) -> int:
        """Calls that may be in flight now."""
        return min(self._limit, self.most)

    def depart(self, in_flight: int) -> None:
        """A call left; it is one of so many in flight."""
        self._full = self._full or in_flight >= self.limit

    def accept(self, in_flight: int, now: float) -> None:
        """A call was answered that had left as one of so many in flight."""
        self._good[in_flight] += 1
        if now >= self._grows_at and self._full and self._limit < self.most:
            self._grow(now)

    def refuse(self, passage: RequestStart, sent: int, in_flight: int, now: float) -> bool:
        """A call was one too many; returns whether that begins a cut.

        Args:
            passage: of the call.
            sent: the number of the latest call.
            in_flight: calls under way, this one included.
            now: the time.
        """
        if passage.number <= self._cut_at:
            self._limit = max(self._least, self._limit - 1)
            return False
        if in_flight * 2 < self._limit:
            return False
        self._cut_at, self._least, self._before = sent, max(1, in_flight // 2), self._limit
        self._limit = max(1, min(self._limit, in_flight) - 1)
        return self._rest(passage.in_flight, in_flight, now)

    def pause(self, now: float) -> None:
        """The server has other trouble: no growth for a second."""
        self._grows_at = max(self._grows_at, now + STEP)

    def outage(self, sent: int) -> None:
        """The server is gone, which says nothing about concurrency: what was cut for it is given back."""
        if not self._good:
            self._limit = self._before
        self._cut_at, self._least = sent, self._limit

    def _grow(self, now: float) -> None:
        if self._slow_start:
            self._limit = min(self.most, self._limit + GAIN)
            return
        self._limit = min(self.most, self._limit + self._step)
        self._step *= 2
        self._grows_at = now + STEP
        self._full, self._good = False, Counter()
        if self._limit > self._refused_at * 1.1 + 1:
            self._hold = 0

    def _rest(self, level: int, in_flight: int, now: float) -> bool:
        """No growth for a while; for long where this level has been refused before."""
        by_chance = sum(count for other, count in self._good.items() if other >= level) >= self._limit
        if by_chance:
            self._grows_at = now + STEP
        else:
            self._grows_at = now + HOLDS[self._hold]
            self._hold = min(self._hold + 1, len(HOLDS) - 1)
            self._slow_start, self._refused_at = False, in_flight
        self._full, self._good, self._step = False, Counter(), 1
        return not by_chance
