"""The rate of calls: the generic cell rate algorithm, with rests that the server asked for.

GCRA keeps one number, the theoretical arrival time of the next call (ITU-T I.371, virtual scheduling): a call may
leave at ``tat - tolerance``; leaving moves ``tat`` on by ``per / count``. With a tolerance of one burst, no window as
long as the limit's own unit ever holds more than ``count`` calls and that burst.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

BURST_SHARE = 0.01
"""The burst is one call, or this share of the count."""


@dataclass(frozen=True, slots=True)
class Limit:
    """At most ``count`` calls in ``per`` seconds."""

    count: float
    per: float


class Rate:
    """When calls may leave. Times are monotonic seconds. Without a limit only rests hold calls back.

    Attributes:
        on_rest: told of every rest that begins or grows.
    """

    def __init__(self, limit: Limit | None = None) -> None:
        self._step = limit.per / limit.count if limit else 0.0
        burst = max(1.0, limit.count * BURST_SHARE) if limit else 1.0
        self._tolerance = (burst - 1) * self._step
        self._tat = float("-inf")
        self._resting_until = float("-inf")
        self.on_rest: Callable[[], None] = lambda: None

    @property
    def resting_until(self) -> float:
        """When the rest that the server asked for is over."""
        return self._resting_until

    def rest(self, seconds: float, now: float) -> None:
        """Let no call leave for so long; a shorter rest never ends a longer one."""
        if now + seconds > self._resting_until:
            self._resting_until = now + seconds
            self.on_rest()

    def next_at(self, now: float) -> float:
        """The earliest time at which the next call may leave."""
        return max(now, self._resting_until, self._tat - self._tolerance)

    def take(self, now: float) -> float:
        """Take the next place; returns when that call may leave."""
        leaves = self.next_at(now)
        self._tat = max(self._tat, leaves) + self._step
        return leaves

    def give_back(self) -> None:
        """Return the place taken last, for a call that did not leave."""
        self._tat -= self._step

    def places(self, now: float, horizon: float, most: int) -> int:
        """How many calls, up to ``most``, may leave within ``horizon`` seconds."""
        first, last = self.next_at(now), now + horizon
        if first > last:
            return 0
        if not self._step:
            return most
        tat = max(self._tat, first)
        return min(most, 1 + max(0, int((last + self._tolerance - tat) / self._step)))


class Onlooker(Rate):
    """A rate as it is seen by who starts work that takes its places by itself: it looks, and takes none."""

    def __init__(self, rate: Rate) -> None:
        self._rate = rate

    @property
    def resting_until(self) -> float:
        """When the rest that the server asked for is over."""
        return self._rate.resting_until

    def rest(self, seconds: float, now: float) -> None:
        """Let no call leave for so long."""
        self._rate.rest(seconds, now)

    def next_at(self, now: float) -> float:
        """The earliest time at which the next call may leave."""
        return self._rate.next_at(now)

    def take(self, now: float) -> float:
        """When work may start; nothing is taken."""
        return self._rate.next_at(now)

    def give_back(self) -> None:
        """Nothing was taken."""

    def places(self, now: float, horizon: float, most: int) -> int:
        """How many calls, up to ``most``, may leave within ``horizon`` seconds."""
        return self._rate.places(now, horizon, most)


class Bundled(Onlooker):
    """A rate as it is seen by who starts calls of which several go at one place.

    Args:
        rate: gives the places.
        size: calls at each.
    """

    def __init__(self, rate: Rate, size: int) -> None:
        super().__init__(rate)
        self._size = size

    def places(self, now: float, horizon: float, most: int) -> int:
        """How many calls, up to ``most``, may leave within ``horizon`` seconds."""
        return min(most, self._size * self._rate.places(now, horizon, most // self._size + 1))
