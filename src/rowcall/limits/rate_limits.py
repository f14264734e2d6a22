"""Limits that several processes share: the arithmetic of their places, without a clock and without a store.

The generic cell rate algorithm of rate.py, with two differences. It is paid afterwards: a call may leave as soon as no
bucket owes more than its burst, whatever the call itself costs, and then puts the bucket into debt for all of it. So a
call bigger than a bucket goes, and what follows waits until it is paid for. And a bucket's debt is a time, the
theoretical arrival time, so that processes with different limits of the same unit share one: each pays its own part.

In any window as long as the unit there is at most the limit, one burst (1 call or 1 % of it) and, where calls cost
more than that, one call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rowcall.limits.rate import BURST_SHARE

WITHIN = 0.1
"""Seconds ahead that a place is given; what would leave later asks again then."""
CHUNK = 0.05
"""Seconds worth of places that are given at a time."""
VOID_SHARE = 0.01
VOID_AFTER = 1.0
"""A place that is not used within this share of its limit's unit (or one step), and these seconds at most, is void."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """At most ``count`` of something in ``per`` seconds.

    Attributes:
        what: ``requests``, ``tokens``, ``input`` or ``output`` (tokens).
        count: how much.
        per: in how many seconds.
    """

    what: str
    count: float
    per: float

    def __str__(self) -> str:
        what = {"requests": "calls", "input": "input tokens", "output": "output tokens"}.get(self.what, self.what)
        return f"{self.count:,.10g} {what} in {self.per:,.10g} s"

    @property
    def step(self) -> float:
        """Seconds that one of it pays for."""
        return self.per / self.count

    @property
    def tolerance(self) -> float:
        """Seconds of debt with which a call may still leave: one burst but for the call itself."""
        return (max(1.0, self.count * BURST_SHARE) - 1) * self.step

    @property
    def void_after(self) -> float:
        """Seconds after which a place is void: so late, it would make the next window too full."""
        return min(VOID_AFTER, max(self.step if self.what == "requests" else 0.0, self.per * VOID_SHARE))


Cost = tuple[float, ...]
"""What one call takes of each bucket, in their order."""


@dataclass(frozen=True, slots=True)
class Reservation:
    """What a reservation gave.

    Attributes:
        leaves: seconds from now at which the calls asked for may leave, as many as there were places for.
        next_in: seconds from now until the next call may leave.
        debts: the buckets' theoretical arrival times afterwards.
    """

    leaves: tuple[float, ...]
    next_in: float
    debts: tuple[float, ...]


def reserve(
    buckets: Sequence[Bucket],
    debts: Sequence[float],
    calls: Sequence[Cost],
    owed: Cost,
    *,
    now: float,
    resting_until: float = float("-inf"),
) -> Reservation:
    """Places for calls in their order, those that leave within 100 ms and within 50 ms of the first.

    Args:
        buckets: the limits that all hold.
        debts: their theoretical arrival times; ``-inf`` for a bucket never used.
        calls: the cost of each call.
        owed: what earlier calls took more (or less, below 0) than was reserved for them.
        now: in the same seconds as ``debts``.
        resting_until: no call leaves before.
    """
    tats = [debt + cost * bucket.step for bucket, debt, cost in zip(buckets, debts, owed, strict=True)]
    leaves: list[float] = []
    last = now + WITHIN
    for cost in calls:
        leaf = _earliest(buckets, tats, now, resting_until)
        if leaf > last:
            break
        last = min(last, leaf + CHUNK) if not leaves else last
        leaves.append(leaf - now)
        tats = [max(tat, leaf) + used * bucket.step for bucket, tat, used in zip(buckets, tats, cost, strict=True)]
    return Reservation(tuple(leaves), _earliest(buckets, tats, now, resting_until) - now, tuple(tats))


def _earliest(buckets: Sequence[Bucket], tats: Sequence[float], now: float, resting_until: float) -> float:
    return max(now, resting_until, *(tat - bucket.tolerance for bucket, tat in zip(buckets, tats, strict=True)))
