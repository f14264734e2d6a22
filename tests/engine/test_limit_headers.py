"""What replies say about limits, in every form that is known."""

from __future__ import annotations

import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rowcall.limits.limit_headers import LONGEST_RESET, LimitHeaders, limits_in

DATE = "Wed, 21 Oct 2015 07:28:00 GMT"
THEN = 1_445_412_480  # the same moment


def openai(unit, limit, remaining, reset):
    return {
        f"x-ratelimit-limit-{unit}": limit,
        f"x-ratelimit-remaining-{unit}": remaining,
        f"x-ratelimit-reset-{unit}": reset,
    }


def generic(reset, **more):
    return {"x-ratelimit-limit": "60", "x-ratelimit-remaining": "7", "x-ratelimit-reset": reset, **more}


FORMS = {
    "OpenAI, ms": (openai("requests", "500", "499", "120ms"), [LimitHeaders("requests", 499, 0.12, 500)]),
    "OpenAI, minutes": (openai("requests", "500", "0", "6m0s"), [LimitHeaders("requests", 0, 360, 500)]),
    "OpenAI, hours": (openai("tokens", "9e4", "12", "1h2m3.5s"), [LimitHeaders("tokens", 12, 3723.5, 9, False)]),
    "Cerebras, seconds": (
        openai("tokens-minute", "100", "5", "33.5"),
        [LimitHeaders("tokens-minute", 5, 33.5, 100, False)],
    ),
    "Anthropic": (
        {
            "date": DATE,
            "anthropic-ratelimit-requests-limit": "50",
            "anthropic-ratelimit-requests-remaining": "49",
            "anthropic-ratelimit-requests-reset": "2015-10-21T07:28:12Z",
            "anthropic-ratelimit-input-tokens-limit": "40000",
            "anthropic-ratelimit-input-tokens-remaining": "39000",
            "anthropic-ratelimit-input-tokens-reset": "2015-10-21T07:28:01.5+00:00",
        },
        [LimitHeaders("requests", 49, 12, 50), LimitHeaders("input-tokens", 39000, 1.5, 40000, False)],
    ),
    "generic, seconds from now": (generic("30"), [LimitHeaders("requests", 7, 30, 60)]),
    "generic, epoch seconds": (generic(str(THEN + 30), date=DATE), [LimitHeaders("requests", 7, 30, 60)]),
    "generic, epoch ms": (generic(f"{THEN + 30}500", date=DATE), [LimitHeaders("requests", 7, 30.5, 60)]),
    "generic, a date": (generic("Wed, 21 Oct 2015 07:28:30 GMT", date=DATE), [LimitHeaders("requests", 7, 30, 60)]),
    "generic, past": (generic(str(THEN - 30), date=DATE), [LimitHeaders("requests", 7, 0, 60)]),
    "generic, spelled otherwise": (
        {"x-rate-limit-limit": "15", "x-rate-limit-remaining": "3", "x-rate-limit-reset": "9"},
        [LimitHeaders("requests", 3, 9, 15)],
    ),
    "draft 05": (
        {"ratelimit-limit": "100, 100;w=60", "ratelimit-remaining": "50", "ratelimit-reset": "20"},
        [LimitHeaders("requests", 50, 20, 100)],
    ),
    "draft 07": ({"ratelimit": "limit=100, remaining=50, reset=5"}, [LimitHeaders("requests", 50, 5, 100)]),
    "draft 10": (
        {"ratelimit": '"burst";r=50;t=30, day;r=10', "ratelimit-policy": '"burst";q=100;w=60,"day";q=1000;w=86400'},
        [LimitHeaders("burst", 50, 30, 100), LimitHeaders("day", 10, 86400, 1000)],
    ),
    "draft 10, other units": (
        {
            "ratelimit": '"size";r=5000;t=3, "at once";r=2;t=9',
            "ratelimit-policy": '"size";q=9000;w=60;qu="content-bytes", "at once";q=4;qu="concurrent-requests"',
        },
        [LimitHeaders("size", 5000, 3, 9000, False)],
    ),
    "no limit": (
        {"x-ratelimit-remaining-requests": "4", "x-ratelimit-reset-requests": "2s"},
        [LimitHeaders("requests", 4, 2)],
    ),
    "longer than anything": (generic("9" * 17), [LimitHeaders("requests", 7, LONGEST_RESET, 60)]),
}


@pytest.mark.parametrize(("headers", "limits"), FORMS.values(), ids=FORMS)
def test_every_form(headers, limits):
    """Each form in which servers tell their limits is read."""
    assert list(limits_in(headers)) == limits


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"content-type": "application/json", "date": DATE},
        {"x-ratelimit-remaining": "7"},
        generic("soon"),
        generic(""),
        generic("nan"),
        openai("requests", "500", "-1", "1s"),
        openai("requests", "500", "many", "1s"),
        {"ratelimit": "garbage"},
        {"ratelimit": '"a";r=5'},
    ],
)
def test_garbage_is_nothing(headers):
    """What makes no sense, or only half, is not taken for a limit."""
    assert limits_in(headers) == ()


def test_a_wrong_clock_here_does_no_harm():
    """A moment years away from this machine's clock is 12 s away by the reply's own Date."""
    (one,) = limits_in(generic(str(THEN + 12), date=DATE))
    assert one.reset == 12


NAMES = sorted({name for headers, _ in FORMS.values() for name in headers})
VALUES = st.one_of(
    st.text(max_size=40),
    st.text(string.digits + ".-+eE;=,\"' msh:TZrtqw", max_size=40),
    st.sampled_from([value for headers, _ in FORMS.values() for value in headers.values()]),
)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=20), VALUES, max_size=8))
def test_it_never_raises_and_never_goes_below_zero(headers):
    """Whatever stands in the headers, the result is limits with numbers from 0 up."""
    for one in limits_in(headers):
        assert one.remaining >= 0
        assert 0 <= one.reset <= LONGEST_RESET
        assert one.limit is None or one.limit >= 0
