"""Rate limits that several processes share: the arithmetic, without a clock and without a store.

This is the generic cell rate algorithm (GCRA; ITU-T I.371, virtual scheduling), which keeps one number for each limit,
the theoretical arrival time of the next call, with two differences:

- A call is paid for afterwards. It may leave as soon as no bucket owes more than its burst, whatever the call itself
  costs, and then puts the bucket into debt for all of it. So a call that is bigger than a bucket does leave, and the
  next ones wait until it is paid for.
- A bucket's debt is a time. So processes with different limits for the same unit can share it: each pays its own part.

In any window as long as the limit's unit there is at most the limit, one burst (1 call or 1 % of the limit) and, where
calls cost more than that, one call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

BURST_SHARE = 0.01
"""A burst is one call, or this share of the limit."""
WITHIN = 0.1
"""Seconds ahead for which calls are reserved; a call that would leave later asks again then."""
CHUNK = 0.05
"""Seconds between the first and the last call of one reservation, at most."""
EXPIRES_SHARE = 0.01
EXPIRES_AFTER = 1.0
"""A reservation expires after this share of its limit's unit (or one step), and after this many seconds at most."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """A limit: at most ``count`` of something in ``per`` seconds.

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
        """Seconds after which one more is allowed."""
        return self.per / self.count

    @property
    def tolerance(self) -> float:
        """Seconds of debt with which a call may still leave: one burst, less the call itself."""
        return (max(1.0, self.count * BURST_SHARE) - 1) * self.step

    @property
    def expires_after(self) -> float:
        """Seconds after which a reservation expires: a later call would overfill the next window."""
        return min(EXPIRES_AFTER, max(self.step if self.what == "requests" else 0.0, self.per * EXPIRES_SHARE))


Cost = tuple[float, ...]
"""What one call takes from each bucket, in their order."""


@dataclass(frozen=True, slots=True)
class Reservation:
    """The result of ``reserve``.

    Attributes:
        leaves: seconds from now at which the calls may leave, for as many of them as could be reserved.
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
    """Reserve for calls, in their order, those that may leave within 100 ms and within 50 ms of the first.

    Args:
        buckets: the limits, all of which hold.
        debts: their theoretical arrival times; ``-inf`` for a bucket that was never used.
        calls: the cost of each call.
        owed: what earlier calls took beyond what was reserved for them; negative where they took less.
        now: in the same seconds as ``debts``.
        resting_until: no call leaves before this time.
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
