"""What usage costs: pure arithmetic, and the list of prices."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rowcall.model.outcome import Failure, FailureClass, Success, Usage
from rowcall.model.price_list import NoPrice, look_up_prices
from rowcall.model.prices import Prices, dollars, guess, nano, priced, usd

counts = st.integers(0, 10**7)
usages = st.builds(Usage, input=counts, output=counts, cached=counts, reasoning=counts, cost=counts | st.none())


def test_a_call_costs_its_tokens():
    """Cached tokens are a part of the input, reasoning a part of the output, each at its own price."""
    prices = Prices(input=nano(1.25), output=nano(10), cached=nano(0.125), reasoning=nano(12))
    usage = Usage(input=1000, output=300, cached=400, reasoning=100)
    assert prices.cost(usage) == 600 * 1250 + 400 * 125 + 200 * 10_000 + 100 * 12_000


def test_cached_and_reasoning_cost_as_the_others_where_nothing_is_said():
    """A missing price is that of the tokens around it, never 0."""
    usage = Usage(input=1000, output=300, cached=400, reasoning=100)
    assert Prices(nano(2), nano(8)).cost(usage) == 1000 * 2000 + 300 * 8000
    assert Prices(nano(2), nano(8), cached=0, reasoning=0).cost(usage) == 600 * 2000 + 200 * 8000


def test_a_reply_that_names_its_cost_is_believed():
    """Its own cost goes before the prices."""
    outcome = Success("a", 200, usage=Usage(input=10**6, cost=5))
    assert priced(outcome, Prices(nano(1))).usage.cost == 5


@pytest.mark.parametrize(("status", "charged"), [(200, 1), (500, 0), (429, 0)])
def test_a_call_that_was_answered_costs_its_price(status, charged):
    """``per_call`` is for replies of 2xx, those without a usable answer too."""
    failure = Failure(FailureClass.ANSWER, "empty", "", status)
    assert priced(failure, Prices(per_call=7)).usage.cost == 7 * charged
    assert priced(Success(None, 404), Prices(per_call=7)).usage.cost == 7


def test_without_prices_nothing_is_known():
    """An unknown cost is none, not 0."""
    assert priced(Success("a", 200, usage=Usage(1, 1)), None).usage.cost is None
    assert (Usage() + Usage()).cost is None


@given(st.lists(usages, min_size=1, max_size=20))
@settings(deadline=None, max_examples=50)
def test_sums_are_exact_in_any_order(each):
    """Adding up loses nothing, and what is unknown adds nothing."""
    sums = [sum(order, Usage()) for order in (each, each[::-1])]
    known = [usage.cost for usage in each if usage.cost is not None]
    assert sums[0] == sums[1]
    assert sums[0].cost == (sum(known) if known else None)


def test_a_guess_sees_the_limit_on_the_answer():
    """Whatever the API calls it; a text that talks about it is none."""
    for name in ("max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens"):
        assert guess(f'{{"a": {{"{name}": 64}}}}'.encode()).output == 64
    assert guess(b'{"text": "\\"max_tokens\\": 64"}') == Usage(input=7, output=500)


def test_money_for_people():
    """Large sums in cents, small ones as far as they say something."""
    assert [usd(nano(each)) for each in (0, 1234.567, 0.0415, 0.000021)] == [
        "$0.00",
        "$1,234.57",
        "$0.0415",
        "$0.0000210",
    ]
    assert (dollars(nano(0.1)), dollars(None)) == (0.1, None)


def test_the_list_knows_models():
    """By provider, by the API's address, or by the model's name alone."""
    pytest.importorskip("genai_prices")
    by_name = look_up_prices("gpt-4.1-mini")
    assert by_name == look_up_prices("gpt-4.1-mini", base_url="https://api.openai.com/v1")
    assert by_name == look_up_prices("gpt-4.1-mini", provider="openai", base_url="http://127.0.0.1/v1")
    assert 0 < by_name.cached < by_name.input < by_name.output
    assert by_name.input == nano(0.4)


def test_a_model_that_the_list_does_not_know_is_named():
    """The message says which."""
    pytest.importorskip("genai_prices")
    with pytest.raises(NoPrice, match="'no-such-model' of openai"):
        look_up_prices("no-such-model", provider="openai")


def test_a_list_that_is_not_installed_is_said(monkeypatch):
    """With the command that installs it."""
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    with pytest.raises(NoPrice, match="not installed") as caught:
        look_up_prices("gpt-4.1-mini")
    assert "pip install 'rowcall[prices]'" in caught.value.remedy
