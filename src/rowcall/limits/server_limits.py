"""What an API shows of its limits, and the pace that follows from it. Pure; times are monotonic seconds.

It only ever narrows what the user set: the concurrency by what the API has taken at a time so far
(learned_concurrency.py), the rate by what replies say about its limits (server_quotas.py) and by what its refusals
teach (learned_rate.py).
"""

from __future__ import annotations

from collections.abc import Mapping

from rowcall.limits.concurrency import Concurrency
from rowcall.limits.learned_concurrency import LearnedConcurrency, RequestStart
from rowcall.limits.learned_rate import LearnedRate
from rowcall.limits.limit_headers import limits_in
from rowcall.limits.server_quotas import ServerQuotas, Spacing
from rowcall.model.outcome import Failure, FailureClass

_ANSWERED = (FailureClass.RECORD, FailureClass.ANSWER, FailureClass.SETUP, FailureClass.MONEY)
_OVERLOADED = ("http_503", "overloaded")


class ServerLimits:
    """The pace that one API allows.

    Args:
        concurrency: what the user allows; narrowed to what the API takes.
        learns: False: nothing that the API shows changes the pace.

    Attributes:
        among: processes that share the limits in the API's replies.
    """

    def __init__(self, concurrency: Concurrency, *, learns: bool = True) -> None:
        self.concurrency = concurrency
        self._learns = learns
        self._width = LearnedConcurrency(concurrency)
        self._quotas = ServerQuotas()
        self._rate = LearnedRate()
        self._sent = 0
        self.among = 1
        self._last = float("-inf")
        self._gap = 0.0
        self._narrow()

    def depart(self) -> RequestStart:
        """Note that a request leaves."""
        self._sent += 1
        self.concurrency.in_flight += 1
        in_flight = self.concurrency.in_flight
        self._width.depart(in_flight)
        return RequestStart(self._sent, in_flight)

    def drop(self) -> None:
        """Note that a request ended without an outcome."""
        self.concurrency.in_flight -= 1

    def arrive(self, start: RequestStart, now: float, headers: Mapping[str, str], failure: Failure | None) -> bool:
        """Note that a request ended; returns whether fewer may be in flight for that.

        Args:
            start: what ``depart`` returned.
            now: the time.
            headers: of the reply, with names in lower case; empty where there was no reply.
            failure: how the call failed; None for a success.
        """
        in_flight = self.concurrency.in_flight
        self.concurrency.in_flight -= 1
        if not self._learns:
            return False
        refused = failure is not None and failure.cls is FailureClass.PACE
        if limits := limits_in(headers):
            self._quotas.hear(limits, start.number, now, failure.retry_after if failure and refused else None)
        cut = False
        if refused or _overloaded(failure):
            cut = self._width.refuse(start, self._sent, in_flight, now)
            if refused:
                self._rate.refuse(start.number, self._sent, now, explained=cut)
        elif failure is None or failure.cls in _ANSWERED:
            self._rate.accept(start.number)
            self._width.accept(start.in_flight, now)
        else:
            self._width.pause(now)
        self._narrow()
        return cut

    def outage(self) -> None:
        """Note that the API is gone, which is no reason to go slower once it is back."""
        self._width.outage(self._sent)
        self._rate.outage()
        self._narrow()

    def spent_until(self, now: float) -> float | None:
        """Return the reset of a limit of which nothing is left; no call leaves before it."""
        at = self._quotas.spacing(now, self._sent).at
        return at if at > now else None

    def next_at(self, now: float) -> float:
        """Return the earliest time at which the next request may leave."""
        spacing = self._spacing(now)
        return max(now, spacing.at, self._last + spacing.gap)

    def take(self, leaves: float) -> None:
        """Note the time at which the next request is going to leave."""
        self._rate.depart(leaves)
        self._last, self._gap = leaves, self._spacing(leaves).gap
        self._narrow()

    def give_back(self) -> None:
        """Undo the latest ``take``, for a request that did not leave."""
        self._last -= self._gap

    def places(self, now: float, horizon: float, most: int) -> int:
        """Return how many requests, up to ``most``, may leave within ``horizon`` seconds."""
        first, gap = self.next_at(now), self._spacing(now).gap
        if first > now + horizon:
            return 0
        return min(most, 1 + int((now + horizon - first) / gap)) if gap else most

    def _narrow(self) -> None:
        if self._learns:
            self.concurrency.narrow(1 if self._rate.goes_alone else self._width.taken)

    def _spacing(self, now: float) -> Spacing:
        told, learned = self._quotas.spacing(now, self._sent), self._rate.spacing(now)
        gap = max(told.gap * self.among, learned.gap)
        return told if gap == told.gap else Spacing(told.at, gap)


def _overloaded(failure: Failure | None) -> bool:
    return failure is not None and failure.cls is FailureClass.SERVER and failure.reason in _OVERLOADED
