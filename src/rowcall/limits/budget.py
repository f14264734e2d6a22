"""The budget: how much may still be spent (``[stop] max_cost``).

A call leaves only if what was spent, what the calls in flight will cost and what it will cost itself stay within the
limit. Each call is taken to cost the mean of this run's calls. So the limit is exceeded by less than the cost of the
calls in flight.
"""

from __future__ import annotations

from collections.abc import Callable

from rowcall.model.events import CallEnded, Event
from rowcall.model.job import Job
from rowcall.model.prices import usd


class Budget:
    """What one batch job may cost, over all its runs and processes. It listens to a run's events.

    Costs are nano-dollars. Other processes' spending becomes known by ``learn``; until then they may exceed the limit
    together.

    Attributes:
        limit: the most that may be spent; may be changed at any time.
        among: processes of the run; each is taken to have as many calls in flight as this one.

    Args:
        limit: the most that may be spent; None: any amount.
        spent: what was spent before this run.
        guess: estimates what a job's call costs; used until the first priced call has ended.
    """

    def __init__(self, limit: int | None, spent: int, guess: Callable[[Job], int]) -> None:
        self.limit = limit
        self.among = 1
        self._elsewhere = spent
        self._guess = guess
        self._own = 0
        self._calls = 0

    @property
    def spent(self) -> int:
        """What is known to have been spent."""
        return self._elsewhere + self._own

    def __call__(self, event: Event) -> None:
        """Count a call that ended; a free call says nothing about what the next one costs."""
        if isinstance(event, CallEnded) and event.outcome.usage.cost:
            self._own += event.outcome.usage.cost
            self._calls += 1

    def learn(self, total: int) -> None:
        """Take in the total in the store, which includes the written part of this run's own spending."""
        self._elsewhere = max(self._elsewhere, total - self._own)

    def learn_elsewhere(self, spent: int) -> None:
        """Take in what was spent before this run and by its other processes."""
        self._elsewhere = max(self._elsewhere, spent)

    def allows(self, job: Job, in_flight: int) -> bool:
        """Return whether a job's call may leave while so many others are in flight.

        As long as no call of this run has ended, one call at a time leaves, whatever its estimate says.
        """
        if self.limit is None:
            return True
        if self.spent >= self.limit or not (self._calls or in_flight):
            return self.spent < self.limit
        each = self._own // self._calls if self._calls else self._guess(job)
        return self.spent + each * (in_flight + 1) * self.among <= self.limit

    def __str__(self) -> str:
        return f"{usd(self.spent)} spent in all runs; the next call would pass max_cost = {usd(self.limit or 0)}"
