"""How many failures a run bears."""

from __future__ import annotations

import pytest

from rowcall.config.units import FailureLimit, parse_failure_limit
from rowcall.engine.stop_reasons import FailureCount
from rowcall.model.job import Job
from rowcall.model.outcome import Action, Settlement

JOB = Job(1, "k", 1, 0, 0, (), fresh=True, request=1, input_hash="h", data={})


def first_stop(most, actions):
    failures = FailureCount(most)
    return next((n for n, action in enumerate(actions, 1) if failures.note(Settlement(JOB, action))), None)


def test_a_count_is_what_is_allowed():
    """The failure after the last one allowed stops the run, and only failures do."""
    actions = [Action.DONE, Action.FAIL, Action.RETRY, Action.FAIL, Action.RELEASE, Action.FAIL]
    assert first_stop(FailureLimit(count=2), actions) == 6
    assert first_stop(FailureLimit(count=0), actions) == 2
    assert first_stop(None, actions) is None


def test_a_share_counts_from_a_hundred_on():
    """A share says nothing before a hundred records ended; retries are none of them."""
    assert first_stop(FailureLimit(share=0.05), [Action.FAIL] * 200) == 100
    assert first_stop(FailureLimit(share=0.05), [Action.RETRY, Action.FAIL] * 200) == 200
    healthy = [Action.DONE] * 114 + [Action.FAIL] * 7
    assert first_stop(FailureLimit(share=0.05), healthy) == 121
    assert first_stop(FailureLimit(share=0.05), healthy[:-1]) is None


@pytest.mark.parametrize(
    ("text", "limit"),
    [(0, FailureLimit(count=0)), ("50", FailureLimit(count=50)), ("2.5%", FailureLimit(share=0.025))],
)
def test_what_people_write(text, limit):
    """A number is a count, a percentage a share, and each is written back as it was meant."""
    assert parse_failure_limit(text) == limit
    assert parse_failure_limit(str(limit)) == limit


@pytest.mark.parametrize("text", ["", "-1", "101%", "five", True, 0.5, None])
def test_what_is_no_limit(text):
    """Anything else is refused with an example of each form."""
    with pytest.raises(ValueError, match='such as 50, or a share, such as "5%"'):
        parse_failure_limit(text)
