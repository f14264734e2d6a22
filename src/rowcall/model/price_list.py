"""Prices by the name of a model, from the list in the package genai-prices; nothing is downloaded."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from rowcall.model.prices import NANO, Prices

_SAMPLE = 1000
"""Tokens that are asked the price of: below any step of a price that rises with a call's length."""


class NoPrice(Exception):
    """There is no list, or the model is not in it; ``remedy`` says what to do."""

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message)
        self.remedy = remedy


def look_up_prices(model: str, *, provider: str | None = None, base_url: str | None = None) -> Prices:
    """The prices of a model as the list has them today; for short calls, where they rise with a call's length.

    Args:
        model: its name, as the API is asked for it.
        provider: whose: ``openai``, ``anthropic``, ``google``.
        base_url: where it is called; says whose it is where ``provider`` does not. An address that the list does
            not know is no reason against the model's name.

    Raises:
        Unlisted: the package is not installed, or does not know the model.
    """
    try:
        import genai_prices
    except ImportError:
        remedy = "pip install 'rowcall[prices]', or write the prices: [price] input = ..., output = ..."
        raise NoPrice("the package genai-prices is not installed", remedy) from None

    def of(**tokens: int) -> int:
        usage = genai_prices.Usage(**tokens)
        return _a_million(_calculated(genai_prices.calc_price, usage, model, provider, base_url))

    return Prices(
        input=of(input_tokens=_SAMPLE),
        output=of(output_tokens=_SAMPLE),
        cached=of(input_tokens=_SAMPLE, cache_read_tokens=_SAMPLE),
    )


def _calculated(calculate: Any, usage: Any, model: str, provider: str | None, base_url: str | None) -> Decimal:
    whose = [{"provider_id": provider}] if provider else [{"provider_api_url": base_url}, {}]
    for where in whose:
        try:
            return Decimal(calculate(usage, model, **where).total_price)
        except LookupError:
            continue
    of_whom = f" of {provider}" if provider else ""
    remedy = 'name one that it knows: [price] model = "..." and provider = "...", or write the prices'
    raise NoPrice(f"genai-prices does not know the model {model!r}{of_whom}", remedy)


def _a_million(price: Decimal) -> int:
    return int(price * NANO * (1_000_000 // _SAMPLE))
