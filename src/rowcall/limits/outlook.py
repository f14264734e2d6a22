"""What a process knows of places that it shares with others, and a rate seen through it."""

from __future__ import annotations

import math

from rowcall.limits.rate import Onlooker, Rate


class Outlook:
    """When the next shared places are free, as far as this process has been told. Times are monotonic seconds.

    Attributes:
        step: seconds between two calls at their usual cost; 0 where nothing is shared.
        free_at: when the next place is free for whoever asks then.
        waiting: requests of this process that have asked and not left.
        paused: a person wants no call to leave.
    """

    def __init__(self) -> None:
        self.step = 0.0
        self.free_at = -math.inf
        self.waiting = 0
        self.paused = False

    def next_at(self, now: float) -> float:
        """When one more call would leave, after those that wait."""
        if self.paused:
            return math.inf
        return max(now, self.free_at) + self.waiting * self.step if self.step else now

    def places(self, now: float, horizon: float, most: int) -> int:
        """How many more calls, up to ``most``, would leave within ``horizon`` seconds."""
        left = now + horizon - self.next_at(now)
        if left < 0:
            return 0
        return min(most, 1 + int(left / self.step)) if self.step else most


class Foreseen(Onlooker):
    """A rate as it is seen by who starts calls that then wait for shared places: not more than will soon leave.

    Args:
        rate: this process's own; its places are taken here.
        outlook: the shared ones.
    """

    def __init__(self, rate: Rate, outlook: Outlook) -> None:
        super().__init__(rate)
        self._outlook = outlook

    @property
    def resting_until(self) -> float:
        """When the rest is over that the server, or a person, asked for; never while paused."""
        return math.inf if self._outlook.paused else self._rate.resting_until

    def next_at(self, now: float) -> float:
        """The earliest time at which the next call may leave."""
        return max(self._rate.next_at(now), self._outlook.next_at(now))

    def take(self, now: float) -> float:
        """Take the next of the own places."""
        return self._rate.take(now)

    def give_back(self) -> None:
        """Return the own place taken last."""
        self._rate.give_back()

    def places(self, now: float, horizon: float, most: int) -> int:
        """How many calls, up to ``most``, may leave within ``horizon`` seconds."""
        return min(self._rate.places(now, horizon, most), self._outlook.places(now, horizon, most))
