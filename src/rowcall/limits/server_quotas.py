"""Spreads what an API says is left of its limits over the time until their reset. Pure; monotonic seconds.

A reply says how much was left when its call came in; calls sent after that one are subtracted. What remains is spread
evenly over the time until the reset, or over a minute where the reset is further off. Against a fixed window this uses
all of it. Against a bucket that refills continuously (its reset is the time until it is full) it settles where calls
leave as fast as the bucket refills, with half the bucket in reserve. With less than one call left, calls wait for the
reset; after it they leave at the average that the limit allows, until a reply describes the new window.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rowcall.limits.limit_headers import LimitHeaders

LONGEST_SPREAD = 60.0
"""Seconds over which what is left is spread, at most: a quota for a day may be used up sooner."""
_FORGET_AT = 64.0
"""Calls after which the cost of older ones counts only half."""


@dataclass(frozen=True, slots=True)
class Spacing:
    """When calls may leave: not before ``at``, and with ``gap`` seconds between any two."""

    at: float = float("-inf")
    gap: float = 0.0


FREE = Spacing()
"""Calls may leave at any time."""


class ServerQuotas:
    """All limits in an API's replies; the tightest one counts."""

    def __init__(self) -> None:
        self._accounts: dict[str, _Account] = {}

    def hear(self, limits: Iterable[LimitHeaders], number: int, now: float, retry_after: float | None = None) -> None:
        """Take in the limits of a reply.

        Args:
            limits: as the reply states them.
            number: of its call.
            now: the time.
            retry_after: seconds that a refused call was asked to wait; by then a bucket may hold something again.
        """
        for one in limits:
            account = self._accounts.get(one.name)
            if account is None:
                account = self._accounts[one.name] = _Account(one.by_request)
            account.hear(one, number, now)
        if retry_after is not None:
            for account in self._accounts.values():
                account.renew_by(now + retry_after)

    def spacing(self, now: float, sent: int) -> Spacing:
        """Return when calls may leave, after ``sent`` of them."""
        if not self._accounts:
            return FREE
        each = [account.spacing(now, sent) for account in self._accounts.values()]
        return Spacing(max(one.at for one in each), max(one.gap for one in each))


class _Account:
    """One limit: what was left of it after a certain call, and when it is reset."""

    def __init__(self, by_request: bool) -> None:
        self._by_request = by_request
        self._number = 0
        self._left = 0.0
        self._size = 0.0
        self._renewed_at = float("-inf")
        self._window = 0.0
        self._spent = self._calls = 0.0

    def hear(self, one: LimitHeaders, number: int, now: float) -> None:
        if number < self._number:  # a reply that was overtaken by a later one
            return
        same_window = now < self._renewed_at and one.remaining <= self._left
        if same_window:
            self._learn_cost(self._left - one.remaining, number - self._number)
        self._window = max(one.reset, self._window if same_window else 0.0)
        self._number, self._left, self._renewed_at = number, one.remaining, now + one.reset
        self._size = one.limit or max(self._size, one.remaining)

    def renew_by(self, moment: float) -> None:
        if self._left < self._cost:
            self._renewed_at = min(self._renewed_at, moment)

    def spacing(self, now: float, sent: int) -> Spacing:
        cost = self._cost
        if not cost or not self._size:
            return FREE
        if now >= self._renewed_at:
            return Spacing(self._renewed_at, self._window * cost / self._size)
        calls = self._left / cost - (sent - self._number)
        if calls < 1:
            return Spacing(self._renewed_at)
        return Spacing(gap=min(self._renewed_at - now, LONGEST_SPREAD) / calls)

    @property
    def _cost(self) -> float:
        """What one call takes of it; 0 where that is not known yet."""
        if self._by_request:
            return 1.0
        return self._spent / self._calls if self._calls else 0.0

    def _learn_cost(self, spent: float, calls: int) -> None:
        self._spent += spent
        self._calls += calls
        if self._calls > _FORGET_AT:
            self._spent, self._calls = self._spent / 2, self._calls / 2
