"""The rate of calls."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rowcall.limits.rate import Limit, Onlooker, Rate


@given(
    count=st.integers(1, 2000),
    per=st.sampled_from([1.0, 60.0, 3600.0]),
    gaps=st.lists(st.floats(0, 3), min_size=1, max_size=200),
)
def test_no_window_holds_more_than_the_limit(count, per, gaps):
    """In any window as long as the unit there are at most count calls and one burst of 1 % (or one call)."""
    rate, now, left = Rate(Limit(count, per)), 100.0, []
    for gap in gaps:
        now = max(now + gap * per / count, rate.next_at(now))
        left.append(rate.take(now))
    assert left == sorted(left)
    most = count + max(1, count * 0.01)
    for first in range(len(left)):
        inside = sum(1 for t in left[first:] if t < left[first] + per * (1 - 1e-9))
        assert inside <= most


def test_the_rate_is_reached():
    """A hundred calls asked for at once at 10/s leave over 9.9 seconds."""
    rate = Rate(Limit(10, 1))
    left = [rate.take(0.0) for _ in range(100)]
    assert left[0] == 0.0
    assert abs(left[-1] - 9.9) < 1e-6


@given(count=st.integers(1, 3000), taken=st.integers(0, 50), horizon=st.floats(0.01, 0.5))
def test_places_are_what_take_gives(count, taken, horizon):
    """``places`` foretells how many calls may leave within the horizon."""
    rate = Rate(Limit(count, 60))
    now = 10.0
    for _ in range(taken):
        rate.take(now)
    foretold = rate.places(now, horizon, 10_000)
    fitting = 0
    while rate.take(now) <= now + horizon:
        fitting += 1
    assert abs(fitting - foretold) <= 1


def test_a_rest_holds_everything_back():
    """After a rest of four seconds was asked for, no call leaves earlier, and a shorter rest ends nothing."""
    rate = Rate()
    rate.rest(4.0, 100.0)
    rate.rest(1.0, 100.0)
    assert rate.places(100.0, 0.1, 50) == 0
    assert rate.take(100.0) == 104.0
    assert rate.places(104.0, 0.1, 50) == 50


def test_a_place_given_back_is_free_again():
    """A call that did not leave costs no place."""
    rate = Rate(Limit(1, 1))
    rate.take(5.0)
    rate.give_back()
    assert rate.next_at(5.0) == 5.0


def test_an_onlooker_takes_no_place():
    """Looking on, starting work and giving back leave the places where they are; a rest counts for both."""
    rate = Rate(Limit(10, 1.0))
    onlooker = Onlooker(rate)
    assert [onlooker.take(0.0) for _ in range(3)] == [0.0] * 3
    onlooker.give_back()
    assert [rate.take(0.0), rate.take(0.0)] == [0.0, 0.1]
    assert (onlooker.next_at(0.0), onlooker.places(0.0, 0.35, 50)) == (rate.next_at(0.0), rate.places(0.0, 0.35, 50))
    onlooker.rest(5.0, 0.0)
    assert rate.resting_until == onlooker.resting_until == 5.0
