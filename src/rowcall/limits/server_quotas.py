"""What the server says is left, spread over the time until there is more. Pure; times are monotonic seconds.

A reply tells how much was left when its call came in; calls sent after that one are taken off. The rest is spread
evenly over the time until the reset, or over a minute where that is longer. Against a fixed window this uses all of
it; against a bucket that refills all the time (its reset is the time until it is full) it settles where as much
comes in as goes out, with half the bucket in reserve. With less than one call left, calls wait for the reset; after
it they go on at the average that the limit allows, until a reply tells of the new window.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rowcall.limits.limit_headers import LimitHeaders

LONGEST_SPREAD = 60.0
"""Seconds: a day's quota is not spread over the day."""
_FORGET_AT = 64.0
"""Calls after which what they cost begins to be forgotten."""


@dataclass(frozen=True, slots=True)
class Spacing:
    """When calls may leave: none before ``at``, and ``gap`` seconds between any two."""

    at: float = float("-inf")
    gap: float = 0.0


FREE = Spacing()
"""At any time."""


class ServerQuotas:
    """All limits that a server's replies tell of; the tightest one counts."""

    def __init__(self) -> None:
        self._accounts: dict[str, _Account] = {}

    def hear(self, limits: Iterable[LimitHeaders], number: int, now: float, retry_after: float | None = None) -> None:
        """Take in what a reply says.

        Args:
            limits: what it says.
            number: of its call.
            now: the time.
            retry_after: seconds that a refused call was asked to wait: a bucket may have something by then.
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
        """When calls may leave, after ``sent`` of them."""
        if not self._accounts:
            return FREE
        each = [account.spacing(now, sent) for account in self._accounts.values()]
        return Spacing(max(one.at for one in each), max(one.gap for one in each))


class _Account:
    """One limit: what was left of it after a numbered call, and when it is renewed."""

    def __init__(self, by_request: bool) -> None:
        self._by_request = by_request
        self._number = 0
        self._left = 0.0
        self._size = 0.0
        self._renewed_at = float("-inf")
        self._window = 0.0
        self._spent = self._calls = 0.0

    def hear(self, one: LimitHeaders, number: int, now: float) -> None:
        if number < self._number:  # older than what is known
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
        """What one call takes; 0 where that is not known yet."""
        if self._by_request:
            return 1.0
        return self._spent / self._calls if self._calls else 0.0

    def _learn_cost(self, spent: float, calls: int) -> None:
        self._spent += spent
        self._calls += calls
        if self._calls > _FORGET_AT:
            self._spent, self._calls = self._spent / 2, self._calls / 2
