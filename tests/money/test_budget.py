"""When a call may leave, by what it will cost."""

from __future__ import annotations

import pytest

from rowcall.limits.budget import Budget
from rowcall.model.events import CallEnded
from rowcall.model.job import Job
from rowcall.model.outcome import Action, Decision, Failure, FailureClass, Success, Usage

JOB = Job(1, "a", 1, 0, 0, (), True, 1, "h", {})


def ended(cost):
    return CallEnded("a", Success("x", 200, usage=Usage(cost=cost)), Decision(Action.DONE))


@pytest.fixture
def budget():
    return lambda limit, spent=0, guess=0: Budget(limit, spent, lambda job: guess)


def test_the_first_goes_alone_whatever_it_may_cost(budget):
    """A guess can be far too high; beside others it holds."""
    budget = budget(100, guess=60)
    assert budget.allows(JOB, 0)
    assert not budget.allows(JOB, 1)


def test_what_is_in_flight_is_reserved(budget):
    """Each call is taken for the mean of those that ended."""
    budget = budget(100)
    budget(ended(10))
    budget(ended(20))
    assert budget.allows(JOB, 3)
    assert not budget.allows(JOB, 4)


def test_free_calls_say_nothing_about_the_next(budget):
    """A 429 does not make calls look cheap."""
    budget = budget(100)
    budget(ended(30))
    for _ in range(9):
        budget(CallEnded("a", Failure(FailureClass.PACE, "", "", usage=Usage(cost=0)), Decision(Action.RELEASE)))
    assert not budget.allows(JOB, 2)


def test_what_is_spent_is_spent(budget):
    """Earlier runs count, and at the limit nothing leaves."""
    assert not budget(100, spent=100).allows(JOB, 0)
    assert not budget(100, spent=120).allows(JOB, 0)


def test_the_store_counts_own_calls_too(budget):
    """What this run has spent is in the store's count as well, once it is written, and is not counted twice."""
    budget = budget(100, spent=10)
    budget(ended(30))
    budget.learn(10)
    assert budget.spent == 40
    budget.learn(40)
    assert budget.spent == 40
    budget.learn(65)
    assert budget.spent == 65
