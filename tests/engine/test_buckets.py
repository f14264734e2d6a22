"""Limits that processes share: the arithmetic, checked over any course of requests."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rowcall.limits.rate_limits import CHUNK, WITHIN, Bucket, reserve

UNITS = st.sampled_from([1.0, 60.0, 3600.0])
GAPS = st.lists(
    st.tuples(st.floats(0, 3), st.integers(1, 4), st.floats(0, 1)),  # pause, calls at once, how late a place is used
    min_size=1,
    max_size=60,
)


def used(buckets, gaps, cost_of=lambda n: 1.0):
    """When calls leave and what they cost, where requests come in such gaps and use their places late."""
    debts, now, left, n = [-math.inf] * len(buckets), 1000.0, [], 0
    step, late = max(b.step for b in buckets), min(b.expires_after for b in buckets)
    for gap, count, lateness in gaps:
        now += gap * step
        costs = [(cost_of(n + k),) * len(buckets) for k in range(count)]
        while costs:
            places = reserve(buckets, debts, costs, (0.0,) * len(buckets), now=now)
            debts = places.debts
            for leaf in places.leaves:
                left.append((now + leaf + lateness * late, costs.pop(0)[0]))
                n += 1
            now += places.next_in if costs else 0.0
    return left


def fullest(left, per):
    """The most that any window of that length holds."""
    return max(sum(cost for t, cost in left if start <= t < start + per * (1 - 1e-9)) for start, _ in left)


@settings(deadline=None, max_examples=60)
@given(count=st.integers(1, 3000), per=UNITS, gaps=GAPS)
def test_no_window_holds_more_than_the_limit(count, per, gaps):
    """In any window as long as the unit there are at most 2 % over the limit, or one call; after idling too."""
    left = used([Bucket("requests", count, per)], gaps)
    assert fullest(left, per) <= count + max(1.0, count * 0.02) + 1e-6


@pytest.mark.parametrize("count", [5, 60, 150, 500, 1500])
def test_late_calls_before_punctual_ones(count):
    """The worst course, full speed with places used as late as may be and then at once, keeps to the limit too."""
    left = used([Bucket("requests", count, 60.0)], [(0.0, 1 + count // 10, 1.0), (0.0, count, 0.0)])
    assert fullest(left, 60.0) <= count + max(1.0, count * 0.02)


@settings(deadline=None, max_examples=60)
@given(count=st.integers(1000, 200_000), per=UNITS, gaps=GAPS, costs=st.lists(st.floats(1, 3000), min_size=1))
def test_no_window_holds_more_tokens_than_the_limit(count, per, gaps, costs):
    """Calls of any size: at most 2 % over the limit and one call."""
    left = used([Bucket("tokens", count, per)], gaps, lambda n: costs[n % len(costs)])
    assert fullest(left, per) <= count * 1.02 + max(costs) + 1e-6


@settings(deadline=None, max_examples=40)
@given(gaps=GAPS)
def test_several_limits_hold_at_once(gaps):
    """Ten a second and twenty a minute: no second holds more than eleven, no minute more than twenty-one."""
    left = used([Bucket("requests", 10, 1.0), Bucket("requests", 20, 60.0)], gaps)
    assert fullest(left, 1.0) <= 11
    assert fullest(left, 60.0) <= 21


def test_the_limit_is_reached():
    """Whoever always asks gets all of it."""
    left = used([Bucket("requests", 500, 60.0)], [(0.0, 1000, 0.0)])
    assert left[-1][0] - left[0][0] == pytest.approx(119.3, abs=0.7)


def test_a_call_bigger_than_the_bucket_goes_alone():
    """It leaves at once where nothing is owed, and what comes next waits until it is paid for."""
    bucket = Bucket("tokens", 1000, 60.0)
    first = reserve([bucket], [-math.inf], [(5000.0,), (10.0,)], (0.0,), now=0.0)
    assert first.leaves == (0.0,)
    assert first.next_in == pytest.approx(300 - bucket.tolerance)


def test_what_is_corrected_counts():
    """A call that took more than was reserved for it puts later ones off; one that took less lets them come."""
    bucket = Bucket("tokens", 60, 60.0)
    debt = reserve([bucket], [-math.inf], [(10.0,)], (0.0,), now=0.0).debts
    assert reserve([bucket], debt, [], (5.0,), now=0.0).next_in == pytest.approx(15.0)
    assert reserve([bucket], debt, [], (-8.0,), now=0.0).next_in == pytest.approx(2.0)


def test_chunks_are_small():
    """One reservation gives what leaves within 50 ms, and nothing that leaves in more than 100 ms."""
    bucket = Bucket("requests", 100, 1.0)
    places = reserve([bucket], [-math.inf], [(1.0,)] * 50, (0.0,), now=0.0)
    assert len(places.leaves) == 1 + CHUNK / bucket.step
    assert reserve([bucket], [WITHIN + 0.01], [(1.0,)], (0.0,), now=0.0).leaves == ()


def test_a_rest_holds_all_back():
    """No place is given before the end of a rest."""
    places = reserve([Bucket("requests", 100, 1.0)], [-math.inf], [(1.0,)], (0.0,), now=5.0, resting_until=9.0)
    assert (places.leaves, places.next_in) == ((), 4.0)


def test_processes_with_different_limits_share_a_bucket():
    """Half of the bucket at 10/min and half of it at 1000/min is all of it: debts are times."""
    many, few = Bucket("requests", 1000, 60.0), Bucket("requests", 10, 60.0)
    debt = (0.0,)
    for bucket, calls in ((many, 500), (few, 5)):
        for _ in range(calls):
            debt = reserve([bucket], debt, [(1.0,)], (0.0,), now=max(0.0, debt[0])).debts
    assert debt[0] == pytest.approx(60.0)
