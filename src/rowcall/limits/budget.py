"""How much may still be spent: ``[stop] max_cost``.

A call leaves only where what was spent, what the calls in flight will cost and what it will cost itself stay within
the limit, each taken for the mean of this run's calls. So the limit is overshot by less than the calls in flight.
"""

from __future__ import annotations

from collections.abc import Callable

from rowcall.model.events import CallEnded, Event
from rowcall.model.job import Job
from rowcall.model.prices import usd


class Budget:
    """What one kind may cost, all its runs and processes counted; a listener of a run's events.

    Costs are nano-dollars. What other processes spend is known by ``learn``; until then they may overshoot together.

    Attributes:
        limit: may be changed at any time.
        among: processes of the run, each of which has as many calls in flight as this one.

    Args:
        limit: most that may be spent; None: any amount.
        spent: what was spent before this run.
        guess: roughly what a job's call costs, asked until the first priced call has ended.
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
        """What is known to be spent."""
        return self._elsewhere + self._own

    def __call__(self, event: Event) -> None:
        """Count a call that ended; free ones say nothing about what the next one costs."""
        if isinstance(event, CallEnded) and event.outcome.usage.cost:
            self._own += event.outcome.usage.cost
            self._calls += 1

    def learn(self, total: int) -> None:
        """Take in what the store has counted, the written part of this run's own spending included."""
        self._elsewhere = max(self._elsewhere, total - self._own)

    def learn_elsewhere(self, spent: int) -> None:
        """Take in what was spent before this run and by its other processes."""
        self._elsewhere = max(self._elsewhere, spent)

    def allows(self, job: Job, in_flight: int) -> bool:
        """Whether a job's call may leave beside so many others.

        As long as nothing is known about this run's calls, one goes out alone whatever its guess says.
        """
        if self.limit is None:
            return True
        if self.spent >= self.limit or not (self._calls or in_flight):
            return self.spent < self.limit
        each = self._own // self._calls if self._calls else self._guess(job)
        return self.spent + each * (in_flight + 1) * self.among <= self.limit

    def __str__(self) -> str:
        return f"{usd(self.spent)} spent in all runs; the next call would pass max_cost = {usd(self.limit or 0)}"
