"""Counting a run from its events."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowcall.model.events import CallEnded, LateOutcome, RequestEnded, Settled
from rowcall.model.outcome import Action, Decision, Failure, FailureClass, Success, Usage
from rowcall.model.run_stats import Latencies, RunStats


@given(st.lists(st.floats(0.0001, 1000), min_size=1, max_size=200), st.sampled_from([0.5, 0.95, 0.99, 1.0]))
def test_percentiles_are_right_to_two_per_cent(seconds, share):
    """A percentile is what so many calls did not exceed, however they are spread."""
    latencies = Latencies()
    for each in seconds:
        latencies.add(each)
    exact = sorted(seconds)[math.ceil(share * len(seconds)) - 1]
    assert latencies.percentile(share) == pytest.approx(exact, rel=0.02)


def test_no_latency_no_percentile():
    """Without a call there is no percentile."""
    assert Latencies().percentile(0.5) is None


def test_counts():
    """Requests by status or reason, records by what became of them, tokens of failed calls too."""
    tally = RunStats()
    failed = Failure(FailureClass.SERVER, "http_500", "no", 500, usage=Usage(input=3))
    for event in (
        RequestEnded("a", 200, "", 0.1),
        RequestEnded("b", None, "refused", None),
        RequestEnded("b", 500, "http_500", 0.3),
        CallEnded("a", Success("x", usage=Usage(input=5, output=2)), Decision(Action.DONE)),
        CallEnded("b", failed, Decision(Action.RETRY)),
        Settled("a", Action.DONE, None),
        Settled("b", Action.RETRY, failed),
        Settled("b", Action.FAIL, failed),
        LateOutcome("c", 1),
    ):
        tally(event)
    assert (tally.calls, tally.done, tally.failed, tally.late) == (3, 1, 1, 1)
    assert tally.by_status == {"200": 1, "refused": 1, "500": 1}
    assert (tally.usage.input, tally.usage.output) == (8, 2)
    assert tally.latencies.percentile(1.0) == pytest.approx(0.3, rel=0.02)


def test_memory_is_flat():
    """A hundred thousand latencies between a millisecond and a hundred seconds take under a thousand numbers."""
    latencies, draw = Latencies(), random.Random(0)
    for _ in range(100_000):
        latencies.add(10 ** draw.uniform(-3, 2))
    assert len(latencies._classes) < 1000
