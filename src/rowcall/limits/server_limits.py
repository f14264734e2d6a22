"""What the server shows of its limits, and the pace that follows from it. Pure; times are monotonic seconds.

It only ever narrows what the user set: ``concurrency`` by concurrency.py, the rate by what replies say of the
server's limits (quotas.py) and by what its refusals teach (learned.py).
"""

from __future__ import annotations

from collections.abc import Mapping

from rowcall.limits.learned_concurrency import LearnedConcurrency, RequestStart
from rowcall.limits.learned_rate import LearnedRate
from rowcall.limits.limit_headers import limits_in
from rowcall.limits.rate import Limit, Rate
from rowcall.limits.server_quotas import ServerQuotas, Spacing
from rowcall.model.outcome import Failure, FailureClass


class ServerLimits:
    """The pace that one server allows.

    Args:
        most: calls in flight that the user allows.
        learns: False: what the server shows changes nothing.

    Attributes:
        among: processes that share what the server tells of its limits.
    """

    def __init__(self, most: int, *, learns: bool = True) -> None:
        self._slots = LearnedConcurrency(most)
        self._learns = learns
        self._quotas = ServerQuotas()
        self._learned = LearnedRate()
        self._sent = self._in_flight = 0
        self.among = 1
        self._last = float("-inf")
        self._gap = 0.0

    @property
    def in_flight(self) -> int:
        """Requests under way."""
        return self._in_flight

    def resize(self, most: int) -> None:
        """The user allows so many calls in flight from now on."""
        self._slots.most = most

    @property
    def slots(self) -> int:
        """Calls that may be in flight now: from 1 to the most that the user allows."""
        if not self._learns:
            return self._slots.most
        return 1 if self._learned.goes_alone else self._slots.limit

    @property
    def room(self) -> int:
        """How many more requests may be in flight."""
        return max(0, self.slots - self._in_flight)

    def depart(self, now: float) -> RequestStart:
        """A request leaves."""
        self._sent += 1
        self._in_flight += 1
        self._slots.depart(self._in_flight)
        return RequestStart(self._sent, self._in_flight)

    def drop(self) -> None:
        """A request ended without an outcome."""
        self._in_flight -= 1

    def arrive(self, passage: RequestStart, now: float, headers: Mapping[str, str], failure: Failure | None) -> bool:
        """A request ended; returns whether it cut ``slots``.

        Args:
            passage: what ``depart`` gave.
            now: the time.
            headers: of the reply, with names in lower case; empty where there was none.
            failure: what it came to; None for a success.
        """
        in_flight, self._in_flight = self._in_flight, self._in_flight - 1
        if not self._learns:
            return False
        refused = failure is not None and failure.cls is FailureClass.PACE
        if limits := limits_in(headers):
            self._quotas.hear(limits, passage.number, now, failure.retry_after if failure and refused else None)
        if refused or _overloaded(failure):
            cut = self._slots.refuse(passage, self._sent, in_flight, now)
            if refused:
                self._learned.refuse(passage.number, self._sent, now, explained=cut)
            return cut
        if failure is None or failure.cls in _ANSWERED:
            self._learned.accept(passage.number)
            self._slots.accept(passage.in_flight, now)
        else:
            self._slots.pause(now)
        return False

    def outage(self) -> None:
        """The server is gone: that is no reason to go slower once it is back."""
        self._slots.outage(self._sent)
        self._learned.outage()

    def spent_until(self, now: float) -> float | None:
        """The reset of a limit of which nothing is left; no call leaves before it."""
        at = self._quotas.spacing(now, self._sent).at
        return at if at > now else None

    def next_at(self, now: float) -> float:
        """The earliest time at which the next call may leave."""
        spacing = self._spacing(now)
        return max(now, spacing.at, self._last + spacing.gap)

    def take(self, leaves: float) -> None:
        """Take the place of a call that leaves then."""
        self._learned.depart(leaves)
        self._last, self._gap = leaves, self._spacing(leaves).gap

    def give_back(self) -> None:
        """Return the place taken last, for a call that did not leave."""
        self._last -= self._gap

    def places(self, now: float, horizon: float, most: int) -> int:
        """How many calls, up to ``most``, may leave within ``horizon`` seconds."""
        first, gap = self.next_at(now), self._spacing(now).gap
        if first > now + horizon:
            return 0
        return min(most, 1 + int((now + horizon - first) / gap)) if gap else most

    def _spacing(self, now: float) -> Spacing:
        told, learned = self._quotas.spacing(now, self._sent), self._learned.spacing(now)
        gap = max(told.gap * self.among, learned.gap)
        return told if gap == told.gap else Spacing(told.at, gap)


class Narrowed(Rate):
    """A rate, and what the server allows of it.

    Args:
        adaptive: the pace that the server allows.
        limit: what the user allows; None: any rate.
    """

    def __init__(self, adaptive: ServerLimits, limit: Limit | None = None) -> None:
        super().__init__(limit)
        self._adaptive = adaptive

    def next_at(self, now: float) -> float:
        """The earliest time at which the next call may leave."""
        return max(super().next_at(now), self._adaptive.next_at(now))

    def take(self, now: float) -> float:
        """Take the next place; returns when that call may leave."""
        leaves = super().take(now)
        self._adaptive.take(leaves)
        return leaves

    def give_back(self) -> None:
        """Return the place taken last, for a call that did not leave."""
        super().give_back()
        self._adaptive.give_back()

    def places(self, now: float, horizon: float, most: int) -> int:
        """How many calls, up to ``most``, may leave within ``horizon`` seconds."""
        return min(super().places(now, horizon, most), self._adaptive.places(now, horizon, most))


_ANSWERED = (FailureClass.RECORD, FailureClass.ANSWER, FailureClass.SETUP, FailureClass.MONEY)


def _overloaded(failure: Failure | None) -> bool:
    return failure is not None and failure.cls is FailureClass.SERVER and failure.reason in _OVERLOADED


_OVERLOADED = ("http_503", "overloaded")
