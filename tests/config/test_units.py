import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rowcall.config import Rate, parse_duration, parse_rate, parse_share, parse_size

SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "": 1}
amounts = st.decimals(min_value=0, max_value=10**9, places=3)
quick = settings(deadline=None, max_examples=60)


@quick
@given(amounts, st.sampled_from(sorted(SECONDS)), st.sampled_from(["", " "]))
def test_a_duration_is_its_number_times_its_unit(amount, unit, space):
    """Number and unit give seconds, with or without a space between them."""
    assert parse_duration(f"{amount}{space if unit else ''}{unit}") == pytest.approx(float(amount) * SECONDS[unit])


@quick
@given(st.one_of(st.integers(0, 10**9), st.floats(0, 1e9)))
def test_a_plain_number_is_seconds(number):
    """A number without a unit is taken as seconds, whatever Python writes it like."""
    assert parse_duration(number) == number


def test_durations_are_exact():
    """A duration is the float that a person would write for it, not one multiplication beside it."""
    assert [parse_duration(f"{n}ms") for n in (3, 7, 50, 290)] == [0.003, 0.007, 0.05, 0.29]
    assert parse_share("0.3%") == 0.003


@pytest.mark.parametrize(
    "value",
    [
        *("", "s", "soon", "-1s", -1, "1 s s", "1e3", "5 weeks", "1m30s", "٣s"),
        *(True, None, [], {}, math.inf, math.nan, 10**400, "9" * 400),
    ],
)
def test_what_is_no_duration_is_refused_with_an_example(value):
    """Anything else is refused, and the message shows how a duration is written."""
    with pytest.raises(ValueError, match='must be a duration, such as "90s"'):
        parse_duration(value)


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("500/min", Rate(500, 60)),
        ("500 / m", Rate(500, 60)),
        ("10/s", Rate(10, 1)),
        ("1000/h", Rate(1000, 3600)),
        ("10000/day", Rate(10000, 86400)),
        ("30/10s", Rate(30, 10)),
        ("0.5/s", Rate(0.5, 1)),
        ("200k/min", Rate(200_000, 60)),
        ("1M/day", Rate(1_000_000, 86400)),
        (Rate(1, 2), Rate(1, 2)),
    ],
)
def test_a_rate_is_a_count_in_a_time(text, rate):
    """Every form of a rate that the documentation names means what it says."""
    assert parse_rate(text) == rate


@quick
@given(
    st.one_of(st.integers(1, 10**12), st.floats(1e-6, 1e12)),
    st.one_of(st.sampled_from([1, 60, 3600, 86400]), st.integers(1, 10**6), st.floats(1e-3, 1e6)),
)
def test_a_rate_that_was_written_is_read_back(count, per):
    """The text of a rate gives the same rate again."""
    rate = Rate(float(count), float(per))
    assert parse_rate(str(rate)) == rate


def test_a_rate_is_written_as_people_write_it():
    """The common units come out under their own names."""
    shown = [str(parse_rate(text)) for text in ("500/min", "10 / s", "1000/hour", "200k/d", "30/10s", "0.5/s")]
    assert shown == ["500/min", "10/s", "1000/h", "200000/day", "30/10s", "0.5/s"]


@pytest.mark.parametrize(
    "value", ["", "500", 500, "500/", "/min", "0/s", "5/0s", "-1/s", "5/fortnight", "5G/s", "5k", True, None, "9" * 400]
)
def test_what_is_no_rate_is_refused_with_an_example(value):
    """Anything else, and a rate of nothing, is refused, and the message shows how a rate is written."""
    with pytest.raises(ValueError, match='must be a rate above 0, such as "500/min"'):
        parse_rate(value)


@pytest.mark.parametrize(("value", "share"), [("0%", 0), ("100%", 1), ("1 %", 0.01), (0.25, 0.25), (0, 0), (1, 1)])
def test_a_share_is_a_percentage_or_a_plain_number(value, share):
    """Percentages and numbers up to 1 are shares."""
    assert parse_share(value) == share


@pytest.mark.parametrize("value", ["101%", "-1%", "1", 1.01, -0.1, 2, math.nan, True, None, 10**400, "%"])
def test_what_is_no_share_is_refused_with_an_example(value):
    """Anything beyond the whole, and text without a percent sign, is refused."""
    with pytest.raises(ValueError, match=r'must be a share, such as "0.3%"'):
        parse_share(value)


@pytest.mark.parametrize(
    ("value", "size"),
    [("20MB", 20_000_000), ("500 kB", 500_000), ("1.5GB", 1_500_000_000), ("7B", 7), ("7", 7), (7, 7), ("1mb", 10**6)],
)
def test_size(value, size):
    """Sizes are written with or without a unit, in powers of 1000."""
    assert parse_size(value) == size


@pytest.mark.parametrize("value", ["", "MB", "-1", "1 MiB", "many", True, None, [1]])
def test_what_is_no_size(value):
    """Anything else is refused with an example."""
    with pytest.raises(ValueError, match='must be a size, such as "20MB"'):
        parse_size(value)
